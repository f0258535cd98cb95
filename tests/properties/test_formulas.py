"""Random formulas: the columns of the fit are those of formulaic's own model matrix, whatever the derived columns are called."""

import re
from functools import cache
from itertools import combinations

import formulaic
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import dpgram
from dpgram.analysis.frames import own_features
from dpgram.encoding.encode import encoded_columns
from dpgram.errors import ModelError
from dpgram.regression.formula import designs

FACTORS = ("x", "z", "late", "c", "d")


@cache
def schema():
    """Every product of two columns, squares, a logarithm, intervals and parts of a date, under names that say nothing."""
    derived = [
        *(dpgram.Product(f"p{i}", pair) for i, pair in enumerate(combinations(FACTORS, 2))),
        dpgram.Power("q1", "x"),
        dpgram.Power("q2", "z"),
        dpgram.Power("q3", "x", exponent=3),
        dpgram.Log1p("ell", "z"),
        dpgram.Log("ln", "w"),
        dpgram.Interval("i1", "x", upper=-2),
        dpgram.Interval("i2", "x", lower=-2, upper=3),
        dpgram.Interval("i3", "when", lower="2013-07-01"),
        dpgram.DatePart("t1", "when", "month", levels=True),
        dpgram.DatePart("t2", "when", "weekday"),
    ]
    columns = [
        dpgram.Numeric("x", -8, 8),
        dpgram.Numeric("z", 0, 20),
        dpgram.Numeric("w", 0.5, 30),
        dpgram.Numeric("y", -500, 500),
        dpgram.Boolean("late"),
        dpgram.Categorical("c", ["a", "b", "e"]),
        dpgram.Categorical("d", ["p", "q"]),
        dpgram.Date("when", "2013-01-01", "2014-01-01"),
    ]
    return dpgram.Schema(unit="p", columns=columns, derived=derived)


@cache
def rows():
    rng = np.random.default_rng(3)
    n = 400
    return pd.DataFrame(
        {
            "x": rng.uniform(-8, 8, n),
            "z": rng.uniform(0, 20, n),
            "w": rng.uniform(0.5, 30, n),
            "y": rng.normal(size=n),
            "late": rng.random(n) < 0.4,
            "c": rng.choice(["a", "b", "e"], n),
            "d": rng.choice(["p", "q"], n),
            "when": pd.Timestamp("2013-01-01") + pd.to_timedelta(rng.integers(0, 365 * 24, n), unit="h"),
        }
    )


def from_formulaic(formula):
    """Its names, spelt as ours, and its model matrix."""
    coded = rows().assign(
        c=pd.Categorical(rows()["c"], ["a", "b", "e"]), d=pd.Categorical(rows()["d"], ["p", "q"]), late=rows()["late"] * 1.0
    )
    context = {"Treatment": formulaic.transforms.contrasts.TreatmentContrasts, "log1p": np.log1p, "np": np}
    matrix = formulaic.model_matrix(formula, coded, context=context).rhs
    names = [re.sub(r"C\(([\w.]+)[^:]*?\)\[", r"\1[", name).replace("[T.", "[") for name in matrix.columns]
    return ["(intercept)" if name == "Intercept" else name for name in names], matrix.to_numpy(float)


def same_columns(formula):
    names, matrix = from_formulaic(formula)
    (plan,) = designs(schema(), formula)
    assert list(plan.names) == names
    assert own_features(schema(), plan, rows()) == pytest.approx(matrix, rel=1e-9, abs=1e-9 * np.abs(matrix).max())
    if np.linalg.matrix_rank(matrix) == matrix.shape[1]:
        scaled = encoded_columns(schema(), rows())
        gram = scaled.T @ scaled
        within = np.linalg.solve(plan.regressors.T @ gram @ plan.regressors, plan.regressors.T @ gram @ plan.label)
        expected = np.linalg.lstsq(matrix, rows()["y"].to_numpy(), rcond=None)[0]
        assert plan.to_own_units @ within + plan.offset == pytest.approx(expected, rel=1e-5, abs=1e-8)
        event("coefficients compared")


