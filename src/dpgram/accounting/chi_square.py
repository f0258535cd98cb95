"""Expectations over a chi-square variable, to fourteen digits, for one degree of freedom or for 10^12.

The variable is X = r e^y. Its log density in y is (r/2)(y - (e^y - 1)) plus a constant, which is written so that nothing
cancels when r is large and y small. Integrands are given as logarithms and are positive, so nothing cancels there either."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

Array = np.ndarray

FAR = 50.0  # what lies e^-50 below the largest value of an integrand is left out
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
PANELS = 48


def expm1_minus(y: Array | float) -> Array:
    """e^y - 1 - y, without cancellation.

    >>> print(f"{expm1_minus(1e-9):.12e}")
    5.000000001667e-19
    """
    y = np.asarray(y, dtype=float)
    small = np.abs(y) < 0.05
    s = np.where(small, y, 0.0)
    series = s * s / 2 * (1 + s / 3 * (1 + s / 4 * (1 + s / 5 * (1 + s / 6 * (1 + s / 7 * (1 + s / 8))))))
    return np.where(small, series, np.expm1(np.minimum(y, 700.0)) - y)


def log1p_minus(a: float) -> float:
    """a - ln(1 + a), without cancellation.

    >>> print(f"{log1p_minus(1e-9):.12e}")
    4.999999996667e-19
    """
    if abs(a) < 0.01:
        return a * a * sum((-a) ** k / (k + 2) for k in range(9))
    return a - math.log1p(a)


def log_excess(excess: Array) -> Array:
    """ln(1 - e^-excess) where the excess of a privacy loss over epsilon is positive, else -inf."""
    with np.errstate(all="ignore"):
        return np.where(excess > 0, np.log(-np.expm1(-np.maximum(excess, 0.0))), -np.inf)


def log_density(y: Array, r: float) -> Array:
    """Log density of y = ln(X / r) for X chi-square with ``r`` degrees of freedom."""
    return _log_constant(r / 2) - (r / 2) * expm1_minus(y)


def _log_constant(s: float) -> float:
    """s ln s - s - ln Gamma(s), by Stirling's series where s is large."""
    if s < 50:
        return s * math.log(s) - s - float(gammaln(s))
    return math.log(s / (2 * math.pi)) / 2 - (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * s * s)) / (s * s)) / (s * s)) / s


def log_expectation(log_f: Callable[[Array], Array], r: float, *, lower: float = -math.inf, upper: float = math.inf) -> float:
    """ln E[f(X); lower < ln(X / r) < upper], where ``log_f`` takes y = ln(X / r). -inf when nothing is there.

    The integrand is taken to rise to one maximum and to fall from it."""

    def log_integrand(y: Array) -> Array:
        values = log_f(y)
        refuse_nonsense(values)
        return values + log_density(y, r)

    return log_integral(log_integrand, *_reach(r, lower, upper))


def refuse_nonsense(log_values: Array) -> None:
    """Raise where the logarithm of an integrand is NaN or plus infinity: taken for nothing, it would make a delta too small."""
    if np.isnan(log_values).any() or (log_values == np.inf).any():
        raise ArithmeticError("an integrand of a privacy curve is not a number: its parameters are out of range")


def _reach(r: float, lower: float, upper: float) -> tuple[float, float]:
    """An interval of y outside which the density is below e^-800, or below that of the nearer bound."""
    width = math.sqrt(3200 / r)
    bottom, top = -(width + 1600 / r), min(width, math.log1p(1600 / r) + 1)
    # A threshold beyond these ends stays the end: the integrand then falls away from it, inwards or outwards.
    if lower > top:
        top = lower + width
    if upper < bottom:
        bottom = upper - width
    return max(lower, bottom), min(upper, top)


def log_integral(log_integrand: Callable[[Array], Array], low: float, high: float) -> float:
    """ln of the integral of exp(log_integrand) over [low, high], by composite Gauss-Legendre about its maximum."""
    if not low < high:
        return -math.inf
    left, right = low, high
    for _ in range(6):  # narrow down to where the integrand matters
        grid = np.linspace(left, right, 201)
        values = log_integrand(grid)
        best = int(np.argmax(values))
        if values[best] == -np.inf:
            return -math.inf
        near = np.flatnonzero(values >= values[best] - FAR)
        new_left, new_right = grid[max(near[0] - 1, 0)], grid[min(near[-1] + 1, 200)]
        done = new_right - new_left > 0.3 * (right - left)
        left, right = float(new_left), float(new_right)
        if done:
            break
    edges = np.linspace(left, right, PANELS + 1)
    half = (right - left) / PANELS / 2
    points = (edges[:-1, None] + half * (1 + _NODES)).ravel()
    values = log_integrand(points)
    peak = float(values.max())
    if peak == -math.inf:
        return -math.inf
    total = float(np.tile(_WEIGHTS, PANELS) @ np.exp(values - peak))
    return peak + math.log(total * half)
