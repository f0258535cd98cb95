"""Neighbouring tables, as pairs of Gram sums or of rows, and the pairs of Gram sums on which the proven curves are attained.

All other rows are as few as the proof allows: none, or, for mechanisms that look at or rely on the smallest eigenvalue, enough of them to
bring it to the place where it tells most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, Task
from dpgram.terms.budget import Neighbours

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of rows, each there ``counts`` times."""

    rows: Array  # (different rows, columns)
    counts: Array

    def gram(self, through: Array) -> Array:
        """The sum over rows that are multiplied by ``through`` and then shrunk to norm one; one for each map where there are many."""
        mapped = self.rows @ np.swapaxes(through, -1, -2)
        mapped = mapped / np.maximum(np.linalg.norm(mapped, axis=-1, keepdims=True), 1.0)
        return np.swapaxes(mapped * self.counts[:, None], -1, -2) @ mapped

    def answer(self, question: GramQuestion, task: Task) -> GramAnswer:
        """As a curator answers: the number of rows is told where it is public."""
        assert question.through is not None
        rows = int(self.counts.sum()) if task.neighbours is Neighbours.REPLACE else None
        return GramAnswer(self.gram(question.through.matrix), rows)


Table = Any
"""A Gram sum as an array, which answers the one question of most mechanisms, or ``Rows``."""


def answered(table: Table, question: GramQuestion, task: Task) -> GramAnswer:
    return table.answer(question, task) if isinstance(table, Rows) else GramAnswer(table, task.rows)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables, rows of norm at most the row bound: their Gram sums, or rows for a mechanism that asks more than once."""

    name: str
    first: Table
    second: Table


def gram_pairs(task: Task, level: float, *, eigenvalue_moves: bool) -> list[Pair]:
    """Pairs that differ in rows of full norm, and share ``level`` times the identity.

    REPLACE: orthogonal rows, along two columns and between them, and a row against a row of zeros. ADD_REMOVE: a row, there or not,
    likewise. Noise that is right is the same in every direction, but a mistake may show in one of them only. In the last pair the row
    is the only one in its direction, and all others are there: one Gram sum is singular. With ``eigenvalue_moves`` there is more in
    other directions, so that the smallest eigenvalue moves by a whole B^2."""
    common, bound = level * np.eye(task.dim), task.row_bound
    along = bound * np.eye(task.dim)[[0, -1]]
    between = np.array([along[0] + along[1], along[0] - along[1]]) / math.sqrt(2)
    others = (0 if eigenvalue_moves else common) + bound**2 * np.diag(np.arange(task.dim) > 0).astype(float)
    last = Pair("the last direction", others + _square(along[0]), others)

    def alone(name: str, row: Array) -> Pair:
        beside = common + row @ row * np.eye(task.dim) - _square(row) if eigenvalue_moves else common
        return Pair(name, beside + _square(row), beside)

    def orthogonal(name: str, rows: Array) -> Pair:
        beside = common + _square(rows[1]) if eigenvalue_moves else common
        return Pair(name, beside + _square(rows[0]), beside + _square(rows[1]))

    if task.neighbours is Neighbours.ADD_REMOVE:
        turned = [] if task.dim < 2 else [alone("one row more, turned", between[0]), last]
        return [alone("one row more", along[0]), *turned]
    zeros = alone("a row of zeros", along[0])
    if task.dim < 2:
        return [zeros]
    return [orthogonal("orthogonal rows", along), orthogonal("the same, turned", between), zeros, last]


def random_gram_pair(name: str, task: Task, level: float, rows: Array) -> Pair:
    """Tables that differ in the first of ``rows``, or in the first two, and share the others and ``level`` times the identity."""
    shared = level * np.eye(task.dim) + rows[2:].T @ rows[2:]
    other = 0 if task.neighbours is Neighbours.ADD_REMOVE else _square(rows[1])
    return Pair(name, shared + _square(rows[0]), shared + other)


def _square(row: Array) -> Array:
    return np.outer(row, row)
