"""What is proven of a mechanism: delta as a function of epsilon, and the errors that every test must make because of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Array = np.ndarray
Curve = Callable[[float, float], float]

GRID = 33
STRENGTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 6.0, 16.0)


def smallest_epsilon(holds: Callable[[float], bool], precision: float) -> float:
    """The smallest epsilon that ``holds``, within ``precision`` (relative) from above; infinite where none up to 64 does."""
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2 * high
        if high > 64:
            return math.inf
    while high - low > precision * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Claim:
    """``epsilon`` and ``delta`` are what the release says; ``curve(epsilon, strength)`` is what is proven of its parameters.

    ``strength`` is the squared norm that one row really has over the one that the curve counts with: 1 where the mechanism is as proven, 2
    where noise meant for half of the sensitivity was drawn."""

    epsilon: float
    delta: float
    curve: Curve

    def proven_epsilon(self, strength: float = 1.0) -> float:
        """The smallest epsilon that holds at ``delta``, to about 1e-4 from above; infinite where none up to 64 does."""
        return smallest_epsilon(lambda epsilon: self.curve(epsilon, strength) <= self.delta, 1e-4)

    def allows(self, caught: float, alarms: float, strength: float = 1.0) -> bool:
        """Whether a test may catch the first table so often and raise so many false alarms on the second."""
        for epsilon in self._grid()[::2]:
            lift = math.exp(epsilon)
            gain = max(caught - lift * alarms, 1 - alarms - lift * (1 - caught))
            if gain > 0 and self.curve(epsilon, strength) < gain:
                return False
        return True

    def refuted(self, caught: Array, alarms: Array) -> Array:
        """How many of ``STRENGTHS``, from the weakest on, each test refutes; its fraction says how close it comes to the next."""
        lift = np.exp(self._grid()[::2])
        gains = np.maximum(
            np.outer(caught, lift**0) - np.outer(alarms, lift), np.outer(1 - alarms, lift**0) - np.outer(1 - caught, lift)
        )
        close = np.array([(gains / np.maximum(curve, 1e-300)).max(axis=1) for curve in self._table])  # above one: refuted
        whole = np.cumprod(close > 1, axis=0).sum(axis=0)
        following = close[np.minimum(whole, len(STRENGTHS) - 1), np.arange(len(whole))]
        return whole + np.clip(following, 0.0, 0.999)

    @cached_property
    def _table(self) -> Array:
        return np.array([[self.curve(float(epsilon), strength) for epsilon in self._grid()[::2]] for strength in STRENGTHS])

    def missed(self, alarms: Array) -> Array:
        """The proven trade-off curve: the least share of misses for each share of false alarms."""
        least = np.zeros_like(alarms)
        for epsilon in self._grid():
            left = 1 - self.curve(epsilon, 1.0)
            least = np.maximum(least, np.maximum(left - math.exp(epsilon) * alarms, math.exp(-epsilon) * (left - alarms)))
        return least

    def _grid(self) -> Array:
        return self.epsilon * np.linspace(0.0, 3.0, GRID)
