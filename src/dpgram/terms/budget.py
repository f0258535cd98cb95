"""What a release may cost, and who counts as a neighbour."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from numbers import Real

from dpgram.errors import BudgetError, DpgramError

SMALLEST_EPSILON, SMALLEST_DELTA = 1e-6, 1e-30


class Neighbours(Enum):
    """Which two tables the guarantee makes hard to tell apart."""

    REPLACE = "replace"
    """One row is replaced by another. The number of rows is the same, hence public."""

    ADD_REMOVE = "add-remove"
    """One row is added or removed. The number of rows is protected."""

    @classmethod
    def named(cls, value: object, error: type[DpgramError]) -> Neighbours:
        """The relation itself, or that of this name; ``error`` where there is none."""
        try:
            return cls(value)
        except ValueError:
            raise error(f'neighbours is {value!r} and must be "replace" or "add-remove".') from None

    @property
    def in_words(self) -> str:
        return {
            Neighbours.REPLACE: "tables that differ in one row, replaced by another; the number of rows is public",
            Neighbours.ADD_REMOVE: "tables that differ by one row, added or removed; the number of rows is protected",
        }[self]


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) of differential privacy. Both are the custodian's choice, so neither has a default."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        epsilon, delta = _number("epsilon", self.epsilon), _number("delta", self.delta)
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise BudgetError(f"epsilon is {epsilon:g} and must be a positive, finite number: 0.1 to 5 is usual.")
        if not 0 < delta < 1:
            raise BudgetError(
                f"delta is {delta:g} and must lie strictly between 0 and 1: well below 1/(number of rows), such as 1e-7."
            )
        if epsilon < SMALLEST_EPSILON or delta < SMALLEST_DELTA:
            raise BudgetError(
                f"epsilon is {epsilon:g} and delta is {delta:g}; below {SMALLEST_EPSILON:g} and {SMALLEST_DELTA:g} the noise "
                f"cannot be computed to the private side in double precision: use larger ones."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


def _number(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise BudgetError(f"{name} is a {type(value).__name__} and must be a number.")
