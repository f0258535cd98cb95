"""Formulas: the same fit as formulaic and least squares on the rows, and clear words for what a Gram cannot answer."""

import dataclasses
import re
import sys
from functools import cache

import formulaic
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.errors import DpgramError, MissingExtraError, ModelError, UnderivedError, UnknownColumnError
from dpgram.regression.design import design
from dpgram.regression.formula import designs, is_formula
from dpgram.sources.open import open_source

COLUMNS = [
    dpgram.Numeric("x", -16, 0),
    dpgram.Numeric("air time", 0, 8),
    dpgram.Numeric("y", -64, 64),
    dpgram.Categorical("c", ["a", "b", "d d"], other=True, missing="level"),
    dpgram.Categorical("month", [3, 1, -2]),
    dpgram.Boolean("late"),
]


@cache
def rows():
    """Numbers lie on the grid of the encoder, so that the Gram of the release is exact."""
    rng = np.random.default_rng(7)
    n = 800
    frame = pd.DataFrame(
        {
            "x": rng.integers(-16 * 64, 0, n) / 64,
            "air time": rng.integers(0, 8 * 64, n) / 64,
            "c": rng.choice(["a", "b", "d d", "zebra", ""], n),
            "month": rng.choice([3, 1, -2], n),
            "late": rng.random(n) < 0.3,
        }
    )
    mean = 3 + frame["x"] - 2 * frame["air time"] + 5 * (frame["c"] == "b") - 4 * (frame["month"] == 1) + 2 * frame["late"]
    frame["y"] = np.round((mean + rng.normal(size=n)) * 64) / 64
    return frame


@cache
def exact_release(intercept=True):
    """A release with the true Gram in it."""
    schema = dpgram.Schema(unit="flight", columns=COLUMNS, intercept=intercept)
    release = dpgram.release(rows(), schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    true = LocalPass(open_source(rows()), schema).gram(schema.effective_row_bound).in_scaled_units()
    return dataclasses.replace(release, gram=true)


def from_the_release(plan, gram):
    scaled = np.linalg.solve(plan.regressors.T @ gram @ plan.regressors, plan.regressors.T @ gram @ plan.label)
    return plan.to_own_units @ scaled + plan.offset


def from_the_rows(formula):
    """formulaic's names (spelt as ours) and least squares on its model matrices, one column per target."""
    frame = rows()
    level = frame["c"].replace({"zebra": "other", "": "missing"})
    coded = frame.assign(
        c=pd.Categorical(level, ["a", "b", "d d", "other", "missing"]),
        month=pd.Categorical(frame["month"], [3, 1, -2]),
        late=frame["late"] * 1.0,
        **{f"c[{name}]": (level == name) * 1.0 for name in ("a", "b", "d d", "other", "missing")},
    )
    y, x = formulaic.model_matrix(formula, coded, context={"Treatment": formulaic.transforms.contrasts.TreatmentContrasts})
    ours = [re.sub(r"^C\((\w+).*\)\[", r"\1[", name).replace("[T.", "[") for name in x.columns]
    names = tuple("(intercept)" if name == "Intercept" else name for name in ours)
    return names, np.linalg.lstsq(x.to_numpy(float), y.to_numpy(float), rcond=None)[0]


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x",
        "y ~ 1",
        "y ~ c",
        "y ~ x + c + month + late",
        "y ~ late + c + `air time` + x",
        "y ~ x - 1",
        "y ~ x + `air time` + late + 0",
        "y ~ c - 1",
        "y ~ x + c + month - 1",
        "y ~ 0 + month + x + c",
        "y ~ C(c)",
        'y ~ C(c, contr.treatment("b"))',
        'y ~ C(c, contr.treatment(base="other")) + x',
        "y ~ x + C(c, contr.treatment(base='missing')) + month",
        'y ~ C(c, contr.treatment("a"))',
        'y ~ x + C(c, Treatment("d d"))',
        "y ~ C(month, contr.treatment(1)) + x",
        "y ~ C(month, Treatment(-2)) + C(c, Treatment('b'))",
        "y ~ C(month, contr.treatment(1)) + C(c, contr.treatment('b')) - 1",
        "y ~ `c[b]` + x",
        "y ~ `c[a]` + `c[other]`",
        "y ~ `c[a]` + `c[b]` + `c[d d]` + `c[other]` + `c[missing]` - 1",
        "y ~ x + c + month - c",
        "y ~ (x + c + late) - (late + c)",
        "x ~ y + month",
        "`air time` ~ y + c",
        "late ~ x",
        "`c[b]` ~ x + month",
        "`c[a]` ~ x + month",
        "`c[a]` ~ x - 1",
        "y + x ~ c + late",
        "y + `c[other]` + late ~ x + month - 1",
    ],
)
def test_a_formula_is_least_squares_on_the_rows(formula):
    found = designs(exact_release().schema, formula)
    names, coefficients = from_the_rows(formula)
    assert len(found) == coefficients.shape[1]
    for plan, column in zip(found, coefficients.T, strict=True):
        assert plan.names == names
        assert from_the_release(plan, exact_release().gram) == pytest.approx(column, rel=1e-7, abs=1e-7)


