"""What one cell holds has no say in what the others become, nor in whether there is an error: columns go by declared types."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpgram
from dpgram.engines.encoded import encoded_rows
from dpgram.errors import DpgramWarning, LedgerError, SchemaError

BIG = 9007199254740993  # 2**53 + 1: no float is this
IDS = dpgram.Schema(unit="r", columns=[dpgram.Categorical("id", ["9007199254740992", str(BIG)])])
TEXT = dpgram.Schema(unit="r", columns=[dpgram.Categorical("c", ["a", "b"], missing="level")])
DATES = dpgram.Schema(unit="r", columns=[dpgram.Date("d", "2013-01-01", "2014-01-01", missing="midpoint")])
BAD = pa.Array.from_buffers(pa.string(), 3, pa.array([b"CANARY\xff", b"a", b"b"], pa.binary()).buffers())


def encoded(table, schema):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return encoded_rows(table, schema)


@pytest.mark.parametrize(
    "column",
    [
        lambda cells: pd.Series(pd.array(cells, dtype="Int64")),
        lambda cells: pd.Series(cells, dtype="int64[pyarrow]"),
        lambda cells: pl.Series(cells, dtype=pl.Int64),
        lambda cells: pa.array(cells, pa.int64()),
        lambda cells: pa.chunked_array([pa.array(cells, pa.int64())]),
        lambda cells: pd.Series(pd.Categorical(pd.array(cells, dtype="Int64"))),
        list,
    ],
)
def test_a_missing_cell_does_not_change_the_other_rows(column):
    """As a float, 2**53 + 1 is another number; one missing cell must not make floats of all."""
    whole = encoded({"id": column([BIG] * 3)}, IDS)
    holed = encoded({"id": column([BIG, BIG, None])}, IDS)
    np.testing.assert_array_equal(whole[:2], holed[:2])
    assert (whole[:, -1] == 1).all()


@pytest.mark.parametrize(
    "table",
    [
        {"c": BAD},
        pa.table({"c": BAD}),
        {"c": pa.table({"c": BAD}).to_pandas(types_mapper=pd.ArrowDtype)["c"]},
        pa.table({"c": BAD}).to_pandas(types_mapper=pd.ArrowDtype),
    ],
)
def test_text_that_is_not_utf8_is_a_missing_cell_everywhere(table):
    found = np.asarray(encoded(table, TEXT))
    good = np.asarray(encoded({"c": [None, "a", "b"]}, TEXT))
    np.testing.assert_array_equal(found, good)


class Raising(datetime.tzinfo):
    def utcoffset(self, when):
        raise ValueError("CANARY")


@pytest.mark.parametrize(
    "cell",
    [
        pd.DatetimeIndex(np.array([-(2**40)], "datetime64[s]")).tz_localize("UTC").tz_convert("Europe/Paris")[0],
        datetime.datetime(2013, 5, 5, tzinfo=Raising()),
    ],
    ids=["early", "raising"],
)
def test_a_time_that_cannot_be_written_raises_nothing(cell):
    encoded({"d": [cell, "2013-05-05"]}, DATES)
    encoded(pd.DataFrame({"d": pd.Series([cell, "2013-05-05"], dtype=object)}), DATES)


def test_far_dates_in_typed_columns_raise_nothing():
    far = pd.Series(
        pd.DatetimeIndex(np.array([3 * 10**11, 1370000000], "datetime64[s]")).tz_localize("UTC").tz_convert("Europe/Paris")
    )
    days = pd.Series(pa.array([2**31 - 1, 15900], pa.date32()), dtype=pd.ArrowDtype(pa.date32()))
    for column in (far, days):
        encoded({"d": column}, DATES)
        encoded(pd.DataFrame({"d": column}), DATES)


def test_far_days_do_not_wrap_into_the_bounds():
    """Day 2**32 + 15900 would read as July 2013 in 32 bits."""
    days = np.array([2**32 + 15900, 15900, np.datetime64("NaT").view(np.int64), 2**62], dtype=np.int64).view("datetime64[D]")
    found = np.asarray(encoded({"d": days}, DATES))[:, -1]
    assert found[0] == found[3] == 1.0  # clamped to the upper bound
    assert abs(found[1]) < 0.5
    assert found[2] == 0.0  # missing: the midpoint


def fitted(X, y, **changes):
    given = {"epsilon": 50.0, "delta": 1e-3, "bounds": (-1, 1), "target_bounds": (0, 1), "random_state": 0, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return dpgram.PrivateLinearRegression(**given).fit(X, y)


def test_a_row_of_another_shape_does_not_touch_the_others():
    n = 2000
    whole, odd = [[1.0]] * n, [[1.0]] * (n - 1) + [1.0]
    models = [fitted([[0.0, 0.0]] * n, y) for y in (whole, odd)]
    columns, sums = [m.release_.columns for m in models], [m.release_.gram[0, -1] for m in models]
    assert columns[0] == columns[1]
    assert abs(sums[0] - sums[1]) < 3  # one row, and noise
    ragged = fitted([[0.5, 0.5]] * (n - 1) + [[0.5]], [1.0] * n)
    assert ragged.release_.columns == ("(intercept)", "x0", "x1", "y")


def test_targets_keep_their_declared_type():
    y = pd.Series(pd.array([1, 0, None] * 100, dtype="Int64"))
    for target in (y, pl.Series([1, 0, None] * 100), pa.array([1, 0, None] * 100)):
        assert fitted(np.zeros((300, 1)), target).release_.columns[-1] == "y"


def test_what_cannot_be_computed_afterwards_fails_before_anything_is_spent():
    columns = [dpgram.Numeric("x0", -1, 1), dpgram.Numeric("x1", -1, 1), dpgram.Numeric("y", -4, 4)]
    schema = dpgram.Schema(unit="r", columns=columns, derived=[dpgram.Power("y2", "y")])
    ledger = dpgram.SessionLedger(1, 1e-6)
    with pytest.raises(SchemaError):
        fitted(np.zeros((50, 2)), np.zeros(50), epsilon=1, delta=1e-6, bounds=schema, target_bounds=None, ledger=ledger)
    assert ledger.spent == (0.0, 0.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork, so no forked copy of a ledger either")
def test_a_forked_ledger_is_refused():
    ledger = dpgram.SessionLedger(1, 1e-6)

    def child(pipe):
        try:
            ledger.reserve(dpgram.Budget(1, 1e-6), dpgram.Neighbours.REPLACE, "a release")
        except LedgerError as error:
            pipe.send(str(error))
        else:
            pipe.send("reserved")

    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=child, args=(there,))
    process.start()
    assert "belongs to another process" in here.recv()
    process.join()
