"""The privacy curve of adding Wishart noise W_d(C I, k) to a Gram sum, and the parameters that meet a budget.

With b = B^2/C, m = (k - d - 1)/2 >= 0 and kappa = k - d + 2, neighbours matter only through the eigenvalues (mu+, -mu-) of the
change, both in [0, b], and the worst delta lies between the largest and the sum of three corners (b, b), (b, 0), (0, b):

    max(d_bb, d_b0, d_0b) <= delta(epsilon) <= d_bb + d_b0 + d_0b.

The sum is what is promised for REPLACE; ADD_REMOVE, and REPLACE with one column, have max(d_b0, d_0b) exactly. The corner
(0, b) contains the chance that the noise is too small to hide a row at all, for every epsilon: with k = d + 1 it is
1 - e^(-b/2), which no scale makes zero. Proof: mechanisms/proofs/wishart_noise.md."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpgram.accounting.chi_square import expm1_minus, log_constant, log_excess, log_expectation, log_integral
from dpgram.accounting.gaussian import steepness, usual_mu
from dpgram.accounting.roots import largest, smallest
from dpgram.accounting.wishart import mover_factor
from dpgram.linalg.special import betainc, k0e
from dpgram.terms.budget import Budget, Neighbours

Array = np.ndarray

MARGIN = 1e-6  # relative, in delta; far above the error of the incomplete beta functions where their difference is small
MOST_DEGREES = 10**12
FEW, FAR = 1000, 45.0
NEGLIGIBLE = 40.0  # e^-40 of the rest: a bound serves as well as the number
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_MANY_STEPS = np.concatenate([(panel + (1 + _NODES) / 2) / 4 for panel in range(4)]), np.tile(_WEIGHTS / 8, 4)
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.legendre.leggauss(40)
_FEW_STEPS = (1 + _FEW_NODES) / 2, _FEW_WEIGHTS / 2  # to 1e-14 where the end of the excess is not far above the middle


def corners(epsilon: float, k: float, dim: int, b: float, *, both_move: bool = True) -> tuple[float, float, float]:
    """(d_bb, d_b0, d_0b) for k >= d + 1 and epsilon >= 0; d_bb is 0 where only one eigenvalue can move."""
    if k < dim + 1 or epsilon < 0:
        raise ValueError("the curve is proven for k >= d + 1 degrees of freedom and epsilon >= 0")
    m, kappa = (k - dim - 1) / 2, k - dim + 2
    both = _both(epsilon, m, kappa, b) if both_move and dim >= 2 else 0.0
    return both, _grown(epsilon, m, kappa - 1, b), _shrunk(epsilon, m, kappa - 1, b)


@lru_cache(maxsize=4096)  # a release asks for the same number several times
def additive_delta(epsilon: float, k: float, dim: int, b: float, neighbours: Neighbours) -> float:
    """A delta that holds at ``epsilon``, for noise W_d(C I, k) and b = B^2/C; exact but for REPLACE with d >= 2."""
    one_moves = neighbours is Neighbours.ADD_REMOVE or dim == 1
    both, grown, shrunk = corners(epsilon, k, dim, b, both_move=not one_moves)
    if one_moves:
        return min(1.0, max(grown, shrunk))
    return min(1.0, both + grown + shrunk)


def meets_budget(budget: Budget, k: float, dim: int, b: float, neighbours: Neighbours) -> bool:
    """Whether noise W_d(C I, k) with b = B^2/C meets ``budget``, with the margin that the calibrations keep."""
    return additive_delta(budget.epsilon, k, dim, b, neighbours) <= budget.delta * (1 - MARGIN)


@lru_cache(maxsize=1024)
def calibrate_degrees(budget: Budget, dim: int, b: float, neighbours: Neighbours) -> int:
    """Smallest whole k that meets ``budget`` with noise of scale C = B^2/b, from the private side.

    >>> calibrate_degrees(Budget(1.0, 1e-6), dim=22, b=1.0, neighbours=Neighbours.REPLACE) - 20
    48
    """
    aim = budget.delta * (1 - MARGIN)

    def curve(more: float) -> float:
        return additive_delta(budget.epsilon, dim + more, dim, b, neighbours) if more >= 1 else 1.0

    if curve(1) <= aim:
        return dim + 1
    start = min(max(2.0, (b / usual_mu(budget)) ** 2 / mover_factor(neighbours, dim)), MOST_DEGREES / 2)
    more = smallest(curve, aim, start, slope=steepness(budget) / 2, precision=1e-13, most=float(MOST_DEGREES))
    if dim + more > MOST_DEGREES:
        raise ValueError("more than 10^12 degrees of freedom would be needed: use a larger scale")
    return dim + _whole(lambda more: curve(more) <= aim, math.ceil(more))


def _whole(meets: Callable[[int], bool], about: int) -> int:
    """The smallest whole number that ``meets``, above one that does not, near ``about``; 1 is known not to."""
    too_few, enough, step = about - 1, about, 1
    while not meets(enough):
        too_few, enough, step = enough, enough + step, 2 * step
    step = 1
    while too_few > 1 and meets(too_few):
        too_few, enough, step = max(1, too_few - step), too_few, 2 * step
    return too_few + 1 + bisect_left(range(too_few + 1, enough), True, key=meets)


@lru_cache(maxsize=1024)
def calibrate_b(budget: Budget, k: int, dim: int, neighbours: Neighbours) -> float:
    """Largest b = B^2/C (smallest scale C) that meets ``budget`` with ``k`` degrees of freedom, from the private side."""
    aim = budget.delta * (1 - MARGIN)

    def curve(b: float) -> float:
        return additive_delta(budget.epsilon, k, dim, b, neighbours)

    start = math.sqrt(mover_factor(neighbours, dim) * (k - dim)) * usual_mu(budget)
    return largest(curve, aim, start, slope=steepness(budget), precision=1e-9)


def _grown(epsilon: float, m: float, nu: float, b: float) -> float:
    """d_b0: the noise plus b against the noise alone, in one direction; X is chi-square with ``nu`` degrees of freedom."""
    if epsilon >= b / 2:
        return 0.0
    if m == 0:
        return -math.expm1(epsilon - b / 2)
    start = b / math.expm1(
        min((b / 2 - epsilon) / m, 700.0)
    )  # beyond, an exponential is no float, and the noise never below start
    return math.exp(
        log_expectation(
            lambda y: log_excess(b / 2 - epsilon - m * np.log1p(b / (nu * np.exp(y)))), nu, lower=math.log(start / nu)
        )
    )


def _shrunk(epsilon: float, m: float, nu: float, b: float) -> float:
    """d_0b: the noise alone against the noise plus b, which it cannot be when it is below b."""
    with np.errstate(all="ignore"):
        end = b / -math.expm1(-(epsilon + b / 2) / m) if m > 0 else b

    def log_f(y: Array) -> Array:
        x = nu * np.exp(y)
        with np.errstate(all="ignore"):
            loss = np.where(x > b, -m * np.log1p(-b / np.maximum(x, b)), np.inf) - b / 2
        return np.where(x <= b, 0.0, log_excess(loss - epsilon))

    edge = math.log(b / nu)
    rest = log_expectation(log_f, nu, lower=edge, upper=math.log(end / nu)) if end > b else -math.inf
    bound = -nu / 2 * float(expm1_minus(edge)) if edge < 0 else 0.0  # Chernoff's, on the chance that the noise is below b
    inside = bound if bound < rest - NEGLIGIBLE else log_expectation(log_f, nu, upper=edge)
    return math.exp(inside) + math.exp(rest)


def _both(epsilon: float, m: float, kappa: float, b: float) -> float:
    """d_bb: turned by 45 degrees, a shift of the correlation rho by b/t, averaged over t = sqrt(n1 n2)."""

    def log_weight(y: Array) -> Array:  # of t = kappa e^y, up to a constant
        t = kappa * np.exp(y)
        return -kappa * expm1_minus(y) - y / 2 + np.log(k0e(t) * np.sqrt(t))

    def log_integrand(y: Array) -> Array:
        with np.errstate(all="ignore"):
            return log_weight(y) + np.log(_correlation_stick(epsilon, m, b / (kappa * np.exp(y))))

    width = math.sqrt(1600 / kappa)
    low, high = -(width + 800 / kappa), min(width, math.log1p(800 / kappa) + 1)
    mass = math.log(kappa) / 2 - 2 * math.log(2) - 2 * log_constant(kappa / 2)  # the weight's integral: t^(kappa - 1) K_0(t)
    kink = min(max(math.log(b / (2 * kappa)), low), high)  # below it t < b/2, and the two laws have no support in common
    pieces = (log_integral(log_weight, low, kink), log_integral(log_integrand, kink, high))
    return sum(math.exp(piece - mass) for piece in pieces)


def _correlation_stick(epsilon: float, m: float, beta: Array) -> Array:
    """Hockey stick between rho + beta and rho, where rho has density proportional to (1 - rho^2)^m."""
    if m == 0:  # rho is uniform: only the support tells, and by beta/2
        return np.minimum(1.0, beta / 2)
    epsilon = min(epsilon, 300.0 * m)  # what holds at a smaller epsilon holds at this one; beyond, exponentials are no floats
    c1 = math.expm1(epsilon / m)  # c - 1
    c = 1 + c1
    root = np.sqrt(c * beta**2 + c1**2)
    whole, part = c * beta + root, c * beta**2 / (root + c1)
    if m < FEW:  # the excess is positive up to rho = end; 1 + end and 1 + end - beta without cancellation:
        excess = _excess_by_cdf(epsilon, m, (c * beta * (1 + beta) + part) / whole, (part * (1 - beta) + beta) / whole)
    else:
        excess = _excess_by_integral(epsilon, m, beta, (c * beta**2 - c1) / whole)
    return np.where(beta >= 2, 1.0, np.clip(excess, 0.0, 1.0))


def _excess_by_cdf(epsilon: float, m: float, above: Array, below: Array) -> Array:
    """F(end) - e^epsilon F(end - beta), given one plus each argument."""
    at_end, before = betainc(m + 1, m + 1, np.clip(np.array([above, below]) / 2, 0.0, 1.0))
    return at_end - math.exp(min(epsilon, 700.0)) * before


def _excess_by_integral(epsilon: float, m: float, beta: Array, end: Array) -> Array:
    """F(end) - e^epsilon F(end - beta) as an integral of positive terms: with many degrees of freedom the two agree in most digits."""
    reach = np.minimum(end + np.sqrt(end**2 + FAR / m), end + 1)  # beyond it the density is e^-45 of what it is at the end
    steps, weights = _FEW_STEPS if m * float(end.max()) ** 2 < 4 or end.max() < 0 else _MANY_STEPS
    x = end[:, None] - reach[:, None] * steps
    with np.errstate(all="ignore"):
        ratio = epsilon + m * np.log1p(beta[:, None] * (2 * x - beta[:, None]) / (1 - x**2))
        ratio = np.where(x - beta[:, None] <= -1, -np.inf, ratio)  # outside the support of the other
        density = np.exp(m * np.log1p(-(x**2)) + _log_density_at_zero(m))
    return reach * ((density * -np.expm1(np.minimum(ratio, 0.0))) @ weights)


def _log_density_at_zero(m: float) -> float:
    """ln of Gamma(m + 3/2) / (sqrt(pi) Gamma(m + 1)), for large m."""
    x = m + 1
    return (math.log(x) - math.log(math.pi)) / 2 + math.log1p(-1 / (8 * x) + 1 / (128 * x**2) + 5 / (1024 * x**3))