numbers = st.sampled_from(["0", "1", "2", "-3", "0.1", "2.5"])


@st.composite
def linear(draw):
    summands = [f"{draw(numbers)} * {name}" for name in draw(st.lists(st.sampled_from(["x", "z", "late"]), max_size=3))]
    return "(" + " + ".join([*summands, draw(numbers)]) + ")"


@st.composite
def code(draw):
    kind = draw(st.integers(0, 8))
    match kind:
        case 0:
            return f"I({draw(linear())} * {draw(linear())})"
        case 1:
            return f"I({draw(linear())} - {draw(linear())} / 4)"
        case 2:
            return f"I({draw(linear())}**2)"
        case 3:
            return draw(
                st.sampled_from(
                    [
                        "np.log1p(z)",
                        "log(1 + z)",
                        "np.log(z + 1)",
                        "log10(2 * z + 2)",
                        "I(3 * np.log1p(z) - x)",
                        "np.log(w)",
                        "log10(3 * w)",
                        "I(np.log(w / 2) + x)",
                    ]
                )
            )
        case 4:
            return draw(
                st.sampled_from(["I(x >= 3)", "I(x < -2)", "I((x >= -2) & (x < 3))", "I(~(x < -2) | (x < -2) & (x >= 3))"])
            )
        case 5:
            return draw(
                st.sampled_from(["{when.dt.month}", "C(when.dt.month)", "{when.dt.day_of_week}", "I(when.dt.month**1 / 12)"])
            )
        case 6:
            return draw(
                st.sampled_from(["I(c == 'b')", "I((c != 'a') & (late == 1))", "c.isin(['b', 'e'])", "I(x * (d == 'q'))"])
            )
        case 7:
            return draw(
                st.sampled_from(
                    ["I(when >= '2013-07-01')", "I(x**3 - 2 * x**2)", "np.square(z)", "np.power(x, 3)", "pow(x, 2)"]
                )
            )
    return draw(st.sampled_from(["I(np.exp(late))", "I((x - 1) * (x + 1))", "I(late**7)", "I(-x)", "I(x + 2 * z - late)"]))


@st.composite
def term(draw):
    if draw(st.integers(0, 2)) == 0:
        return draw(code())
    chosen = draw(st.lists(st.sampled_from(FACTORS), min_size=1, max_size=3, unique=True))
    match len(chosen):
        case 1:
            return chosen[0]
        case 2:
            return draw(st.sampled_from([":", "*", "/", " %in% "])).join(chosen)
    return f"({' + '.join(chosen)})**2"


@given(
    terms=st.lists(term(), min_size=1, max_size=4, unique=True),
    removed=st.lists(st.sampled_from(["x", "c", "x:c", "late:x", "c:d"]), max_size=2, unique=True),
    constant=st.booleans(),
    reference=st.sampled_from(["", "C(c, Treatment('b'))"]),
)
def test_columns_of_a_random_formula(terms, removed, constant, reference):
    formula = "y ~ " + " + ".join(terms) + "".join(f" - {one}" for one in removed) + ("" if constant else " - 1")
    if reference:  # one spelling of the category in the whole formula: two would make its columns twice
        formula = re.sub(r"(?<![\w'(.])c(?![\w'(.])(?! [!=]=)", reference, formula)
    try:
        same_columns(formula)
    except ModelError as refused:
        told = str(refused)
        assert re.search(
            "named twice|in every row|no feature and no intercept|contains it and stays|cannot be used together", told
        ), (formula, told)
        event("refused")
        assume(False)


@pytest.mark.parametrize("derived", schema().derived, ids=lambda one: one.name)
def test_a_derived_column_is_found_by_what_it_computes(derived):
    """The columns that its name stands for are among those of its expression, which has the reference levels too."""
    named, written = (designs(schema(), f"y ~ {text}")[0].columns for text in (derived.name, derived.expression))
    assert all(weights in written for weights in named)
