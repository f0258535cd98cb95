"""The curve of Wishart sampling: against a table, 50 digits, a Bessel integral and real draws; then truncated Laplace."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaln, kve
from scipy.stats import chi2, invwishart, norm, wishart

from dpgram import Budget
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.accounting.laplace import truncated_laplace_delta, truncation
from dpgram.accounting.wishart import (
    calibrate_degrees,
    calibrate_floor,
    mixture_delta,
    sampling_delta,
    spread,
)
from dpgram.terms.budget import Neighbours
from tests.accounting.inverses import sampling_epsilon

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
FALSE_ALARM = 1e-9  # of each Monte Carlo comparison, when the code is right
E9 = math.exp(-9)

# (epsilon, delta, degrees of freedom, floor for REPLACE, floor for ADD_REMOVE): six digits of an independent computation.
FLOORS = [
    (0.05, E9, 44, "294.044", "235.416"), (0.05, E9, 1000, "1376.73", "1004.08"),
    (0.05, E9, 100000, "13759.1", "9760.51"), (0.05, E9, 1e7, "137595", "97325.5"),
    (0.05, 1e-6, 44, "485.077", "407.382"), (0.05, 1e-6, 1000, "2196.04", "1629.17"),
    (0.05, 1e-6, 100000, "21905.6", "15569.1"), (0.05, 1e-6, 1e7, "219054", "154975"),
    (0.05, 1e-9, 44, "719.423", "627.691"), (0.05, 1e-9, 1000, "3110.35", "2348.71"),
    (0.05, 1e-9, 100000, "30934.3", "22032.2"), (0.05, 1e-9, 1e7, "309330", "218889"),
    (0.1, E9, 44, "162.082", "130.896"), (0.1, E9, 1000, "756.087", "552.971"),
    (0.1, E9, 100000, "7556.58", "5362.14"), (0.1, E9, 1e7, "75569.4", "53454.5"),
    (0.1, 1e-6, 44, "255.329", "215.503"), (0.1, 1e-6, 1000, "1151.03", "855.672"),
    (0.1, 1e-6, 100000, "11480.4", "8161.46"), (0.1, 1e-6, 1e7, "114805", "81223.2"),
    (0.1, 1e-9, 44, "370.807", "324.43"), (0.1, 1e-9, 1000, "1596.78", "1207.59"),
    (0.1, 1e-9, 100000, "15878.2", "11310.9"), (0.1, 1e-9, 1e7, "158777", "112356"),
    (0.5, E9, 44, "39.3633", "32.3459"), (0.5, E9, 1000, "182.715", "134.426"),
    (0.5, E9, 100000, "1828.32", "1298.23"), (0.5, E9, 1e7, "18287.4", "12936.6"),
    (0.5, 1e-6, 44, "57.0276", "48.6332"), (0.5, 1e-6, 1000, "255.268", "190.622"),
    (0.5, 1e-6, 100000, "2547.64", "1812.07"), (0.5, 1e-6, 1e7, "25479.9", "18027.7"),
    (0.5, 1e-9, 44, "79.3741", "69.8646"), (0.5, 1e-9, 1000, "339.329", "257.488"),
    (0.5, 1e-9, 100000, "3375.11", "2405.28"), (0.5, 1e-9, 1e7, "33753.3", "23886.1"),
    (1, E9, 44, "21.2461", "17.5716"), (1, E9, 1000, "98.7891", "72.8518"),
    (1, E9, 100000, "990.232", "703.312"), (1, E9, 1e7, "9906.6", "7008.15"),
    (1, 1e-6, 44, "29.8657", "25.5721"), (1, 1e-6, 1000, "133.655", "99.9915"),
    (1, 1e-6, 100000, "1335.52", "950.124"), (1, 1e-6, 1e7, "13359.1", "9452.12"),
    (1, 1e-9, 44, "40.8709", "36.0613"), (1, 1e-9, 1000, "174.528", "132.622"),
    (1, 1e-9, 100000, "1737.38", "1238.36"), (1, 1e-9, 1e7, "17377.1", "12297.4"),
    (2, E9, 44, "11.4706", "9.54378"), (2, E9, 1000, "53.6976", "39.6884"),
    (2, E9, 100000, "540.042", "383.66"), (2, E9, 1e7, "5404.77", "3823.55"),
    (2, 1e-6, 44, "15.6676", "13.4667"), (2, 1e-6, 1000, "70.3652", "52.738"),
    (2, 1e-6, 100000, "704.872", "501.571"), (2, 1e-6, 1e7, "7052.89", "4990.31"),
    (2, 1e-9, 44, "21.077", "18.6405"), (2, 1e-9, 1000, "90.1488", "68.6006"),
    (2, 1e-9, 100000, "899.095", "640.965"), (2, 1e-9, 1e7, "8994.75", "6365.5"),
    (4, E9, 44, "6.21634", "5.20209"), (4, E9, 1000, "29.546", "21.8858"),
    (4, E9, 100000, "298.957", "212.438"), (4, E9, 1e7, "2993.96", "2118.1"),
    (4, 1e-6, 44, "8.25409", "7.12149"), (4, 1e-6, 1000, "37.4477", "28.118"),
    (4, 1e-6, 100000, "376.944", "268.281"), (4, 1e-6, 1e7, "3773.74", "2670.19"),
    (4, 1e-9, 44, "10.905", "9.66718"), (4, 1e-9, 1000, "46.9485", "35.779"),
    (4, 1e-9, 100000, "470.025", "335.141"), (4, 1e-9, 1e7, "4704.35", "3329.28"),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta", "r", "replaced", "added"), FLOORS)
def test_floor_has_the_tabulated_digits(epsilon, delta, r, replaced, added):
    for neighbours, expected in ((REPLACE, replaced), (ADD_REMOVE, added)):
        assert f"{calibrate_floor(Budget(epsilon, delta), r, neighbours, dim=22):.6g}" == expected


@pytest.mark.parametrize(("epsilon", "delta", "r"), [row[:3] for row in FLOORS[::7]])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_degrees_and_floor_undo_each_other_without_exceeding_delta(epsilon, delta, r, neighbours):
    budget = Budget(epsilon, delta)
    floor = calibrate_floor(budget, r, neighbours, dim=22)
    degrees = calibrate_degrees(budget, floor, neighbours, dim=22)
    assert degrees == pytest.approx(r, rel=1e-7, abs=0)
    assert sampling_delta(epsilon, degrees, floor, neighbours, 22) <= delta
    assert sampling_delta(epsilon, degrees * 1.0001, floor, neighbours, 22) > delta


def test_degrees_stop_at_the_ceiling():
    for most in (5.0, 1e12):
        assert most * (1 - 1e-10) <= calibrate_degrees(Budget(1, 1e-6), 1e9, REPLACE, 22, most=most) <= most


def loss_integral(epsilon: float, r: int, floor: float) -> mpmath.mpf:
    """Delta as an integral over the density of the privacy loss, a variance-gamma law. Even r: the Bessel function is cheap."""
    with mpmath.workdps(40):
        e, a = mpmath.mpf(epsilon), 1 / mpmath.mpf(floor)
        g, nu = a * a / (1 + a), mpmath.mpf(r - 1) / 2
        k, sd = mpmath.sqrt(1 / g + 0.25), mpmath.sqrt(r * g)
        constant = mpmath.sqrt(mpmath.pi) * mpmath.gamma(mpmath.mpf(r) / 2) * g ** (mpmath.mpf(r) / 2)

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return -mpmath.expm1(e - x) * mpmath.exp(x / 2) * (x / (2 * k)) ** nu * mpmath.besselk(nu, k * x) / constant

        ends = [e, *(e + sd * t for t in (0.25, 1, 2, 4, 8, 16, 32)), e + 100 * sd + 100 / (k - 0.5)]
        return mpmath.quad(integrand, ends)


@pytest.mark.parametrize(
    ("epsilon", "r", "delta"),
    [(1, 44, 1e-1), (1, 44, 1e-6), (1, 44, 1e-20), (0.1, 10, 1e-3), (4, 200, 1e-9), (20, 4, 1e-12), (0.5, 2, 1e-15)],
)
def test_curve_is_the_bessel_integral_and_the_floor_is_private_at_forty_digits(epsilon, r, delta):
    """An independent formula agrees to 12 digits, and the calibrated floor lies on the private side of it."""
    floor = calibrate_floor(Budget(epsilon, delta), r, REPLACE, dim=2)
    exact = loss_integral(epsilon, r, floor)
    assert sampling_delta(epsilon, r, floor, REPLACE, 2) == pytest.approx(float(exact), rel=1e-12, abs=0)
    assert mpmath.mpf(delta) * (1 - 2e-9) <= exact <= mpmath.mpf(delta)


def loss_density(x: np.ndarray | float, r: float, floor: float) -> np.ndarray:
    """Density of the privacy loss in double precision, for any real r."""
    g, nu = spread(floor), (r - 1) / 2
    k = math.sqrt(1 / g + 0.25)
    logs = x / 2 + nu * np.log(np.abs(x) / (2 * k)) - k * np.abs(x) + np.log(kve(nu, k * np.abs(x)))
    return np.exp(logs - math.log(math.pi) / 2 - gammaln(r / 2) - r / 2 * math.log(g))


@pytest.mark.parametrize(("epsilon", "r", "floor"), [(1, 1, 5.0), (0.3, 2.5, 20.0), (0.05, 9, 60.0), (3, 77, 9.0)])
def test_curve_is_the_bessel_integral_for_odd_and_real_degrees(epsilon, r, floor):
    end = epsilon + 60 * math.sqrt(r * spread(floor)) + 10
    integral = quad(
        lambda x: -math.expm1(epsilon - x) * loss_density(x, r, floor), epsilon, end, limit=400, epsabs=0, epsrel=1e-11
    )[0]
    assert sampling_delta(epsilon, r, floor, REPLACE, 3) == pytest.approx(integral, rel=1e-9, abs=0)


@pytest.mark.parametrize(("epsilon", "r", "floor"), [(1, 44, 29.8657), (0.1, 5, 50.0), (4, 1e6, 1190.0)])
def test_curve_lies_between_its_step_bounds(epsilon, r, floor):
    """delta_G rises with X, so its values at the ends of 4000 equally likely intervals of X bound the expectation."""
    edges = chi2.ppf(np.linspace(0, 1, 4001)[:-1], r)
    values = np.array([0.0, *(gaussian_delta(epsilon, math.sqrt(spread(floor) * x)) for x in edges[1:]), 1.0])
    lower, upper = values[:-1].mean(), values[1:].mean()
    assert lower < sampling_delta(epsilon, r, floor, REPLACE, 2) < upper < lower + 1 / 3999


def one_eigenvalue(epsilon: float, r: float, floor: float) -> mpmath.mpf:
    """The larger direction of one moving eigenvalue, by incomplete gamma functions of 50 digits."""
    with mpmath.workdps(50):
        e, a, r = mpmath.mpf(epsilon), 1 / mpmath.mpf(floor), mpmath.mpf(r)

        def below(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.gammainc(r / 2, 0, x / 2, regularized=True)

        def above(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.gammainc(r / 2, x / 2, mpmath.inf, regularized=True)

        log_ratio, scale = r / 2 * mpmath.log1p(a), 2 * (1 + a) / a
        up, down = scale * (log_ratio + e), scale * (log_ratio - e)
        added = above(up / (1 + a)) - mpmath.exp(e) * above(up)
        removed = below(down) - mpmath.exp(e) * below(down / (1 + a)) if down > 0 else mpmath.mpf(0)
        return max(added, removed)


@pytest.mark.parametrize("r", [1, 2.5, 9, 44, 1000, 1e4, 1e6])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.3), (1, 1e-6), (0.3, 1e-15), (20, 1e-9)])
def test_one_eigenvalue_is_private_at_fifty_digits(r, epsilon, delta):
    floor = calibrate_floor(Budget(epsilon, delta), r, ADD_REMOVE, dim=22)
    exact = one_eigenvalue(epsilon, r, floor)
    assert sampling_delta(epsilon, r, floor, ADD_REMOVE, 22) == pytest.approx(float(exact), rel=1e-11, abs=0)
    assert mpmath.mpf(delta) * (1 - 3e-9) <= exact <= mpmath.mpf(delta)


def test_one_column_moves_one_eigenvalue_under_both_neighbours():
    assert sampling_delta(1, 44, 25.0, REPLACE, 1) == sampling_delta(1, 44, 25.0, ADD_REMOVE, 22)
    with pytest.raises(ValueError, match="plain sum"):
        sampling_delta(1, 44, 25.0, ADD_REMOVE, 22, mu=0.1)


cases = given(
    epsilon=st.floats(0.01, 20),
    delta=st.floats(-15, -0.53).map(lambda e: 10**e),
    r=st.floats(0, 12).map(lambda e: 10**e),
    neighbours=st.sampled_from(Neighbours),
)


@settings(max_examples=15, deadline=None)
@cases
def test_calibrated_floor_meets_the_budget_and_every_quantity_moves_the_right_way(epsilon, delta, r, neighbours):
    floor = calibrate_floor(Budget(epsilon, delta), r, neighbours, 5)

    def at(e: float = epsilon, f: float = floor, s: float = r) -> float:
        return sampling_delta(e, s, f, neighbours, 5)

    assert delta * (1 - 1e-8) <= at() <= delta
    assert at(e=1.05 * epsilon) < at()
    assert at(f=1.05 * floor) < at()
    assert at(f=0.95 * floor) > at()
    assert at(s=1.05 * r) > at()


@settings(max_examples=10, deadline=None)
@cases
def test_epsilon_comes_back_from_above(epsilon, delta, r, neighbours):
    floor = calibrate_floor(Budget(epsilon, delta), r, neighbours, 5)
    back = sampling_epsilon(sampling_delta(epsilon, r, floor, neighbours, 5), r, floor, neighbours, 5)
    assert epsilon <= back <= epsilon * (1 + 1e-6)
    assert sampling_delta(back, r, floor, neighbours, 5) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1, 1e-6), (4, 0.01)])
def test_many_degrees_tend_to_the_gaussian_mechanism_from_above(epsilon, delta):
    """The floor tends to that of a Gaussian mechanism, always from above: calibrating with the limit would not be private."""
    mu, excess = calibrate_mu(Budget(epsilon, delta)), []
    for r in (1e2, 1e4, 1e6, 1e8):
        limit = (math.sqrt(1 + 4 * r / mu**2) - 1) / 2
        excess.append(calibrate_floor(Budget(epsilon, delta), r, REPLACE, 5) / limit - 1)
        assert sampling_delta(epsilon, r, limit, REPLACE, 5) > delta
    assert all(one / following > 5 for one, following in pairwise(excess))
    assert 0 < excess[-1] < 1e-4


def test_several_releases_of_one_floor_are_one_release_of_their_degrees():
    """The losses of three independent releases add up: by simulation of the dominating pair."""
    rng, a, r, times = np.random.default_rng(5), 1 / 6, 5, 3
    wide, narrow = (1 + a) * rng.chisquare(r, (times, 400_000)), rng.chisquare(r, (times, 400_000))
    losses = (a / (2 * (1 + a)) * (wide - narrow)).sum(axis=0)
    assert agrees(stick(losses, 0.5), sampling_delta(0.5, times * r, 6.0, REPLACE, 4))
    assert not agrees(stick(losses, 0.5), sampling_delta(0.5, times * r - 1, 6.0, REPLACE, 4))


def test_a_gaussian_release_composes_exactly():
    """Adding a shift: without degrees to speak of it is the Gaussian curve, and it agrees with simulated losses."""
    assert mixture_delta(1.0, 44, 1e-30, mu=0.5) == pytest.approx(gaussian_delta(1.0, 0.5), rel=1e-12, abs=0)
    rng, a = np.random.default_rng(6), 1 / 6
    losses = a / (2 * (1 + a)) * ((1 + a) * rng.chisquare(9, 400_000) - rng.chisquare(9, 400_000))
    losses += rng.normal(0.5**2 / 2, 0.5, 400_000)
    assert agrees(stick(losses, 1.0), sampling_delta(1.0, 9, 6.0, REPLACE, 4, mu=0.5))
    assert not agrees(stick(losses, 1.0), sampling_delta(1.0, 9, 6.0, REPLACE, 4, mu=0.45))


def certificate(epsilon: float, r: float, floor: float) -> float:
    """An upper bound on delta (REPLACE, d >= 2) that needs no quadrature: a Chernoff bound, minimised over its order."""
    g = spread(floor)
    top = (math.sqrt(1 + 4 / g) - 1) / 2  # g t (1 + t) < 1
    t = np.exp(np.linspace(math.log(1e-6 * top), math.log(top * (1 - 1e-9)), 4000))
    bound = -r / 2 * np.log1p(-g * t * (1 + t)) - t * epsilon + t * np.log(t) - (1 + t) * np.log1p(t)
    return min(1.0, math.exp(float(bound.min())))


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.01, 20), r=st.floats(0, 8).map(lambda e: 10**e), shift=st.floats(0.05, 2))
def test_certificate_is_never_below_the_curve(epsilon, r, shift):
    floor = math.sqrt(r) * shift * 5 / epsilon
    assert certificate(epsilon, r, floor) >= sampling_delta(epsilon, r, floor, REPLACE, 2)


def test_certificate_costs_less_than_a_fifth_of_the_floor():
    assert certificate(1, 44, 1.2 * 29.8657) < 1e-6 < certificate(1, 44, 29.8657)


def stick(losses: np.ndarray, epsilon: float) -> np.ndarray:
    """(1 - e^(epsilon - L))_+ of every loss."""
    return -np.expm1(np.minimum(epsilon - losses, 0.0))


def agrees(values: np.ndarray, expected: float) -> bool:
    return abs(values.mean() - expected) <= norm.isf(FALSE_ALARM / 2) * values.std() / math.sqrt(values.size)


def losses_on(s: np.ndarray, t: np.ndarray, r: int, draws: int, seed: int, *, inverse: bool = False) -> np.ndarray:
    """The log density ratio of two Wishart (or inverse Wishart) laws with scales s and t, on draws from the first."""
    rng = np.random.default_rng(seed)
    dets = np.linalg.slogdet(s)[1] - np.linalg.slogdet(t)[1]
    if inverse:
        w = np.linalg.inv(invwishart.rvs(r, s, size=draws, random_state=rng))
        return r / 2 * dets - np.einsum("ij,nji->n", s - t, w) / 2
    w = wishart.rvs(r, s, size=draws, random_state=rng)
    return -r / 2 * dets - np.einsum("ij,nji->n", np.linalg.inv(s) - np.linalg.inv(t), w) / 2


@pytest.mark.parametrize("inverse", [False, True])
def test_real_wishart_matrices_have_the_curve_on_the_worst_pair(inverse):
    """Rows e1 and e2 on an otherwise empty table. At 200 000 draws a floor 10 % off either way is seen."""
    s, t = 6 * np.eye(4) + np.diag([1, 0, 0, 0]), 6 * np.eye(4) + np.diag([0, 1, 0, 0])
    losses = losses_on(s, t, 9, 200_000, seed=1, inverse=inverse)
    for epsilon in (0.1, 0.5, 1.0):
        values = stick(losses, epsilon)
        assert agrees(values, sampling_delta(epsilon, 9, 6.0, REPLACE, 4))
        assert not agrees(values, sampling_delta(epsilon, 9, 6.6, REPLACE, 4))
        assert not agrees(values, sampling_delta(epsilon, 9, 5.4, REPLACE, 4))


def test_real_wishart_matrices_have_the_curve_when_a_row_is_added_or_removed():
    """The larger of the two directions is the curve, and the smaller is below it; a floor 10 % off is seen."""
    without, with_row = 6 * np.eye(4), 6 * np.eye(4) + np.diag([1, 0, 0, 0])
    for epsilon in (0.1, 0.5):
        both = [stick(losses_on(s, t, 9, 200_000, seed=2), epsilon) for s, t in ((with_row, without), (without, with_row))]
        larger, smaller = sorted(both, key=np.mean, reverse=True)
        expected = sampling_delta(epsilon, 9, 6.0, ADD_REMOVE, 4)
        assert agrees(larger, expected)
        assert not agrees(larger, sampling_delta(epsilon, 9, 6.6, ADD_REMOVE, 4))
        assert not agrees(larger, sampling_delta(epsilon, 9, 5.4, ADD_REMOVE, 4))
        assert smaller.mean() < expected


def test_random_pairs_lose_less_than_the_curve():
    rng = np.random.default_rng(3)
    for seed in range(6):
        v, w = (x / np.linalg.norm(x) * rng.random() ** 0.25 for x in rng.normal(size=(2, 4)))
        common = rng.normal(size=(3, 4)) / 2
        base = 6 * np.eye(4) + common.T @ common
        values = stick(losses_on(base + np.outer(v, v), base + np.outer(w, w), 9, 40_000, seed), 0.3)
        bound = values.mean() + norm.isf(FALSE_ALARM) * values.std() / math.sqrt(values.size)
        assert bound < sampling_delta(0.3, 9, 6.0, REPLACE, 4)


def gap_mass(epsilon: float, c: float, sensitivity: float) -> mpmath.mpf:
    """P(Z > c - sensitivity | Z <= c) of a Laplace number of scale sensitivity/epsilon, at 50 digits."""
    with mpmath.workdps(50):
        e, c, s = mpmath.mpf(epsilon), mpmath.mpf(c), mpmath.mpf(sensitivity)

        def below(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(z * e / s) / 2 if z < 0 else 1 - mpmath.exp(-z * e / s) / 2

        return 1 - below(c - s) / below(c)


laplace_cases = pytest.mark.parametrize("epsilon", [0.01, 0.3, 0.5, 1, 4])
laplace_deltas = pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-6, E9, 0.3])


@laplace_cases
@laplace_deltas
@pytest.mark.parametrize("sensitivity", [1.0, 7.3])
def test_truncation_gives_the_promised_gap(epsilon, delta, sensitivity):
    """To the rounding of c, and equal to delta where the gap lies in the upper half of the law; below it elsewhere."""
    c = truncation(Budget(epsilon, delta), sensitivity)
    mass = gap_mass(epsilon, c, sensitivity)
    assert mass <= mpmath.mpf(delta) * (1 + 1e-14)
    if c >= sensitivity:
        assert mass >= mpmath.mpf(delta) * (1 - 1e-12)


@laplace_cases
@laplace_deltas
def test_delta_of_truncated_noise_is_the_gap_at_fifty_digits(epsilon, delta):
    c = truncation(Budget(epsilon, delta), 1.0)
    exact = gap_mass(epsilon, c, 1.0)
    assert truncated_laplace_delta(epsilon, 1 / epsilon, c, 1.0) == pytest.approx(float(exact), rel=1e-12, abs=0)


@pytest.mark.parametrize("epsilon", [499, 501, 800, 1e4, 1e6])
@laplace_deltas
def test_a_huge_epsilon_has_truncated_noise_too(epsilon, delta):
    """Its exponential is no float: tests of what a release says use such an epsilon."""
    with mpmath.workdps(60):
        c = truncation(Budget(epsilon, delta), 1.0)
        e = mpmath.mpf(epsilon)
        mass = mpmath.exp((1 - c) * e) * -mpmath.expm1(-e) / 2 / (1 - mpmath.exp(-c * e) / 2)
        assert mass <= mpmath.mpf(delta)
        assert truncated_laplace_delta(epsilon, 1 / epsilon, c, 1.0) == pytest.approx(float(mass), rel=1e-9 * epsilon, abs=0)


def test_truncated_noise_refuses_an_epsilon_below_its_density_ratio():
    with pytest.raises(ValueError, match="density ratio"):
        truncated_laplace_delta(0.49, 2.0, 5.0, 1.0)


def test_truncated_draws_have_the_gap_and_the_density_ratio():
    """Draws of Z given Z <= c, on values 10 and 9: below 9 the counts differ by e^epsilon at most; above 9 lies delta."""
    epsilon, delta, draws = 0.5, 0.05, 400_000
    c = truncation(Budget(epsilon, delta), 1.0)
    z = np.random.default_rng(4).laplace(scale=1 / epsilon, size=2 * draws)
    z = z[z <= c][:draws]
    high, low = 10 - c + z, 9 - c + z
    assert agrees((high > 9).astype(float), delta)
    assert not agrees((high > 9).astype(float), 1.1 * delta)
    assert high.max() <= 10
    edges = np.linspace(0, 9, 19)
    ours, theirs = np.histogram(high, edges)[0], np.histogram(low, edges)[0]
    margin = norm.isf(FALSE_ALARM / 36) * np.sqrt(1 / ours + 1 / theirs)
    assert (np.abs(np.log(ours / theirs)) <= epsilon + margin).all()
    assert (np.abs(np.log(ours / theirs)) > 0.8 * epsilon + margin).any()  # a smaller epsilon would be refused