def names(formula, intercept=True):
    (plan,) = designs(exact_release(intercept).schema, formula)
    return plan.names


def test_targets_are_in_the_order_of_the_left_side():
    assert [plan.target for plan in designs(exact_release().schema, "late + `c[a]` + y ~ x")] == ["late", "c[a]", "y"]


def test_the_dot_is_every_column_but_the_targets_own():
    assert names("y ~ . - c - month") == ("(intercept)", "x", "air time", "late")
    assert names("y ~ . - `air time` - c - 1") == ("x", "month[3]", "month[1]", "month[-2]", "late")
    assert names("`c[b]` ~ .") == ("(intercept)", "x", "air time", "y", "month[1]", "month[-2]", "late")
    assert names("`c[a]` ~ .") == names("`c[b]` ~ .")
    assert {plan.names for plan in designs(exact_release().schema, "y + x ~ . - c - month")} == {
        ("(intercept)", "air time", "late")
    }


def test_spellings_of_the_same_reference():
    spellings = [
        'C(c, contr.treatment("b"))',
        "C(c, contr.treatment(base='b'))",
        'C(c, Treatment("b"))',
        'C(c, Treatment(reference="b"))',
        'C(c, contrasts=contr.treatment("b"))',
        'C(`c`, contrast=Treatment("b"))',
    ]
    for spelling in spellings:
        assert names(f"y ~ {spelling}") == ("(intercept)", "c[a]", "c[d d]", "c[other]", "c[missing]")
    for spelling in ("c", "{c}", "C(c)", "C(c, Treatment)", "C(c, contr.treatment())", "C(c, contr.treatment)"):
        assert names(f"y ~ {spelling}") == ("(intercept)", "c[b]", "c[d d]", "c[other]", "c[missing]")
    assert names('y ~ C(month, Treatment("1"))') == ("(intercept)", "month[3]", "month[-2]")


def test_a_column_with_spaces_can_be_a_category():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", 0, 1), dpgram.Categorical("my c", ["p", "q", "r"])])
    release = dpgram.release(
        {"y": np.ones(9), "my c": np.array(["p"] * 9)},
        schema,
        epsilon=1,
        delta=0.01,
        mechanism="gaussian-noise",
        insecure_seed=0,
    )
    (plan,) = designs(release.schema, "y ~ C(`my c`, Treatment('q'))")
    assert plan.names == ("(intercept)", "my c[p]", "my c[r]")


def test_groups_are_the_places_of_each_declared_column():
    (plan,) = designs(exact_release().schema, "y ~ x + C(month, Treatment(1)) + `c[b]` + late + `c[a]`")
    assert plan.groups == (("x", (1,)), ("month", (2, 3)), ("c", (4, 6)), ("late", (5,)))
    (plan,) = designs(exact_release().schema, "y ~ month + x - 1")
    assert plan.groups == (("month", (0, 1, 2)), ("x", (3,)))
    assert designs(exact_release().schema, "y ~ 1")[0].groups == ()
    assert design(exact_release().schema, "y", ["month", "x"], None).groups == (("month", (1, 2)), ("x", (3,)))
    assert design(exact_release().schema, "y", ["month", "x"], False).groups == (("month", (0, 1)), ("x", (2,)))


