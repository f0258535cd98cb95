"""Marginal effects: by hand from the coefficients, and the derivative and differences of predictions."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dpgram
from dpgram.errors import ModelError, UnknownColumnError
from tests.analysis.test_predict import exact_release
from tests.needs import package
from tests.report.test_markup import compiled

COLUMNS = [
    dpgram.Numeric("age", 10, 90),
    dpgram.Numeric("dose", 0, 8),
    dpgram.Boolean("female", missing=False),
    dpgram.Categorical("place", ["n", "s", "w"]),
    dpgram.Numeric("size", 0.5, 4),
    dpgram.Date("when", "2020-01-01", "2021-01-01"),
    dpgram.Numeric("y", -100, 200),
]
DERIVED = [
    dpgram.Power("age2", "age"),
    dpgram.Power("age3", "age", 3),
    dpgram.Log1p("ldose", "dose"),
    dpgram.Log("lsize", "size"),
    dpgram.Product("age_female", ["age", "female"]),
    dpgram.Product("dose_age", ["dose", "age"]),
    dpgram.Product("age_place", ["place", "age"]),
    dpgram.Product("female_place", ["female", "place"]),
    dpgram.Product("age_w", ["age", "place[w]"]),
    dpgram.Interval("old", "age", 65),
    dpgram.DatePart("month", "when", "month"),
]
SCHEMA = dpgram.Schema(unit="person", columns=COLUMNS, derived=DERIVED)


def rows(count=8000, seed=0):
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(10, 90, count), rng.uniform(0, 8, count)
    female, place = rng.random(count) < 0.4, rng.choice(["n", "s", "w"], count, p=[0.5, 0.3, 0.2])
    y = 3 * age - 0.03 * age**2 + 0.2 * age * female + 5 * np.log1p(dose) - 4 * (place == "s") + rng.normal(scale=5, size=count)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, count), unit="D")
    return {
        "age": age,
        "dose": dose,
        "female": female,
        "place": place,
        "size": rng.uniform(0.5, 4, count),
        "when": when,
        "y": np.clip(y, -100, 200),
    }


TABLE = rows()
RELEASE = exact_release(pa.table(TABLE), SCHEMA)
FEATURES = ["age", "age2", "age3", "age_female", "dose_age", "age_place", "female", "place", "dose", "ldose", "female_place"]
FIT = dpgram.regress(RELEASE, "y", FEATURES, estimator="debiased")
MEANS = {"age": TABLE["age"].mean(), "dose": TABLE["dose"].mean(), "female": TABLE["female"].mean()}
SHARES = {level: np.mean(TABLE["place"] == level) for level in ("s", "w")}


def by_hand(weights):
    """A combination of coefficients, with its standard error."""
    row = np.array([weights.get(name, 0.0) for name in FIT.names])
    assert set(weights) <= set(FIT.names)
    return row @ FIT.params.to_numpy(), np.sqrt(row @ FIT.cov_params() @ row)


def test_a_number_at_given_values_and_at_the_means():
    (found,) = FIT.marginal_effects("age", at={"age": 40, "female": True, "dose": 2, "place": "s"}).effects
    value, se = by_hand({"age": 1, "age2": 80, "age3": 4800, "age_female": 1, "dose_age": 2, "age_place[s]": 1})
    assert (found.effect, found.se) == pytest.approx((value, se), rel=1e-9)
    assert (found.lower, found.upper) == pytest.approx((value - stats.norm.isf(0.025) * se, value + stats.norm.isf(0.025) * se))
    assert found.z == pytest.approx(value / se)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(value / se)))
    (found,) = FIT.marginal_effects("age").effects
    weights = {"age": 1, "age2": 2 * MEANS["age"], "age3": 3 * MEANS["age"] ** 2, "age_female": MEANS["female"]}
    weights |= {"dose_age": MEANS["dose"], **{f"age_place[{level}]": share for level, share in SHARES.items()}}
    assert found.effect == pytest.approx(by_hand(weights)[0], rel=1e-3)


@pytest.mark.parametrize("column", ["age", "dose"])
def test_effects_are_slopes_of_predictions(column):
    at = {"age": 50, "dose": 3.0, "female": True, "place": "w"}
    step = 1e-3
    ends = [{name: [value] for name, value in (at | {column: at[column] + by}).items()} for by in (-step, step)]
    low, high = (FIT.predict(one)[0] for one in ends)
    (found,) = FIT.marginal_effects(column, at=at).effects
    assert found.effect == pytest.approx((high - low) / (2 * step), rel=1e-4)


def test_levels_and_truth_values_are_differences_of_predictions():
    at = {"age": 50, "dose": 3.0, "female": True, "place": "n"}
    rows_of = lambda **changed: {name: [value] for name, value in (at | changed).items()}  # noqa: E731
    base = FIT.predict(rows_of())[0]
    found = FIT.marginal_effects("place", at={k: v for k, v in at.items() if k != "place"}).effects
    assert [one.name for one in found] == ["place[s]", "place[w]"]
    for one, level in zip(found, "sw", strict=True):
        assert one.effect == pytest.approx(FIT.predict(rows_of(place=level))[0] - base, rel=1e-6)
    (found,) = FIT.marginal_effects("female", at={"age": 50, "place": "w"}).effects
    wanted = FIT.predict(rows_of(place="w"))[0] - FIT.predict(rows_of(place="w", female=False))[0]
    assert found.effect == pytest.approx(wanted, rel=1e-6)


def test_a_single_level_as_a_factor():
    fit = dpgram.regress(RELEASE, "y", ["age", "age_w", "place"])
    effects = fit.marginal_effects("age", at={"place": ["n", "w"]}).effects
    assert effects[1].effect - effects[0].effect == pytest.approx(fit.params["age_w"])


@pytest.mark.package("statsmodels")
def test_they_are_those_of_statsmodels():
    """A t test of the same combination."""
    smf = package("statsmodels.formula.api")
    frame = pd.DataFrame(TABLE).assign(female=TABLE["female"] * 1.0)
    theirs = smf.ols("y ~ age + I(age**2) + female + age:female", frame).fit(use_t=False)
    fit = dpgram.regress(RELEASE, "y", ["age", "age2", "female", "age_female"])
    for age, female in ((30, 0), (70, 1)):
        test = theirs.t_test([0, 1, 2 * age, 0, female])  # (intercept), age, age squared, female, product
        (found,) = fit.marginal_effects("age", at={"age": age, "female": female}).effects
        assert found.effect == pytest.approx(float(test.effect[0]), rel=1e-5, abs=1e-5)
        assert found.se == pytest.approx(float(test.sd[0, 0]), rel=1e-3)


def test_lists_give_every_combination_and_print():
    found = FIT.marginal_effects("age", at={"age": [20, 40, 60], "female": [False, True]}, confidence=0.9)
    assert [tuple(one.at.values()) for one in found.effects] == [(a, f) for a in (20, 40, 60) for f in (False, True)]
    frame = found.to_frame()
    assert frame.shape == (6, 8)
    assert frame["female"].tolist() == [False, True] * 3
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["effects"][1]["at"] == {"age": 20, "female": True}
    text = str(found)
    assert "Marginal effects of age on y" in text
    assert "[0.05" in text
    assert "NOT PRIVATE" in text
    compiled(found.to_latex())
    assert "| age | 20 |" in found.to_markdown()


def test_a_logarithm():
    fit = dpgram.regress(RELEASE, "y ~ np.log(size) + age")
    effects = fit.marginal_effects("size", at={"size": [1, 2]}).effects
    assert [e.effect for e in effects] == pytest.approx([fit.params["np.log(size)"], fit.params["np.log(size)"] / 2])


def test_without_products_it_is_the_coefficient():
    fit = dpgram.regress(RELEASE, "y", ["age", "when", "place"])
    assert fit.marginal_effects("age").effects[0].effect == pytest.approx(fit.params["age"])
    assert fit.marginal_effects("when").effects[0].effect == pytest.approx(fit.params["when"])
    assert [e.effect for e in fit.marginal_effects("place").effects] == pytest.approx(
        list(fit.params[["place[s]", "place[w]"]])
    )


def test_what_is_not_identified_is_infinite():
    drowned = dpgram.release(rows(60), SCHEMA, epsilon=0.01, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    found = dpgram.regress(drowned, "y", FEATURES).marginal_effects("age")
    assert np.isinf(found.effects[0].upper)
    assert found.effects[0].p_value is None
    assert "inf" in str(found)


@pytest.mark.parametrize(
    ("column", "at", "message"),
    [
        ("age2", None, "'age2' is computed from age, and moves with it. Name the declared column"),
        ("when", None, "the model does not use column 'when'"),
        ("age", {"age": 200}, "column 'age' is 200, but its bounds are [10.0, 90.0]. Choose a value within them"),
        ("age", {"place": "sw"}, "column 'place' has no level 'sw'. Did you mean 'w'? Its levels are n, s, w"),
        ("age", {"female": 3}, "column 'female' is 3 and must be True or False"),
        ("age", {"dose": "much"}, "column 'dose' is 'much' and must be a number"),
        ("age", {"age": []}, "the list of values of 'age' is empty"),
        (
            "age",
            {"when": "2020-05-01"},
            "at names column 'when', but the model does not use it. Its columns are age, dose, female, place",
        ),
        ("age", [30], "at is [30] and must be a dict of columns and values"),
    ],
)
def test_what_cannot_be_asked(column, at, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        FIT.marginal_effects(column, at=at)


@pytest.mark.parametrize(("column", "at"), [(None, None), (["age"], None), (5, None), ("age", {5: [1]})])
def test_a_column_has_a_name(column, at):
    with pytest.raises(ModelError, match="^the name of a column must be text, such as 'age', but it is "):
        FIT.marginal_effects(column, at=at)


def test_columns_that_jump_have_no_marginal_effect():
    with pytest.raises(ModelError, match="the model has 'old', which jumps with 'age', so there is no marginal effect"):
        dpgram.regress(RELEASE, "y", ["age", "old"]).marginal_effects("age")
    with pytest.raises(ModelError, match="the model has 'month', which jumps with 'when'"):
        dpgram.regress(RELEASE, "y", ["month"]).marginal_effects("when")
    with pytest.raises(UnknownColumnError, match="there is no column 'agee'. Did you mean 'age'?"):
        FIT.marginal_effects("agee")


def test_without_an_intercept_column_values_must_be_given():
    schema = dataclasses.replace(SCHEMA, intercept=False, derived=[one for one in DERIVED if one.name == "age_female"])
    made = dpgram.release(TABLE, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    fit = dpgram.regress(made, "y", ["age", "female", "age_female"])
    with pytest.raises(
        ModelError, match="the effect depends on female, whose means need the intercept column.*Give values with at="
    ):
        fit.marginal_effects("age")
    (found,) = fit.marginal_effects("age", at={"female": True}).effects
    assert found.effect == pytest.approx(fit.params["age"] + fit.params["age_female"])
