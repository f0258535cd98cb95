"""What several releases of one table cost together.

Gaussian releases add their squared shifts: exact. Wishart draws (REPLACE, two columns or more) add their degrees of freedom when their
floors are equal: exact; otherwise all are charged at the lowest floor, which each of them is dominated by. Both together stay one curve.
Whatever is known only by its (epsilon, delta) is added plainly. Proof: mechanisms/proofs/composition.md."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dpgram.accounting.gaussian import MARGIN, gaussian_delta
from dpgram.accounting.roots import epsilon_for
from dpgram.accounting.wishart import mixture_delta, spread


@dataclass(frozen=True)
class GaussianCost:
    """A Gaussian mechanism whose neighbours lie at most ``mu`` standard deviations apart."""

    mu: float


@dataclass(frozen=True)
class SamplingCost:
    """A Wishart or inverse-Wishart draw under REPLACE with two columns or more; ``floor`` in units of B^2."""

    degrees_of_freedom: float
    floor: float


@dataclass(frozen=True)
class PlainCost:
    """Anything that is (epsilon, delta)-private."""

    epsilon: float
    delta: float


Cost = GaussianCost | SamplingCost | PlainCost


def composed_delta(epsilon: float, costs: Iterable[Cost]) -> float:
    """A delta at which all the releases together hold at ``epsilon``; exact for Gaussian releases and draws of equal floor.

    >>> round(composed_delta(1.0, [GaussianCost(0.6), GaussianCost(0.8)]), 10) == round(gaussian_delta(1.0, 1.0), 10)
    True
    """
    costs = list(costs)
    plain = [cost for cost in costs if isinstance(cost, PlainCost)]
    draws = [cost for cost in costs if isinstance(cost, SamplingCost)]
    mu = math.hypot(*(cost.mu for cost in costs if isinstance(cost, GaussianCost)))
    left = epsilon - sum(cost.epsilon for cost in plain)
    spent = sum(cost.delta for cost in plain)
    if left < 0:
        return 1.0
    if draws:
        degrees, floor = sum(cost.degrees_of_freedom for cost in draws), min(cost.floor for cost in draws)
        return min(1.0, spent + mixture_delta(left, degrees, spread(floor), mu=mu))
    return min(1.0, spent + (gaussian_delta(left, mu) if mu else 0.0))


def composed_epsilon(delta: float, costs: Iterable[Cost]) -> float:
    """Smallest epsilon at which all the releases together hold with ``delta``, from above; infinite when none does."""
    costs = list(costs)
    spent = sum(cost.delta for cost in costs if isinstance(cost, PlainCost))
    if spent > delta or (spent == delta and any(not isinstance(cost, PlainCost) for cost in costs)):
        return math.inf
    base = sum(cost.epsilon for cost in costs if isinstance(cost, PlainCost))
    others = [cost for cost in costs if not isinstance(cost, PlainCost)]
    if not others:
        return base
    return base + epsilon_for(lambda epsilon: composed_delta(epsilon, others), (delta - spent) * (1 - MARGIN))
