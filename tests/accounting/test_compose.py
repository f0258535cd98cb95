"""Several releases together: exact where it is proven, plain sums elsewhere, always from the private side."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpgram.accounting.compose import (
    GaussianCost,
    PlainCost,
    SamplingCost,
    composed_delta,
    composed_epsilon,
)
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.wishart import mixture_delta, sampling_delta, spread
from dpgram.terms.budget import Neighbours
from tests.accounting.inverses import gaussian_epsilon

REPLACE = Neighbours.REPLACE


def test_gaussian_releases_add_squared_shifts():
    assert composed_delta(1.0, [GaussianCost(0.3), GaussianCost(0.4)]) == pytest.approx(gaussian_delta(1.0, 0.5), rel=1e-12)


def test_draws_of_equal_floor_add_degrees_of_freedom():
    together = composed_delta(1.0, [SamplingCost(20, 15.0), SamplingCost(24, 15.0)])
    assert together == pytest.approx(sampling_delta(1.0, 44, 15.0, REPLACE, 5), rel=1e-12)


def test_draws_of_other_floors_are_charged_at_the_lowest():
    mixed = composed_delta(1.0, [SamplingCost(20, 15.0), SamplingCost(24, 30.0)])
    assert sampling_delta(1.0, 20, 15.0, REPLACE, 5) < mixed == pytest.approx(sampling_delta(1.0, 44, 15.0, REPLACE, 5))


def test_a_gaussian_release_and_a_draw_have_one_curve():
    """Against a Monte Carlo of the two losses on the worst neighbours; at 400 000 draws the error is below 1 %."""
    mu, r, floor, epsilon, n = 0.8, 12, 8.0, 0.7, 400_000
    rng = np.random.default_rng(5)
    a = 1 / floor
    loss = a / (2 * (1 + a)) * ((1 + a) * chi2.rvs(r, size=n, random_state=rng) - chi2.rvs(r, size=n, random_state=rng))
    loss += rng.normal(mu**2 / 2, mu, size=n)
    excess = np.maximum(0.0, -np.expm1(epsilon - loss))
    promised = composed_delta(epsilon, [GaussianCost(mu), SamplingCost(r, floor)])
    assert promised == pytest.approx(mixture_delta(epsilon, r, spread(floor), mu=mu))
    assert abs(excess.mean() - promised) < 6.1 * excess.std() / math.sqrt(n)
    assert abs(
        excess.mean() - composed_delta(epsilon, [GaussianCost(1.05 * mu), SamplingCost(r, floor)])
    ) > 6.1 * excess.std() / math.sqrt(n)


def test_plain_costs_add():
    costs = [PlainCost(0.5, 1e-7), PlainCost(0.25, 2e-7), GaussianCost(0.2)]
    assert composed_delta(1.75, costs) == pytest.approx(3e-7 + gaussian_delta(1.0, 0.2))
    assert composed_delta(0.5, costs) == 1.0
    assert composed_epsilon(1e-6, costs) == pytest.approx(0.75 + gaussian_epsilon(7e-7, 0.2))
    assert composed_epsilon(1e-7, costs) == math.inf
    assert composed_epsilon(3e-7, costs[:2]) == 0.75


@pytest.mark.parametrize(
    "costs", [[GaussianCost(0.3)] * 4, [SamplingCost(30, 20.0), GaussianCost(0.1)], [PlainCost(0.1, 1e-13), GaussianCost(1.0)]]
)
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_epsilon_and_delta_invert_each_other_from_the_private_side(costs, delta):
    epsilon = composed_epsilon(delta, costs)
    assert delta * (1 - 1e-6) <= composed_delta(epsilon, costs) <= delta
