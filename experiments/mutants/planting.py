"""Puts one mistake into the package as it runs: by new code for functions that are there, or by a changed file when it is imported."""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import sys
from types import CodeType, FunctionType

from experiments.mutants.mutations import PACKAGE, ROOT, Mutant

Place = tuple[str, str, int]  # file, qualified name and first line of a function


def functions() -> dict[Place, list[FunctionType]]:
    """Every function of the package that lives in this process."""
    live: dict[Place, list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename.startswith(str(PACKAGE)):
            live.setdefault(_place(each.__code__), []).append(each)
    return live


def plant(mutant: Mutant, live: dict[Place, list[FunctionType]]) -> bool:
    """Give the functions that the mistake is in their new code. False where it is not in functions alone: then nothing was changed."""
    path = str(ROOT / mutant.file)
    with open(path, encoding="utf-8") as file:
        old = compile(file.read(), path, "exec", dont_inherit=True)
    changed = list(_changed(old, compile(mutant.source, path, "exec", dont_inherit=True)))
    if any(
        not _within_function(before) and _place(before) not in live for before, _ in changed
    ):  # a module's code is in no function
        return False
    swaps = [(function, after) for before, after in changed for function in live.get(_place(before), [])]
    if not swaps or any(len(function.__code__.co_freevars) != len(after.co_freevars) for function, after in swaps):
        return False
    for function, after in swaps:
        function.__code__ = after
    return True


def import_with(mutant: Mutant) -> None:
    """Whoever imports the file from now on gets it with the mistake."""
    sys.meta_path.insert(0, _Finder(mutant))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = mutant.file.removeprefix("src/").removesuffix(".py").replace("/", ".")

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        spec.loader = _Loader(fullname, spec.origin, self.mutant)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutant.source, self.path, "exec", dont_inherit=True)


def _changed(old: CodeType, new: CodeType):
    """Pairs of code objects that differ in more than their lines; those that hold others which do are among them."""
    ours, theirs = _inner(old), _inner(new)
    for a, b in zip(ours, theirs, strict=False):
        yield from _changed(a, b)
    within = any(True for a, b in zip(ours, theirs, strict=False) for _ in _changed(a, b))
    if _own(old) != _own(new) or (within and old.co_name != "<module>" and not _is_class(old)):
        yield old, new


def _within_function(code: CodeType) -> bool:
    return "<locals>" in code.co_qualname


def _is_class(code: CodeType) -> bool:
    return "__module__" in code.co_names and "__qualname__" in code.co_names


def _inner(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple:
    constants = tuple((type(each), repr(each)) for each in code.co_consts if not isinstance(each, CodeType))
    return code.co_code, constants, len(_inner(code)), code.co_names, code.co_varnames


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno
