"""Neighbouring tables, releases of them by the mechanisms themselves, and how often an attack may be right."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import beta, binom

from dpgram.audits.laws.registry import law_of
from dpgram.mechanisms.conversation import Outcome, Task, hold
from dpgram.mechanisms.registry import MECHANISMS, task
from dpgram.sampling.base import RandomSource
from dpgram.terms.budget import Budget, Neighbours
from tests.rounds import always

Array = np.ndarray

NEEDED = {
    "inverse-wishart": {"degrees_of_freedom": 12.0},
    "noisy-inverse": {"rho": 2.0},
    "whitened-noise": {"table_rows": 30},
}


def task_for(name: str, epsilon: float, dim: int = 4, delta: float = 1e-6) -> Task:
    """A release of ``dim`` columns whose rows hold zeros and ones."""
    return task(MECHANISMS[name], Budget(epsilon, delta), Neighbours.ADD_REMOVE, dim, math.sqrt(dim), "exact", NEEDED.get(name))


def neighbours(dim: int = 4, rows: int = 20, ridge: float = 0.0) -> tuple[Array, Array]:
    """The Grams of ``rows`` rows of zeros and ones, and of one row of ones more; ``ridge``: that many of every unit row as well."""
    table = np.random.default_rng(5).integers(0, 2, size=(rows, dim)).astype(float)
    gram = table.T @ table + ridge * np.eye(dim)
    return gram, gram + 1.0


def released(name: str, asked: Task, gram: Array, source: RandomSource) -> Outcome:
    """A release of a table with this Gram sum, whatever it is asked through; maps, where there are some, are quickly made."""
    return hold(law_of(name)(asked, {}).many_at_once(MECHANISMS[name]).start(asked, source), always(gram, None))


def upper(matrix: Array) -> Array:
    """The entries on and above the diagonal, row by row."""
    return matrix[np.triu_indices(len(matrix))]


def most_right(epsilon: float, delta: float = 1e-6) -> float:
    """How often any guess between two neighbours can be right, at most, where both are equally likely."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


def allowed(trials: int, epsilon: float, false_alarm: float) -> float:
    """The number of right guesses that a release of this ``epsilon`` exceeds with probability ``false_alarm`` at most."""
    return binom.isf(false_alarm, trials, most_right(epsilon))


def at_least(right: int, trials: int, doubt: float) -> float:
    """A lower bound on the chance to be right, which is wrong with probability ``doubt`` (Clopper and Pearson)."""
    return float(beta.ppf(doubt, right, trials - right + 1)) if right else 0.0


def right_guesses(publish: Callable[[int], Array], attack: Callable[[Array], int | None], trials: int) -> int:
    """How often the attack names the table that was published, the two in turn; where it has no answer, a coin is thrown."""
    coins = np.random.default_rng(1).integers(0, 2, trials)
    guesses = [attack(publish(trial % 2)) for trial in range(trials)]
    return sum((coins[t] if guess is None else guess) == t % 2 for t, guess in enumerate(guesses))


def pairs_of_the_library(dim: int) -> list[tuple[int, int]]:
    """Which of the numbers of ``upper`` come from one pair of uniform ones in sampling/secure.py, which takes a square in halves."""
    half = (dim * dim + 1) // 2
    place = {i * dim + j: number for number, (i, j) in enumerate(zip(*np.triu_indices(dim), strict=True))}
    return [(place[i], place[i + half]) for i in range(half) if i in place and i + half in place]


def noise_sd(asked: Task) -> Array:
    """The standard deviations of gaussian-noise, for the numbers of ``upper``."""
    found = MECHANISMS["gaussian-noise"].calibrate(asked)
    return upper(np.where(np.eye(asked.dim) > 0, found["sd_diagonal"], found["sd_off_diagonal"]))
