"""The two settings of the paper, and the grid over which they are run."""

from __future__ import annotations

import math
from dataclasses import dataclass

FEATURES = 20
ERROR_SD = 0.5
DELTA = math.exp(-9)
EPSILONS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.5)
REPETITIONS = 15
EXTRA = tuple(range(20))  # m: labels that are used as features too, in the multiple regressions


@dataclass(frozen=True)
class Setting:
    """Features from a normal law, an intercept, and labels that are linear in them.

    Columns of a row: intercept, features, labels. Coefficients are uniform on [-1, 1], drawn anew in every repetition."""

    name: str
    labels: int
    exponents: tuple[int, ...]  # n = 2^k for each
    epsilons: tuple[float, ...]

    @property
    def dim(self) -> int:
        return 1 + FEATURES + self.labels

    @property
    def row_bound(self) -> float:
        return math.sqrt(2.5 * self.dim)


SINGLE = Setting("single", labels=1, exponents=tuple(range(14, 26)), epsilons=EPSILONS)
MULTIPLE = Setting("multiple", labels=FEATURES, exponents=tuple(range(12, 28)), epsilons=(0.1,))
SETTINGS = (SINGLE, MULTIPLE)

Cell = tuple[Setting, int, int]
"""One table: its setting, the exponent of its number of rows, its repetition."""


def cells(largest: int, repetitions: int) -> list[Cell]:
    """Every table of both settings with at most 2^largest rows, small ones first."""
    listed = [(s, k, r) for s in SETTINGS for k in s.exponents if k <= largest for r in range(repetitions)]
    return sorted(listed, key=lambda cell: cell[1])


def seed(setting: Setting, exponent: int, repetition: int) -> int:
    """One seed for each Gram matrix, whatever else is run."""
    return (SETTINGS.index(setting) * 64 + exponent) * 1024 + repetition
