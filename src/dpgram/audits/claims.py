"""What is proven of a mechanism: delta as a function of epsilon, and the errors that every test must make because of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaincc, ndtr

from dpgram.accounting.additive_wishart import additive_delta
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.laplace import truncated_laplace_delta
from dpgram.accounting.wishart import sampling_delta, spread
from dpgram.mechanisms.conversation import PAPER, Parameters, Task
from dpgram.mechanisms.first_stage import EIGENVALUE_SLACK

Array = np.ndarray
Curve = Callable[[float, float], float]

GRID = 33
STRENGTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 6.0, 16.0)


@dataclass(frozen=True)
class Claim:
    """``epsilon`` and ``delta`` are what the release says; ``curve(epsilon, strength)`` is what is proven of its parameters.

    ``strength`` is the squared norm that one row really has over the one that the curve counts with: 1 where the mechanism is as proven, 2
    where noise meant for half of the sensitivity was drawn."""

    epsilon: float
    delta: float
    curve: Curve
    known: bool = True  # whether the curve is a mechanism's own

    def proven_epsilon(self, strength: float = 1.0) -> float:
        """The smallest epsilon that holds at ``delta``, to about 1e-4 from above; infinite where none below 64 does."""
        low, high = 0.0, 1.0
        while self.curve(high, strength) > self.delta:
            low, high = high, 2 * high
            if high > 64:
                return math.inf
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.curve(middle, strength) <= self.delta else (middle, high)
        return high

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


def claim_of(mechanism: str, task: Task, found: Parameters) -> Claim:
    """The claim of a release by ``mechanism`` with the parameters ``found``; of a mechanism that is not known here, its budget alone."""
    makers: dict[str, Callable[[Task, Parameters], Curve]] = {
        "gaussian-noise": _gaussian,
        "noisy-inverse": _gaussian,
        "whitened-noise": _gaussian,
        "wishart-noise": _additive,
        "gaussian-sketch": _sampling,
        "inverse-wishart": _sampling,
        "gaussian-sketch-adaptive": _two_stages,
        "inverse-wishart-adaptive": _two_stages,
    }
    if mechanism not in makers:
        return Claim(task.budget.epsilon, task.budget.delta, _plain(task), known=False)
    return Claim(task.budget.epsilon, task.budget.delta, makers[mechanism](task, found))


def _plain(task: Task) -> Curve:
    """What (epsilon, delta) implies at other epsilons, and nothing more; a row that counts more costs as much more epsilon."""
    delta = task.budget.delta

    def curve(epsilon: float, strength: float) -> float:
        claimed = strength * task.budget.epsilon
        return delta if epsilon >= claimed else 1 - (1 - delta) * (1 + math.exp(epsilon)) / (1 + math.exp(claimed))

    return curve


def _gaussian(task: Task, found: Parameters) -> Curve:
    return lambda epsilon, strength: gaussian_delta(epsilon, strength * found["mu"])


def _additive(task: Task, found: Parameters) -> Curve:
    k, b = int(found["degrees_of_freedom"]), task.row_bound**2 / found["scale"]
    return lambda epsilon, strength: additive_delta(float(epsilon), k, task.dim, strength * b, task.neighbours)


def _sampling(task: Task, found: Parameters) -> Curve:
    r = found.get("sketch_rows") or found["degrees_of_freedom"]
    return lambda epsilon, strength: sampling_delta(float(epsilon), r, found["floor"] / strength, task.neighbours, task.dim)


def _two_stages(task: Task, found: Parameters) -> Curve:
    """The sum of the proof: both stages cost their epsilon, the first also the chance that it relied on too much."""
    if "first_stage_mu" in found:
        return _two_gaussian_stages(task, found)
    r, base = found["base_degrees_of_freedom"], found["base_w_squared"] / task.row_bound**2
    moves = task.row_bound**2 * (1 + EIGENVALUE_SLACK)
    scale, offset = found["first_stage_scale"], found["first_stage_offset"]

    def curve(epsilon: float, strength: float) -> float:
        first = strength * moves / scale
        left = float(epsilon - first)
        if left < 0:
            return 1.0
        if task.calibration == PAPER:
            spent, floor = found["first_stage_delta"], base / strength - 1
        else:
            spent = truncated_laplace_delta(first * (1 + 1e-9), scale, offset, strength * moves)
            floor = base / strength
        return min(1.0, spent + sampling_delta(left, r, floor, task.neighbours, task.dim))

    return curve


def _two_gaussian_stages(task: Task, found: Parameters) -> Curve:
    """A normal first stage, cut above, and a second that is a Gaussian mechanism but for a rare event (adaptive.md, Theorem 2)."""
    r, base = found["base_degrees_of_freedom"], found["base_w_squared"] / task.row_bound**2
    mu1, mu2, z = found["first_stage_mu"], found["second_stage_mu"], found["first_stage_offset"] / found["first_stage_scale"]
    rare, inside = float(gammaincc(r / 2, mu2**2 / spread(base) / 2)), float(ndtr(z))

    def curve(epsilon: float, strength: float) -> float:
        gap = (inside - float(ndtr(z - strength * mu1))) / inside
        second = mu2 * math.sqrt(spread(base / strength) / spread(base))
        return min(1.0, gap + (rare + gaussian_delta(float(epsilon), math.hypot(strength * mu1, second))) / inside)

    return curve
