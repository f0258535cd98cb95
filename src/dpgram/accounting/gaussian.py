"""The exact privacy curve of a Gaussian mechanism, and the noise that meets a budget.

A Gaussian mechanism whose output shifts by ``mu`` standard deviations between neighbours ("mu-GDP") has

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)      (Balle and Wang 2018, Theorem 8),

and no smaller delta holds. mu is sensitivity / noise standard deviation, so a larger mu means less noise."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpgram.accounting.roots import largest
from dpgram.linalg.special import erfcx, ndtr, ndtri
from dpgram.terms.budget import Budget

Array = np.ndarray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)  # over a width of at most 1/2: to all digits of a float
MARGIN = 1e-9  # relative; delta is aimed this much too low, far above the rounding error of the curve (1e-12)


@lru_cache(maxsize=4096)  # a release asks for the same number several times
def gaussian_delta(epsilon: float, mu: float) -> float:
    """Exact delta at ``epsilon`` of a mu-GDP mechanism, for epsilon >= 0 and mu > 0.

    >>> round(gaussian_delta(1.0, 1.0), 10)
    0.1269367375
    """
    return math.exp(float(log_gaussian_delta(epsilon, np.array([mu]))[0]))


def log_gaussian_delta(epsilon: float, mu: Array) -> Array:
    """ln delta at ``epsilon`` for an array of mu >= 0."""
    with np.errstate(all="ignore"):
        z = epsilon / mu - mu / 2
        # e^epsilon phi(z + mu) = phi(z), so both terms share the factor phi(z), and what is left are Mills ratios: nothing
        # overflows. For small mu their difference is the integral of -R'(t) = 1 - t R(t), which is positive.
        log_density = -z * z / 2 - math.log(2 * math.pi) / 2
        far = _mills(z + mu)
        gap = _mills(z) - far
        small = (mu <= 0.5) & (z >= 0)
        t = z[small, None] + mu[small, None] * (_NODES + 1) / 2
        gap[small] = mu[small] / 2 * (_slope(t) @ _WEIGHTS)
        positive = log_density + np.log(gap)
        negative = np.log(ndtr(-z) - np.exp(log_density) * far)
        return np.where(mu > 0, np.where(z < 0, negative, positive), -np.inf)


@lru_cache(maxsize=1024)
def calibrate_mu(budget: Budget) -> float:
    """Largest mu that meets ``budget``: within 1e-9 (relative in delta), and from the private side.

    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> round(1 / calibrate_mu(budget), 4)
    4.2247
    >>> gaussian_delta(budget.epsilon, calibrate_mu(budget)) <= budget.delta
    True
    """
    aim = budget.delta * (1 - MARGIN)
    slope = steepness(budget)
    return largest(lambda mu: gaussian_delta(budget.epsilon, mu), aim, usual_mu(budget), slope=slope, precision=1e-13)


def usual_mu(budget: Budget) -> float:
    """About the largest mu that meets ``budget``: where the first of the curve's two terms alone is delta. Only a place to start.

    >>> round(1 / usual_mu(Budget(epsilon=1.0, delta=1e-6)), 2)
    4.86
    """
    z, root = -float(ndtri(budget.delta)), steepness(budget)
    return 2 * budget.epsilon / (root + z) if z > 0 else root - z


def steepness(budget: Budget) -> float:
    """About how fast the curve's normal quantile rises with ln mu where it meets ``budget``: epsilon/mu + mu/2."""
    return math.hypot(float(ndtri(budget.delta)), math.sqrt(2 * budget.epsilon))


def _mills(z: Array) -> Array:
    """R(z) = (1 - Phi(z)) / phi(z)."""
    return math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))


def _slope(t: Array) -> Array:
    """1 - t R(t), by its asymptotic series where t is large."""
    u = 1 / np.maximum(t, 1.0) ** 2
    series = u * (1 - u * (3 - u * (15 - u * (105 - u * (945 - u * 10395)))))
    return np.where(t > 60, series, 1 - t * _mills(t))


def plain_gaussian_delta(epsilon: float, mu: float) -> float:
    """``gaussian_delta`` to a part in a million, without SciPy, whose import takes longer than to read a label: enough to check one.

    >>> round(plain_gaussian_delta(1.0, 1.0), 10)
    0.1269367375
    """
    z = epsilon / mu - mu / 2
    density = math.exp(-min(z * z / 2, 1e4)) / math.sqrt(2 * math.pi)
    if z >= 0:
        return density * (_plain_mills(z) - _plain_mills(z + mu))
    return math.erfc(z / math.sqrt(2)) / 2 - density * _plain_mills(z + mu)


def _plain_mills(z: float) -> float:
    """R(z) for any z that is not far below zero; where it is large, by its continued fraction."""
    if z < 5:
        return math.sqrt(math.pi / 2) * math.exp(z * z / 2) * math.erfc(z / math.sqrt(2))
    tail = z
    for step in range(60, 0, -1):
        tail = z + step / tail
    return 1 / tail