def test_a_release_without_an_intercept_column():
    assert names("y ~ x + `c[b]` + late - 1", intercept=False) == ("x", "c[b]", "late")
    plan = designs(exact_release(False).schema, "y ~ x + `c[b]` + late - 1")[0]
    expected = from_the_rows("y ~ x + `c[b]` + late - 1")[1][:, 0]
    assert from_the_release(plan, exact_release(False).gram) == pytest.approx(expected, rel=1e-7)
    with pytest.raises(ModelError, match="made without an intercept column. Add - 1 to the formula"):
        designs(exact_release(False).schema, "y ~ x")
    for formula in ("y ~ c - 1", "y ~ C(c, Treatment('b')) - 1", "y ~ `c[a]` - 1"):
        with pytest.raises(
            ModelError, match=r"`c\[a\]` is computed from the intercept column, because it is a reference level"
        ):
            designs(exact_release(False).schema, formula)


def test_another_reference_is_the_same_fit_in_other_words(small_release):
    """With noise in the matrix too, for coefficients and for what the noise does to them."""
    fits = [dpgram.regress(small_release, f"y ~ x + C(c, Treatment('{reference}'))") for reference in ("a", "b")]
    (first, first_sd), (second, second_sd) = ((fit.estimates, fit.bse_privacy) for fit in fits)
    assert second["x"] == pytest.approx(first["x"])
    assert second["(intercept)"] == pytest.approx(first["(intercept)"] + first["c[b]"])
    assert second["c[a]"] == pytest.approx(-first["c[b]"])
    assert second["c[other]"] == pytest.approx(first["c[other]"] - first["c[b]"])
    assert (second_sd["x"], second_sd["c[a]"]) == pytest.approx((first_sd["x"], first_sd["c[b]"]))


def with_derived():
    """A release that has x times every level of c, and the square of x."""
    columns = [dpgram.Numeric("x", -5, 5), dpgram.Numeric("y", -10, 30), dpgram.Categorical("c", ["a", "b", "d"])]
    derived = [dpgram.Product("xc", of=("x", "c")), dpgram.Power("x2", of="x")]
    schema = dpgram.Schema(unit="p", columns=columns, derived=derived)
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=500), "y": rng.normal(size=500), "c": rng.choice(["a", "b", "d"], 500)}
    return dpgram.release(table, schema, epsilon=1, delta=1e-3, mechanism="gaussian-noise", insecure_seed=0)


def test_a_derived_column_of_several_is_one_term():
    release = with_derived()
    (plan,) = designs(release.schema, "y ~ x + xc")
    assert plan.names == ("(intercept)", "x", "xc[b]", "xc[d]")
    assert plan.groups == (("x", (1,)), ("xc", (2, 3)))
    assert plan.to_own_units == pytest.approx(design(release.schema, "y", ["x", "xc"], None).to_own_units)
    assert designs(release.schema, "y ~ xc - 1")[0].names == designs(release.schema, "y ~ `xc[b]` + `xc[d]` - 1")[0].names
    with pytest.raises(ModelError, match="'xc' has several columns, so it cannot be a target. Name one of them"):
        designs(release.schema, "xc ~ y")


def test_the_dot_leaves_out_what_comes_from_the_targets_own_cells():
    release = with_derived()
    assert designs(release.schema, "x ~ .")[0].names == ("(intercept)", "y", "c[b]", "c[d]")
    assert designs(release.schema, "y ~ .")[0].names == ("(intercept)", "x", "c[b]", "c[d]", "xc[b]", "xc[d]", "x2")


