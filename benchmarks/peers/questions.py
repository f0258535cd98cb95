"""What every method is asked: k regressions of one table, within public bounds, for one budget.

Rows are in scaled units, as a schema encodes them: an intercept of one, columns within [-1, 1]. NOT PROTECTED: a method protects them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpgram.terms.budget import Budget

Array = np.ndarray
LABEL_BOUND = 1.0  # scaled labels lie within [-1, 1]


@dataclass(frozen=True, eq=False)
class Regression:
    """One regression: ``x`` (p, n) holds the regressors as rows, the intercept first; every example has |x| <= ``x_bound``, |y| <= 1."""

    target: str
    features: tuple[str, ...]  # declared columns
    names: tuple[str, ...]  # of the rows of x
    x: Array
    y: Array
    x_bound: float  # public
    typical: Array  # public: the size of each regressor that its owner allows for, (p,)
    kept: dict[object, object] = field(default_factory=dict)  # what a method computes once, whatever the budget

    @cached_property
    def gram(self) -> Array:
        return self.x @ self.x.T

    @cached_property
    def moments(self) -> Array:
        return self.x @ self.y

    @cached_property
    def least_squares(self) -> Array:
        """The fit without privacy; of least norm, where a category never occurs."""
        return np.linalg.lstsq(self.gram, self.moments, rcond=1e-12)[0]

    @cached_property
    def explained(self) -> float:
        """R^2 of least squares on the rows themselves."""
        return 1 - float(np.mean((self.y - self.least_squares @ self.x) ** 2) / np.var(self.y))

    def lost(self, coefficients: Array) -> float:
        """The share of the explained variance that is lost: 0 for least squares, 1 for a guess no better than the mean; above 1, worse."""
        off = coefficients - self.least_squares
        return float(off @ self.gram @ off / self.rows / np.var(self.y) / self.explained)

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def size(self) -> int:
        """How many coefficients."""
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Questions:
    """``asked`` are some of ``k`` regressions of ``table``, all of which the budget must pay for."""

    table: object  # a benchmarks.peers.tables.Table
    asked: Sequence[Regression]
    k: int
    budget: Budget


Answers = list[Array]
"""Coefficients in scaled units, in the order of the questions."""


@dataclass(frozen=True)
class Method:
    """A line of the comparison. ``cost`` says how it is accounted for, and ``setting`` how its choices were made."""

    name: str
    paper: str
    cost: str
    setting: str
    answer: Callable[[Questions, np.random.Generator], Answers]
    available: Callable[[], str | None] = lambda: None  # why it cannot run here, if so
    any_k: bool = False  # whether the answers are the same for every k
    draws: int = 1  # times the plan's repetitions: more where all regressions share one draw of noise


class NotInstalledError(RuntimeError):
    """A package that a method wraps is missing; the message names the command that installs it."""
