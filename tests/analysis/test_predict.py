"""Predictions for an analyst's own rows: the same encoding as the release's, from any frame, with clear refusals."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import dpgram
from dpgram.analysis.frames import own_features
from dpgram.engines.local import LocalPass
from dpgram.errors import ModelError
from dpgram.sources.open import open_source
from dpgram.terms.noise import SymmetricGaussian

SCHEMA = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("x", -2, 5, missing=1.5),
        dpgram.Numeric("y", -10, 30, missing="midpoint"),
        dpgram.Categorical("c", ["a", "b"], other=True, missing="level"),
        dpgram.Categorical("k", [1, 2, 3]),
        dpgram.Boolean("b", missing=True),
        dpgram.Date("d", "2020-01-01", "2021-01-01", missing="midpoint"),
    ],
    derived=[
        dpgram.Product("xc", ["x", "c"]),
        dpgram.Power("x2", "x"),
        dpgram.DatePart("m", "d", "month"),
        dpgram.Interval("mid", "x", -1, 1),
    ],
)


def many_rows(rows=500, seed=0):
    """Cells of all kinds: missing, beyond the bounds, not declared."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows, scale=3)
    x[::11] = np.nan
    start = dt.datetime(2019, 11, 1, 7, 30)
    days = [None if k % 13 == 0 else start + dt.timedelta(days=int(k)) for k in rng.integers(0, 500, rows)]
    return pa.table(
        {
            "x": x,
            "y": 5 + np.nan_to_num(x) + rng.normal(size=rows),
            "c": rng.choice(np.array(["a", "b", "z", "", None], dtype=object), rows),
            "k": pa.array(rng.choice(np.array([1, 2, 3, None], dtype=object), rows), pa.int64()),
            "b": rng.choice(np.array([True, False, None], dtype=object), rows),
            "d": days,
        }
    )


def exact_release(table, schema=SCHEMA):
    release = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    true = LocalPass(open_source(table), schema).gram(schema.effective_row_bound).in_scaled_units()
    return dataclasses.replace(release, gram=true, noise=SymmetricGaussian.orthogonal(1e-6))


TABLE = many_rows()
RELEASE = exact_release(TABLE)
FIT = dpgram.regress(RELEASE, "y")

CELLS = {
    "x": [0.0, 1.0, 99.0, None],
    "c": ["a", "zz", None, ""],
    "k": [1, 2, None, None],
    "b": [True, False, None, True],
    "d": [dt.datetime(2020, 5, 5), dt.datetime(1999, 1, 1), None, dt.datetime(2020, 12, 31)],
}
OWN = {  # the same by hand
    "(intercept)": [1, 1, 1, 1],
    "x": [0, 1, 5, 1.5],
    "c[b]": [0, 0, 0, 0],
    "c[other]": [0, 1, 0, 0],
    "c[missing]": [0, 0, 1, 1],
    "k[2]": [0, 1, 0, 0],
    "k[3]": [0, 0, 0, 0],
    "b": [1, 0, 1, 1],
    "d": [18387, 18262, 18445, 18627],
    "xc[b]": [0, 0, 0, 0],
    "xc[other]": [0, 1, 0, 0],
    "xc[missing]": [0, 0, 5, 0],  # a product is missing, and so zero, where the number is
    "x2": [0, 1, 25, 12.5],
    "m": [5, 1, 6.5, 12],
    "mid": [1, 0, 0, 0],
}


@pytest.mark.parametrize("schema", [SCHEMA, dataclasses.replace(SCHEMA, intercept=False)], ids=["intercept", "none"])
@pytest.mark.parametrize("target", ["y", "x", "c[b]", "b"])
def test_rows_are_encoded_as_the_release_encodes_them(schema, target):
    """The features' sums of products are those of the release, whatever the cells hold."""
    release = exact_release(TABLE, schema)
    plan = dpgram.regress(release, target).design
    features = own_features(schema, plan, TABLE)
    scaled = features @ plan.to_own_units / plan.label_unit
    expected = plan.regressors.T @ release.gram @ plan.regressors
    assert scaled.T @ scaled == pytest.approx(expected, abs=2e-3)  # of 500 rows: the release rounds each cell to fixed point


