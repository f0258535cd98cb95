"""Formulas that ask for what was declared: fits at a huge budget, predictions, missing cells, and names that say nothing."""

import dataclasses
from functools import cache

import numpy as np
import pandas as pd
import pytest

import dpgram
from dpgram.encoding.encode import encoded_columns
from dpgram.errors import ModelError, UnderivedError
from dpgram.regression.formula import designs

COLUMNS = [
    dpgram.Numeric("wage", 0, 200),
    dpgram.Numeric("age", 18, 80),
    dpgram.Boolean("female"),
    dpgram.Numeric("earnings", 0, 1e5),
    dpgram.Numeric("hours", 1, 80),
    dpgram.Categorical("region", ["north", "south", "west"]),
]
DERIVED = [
    dpgram.Power("q", "age"),
    dpgram.Product("af", ("female", "age")),
    dpgram.Product("ar", ("region", "age")),
    dpgram.Log1p("le", "earnings"),
    dpgram.Log("lh", "hours"),
    dpgram.Interval("senior", "age", lower=65),
]
FORMULAS = [
    "wage ~ age*female",
    "wage ~ I((age - 40)**2) + I(age / 10) + female",
    "wage ~ np.log1p(earnings) + age:region",
    "wage ~ age*region + I(age >= 65)",
    "np.log1p(earnings) ~ age + I(age**2) + region",
    "wage ~ region/age - 1",
    "wage ~ np.log(hours) + age",
    "np.log(hours) ~ log1p(earnings) + female",
]


@cache
def table(rows=100_000):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, rows),
            "female": rng.random(rows) < 0.5,
            "earnings": rng.uniform(0, 1e5, rows),
            "hours": rng.uniform(1, 80, rows),
            "region": rng.choice(["north", "south", "west"], rows),
        }
    )
    mean = 60 + 0.5 * frame["age"] - 0.01 * (frame["age"] - 40) ** 2 - 0.2 * frame["age"] * frame["female"]
    frame["wage"] = np.clip(mean + 3 * (frame["region"] == "west") + rng.normal(0, 5, rows), 0, 200)
    return frame


@pytest.fixture(scope="module")
def release():
    schema = dpgram.Schema(unit="person", columns=COLUMNS, derived=DERIVED)
    return dpgram.release(table(), schema, epsilon=1e6, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)


@pytest.mark.package("statsmodels")
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_huge_budget_gives_the_coefficients_of_statsmodels(release, formula):
    """To five digits, and to what is left of the noise at this budget, which is small beside the sampling of rows."""
    import statsmodels.formula.api as smf

    theirs = smf.ols(
        formula.replace("I(age >= 65)", "I((age >= 65) * 1.0)").replace(" log1p(", " np.log1p("),
        table().assign(female=table()["female"] * 1.0),
    ).fit()
    ours = dpgram.regress(release, formula)
    found = {_spelt(name): (ours.params[name], ours.bse[name], ours.bse_privacy[name]) for name in ours.names}
    for name, value in theirs.params.items():
        coefficient, se, noise = found[_spelt(name)]
        assert coefficient == pytest.approx(value, rel=1e-5, abs=5 * noise), name
        assert noise < 0.02 * se, name
        assert se == pytest.approx(theirs.bse[name], rel=1e-3), name


def _spelt(name):
    """A name of statsmodels or ours in one way: the factors of a product sorted."""
    plain = name.replace("[T.", "[").replace("Intercept", "(intercept)").replace("I((age >= 65) * 1.0)", "I(age >= 65)")
    return ":".join(sorted(plain.replace("np.log1p", "log1p").split(":")))


@pytest.mark.parametrize("formula", FORMULAS)
def test_predictions_for_rows_of_declared_columns(release, formula):
    """The coefficients times what the formula computes, and a column that the formula does not use may be missing."""
    fit = dpgram.regress(release, formula)
    new = table(50)
    used = [name for name in ("age", "female", "earnings", "hours", "region") if name in formula.partition("~")[2]]
    scaled = encoded_columns(release.schema, new)
    within = np.linalg.solve(fit.design.to_own_units, fit.coefficients - fit.design.offset)
    expected = fit.design.label_unit * scaled @ fit.design.regressors @ within
    if fit.design.names[0] == "(intercept)":
        expected += fit.design.offset[0]
    assert fit.predict(new[used]) == pytest.approx(expected, rel=1e-9)


def test_the_whitened_release_gives_the_same_model():
    schema = dpgram.Schema(unit="person", columns=COLUMNS, derived=DERIVED)
    made = dpgram.release(table(), schema, epsilon=30, delta=1e-6, mechanism="whitened-noise", insecure_seed=0)
    fit = dpgram.regress(made, "wage ~ age*female + I((age - 40)**2)")
    named = dpgram.regress(made, "wage", ["age", "female", "q", "af"])
    assert fit.params["age:female"] == pytest.approx(named.params["af"], rel=1e-6)
    assert fit.params["age"] == pytest.approx(named.params["age"] + 80 * named.params["q"], rel=1e-6)
    assert fit.bse["I((age - 40) ** 2)"] == pytest.approx(named.bse["q"], rel=1e-6)
    lower, upper = fit.conf_int().loc["age:female"]
    assert lower < -0.2 < upper


def test_terms_of_several_columns_are_tested_together(release):
    fit = dpgram.regress(release, "wage ~ age*region")
    assert dict(fit.design.groups) == {"age": (1,), "region": (2, 3), "age:region": (4, 5)}
    assert fit.joint_test("age:region").degrees == 2


