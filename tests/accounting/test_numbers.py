"""The small numbers that privacy curves are made of, one by one: against mpmath, at the borders between two ways to compute them."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, k0

from dpgram import Budget
from dpgram.accounting import additive_wishart, chi_square, gaussian, wishart
from dpgram.accounting.additive_wishart import MARGIN, additive_delta, calibrate_degrees, corners, meets_budget
from dpgram.accounting.compose import GaussianCost, PlainCost, SamplingCost, composed_delta
from dpgram.accounting.laplace import truncated_laplace_delta
from dpgram.accounting.roots import _step, largest
from dpgram.terms.budget import Neighbours

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE


@pytest.mark.parametrize("y", [1e-12, -1e-3, 0.0499, -0.0499, 0.05, 0.0501, -3.0, 30.0])
def test_exponentials_and_logarithms_without_their_first_terms(y):
    with mpmath.workdps(40):
        assert float(chi_square.expm1_minus(y)) == pytest.approx(float(mpmath.expm1(y) - mpmath.mpf(y)), rel=1e-14, abs=0)
        for a in (y / 6, y):
            if a > -1:
                exact = float(mpmath.mpf(a) - mpmath.log1p(mpmath.mpf(a)))
                assert chi_square.log1p_minus(a) == pytest.approx(exact, rel=2e-13, abs=0)


@pytest.mark.parametrize("s", [0.5, 7.0, 49.9, 50.0, 50.5, 60.0, 1e3, 1e8])
def test_the_constant_of_a_density_on_both_sides_of_stirling(s):
    with mpmath.workdps(40):
        exact = mpmath.mpf(s) * mpmath.log(s) - s - mpmath.loggamma(s)
    assert chi_square.log_constant(s) == pytest.approx(float(exact), rel=0, abs=2e-15 if s >= 50 else 1e-13)


@pytest.mark.parametrize("m", [1000.0, 1100.5, 1300.0, 1e6])
def test_the_density_of_a_correlation_at_zero(m):
    with mpmath.workdps(40):
        exact = mpmath.loggamma(m + mpmath.mpf(3) / 2) - mpmath.loggamma(m + mpmath.mpf(1)) - mpmath.log(mpmath.pi) / 2
    assert additive_wishart._log_density_at_zero(m) == pytest.approx(float(exact), rel=0, abs=2e-15)


@pytest.mark.parametrize("t", [0.1, 1.5, 20.0, 60.01, 60.9, 200.0, 1e5, 1e9])
def test_the_slope_of_mills_ratio(t):
    with mpmath.workdps(60):
        x = mpmath.mpf(t)
        exact = (
            1 - x * mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2)) if t < 1e3 else None
        )
        exact = 1 / x**2 - 3 / x**4 + 15 / x**6 if exact is None else exact
    assert float(gaussian._slope(np.array([t]))[0]) == pytest.approx(float(exact), rel=1e-13 if t > 60 else 1e-11, abs=0)


@pytest.mark.parametrize("count", [100, 200])
def test_the_double_exponential_rule_integrates_powers(count):
    """From either end: also where the integrand is infinite there."""
    from_left, from_right, log_weights = chi_square._double_exponential(count)
    assert len(from_left) == 2 * count + 1
    weights = np.exp(log_weights)
    assert from_left + from_right == pytest.approx(1.0, abs=1e-15)
    for power in (-0.5, 0.0, 0.5, 1.0, 3.0):
        for points in (from_left, from_right):
            assert points**power @ weights == pytest.approx(1 / (1 + power), rel=1e-13 if power >= 0 else 3e-9)


@pytest.mark.parametrize("r", [44.0, 1e3, 1e6])
def test_a_smooth_integrand_takes_the_cheapest_rule(r):
    """And one that starts like a square root the second one."""
    for low, most in ((-40 / math.sqrt(r) - 400 / r, 6 * 41 + 101), (0.0, 6 * 41 + 101 + 201 + 401)):
        asked = []

        def log_integrand(y, low=low, asked=asked):
            asked.append(len(y))
            with np.errstate(divide="ignore"):
                return chi_square.log_density(y, r) + (np.log(y) / 2 if low == 0 else 0.0)

        chi_square.log_integral(log_integrand, low, 40 / math.sqrt(r))
        assert sum(asked) <= most


def test_an_integrand_that_is_nothing_has_no_integral():
    def nothing(y):
        return np.full(len(y), -np.inf)

    assert chi_square.log_integral(nothing, 0.0, 1.0) == -math.inf
    assert chi_square._by_panels(nothing, 0.0, 1.0) == -math.inf
    assert chi_square._settled(nothing(np.zeros(9)), 1.0) == -math.inf
    assert chi_square.log_integral(lambda y: y, 1.0, 1.0) == -math.inf


def test_a_loss_that_is_not_a_number_is_never_taken_for_nothing():
    assert np.isnan(chi_square.log_excess(np.array([np.nan]))).all()
    found = chi_square.log_excess(np.array([-np.inf, -2.0, 0.0, 1e-9, 1.0, np.inf]))
    assert found == pytest.approx([-np.inf, -np.inf, -np.inf, math.log(-math.expm1(-1e-9)), math.log(-math.expm1(-1.0)), 0.0])


def stick(epsilon, m, beta):
    """The hockey stick of a shifted correlation, at 80 digits or as many as it needs."""
    with mpmath.workdps(80 + int(epsilon)):
        e, m, b = mpmath.mpf(epsilon), mpmath.mpf(m), mpmath.mpf(beta)
        c = mpmath.exp(e / m)
        end = (c * b**2 - (c - 1)) / (c * b + mpmath.sqrt(c * b**2 + (c - 1) ** 2))

        def cdf(y):
            return mpmath.betainc(m + 1, m + 1, 0, (1 + y) / 2, regularized=True) if y > -1 else mpmath.mpf(0)

        return float(cdf(end) - mpmath.exp(e) * cdf(end - b))


@pytest.mark.parametrize(
    ("epsilon", "m", "beta"),
    [
        *((epsilon, 1000.0, beta) for epsilon in (0.0, 1.0, 30.0) for beta in (0.03, 0.1, 0.3, 1.0, 1.5)),
        *((epsilon, m, beta) for epsilon in (0.2, 5.0) for m in (0.5, 3.0) for beta in (0.2, 1.0, 1.7)),
        *((epsilon, m, beta) for epsilon in (449.0, 500.0, 800.0) for m in (0.5, 1.0, 1.5) for beta in (0.02, 1.5)),
    ],
)
def test_a_shifted_correlation(epsilon, m, beta):
    """With many degrees of freedom, with few, and where exponentials of epsilon are no floats."""
    found = additive_wishart._correlation_stick(epsilon, m, np.array([beta]))[0]
    assert found == pytest.approx(stick(epsilon, m, beta), rel=1e-9, abs=0)


def test_a_shift_beyond_the_support_is_seen_for_certain():
    beta = np.array([np.nextafter(2.0, 0.0), 2.0, 7.0])
    for epsilon, m in ((0.3, 0.0), (0.3, 2.0), (3.0, 0.5), (600.0, 0.5), (0.3, 2000.0)):
        assert additive_wishart._correlation_stick(epsilon, m, beta) == pytest.approx([1.0, 1.0, 1.0], rel=1e-6)


@pytest.mark.parametrize(("epsilon", "k", "b"), [(0.5, 6, 4.0), (2.0, 8, 3.0), (1.0, 10, 15.0), (500.0, 6, 0.5)])
def test_both_eigenvalues_moving_on_few_degrees(epsilon, k, b):
    """By quadrature over t, in pieces: with probability one the laws differ below b/2."""
    dim = 4
    m, kappa = (k - dim - 1) / 2, k - dim + 2
    c = math.exp(epsilon / m) if epsilon < 300 else math.inf

    def weight(t):
        return t ** (kappa - 1) * k0(t)

    def shifted(beta):
        if math.isinf(c):
            return betainc(m + 1, m + 1, beta / 2)
        end = (c * beta**2 - (c - 1)) / (c * beta + math.sqrt(c * beta**2 + (c - 1) ** 2))
        return betainc(m + 1, m + 1, (1 + end) / 2) - math.exp(epsilon) * betainc(m + 1, m + 1, max(0, 1 + end - beta) / 2)

    mass = quad(weight, 0, b / 2)[0] + quad(lambda t: weight(t) * shifted(b / t), b / 2, b)[0]
    mass += quad(lambda t: weight(t) * shifted(b / t), b, b + 80, limit=200)[0]
    assert corners(epsilon=epsilon, k=k, dim=dim, b=b)[0] == pytest.approx(
        mass / quad(weight, 0, 120, limit=200)[0], rel=1e-6, abs=0
    )


@pytest.mark.parametrize("b", [600.0, 720.0, 1e4, 1e8, 1e200])
@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 6), (300.0, 6), (1.0, 7), (1.0, 40)])
def test_rows_of_far_more_than_the_scale(epsilon, k, b):
    """Exponentials of b are no floats; the noise is nearly always above the one threshold and below the other."""
    assert corners(epsilon, k, 4, b) == pytest.approx((1.0, 1.0, 1.0) if b > 2 * epsilon else (1.0, 0.0, 1.0), abs=1e-9)


def test_the_sum_of_the_corners_is_at_most_one():
    assert additive_delta(0.0, k=4, dim=3, b=40.0, neighbours=REPLACE) == 1.0
    assert 1 - 1e-12 <= additive_delta(0.0, k=6, dim=4, b=2e5, neighbours=ADD_REMOVE) <= 1
    assert composed_delta(0.0, [SamplingCost(1e6, 0.1), PlainCost(0.0, 0.5)]) == 1.0
    assert composed_delta(0.0, [GaussianCost(50.0), PlainCost(0.0, 0.5)]) == 1.0


def test_a_scale_that_needs_no_degrees_more_than_there_must_be():
    for dim in (1, 2, 22):
        for neighbours in Neighbours:
            assert calibrate_degrees(Budget(1.0, 0.5), dim=dim, b=0.01, neighbours=neighbours) == dim + 1


def test_the_margin_of_a_budget_is_kept_at_its_border():
    """A delta that is met exactly is not met with the margin; one that is two margins above it is."""
    here = additive_delta(1.0, 68, 22, 1.0, REPLACE)
    for delta, needed in ((here, 69), (here * (1 + 2 * MARGIN), 68)):
        assert calibrate_degrees(Budget(1.0, delta), 22, 1.0, REPLACE) == needed
        assert meets_budget(Budget(1.0, delta), 68, 22, 1.0, REPLACE) == (needed == 68)


@pytest.mark.parametrize("about", [2, 3, 7, 30, 1000])
def test_the_smallest_whole_number_is_found_from_anywhere_in_few_questions(about):
    for truth in (2, 3, 4, 6, 7, 8, 29, 30, 31, 33, 999, 1000, 1001, 5000):
        asked = []
        found = additive_wishart._whole(lambda n, truth=truth, asked=asked: asked.append(n) or n >= truth, about)
        assert found == truth
        assert min(asked) >= 2  # one is known not to be enough
        off = abs(truth - about)
        assert len(asked) <= (min(2, about - 1) if off == 0 else 3 if off == 1 else 4 + 2 * math.log2(off))


@pytest.mark.parametrize(
    ("epsilon", "r", "floor"), [(0.1, 9, 6.0), (1.0, 9, 0.4), (0.5, 2.5, 1.0), (1.0, 44, 25.6), (3.0, 1, 0.05)]
)
def test_a_row_added_and_a_row_removed_have_each_their_curve(epsilon, r, floor):
    with mpmath.workdps(50):
        e, a, half = mpmath.mpf(epsilon), 1 / mpmath.mpf(floor), mpmath.mpf(r) / 2
        scale = 2 * (1 + a) / a
        up, down = scale * (half * mpmath.log1p(a) + e), scale * (half * mpmath.log1p(a) - e)
        added = mpmath.gammainc(half, up / (1 + a) / 2, regularized=True) - mpmath.exp(e) * mpmath.gammainc(
            half, up / 2, regularized=True
        )
        removed = mpmath.mpf(0)
        if down > 0:
            removed = mpmath.gammainc(half, 0, down / 2, regularized=True)
            removed -= mpmath.exp(e) * mpmath.gammainc(half, 0, down / (1 + a) / 2, regularized=True)
    assert wishart._one_eigenvalue(epsilon, r, floor) == pytest.approx((float(added), float(removed)), rel=1e-9, abs=0)


@pytest.mark.parametrize("a", [1e-9, 0.005, 0.9, 1.0, 1.1, 1e8, 1e20])
def test_what_the_narrower_of_two_laws_loses_at_most(a):
    with mpmath.workdps(40):
        exact = mpmath.log1p(mpmath.mpf(a)) - mpmath.mpf(a) / (1 + mpmath.mpf(a))
    assert wishart._tail(a) == pytest.approx(float(exact), rel=1e-13, abs=0)


@pytest.mark.parametrize("floor", [1e-14, 1e-15, 1e-17, 1e-30, 1e-200, 1.1e-300])
def test_a_floor_of_nearly_nothing_promises_nothing(floor):
    """There the threshold of the loss is no longer told from the end of its range."""
    for epsilon in (0.0, 1e-3, 3.0):
        for neighbours in Neighbours:
            assert 1 - 1e-9 <= wishart.sampling_delta(epsilon, 5, floor, neighbours, 4) <= 1


@pytest.mark.parametrize("floor", [1e-300, 1e-310, 5e-324, 0.0, -1.0, math.nan])
def test_a_floor_whose_inverse_is_no_float_promises_nothing(floor):
    for neighbours in Neighbours:
        assert wishart.sampling_delta(1.0, 5, floor, neighbours, 4) == 1.0


def test_degrees_of_freedom_end_at_what_is_asked_for_and_at_none():
    for neighbours in Neighbours:
        assert wishart.calibrate_degrees(Budget(1.0, 1e-6), 1e9, neighbours, 5, most=7.0) == 7.0
        assert wishart.calibrate_degrees(Budget(1.0, 1e-6), 1e9, neighbours, 5, most=1e300) > 1e12
        assert wishart.calibrate_degrees(Budget(20.0, 0.3), 1e9, neighbours, dim=5) == 1e12
        assert wishart.calibrate_degrees(Budget(0.01, 1e-9), 0.5, neighbours, 5) == 0.0
    assert wishart.sampling_delta(1.0, 44, 25.0, REPLACE, dim=5) == wishart.sampling_delta(1.0, 44, 25.0, REPLACE, 5, mu=0.0)


@pytest.mark.parametrize("c", [-1.0, 0.0, 0.5, 0.999, 1.0, 3.0])
def test_truncated_noise_wherever_it_is_cut(c):
    with mpmath.workdps(40):

        def below(z):
            return mpmath.exp(z) / 2 if z < 0 else 1 - mpmath.exp(-z) / 2

        exact = 1 - below(mpmath.mpf(c) - 1) / below(mpmath.mpf(c))
    assert truncated_laplace_delta(1.0, 1.0, c, 1.0) == pytest.approx(float(exact), rel=1e-14, abs=0)
    assert truncated_laplace_delta(1 - 1e-12, 1.0, c, 1.0) == pytest.approx(
        float(exact), rel=1e-14, abs=0
    )  # exactly as low as it may be


def test_a_step_is_exact_where_the_logarithm_is_a_parabola_of_the_height():
    def x(height):
        return (
            math.exp(0.3 - 0.7 * height + 0.05 * height**2) if height < 0 else math.exp(0.3 + 0.7 * height + 0.05 * height**2)
        )

    seen = [(h, x(h)) for h in (0.9, 0.5, 0.2)]
    assert _step(seen, 3.0) == pytest.approx(0.3 - math.log(x(0.2)), rel=1e-12)
    assert _step(seen[:1], 3.0) == pytest.approx(-0.9 / 3.0, rel=1e-12)
    assert _step(seen[1:], 3.0) == pytest.approx(-0.2 * math.log(x(0.2) / x(0.5)) / (0.2 - 0.5), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.4])
def test_calibrations_ask_their_curves_a_few_times(epsilon, delta, monkeypatch):
    asked = []

    def counted(curve):
        return lambda *args, **options: asked.append(args) or curve(*args, **options)

    for room, curve, calibrate in (
        (gaussian, "gaussian_delta", lambda: gaussian.calibrate_mu.__wrapped__(Budget(epsilon, delta))),
        (wishart, "sampling_delta", lambda: wishart.calibrate_floor.__wrapped__(Budget(epsilon, delta), 30, REPLACE, 5)),
        (wishart, "sampling_delta", lambda: wishart.calibrate_degrees.__wrapped__(Budget(epsilon, delta), 100, REPLACE, 5)),
        (
            additive_wishart,
            "additive_delta",
            lambda: additive_wishart.calibrate_b.__wrapped__(Budget(epsilon, delta), 60, 5, REPLACE),
        ),
        (additive_wishart, "additive_delta", lambda: calibrate_degrees.__wrapped__(Budget(epsilon, delta), 5, 2.0, REPLACE)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(room, curve, counted(getattr(room, curve)))
            asked.clear()
            calibrate()
        assert len(asked) <= 12


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 9.0, 60.0])
@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 4.0])
def test_the_plain_curve_is_the_curve(epsilon, mu):
    curve = gaussian.gaussian_delta(epsilon, mu)
    assert gaussian.plain_gaussian_delta(epsilon, mu) == pytest.approx(curve, rel=1e-6, abs=1e-300)


def test_costs_are_kept_as_they_were_made():
    costs = {GaussianCost(0.5): "mu", SamplingCost(9.0, 4.0): "degrees_of_freedom", PlainCost(1.0, 1e-6): "epsilon"}
    for cost, name in costs.items():
        with pytest.raises(FrozenInstanceError):
            setattr(cost, name, 0.0)


def test_a_search_ends_at_its_precision_and_at_the_lowest_number():
    """With a height that says nothing it goes by factors of four: 4 is as far from 1 as the precision allows."""
    asked = []
    assert largest(lambda x: asked.append(x) or float(x > 1), 0.5, 1.0, precision=3.0, height=lambda value: math.nan) == 1.0
    assert asked == [1.0, 4.0]
    asked.clear()
    assert largest(lambda x: asked.append(x) or 1.0, 0.5, 1.0, lowest=1e-9) == 0.0
    assert 1e-9 / 64 <= min(asked) <= 1e-9
    asked.clear()
    assert largest(lambda x: asked.append(x) or 1.0, 0.5, 1.0) == 0.0
    assert 1e-300 / 64 <= min(asked) <= 1e-300


def test_a_search_that_finds_its_answer_exactly_stops_there():
    assert largest(lambda x: 0.0 if x <= 3.0 else 1.0, 0.5, 3.0, precision=1e-12) == 3.0