def test_predictions_are_features_times_coefficients():
    assert list(OWN) == list(FIT.names)
    features = np.column_stack([OWN[name] for name in FIT.names])
    assert own_features(SCHEMA, FIT.design, CELLS) == pytest.approx(features)
    assert FIT.predict(CELLS) == pytest.approx(features @ FIT.coefficients)
    found = FIT.predict(CELLS, interval="mean")
    assert found["prediction"] == pytest.approx(features @ FIT.coefficients)
    assert found["debiased"] == pytest.approx(features @ FIT.params.to_numpy())


TEXT_DATES = ["2020-05-05", "1999-01-01", None, "2020-12-31"]
FRAMES = {
    "arrow": pa.table(CELLS),
    "batch": pa.record_batch(CELLS),
    "pandas": pd.DataFrame(CELLS),
    "pandas category": pd.DataFrame(CELLS).astype({"c": "category"}),
    "polars": pl.DataFrame(CELLS),
    "polars categorical": pl.DataFrame(CELLS).with_columns(pl.col("c").cast(pl.Categorical)),
    "dict of arrays": {name: np.array(cells, dtype=object) for name, cells in CELLS.items()},
    "dict of series": {name: pd.Series(cells) for name, cells in CELLS.items()},
    "dict of polars series": {name: pl.Series(cells) for name, cells in CELLS.items()},
    "dict of Arrow arrays": {name: pa.array(cells) for name, cells in CELLS.items()},
    "text dates": CELLS | {"d": TEXT_DATES},
    "dates": CELLS | {"d": [None if d is None else d.date() for d in CELLS["d"]]},
    "NumPy dates": CELLS | {"d": np.array([d or "NaT" for d in TEXT_DATES], dtype="M8[ns]")},
    "time zone": pa.table(CELLS | {"d": pa.array(CELLS["d"], pa.timestamp("us", "UTC"))}),
    "text numbers": CELLS | {"x": ["0", "1", "99", None], "k": ["1", "2", None, None]},
    "floats": CELLS | {"k": [1.0, 2.0, np.nan, np.nan], "b": [1.0, 0.0, np.nan, 1.0], "x": [0.0, 1.0, 99.0, np.nan]},
    "decimals": pa.table(CELLS | {"x": pa.array([0, 1, 99, None], pa.decimal128(5, 2))}),
    "more columns": CELLS | {"y": [1, 2, 3, 4], "stranger": ["p", "q", "r", "s"]},
}


@pytest.mark.parametrize("name", FRAMES)
def test_any_frame_gives_the_same_predictions(name):
    assert FIT.predict(FRAMES[name]) == pytest.approx(FIT.predict(CELLS), rel=1e-12)


@pytest.mark.parametrize(
    ("spelled", "plain"),
    [
        ({"b": ["true", "yes", " N ", "f"]}, {"b": [True, True, False, False]}),
        ({"x": [" 0.5 ", "TRUE", "", "+1e0"]}, {"x": [0.5, 1.0, None, 1.0]}),
        ({"x": [1, "2", None, 2.5]}, {"x": [1.0, 2.0, None, 2.5]}),
        ({"k": [" 1", "2.0", True, "3"]}, {"k": [1, 2, 1, 3]}),
        ({"d": ["2020-05-05T01:00+02:00"] * 4}, {"d": [dt.datetime(2020, 5, 4, 23)] * 4}),
        ({"d": pd.to_datetime(["2020-05-05 01:00"] * 4).tz_localize("Europe/Paris")}, {"d": [dt.datetime(2020, 5, 4, 23)] * 4}),
        ({"x": np.ma.masked_array([1.0, 2.0, 3.0, 4.0], mask=[0, 1, 0, 1])}, {"x": [1.0, None, 3.0, None]}),
    ],
)  # fmt: skip
def test_cells_are_read_as_a_release_reads_them(spelled, plain):
    assert FIT.predict(CELLS | spelled) == pytest.approx(FIT.predict(CELLS | plain), rel=1e-12)


def test_one_row_and_no_rows():
    assert FIT.predict({name: cells[0] for name, cells in CELLS.items()}) == pytest.approx(FIT.predict(CELLS)[:1])
    assert FIT.predict({name: [] for name in CELLS}).shape == (0,)
    assert FIT.predict(pa.table(CELLS).slice(0, 0)).shape == (0,)