def with_missing(of_x, **derived):
    """x with missing cells that are treated so, and its square."""
    columns = [dpgram.Numeric("x", 0, 10, missing=of_x), dpgram.Numeric("y", 0, 10), dpgram.Boolean("b")]
    return dpgram.Schema(
        unit="p", columns=columns, derived=[dpgram.Power("q", "x", **derived), dpgram.Product("xb", ("x", "b"))]
    )


def test_a_square_that_is_another_number_where_a_cell_is_missing_is_not_the_square():
    for schema in (with_missing("drop-row"), with_missing("midpoint", missing=25.0), with_missing(4.0, missing=16.0)):
        assert designs(schema, "y ~ I(x**2)")[0].names == ("(intercept)", "I(x ** 2)")
    for schema in (with_missing("midpoint"), with_missing(4.0, missing=15.0)):
        with pytest.raises(
            UnderivedError, match="'q' of this release is the same except in rows where a cell of 'x' is missing"
        ) as told:
            designs(schema, "y ~ I(x**2)")
        assert "missing = " in str(told.value)  # what the suggested square must say
        assert designs(schema, "y ~ q")[0].names == ("(intercept)", "q")


def test_a_product_with_a_filled_factor_is_not_the_product():
    """A missing x counts as 5, but the product is 0 there. Where a missing x counts as 0, so does the product."""
    assert designs(with_missing(0.0), "y ~ x:b")
    with pytest.raises(UnderivedError, match="'xb' of this release is the same except .* 'x' is missing") as told:
        designs(with_missing("midpoint"), "y ~ x:b")
    assert not told.value.needed
    truth = dpgram.Schema(
        unit="p",
        columns=[dpgram.Numeric("x", 0, 10), dpgram.Boolean("b", missing=True), dpgram.Numeric("y", 0, 1)],
        derived=[dpgram.Product("xb", ("x", "b"))],
    )
    with pytest.raises(UnderivedError, match="except in rows where a cell of 'b' is missing"):
        designs(truth, "y ~ x:b")


def test_a_marked_column_is_the_square_in_every_row():
    """Where x is missing it counts as 5 and the declared square as 50; what is marked makes up for it."""
    schema = with_missing("indicator")
    (plan,) = designs(schema, "y ~ I(x**2)")
    rows = {"x": np.array([1.0, 2.0, np.nan, 7.0]), "y": np.zeros(4), "b": np.zeros(4, bool)}
    scaled = encoded_columns(schema, rows) @ plan.regressors
    assert plan.label_unit * np.linalg.solve(plan.to_own_units.T, scaled.T)[1] == pytest.approx([1, 4, 25, 49])
    assert designs(schema, "y ~ x + I(x**2)")[0].names == ("(intercept)", "x", "x[missing]", "I(x ** 2)")
    with pytest.raises(ModelError, match="cannot be a target, because it is computed from 'x', whose missing cells"):
        designs(schema, "I(x**2) ~ y")
    table = {"x": [1.0, 2.0, None, 7.0] * 50, "y": [1.0, 2.0, 3.0, 4.0] * 50, "b": [True, False] * 100}
    made = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    notes = " ".join(dpgram.regress(made, "y ~ I(x**2)").notes)
    assert "I(x ** 2) is filled in where a cell of x is missing" in notes


def test_products_with_single_levels_and_with_the_reference():
    columns = [
        dpgram.Numeric("x", 0, 10),
        dpgram.Numeric("y", 0, 10),
        dpgram.Categorical("c", ["a", "b", "d"], missing="drop-row"),
    ]
    derived = [dpgram.Product("p", ("x", "c[a]")), dpgram.Product("r", ("x", "c[b]"))]
    schema = dpgram.Schema(unit="p", columns=columns, derived=derived)
    rows = {"x": np.array([1.0, 2.0, 3.0]), "y": np.zeros(3), "c": np.array(["a", "b", "d"], object)}
    (plan,) = designs(schema, "y ~ x:c")
    scaled = encoded_columns(schema, rows) @ plan.regressors
    own = plan.label_unit * np.linalg.solve(plan.to_own_units.T, scaled.T)
    assert plan.names == ("(intercept)", "x:c[a]", "x:c[b]", "x:c[d]")
    assert own[1:] == pytest.approx(np.diag([1.0, 2.0, 3.0]), abs=1e-12)
    without = dataclasses.replace(schema, derived=derived[:1])
    with pytest.raises(UnderivedError, match="x:c"):
        designs(without, "y ~ x:c")
    assert designs(without, "y ~ x:`c[a]`")[0].names == ("(intercept)", "x:c[a]")


def test_a_release_without_an_intercept_column_computes_no_constants():
    schema = dpgram.Schema(unit="p", columns=COLUMNS, derived=DERIVED, intercept=False)
    assert designs(schema, "wage ~ I(2 * age) + age:female - 1")[0].names == ("I(2 * age)", "age:female")
    with pytest.raises(ModelError, match="computed from the intercept column.* leave the constant out"):
        designs(schema, "wage ~ I(age - 40) - 1")
    with pytest.raises(ModelError, match="computed from the intercept column"):
        designs(schema, "wage ~ I((age - 40)**2) - 1")


def test_two_features_never_share_a_name():
    columns = [*COLUMNS, dpgram.Numeric("age:female", 0, 1)]
    schema = dpgram.Schema(unit="p", columns=columns, derived=DERIVED)
    with pytest.raises(ModelError, match="two features would be called 'age:female'"):
        designs(schema, "wage ~ `age:female` + age:female")
