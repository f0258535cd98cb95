"""Neighbouring tables on which the proven curves are attained, as pairs of Gram sums.

All other rows are as few as the proof allows: none, or, for mechanisms that look at or rely on the smallest eigenvalue, enough of them to
bring it to the place where it tells most. A mechanism of several rounds asks for other sums as it goes on, so it has tables of rows:
many short ones in every direction, by which its maps come close to a multiple of a rotation, and leave long rows long and right angles
right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgram.audits.steering import WHITENED
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, Parameters, Task
from dpgram.mechanisms.whitened_noise import hinted_rows
from dpgram.terms.budget import Neighbours

Array = np.ndarray

ADAPTIVE = ("gaussian-sketch-adaptive", "inverse-wishart-adaptive")


MANY, SHORT = 3000, 0.1  # rows of a table for several rounds where nobody says how many; the length of most over the row bound


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


def with_rows(mechanism: str, task: Task) -> Task:
    """The task, which knows how many rows its tables will have where a mechanism goes by their number and that is public."""
    if mechanism != WHITENED or task.neighbours is not Neighbours.REPLACE or hinted_rows(task) is not None:
        return task
    return replace(task, rows=MANY)


def worst_pairs(mechanism: str, task: Task, found: Parameters) -> list[Pair]:
    """The pairs on which a mechanism with parameters ``found`` is least private, as its proof tells.

    REPLACE: orthogonal rows of full norm, along two columns and between them, and a row of full norm against a row of zeros.
    ADD_REMOVE: a row of full norm, there or not, likewise. Noise that is right is the same in every direction, but a mistake may
    show in one of them only. In the last pair the row is the only one in its direction, and all
    others are there: one Gram sum is singular."""
    if mechanism == WHITENED:
        return _pairs_of_rows(task)
    common, bound = _common(mechanism, task, found), task.row_bound
    along = bound * np.eye(task.dim)[[0, -1]]
    between = np.array([along[0] + along[1], along[0] - along[1]]) / math.sqrt(2)
    others = (0 if mechanism in ADAPTIVE else common) + bound**2 * np.diag(np.arange(task.dim) > 0).astype(float)
    last = Pair("the last direction", others + _square(along[0]), others)
    if task.neighbours is Neighbours.ADD_REMOVE:
        pairs = [_alone(mechanism, "one row more", common, along[0])]
        return pairs if task.dim < 2 else [*pairs, _alone(mechanism, "one row more, turned", common, between[0]), last]
    pairs = [_alone(mechanism, "a row of zeros", common, along[0])]
    if task.dim < 2:
        return pairs
    return [
        _orthogonal(mechanism, "orthogonal rows", common, along),
        _orthogonal(mechanism, "the same, turned", common, between),
        *pairs,
        last,
    ]


def _alone(mechanism: str, name: str, common: Array, row: Array) -> Pair:
    if mechanism in ADAPTIVE:  # as much in all other directions, so that the smallest eigenvalue moves by a whole B^2
        common = common + row @ row * np.eye(len(row)) - _square(row)
    return Pair(name, common + _square(row), common)


def _orthogonal(mechanism: str, name: str, common: Array, rows: Array) -> Pair:
    if mechanism in ADAPTIVE:  # once more the second row, so that the smallest eigenvalue moves by a whole B^2
        common = common + _square(rows[1])
    return Pair(name, common + _square(rows[0]), common + _square(rows[1]))


def random_pairs(mechanism: str, task: Task, found: Parameters, count: int, rng: np.random.Generator) -> list[Pair]:
    """Pairs that differ in rows of random direction and full norm, beside three rows that they share."""
    pairs = []
    for place in range(count):
        rows = rng.normal(size=(5, task.dim))
        rows *= task.row_bound / np.linalg.norm(rows, axis=1, keepdims=True)
        if mechanism == WHITENED:
            pairs.append(_differing(f"random rows {place + 1}", task, rows[0], rows[1], rows[2:]))
            continue
        shared = _common(mechanism, task, found) + rows[2:].T @ rows[2:]
        other = np.zeros_like(shared) if task.neighbours is Neighbours.ADD_REMOVE else np.outer(rows[1], rows[1])
        pairs.append(Pair(f"random rows {place + 1}", shared + np.outer(rows[0], rows[0]), shared + other))
    return pairs


def _pairs_of_rows(task: Task) -> list[Pair]:
    """The same pairs for a mechanism of several rounds."""
    along = task.row_bound * np.eye(task.dim)[[0, -1]]
    between = np.array([along[0] + along[1], along[0] - along[1]]) / math.sqrt(2)
    alone = _differing("one row more" if task.neighbours is Neighbours.ADD_REMOVE else "a row of zeros", task, along[0])
    if task.dim < 2:
        return [alone]
    last = _differing("the last direction", task, along[0], spread=range(1, task.dim))
    if task.neighbours is Neighbours.ADD_REMOVE:
        return [alone, _differing("one row more, turned", task, between[0]), last]
    return [_differing("orthogonal rows", task, *along), _differing("the same, turned", task, *between), alone, last]


def _differing(
    name: str,
    task: Task,
    one: Array,
    other: Array | None = None,
    beside: Array | None = None,
    spread: Sequence[int] | None = None,
) -> Pair:
    """Tables with the row ``one``, and with ``other`` in its place: zeros where none is given, or no row under ADD_REMOVE.

    Both have short rows along the columns ``spread``, both ways, and the rows ``beside``. There are as many as the task says."""
    columns = np.eye(task.dim)[list(range(task.dim) if spread is None else spread)]
    beside = np.empty((0, task.dim)) if beside is None else beside
    many = int(hinted_rows(task) or MANY) - len(beside) - (task.neighbours is Neighbours.REPLACE)
    each, left = divmod(max(many, 0), 2 * len(columns))
    counts = [each + (place < left) for place in range(2 * len(columns))]
    common = np.vstack([SHORT * task.row_bound * columns, -SHORT * task.row_bound * columns, beside])
    more = Rows(np.vstack([common, one]), np.array([*counts, *np.ones(len(beside)), 1.0]))
    if task.neighbours is Neighbours.ADD_REMOVE:
        return Pair(name, more, Rows(common, more.counts[:-1]))
    return Pair(name, more, Rows(np.vstack([common, np.zeros(task.dim) if other is None else other]), more.counts))


def _square(row: Array) -> Array:
    return np.outer(row, row)


def _common(mechanism: str, task: Task, found: Parameters) -> Array:
    """What both tables share: nothing, or as much in every direction as makes the smallest eigenvalue tell most."""
    level = 0.0
    if mechanism == "noisy-inverse":
        level = found["claimed_floor"]
    elif (
        mechanism in ADAPTIVE
    ):  # so that the released eigenvalue is seldom cut at zero, and often just enough for no ridge at all
        scale = found["first_stage_scale"]
        level = found["first_stage_offset"] + min(found["base_w_squared"] - 2 * scale, 4 * scale)
    return level * np.eye(task.dim)
