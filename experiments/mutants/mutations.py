"""Which mistakes are planted: the operators of cosmic-ray that a slip of the hand could be, over the rooms that a promise rests on."""

from __future__ import annotations

import ast
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dpgram"
FOLDER = Path(os.environ.get("DPGRAM_MUTANTS", "build/mutants"))  # what is kept from one run to the next
ROOMS = ("mechanisms", "accounting", "sampling", "rows", "encoding", "ledger", "curator.py", "custody.py")

# Of the ways to replace an operator, those that are nearest to it: x + y by x & y is noticed by any test that runs the line.
OPERATORS = (
    *(
        f"core/ReplaceBinaryOperator_{pair}"
        for pair in (
            "Add_Sub",
            "Sub_Add",
            "Mul_Div",
            "Div_Mul",
            "FloorDiv_Mul",
            "Mod_Mul",
            "Pow_Mul",
            "RShift_LShift",
            "LShift_RShift",
            "BitOr_BitAnd",
            "BitAnd_BitOr",
        )
    ),
    *(
        f"core/ReplaceComparisonOperator_{pair}"
        for pair in (
            "Eq_NotEq",
            "NotEq_Eq",
            "Lt_LtE",
            "LtE_Lt",
            "Gt_GtE",
            "GtE_Gt",
            "Lt_GtE",
            "LtE_Gt",
            "Gt_LtE",
            "GtE_Lt",
            "Is_IsNot",
            "IsNot_Is",
        )
    ),
    "core/ReplaceUnaryOperator_USub_UAdd",
    "core/ReplaceUnaryOperator_Delete_Invert",
    "core/ReplaceUnaryOperator_Delete_Not",
    "core/AddNot",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/NumberReplacer",
    "core/RemoveDecorator",
    "core/ZeroIterationForLoop",
)


@dataclass(frozen=True)
class Mutant:
    """One mistake in one file. Its name stays the same while the line that it changes does."""

    file: str  # below the project's root
    operator: str
    line: int  # where it begins
    last: int  # and where it ends
    before: str  # the lines that it changes
    after: str  # what they become
    repeat: int  # which of several equal mistakes in equal lines of the file

    @property
    def name(self) -> str:
        words = "\n".join((self.file, self.operator.removeprefix("core/"), self.before, self.after, str(self.repeat)))
        return hashlib.sha256(words.encode()).hexdigest()[:12]

    def among(self, share: float) -> bool:
        """Whether it is in a sample of this share: the same one each time."""
        return int(self.name[:8], 16) < share * 2**32

    @property
    def source(self) -> str:
        """The whole file with the mistake in it."""
        lines = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        return "\n".join([*lines[: self.line - 1], *self.after.splitlines(), *lines[self.last :]]) + "\n"


def files() -> list[Path]:
    return [
        path for room in ROOMS for path in ([PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).glob("*.py")))
    ]


def mutants(within: str = "") -> Iterator[Mutant]:
    """Every mistake in files with ``within`` in their names."""
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if within in name:
            yield from of_file(name, path.read_text(encoding="utf-8"))


def of_file(name: str, source: str) -> Iterator[Mutant]:
    from cosmic_ray.ast import get_ast

    told: Counter[tuple[str, ...]] = Counter()
    above = 0
    for part in get_ast(source).children:  # one definition at a time, which is quicker than a file at a time
        code = part.get_code()
        for operator, changed in _changes(code):
            old, new = code.splitlines(), changed.splitlines()
            head = _common(old, new)
            tail = _common(old[head:][::-1], new[head:][::-1])
            before, after = "\n".join(old[head : len(old) - tail]), "\n".join(new[head : len(new) - tail])
            words = (operator, before, after)
            first = above + head + 1
            yield Mutant(name, operator, first, first + len(old) - tail - head - 1, before, after, told[words])
            told[words] += 1
        above += code.count("\n")


def _changes(code: str) -> Iterator[tuple[str, str]]:
    """Operator and changed code, for every change that alters what runs."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    known = {None, _meaning(code)}
    nodes = list(ast_nodes(get_ast(code)))
    for operator in OPERATORS:
        kind = get_operator(operator)
        for occurrence in range(sum(1 for node in nodes for _ in kind().mutation_positions(node))):
            changed = mutate_code(code, kind(), occurrence)
            meaning = _meaning(changed)
            if meaning not in known:  # an annotation, or one mistake in two ways
                known.add(meaning)
                yield operator, changed


def _common(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _meaning(source: str) -> str | None:
    """The code without what does not run: annotations, and imports for them alone. None where it is no Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    return ast.dump(_Running().visit(tree))


class _Running(ast.NodeTransformer):
    """Takes away annotations, docstrings, and the marker of proofs, which changes nothing about a function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [each for each in node.decorator_list if "proven" not in ast.unparse(each)]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if ast.unparse(node.test) in {"TYPE_CHECKING", "not TYPE_CHECKING"}:
            return ast.Pass()
        return self.generic_visit(node)
