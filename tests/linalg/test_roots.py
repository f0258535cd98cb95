"""Brent's method takes the steps of SciPy's, so that what is computed from a root keeps its bits."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpgram.linalg.roots import root
from dpgram.linalg.rounds import _left, _weight


@pytest.mark.parametrize("dim", [1, 3, 8, 22, 300])
def test_roots_of_what_shrinking_keeps_are_scipys_to_the_last_bit(dim):
    for kept in np.linspace(0.01, 0.99, 60):
        for function in (lambda x: _weight(dim, x) - kept, lambda x: kept - _left(dim, x) * np.exp(-x)):  # noqa: B023
            if function(-12.0) < 0 < function(6.0):
                assert root(function, -12.0, 6.0) == brentq(function, -12.0, 6.0, xtol=1e-12)


def test_so_are_those_of_curved_and_flat_functions_in_both_directions():
    rng = np.random.default_rng(0)
    for steep, at in rng.normal(size=(300, 2)):
        sign = rng.choice([-1.0, 1.0])
        function = lambda x: sign * (math.tanh(30 * abs(steep) ** 3 * (x - at)) + 1e-3 * (x - at) ** 5 + 1e-9 * (x - at))  # noqa: B023, E731
        assert root(function, -9.0, 7.0) == brentq(function, -9.0, 7.0, xtol=1e-12)


def test_a_root_at_an_end_is_found_there():
    assert root(lambda x: x + 9, -9.0, 7.0) == -9.0
    assert root(lambda x: x - 7, -9.0, 7.0) == 7.0
