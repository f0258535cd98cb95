"""A check and a release see the same cells: what one counts as missing or unreadable, the other fills or drops, whatever the cells hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpgram
from dpgram.checking import reasons
from dpgram.checking.tally import ColumnTally
from dpgram.encoding.encode import cells_of

COLUMNS = [
    dpgram.Numeric("x", 0, 10),
    dpgram.Date("x", "2000-01-01", "2030-01-01"),
    dpgram.Boolean("x"),
    dpgram.Categorical("x", ["paris", "10", "yes", "Paris "]),
    dpgram.Categorical("x", [1, 2, 10]),
]
LIKELY = st.sampled_from(
    ["", " ", "paris", "Paris", "1,500", "3,14", "31/12/2020", "2020-12-31", "20201231", "12 %", "$5", "yes", "NA", "nan", "inf", "-999",
     "1e999", "10", "10.0", "(5)", "170 cm", "<5", "1.500.000", "\u00a010", "٣", "½", "१२", "2020-02-30", "1" * 400, "\x00", "\ufeff10",
     "'17", '"10"', "12*", "1,23,456", "3:05", "120/80", "5'11\"", "20.1 ± 0.3", "2020-W14", "17.-", "12.3k", "12.345", "ｐaris", "'paris'"]
)  # fmt: skip
CELLS = st.lists(
    st.one_of(st.none(), LIKELY, st.text(max_size=12)).map(lambda t: None if t is None else t.encode()) | st.binary(max_size=8)
)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.kind}")
@given(cells=CELLS)
def test_cells_that_are_not_read_are_told_and_no_others(column, cells):
    given_cells = pa.array(cells, pa.large_binary())
    tally = ColumnTally(column, pa.binary(), untyped=True)
    values = tally.add(given_cells)
    assert np.array_equal(values, cells_of(column, given_cells), equal_nan=True)
    assert tally.missing + tally.undeclared + tally.unreadable == np.isnan(values).sum()
    assert tally.missing >= sum(not cell for cell in cells)
    assert min([0, *tally.found.values()]) == 0
    assert {code for code, times in tally.found.items() if times} <= {*tally.rules, *reasons.COMMON}


@pytest.mark.parametrize("column", COLUMNS[:1] + COLUMNS[4:], ids=["numeric", "codes"])
@given(values=st.lists(st.floats(allow_nan=True, allow_infinity=True)))
def test_numbers_that_are_not_finite_are_told_apart_from_missing_ones(column, values):
    tally = ColumnTally(column, pa.float64(), untyped=False)
    tally.add(np.array(values, dtype=np.float64))
    assert tally.missing == np.isnan(values).sum()
    assert tally.found["not-finite"] == np.isinf(values).sum()


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.kind}")
@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 2**62], pa.int64()),
        pa.array([1.5, None, float("nan")], pa.float32()),
        pa.array(["1.50", None, "7"]).cast(pa.decimal128(9, 2)),
        pa.array([True, None, False]),
        pa.array([0, None, 9], pa.date32()),
        pa.array([0, None, 9], pa.timestamp("us", "UTC")),
        pa.array(["paris", None, "x"], pa.string_view()),
        pa.array(["paris", None, "x"]).dictionary_encode(),
        pa.array([5, None, 6], pa.duration("s")),
        pa.array([[1], None, [2]]),
        pa.nulls(3),
    ],
    ids=lambda cells: str(cells.type),
)  # fmt: skip
def test_every_type_of_arrow_can_be_checked(column, cells):
    found = dpgram.check(pa.table({"x": cells}), dpgram.Schema(unit="p", columns=[column]))
    assert found.table_rows == 3
    assert str(found)
    assert found.suggested_schema
