"""The exact privacy curve of a Gaussian mechanism, and the noise that meets a budget.

A Gaussian mechanism whose output shifts by ``mu`` standard deviations between neighbours ("mu-GDP") has

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)      (Balle and Wang 2018, Theorem 8),

and no smaller delta holds. mu is sensitivity / noise standard deviation, so a larger mu means less noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfcx, ndtr

from dpgram.terms.budget import Budget

Array = np.ndarray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
MARGIN = 1e-9  # relative; delta is aimed this much too low, far above the rounding error of the curve (1e-12)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Exact delta at ``epsilon`` of a mu-GDP mechanism, for epsilon >= 0 and mu > 0.

    >>> round(gaussian_delta(1.0, 1.0), 10)
    0.1269367375
    """
    z = epsilon / mu - mu / 2
    # e^epsilon phi(z + mu) = phi(z), so both terms share the factor phi(z), and what is left are Mills ratios: nothing
    # overflows, and the only subtraction loses few digits.
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    if z < 0:
        return float(ndtr(-z) - density * _mills(z + mu))
    if mu > 0.5:
        return float(density * (_mills(z) - _mills(z + mu)))
    # The derivative of the Mills ratio R is t R(t) - 1, so the difference is an integral of something positive.
    t = z + mu * (_NODES + 1) / 2
    return density * mu / 2 * float(_WEIGHTS @ (1 - t * _mills(t)))


def calibrate_mu(budget: Budget) -> float:
    """Largest mu that meets ``budget``: within 1e-9 (relative in delta), and from the private side.

    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> round(1 / calibrate_mu(budget), 4)
    4.2247
    >>> gaussian_delta(budget.epsilon, calibrate_mu(budget)) <= budget.delta
    True
    """
    aim = budget.delta * (1 - MARGIN)
    meets = too_large = 1.0
    while gaussian_delta(budget.epsilon, meets) > aim:
        too_large, meets = meets, meets / 2
    while gaussian_delta(budget.epsilon, too_large) <= aim:
        meets, too_large = too_large, too_large * 2
    while too_large - meets > 1e-13 * meets:
        middle = (meets + too_large) / 2
        if gaussian_delta(budget.epsilon, middle) <= aim:
            meets = middle
        else:
            too_large = middle
    return meets


def _mills(z: Array | float) -> Any:
    """(1 - Phi(z)) / phi(z)."""
    return math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))