LACKING = "which cannot be computed from the release. "
DERIVE = (
    LACKING + r"Ask the custodian to declare it before the release, as a derived column under \[\[derived\]\] in the schema: "
)
PRODUCT = (
    DERIVE
    + r'name = "x_by_late", kind = "product", of = \["x", "late"\]. \'dpgram schema suggest-derived\' writes these lines.$'
)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ x:late", "the formula contains `x:late`, " + PRODUCT),
        ("y ~ x*late", "the formula contains `x:late`, " + PRODUCT),
        ("y ~ (x + late)**2", "the formula contains `x:late`, " + PRODUCT),
        ("y ~ x**2", r"`x\*\*2` outside I\(\) means `x` itself. For the square write I\(x\*\*2\)"),
        ("y ~ x^2", r"`x\*\*2` outside I\(\) means `x` itself"),
        ("y ~ (x)**2", r"`x\*\*2` outside I\(\) means `x` itself"),
        ("y ~ x:x", "`x:x` outside I.. means `x` itself"),
        ("y ~ x*x", r"`x\*x` outside I.. means `x` itself"),
        ("y ~ (x + late)**x", "has the power x. Outside I.. a power is a whole number"),
        ("y ~ (x + late)**0", "cannot be parsed|has the power"),
        ("y ~ (x + late + c)**99", "the formula contains `x:late`"),
        ("y ~ (" + " + ".join(f"I(x + {i})" for i in range(99)) + ")**99", "multiplies out to more than 4,096 terms"),
        ("y ~ " + "*".join(f"I(x + {i})" for i in range(40)), "multiplies out to more than 4,096 terms"),
        ("y ~ x/late", "the formula contains `x:late`, " + PRODUCT),
        ("y ~ x %in% c", r'the formula contains `c:x`, .*name = "x_by_c", kind = "product", of = \["x", "c"\]'),
        ("y ~ c:month", r'the formula contains `c:month`, .*kind = "product", of = \["c", "month"\]'),
        ("y ~ x:`c[b]`", r'name = "x_by_c_b", kind = "product", of = \["x", "c\[b\]"\]'),
        (
            "y ~ x:late:c",
            LACKING + "No derived column computes it. Such a column is a product of two columns, a power up to 9, log or log1p",
        ),
        ("y ~ I(x**2):late", LACKING + "No derived column computes it"),
        (
            "y ~ np.log(x)",
            r"`np.log\(x\)`, " + LACKING + r"The lower bound of 'x' is -16, but log\(x\) needs one above 0\. Ask",
        ),
        (
            "y ~ log(3 * `air time`)",
            LACKING
            + r"The lower bound of 'air time' is 0, but .* Write log1p\(`air time`\), which is log\(1 \+ `air time`\), if",
        ),
        (
            "y ~ log(x + 40)",
            LACKING
            + r"The logarithms that derived columns compute are log\(x\) and log1p\(x\), which is log\(1 \+ x\)\. Write one",
        ),
        ("y ~ log(-2 * x)", LACKING + "The logarithms that derived columns compute are"),
        ("y ~ log(x)", r"`log\(x\)`, " + LACKING),
        (
            "y ~ log(x * late)",
            LACKING + "The only logarithms that a derived column computes are log and log1p of a declared column",
        ),
        (
            "y ~ log1p(x)",
            r"A derived column cannot compute it: .*lower bound of 'x' is -16, but log\(1 \+ x\) needs one above -1",
        ),
        ("y ~ np.log1p(`air time`)", DERIVE + 'name = "log1p_air time", kind = "log1p", of = "air time"'),
        ("y ~ log(late)", "would be the logarithm of a number that is not positive"),
        ("y ~ I(x**2)", r"`I\(x \*\* 2\)`, " + DERIVE + 'name = "x_squared", kind = "power", of = "x". .dpgram'),
        ("y ~ I(x**3)", DERIVE + 'name = "x_cubed", kind = "power", of = "x", exponent = 3'),
        ("y ~ I(x**4 + late)", DERIVE + 'name = "x_power_4", kind = "power", of = "x", exponent = 4'),
        ("y ~ I((x - 1)**2 * late)", LACKING + "No derived column computes it"),
        ("y ~ I(x**10)", "has the power 10, but no column can have one above 9"),
        ("y ~ I(x**999999999)", "has the power 999999999, but no column"),
        ("y ~ I(((x + y)**9)**9)", "has the power 81, but no column"),
        ("y ~ I(x**0.5)", LACKING + "A derived column can have only the powers 2 to 9"),
        ("y ~ I(x**-1)", LACKING + "A derived column can have only the powers 2 to 9"),
        ("y ~ I(1/x)", LACKING + "No derived column divides by a column"),
        ("y ~ I(x/0)", "It divides by zero"),
        ("y ~ I(0**-1 * x)", "a number is too large or cannot be computed"),
        ("y ~ I(9**9**9**9 * x)", "a number is too large or cannot be computed"),
        ("y ~ I(1e999 * x)", "a number is too large or cannot be computed"),
        ("y ~ I(1e300 * 1e300 * x)", "so large or so small that squares exceed double precision"),
        ("y ~ I(x ^ 2)", r"a power is written \*\*, and \^ means something else"),
        ("y ~ I(x % 2)", LACKING + "No derived column computes such code"),
        ("y ~ I(x & late)", "Write & and | only between comparisons"),
        ("y ~ I(~x)", "Write ~ only before a comparison"),
        ("y ~ I(not late)", "Write ~ only before a comparison"),
        ("y ~ I(x > 3 + 4j)", LACKING),
        (
            "y ~ I(c + 1)",
            r"'c' is a category, so it cannot be computed with. Name one of its levels in backquotes, such as `c\[b\]`",
        ),
        ("y ~ I(c == 'zebra')", "'zebra' is not a level of 'c'. Its levels are"),
        ("y ~ I(c >= 'b')", "Compare the category 'c' by == or != only"),
        ("y ~ I(c == x)", "compares 'c' with something that is no level"),
        ("y ~ x.isin([1, 2])", "isin is for a categorical column"),
        ("y ~ I(x == 'b')", "'b' is text. Compare text with a categorical or a date column only"),
        ("y ~ I(x == -2)", LACKING + "No derived column is the indicator of one single number"),
        (
            "y ~ I(x > -2)",
            "An interval contains its lower end and not its upper end, so x > -2 cannot be computed. Write x >= with",
        ),
        ("y ~ I(-x < 2)", "so x > -2 cannot be computed"),
        ("y ~ I(x < y)", LACKING + "An interval compares one column with a number"),
        ("y ~ I(x >= -5)", DERIVE + 'name = "x_from_minus_5", kind = "interval", of = "x", lower = -5.0'),
        ("y ~ I((x >= -5) & (x < -1))", 'kind = "interval", of = "x", lower = -5.0, upper = -1.0'),
        ("y ~ I(x >= 1)", r"`I\(x >= 1\)` is 0 in every row. Leave it out"),
        ("y ~ I(x <= 0)", r"`I\(x <= 0\)` is 1 in every row"),
        ("y ~ I(x - x)", r"`I\(x - x\)` is 0 in every row"),
        ("y ~ `c[b]`:`c[a]`", r"`c\[b\]:c\[a\]` is 0 in every row"),
        ("y ~ {3}", "`3` is 3 in every row|cannot be parsed|contains the value"),
        ("y ~ x.dt.month", "'x' is numeric, and .dt is for dates"),
        (
            "y ~ " + "I(" * 80 + "x" + ")" * 80 + " + " + "-".join(["I(x"] + ["1"] * 2000) + ")",
            "too deeply|cannot be parsed|cannot be read",
        ),
        (
            "y ~ poly(x, 2)",
            r"`poly\(x, 2\)`, whose numbers come from the data\. Write x \+ I\(x\*\*2\) instead, which gives the same fit\. The "
            r"release lacks I\(x\*\*2\)\. Ask the custodian to declare it before the release, as a derived column of kind power\.",
        ),
        (
            "y ~ poly(`air time`, degree=3)",
            r"Write `air time` \+ I\(`air time`\*\*2\) \+ I\(`air time`\*\*3\) instead.* declare them before",
        ),
        ("y ~ poly(x)", "Write x instead, which gives the same fit.$"),
        ("y ~ poly(x, 99)", r"Write the powers one by one, up to 9, as in x \+ I\(x\*\*2\)"),
        ("y ~ poly(x, late)", r"Write the powers one by one, up to 9"),
        ("y ~ poly(c, 2)", "'c' is a category, so it cannot be computed with"),
        (
            "y ~ ",
            r"^the formula 'y ~ ' has nothing on its right side: write the features there, or 1 for the intercept alone\.$",
        ),
        ("y ~", "has nothing on its right side"),
        ("y ~ X", "there is no column 'X'. Did you mean 'x'?"),
        ("y ~ AIRTIME", "there is no column 'AIRTIME'. Did you mean 'air time'?"),
        ("y ~ `c[zebra]`", "column 'c' has no level 'zebra'. Its levels are a, b, d d"),
        ("y ~ `c[B]`", "column 'c' has no level 'B'. Did you mean 'b'\\? Its levels are"),
        ("y ~ I(x * `c[B]`)", "column 'c' has no level 'B'. Did you mean 'b'\\? Its levels are"),
        ("y ~ `C[b]`", r"there is no column 'C\[b\]'. Did you mean 'c\[b\]'?"),
        ("y ~ I(c == 'B')", "'B' is not a level of 'c'. Did you mean 'b'\\? Its levels are"),
        ("y ~ C(c, Treatment('B'))", "'B' is not a level of 'c'. Did you mean 'b'?"),
        ("1 - late ~ x", r"no target on its left side. Write it as 'y ~ x'. Put arithmetic into I\(\), as in 'I\(1 - y\) ~ x'"),
        ("y ~ center(x)", r"`center\(x\)`, " + LACKING + "The numbers that it subtracts or divides by come from the data"),
        ("y ~ bs(x, df=4)", r"`bs\(x, df=4\)`, " + LACKING + "No derived column computes such code"),
        ("y ~ np.sqrt(x)", LACKING + "No derived column computes np.sqrt"),
        ("log(y) ~ x", r"`log\(y\)`, " + LACKING),
        ("y ~ C(x + 1)", "C takes the name of a categorical column, or a part of a date"),
        ("y ~ . - log(x)", LACKING),
        ("y ~ x + I(x)", r"feature 'x' is named twice. `I\(x\)` is the same. Name it once"),
        ("y ~ I(c == 'b') + `c[b]`", "is named twice"),
        ("y ~ I(y)", "'y' is the target, so it cannot be a feature too"),
        ("y ~ C(c, contr.sum)", "contrast of `C.c, contr.sum.` cannot be used. Only treatment contrasts"),
        (
            "y ~ C(c, contr.helmert())",
            "Only treatment contrasts with one level are supported. Choose a reference level as in",
        ),
        ("y ~ C(c, Sum)", "Only treatment contrasts"),
        ("y ~ C(c, Treatment(level))", "Only treatment contrasts with one level"),
        ("y ~ C(c, Treatment('a', 'b'))", "Only treatment contrasts with one level"),
        ("y ~ C(c, Treatment(drop='b'))", "Only treatment contrasts with one level"),
        ("y ~ C(c, levels=['a', 'b'])", "C takes a column, and optionally a treatment contrast"),
        ("y ~ C(c, Treatment, Treatment)", "C takes a column, and optionally a treatment contrast"),
        (
            "y ~ C(c, Treatment('zebra'))",
            "'zebra' is not a level of 'c'. Its levels are 'a', 'b', 'd d', 'other', 'mis",
        ),
        ("y ~ C(c, Treatment(1))", "1 is not a level of 'c'"),
        ("y ~ C(c, Treatment(['a']))", r"\['a'\] is not a level of 'c'"),
        ("y ~ C(month, Treatment(2))", "2 is not a level of 'month'. Its levels are 3, 1, -2"),
        ("y ~ C(month, Treatment(True))", "True is not a level of 'month'"),
        ("y ~ C(x)", "makes a category of 'x', but the schema does not declare it as categorical. Write 'x' itself"),
        ("y ~ C(late)", "makes a category of 'late', but the schema does not declare it as categorical"),
        ("y ~ Q('air time')", "Write the name in backquotes"),
        ("y ~ c[b]", r"`c\[b\]` looks like code. Write a level in backquotes"),
        ("y ~ C(c, '`' + \"it's`\")", "Use backquotes only around the name of a column"),
        ("y ~ [x]", "has square brackets"),
        ("y ~ x | late", "has several parts, separated by \\|"),
        ("y ~ x + 2", "contains the value 2. The only values allowed are 0 and 1"),
        ("y ~ x - 2", "contains the value 2. The only values allowed are 0 and 1"),
        ("y ~ 'x'", "contains the value 'x'. The only values allowed are 0 and 1"),
        ("y ~ `1`", "cannot name the column '1'"),
        ("y ~ `(intercept)`", "a formula does not name '.intercept.'. The intercept is there, unless the formula has - 1"),
        ("c ~ x", r"'c' has several columns, so it cannot be a target. Name one of them: `c\[a\]`, `c\[b\]`"),
        ("C(c) ~ x", "'c' has several columns, so it cannot be a target"),
        ("y ~ y", "'y' is the target, so it cannot be a feature too. Remove `y`"),
        ("y ~ . + y", "'y' is the target, so it cannot be a feature too"),
        ("y + x ~ x", "'x' is the target, so it cannot be a feature too"),
        ("`c[b]` ~ c", r"'c\[b\]' is the target, so it cannot be a feature too. Remove `c`"),
        ("`c[b]` ~ C(c, Treatment('b'))", r"'c\[b\]' is the target, so it cannot be a feature too"),
        ("y ~ 0", "has no feature and no intercept. Name a feature, or keep the intercept"),
        ("y ~ x - x - 1", "has no feature and no intercept"),
        ("~ x", "'~ x' has no target on its left side. Write it as 'y ~ x'"),
        ("0 ~ x", "has no target on its left side"),
        ("1 + y ~ x", "has no target on its left side"),
        ("y + x", "has no ~ between target and features"),
        ("y ~ c + `c[b]`", r"feature 'c\[b\]' is named twice"),
        ("y ~ c + C(c)", r"feature 'c\[b\]' is named twice"),
        (
            "y ~ c + `c[a]`",
            "the intercept and all levels of 'c' cannot be used together.*Leave out a level, or remove the intercept with - 1",
        ),
        (
            "y ~ `month[3]` + `month[1]` + `month[-2]` + c - 1",
            "all levels of 'month' and all levels of 'c' cannot be used together.*Leave out a level.$",
        ),
        (
            "y ~ C(c) - c",
            r"`c` is removed, but `C\(c\)` contains it and stays. Remove `C\(c\)` instead, exactly as it is written",
        ),
        ("y ~ c - `c[a]`", r"`c\[a\]` is removed, but `c` contains it and stays"),
        ("y ~ (x", "cannot be parsed: Could not find matching context marker.$"),
        ("y ~ x late", "cannot be parsed: Missing operator between `x` and `late`.$"),
        ("y ~ f(x late)", "cannot be parsed: invalid syntax"),
        ("y ~ x ~ late", "cannot be parsed: Operator `~` is incorrectly used.$"),
        ("y ~ +", "cannot be parsed: Operator `\\+` has insuff"),
        ("y ~\n(x", r"the formula 'y ~\\n\(x' cannot be parsed"),
        (3, "the formula is a int and must be text"),
    ],
)
def test_what_a_formula_cannot_ask(formula, message):
    with pytest.raises(ModelError, match=message) as caught:
        designs(exact_release().schema, formula)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("formula", ["z ~ x", "y ~ z", "y ~ . - z", "y ~ C(z)", "y ~ np.pi"])
