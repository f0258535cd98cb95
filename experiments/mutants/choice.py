"""Which tests are asked about a mistake, and in which order."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

from experiments.mutants.covering import covering_tests
from experiments.mutants.mutations import ROOT, Mutant

AGAIN = 0.05  # seconds that a test counts as longer for every other one of its function that comes before it
NEAR = 0.1  # as how much of its seconds a test of the room itself counts when they are put in order
TESTED_IN = {
    "encoding": ("rows", "properties", "native"),
    "curator.py": ("ledger", "artifact"),
    "custody.py": ("ledger", "artifact"),
}  # rooms whose tests lie in folders of another name


class Choice:
    """Tests by the line they run. ``most``: how many seconds of tests a mistake gets."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.of_line, self.seconds_of = covering_tests()

    def tests(self, mutant: Mutant, unfit: set[str]) -> list[str]:
        """Those near by and the quickest first; one of each function before a second one of any. Those ``unfit`` are not asked."""
        room = mutant.file.split("/")[2]
        near = tuple(f"tests/{folder}/" for folder in TESTED_IN.get(room, (room,)))
        lines = _lines(mutant.file, mutant.line, mutant.last)
        names = {test for line in lines for test in self.of_line.get((mutant.file, line), ())} - unfit
        seen: Counter[str] = Counter()
        keyed = []
        for name in sorted(names, key=lambda name: (self.seconds_of[name], name)):
            function = name.partition("[")[0]
            keyed.append(((self.seconds_of[name] + AGAIN * seen[function]) * (NEAR if name.startswith(near) else 1), name))
            seen[function] += 1
        taken, total = [], 0.0
        for _, name in sorted(keyed):
            if total >= self.most:
                break
            total += self.seconds_of[name]
            taken.append(name)
        return taken


def _lines(file: str, first: int, last: int) -> range:
    """The statement around the lines; the whole function for its head, and the whole file for what runs when it is imported."""
    spans, whole = _statements(file)
    within = [span for span in spans if span[0] <= first and last < span[1]]
    return range(*min(within, key=lambda span: span[1] - span[0])) if within else whole


@cache
def _statements(file: str) -> tuple[list[tuple[int, int]], range]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    spans: list[tuple[int, int]] = []

    def walk(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                spans.append((min([child.lineno, *(d.lineno for d in child.decorator_list)]), child.end_lineno + 1))
                walk(child, True)
            elif isinstance(child, ast.stmt):
                body = getattr(child, "body", None)
                if inside:
                    spans.append((child.lineno, body[0].lineno if isinstance(body, list) else child.end_lineno + 1))
                walk(child, inside)
            else:
                walk(child, inside)

    walk(tree, False)
    return spans, range(1, tree.body[-1].end_lineno + 1)
