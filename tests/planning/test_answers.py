"""The smallest epsilon, or number of rows, for a wanted width; and what is said where nothing will be identified."""

import math
from dataclasses import replace

import pytest

import dpgram
from dpgram.errors import PlanError
from dpgram.mechanisms import registry
from dpgram.planning.answers import smallest, unidentified
from dpgram.planning.curves import LARGEST
from dpgram.planning.expected import expect
from dpgram.planning.forecast import forecast
from dpgram.terms.budget import Budget
from tests.planning.test_forecast import GROUND

ONE = {"mechanisms": ["gaussian-noise"], "copies": 12}
ASKED = {"mechanisms": ["gaussian-noise"]}


def width(epsilon, rows):
    return expect(GROUND, registry.find("gaussian-noise"), Budget(epsilon, 1e-6), rows, copies=12).typical.width


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
    assert "even without privacy" in impossible.in_words
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


def of(name, expected):
    return next(c for c in expected.coefficients if c.name == name)


@pytest.mark.parametrize("name", ["x2", "x4", "(intercept)"])
def test_a_coefficient_can_be_named(name):
    """The answer is that of the named one, in its own units, and not that of the typical one."""
    there = expect(GROUND, registry.find("gaussian-noise"), Budget(0.7, 1e-6), 50_000, copies=12)
    wanted = 1.02 * of(name, there).width
    found = smallest(GROUND, "epsilon", {name: wanted}, 1e-6, rows=50_000, **ONE)
    assert found.widths == {name: wanted}
    assert found.value == pytest.approx(0.7, rel=0.05)
    assert name in found.in_words
    for value, enough in ((found.value, True), (found.value / 1.03, False)):
        at = expect(GROUND, registry.find("gaussian-noise"), Budget(value, 1e-6), 50_000, copies=12)
        assert (of(name, at).width <= wanted) == enough


def test_of_several_names_all_are_as_narrow_as_wanted():
    there = expect(GROUND, registry.find("gaussian-noise"), Budget(0.7, 1e-6), 50_000, copies=12)
    wide, narrow = 3 * of("x1", there).width, 1.02 * of("x2", there).width
    both = smallest(GROUND, "epsilon", {"x1": wide, "x2": narrow}, 1e-6, rows=50_000, **ONE)
    alone = smallest(GROUND, "epsilon", {"x2": narrow}, 1e-6, rows=50_000, **ONE)
    assert both.value == alone.value
    too_few = smallest(GROUND, "epsilon", {"x1": wide, "x2": 1e-6}, 1e-6, rows=50_000, **ONE)
    assert too_few.value is None
    assert "the interval of x2 is" in too_few.in_words


def test_names_that_there_are_not_are_refused():
    with pytest.raises(PlanError, match=r"given for 'x0', but the coefficients of this regression are: \(intercept\), x1"):
        smallest(GROUND, "epsilon", {"x0": 0.1}, 1e-6, rows=100)  # the target
    with pytest.raises(PlanError, match="names no coefficient"):
        smallest(GROUND, "epsilon", {}, 1e-6, rows=100)
    with pytest.raises(PlanError, match="units of the coefficient of x3"):
        smallest(GROUND, "epsilon", {"x3": -1.0}, 1e-6, rows=100)


def test_a_plan_is_made_for_the_answer_and_its_width_is_as_wanted():
    wanted = 1.1 * width(0.7, 50_000)
    made = dpgram.plan(GROUND.schema, delta=1e-6, table_rows=50_000, target_width={"x2": wanted}, **ASKED)
    assert made.forecast.budget.epsilon == made.answer.value
    assert of("x2", made.forecast.of("gaussian-noise")).width <= wanted
    assert made.to_dict()["answer"]["widths"] == {"x2": wanted}


def identified(mechanism, epsilon, rows):
    return expect(GROUND, registry.find(mechanism), Budget(epsilon, 1e-6), rows, copies=48).identified


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_where_nothing_is_identified_the_budget_and_the_rows_that_do_are_told(mechanism):
    """Both were tried: they identify the typical coefficient, and a good deal less does not."""
    made = forecast(GROUND, Budget(0.02, 1e-6), 2000, mechanisms=[mechanism], copies=12)
    found = unidentified(made, GROUND, mechanisms=[mechanism])
    assert 0.02 < found.epsilon <= 20
    assert identified(mechanism, found.epsilon, 2000)
    assert not identified(mechanism, found.epsilon / 1.6, 2000)
    assert identified(mechanism, 0.02, found.rows)
    assert not identified(mechanism, 0.02, int(found.rows / 1.8))
    assert found.in_words.startswith("No coefficient will be identified at epsilon 0.02 with 2,000 rows")
    assert f"epsilon {found.epsilon:g} is enough" in found.in_words
    assert f"{found.rows:,} rows are enough" in found.in_words


def test_where_no_usual_budget_is_enough_that_is_said():
    for rows in (5, 30):  # fewer than coefficients, and few
        made = forecast(GROUND, Budget(0.5, 1e-6), rows, mechanisms=["gaussian-noise"], copies=12)
        found = unidentified(made, GROUND, mechanisms=["gaussian-noise"])
        assert found.epsilon is None
        assert "no budget up to epsilon 20 is enough" in found.in_words
        assert identified("gaussian-noise", 0.5, found.rows)


def test_where_no_number_of_rows_is_enough_that_is_said(monkeypatch):
    monkeypatch.setitem(LARGEST, "rows", 100.0)
    made = forecast(GROUND, Budget(0.02, 1e-6), 50, mechanisms=["gaussian-noise"], copies=12)
    found = unidentified(made, GROUND, mechanisms=["gaussian-noise"])
    assert found.rows is None
    assert "no number up to 100 rows is enough" in found.in_words


def test_a_plan_says_so_and_one_that_identifies_does_not():
    hidden = dpgram.plan(GROUND.schema, epsilon=0.02, delta=1e-6, table_rows=2000, **ASKED)
    assert hidden.to_dict()["unidentified"]["epsilon"] == hidden.unidentified.epsilon > 0.02
    seen = dpgram.plan(GROUND.schema, epsilon=2.0, delta=1e-6, table_rows=100_000, **ASKED)
    assert seen.unidentified is None
    assert seen.to_dict()["unidentified"] is None
    assert (
        dpgram.plan(GROUND.schema, epsilon=2.0, delta=1e-6, table_rows=100_000, mechanisms=["noisy-inverse"]).unidentified
        is None
    )


def test_most_coefficients_are_told_from_all():
    made = forecast(GROUND, Budget(0.02, 1e-6), 2000, mechanisms=["gaussian-noise"], copies=12)
    (only,) = made.mechanisms
    one_seen = replace(only, coefficients=(replace(only.coefficients[0], width=1.0), *only.coefficients[1:]))
    found = unidentified(replace(made, mechanisms=(one_seen,)), GROUND, mechanisms=["gaussian-noise"])
    assert found.in_words.startswith("Most coefficients will not be identified")