def test_unknown_columns(formula):
    with pytest.raises(
        UnknownColumnError, match="there is no column .* The columns are 'x', 'air time', 'y', 'c', 'month', 'late'"
    ):
        designs(exact_release().schema, formula)


def test_the_derived_columns_at_hand_are_named():
    assert "derived columns of" not in refusal("y ~ log(x)")
    for formula in ("y ~ log(x)", "y ~ x:y"):
        with pytest.raises(ModelError, match=r"The derived columns of this release are 'xc' = x:c, 'x2' = I\(x\*\*2\).$"):
            designs(with_derived().schema, formula)


def refusal(formula):
    with pytest.raises(ModelError) as caught:
        designs(exact_release().schema, formula)
    return str(caught.value)


def test_a_column_named_one_is_not_taken_for_the_intercept():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, 0, 1) for name in ("y", "1", "2")])
    release = dpgram.release(
        {name: np.ones(9) for name in ("y", "1", "2")},
        schema,
        epsilon=1,
        delta=0.01,
        mechanism="gaussian-noise",
        insecure_seed=0,
    )
    assert designs(release.schema, "y ~ `2`")[0].names == ("(intercept)", "2")
    with pytest.raises(ModelError, match="cannot name the column '1', because 1 means the intercept"):
        designs(release.schema, "y ~ .")


