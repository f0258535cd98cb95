"""Forecasts along epsilon and rows, and the smallest of either that is good enough."""

import math

import pytest

from dpgram.errors import PlanError
from dpgram.mechanisms import registry
from dpgram.planning.curves import curve, smallest
from dpgram.planning.expected import expect
from dpgram.terms.budget import Budget
from tests.planning.test_forecast import GROUND

ONE = {"mechanisms": ["gaussian-noise"], "copies": 12}


def width(epsilon, rows):
    return expect(GROUND, registry.find("gaussian-noise"), Budget(epsilon, 1e-6), rows, copies=12).typical.width


def test_curves_fall_towards_the_floor():
    for quantity in ("epsilon", "rows"):
        found = curve(GROUND, quantity, Budget(1.0, 1e-6), 50_000, points=5, **ONE)
        (errors,) = found.errors.values()
        assert len(found.at) == len(errors) == len(found.sampling) == 5
        assert list(errors) == sorted(errors, reverse=True)
        assert all(e >= 0.99 * s for e, s in zip(errors, found.sampling, strict=True))
        assert found.to_dict()["errors"]["gaussian-noise"] == list(errors)


def test_curves_from_the_smallest_budgets_and_tables_are_made():
    assert curve(GROUND, "rows", Budget(1.0, 1e-6), 1, points=3, **ONE).at[0] >= 7
    assert curve(GROUND, "epsilon", Budget(1e-6, 1e-6), 50, points=3, **ONE).at[0] >= 1e-3


def test_the_smallest_epsilon_reaches_the_width_and_a_smaller_one_does_not():
    wanted = 1.02 * width(0.7, 50_000)
    found = smallest(GROUND, "epsilon", wanted, 1e-6, rows=50_000, **ONE)
    assert found.value == pytest.approx(0.7, rel=0.05)
    assert found.mechanism == "gaussian-noise"
    assert width(found.value, 50_000) <= wanted
    assert width(found.value / 1.03, 50_000) > wanted
    assert f"epsilon {found.value:g}" in found.in_words


def test_the_fewest_rows_reach_the_width_and_fewer_do_not():
    wanted = 1.02 * width(1.0, 30_000)
    found = smallest(GROUND, "rows", wanted, 1e-6, epsilon=1.0, **ONE)
    assert found.value == pytest.approx(30_000, rel=0.05)
    assert found.value == int(found.value)
    assert width(1.0, int(found.value)) <= wanted < width(1.0, int(found.value / 1.03))


def test_the_best_mechanism_answers():
    wanted = 1.02 * width(0.7, 50_000)
    found = smallest(GROUND, "epsilon", wanted, 1e-6, rows=50_000, mechanisms=["gaussian-sketch", "gaussian-noise"], copies=12)
    assert found.mechanism == "gaussian-noise"


def test_where_nothing_gets_there_the_answer_says_why():
    impossible = smallest(GROUND, "epsilon", 1e-4, 1e-6, rows=1000, **ONE)
    assert impossible.value is None
    assert "without any privacy" in impossible.in_words
    sketch = smallest(GROUND, "rows", 1e-3, 1e-6, epsilon=1.0, mechanisms=["gaussian-sketch"], copies=12)
    assert sketch.value is None
    assert "Nothing up to 10,000,000,000 rows" in sketch.in_words


def test_a_width_that_everything_reaches_gives_the_smallest_there_is():
    assert smallest(GROUND, "epsilon", 1e9, 1e-6, rows=10**9, **ONE).value == pytest.approx(1e-3)


@pytest.mark.parametrize("wrong", [0, -1.0, math.inf, math.nan, "wide"])
def test_widths_that_make_no_sense_are_refused(wrong):
    with pytest.raises(PlanError, match="target width"):
        smallest(GROUND, "epsilon", wrong, 1e-6, rows=100)


def test_what_is_missing_is_named():
    with pytest.raises(PlanError, match="table_rows is not given"):
        smallest(GROUND, "epsilon", 0.1, 1e-6)
    with pytest.raises(PlanError, match="epsilon is not given"):
        smallest(GROUND, "rows", 0.1, 1e-6)
    with pytest.raises(PlanError, match="must be epsilon or rows"):
        smallest(GROUND, "delta", 0.1, 1e-6, rows=5)
