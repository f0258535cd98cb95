"""Ties a function to the statement in proofs/ that speaks of it.

Each statement carries a line ``Code: <function> <digest>``, the digest of the function's code when the proof was last read
against it. A test recomputes the digests: code that moved on makes the test fail until somebody has read the proof again."""

from __future__ import annotations

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