def test_a_value_that_is_not_a_number_is_missing():
    assert FIT.predict(CELLS | {"x": [np.inf, -np.inf, np.nan, None]}) == pytest.approx(FIT.predict(CELLS | {"x": [None] * 4}))
    assert FIT.predict(CELLS | {"b": [np.inf, np.nan, None, None]}) == pytest.approx(FIT.predict(CELLS | {"b": [None] * 4}))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({n: c for n, c in CELLS.items() if n != "c"}, "the model uses column 'c', but the frame has no such column. Add it"),
        (CELLS | {"x": [1.0]}, "have different lengths. Give each the same number of rows.$"),
        (CELLS | {"x": ["u", "v", "w", "z"]}, "column 'x' of the frame cannot be read as numeric"),
        (CELLS | {"x": CELLS["d"]}, "column 'x' of the frame cannot be read as numeric"),
        (CELLS | {"x": [[1], [2], [3], [4]]}, "column 'x' of the frame cannot be read as numeric"),
        (
            CELLS | {"d": np.array([18387, 18262, 18445, 18627])},
            "column 'd' of the frame contains int64, but it needs dates, times",
        ),
        (
            CELLS | {"d": [18387, 18262, 18445, 18627]},
            "column 'd' of the frame cannot be read as date. One of its cells is 18387",
        ),
        (CELLS | {"d": ["nope"] * 4}, "column 'd' of the frame cannot be read as date"),
        (CELLS | {"x": [1, "a", None, 2.0]}, "column 'x' of the frame cannot be read as numeric. One of its cells is 'a'"),
        (CELLS | {"x": np.zeros((4, 1))}, "the frame cannot be read as columns with names"),
        (
            pd.DataFrame([[1.0, 1.0]], columns=["x", "x"]),
            "the frame has several columns named 'x', but only one is allowed. Keep one",
        ),
        (
            pa.table([pa.array([1.0])] * 6, names=["x", "x", "c", "k", "b", "d"]),
            "the frame has several columns named 'x', but only one is allowed. Keep one",
        ),
        (pd.Series([1.0]), "the frame cannot be read as columns with names"),
        (np.zeros((3, 4)), "the frame is a ndarray, but predict needs columns with names"),
        (pl.DataFrame(CELLS).lazy(), "the frame is a LazyFrame"),
        (None, "the frame is a NoneType"),
    ],
)
def test_what_cannot_be_predicted_from(frame, message):
    with pytest.raises(ModelError, match=message):
        FIT.predict(frame)


def test_only_the_columns_that_a_model_uses_are_needed():
    small = dpgram.regress(RELEASE, "y", ["x", "xc[b]"])
    assert small.predict({"x": [2.0], "c": ["b"]}) == pytest.approx([sum(np.array([1, 2, 2]) * small.coefficients)])
    with pytest.raises(ModelError, match="uses column 'c', but the frame has no such column"):
        small.predict({"x": [2.0]})
    assert dpgram.regress(RELEASE, "y", []).predict({"x": [1, 2, 3]}) == pytest.approx([FIT_MEAN] * 3)
    through = dpgram.regress(RELEASE, "y", ["x"], intercept=False)
    assert through.predict({"x": [2.0]}) == pytest.approx(2 * through.coefficients)


FIT_MEAN = dpgram.regress(RELEASE, "y", []).coefficients[0]


def test_predictions_of_a_weighted_target_are_weighted_predictions():
    both = dpgram.regress(RELEASE, {"y": 2, "x": -1.5}, ["k"], estimator="debiased")
    one = [dpgram.regress(RELEASE, target, ["k"], estimator="debiased").predict({"k": [1, 2, 3]}) for target in ("y", "x")]
    assert both.predict({"k": [1, 2, 3]}) == pytest.approx(2 * one[0] - 1.5 * one[1], rel=1e-6)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_intervals_are_those_of_least_squares_when_noise_is_nil(confidence):
    fit = dpgram.regress(RELEASE, "y", ["x", "k"])
    features = own_features(SCHEMA, fit.design, TABLE)
    y = np.array(TABLE["y"])
    n, p = features.shape
    left = np.sum((y - features @ fit.coefficients) ** 2) / (n - p)
    mean = np.einsum("ij,jk,ik->i", features, left * np.linalg.inv(features.T @ features), features)
    reach = stats.norm.isf((1 - confidence) / 2)
    for interval, variance in (("mean", mean), ("observation", mean + left)):
        found = fit.predict(TABLE, interval=interval, confidence=confidence)
        assert found["upper"] - found["debiased"] == pytest.approx(reach * np.sqrt(variance), rel=1e-6)
        assert found["debiased"] - found["lower"] == pytest.approx(reach * np.sqrt(variance), rel=1e-6)