def test_without_formulaic_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(MissingExtraError, match=r"a formula needs formulaic.*pip install 'dpgram\[formulas\]'"):
        designs(exact_release().schema, "y ~ x")


def test_no_code_in_a_formula_is_run(tmp_path):
    bait = tmp_path / "ran"
    for code in (f"open({str(bait)!r}, 'w')", f"C(c, Treatment(open({str(bait)!r}, 'w')))"):
        with pytest.raises(ModelError):
            designs(exact_release().schema, f"y ~ {code}")
    assert not bait.exists()


def test_a_formula_has_a_tilde():
    assert is_formula("y ~ x")
    assert not is_formula("y")
    assert not is_formula(None)


TERMS = ("x", "air time", "c", "month", "late")
SINGLE = ("x", "air time", "late", "c[b]", "c[other]", "month[1]")


def same(formula, features, intercept):
    (plan,), listed = designs(exact_release().schema, formula), design(exact_release().schema, "y", features, intercept)
    assert (plan.names, plan.target, plan.groups) == (listed.names, listed.target, listed.groups)
    for field in ("regressors", "label", "to_own_units", "offset"):
        assert np.array_equal(getattr(plan, field), getattr(listed, field)), field


@given(terms=st.permutations(TERMS), kept=st.integers(1, 5), dropped=st.lists(st.sampled_from(TERMS)))
def test_terms_in_any_order_are_the_features_listed(terms, kept, dropped):
    features = [term for term in terms[:kept] if term not in dropped]
    formula = "y ~ " + " + ".join(f"`{term}`" for term in terms[:kept]) + "".join(f" - `{term}`" for term in dropped)
    same(formula, features, True)
    remaining = [term for term in TERMS if term not in dropped]
    same("y ~ ." + "".join(f" - `{term}`" for term in dropped), remaining, True)


