"""The exact privacy curve of sampling a Wishart or inverse-Wishart matrix, and the parameters that meet a budget.

A draw from W_d(S, r), or from its inverse, has scale matrices S, S' on neighbouring tables that differ by v v' - w w' with
rows of norm at most B. If both are at least ``floor`` times B^2 (as matrices: S >= floor B^2 I), put a = 1/floor and
g = a^2/(1 + a). Then, for REPLACE,

    delta(epsilon) = E[ delta_G(epsilon; sqrt(g X)) ],   X chi-square with r degrees of freedom,

where delta_G is the Gaussian curve; no smaller delta holds when d >= 2. Proof: mechanisms/proofs/gaussian_sketch.md.
For ADD_REMOVE, and for REPLACE with one column, one eigenvalue moves instead of two, and the two directions differ."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpgram.accounting.chi_square import log1p_minus, log_excess, log_expectation
from dpgram.accounting.gaussian import MARGIN, log_gaussian_delta, steepness, usual_mu
from dpgram.accounting.roots import largest, smallest
from dpgram.terms.budget import Budget, Neighbours

Array = np.ndarray

NOTHING = 1e-300  # a floor whose inverse may be no float


def spread(floor: float) -> float:
    """g = a^2/(1 + a) for a = 1/floor."""
    return 1 / (floor * (floor + 1))


@lru_cache(maxsize=4096)  # a release asks for the same number several times
def sampling_delta(epsilon: float, r: float, floor: float, neighbours: Neighbours, dim: int, *, mu: float = 0.0) -> float:
    """Smallest delta at ``epsilon``, for ``r`` degrees of freedom and scale matrices of at least ``floor`` B^2.

    ``mu`` adds a Gaussian mechanism of that shift to the release (exact for REPLACE, d >= 2; refused otherwise)."""
    if not floor > NOTHING:
        return 1.0  # nothing is promised about the scale matrices
    if neighbours is Neighbours.REPLACE and dim >= 2:
        return mixture_delta(epsilon, r, spread(floor), mu=mu)
    if mu:
        raise ValueError("no composed curve is proven for one moving eigenvalue: compose by the plain sum")
    return min(1.0, max(_one_eigenvalue(epsilon, r, floor)))


def mixture_delta(epsilon: float, r: float, g: float, *, mu: float = 0.0) -> float:
    """E[delta_G(epsilon; sqrt(mu^2 + g X))] with X chi-square of ``r`` degrees of freedom.

    >>> round(mixture_delta(1.0, 44, spread(29.8657)) / 1e-6, 4)
    1.0
    """

    def log_f(y: Array) -> Array:
        return log_gaussian_delta(epsilon, np.sqrt(mu**2 + g * r * np.exp(y)))

    return min(1.0, math.exp(log_expectation(log_f, r)))


def _one_eigenvalue(epsilon: float, r: float, floor: float) -> tuple[float, float]:
    """Both directions of the pair N(0, 1 + a)^r, N(0, 1)^r, as hockey-stick integrals of positive terms."""
    a = 1 / floor

    def gain(y: Array) -> Array:  # loss when the wider law is the true one; X = r e^y is chi-square
        return r / 2 * (a * np.expm1(y) + log1p_minus(a))

    def loss(y: Array) -> Array:  # when the narrower one is
        return r / 2 * (_tail(a) - a / (1 + a) * np.expm1(y))

    start = math.log1p((2 * epsilon / r - log1p_minus(a)) / a) if (2 * epsilon / r - log1p_minus(a)) / a > -1 else -math.inf
    added = log_expectation(lambda y: log_excess(gain(y) - epsilon), r, lower=start)
    limit = (1 + a) / a * (_tail(a) - 2 * epsilon / r)
    removed = log_expectation(lambda y: log_excess(loss(y) - epsilon), r, upper=math.log1p(limit)) if limit > -1 else -math.inf
    return math.exp(added), math.exp(removed)


def _tail(a: float) -> float:
    """ln(1 + a) - a/(1 + a), without cancellation."""
    return math.log1p(a) - a / (1 + a) if a > 1 else log1p_minus(-a / (1 + a))


@lru_cache(maxsize=1024)
def calibrate_floor(budget: Budget, r: float, neighbours: Neighbours, dim: int) -> float:
    """Smallest floor (in units of B^2) that meets ``budget`` with ``r`` degrees of freedom, from the private side.

    >>> round(calibrate_floor(Budget(1.0, 1e-6), 44, Neighbours.REPLACE, dim=22), 4)
    29.8657
    """
    aim = budget.delta * (1 - MARGIN)

    def curve(floor: float) -> float:
        return sampling_delta(budget.epsilon, r, floor, neighbours, dim)

    start = math.sqrt(r / mover_factor(neighbours, dim)) / usual_mu(budget)
    return smallest(curve, aim, start, slope=steepness(budget), precision=1e-11)


@lru_cache(maxsize=1024)
def calibrate_degrees(budget: Budget, floor: float, neighbours: Neighbours, dim: int, *, most: float = 1e12) -> float:
    """Largest (real) degrees of freedom that meet ``budget`` at ``floor``, from the private side; at most ``most``, 0 below one."""
    aim = budget.delta * (1 - MARGIN)

    def curve(r: float) -> float:
        return sampling_delta(budget.epsilon, r, floor, neighbours, dim) if r <= most else 1.0

    if curve(most) <= aim:
        return most
    start = min(max(1.0, mover_factor(neighbours, dim) * floor * (floor + 1) * usual_mu(budget) ** 2), most)
    degrees = largest(curve, aim, start, slope=steepness(budget) / 2, precision=1e-11, ceiling=most)
    return min(degrees, most) if degrees >= 1 else 0.0


def mover_factor(neighbours: Neighbours, dim: int) -> int:
    """How much larger the squared shift may be when one eigenvalue moves instead of two, about: only for places to start."""
    return 1 if neighbours is Neighbours.REPLACE and dim >= 2 else 2