def test_an_interval_holds_its_prediction_and_is_infinite_where_nothing_is_known():
    drowned = dpgram.release(TABLE, SCHEMA, epsilon=0.05, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    found = dpgram.regress(drowned, "y").predict(TABLE, interval="observation")
    assert (found["lower"] <= found["debiased"]).all()
    assert (found["debiased"] <= found["upper"]).all()
    assert np.isinf(found["upper"]).any()
    assert np.isfinite(found["prediction"]).all()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"k": [1, 2, 33, 9]}, "contains '33', which is not a declared level. Did you mean '3'? The levels are '1', '2', '3'"),
        ({"k": ["1", "2", "7", None]}, "column 'k' of the frame contains '7', which is not a declared level. The levels are"),
        ({"k": pa.array([1, 2, 4, None])}, "contains '4', which is not a declared level"),
        ({"k": pd.Series([1, 2, 4, None])}, "contains '4.0', which is not a declared level"),
    ],
)  # fmt: skip
def test_an_undeclared_level_is_refused(cells, message):
    """It would get the number of the reference, without a word."""
    with pytest.raises(ModelError, match=re.escape(message)):
        FIT.predict(CELLS | cells)


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        ([True, 2, False, 1], "2"),
        ([0.5, 1.0, 0.0, None], "0.5"),
        (["yes", "-1", "f", "0"], "-1"),
        (np.array([1, 0, 1, 7]), "7"),
        (pd.Series([1, 0, 1, 2]), "2"),
        (pa.array([1, 0, None, 3], pa.int8()), "3"),
        (pl.Series([0.0, 1.0, 0.25, None]), "0.25"),
    ],
)  # fmt: skip
def test_a_number_that_is_no_truth_value_is_refused(cells, shown):
    """It would get the number of false, without a word."""
    words = f"column 'b' of the frame contains {shown!r}, which is not a truth value. The truth values are True and False, or 1 and 0."
    with pytest.raises(ModelError, match=re.escape(words)):
        FIT.predict(CELLS | {"b": cells})


def test_undeclared_levels_of_a_column_with_other_are_taken_and_missing_ones_are_missing():
    assert FIT.predict(CELLS | {"c": ["zz"] * 4}) == pytest.approx(FIT.predict(CELLS | {"c": ["other levels"] * 4}))
    assert FIT.predict(CELLS | {"k": [None, np.nan, None, None]}) == pytest.approx(FIT.predict(CELLS | {"k": [1] * 4}))
    dropping = dataclasses.replace(
        SCHEMA, columns=[dpgram.Categorical("g", ["up", "down"], missing="drop-row"), *SCHEMA.columns[1:2]], derived=[]
    )
    fit = dpgram.regress(exact_release(pa.table({"g": ["up", "down"] * 50, "y": [1.0, 2.0] * 50}), dropping), "y")
    assert np.isnan(fit.predict({"g": ["up", None]})).tolist() == [False, True]
    with pytest.raises(ModelError, match="contains 'dwon', which is not a declared level. Did you mean 'down'?"):
        fit.predict({"g": ["dwon"]})


def test_a_level_that_does_not_exist_is_no_feature():
    with pytest.raises(ModelError, match=re.escape("column 'k' has no level '33'. Did you mean '3'? Its levels are 1, 2, 3.")):
        dpgram.regress(RELEASE, "y", ["k[33]"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": "mean", "confidence": 1.5}, "confidence is 1.5 and must be a number between 0 and 1"),
        ({"interval": "confidence"}, "interval is 'confidence' and must be"),
    ],
)
def test_mistakes_of_the_call(options, message):
    with pytest.raises(ModelError, match=message):
        FIT.predict(CELLS, **options)
