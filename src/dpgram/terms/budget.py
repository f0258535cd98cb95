"""What a release may cost, and who counts as a neighbour."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from enum import Enum
from numbers import Real

from dpgram.errors import BudgetError, DpgramError, LargeDeltaWarning

SMALLEST_EPSILON, SMALLEST_DELTA = 1e-6, 1e-30


class Neighbours(Enum):
    """Which tables count as neighbours: those that nobody can tell apart with confidence from a release.

    Attributes
    ----------
    REPLACE
        One row is replaced by another row. The number of rows stays the same, so it is public.
        The name in files and commands is "replace".
    ADD_REMOVE
        One row is added or removed. The number of rows is protected.
        The name in files and commands is "add-remove".

    Examples
    --------
    >>> from dpgram import Neighbours
    >>> Neighbours("add-remove") is Neighbours.ADD_REMOVE
    True
    >>> Neighbours.REPLACE.in_words
    'tables that differ in one row, which is replaced by another; the number of rows is public'
    """

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"

    @classmethod
    def named(cls, value: object, error: type[DpgramError]) -> Neighbours:
        """Return the relation with this name.

        Parameters
        ----------
        value : Neighbours or str
            A relation, or its name: "replace" or "add-remove".
        error : type of DpgramError
            The error to raise if there is no such relation.

        Returns
        -------
        Neighbours
            The relation.

        Raises
        ------
        DpgramError
            If no relation has this name. The class is ``error``.
        """
        try:
            return cls(value)
        except ValueError:
            raise error(f'neighbours is {value!r} and must be "replace" or "add-remove".') from None

    @property
    def in_words(self) -> str:
        """The relation in one sentence, as a privacy label shows it."""
        return {
            Neighbours.REPLACE: "tables that differ in one row, which is replaced by another; the number of rows is public",
            Neighbours.ADD_REMOVE: "tables that differ by one row, which is added or removed; the number of rows is protected",
        }[self]


@dataclass(frozen=True)
class Budget:
    """A privacy budget: the epsilon and delta of differential privacy.

    Both are the custodian's choice, so neither has a default.

    Parameters
    ----------
    epsilon : float
        Privacy loss. Smaller is more private. Values from 0.1 to 5 are usual.
    delta : float
        Roughly the probability that the privacy loss exceeds epsilon. Choose it well below one over the number of rows.

    Raises
    ------
    BudgetError
        If epsilon or delta is not a number, or is out of range.

    Examples
    --------
    >>> from dpgram import Budget
    >>> Budget(epsilon=1.0, delta=1e-7)
    Budget(epsilon=1.0, delta=1e-07)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon, delta = _number("epsilon", self.epsilon), _number("delta", self.delta)
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise BudgetError(f"epsilon is {epsilon:g} and must be a positive, finite number. Values from 0.1 to 5 are usual.")
        if not 0 < delta < 1:
            raise BudgetError(
                f"delta is {delta:g} and must lie strictly between 0 and 1. Choose it well below 1/(number of rows), such as 1e-7."
            )
        if epsilon < SMALLEST_EPSILON or delta < SMALLEST_DELTA:
            raise BudgetError(
                f"epsilon is {epsilon:g} and delta is {delta:g}. They must be at least {SMALLEST_EPSILON:g} and {SMALLEST_DELTA:g}, "
                f"because smaller ones cannot be guaranteed in double precision. Use a larger budget."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


def _number(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise BudgetError(f"{name} is a {type(value).__name__} and must be a number.")


def warn_of_delta(budget: Budget, rows: int, what: str = "rows", *, stacklevel: int) -> None:
    """Warn if delta is above one over the number of rows, or of what is protected; the number is public or a public guess."""
    if budget.delta > 1 / rows:
        warnings.warn(
            f"delta is {budget.delta:g}, which is above 1/(number of {what}) = {1 / rows:.3g}. Such a budget would allow publishing "
            f"a few {what} in the clear. Use a delta well below {1 / rows:.1g}.",
            LargeDeltaWarning,
            stacklevel=stacklevel,
        )
