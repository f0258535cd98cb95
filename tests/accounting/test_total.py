"""Totals of several releases: never below the truth, and close to it where the truth is known."""

import math
from fractions import Fraction

import pytest

from dpgram.accounting import total
from dpgram.accounting.compose import GaussianCost, PlainCost, SamplingCost, composed_delta
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.total import Spending, decimal, numerical_delta, rounded_down, rounded_up
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
