"""What one of k regressions may spend, by the tightest composition that its guarantee allows.

- Gaussian mechanisms: mu-GDP, and squares add up: exact (Dong, Roth and Su 2022; dpgram.accounting).
- Pure mechanisms: k of them at epsilon_0 are exactly as private as k randomised responses (Kairouz, Oh and Viswanath 2015), or
  k epsilon_0 in plain addition; whichever lets epsilon_0 be larger.
- (epsilon_0, delta_0) mechanisms: the same theorem, with half of delta for the k delta_0."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from dpgram.accounting.gaussian import MARGIN, calibrate_mu
from dpgram.terms.budget import Budget


def gaussian_share(budget: Budget, k: int) -> float:
    """mu of one of k Gaussian mechanisms that together meet ``budget``.

    >>> round(gaussian_share(Budget(1.0, 1e-6), 4) * 2 / calibrate_mu(Budget(1.0, 1e-6)), 12)
    1.0
    """
    return calibrate_mu(budget) / math.sqrt(k)


def pure_delta(epsilon: float, each: float, k: int) -> float:
    """Smallest delta at ``epsilon`` of any k mechanisms that are ``each``-private: k randomised responses reach it.

    >>> pure_delta(3.0, 1.0, 3)
    0.0
    """
    lies = np.arange(k + 1)
    loss = (k - 2 * lies) * each
    worse = loss > epsilon * (1 + 1e-14)
    log_chance = gammaln(k + 1) - gammaln(lies + 1) - gammaln(k - lies + 1) + (k - lies) * each - k * np.logaddexp(0.0, each)
    return float(np.sum(np.exp(log_chance[worse]) * -np.expm1(epsilon - loss[worse])))


@lru_cache(maxsize=4096)
def pure_share(epsilon: float, delta: float, k: int) -> float:
    """Largest epsilon_0 such that k mechanisms of epsilon_0 together meet (``epsilon``, ``delta``); at least epsilon/k."""
    meets, too_large = epsilon / k, epsilon
    if k == 1:
        return epsilon
    while too_large - meets > 1e-10 * meets:
        middle = (meets + too_large) / 2
        if pure_delta(epsilon, middle, k) <= delta * (1 - MARGIN):
            meets = middle
        else:
            too_large = middle
    return meets


def approximate_share(budget: Budget, k: int) -> tuple[float, float]:
    """(epsilon_0, delta_0) of one of k mechanisms that together meet ``budget``."""
    if k == 1:
        return budget.epsilon, budget.delta
    composed = pure_share(budget.epsilon, budget.delta / 2, k)
    return composed, budget.delta / (2 * k)
