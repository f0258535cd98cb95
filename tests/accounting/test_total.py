"""Totals of several releases: never below the truth, and close to it where the truth is known."""

import math
from fractions import Fraction

import mpmath
import pytest

from dpgram.accounting import total
from dpgram.accounting.compose import GaussianCost, PlainCost, SamplingCost, composed_delta, composed_epsilon
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.total import Spending, decimal, numerical_delta, rounded_down, rounded_up
from dpgram.accounting.wishart import spread
from dpgram.terms.budget import Budget

pytest.importorskip("dp_accounting", reason="dp-accounting is not installed: pip install 'dpgram[accounting]'")


def optimal(epsilon, delta, count, at):
    """The exact curve of ``count`` mechanisms of which only (epsilon, delta) is known (Kairouz, Oh and Viswanath 2015)."""
    mass = 0.0
    for k in range(count + 1):
        loss = (count - 2 * k) * epsilon
        if loss > at:
            weight = math.comb(count, k) * math.exp((count - k) * epsilon) / (1 + math.exp(epsilon)) ** count
            mass += weight * -math.expm1(at - loss)
    return 1 - (1 - delta) ** count * (1 - mass)


@pytest.mark.parametrize(("epsilon", "delta", "count", "at"), [(0.1, 1e-9, 30, 2.0), (0.5, 1e-8, 10, 4.0), (1.0, 1e-7, 4, 3.5)])
def test_plain_costs_compose_numerically_from_above(epsilon, delta, count, at):
    truth = optimal(epsilon, delta, count, at)
    found = numerical_delta(at, [PlainCost(epsilon, delta)] * count, 1e-6)
    assert truth <= found <= truth * 1.1 + 1e-15


def test_rounding_in_the_library_does_not_take_a_total_below_the_truth():
    """The curve of 200 costs at epsilon 10, to 50 digits, is 6.66639e-12; dp-accounting gives 6.66506e-12."""
    assert numerical_delta(10.0, [PlainCost(0.1, 1e-14)] * 200, 1e-11) >= 6.6664e-12


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0])
def test_a_gaussian_with_a_tiny_plain_cost_is_nearly_the_gaussian(mu):
    found = numerical_delta(1.0, [GaussianCost(mu), PlainCost(1e-6, 1e-30)], 1e-6)
    assert gaussian_delta(1.0, mu) <= found <= gaussian_delta(1.0, mu) * 1.02 + 2e-13


def test_a_draw_counts_for_no_less_than_its_curve():
    costs = [SamplingCost(44.0, 40.0), PlainCost(1e-6, 1e-30)]
    truth = composed_delta(1.0, costs[:1])
    assert truth <= numerical_delta(1.0, costs, 1e-6) < 1e-4  # a quantile in place of a mixture is far from tight


def test_many_small_plain_costs_fit_where_their_sum_does_not():
    one = Budget(0.05, 1e-10)
    spending = Spending((one,) * 200, (PlainCost(0.05, 1e-10),) * 200)
    budget = Budget(5.0, 1e-6)
    assert not spending.fits_plainly(budget)
    assert spending.fits(budget)
    assert optimal(0.05, 1e-10, 200, spending.epsilon(1e-6)) <= 1e-6


def test_without_the_library_the_sum_counts(monkeypatch):
    monkeypatch.setattr(total, "find_spec", lambda name: None)
    one = Budget(0.05, 1e-10)
    spending = Spending((one,) * 200, (PlainCost(0.05, 1e-10),) * 200)
    assert numerical_delta(3.0, spending.costs, 1e-6) == 1.0
    assert spending.epsilon(1e-6) == pytest.approx(10.0)


def test_nothing_spent_is_nothing():
    assert Spending().epsilon(1e-6) == 0.0
    assert Spending().fits(Budget(1e-6, 1e-30))


def test_an_epsilon_that_no_bound_knows_is_infinite():
    assert Spending((Budget(1.0, 1e-3),), (PlainCost(1.0, 1e-3),)).epsilon(1e-6) == math.inf


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(3, 10), Fraction(10**18 + 1, 3)])
def test_rounding_keeps_its_side(exact):
    assert decimal(rounded_down(exact)) <= exact <= decimal(rounded_up(exact))


class Half:
    """A distribution of losses whose delta is always one half."""

    def get_delta_for_epsilon(self, epsilon):
        return 0.5


def test_what_the_library_finds_is_enlarged_by_its_roundings(monkeypatch):
    monkeypatch.setattr(total, "loss_distribution", lambda mu, plain: Half())
    assert numerical_delta(1.0, [GaussianCost(1.0), PlainCost(0.1, 1e-9)], 1e-6) == pytest.approx(0.5005 + 1e-13, rel=1e-15)


@pytest.mark.parametrize(("degrees", "target"), [(3.0, 1e-3), (44.0, 1e-6), (1000.0, 1e-12)])
def test_a_draw_counts_as_a_gaussian_shift_that_it_exceeds_no_more_often_than_is_said(degrees, target, monkeypatch):
    shifts = []
    monkeypatch.setattr(total, "loss_distribution", lambda mu, plain: shifts.append(mu) or Half())
    found = numerical_delta(1.0, [SamplingCost(degrees, 4.0), GaussianCost(0.5), PlainCost(0.1, 1e-9)], target)
    with mpmath.workdps(40):
        quantile = (mpmath.mpf(shifts[0]) ** 2 - mpmath.mpf(0.25)) / spread(4.0)
        exceeded = mpmath.gammainc(mpmath.mpf(degrees) / 2, quantile / 2, regularized=True)
    assert 1e-3 * target * (1 - 1e-5) <= exceeded <= 1e-3 * target
    assert found == pytest.approx(0.5005 + 1e-3 * target, rel=1e-12)


def test_one_cost_alone_is_not_composed_by_the_library():
    assert numerical_delta(2.0, [PlainCost(1.0, 1e-9)], 1e-6) == 1.0
    assert numerical_delta(2.0, [GaussianCost(0.5)], 1e-6) == 1.0
    assert numerical_delta(2.0, [PlainCost(1.0, 1e-9)] * 2, 1e-6) < 1e-6


@pytest.mark.parametrize("mu", [0.05, 0.5])
def test_the_distribution_of_losses_is_pessimistic(mu):
    for epsilon in (0.1, 0.77, 1.0):
        assert total.loss_distribution(mu, ()).get_delta_for_epsilon(epsilon) + 1e-13 >= gaussian_delta(epsilon, mu)


def test_budgets_that_are_met_exactly_are_met():
    one = Budget(0.1, 1e-9)
    spending = Spending((one,) * 3, (PlainCost(0.1, 1e-9),) * 3)
    assert spending.fits_plainly(Budget(0.3, 3e-9))
    assert not spending.fits_plainly(Budget(0.3, 2.9999999e-9))
    assert not spending.fits_plainly(Budget(0.2999999, 3e-9))
    delta = 1e-6 * (1 - 1e-9)
    assert Spending((Budget(1.0, delta),), (PlainCost(1.0, delta),)).holds(1.0, 1e-6)


@pytest.mark.parametrize("mu", [0.002, 0.05, 0.6, 5.0])
def test_the_epsilon_of_a_single_release_to_a_part_in_a_million(mu):
    costs = (GaussianCost(mu),)
    found = Spending((Budget(1.0, 0.5),), costs).epsilon(1e-5)
    exact = composed_epsilon(1e-5 * (1 - 1e-9), costs)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1.1e-6)
