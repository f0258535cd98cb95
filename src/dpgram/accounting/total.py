"""What all releases of a table cost together, by the tightest bound that is at hand, and never less than they do.

Three ways, all of them upper bounds: the plain sum of epsilons and deltas; the exact curves of compose.py, to which what is known only
by its (epsilon, delta) is added plainly; and the numerical composition of dp-accounting, where it is installed, which is better for
several releases of that kind. There a Wishart draw counts as a Gaussian mechanism that fails with a small probability.
Proof: mechanisms/proofs/composition.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from dpgram.accounting.compose import Cost, GaussianCost, PlainCost, SamplingCost, composed_delta
from dpgram.accounting.wishart import spread
from dpgram.linalg.special import gammainccinv
from dpgram.terms.budget import Budget

FAILS = 1e-3  # the share of delta that a Wishart draw's failure may take in the numerical composition
ROUNDED = (1e-3, 1e-13)  # relative and absolute: its Fourier transforms round a little to the wrong side
LARGEST = 1e4  # epsilons beyond are called infinite


@dataclass(frozen=True)
class Spending:
    """Releases: what each asked for, and the cost that is known of it."""

    asked: tuple[Budget, ...] = ()
    costs: tuple[Cost, ...] = ()

    def plus(self, asked: Budget, cost: Cost) -> Spending:
        return Spending((*self.asked, asked), (*self.costs, cost))

    @property
    def plain(self) -> tuple[Fraction, Fraction]:
        """The sums of epsilons and deltas, of the decimals that they print as."""
        epsilon = sum((decimal(budget.epsilon) for budget in self.asked), Fraction(0))
        return epsilon, sum((decimal(budget.delta) for budget in self.asked), Fraction(0))

    def fits(self, total: Budget) -> bool:
        """Whether all of it together is private for ``total``, by one of the bounds."""
        return self.fits_plainly(total) or self.holds(total.epsilon, total.delta)

    def fits_plainly(self, total: Budget) -> bool:
        """Whether the plain sums stay within ``total``."""
        epsilon, delta = self.plain
        return epsilon <= decimal(total.epsilon) and delta <= decimal(total.delta)

    def holds(self, epsilon: float, delta: float) -> bool:
        """Whether all of it together is (epsilon, delta)-private, by composition."""
        aim = delta * (1 - 1e-9)
        return composed_delta(epsilon, self.costs) <= aim or numerical_delta(epsilon, self.costs, delta) <= aim

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon, to a part in a million and from above, at which all of it holds with ``delta``; it may be infinite."""
        if not self.asked:
            return 0.0
        plain, spent = self.plain
        high = rounded_up(plain) if spent <= decimal(delta) else 1.0
        while not (spent <= decimal(delta) and decimal(high) >= plain) and not self.holds(high, delta):
            high *= 2
            if high > LARGEST:
                return math.inf
        low = 0.0
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.holds(middle, delta) else (middle, high)
        return high


def numerical_delta(epsilon: float, costs: Sequence[Cost], target: float) -> float:
    """A delta at which the releases together hold, by dp-accounting, from above; 1 where it is not installed or no better than the sum.

    ``target`` is the delta that matters: a thousandth of it is given to the event that a Wishart draw reveals more than its quantile."""
    plain = Counter(cost for cost in costs if isinstance(cost, PlainCost))
    if plain.total() + (len(plain) < len(costs)) < 2 or find_spec("dp_accounting") is None:
        return 1.0
    draws = [cost for cost in costs if isinstance(cost, SamplingCost)]
    squares, fails = sum(cost.mu**2 for cost in costs if isinstance(cost, GaussianCost)), 0.0
    if draws:
        fails = FAILS * target
        degrees, widest = sum(cost.degrees_of_freedom for cost in draws), max(spread(cost.floor) for cost in draws)
        squares += widest * 2 * float(gammainccinv(degrees / 2, fails)) * (1 + 1e-9)
    composed = loss_distribution(math.sqrt(squares), tuple(sorted(plain.items(), key=repr))).get_delta_for_epsilon(epsilon)
    return min(1.0, fails + float(composed) * (1 + ROUNDED[0]) + ROUNDED[1])


@lru_cache(maxsize=8)
def loss_distribution(mu: float, plain: tuple[tuple[PlainCost, int], ...]) -> Any:
    """The privacy loss distribution of a Gaussian mechanism of shift ``mu`` and of mechanisms of which only (epsilon, delta) is known."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    parts = [pld.from_gaussian_mechanism(1 / mu, pessimistic_estimate=True)] if mu else []
    for cost, count in plain:
        one = pld.from_privacy_parameters(DifferentialPrivacyParameters(cost.epsilon, cost.delta))
        parts.append(one.self_compose(count) if count > 1 else one)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole


def decimal(number: float) -> Fraction:
    """The decimal that the number prints as: three times 0.1 is 0.3."""
    return Fraction(repr(float(number)))


def rounded_up(exact: Fraction) -> float:
    """The nearest float that reads as at least ``exact``."""
    near = float(exact)
    return near if decimal(near) >= exact else math.nextafter(near, math.inf)


def rounded_down(exact: Fraction) -> float:
    """The nearest float that reads as at most ``exact``."""
    near = float(exact)
    return near if decimal(near) <= exact else math.nextafter(near, -math.inf)
