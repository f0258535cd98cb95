"""Derived columns equal what plain Python computes from the clamped cells, and a regression finds them in own units."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram import Boolean, Categorical, Date, DatePart, Interval, Log, Log1p, Numeric, Power, Product, Schema
from dpgram.encoding.cells import as_days
from dpgram.encoding.columns import untyped_array
from dpgram.encoding.derive import derived_values
from dpgram.encoding.encode import Encoder
from dpgram.report.fact import Group
from dpgram.report.facts import facts, label_data

COLUMNS = [
    Numeric("x", -2, 3),
    Numeric("y", 1, 5, missing=2),
    Boolean("b", missing=True),
    Categorical("c", ["p", "q", "r"], other=True),
    Categorical("k", [1, 2], missing="level"),
    Date("when", "2012-12-31", "2014-07-01T12:00:00"),
]
ROWS = 400
EPOCH = datetime.datetime(1970, 1, 1)


def cells() -> dict[str, list]:
    rng = np.random.default_rng(2)
    start = datetime.datetime(2012, 6, 1)

    def some_missing(values):
        return [None if gone else value for value, gone in zip(values, rng.random(ROWS) < 0.2, strict=True)]

    return {
        "x": some_missing(rng.normal(0, 3, ROWS).tolist()),
        "y": some_missing(rng.uniform(0, 7, ROWS).tolist()),
        "b": some_missing((rng.random(ROWS) < 0.5).tolist()),
        "c": some_missing(rng.choice(["p", "q", "r", "s"], ROWS).tolist()),
        "k": some_missing(rng.integers(1, 4, ROWS).tolist()),
        "when": some_missing([start + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 9 * 10**7, ROWS)]),
    }


TABLE = cells()
FRACTIONS = 2.0**-50  # of the scaled column: what the subtraction and the division round


def own_units(derived) -> dict[str, np.ndarray]:
    """Encoded columns of one derived column, back in own units."""
    schema = Schema(unit="p", columns=COLUMNS, derived=[derived])
    out = Encoder(schema).encode(pa.table(TABLE).combine_chunks().to_batches()[0])
    assert (np.abs(out) <= 1).all()
    return {e.name: e.centre + e.half * out[i] for i, e in enumerate(schema.encoded) if e.column == derived.name}


def clamped(name, cell):
    """A cell as the schema sees it, in exact arithmetic; None where it is missing."""
    if cell is None:
        return None
    column = next(c for c in COLUMNS if c.name == name)
    if isinstance(column, Date):
        low, high = (datetime.datetime.fromisoformat(end) for end in (column.lower, column.upper))
        return min(max(cell, low), high)
    return min(max(Fraction(cell), Fraction(column.lower)), Fraction(column.upper))


def by_hand(names, formula, missing):
    rows = zip(*([clamped(n, cell) if n in ("x", "y", "when") else cell for cell in TABLE[n]] for n in names), strict=True)
    return [float(missing if None in row else formula(*row)) for row in rows]


DAYS = {m: Fraction((m - EPOCH) // datetime.timedelta(seconds=1), 86400) for m in TABLE["when"] if m is not None}
LATE = datetime.datetime(2013, 6, 1)
NUMBERS = [
    (Product("d", of=("x", "y")), ("x", "y"), lambda x, y: x * y, 2.5),
    (Product("d", of=("x", "y"), missing=-1), ("x", "y"), lambda x, y: x * y, -1),
    (Power("d", of="x"), ("x",), lambda x: x * x, 4.5),
    (Power("d", of="x", exponent=5, missing=0), ("x",), lambda x: x**5, 0),
    (Log("d", of="y"), ("y",), lambda y: math.log(y), math.log(5) / 2),
    (Log("d", of="y", missing=1.25), ("y",), lambda y: math.log(y), 1.25),
    (Log1p("d", of="y"), ("y",), lambda y: math.log1p(y), (math.log(2) + math.log(6)) / 2),
    (Interval("d", of="x", lower=-1, upper=1), ("x",), lambda x: -1 <= x < 1, 0),
    (Interval("d", of="x", upper=3, missing=True), ("x",), lambda x: x < 3, 1),
    (Interval("d", of="when", lower="2013-06-01"), ("when",), lambda w: w >= LATE, 0),
    (DatePart("d", of="when", part="year"), ("when",), lambda w: w.year, 2013),
    (DatePart("d", of="when", part="month", missing=7), ("when",), lambda w: w.month, 7),
    (DatePart("d", of="when", part="weekday"), ("when",), lambda w: w.isoweekday(), 4),
    (DatePart("d", of="when", part="hour"), ("when",), lambda w: w.hour, 11.5),
    (Product("d", of=("x", "b")), ("x", "b"), lambda x, b: x * b, 0),
    (Product("d", of=("c[q]", "y")), ("c", "y"), lambda c, y: y * (c == "q"), 0),
    (Product("d", of=("y", "c[p]")), ("y", "c"), lambda y, c: y * (c == "p"), 0),
    (Product("d", of=("b", "c[other]")), ("b", "c"), lambda b, c: b and c == "s", 0),
]


@pytest.mark.parametrize(("derived", "names", "formula", "missing"), NUMBERS, ids=lambda v: getattr(v, "kind", None))
def test_one_column(derived, names, formula, missing):
    found = own_units(derived)["d"]
    spread = max(abs(v) for v in (*found, 1.0))
    assert found == pytest.approx(by_hand(names, formula, missing), abs=FRACTIONS * spread * 8, rel=1e-14)


def test_a_number_times_a_category_is_a_number_per_level():
    found = own_units(Product("d", of=("x", "c")))
    assert list(found) == ["d[q]", "d[r]", "d[other]"]
    for name, value in (("d[q]", "q"), ("d[r]", "r"), ("d[other]", "s")):
        expected = by_hand(("x", "c"), lambda x, c, value=value: x * (c == value), 0)
        assert found[name] == pytest.approx(expected, abs=1e-14)


def test_a_missing_level_is_a_level_like_the_others():
    found = own_units(Product("d", of=("k", "y")))
    gone = [k not in (1, 2) for k in TABLE["k"]]
    y = [None if v is None else float(clamped("y", v)) for v in TABLE["y"]]
    assert found["d[missing]"] == pytest.approx(
        [0 if v is None or not g else v for v, g in zip(y, gone, strict=True)], abs=1e-14
    )


def test_two_categories_make_all_pairs():
    found = own_units(Product("d", of=("c", "k")))
    assert list(found) == [f"d[{c}:{k}]" for c in ("q", "r", "other") for k in ("2", "missing")]
    pairs = list(zip(TABLE["c"], TABLE["k"], strict=True))
    assert found["d[q:2]"].tolist() == [float(pair == ("q", 2)) for pair in pairs]
    assert found["d[other:missing]"].tolist() == [float(c == "s" and k not in (1, 2)) for c, k in pairs]
    assert max(sum(row) for row in zip(*found.values(), strict=True)) == 1


def test_parts_as_levels():
    found = own_units(DatePart("d", of="when", part="month", levels=True, missing="level"))
    assert list(found) == [*(f"d[{m}]" for m in range(2, 13)), "d[missing]"]
    months = [None if w is None else clamped("when", w).month for w in TABLE["when"]]
    for month in range(2, 13):
        assert found[f"d[{month}]"].tolist() == [float(m == month) for m in months]
    assert found["d[missing]"].tolist() == [float(m is None) for m in months]
    plain = own_units(DatePart("d", of="when", part="month", levels=True))
    assert max(v[months.index(None)] for v in plain.values()) == 0


def test_a_date_is_a_number_of_days():
    schema = Schema(unit="p", columns=COLUMNS)
    out = Encoder(schema).encode(pa.table(TABLE).combine_chunks().to_batches()[0])
    place = schema.encoded_names.index("when")
    scale = schema.encoded[place]
    first, last = (Fraction(end) for end in (COLUMNS[-1].first, COLUMNS[-1].last))
    expected = [float((first + last) / 2 if w is None else min(max(DAYS[w], first), last)) for w in TABLE["when"]]
    assert scale.centre + scale.half * out[place] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2013-02-28", (2013, 2, 28)), (" 2013-02-28 ", (2013, 2, 28)), ("2012-02-29", (2012, 2, 29)),
        ("2013-01-01T05:06", (2013, 1, 1, 5, 6)), ("2013-01-01 05:06:07", (2013, 1, 1, 5, 6, 7)),
        ("2013-01-01t05:06:07.999999999", (2013, 1, 1, 5, 6, 7)), ("1913-01-01T05:06:07,5", (1913, 1, 1, 5, 6, 7)),
        ("2013-01-01T05:00Z", (2013, 1, 1, 5)), ("2013-01-01T05:00+02", (2013, 1, 1, 3)),
        ("2013-01-01T05:00:00-0530", (2013, 1, 1, 10, 30)), ("2013-01-01 01:00:00+02:00", (2012, 12, 31, 23)),
        ("9999-12-31T23:59:59", (9999, 12, 31, 23, 59, 59)), ("2013-01-02T23:59+23:59", (2013, 1, 2)), ("0001-01-01", (1, 1, 1)),
        (datetime.date(2013, 2, 28), (2013, 2, 28)), (datetime.datetime(2013, 2, 28, 5), (2013, 2, 28, 5)),
        (np.datetime64("2013-02-28T05", "ns"), (2013, 2, 28, 5)), (np.datetime64("2013-02-28"), (2013, 2, 28)),
        *((text, None) for text in (
            "2013-02-29", "2013-13-01", "2013-00-10", "2013-01-00", "2013-01-32", "0000-01-01", "20130101", "2013-1-1", "13-01-01",
            "2013-01-01T24:00", "2013-01-01T05", "2013-01-01T05:60", "2013-01-01T05:00:60", "2013-01-01T05:00+24:00",
            "2013-01-01T05:00+02:60", "01/02/2013",
            "2013-01-01T", "", "nan", "NaT", "today", None, 5, 1.5, True, b"\xff2013-01-01", "２０１３-01-01", np.datetime64("NaT"),
            float("nan"), [datetime.date(2013, 1, 1)], object(), "2013-01-01\n2013", "+2013-01-01", "12013-01-01",
        )),
    ],
)  # fmt: skip
def test_text_cells_parse_or_are_missing(text, moment):
    found = as_days(untyped_array([text]))[0]
    if moment is None:
        assert math.isnan(found)
    else:
        apart = datetime.datetime(*moment) - EPOCH
        assert found == apart.days + apart.seconds / 86400


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "US/Eastern"])
def test_timestamps_of_every_unit_are_one(unit, zone):
    moments = [datetime.datetime(1912, 5, 5, 5, 5, 5), datetime.datetime(2013, 7, 1, 23, 59, 59), None]
    typed = as_days(
        pa.array(moments, pa.timestamp(unit)).cast(pa.timestamp(unit, zone)) if zone else pa.array(moments, pa.timestamp(unit))
    )
    assert np.array_equal(typed, as_days(untyped_array(moments)), equal_nan=True)


def test_other_types_of_dates():
    days = [datetime.date(2013, 2, 28), None]
    for cells in (pa.array(days), pa.array(days, pa.date64()), pa.array(days).dictionary_encode()):
        assert np.array_equal(as_days(cells), [15764.0, np.nan], equal_nan=True)
    assert np.isnan(as_days(pa.nulls(2))).all()
    assert np.isfinite(as_days(pa.array([2**63 - 1, -(2**63)], pa.timestamp("s")))).all()  # clamped later


@pytest.mark.parametrize("type_", [pa.string(), pa.int64(), pa.float64(), pa.time32("s"), pa.duration("s"), pa.bool_()])
def test_a_wrong_declared_type_is_an_error(type_):
    schema = Schema(unit="p", columns=[Date("d", "2013-01-01", "2014-01-01")])
    with pytest.raises(
        dpgram.errors.ColumnTypeError, match="declared date, but the table holds .* a type of dates or timestamps"
    ):
        Encoder(schema).encode(pa.record_batch({"d": pa.array([], type_)}))


def test_the_label_says_that_a_logarithm_was_taken():
    schema = Schema(unit="p", columns=COLUMNS, derived=[Log("d", of="y", missing=0.5)])
    made = dpgram.release(TABLE, schema, epsilon=1, delta=1e-6, insecure_seed=0)
    words = label_data(made)["derived"]["d"]["computed"]
    assert words == f"log(y), within [0, {math.log(5):.15g}]; 0.5 if a cell it uses is missing"


def test_no_rows_make_no_columns_fewer():
    derived = [Product("d", of=("x", "c")), Product("e", of=("c", "k")), DatePart("f", of="when", part="month", levels=True)]
    schema = Schema(unit="p", columns=COLUMNS, derived=[*derived, Power("g", of="x"), Log1p("h", of="y")])
    empty = pa.table(TABLE).combine_chunks().to_batches()[0].slice(0, 0)
    assert Encoder(schema).encode(empty).shape == (len(schema.encoded), 0)
    untyped = pa.record_batch({c.name: pa.array([], pa.large_binary()) for c in COLUMNS})
    assert Encoder(schema, untyped=frozenset(schema.names)).encode(untyped).shape == (len(schema.encoded), 0)


def test_values_for_an_analyst_who_has_plain_arrays():
    schema = Schema(unit="p", columns=COLUMNS, derived=[Product("d", of=("x", "c")), Power("e", of="x")])
    cells = {"x": np.array([1e9, -np.inf, np.nan, 1.0, 2.0]), "c": np.array([1.0, 1.0, 2.0, 7.0, 0.5])}
    assert derived_values(schema, schema.derived[0], cells).tolist() == [[3, 0, 0, 0, 0], [0] * 5, [0] * 5]
    assert derived_values(schema, schema.derived[1], cells).tolist() == [[9, 4.5, 4.5, 1, 4]]
    assert np.isinf(cells["x"][1])  # what came in is left alone


def release(schema, rows=60_000):
    """A table in which y depends on derived columns by known coefficients, and its release with next to no noise."""
    rng = np.random.default_rng(3)
    x, c = rng.uniform(-2, 3, rows), rng.choice(["p", "q", "r"], rows)
    when = np.datetime64("2013-01-01") + rng.integers(0, 365, rows).astype("timedelta64[D]")
    month = when.astype("datetime64[M]").astype(int) % 12 + 1
    y = 1 + 0.5 * x - 0.25 * x**2 + 2.0 * x * (c == "q") - 1.0 * (c == "r") + 0.1 * month + 0.5 * (x >= 1)
    table = pa.table({"x": x, "c": c, "when": when, "y": y})
    return dpgram.release(table, schema, epsilon=1e6, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)


SLOPES = Schema(
    unit="p",
    columns=[
        Numeric("x", -2, 3),
        Categorical("c", ["p", "q", "r"]),
        Date("when", "2013-01-01", "2014-01-01"),
        Numeric("y", -20, 20),
    ],
    derived=[
        Power("x2", of="x"),
        Product("xc", of=("x", "c")),
        DatePart("month", of="when", part="month"),
        Interval("high", of="x", lower=1),
        Power("y2", of="y"),
    ],
)


def test_a_regression_finds_the_coefficients_in_own_units(tmp_path):
    made = release(SLOPES)
    made.save(tmp_path / "r.json")
    made = dpgram.load(tmp_path / "r.json")
    assert made.schema == SLOPES
    fit = dpgram.regress(made, "y", ["x", "x2", "c", "xc", "month", "high"], estimator="plain")
    truth = {"(intercept)": 1, "x": 0.5, "x2": -0.25, "c[q]": 0, "c[r]": -1, "xc[q]": 2, "xc[r]": 0, "month": 0.1, "high": 0.5}
    assert list(fit.params.index) == list(truth)
    for name, value in truth.items():
        assert fit.params[name] == pytest.approx(value, abs=0.01), name


def test_what_comes_from_the_target_does_not_explain_it():
    made = release(SLOPES, rows=2000)
    assert "y2" not in dpgram.regress(made, "y").names
    assert "y" not in dpgram.regress(made, "y2").names
    assert set(dpgram.regress(made, "x").names) == {"(intercept)", "c[q]", "c[r]", "when", "month", "y", "y2"}
    assert "y2" in dpgram.regress(made, "y", ["y2"]).names  # unless it is asked for
    with pytest.raises(
        dpgram.errors.ModelError, match=r"several levels, so it cannot be a target. Name one of its levels: xc\[q\], xc\[r\]"
    ):
        dpgram.regress(made, "xc")
    with pytest.raises(dpgram.errors.UnknownColumnError, match="xc"):
        dpgram.regress(made, "nonsense")


def test_the_label_says_how_columns_were_computed():
    made = release(SLOPES, rows=2000)
    words = {name: entry["computed"] for name, entry in label_data(made)["derived"].items()}
    assert words == {
        "x2": "x to the power 2, within [0, 9]; the midpoint if a cell it uses is missing",
        "xc": "x times c; 0 if a cell it uses is missing",
        "month": "month of when, in UTC, within [1, 12]; the midpoint if a cell it uses is missing",
        "high": "1 where 1.0 <= x, else 0; 0 if a cell it uses is missing",
        "y2": "y to the power 2, within [0, 400]; the midpoint if a cell it uses is missing",
    }
    told = {fact.key: fact for fact in facts(made)}
    assert [fact.name for fact in told.values() if fact.group is Group.DERIVED] == list(words)
    assert "days since 1970-01-01 (UTC)" in told["bounds", "when"].words
