"""Neighbouring tables on which the proven curves are attained, as pairs of Gram sums.

All other rows are as few as the proof allows: none, or, for mechanisms that look at or rely on the smallest eigenvalue, enough of them to
bring it to the place where it tells most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpgram.mechanisms.conversation import Parameters, Task
from dpgram.terms.budget import Neighbours

Array = np.ndarray

ADAPTIVE = ("gaussian-sketch-adaptive", "inverse-wishart-adaptive")


@dataclass(frozen=True, eq=False)
class Pair:
    """The Gram sums of two neighbouring tables, rows of norm at most the row bound."""

    name: str
    first: Array
    second: Array


def worst_pairs(mechanism: str, task: Task, found: Parameters) -> list[Pair]:
    """The pairs on which a mechanism with parameters ``found`` is least private, as its proof tells.

    REPLACE: orthogonal rows of full norm, along two columns and between them, and a row of full norm against a row of zeros.
    ADD_REMOVE: a row of full norm, there or not, likewise. Noise that is right is the same in every direction, but a mistake may
    show in one of them only. In the last pair the row is the only one in its direction, and all
    others are there: one Gram sum is singular."""
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
        shared = _common(mechanism, task, found) + rows[2:].T @ rows[2:]
        other = np.zeros_like(shared) if task.neighbours is Neighbours.ADD_REMOVE else np.outer(rows[1], rows[1])
        pairs.append(Pair(f"random rows {place + 1}", shared + np.outer(rows[0], rows[0]), shared + other))
    return pairs


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
