"""The curve of additive Wishart noise: against a table, against 25 digits, against real draws, and where it has no epsilon."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import k0
from scipy.stats import norm, wishart

from dpgram import Budget
from dpgram.accounting.additive_wishart import (
    MARGIN,
    additive_delta,
    calibrate_b,
    calibrate_degrees,
    corners,
)
from dpgram.accounting.chi_square import log_expectation
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.terms.budget import Neighbours
from tests.accounting.inverses import additive_epsilon

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
FALSE_ALARM = 1e-9  # of each Monte Carlo comparison, when the code is right
E9 = math.exp(-9)

# (epsilon, delta, smallest k - 20, another k - 20, its delta), for 22 columns and noise of scale B^2: computed independently.
DEGREES = [
    (0.05, E9, 1953, 116328, "7.17e-69"), (0.05, 1e-6, 4833, 170262, "3.24e-98"), (0.05, 1e-9, 9630, 247629, "3.37e-140"),
    (0.1, E9, 600, 29083, "2.00e-67"), (0.1, 1e-6, 1354, 42567, "3.00e-96"), (0.1, 1e-9, 2585, 61908, "1.74e-137"),
    (0.5, E9, 55, 1165, "1.62e-47"), (0.5, 1e-6, 101, 1704, "1.43e-67"), (0.5, 1e-9, 172, 2478, "2.91e-96"),
    (1, E9, 29, 292, "5.78e-30"), (1, 1e-6, 48, 427, "2.62e-42"), (1, 1e-9, 78, 621, "6.50e-60"),
    (2, E9, 19, 74, "2.76e-15"), (2, 1e-6, 29, 108, "1.85e-21"), (2, 1e-9, 45, 156, "4.60e-30"),
    (4, E9, 15, 20, "1.50e-06"), (4, 1e-6, 21, 28, "4.95e-09"), (4, 1e-9, 31, 40, "1.16e-12"),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta", "needed", "published", "given"), DEGREES)
def test_degrees_and_delta_are_the_tabulated_ones(epsilon, delta, needed, published, given):
    """The smallest k is right, one less is not enough, and the delta of a far larger k has the tabulated digits."""
    assert calibrate_degrees(Budget(epsilon, delta), dim=22, b=1.0, neighbours=REPLACE) == needed + 20
    assert additive_delta(epsilon, needed + 20, 22, 1.0, REPLACE) <= delta
    assert additive_delta(epsilon, needed + 19, 22, 1.0, REPLACE) > delta
    assert f"{additive_delta(epsilon, published + 20, 22, 1.0, REPLACE):.2e}" == given


# (k - 20, scale C / B^2, standard deviation off the diagonal over that of Gaussian noise) at epsilon 1, delta 1e-6, 22 columns.
SCALES = [
    (20, "2.94", "4.41"), (50, "0.951", "1.88"), (100, "0.534", "1.385"), (1000, "0.137", "1.034"), (10**4, "0.0423", "1.0033"),
    (10**6, "0.00422", "1.0000"),
]  # fmt: skip


@pytest.mark.parametrize(("kappa", "scale", "ratio"), SCALES)
def test_scale_has_the_tabulated_digits(kappa, scale, ratio):
    b = calibrate_b(Budget(1, 1e-6), kappa + 20, 22, REPLACE)
    assert f"{1 / b:.3g}" == scale
    over = math.sqrt(kappa + 20) / b * calibrate_mu(Budget(1, 1e-6))
    assert f"{over:.{len(ratio) - 2}f}" == ratio


@pytest.mark.parametrize("k", [10**7, 10**9, 10**12])
def test_many_degrees_tend_to_the_gaussian_scale_from_above(k):
    over = math.sqrt(k) / calibrate_b(Budget(1, 1e-6), k, 22, REPLACE) * calibrate_mu(Budget(1, 1e-6))
    assert 1 - 1e-9 <= over <= 1 + 1e-5


def corner_both(epsilon: float, k: int, dim: int, b: float) -> mpmath.mpf:
    """d_bb at 25 digits: the shift of a correlation by b/t, averaged over t by the trapezoidal rule in ln t."""
    with mpmath.workdps(25):
        m, kappa, e, b = mpmath.mpf(k - dim - 1) / 2, mpmath.mpf(k - dim + 2), mpmath.mpf(epsilon), mpmath.mpf(b)
        c = mpmath.exp(e / m)

        def cdf(y: mpmath.mpf) -> mpmath.mpf:
            return mpmath.betainc(m + 1, m + 1, 0, (1 + y) / 2, regularized=True) if y > -1 else mpmath.mpf(0)

        def shifted(beta: mpmath.mpf) -> mpmath.mpf:
            if beta >= 2:
                return mpmath.mpf(1)
            end = (c * beta**2 - (c - 1)) / (c * beta + mpmath.sqrt(c * beta**2 + (c - 1) ** 2))
            return cdf(end) - mpmath.exp(e) * cdf(end - beta)

        def bessel(t: mpmath.mpf) -> mpmath.mpf:  # K_0(t) = integral over u > 0 of exp(-t cosh u)
            step = 1 / (3 * mpmath.sqrt(t)) if t > 30 else mpmath.mpf(1) / 16
            return step * (mpmath.exp(-t) / 2 + mpmath.fsum(mpmath.exp(-t * mpmath.cosh(i * step)) for i in range(1, 100)))

        h = mpmath.mpf(1) / (8 * mpmath.sqrt(kappa))
        points = [kappa * mpmath.exp(i * h) for i in range(-160, 90)]
        weights = [t**kappa * bessel(t) for t in points]
        total = mpmath.fsum(weight * shifted(b / t) for weight, t in zip(weights, points, strict=True))
        return total / mpmath.fsum(weights)


def corners_one(epsilon: float, k: int, dim: int, b: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """(d_b0, d_0b) by incomplete gamma functions of 50 digits."""
    with mpmath.workdps(50):
        m, nu, e, b = mpmath.mpf(k - dim - 1) / 2, mpmath.mpf(k - dim + 1), mpmath.mpf(epsilon), mpmath.mpf(b)

        def below(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.gammainc(nu / 2, 0, x / 2, regularized=True)

        def above(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.gammainc(nu / 2, x / 2, mpmath.inf, regularized=True)

        grown = mpmath.mpf(0)
        if e < b / 2:
            start = b / mpmath.expm1((b / 2 - e) / m) if m else mpmath.mpf(0)
            grown = above(start) - mpmath.exp(e) * above(start + b)
        end = b / -mpmath.expm1(-(e + b / 2) / m) if m else b
        return grown, below(end) - mpmath.exp(e) * below(end - b)


BOTH = [(1, 68, 1.0), (0.1, 1374, 1.0), (4, 41, 1.0), (1, 120, 1.8723), (0, 60, 2.0), (1, 2500, 400.0)]


@pytest.mark.parametrize(("epsilon", "k", "b"), BOTH)
def test_both_eigenvalues_moving_agree_with_twenty_five_digits(epsilon, k, b):
    both = corners(epsilon, k, 22, b)[0]
    assert both == pytest.approx(float(corner_both(epsilon, k, 22, b)), rel=1e-9, abs=0)


@pytest.mark.parametrize("b", [0.01, 0.2, 0.5414, 1.0, 2.0, 5.0])
def test_both_eigenvalues_moving_on_the_fewest_degrees(b):
    """With k = d + 1 the correlation is uniform and d_bb = E[min(1, b/(2t))], whose kink must not cost more than the margin."""
    inside = quad(lambda t: 2 / math.pi * t**2 * k0(t), 0, b / 2, epsabs=0, epsrel=1e-12)[0]
    outside = quad(lambda t: b / math.pi * t * k0(t), b / 2, 60, epsabs=0, epsrel=1e-12, limit=200)[0]
    assert corners(0.5, 23, 22, b)[0] == pytest.approx(inside + outside, rel=MARGIN / 2, abs=0)


@pytest.mark.parametrize("k", [6, 7, 8, 12, 40, 500, 10**5])
@pytest.mark.parametrize(("epsilon", "b"), [(0, 1.0), (0.1, 0.7), (1, 3.0), (1, 1.0), (0.01, 12.0)])
def test_one_eigenvalue_moving_agrees_with_fifty_digits(k, epsilon, b):
    grown, shrunk = (float(x) for x in corners_one(epsilon, k, 5, b))
    found = corners(epsilon, k, 5, b)
    assert found[1] == pytest.approx(grown, rel=1e-9, abs=1e-300)
    assert found[2] == pytest.approx(shrunk, rel=1e-10, abs=0)  # sqrt(x - b) for k = d + 2
    assert additive_delta(epsilon, k, 5, b, ADD_REMOVE) == max(found[1:])


def agrees(values: np.ndarray, expected: float) -> bool:
    return abs(values.mean() - expected) <= norm.isf(FALSE_ALARM / 2) * values.std() / math.sqrt(values.size)


def stick_on_draws(epsilon: float, k: int, dim: int, plus: float, minus: float, draws: int, seed: int) -> np.ndarray:
    """(1 - e^(epsilon - L))_+ on N + plus e1 e1' against N + minus e2 e2', from both densities; 1 off the support."""
    released = wishart.rvs(k, np.eye(dim), size=draws, random_state=np.random.default_rng(seed))
    released[:, 0, 0] += plus

    def log_density(x: np.ndarray) -> np.ndarray:
        inside = np.linalg.eigvalsh(x)[:, 0] > 0
        logdet = np.linalg.slogdet(np.where(inside[:, None, None], x, np.eye(dim)))[1]
        return np.where(inside, (k - dim - 1) / 2 * logdet - np.trace(x, axis1=1, axis2=2) / 2, -np.inf)

    first, second = np.zeros((dim, dim)), np.zeros((dim, dim))
    first[0, 0], second[1, 1] = plus, minus
    losses = log_density(released - first) - log_density(released - second)
    return -np.expm1(np.minimum(epsilon - losses, 0.0))


@pytest.mark.parametrize(("dim", "k", "b", "epsilon"), [(3, 8, 2.0, 0.5), (4, 20, 3.0, 0.5), (5, 7, 2.0, 0.1)])
def test_real_matrices_have_the_three_corners(dim, k, b, epsilon):
    """On d x d draws each corner agrees, and none of them agrees with the curve of a b 10 % off (100 000 draws)."""
    exact, low, high = (corners(epsilon, k, dim, b * factor) for factor in (1.0, 0.9, 1.1))
    for i, (plus, minus) in enumerate(((b, b), (b, 0.0), (0.0, b))):
        values = stick_on_draws(epsilon, k, dim, plus, minus, 100_000, seed=i)
        assert agrees(values, exact[i])
        assert not agrees(values, low[i])
        assert not agrees(values, high[i])


def test_inner_points_of_the_box_lose_less_than_the_promise():
    promised = additive_delta(0.5, 8, 3, 2.0, REPLACE)
    for seed, (plus, minus) in enumerate(((1.0, 2.0), (2.0, 1.0), (1.5, 1.5), (0.3, 1.7))):
        values = stick_on_draws(0.5, 8, 3, plus, minus, 30_000, seed)
        assert values.mean() + norm.isf(FALSE_ALARM) * values.std() / math.sqrt(values.size) < promised


@settings(max_examples=25, deadline=None)
@given(
    epsilon=st.floats(0, 5),
    dim=st.integers(1, 30),
    more=st.floats(0, 5).map(lambda e: int(10**e)),
    b=st.floats(-2, 1).map(lambda e: 10**e),
    neighbours=st.sampled_from(Neighbours),
)
def test_more_degrees_and_a_larger_scale_never_lose_more(epsilon, dim, more, b, neighbours):
    """Within the margin of the numbers; and the promise depends on k and d only through k - d, and never exceeds one."""
    here = additive_delta(epsilon, dim + more, dim, b, neighbours)
    assert 0 <= here <= 1
    slack = 2 * MARGIN * here + 1e-200
    assert additive_delta(epsilon, dim + more + 1, dim, b, neighbours) <= here + slack
    assert additive_delta(epsilon, dim + more, dim, b / 1.1, neighbours) <= here + slack
    assert additive_delta(epsilon + 0.1, dim + more, dim, b, neighbours) <= here + slack
    if dim > 1:
        assert additive_delta(epsilon, dim + more + 3, dim + 3, b, neighbours) == here


@settings(max_examples=8, deadline=None)
@given(
    epsilon=st.floats(0.01, 10),
    delta=st.floats(-15, -0.53).map(lambda e: 10**e),
    k=st.floats(1, 6).map(lambda e: int(10**e) + 5),
    neighbours=st.sampled_from(Neighbours),
)
def test_calibrated_scale_meets_the_budget_and_gives_epsilon_back(epsilon, delta, k, neighbours):
    b = calibrate_b(Budget(epsilon, delta), k, 5, neighbours)
    assert additive_delta(epsilon, k, 5, b, neighbours) <= delta * (1 - MARGIN)
    assert additive_delta(epsilon, k, 5, b * 1.001, neighbours) > delta
    back = additive_epsilon(delta, k, 5, b, neighbours)
    assert back <= epsilon * (1 + 1e-9)
    assert additive_delta(back, k, 5, b, neighbours) <= delta


@pytest.mark.parametrize("dim", [1, 2, 22])
@pytest.mark.parametrize("b", [0.02, 2 / 3, 8.0])
def test_one_degree_more_than_columns_is_never_pure(dim, b):
    """k = d + 1 was published, and shipped, as epsilon-DP. Its delta is at least 1 - e^(-b/2) for every epsilon."""
    support = -math.expm1(-b / 2)
    for epsilon in (0.0, 0.5, 3.0, 50.0, 5000.0):
        for neighbours in Neighbours:
            assert additive_delta(epsilon, dim + 1, dim, b, neighbours) >= support * (1 - 1e-12)
    for neighbours in Neighbours:
        assert additive_epsilon(support / 2, dim + 1, dim, b, neighbours) == math.inf
        assert additive_epsilon(1e-6, dim + 1, dim, b, neighbours) == math.inf


def test_one_column_is_a_shift_of_a_chi_square_number():
    for k in (2, 5, 40):
        grown, shrunk = (float(x) for x in corners_one(0.3, k, 1, 2.0))
        assert corners(0.3, k, 1, 2.0)[0] == 0
        for neighbours in Neighbours:
            assert additive_delta(0.3, k, 1, 2.0, neighbours) == pytest.approx(max(grown, shrunk), rel=1e-8, abs=0)


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 22), (1.0, 3), (-0.1, 40)])
def test_what_is_not_proven_is_refused(epsilon, k):
    with pytest.raises(ValueError, match="proven for k >= d"):
        additive_delta(epsilon, k, 22, 1.0, REPLACE)


@pytest.mark.parametrize(("k", "b", "epsilon", "truth"), [(4, 0.01, 50.0, 1.741e-4)])
def test_the_double_corner_keeps_its_digits_at_huge_epsilon(k, b, epsilon, truth):
    """Where e^(epsilon/m) is beyond 1e16 the end of the integral lies within rounding of the support's; reference by mpmath."""
    assert corners(epsilon, k, 2, b)[0] == pytest.approx(truth, rel=1e-3)


def test_what_is_not_a_number_is_never_taken_for_nothing():
    with pytest.raises(ArithmeticError, match="not a number"):
        log_expectation(lambda y: np.full(len(y), np.nan), 3.0)
