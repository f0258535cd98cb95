"""Missing cells in fits and predictions: rows that are dropped have no prediction, and an indicator is set where a cell is missing."""

from __future__ import annotations

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError

SCHEMA = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("income", 0, 100, missing="indicator"),
        dpgram.Numeric("age", 0, 100),
        dpgram.Categorical("sex", ["f", "m"], missing="drop-row"),
        dpgram.Boolean("urban", missing="drop-row"),
        dpgram.Date("seen", "2020-01-01", "2021-01-01", missing="indicator"),
        dpgram.Numeric("y", -50, 150),
        dpgram.Numeric("unused", 0, 1),
    ],
)


def table(rows=20_000, seed=0):
    rng = np.random.default_rng(seed)
    income, age = rng.uniform(0, 100, rows), rng.uniform(20, 80, rows)
    hidden = rng.random(rows) < 0.3
    y = 10 + 0.4 * np.where(hidden, 50.0, income) + 15 * hidden + 0.2 * age + rng.normal(0, 2, rows)
    day = rng.integers(0, 300, rows)
    return {
        "income": np.where(hidden, np.nan, income),
        "age": np.where(rng.random(rows) < 0.1, np.nan, age),
        "sex": rng.choice(np.array(["f", "m", None], dtype=object), rows),
        "urban": rng.random(rows) < 0.5,
        "seen": np.datetime64("2020-01-01") + day.astype("timedelta64[D]"),
        "y": y,
        "unused": np.full(rows, 0.5),
    }


@pytest.fixture(scope="module")
def release():
    return dpgram.release(table(), SCHEMA, epsilon=1e6, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)


def test_an_indicator_is_a_coefficient_beside_its_column(release):
    for fit in (dpgram.regress(release, "y", ["income", "age"]), dpgram.regress(release, "y ~ income + age")):
        assert fit.names == ("(intercept)", "income", "income[missing]", "age")
        assert fit.params["income"] == pytest.approx(0.4, abs=0.01)
        assert fit.params["income[missing]"] == pytest.approx(15, abs=0.3)
        assert [test.name for test in fit.joint_tests] == ["income", "all features"]
    assert "income[missing]" in dpgram.regress(release, "y ~ .").names
    assert dpgram.regress(release, "y", ["income[missing]"]).names == ("(intercept)", "income[missing]")


@pytest.mark.parametrize("target", ["income", "income ~ age", {"income": 1.0, "y": 2.0}, "seen"])
def test_a_column_with_an_indicator_is_no_target(release, target):
    with pytest.raises(ModelError, match="cannot be a target, because its missing cells count as the middle of its bounds"):
        dpgram.regress(release, target)
    assert dpgram.regress(release, "income[missing]", ["age"]).names == ("(intercept)", "age")
    assert dpgram.regress(release, "`income[missing]` ~ age").target == "income[missing]"


def test_a_missing_cell_in_a_column_that_drops_rows_has_no_prediction(release):
    fit = dpgram.regress(release, "y", ["income", "age", "sex"])
    whole = {
        "income": [40.0, None, 40.0, 40.0, 40.0],
        "age": [50.0, 50.0, None, 50.0, np.inf],
        "sex": ["f", "m", "f", None, "f"],
    }
    found = fit.predict(whole)
    assert np.isnan(found).tolist() == [False, False, True, True, True]
    p = fit.estimates
    assert found[0] == pytest.approx(p["(intercept)"] + 40 * p["income"] + 50 * p["age"])
    assert found[1] == pytest.approx(p["(intercept)"] + 50 * p["income"] + p["income[missing]"] + 50 * p["age"] + p["sex[m]"])
    ends = fit.predict(whole, interval="observation")
    for part in ends.values():
        assert np.isnan(part).tolist() == [False, False, True, True, True]


def test_columns_that_a_model_does_not_use_drop_nothing(release):
    fit = dpgram.regress(release, "y", ["income"])
    assert np.isfinite(fit.predict({"income": [None, 3.0]})).all()
    assert np.isfinite(fit.predict({"income": [None, 3.0], "age": [None, None], "y": [None, 1.0]})).all()


def test_words_of_the_label(release):
    from dpgram.report.columns import declared

    words = {column.name: declared(column) for column in SCHEMA.columns}
    assert words["income"] == "clamped to [0, 100]; missing cells become the midpoint, and 1 in income[missing]"
    assert words["age"].endswith("; rows with a missing cell do not count")
    assert words["sex"].endswith("count as missing; rows with a missing cell do not count")
    assert words["urban"] == "0 or 1; rows with a missing cell do not count"
    assert words["seen"].endswith("(UTC); missing cells become the midpoint, and 1 in seen[missing]")
    assert declared(dpgram.Boolean("b", missing=True)) == "0 or 1; missing cells become 1"
    assert declared(dpgram.Numeric("n", 0, 1, missing=0.25)).endswith("missing cells become 0.25")
    assert declared(dpgram.Date("d", "2020-01-01", "2021-01-01", missing="2020-02-03")).endswith(
        "missing cells become 2020-02-03"
    )
    assert declared(dpgram.Categorical("c", ["a", "b"], missing="reference")).endswith("missing cells become the reference")


