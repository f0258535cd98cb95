"""Expectations over a chi-square variable, to fourteen digits, for one degree of freedom or for 10^12.

The variable is X = r e^y. Its log density in y is (r/2)(y - (e^y - 1)) plus a constant, which is written so that nothing
cancels when r is large and y small. Integrands are given as logarithms and are positive, so nothing cancels there either."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpgram.linalg.special import gammaln

Array = np.ndarray

FAR = 50.0  # what lies e^-50 below the largest value of an integrand is left out
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
SCOUTS, POINTS, PANELS = 41, 101, 48
AGREEMENT = 1e-10  # of an exponentially convergent rule at twice its step: at its own it then has all the digits of a float


def _double_exponential(count: int) -> tuple[Array, Array, Array]:
    """Points of the double exponential rule on (0, 1) (Takahasi and Mori 1974): distances from either end, and ln of the weights."""
    t = np.linspace(-3.3, 3.3, 2 * count + 1)
    turn = np.pi * np.sinh(t)
    log_slope = -np.abs(turn) - 2 * np.log1p(np.exp(-np.abs(turn)))  # of 1/(1 + e^-turn)
    return 1 / (1 + np.exp(-turn)), 1 / (1 + np.exp(turn)), log_slope + np.log(np.pi * np.cosh(t) * (t[1] - t[0]))


_COARSE, _FINE = _double_exponential(100), _double_exponential(200)


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
        return np.log(-np.expm1(-np.maximum(excess, 0.0)))  # what is not a number stays none: the integral then raises


def log_density(y: Array, r: float) -> Array:
    """Log density of y = ln(X / r) for X chi-square with ``r`` degrees of freedom."""
    return log_constant(r / 2) - (r / 2) * expm1_minus(y)


def log_constant(s: float) -> float:
    """s ln s - s - ln Gamma(s), by Stirling's series where s is large."""
    if s < 50:
        return s * math.log(s) - s - float(gammaln(s))
    return math.log(s / (2 * math.pi)) / 2 - (1 / 12 - (1 / 360 - 1 / (1260 * s * s)) / (s * s)) / s


def log_expectation(log_f: Callable[[Array], Array], r: float, *, lower: float = -math.inf, upper: float = math.inf) -> float:
    """ln E[f(X); lower < ln(X / r) < upper], where ``log_f`` takes y = ln(X / r). -inf when nothing is there.

    The integrand is taken to rise to one maximum and to fall from it."""
    return log_integral(lambda y: log_f(y) + log_density(y, r), *_reach(r, lower, upper))


def _reach(r: float, lower: float, upper: float) -> tuple[float, float]:
    """The part from ``lower`` to ``upper`` of an interval outside which the density is below e^-800, which no float is."""
    width = math.sqrt(3200 / r)
    return max(lower, -(width + 1600 / r)), min(upper, width, math.log1p(1600 / r) + 1)


def log_integral(log_integrand: Callable[[Array], Array], low: float, high: float) -> float:
    """ln of the integral of exp(log_integrand) over [low, high]; the integrand is smooth inside and has one maximum.

    Three rules, from the cheapest: the trapezoidal rule, where the integrand vanishes at both ends; the double exponential rule,
    which does not mind what happens at the ends; composite Gauss-Legendre. The first two converge exponentially, so that
    halving their step about doubles the digits: each is taken when it agrees with itself at twice the step to ten digits.
    Raises where the integrand is not a number, or infinite: taken for nothing, it would make a delta too small."""
    if not low < high:
        return -math.inf
    left, right = low, high
    for _ in range(6):  # narrow down to where the integrand matters: the maximum lies beside the largest of these values
        grid = np.linspace(left, right, SCOUTS)
        values = _values(log_integrand, grid)
        best = int(np.argmax(values))
        if values[best] == -np.inf:
            return -math.inf
        near = np.flatnonzero(values >= values[best] - FAR)
        new_left, new_right = float(grid[max(near[0] - 1, 0)]), float(grid[min(near[-1] + 1, SCOUTS - 1)])
        done = new_right - new_left > 0.3 * (right - left)
        left, right = new_left, new_right
        if done:
            break
    if low < left and right < high:  # then it is below e^-50 of its maximum at both ends
        values = _values(log_integrand, np.linspace(left, right, POINTS))
        if (settled := _settled(values, (right - left) / (POINTS - 1))) is not None:
            return settled
    width = right - left
    for from_left, from_right, log_weights in (_COARSE, _FINE):
        points = np.where(from_left < 0.5, left + width * from_left, right - width * from_right)
        values = _values(log_integrand, points)
        if (settled := _settled(values + log_weights, width)) is not None:
            return settled
    return _by_panels(log_integrand, left, right)


def _values(log_integrand: Callable[[Array], Array], points: Array) -> Array:
    values = log_integrand(points)
    if np.isnan(values).any() or (values == np.inf).any():
        raise ArithmeticError("an integrand of a privacy curve is not a number: its parameters are out of range")
    return values


def _settled(log_terms: Array, step: float) -> float | None:
    """ln of ``step`` times the sum of the terms, if every other term at twice the step gives the same."""
    peak = float(log_terms.max())
    if peak == -math.inf:
        return -math.inf
    terms = np.exp(log_terms - peak)
    total = float(terms.sum())
    if abs(2 * float(terms[::2].sum()) - total) <= AGREEMENT * total:
        return peak + math.log(total * step)
    return None


def _by_panels(log_integrand: Callable[[Array], Array], left: float, right: float) -> float:
    """ln of the integral from ``left`` to ``right``, by composite Gauss-Legendre."""
    edges = np.linspace(left, right, PANELS + 1)
    half = (right - left) / PANELS / 2
    points = (edges[:-1, None] + half * (1 + _NODES)).ravel()
    values = _values(log_integrand, points)
    peak = float(values.max())
    if peak == -math.inf:
        return -math.inf
    total = float(np.tile(_WEIGHTS, PANELS) @ np.exp(values - peak))
    return peak + math.log(total * half)
