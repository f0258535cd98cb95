"""Assumed tables have the spread, the correlation and the signal that was stated, and fit every kind of column."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import dpgram
from dpgram.engines.encoded import encoded_rows
from dpgram.errors import PlanError
from dpgram.planning.assumed import MISSING_SHARE, Assumptions, assumed_in_words, assumed_rows, assumed_table, default_target
from tests.conftest import small_schema

NUMBERS = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, 0, 10) for name in ("y", "a", "b", "c")])


def test_numbers_have_the_stated_spread_correlation_and_signal():
    guess = Assumptions(spread=0.2, correlation=0.4, signal=0.6, spreads={"b": 0.05})
    table = assumed_table(NUMBERS, guess, "y", rows=100_000)
    assert np.mean(table["a"]) == pytest.approx(5, abs=0.02)
    assert np.std(table["a"]) == pytest.approx(1.0, rel=0.02)
    assert np.std(table["b"]) == pytest.approx(0.25, rel=0.02)
    correlations = np.corrcoef([table[name] for name in "abc"])
    assert correlations[np.triu_indices(3, 1)] == pytest.approx([0.4] * 3, abs=0.02)
    x = np.column_stack([np.ones(100_000), *(table[name] for name in "abc")])
    left = table["y"] - x @ np.linalg.lstsq(x, table["y"], rcond=None)[0]
    assert 1 - left.var() / table["y"].var() == pytest.approx(0.6, abs=0.02)


KINDS = dpgram.Schema(
    unit="p",
    columns=[
        dpgram.Categorical("text", ["a", "b"], other=True, missing="level"),
        dpgram.Categorical("whole", [3, 7], other=True, missing="level"),
        dpgram.Boolean("flag"),
        dpgram.Date("when", "2013-01-01", "2014-01-01"),
        dpgram.Numeric("x", -4, 2),
    ],
    derived=[dpgram.Power("square", "x", 2), dpgram.Product("both", ["flag", "x"]), dpgram.DatePart("hour", "when", "hour")],
)


def test_every_kind_of_column_can_be_encoded():
    """Levels are equally frequent, those that are not declared among them; derived columns are computed from the cells."""
    rows = encoded_rows(assumed_table(KINDS, Assumptions(), "square"), KINDS)
    means = dict(zip(KINDS.encoded_names, rows.mean(axis=0), strict=True))
    assert rows.shape[1] == len(KINDS.encoded)
    for name in ("text[b]", "text[other]", "text[missing]", "whole[7]", "whole[other]", "whole[missing]"):
        assert means[name] == pytest.approx(0.25, abs=0.02)
    assert means["flag"] == pytest.approx(0.5, abs=0.02)
    assert means["when"] == pytest.approx(0.0, abs=0.02)
    assert np.abs(rows).max() <= 1


def test_assumed_rows_are_the_assumed_table_to_the_last_bit():
    """A plan encodes the numbers that it drew; a table of the same cells, read as a release reads it, has the same rows."""
    assert np.array_equal(
        assumed_rows(KINDS, Assumptions(), "x"), encoded_rows(assumed_table(KINDS, Assumptions(), "x"), KINDS)
    )


def test_a_plan_imports_no_pandas():
    """The import takes longer than all else about assumed rows, and Arrow brings it along wherever it makes an array."""
    code = (
        "import pickle, sys; from dpgram.planning.plan import make_plan\n"
        "make_plan(pickle.loads(bytes.fromhex(sys.argv[1])), epsilon=1, delta=1e-6, rows=9000, mechanisms=['gaussian-noise'])\n"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, pickle.dumps(KINDS).hex()], check=True)


def test_a_table_is_the_same_for_the_same_seed():
    first, second = (assumed_table(NUMBERS, Assumptions(), "y", rows=10) for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["a"], assumed_table(NUMBERS, Assumptions(), "y", rows=10, seed=1)["a"])


def test_the_default_target_is_the_first_number_or_else_the_first_column():
    assert default_target(small_schema()) == "x"
    no_number = dpgram.Schema(unit="p", columns=[dpgram.Categorical("c", ["u", "v"]), dpgram.Boolean("b")])
    assert default_target(no_number) == "c[v]"


def test_the_default_target_can_be_one():
    """A number whose missing cells are filled and marked cannot: plans ended in an error, and "auto" gave up and took gaussian-noise."""
    marked, plain = dpgram.Numeric("x", 0, 1, missing="indicator"), dpgram.Numeric("y", 0, 1)
    both, alone = (dpgram.Schema(unit="p", columns=columns) for columns in ([marked, plain], [marked]))
    assert default_target(both) == "y"
    assert default_target(alone) == "x[missing]"
    for schema in (both, alone):
        assert dpgram.plan(schema, epsilon=1.0, delta=1e-6, table_rows=10_000).best
    rng = np.random.default_rng(0)
    table = {"x": rng.random(20_000), "y": rng.random(20_000)}
    made = dpgram.release(table, both, epsilon=1.0, delta=1e-6, mechanism="auto", insecure_seed=0)
    assert made.mechanism == "whitened-noise"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"spread": 0.0}, "spread is 0"),
        ({"spread": 1.5}, "spread is 1.5"),
        ({"spreads": {"a": -1}}, "spread of 'a' is -1"),
        ({"correlation": 1.0}, "correlation is 1"),
        ({"signal": -0.1}, "signal is -0.1"),
        ({"signal": float("nan")}, "finite number"),
        ({"signal": True}, "finite number"),
    ],
)
def test_assumptions_out_of_range_are_refused(wrong, said):
    with pytest.raises(PlanError, match=said):
        Assumptions(**wrong)


def test_a_spread_for_a_column_that_has_none_is_refused():
    for name in ("c", "nonsense"):
        with pytest.raises(PlanError, match="the numeric and date columns of the schema are: x, y"):
            assumed_table(small_schema(), Assumptions(spreads={name: 0.1}), "y")


def test_assumptions_say_themselves_in_words():
    assert "0.1 for income" in Assumptions(spreads={"income": 0.1}).in_words
    assert Assumptions(spreads={"income": 0.1}).to_dict() == {
        "spread": 0.25,
        "spreads": {"income": 0.1},
        "correlation": 0.2,
        "signal": 0.5,
    }


@pytest.mark.parametrize(
    "column",
    [dpgram.Numeric("x", 0, 10, missing="indicator"), dpgram.Date("x", "2020-01-01", "2021-01-01", missing="indicator")],
)
def test_where_missing_cells_have_an_indicator_some_are_missing(column):
    """Else it would be constant, and a regression on it would have no answer."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", 0, 1), column])
    rows = assumed_rows(schema, Assumptions(), "y")
    table = encoded_rows(assumed_table(schema, Assumptions(), "y"), schema)
    np.testing.assert_array_equal(rows, table)
    place = schema.encoded_names.index("x[missing]")
    assert rows[:, place].mean() == pytest.approx(MISSING_SHARE, abs=0.01)
    assert "10% of the cells are missing" in assumed_in_words(schema, Assumptions())
    made = dpgram.plan(schema, epsilon=1.0, delta=1e-6, table_rows=100_000, mechanisms=["gaussian-noise"])
    assert "x[missing]" in [c.name for c in made.forecast.of("gaussian-noise").coefficients]
    assert "10% of the cells are missing" in made.assumed
