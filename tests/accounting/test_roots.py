"""The search that every calibration rests on: what it returns has been asked and met the aim, in few evaluations, whatever the curve."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpgram.accounting.chi_square import _by_panels, log_density, log_integral
from dpgram.accounting.roots import epsilon_for, largest, smallest


class Asked:
    """A curve that remembers what it was asked."""

    def __init__(self, curve):
        self.curve, self.values = curve, {}

    def __call__(self, x):
        self.values[x] = self.curve(x)
        return self.values[x]


CURVES = {
    "normal": lambda x: float(ndtr(3 * math.log(x))),
    "shallow": lambda x: x / (1 + x) / 2,
    "steps": lambda x: min(1.0, math.floor(8 * x) / 100),
    "a jump": lambda x: 0.0 if x < 0.3 else 1.0,
    "underflows": lambda x: math.exp(-min(1e4, x**-6)),
    "rises late": lambda x: 1e-12 + (0.0 if x < 1e6 else min(1.0, (x / 1e6 - 1) ** 3)),
    "rough": lambda x: min(1.0, x / 10 + 1e-9 * math.sin(1e12 * x)),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("aim", [1e-9, 0.02, 0.4])
@pytest.mark.parametrize("start", [1e-8, 0.7, 1e9])
@pytest.mark.parametrize("slope", [0.01, 3.0, 1000.0])
def test_what_comes_back_was_asked_and_its_neighbour_failed(name, aim, start, slope):
    curve = Asked(CURVES[name])
    found = largest(curve, aim, start, slope=slope, precision=1e-10)
    assert curve.values[found] <= aim
    failed = [x for x, value in curve.values.items() if value > aim]
    assert found < min(failed) <= found * (1 + 1.1e-10)
    assert len(curve.values) < 150


@settings(max_examples=50, deadline=None)
@given(st.floats(-6, 6), st.floats(2, 30), st.floats(-8, -0.5), st.floats(0.7, 1.4))
def test_a_curve_that_is_straight_in_its_height_takes_few_steps(height, slope, log_aim, wrong):
    curve = Asked(lambda x: float(ndtr(height + slope * math.log(x))))
    found = largest(curve, 10**log_aim, 1.0, slope=wrong * slope)
    assert len(curve.values) <= 10
    assert curve.values[found] <= 10**log_aim


def test_the_ends_of_the_search():
    assert largest(lambda x: 0.0, 0.5, 1.0, ceiling=1e12) == 1e12
    assert largest(lambda x: 1.0, 0.5, 1.0) == 0.0
    assert smallest(lambda x: 1.0, 0.5, 1.0) == math.inf
    assert smallest(lambda x: 1.0 if x < 1e6 else 0.0, 0.5, 1.0, most=1e5) == math.inf
    assert epsilon_for(lambda epsilon: 0.0, 0.5) == 0.0
    assert epsilon_for(lambda epsilon: math.exp(-epsilon), 0.5) == pytest.approx(math.log(2), rel=1e-11)


@pytest.mark.parametrize("r", [1, 2.5, 44, 1e4, 1e9])
@pytest.mark.parametrize("power", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("from_the_middle", [False, True])
def test_the_quick_rules_agree_with_panels(r, power, from_the_middle):
    """Over the whole line, and from a point where the integrand starts like x^3, with a jump, or like a square root."""
    low = 0.1 / math.sqrt(r) if from_the_middle else -120 / min(math.sqrt(r), r)
    high = 40 / math.sqrt(r)

    def log_integrand(y):
        with np.errstate(all="ignore"):
            return log_density(y, r) + (power * np.log((y - low) * math.sqrt(r)) if power else 0.0)

    parts = np.linspace(low, high, 9)
    exact = np.logaddexp.reduce([_by_panels(log_integrand, a, b) for a, b in pairwise(parts)])
    assert log_integral(log_integrand, low, high) == pytest.approx(exact, rel=0, abs=1e-6 if power == 0.5 else 3e-13)
