"""Ties a function to the statement in proofs/ that speaks of it.

Each statement carries a line ``Code: <function> <digest>``, the digest of the function's code when the proof was last read
against it. A test recomputes the digests: code that moved on makes the test fail until somebody has read the proof again."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable)

PROVEN: dict[str, list[Callable]] = {}  # statement -> functions, filled as the mechanisms are imported


def proven(statement: str) -> Callable[[F], F]:
    """Mark a function as spoken of by ``statement``, such as "gaussian_noise.md#theorem-1"."""

    def mark(function: F) -> F:
        PROVEN.setdefault(statement, []).append(function)
        return function

    return mark


def code_digest(function: Callable) -> str:
    """Twelve hex digits of the code of a function or a class; comments, docstrings, layout and the marker itself do not count."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    definition.decorator_list = []
    for part in ast.walk(definition):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part) is not None:
            part.body = part.body[1:]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]
