"""A prediction reads cells as a release does: whatever the kind, the cell and the container, the encoded rows are equal to the bit.

A cell that a release reads is read the same. One that it counts as missing counts as missing here too, or is refused in words."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpgram import Boolean, Categorical, Date, DatePart, Interval, Log, Log1p, Numeric, Power, Product, Schema
from dpgram.analysis import frames
from dpgram.engines.encoded import encoded_rows
from dpgram.errors import ColumnTypeError, ModelError

WITHOUT_LIMITS = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
BOTH = st.booleans()
WAYS = st.sampled_from(["reference", "level"])
DERIVED = [
    Product("xy", of=("x", "y")),
    Product("xc", of=("x", "c")),
    Product("ck", of=("c", "k")),
    Product("bw", of=("b", "when"), missing=None),
    Product("yk", of=("y", "k[2]")),
    Power("x3", of="x", exponent=3, missing=1.5),
    Log1p("ly", of="y"),
    Log1p("lx", of="y", missing=0.25),
    Log("lw", of="when"),
    Interval("mid", of="x", lower=-1, upper=1, missing=True),
    Interval("late", of="when", lower="2013-06-01T12:00:00"),
    DatePart("month", of="when", part="month", levels=True, missing="level"),
    DatePart("weekday", of="when", part="weekday", levels=True),
    DatePart("hour", of="when", part="hour"),
]


@st.composite
def schemas(draw):
    """Columns of every kind under every rule for what is missing or not declared, with some of the derived ones."""
    columns = [
        Numeric("x", -2, 3, missing=draw(st.sampled_from(["midpoint", 1.25]))),
        Numeric("y", -0.5, 5, missing="midpoint"),
        Boolean("b", missing=draw(BOTH)),
        Categorical("c", ["p", "q", "1", "true", "2.5"], other=draw(BOTH), missing=draw(WAYS)),
        Categorical("k", [1, 2, -3], other=draw(BOTH), missing=draw(WAYS)),
        Date("when", "2012-12-31", "2014-07-01T12:00:00", missing=draw(st.sampled_from(["midpoint", "2013-03-01"]))),
    ]
    derived = draw(st.lists(st.sampled_from(DERIVED), unique_by=lambda one: one.name, max_size=5))
    return Schema(unit="p", columns=columns, derived=derived, intercept=draw(BOTH))


OFFSETS = [dt.UTC, dt.timezone(dt.timedelta(hours=-5, minutes=-30)), ZoneInfo("Europe/Paris")]
ZONES = st.one_of(st.none(), st.sampled_from(OFFSETS))
MOMENTS = st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2100, 1, 1), timezones=ZONES)  # earlier, Paris was seconds off
NUMBERS = st.one_of(st.floats(-5, 8), st.integers(-4, 9))
SPELLED = [" 0.5 ", "+1", "1e0", ".5", "2.", "TRUE", "false", " 3\t", "1.50", "-0.0", "nan", "inf", "", "1e999"]
CELLS_OF = {  # cells that both take, as they come out of files, forms and databases
    "x": st.one_of(NUMBERS, BOTH, st.sampled_from(SPELLED), st.decimals(-5, 8, places=2), st.sampled_from([np.float32(0.1), np.int8(2)])),
    "b": st.sampled_from([True, False, 1, 0, 1.0, "true", "Yes", " y", "no", "N", "T", "f", "1", "0", "", 7, "7", np.bool_(True)]),
    "c": st.sampled_from(["p", "q", " p", "P", "1", 1, 1.0, True, "true", 2.5, Decimal("2.5"), "é", "", np.str_("q"), b"q"]),
    "k": st.sampled_from([1, 2, -3, 1.0, "1", " 2 ", "-3.0", True, Decimal(2), 9, 1.5, "", np.int16(2), -0.0]),
    "when": st.one_of(
        MOMENTS, MOMENTS.map(lambda m: m.isoformat()), st.dates(dt.date(1899, 1, 1), dt.date(2100, 1, 1)), st.sampled_from(
            ["2013-05-05", " 2013-05-05 06:07 ", "2013-05-05T23:59:59.9Z", "2013-05-05T01:00+02", "", np.datetime64("2013-05-05T06", "ns"),
             pd.Timestamp("2013-05-05 06:00:00.5", tz="US/Eastern"), np.datetime64("NaT"), pd.NaT]),
    ),
}  # fmt: skip
CELLS_OF["y"] = CELLS_OF["x"]
MISSING = st.sampled_from([None, math.nan, pd.NA, Decimal("NaN"), np.float64("nan")])


def frame_of_objects(columns):
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def objects(cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


UNTYPED = {
    "lists": dict,
    "tuples": lambda columns: {name: tuple(cells) for name, cells in columns.items()},
    "arrays of objects": lambda columns: {name: objects(cells) for name, cells in columns.items()},
    "masked objects": lambda columns: {name: np.ma.masked_array(objects(cells), mask=mask(cells)) for name, cells in columns.items()},
    "series of objects": lambda columns: {name: pd.Series(cells, dtype=object) for name, cells in columns.items()},
    "frame of objects": frame_of_objects,
    "categories": lambda columns: frame_of_objects(columns).astype({"b": "category", "k": "category"}),
}  # fmt: skip


def mask(cells):
    """Every third cell is not to be looked at, whatever it holds."""
    return np.arange(len(cells)) % 3 == 2


def read(schema, table):
    return frames.encoded_frame(schema, table, set(schema.names))


def or_refusal(encode, *given):
    """What ``encode`` gives; None where it refuses."""
    try:
        return encode(*given)
    except (ModelError, ColumnTypeError):
        return None


def differs(schema, table) -> bool:
    """Whether a prediction encodes the rows otherwise than a release, or refuses what that takes, or takes what that refuses.

    An undeclared level is refused, and a number that is no truth value, where a release counts them as missing."""
    try:
        predicted = read(schema, table)
    except ModelError as refusal:
        if undeclared := re.search(r"column '(\w)' of the frame contains .* which is not a declared level", str(refusal)):
            return schema.by_name[undeclared[1]].other
        if untrue := re.search(r"column 'b' of the frame contains '(.*)', which is not a truth value", str(refusal)):
            return untrue[1] not in ("7", "7.0")  # the only number among the cells that is neither 0 nor 1
        predicted = None
    except ColumnTypeError:
        predicted = None
    released = or_refusal(encoded_rows, table, schema)
    return (
        not np.array_equal(predicted, released) if predicted is not None and released is not None else predicted is not released
    )


@WITHOUT_LIMITS
@given(schema=schemas(), data=st.data(), container=st.sampled_from(sorted(UNTYPED)))
def test_cells_of_any_spelling_are_read_as_a_release_reads_them(schema, data, container):
    rows = data.draw(st.lists(st.tuples(*(st.one_of(CELLS_OF[n], MISSING) for n in schema.names)), min_size=1, max_size=5))
    columns = {name: [row[place] for row in rows] for place, name in enumerate(schema.names)}
    assert not differs(schema, UNTYPED[container](columns))


TYPED = {  # a column of one type: how cells are drawn, and the containers that hold it as a type
    "x": [st.floats(-5, 8), st.floats(-5, 8, width=32), st.integers(-4, 9), BOTH],
    "y": [st.floats(-5, 8), st.integers(-4, 9)],
    "b": [BOTH, st.sampled_from([0, 1, 7]), st.sampled_from([0.0, 1.0])],
    "c": [st.sampled_from(["p", "q", "", "z"]), st.sampled_from([1, 2]), st.sampled_from([1.0, 2.5, 9.0]), BOTH],
    "k": [st.sampled_from([1, 2, 9]), st.sampled_from([1.0, 1.5, -3.0])],
    "when": [
        st.datetimes(dt.datetime(1899, 1, 1), dt.datetime(2100, 1, 1)),
        st.datetimes(dt.datetime(1899, 1, 1), dt.datetime(2100, 1, 1), timezones=st.just(dt.UTC)),
        st.dates(dt.date(1899, 1, 1), dt.date(2100, 1, 1)),
    ],
}
CONTAINERS = {
    "arrow": pa.table,
    "batch": pa.record_batch,
    "dict of arrow": lambda columns: {name: pa.chunked_array([cells[:1], cells[1:]]) for name, cells in columns.items()},
    "dictionaries": lambda columns: pa.table({name: cells.dictionary_encode() for name, cells in columns.items()}),
    "pandas": lambda columns: pa.table(columns).to_pandas(),
    "pandas of arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas of its own": lambda columns: pa.table(columns).to_pandas().convert_dtypes(),
    "polars": lambda columns: pl.from_arrow(pa.table(columns)),
    "dict of polars": lambda columns: {name: pl.from_arrow(cells) for name, cells in columns.items()},
    "dict of numpy": lambda columns: {name: cells.to_numpy(zero_copy_only=False) for name, cells in columns.items()},
    "dict of masked": lambda columns: {
        name: np.ma.masked_array(array := cells.to_numpy(zero_copy_only=False), mask=mask(array)) for name, cells in columns.items()
    },
}  # fmt: skip


@WITHOUT_LIMITS
@given(schema=schemas(), data=st.data(), container=st.sampled_from(sorted(CONTAINERS)))
def test_columns_of_any_type_are_read_as_a_release_reads_them(schema, data, container):
    count = data.draw(st.integers(1, 5))
    columns = {}
    for name in schema.names:
        cells = st.one_of(st.none(), data.draw(st.sampled_from(TYPED[name])))
        columns[name] = pa.array(data.draw(st.lists(cells, min_size=count, max_size=count)))
    assert not differs(schema, CONTAINERS[container](columns))


NO_CELLS = [[1], {}, object(), 10**400, b"\xff", "\ud800", "maybe", "1,5", "2013-02-30", dt.time(5), 1j, Decimal("sNaN"), "NaT"]
PLAIN = [
    st.text(max_size=6),
    st.binary(max_size=6),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=ZONES),
]
ANYTHING = st.one_of(st.sampled_from(NO_CELLS), *PLAIN, *CELLS_OF.values())


@WITHOUT_LIMITS
@given(schema=schemas(), name=st.sampled_from(["x", "y", "b", "c", "k", "when"]), cell=ANYTHING)
def test_what_is_refused_is_what_a_release_counts_as_missing(schema, name, cell):
    nothing = {other: [None] for other in schema.names}
    table = nothing | {name: [cell]}
    if or_refusal(read, schema, table) is None:
        assert np.array_equal(encoded_rows(table, schema), encoded_rows(nothing, schema))
    else:
        assert not differs(schema, table)


WHOLE = Schema(
    unit="p",
    columns=[
        Numeric("x", -2, 3, missing=1.25),
        Numeric("y", -0.5, 5, missing="midpoint"),
        Boolean("b", missing=True),
        Categorical("c", ["p", "q", "1"], other=True, missing="level"),
        Categorical("k", [1, 2, -3]),
        Date("when", "2012-12-31", "2014-07-01T12:00:00", missing="midpoint"),
    ],
    derived=DERIVED,
)
LISTS = {
    "x": [" 0.5 ", "true", None, 2],
    "y": ["1e0", 0.25, Decimal("2.5"), ""],
    "b": ["yes", "true", None, 0],
    "c": ["p", 1, None, "z"],
    "k": [1, "2", -3.0, None],
    "when": ["2013-05-05T06:00:00+02:00", dt.datetime(2013, 5, 5, 6, tzinfo=ZoneInfo("US/Eastern")), None, dt.date(2013, 7, 1)],
}
ZONED = pa.table(
    {
        **{name: pa.nulls(2) for name in LISTS},
        "when": pa.array([dt.datetime(2013, 5, 5), dt.datetime(2013, 6, 5)], pa.timestamp("s", "Asia/Tokyo")),
    }
)
MASKED = {name: [None] * 3 for name in LISTS} | {"x": np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0])}
EARLY = {name: [None] for name in LISTS} | {"when": np.array(["2013-05-05T23:59:59.5"], "M8[ms]")}


def guessed(values):
    """Arrow guesses a type from what the cells hold."""
    return pa.chunked_array([pa.array(values, from_pandas=True)])


def in_local_time(column):
    cells = ARROW_CELLS(column)
    return pa.compute.local_timestamp(cells) if pa.types.is_timestamp(cells.type) and cells.type.tz else cells


def rounded(column):
    cells = ARROW_CELLS(column)
    return pa.compute.round_temporal(cells, unit="second") if pa.types.is_timestamp(cells.type) else cells


def without_own_fills(schema, **options):
    columns = [Numeric(c.name, c.lower, c.upper) if isinstance(c, Numeric) else c for c in schema.columns]
    return ENCODER(Schema(unit="p", columns=columns, derived=schema.derived, intercept=schema.intercept), **options)


ARROW_CELLS, ENCODER = frames.arrow_cells, frames.Encoder
MISTAKES = {  # what is planted, and a table that shows it
    "types guessed from cells": ("as_column", guessed, LISTS),
    "masks dropped": ("as_column", np.asarray, MASKED),
    "zones dropped": ("arrow_cells", in_local_time, ZONED),
    "seconds rounded": ("arrow_cells", rounded, EARLY),
    "declared fills forgotten": ("Encoder", without_own_fills, LISTS),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_seen(mistake, monkeypatch):
    name, wrong, table = MISTAKES[mistake]
    assert not differs(WHOLE, table)
    monkeypatch.setattr(frames, name, wrong)
    assert differs(WHOLE, table)
