"""Neighbouring tables, as pairs of Gram sums or of rows, and the pairs of Gram sums on which the proven curves are attained.

All other rows are as few as the proof allows: none, or, for mechanisms that look at or rely on the smallest eigenvalue, enough of them to
bring it to the place where it tells most."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgram.linalg.scales import weights
from dpgram.mechanisms.conversation import CountsQuestion, GramAnswer, GramQuestion, Question, Task
from dpgram.terms.bins import Bins
from dpgram.terms.budget import Neighbours
from dpgram.terms.scales import ONE_CLIP, SWITCH, Scales
from dpgram.terms.schema import Schema

Array = np.ndarray

MANY_ROWS = 50  # of a unit along each of its directions: more than count in full


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of rows, each there ``counts`` times."""

    rows: Array  # (different rows, columns)
    counts: Array

    def gram(self, through: Array) -> Array:
        """The sum over rows that are multiplied by ``through`` and then shrunk to norm one; one for each map where there are many."""
        return self.grams(through)[0]

    def grams(self, through: Array, scales: Scales = ONE_CLIP) -> list[Array]:
        """The sum at each scale, over rows that are multiplied by ``through`` and then shared between them."""
        mapped = self.rows @ np.swapaxes(through, -1, -2)
        shares = weights(np.sum(mapped**2, axis=-1), scales, SWITCH)
        return [np.swapaxes(mapped * (self.counts * share)[..., None], -1, -2) @ mapped for share in shares]

    def answer(self, question: GramQuestion, task: Task) -> GramAnswer:
        """As a curator answers: the number of rows is told where it is public. Where a sample is asked for, all coins show heads: that may
        happen, and no other sample has neighbours further apart."""
        assert question.through is not None
        gram, *outer = self.grams(question.through.matrix, question.scales)
        return GramAnswer(gram, _public(self.counts, task), tuple(outer))


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of numbers as they are declared, before they are encoded; each row is there ``counts`` times."""

    schema: Schema
    cells: Array  # (different rows, columns); NaN where a cell is missing
    counts: Array

    def in_bins(self, bins: Bins) -> Array:
        """How many rows lie in each bin, column after column."""
        whole = []
        for name, edges in bins.inner.items():
            column = self.cells[:, self.schema.names.index(name)]
            there = ~np.isnan(column)
            bounds = np.array([-math.inf, *edges, math.inf])
            within = (bounds[:-1, None] <= column[there]) & (column[there] < bounds[1:, None])
            whole.append(within @ self.counts[there])
        return np.concatenate(whole)

    def encoded(self, learnt: Any) -> Rows:
        """The rows that sums are made of, scaled by what was learnt."""
        columns = replace(self.schema, learnt=learnt or {}).encoded
        centres, halves = (np.array(numbers) for numbers in zip(*((e.centre, e.half) for e in columns), strict=True))
        return Rows(np.clip(np.nan_to_num((self.cells - centres) / halves), -1.0, 1.0), self.counts)

    def answer(self, question: Question, task: Task) -> GramAnswer:
        if isinstance(question, CountsQuestion):
            return GramAnswer(question.bins.packed(self.in_bins(question.bins)), _public(self.counts, task))
        return self.encoded(question.learnt).answer(question, task)


def _public(counts: Array, task: Task) -> int | None:
    return int(counts.sum()) if task.neighbours is Neighbours.REPLACE and not task.by_unit else None


Table = Any
"""A Gram sum as an array, which answers the one question of most mechanisms, or ``Rows``, or ``Cells``."""


def answered(table: Table, question: Question, task: Task) -> GramAnswer:
    return GramAnswer(table, task.rows) if isinstance(table, np.ndarray) else table.answer(question, task)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables, rows of norm at most the row bound: their Gram sums, or rows for a mechanism that asks more than once."""

    name: str
    first: Table
    second: Table


@dataclass(frozen=True, eq=False)
class Contrast:
    """In what two neighbouring tables differ: the row ``one`` is in the first, and ``other`` in its place in the second, where given.

    With several rows per unit each is a unit: a row that is there as often, or several rows, (any number, columns), that together count as
    often."""

    name: str
    one: Array
    other: Array | None = None
    beside: Array | None = None  # rows that both share, where they are given
    last: bool = False  # whether it is the only row in its direction, while all others are there: one Gram sum is singular


def worst_contrasts(task: Task) -> list[Contrast]:
    """Rows of full norm that tell most apart.

    REPLACE: orthogonal rows, along two columns and between them, and a row against a row of zeros. ADD_REMOVE: a row, there or not,
    likewise. Noise that is right is the same in every direction, but a mistake may show in one of them only."""
    along = task.row_bound * np.eye(task.dim)[[0, -1]]
    between = np.array([along[0] + along[1], along[0] - along[1]]) / math.sqrt(2)
    last = Contrast("the last direction", along[0], last=True)
    spread = [Contrast("a unit of many rows", np.repeat(along, MANY_ROWS, axis=0))] if task.by_unit else []
    if task.neighbours is Neighbours.ADD_REMOVE:
        one = Contrast("one row more", along[0])
        return [one, Contrast("one row more, turned", between[0]), last, *spread] if task.dim >= 2 else [one]
    one = Contrast("a row of zeros", along[0])
    apart = [Contrast("orthogonal rows", *along), Contrast("the same, turned", *between)]
    return [*apart, one, last, *spread] if task.dim >= 2 else [one]


def random_contrasts(task: Task, count: int, rng: np.random.Generator) -> list[Contrast]:
    """Rows of random direction and full norm, beside three that are shared."""
    drawn = rng.normal(size=(count, 5, task.dim))
    drawn *= task.row_bound / np.linalg.norm(drawn, axis=-1, keepdims=True)
    added = task.neighbours is Neighbours.ADD_REMOVE
    return [
        Contrast(f"random rows {place}", rows[0], None if added else rows[1], rows[2:]) for place, rows in enumerate(drawn, 1)
    ]


def gram_pair(contrast: Contrast, level: float, task: Task, *, eigenvalue_moves: bool) -> Pair:
    """The Gram sums of tables that share ``level`` times the identity.

    With ``eigenvalue_moves`` worst tables have more in other directions, so that the smallest eigenvalue moves by the whole of a row."""
    one, other, eye = contrast.one, contrast.other, np.eye(task.dim)
    common = level * eye
    if contrast.last:
        common = (0 if eigenvalue_moves else common) + one @ one * (eye - _square(eye[0]))
    elif contrast.beside is not None:
        common = common + contrast.beside.T @ contrast.beside
    elif eigenvalue_moves:
        common = common + _square(other) if other is not None else common + one @ one * eye - _square(one)
    first, second = (0.0 if unit is None else _unit_gram(unit, task) for unit in (one, other))
    return Pair(contrast.name, common + first, common + second)


def shares(unit: Array, task: Task) -> Array:
    """What each row of a unit, or the row that stands for all of them, counts as."""
    rows = np.atleast_2d(unit)
    return np.full(len(rows), task.rows_per_unit / len(rows))


def _unit_gram(unit: Array, task: Task) -> Array:
    rows = np.atleast_2d(unit)
    return (rows * shares(unit, task)[:, None]).T @ rows


def _square(row: Array) -> Array:
    return np.outer(row, row)