def test_means_and_variances_say_that_missing_cells_count_as_the_middle():
    """The mean of income is pulled to the middle of its bounds, which nobody could tell from the number."""
    made = dpgram.release(table(), SCHEMA, epsilon=100, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    told = [note for note in dpgram.covariance(made).to_dict()["notes"] if "middle" in note]
    assert len(told) == 1
    assert "Missing cells of income and seen count as the middle" in told[0]
    assert "income[missing] and seen[missing]" in told[0]
    assert told[0] in dpgram.pca(made).to_dict()["notes"]
    assert not any("middle" in note for note in dpgram.covariance(made, ["age", "y"]).to_dict()["notes"])


def derived_release():
    """The logarithm and the products of a column with an indicator."""
    columns = [dpgram.Numeric("income", 0, 100, missing="indicator"), dpgram.Numeric("y", -50, 150), dpgram.Boolean("urban")]
    derived = [dpgram.Log1p("log_income", of="income"), dpgram.Product("both", of=("income", "urban"))]
    schema = dpgram.Schema(unit="person", columns=columns, derived=derived)
    return dpgram.release(table(), schema, epsilon=100, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)


@pytest.mark.parametrize("target", ["log_income", "both"])
def test_what_is_computed_from_a_column_with_an_indicator_is_no_target_either(target):
    made = derived_release()
    for asked in (target, f"{target} ~ y", {target: 1.0, "y": 2.0}):
        with pytest.raises(
            ModelError, match=f"'{target}' cannot be a target, because it is computed from 'income', whose missing"
        ):
            dpgram.regress(made, asked, None if "~" in asked else ["urban"])
    assert dpgram.regress(made, "income[missing]", ["urban"]).target == "income[missing]"


def test_a_fit_says_that_filled_cells_of_a_derived_column_are_not_marked():
    made = derived_release()

    def told(*features):
        return [note for note in dpgram.regress(made, "y", features).notes if "is filled in" in note]

    (note,) = told("log_income")
    assert "log_income is filled in where a cell of income is missing" in note
    assert "Add income[missing] to the features" in note
    assert note in str(dpgram.regress(made, "y", ["log_income"]).summary()).replace("\n  ", " ")
    assert told("log_income", "income[missing]") == told("income", "log_income") == told("income") == told("urban") == []


FILLED = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("a", 0, 10, missing="midpoint"),
        dpgram.Numeric("b", 0, 10, missing=2.5),
        dpgram.Numeric("x", 0, 1),
        dpgram.Boolean("told"),
        dpgram.Categorical("c", ["u", "v", "w"]),
        dpgram.Categorical("own", ["u", "v"], missing="level"),
        dpgram.Date("day", "2020-01-01", "2021-01-01", missing="2020-03-04"),
    ],
    derived=[dpgram.Product("ab", of=("a", "b"))],
)


@pytest.fixture(scope="module")
def filled():
    rng = np.random.default_rng(1)
    rows = {name: rng.uniform(0, 1, 2000) for name in "abx"}
    rows |= {"told": rng.random(2000) < 0.5, "c": rng.choice(list("uvw"), 2000), "own": rng.choice(list("uv"), 2000)}
    rows["day"] = np.datetime64("2020-01-01") + rng.integers(0, 300, 2000).astype("timedelta64[D]")
    return dpgram.release(rows, FILLED, epsilon=1e4, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("a", {"a": "the midpoint"}),
        ("b", {"b": "2.5"}),
        ("ab", {"a": "the midpoint", "b": "2.5"}),
        ("told", {"told": "0"}),
        ("c[v]", {"c": "the reference"}),
        ("day", {"day": "2020-03-04"}),
        ("x", {}),
        ("own[v]", {}),
    ],
)
def test_a_fit_says_that_missing_cells_of_its_target_count_as_a_value(filled, target, said):
    """Nothing in the release tells them from others, so nothing else would say how far they move the coefficients."""
    feature = "x" if target != "x" else "a"
    told = [note for note in dpgram.regress(filled, target, [feature]).notes if note.startswith("Missing cells of")]
    assert told == [
        f"Missing cells of {name} count as {value}. If many are missing, this biases all coefficients, and the release does not say how "
        f"many are."
        for name, value in said.items()
    ]


def test_logits_and_regressions_with_instruments_say_it_too(filled):
    assert any("Missing cells of told count as 0." in note for note in dpgram.logit(filled, "told", ["x"]).notes)
    assert any("Missing cells of b count as 2.5." in note for note in dpgram.iv(filled, "b ~ 1 + [ x ~ a ]").notes)
