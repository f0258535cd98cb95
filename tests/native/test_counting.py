"""Rows that count in part or not at all: the compiled kernel against rows that are left out, or multiplied, by hand."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram.encoding.encode import Encoder, cells_in
from dpgram.engines import summing
from dpgram.errors import BoundBrokenError
from dpgram.native.library import MapPanels
from dpgram.rows import table
from dpgram.rows.clip import clip, largest_square, mapped
from dpgram.rows.gram_sum import integer_gram
from dpgram.rows.table import CellTable
from dpgram.sources.base import MatrixBatch
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import MOST_SCALES, ONE_CLIP, first_scales
from tests.native.test_kernel import EVERY, arrow, numbers
from tests.native.test_mapped import matrix_batch

FILLED = {"numeric": "midpoint", "date": "midpoint", "categorical": "reference", "boolean": False}
ROWS = [1, 7, 8, 9, 111, 112, 113, 480, 1000, 4500]


def schema_of(columns, **changes) -> dpgram.Schema:
    return dpgram.Schema(unit="row", columns=columns, **changes)


def filled(schema: dpgram.Schema) -> dpgram.Schema:
    """The same columns, in which every missing cell is filled and no row dropped."""
    columns = [
        type(c)(**{**c.__dict__, "missing": FILLED[c.kind] if c.missing == "drop-row" else c.missing}) for c in schema.columns
    ]
    return schema_of(columns, intercept=schema.intercept, derived=schema.derived)


def complete(batch, schema: dpgram.Schema) -> np.ndarray:
    """Which rows have a cell in every column that drops rows."""
    there = np.ones(batch.num_rows, dtype=bool)
    for column in schema.columns:
        if column.missing == "drop-row":
            there &= ~np.isnan(cells_in(batch, column))
    return there


def some_map(dim: int, size: float) -> PublicMap:
    return PublicMap.near(size * np.random.default_rng(dim).normal(size=(dim, dim)) / dim)


def kernel_gram(compiled, batch, schema, row_bound, through=None, scales=ONE_CLIP, factors=None):
    held, dim = CellTable(schema), len(schema.encoded)
    held.hold(batch)
    total = np.zeros((len(scales), dim, dim), dtype=np.int64)
    panels = None if through is None else MapPanels(through.whole, through.exponents, scales)
    most, room = largest_square(row_bound), compiled.scratch(dim, len(scales))
    compiled.add(held.columns, batch.num_rows, most, room, total, panels, factors)
    if through is None:
        points = compiled.points(held.columns, batch.num_rows, most, factors=factors)
        np.testing.assert_array_equal(np.triu(integer_gram(points)), np.triu(total[0]))
    return np.triu(total)


def gram_by_hand(batch, schema, row_bound, through=None, scales=ONE_CLIP, factors=None):
    """Rows that count in full or in part, those of one factor after the other."""
    encoded = Encoder(filled(schema)).encode(batch)
    factors = np.ones(batch.num_rows) if factors is None else factors
    factors = np.where(complete(batch, schema), factors, 0.0)
    dim = len(encoded)
    total = np.zeros((len(scales), dim, dim), dtype=np.int64)
    for factor in np.unique(factors[factors > 0]):
        some = np.ascontiguousarray(encoded[:, factors == factor])
        rows = clip(some, row_bound) if through is None else mapped(some, row_bound, through, scales)
        total += np.stack([integer_gram(np.trunc(part * factor)) for part in (rows.points, *rows.outer)])
    return np.triu(total)


def assert_same(compiled, batch, schema, factors=None):
    dim = len(schema.encoded)
    for row_bound in (0.5, schema.largest_norm):
        found = kernel_gram(compiled, batch, schema, row_bound, factors=factors)
        np.testing.assert_array_equal(found, gram_by_hand(batch, schema, row_bound, factors=factors))
    for size, scales in ((0.5, ONE_CLIP), (3.0, ONE_CLIP), (1.7, first_scales(2)), (40.0, first_scales(MOST_SCALES))):
        asked = 1.0, some_map(dim, size), scales, factors
        np.testing.assert_array_equal(
            kernel_gram(compiled, batch, schema, *asked), gram_by_hand(batch, schema, *asked), err_msg=f"{size} {scales}"
        )


def mixed(rng, rows: int, holes: float) -> tuple[pa.RecordBatch, dpgram.Schema]:
    """Columns of every kind, with holes of every sort, some of which drop the row; in fours of numbers and one by one."""

    def gaps(values):
        padded = np.concatenate([values[:3], values])
        return pa.array(padded, mask=rng.random(len(padded)) < holes).slice(len(values[:3]))

    floats = rng.normal(size=rows)
    floats[rng.random(rows) < holes] = np.nan
    infinite = np.where(rng.random(rows) < holes, -np.inf, rng.normal(size=rows)).astype("f4")
    words = rng.choice(["u", "v", "w"], rows).astype(object)
    words[rng.random(rows) < holes] = "x"  # not declared
    truths = rng.integers(0, 3 if holes else 2, rows).astype("i1")
    columns = {
        "a": pa.array(floats),
        "b": gaps(rng.normal(size=rows)),
        "c": gaps(rng.integers(-3, 4, rows)),
        "d": pa.array(infinite),
        "e": gaps(rng.normal(size=rows)),
        "f": gaps(rng.random(rows) < 0.5),
        "g": pa.array(truths),
        "h": pa.array(words, pa.string()).dictionary_encode(),
        "i": gaps(words),
        "j": gaps(rng.integers(0, 20_000, rows).astype("datetime64[D]")),
        "k": pa.array(rng.normal(size=rows)),
    }
    schema = schema_of(
        [
            dpgram.Numeric("a", -2, 2),
            dpgram.Numeric("b", -1, 3),
            dpgram.Numeric("c", -2, 2),
            dpgram.Numeric("d", -1, 1, missing=0.25),
            dpgram.Numeric("e", -1, 1),
            dpgram.Boolean("f", missing="drop-row"),
            dpgram.Boolean("g", missing="drop-row"),
            dpgram.Categorical("h", ["u", "v", "w"], missing="drop-row"),
            dpgram.Categorical("i", ["u", "v", "w"], missing="drop-row"),
            dpgram.Date("j", "1980-01-01", "2020-01-01"),
            dpgram.Numeric("k", -1, 1),
        ]
    )
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)), schema


@EVERY
@pytest.mark.parametrize("holes", [0.0, 0.003, 0.1])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_with_a_missing_cell_do_not_count(compiled, rows, holes, monkeypatch):
    monkeypatch.setattr(table, "kernel", lambda: compiled)
    batch, schema = mixed(np.random.default_rng([rows, int(1000 * holes)]), rows, holes)
    assert_same(compiled, batch, schema)


@EVERY
@pytest.mark.parametrize("place", range(11))
def test_each_column_drops_on_its_own(compiled, place, monkeypatch):
    """One column at a time drops rows, the others fill: a hole that nobody asked about costs no row."""
    monkeypatch.setattr(table, "kernel", lambda: compiled)
    batch, schema = mixed(np.random.default_rng(place), 700, 0.05)
    others = filled(schema).columns
    one = schema_of([schema.columns[place] if i == place else other for i, other in enumerate(others)])
    if one.columns[place].missing == "drop-row" and schema.columns[place].name != "k":
        assert 0 < complete(batch, one).sum() < 700
    assert_same(compiled, batch, one)


@EVERY
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_matrices_of_numbers(compiled, dtype, order):
    rng = np.random.default_rng(5)
    cells = np.asarray(np.column_stack([numbers(rng, dtype, 1500) for _ in range(9)]), order=order)
    cells[200:900] = 1  # some blocks have no hole
    batch = MatrixBatch(cells, pa.schema([(f"x{i}", pa.from_numpy_dtype(cells.dtype)) for i in range(9)]))
    missing = ["drop-row", 0.5, "drop-row", "midpoint", "drop-row", 0.0, 0.0, 0.0, "drop-row"]
    schema = schema_of([dpgram.Numeric(f"x{i}", -2, 2, missing=what) for i, what in enumerate(missing)])
    assert_same(compiled, batch, schema)


@EVERY
def test_a_dropped_row_leaves_no_trace_of_its_derived_columns(compiled):
    rng = np.random.default_rng(6)
    columns = {name: arrow(rng.normal(size=500), rng, nulls=True) for name in "ab"}
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    derived = [dpgram.Product("ab", ["a", "b"]), dpgram.Power("bb", "b", 2)]
    for missing in ("drop-row", "midpoint"):
        schema = schema_of([dpgram.Numeric("a", -1, 1), dpgram.Numeric("b", -1, 1, missing=missing)], derived=derived)
        assert_same(compiled, batch, schema)


def factors_of(rng, rows: int) -> np.ndarray:
    """Some that are one, zero, next to these, and in between."""
    some = np.array([1.0, 0.0, math.nextafter(1, 0), 1 - 2.0**-50, 2.0**-20, 5e-324, 0.5, math.sqrt(1 / 3), 0.1])
    return rng.choice(some, rows)


@EVERY
@pytest.mark.parametrize("holes", [0.0, 0.01])
@pytest.mark.parametrize("rows", ROWS)
def test_rows_times_their_factors(compiled, rows, holes, monkeypatch):
    monkeypatch.setattr(table, "kernel", lambda: compiled)
    rng = np.random.default_rng([rows, 1])
    batch, schema = mixed(rng, rows, holes)
    assert_same(compiled, batch, schema, factors_of(rng, rows))
    assert_same(compiled, batch, schema, np.ones(rows))


@EVERY
@pytest.mark.parametrize("dim", [1, 4, 5, 22, 47, 97])
def test_factors_at_every_width(compiled, dim):
    rng = np.random.default_rng(dim)
    schema = schema_of([dpgram.Numeric(f"x{i}", -1, 1) for i in range(dim)], intercept=dim % 2 == 0)
    assert_same(compiled, matrix_batch(rng.uniform(-1.2, 1.2, (1300, dim))), schema, factors_of(rng, 1300))


@EVERY
@pytest.mark.parametrize("bad", [math.nan, -1e-300, math.nextafter(1, 2), math.inf])
@pytest.mark.parametrize("row", [0, 17, 99])
def test_a_factor_that_would_lengthen_a_row_is_an_error(compiled, bad, row):
    schema, factors = schema_of([dpgram.Numeric("x0", -1, 1)]), np.full(100, 0.5)
    factors[row] = bad
    held = CellTable(schema)
    held.hold(matrix_batch(np.ones((100, 1))))
    panels = MapPanels(2**20 * np.eye(2, dtype=np.int64), np.full(2, 20))
    total = np.zeros((2, 2), dtype=np.int64)
    for through in (None, panels):
        with pytest.raises(BoundBrokenError):
            compiled.add(held.columns, 100, largest_square(1.0), compiled.scratch(2), total, through, factors)
    with pytest.raises(BoundBrokenError):
        compiled.points(held.columns, 100, largest_square(1.0), factors=factors)


@EVERY
def test_there_is_one_factor_for_each_row(compiled):
    held = CellTable(schema_of([dpgram.Numeric("x0", -1, 1)]))
    held.hold(matrix_batch(np.ones((100, 1))))
    for few in (np.ones(99), np.ones((100, 1)), np.ones(101)):
        with pytest.raises(ValueError, match="one factor for each row"):
            compiled.points(held.columns, 100, 4**20, factors=few)
    wide = np.ones((100, 2))
    wide[:, 0] = 0.5
    points = compiled.points(held.columns, 100, 4**20 * 2, factors=wide[:, 0])  # every other number
    assert (points == 2**19).all()


@EVERY
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "date", "text", "matrix"])
def test_an_absent_number_is_zero_and_has_an_indicator(compiled, rows, kind):
    """As a column that is filled with the middle of its bounds has, and a truth value beside it."""
    rng = np.random.default_rng(rows)
    cells, bounds, make = {}, (-2, 3), dpgram.Numeric
    for name in "abc":
        if kind == "date":
            bounds, make = ("1980-01-01", "2020-01-02"), dpgram.Date
            cells[name] = pa.array(rng.integers(0, 20_000, rows).astype("datetime64[D]"), mask=rng.random(rows) < 0.2)
        elif kind == "text":
            cells[name] = pa.array(rng.choice([b"1.5", b"", b"-1", b"what"], rows).tolist(), pa.binary())
        else:
            dtype = "f8" if kind == "matrix" else kind
            cells[name] = arrow(numbers(rng, dtype, rows), rng, nulls=kind != "matrix")
    missing = {name: pa.array(np.isnan(cells_in(cells_batch(cells), make(name, *bounds)))) for name in cells}
    batch = matrix_batch(np.column_stack([cells[name] for name in "abc"])) if kind == "matrix" else cells_batch(cells)
    names = ["x0", "x1", "x2"] if kind == "matrix" else list("abc")
    schema = schema_of([make(name, *bounds, missing="indicator") for name in names])
    by_hand = schema_of(
        [each for n in "abc" for each in (make(n, *bounds, missing="midpoint"), dpgram.Boolean(f"is {n}"))],
    )
    beside = cells_batch({**cells, **{f"is {name}": column for name, column in missing.items()}})
    untyped = frozenset("abc") if kind == "text" else frozenset()
    held, dim = CellTable(schema, untyped=untyped), len(schema.encoded)
    held.hold(batch)
    expected = Encoder(by_hand, untyped=untyped).encode(beside)
    for row_bound in (1.0, 2.0):
        points = compiled.points(held.columns, rows, largest_square(row_bound))
        np.testing.assert_array_equal(points, clip(expected, row_bound).points)
    total = np.zeros((dim, dim), dtype=np.int64)
    panels = MapPanels((through := some_map(dim, 2.0)).whole, through.exponents)
    compiled.add(held.columns, rows, largest_square(1.0), compiled.scratch(dim), total, panels)
    np.testing.assert_array_equal(np.triu(total), np.triu(integer_gram(mapped(expected, 1.0, through).points)))


def cells_batch(cells: dict) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(cells.values()), names=list(cells))


def test_an_absent_number_is_zero_where_its_scale_was_learnt():
    """The middle of its scale is then not the middle of its bounds."""
    schema = schema_of([dpgram.Numeric("x0", 0, 100, missing="indicator")], learnt={"x0": (1.0, 4.0)})
    held = CellTable(schema)
    held.hold(matrix_batch(np.full((9, 1), np.nan)))
    made = summing.kernel()
    if made is None:
        pytest.skip("there is no compiled kernel")
    points = made.points(held.columns, 9, largest_square(schema.largest_norm))
    assert points.T.tolist() == [[2**20, 0, 2**20]] * 9


@EVERY
@pytest.mark.parametrize("rows", [1, 5, 2048, 5000])
def test_blas_the_kernel_and_numpy_add_up_to_the_same(compiled, rows, monkeypatch):
    """Rows that count by weight, some of them not at all, plain and through a map, at one scale and at several."""
    monkeypatch.setattr(table, "kernel", lambda: compiled)
    rng = np.random.default_rng(rows)
    batch, plain = mixed(rng, rows, 0.01)
    weights = arrow(rng.choice([2.0, 0.0, 0.5, -1.0, 3.0, np.nan], rows), rng, nulls=True)
    batch = pa.RecordBatch.from_arrays([*batch.columns, weights], names=[*batch.schema.names, "w"])
    schema = schema_of([*plain.columns[:-1], dpgram.Numeric("k", -1, 1, missing="indicator")], weight="w", largest_weight=2.0)
    dim = len(schema.encoded)
    for through, scales in ((None, ONE_CLIP), (some_map(dim, 2.0), ONE_CLIP), (some_map(dim, 9.0), first_scales(4))):
        totals = []
        for found, limit in ((compiled, 10**6), (compiled, 1), (None, 1)):
            monkeypatch.setattr(summing, "kernel", lambda found=found: found)
            monkeypatch.setattr(summing, "BLAS_FROM", limit)
            made = summing.summing_for(schema, 1.0, through, scales)
            made.add(batch)
            totals.append(made.total())
        assert (rows < 100) or np.abs(totals[0].in_scaled_units()).sum() > 0
        for other in totals[1:]:
            assert (other.rows, other.through) == (totals[0].rows, totals[0].through)
            np.testing.assert_array_equal(other.low, totals[0].low)
            np.testing.assert_array_equal(other.high, totals[0].high)
