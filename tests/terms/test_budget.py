import math

import numpy as np
import pytest

from dpgram import Budget
from dpgram.errors import BudgetError


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf])
def test_epsilon_must_be_positive_and_finite(epsilon):
    with pytest.raises(BudgetError, match="epsilon is .* and must be a positive, finite number"):
        Budget(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 1.5, math.nan])
def test_delta_must_lie_between_zero_and_one(delta):
    with pytest.raises(BudgetError, match="delta is .* and must lie strictly between 0 and 1"):
        Budget(1.0, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-9, 1e-6), (1.0, 1e-250)])
def test_what_double_precision_cannot_promise_is_refused(epsilon, delta):
    with pytest.raises(BudgetError, match="cannot be guaranteed in double precision"):
        Budget(epsilon, delta)


@pytest.mark.parametrize("bad", ["1", True, None, [1.0], np.array([1.0, 2.0])])
def test_a_budget_is_made_of_numbers(bad):
    with pytest.raises(BudgetError, match="must be a number"):
        Budget(bad, 1e-6)


def test_numpy_numbers_become_floats():
    assert type(Budget(np.float32(1), np.float64(1e-6)).epsilon) is float