@given(terms=st.permutations(SINGLE), kept=st.integers(1, 6))
def test_single_columns_without_an_intercept_are_the_features_listed(terms, kept):
    same("y ~ 0 + " + " + ".join(f"`{term}`" for term in terms[:kept]), list(terms[:kept]), False)


PIECES = ["y", "x", "c", "late", "`c[b]`", "C(", "'b'", "\n", "é", *".~+-10()[]{}`\\#*:,"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=12).map(" ".join) | st.text(max_size=12))
def test_any_text_gives_a_design_or_an_error_of_one_line(text):
    said = "a design"
    try:
        designs(exact_release().schema, f"y ~ {text}")
    except DpgramError as refused:
        said = str(refused)
    assert len(said.splitlines()) == 1


def test_poly_names_the_derived_columns_that_are_there():
    columns = [dpgram.Numeric("x", 0, 5), dpgram.Numeric("y", 0, 5)]
    schema = dpgram.Schema(unit="p", columns=columns, derived=[dpgram.Power("xx", "x")])
    there = r"Write x \+ I\(x\*\*2\) instead, which gives the same fit\. The derived columns of this release are 'xx' = I\(x\*\*2\)\.$"
    with pytest.raises(UnderivedError, match=there):
        designs(schema, "y ~ poly(x, 2)")
    with pytest.raises(UnderivedError, match=r"The release lacks I\(x\*\*3\)\. Ask the custodian to declare it before"):
        designs(schema, "y ~ poly(x, 3)")
