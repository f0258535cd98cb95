"""Whether numbers that should be independent and uniform are.

Everything is a count of fair events, so that the chance of a false alarm is exact: numbers below a level, far into both tails; agreement of
bits (in which half a number lies, and whether in the middle half) of two numbers of one release, of one release and the next, and of a
release of one table and of the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import binom

from dpgram.sampling.base import BITS_BELOW_SD

Array = np.ndarray

TAIL = 20  # levels down to 2^-20
_ENDS = 2.0 ** -np.arange(1.0, TAIL + 1)
LEVELS = np.unique(np.concatenate([_ENDS, 1 - _ENDS, np.arange(1, 16) / 16]))
REMEMBERED = 50_000  # releases of each table whose noise is compared with the other's
SAME = 1e-13  # the width of a cell: numbers in the same one came from the same noise, or from the same point of a grid
POINT = 2.0**-BITS_BELOW_SD  # the chance of any point of a grid, at most: no law in use has a density above one over its sd


@dataclass
class Counts:
    """Counts over the releases of one table, gathered in parts; the first numbers are kept."""

    table: Any  # of whose releases
    draws: int = 0
    following: int = 0
    below: Array = field(default_factory=lambda: np.zeros(()))
    together: Array = field(default_factory=lambda: np.zeros(()))
    next_to: Array = field(default_factory=lambda: np.zeros(()))
    first: Array = field(default_factory=lambda: np.empty((0, 0)))

    def add(self, numbers: Array) -> None:
        bits = _bits(numbers)
        self.first = self.first if self.draws else numbers[:REMEMBERED]
        self.below = self.below + [np.searchsorted(np.sort(column), LEVELS) for column in numbers.T]
        self.together = self.together + _agreement(bits, bits)
        self.next_to = self.next_to + _agreement(bits[:-1], bits[1:])
        self.draws += len(numbers)
        self.following += len(numbers) - 1

    def faults(self, error: float) -> list[str]:
        """What has a chance below ``error``, all together, where the numbers are uniform and independent."""
        width = len(self.below)
        tests = self.below.size + width * (2 * width - 1) + 4 * width**2
        faults = []
        for (place, level), chance in np.ndenumerate(_chance(self.below, self.draws, LEVELS)):
            if chance < error / tests:
                counted, due = self.below[place, level], self.draws * LEVELS[level]
                told = f"lies below its {LEVELS[level]:.3g} quantile {counted:.0f} times, where {due:.0f} are due"
                faults.append((chance, f"number {place + 1} of the noise {told}"))
        upper = np.triu(np.ones_like(self.together, dtype=bool), 1)
        for name, counts, total, looked in (
            ("of the same release", self.together, self.draws, upper),
            ("of one release and the next", self.next_to, self.following, np.ones_like(upper)),
        ):
            chances = np.where(looked, _chance(counts, total, 0.5), 1.0)
            one, other = np.unravel_index(int(np.argmin(chances)), chances.shape)
            if chances[one, other] < error / tests:
                told = f"numbers {one % width + 1} and {other % width + 1} {name} depend on each other"
                faults.append((chances[one, other], told))
        return [words for _, words in sorted(faults)[:2]]


def faults_between(first: Array, second: Array, error: float, *, rounded: bool) -> list[str]:
    """What has a chance below ``error`` for two tables, whose noise must be independent and the same no more often than by chance.

    A number falls into the cell of one of the k before it with probability at most k p, whatever those are; p is the width of a cell, and a
    ``POINT`` more where releases are rounded to a grid. So the repeats among n numbers are no more than independent events would be, of
    which n^2 p / 2 are due, and r or more of those have a chance of at most due^r / r!."""
    rows = min(len(first), len(second))
    agreement = _agreement(_bits(first[:rows]), _bits(second[:rows]))
    faults = []
    if np.min(_chance(agreement, rows, 0.5)) < error / 2 / agreement.size:
        faults.append("the noise of the two tables depends on each other")
    both = np.vstack([first, second])
    repeats = max(len(both) - np.unique(column).size for column in np.rint(both / SAME).T)
    due = len(both) ** 2 / 2 * (SAME + (POINT if rounded else 0.0))
    if repeats and repeats * math.log(due) - math.lgamma(repeats + 1) < math.log(error / 2 / both.shape[1]):
        faults.append(f"the same noise was drawn again: {repeats} repeated numbers in {len(both)} releases")
    return faults


def faults_of_grid(matrices: Array, grid: float, error: float) -> list[str]:
    """Entries lie on the declared grid, and are as often odd multiples of it as even ones: the grid is not finer than what is published."""
    whole = matrices[:, *np.triu_indices(matrices.shape[-1])] / grid
    if np.any(whole != np.round(whole)):
        return ["an entry does not lie on the declared grid"]
    odd = (np.abs(whole) % 2 == 1)[:, np.max(np.abs(whole), axis=0) < 2.0**52].sum(axis=0)
    strange = odd.size and np.min(_chance(odd, len(whole), 0.5)) < error / odd.size
    return ["the entries lie on a coarser grid than the declared one"] if strange else []


def _bits(numbers: Array) -> Array:
    """Two fair bits of each number, as -1 and 1: its half, and whether it lies in the middle half."""
    return np.where(np.hstack([numbers < 0.5, np.abs(numbers - 0.5) < 0.25]), 1.0, -1.0).astype(np.float32)


def _agreement(one: Array, other: Array) -> Array:
    return np.round((len(one) + (one.T @ other).astype(float)) / 2)


def _chance(counts: Array, total: int, level: Array | float) -> Array:
    """Of a count at least as far out, on either side."""
    return np.minimum(1.0, 2 * np.minimum(binom.cdf(counts, total, level), binom.sf(counts - 1, total, level)))
