"""The compiled kernel does to the bit what NumPy does: for every type of cell, every rule, every instruction set."""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.encoding.cells import TICKS
from dpgram.encoding.encode import Encoder
from dpgram.engines import summing
from dpgram.errors import BoundBrokenError, OptionError
from dpgram.native import library
from dpgram.native.library import Kernel, kernel
from dpgram.rows import table
from dpgram.rows.clip import clip, largest_square
from dpgram.rows.gram_sum import integer_gram
from dpgram.rows.table import CellTable
from dpgram.sources.base import ArrayBatch, MatrixBatch
from dpgram.terms.schema import MOST_ENCODED_COLUMNS

TYPES = ["f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def test_there_is_a_kernel_where_it_is_demanded():
    if os.environ.get("DPGRAM_REQUIRE_KERNEL") == "1":
        assert kernel() is not None, "the compiled kernel is missing: was there a C compiler when dpgram was installed?"


def kernels() -> list:
    """Every instruction set that this machine can run."""
    if not library.FILE.is_file():
        return [
            pytest.param(None, marks=pytest.mark.skip(reason="NO COMPILED KERNEL: dpgram was installed without a C compiler"))
        ]
    return [
        pytest.param(Kernel(library.FILE, isa), id=library.INSTRUCTIONS[isa]) for isa in range(Kernel(library.FILE).isa + 1)
    ]


EVERY = pytest.mark.parametrize("compiled", kernels())


def by_numpy(batch, schema, row_bound):
    points = clip(*counted(schema, batch, row_bound)).points
    return points, integer_gram(points)


def counted(schema, batch, row_bound) -> tuple[np.ndarray, float, np.ndarray | None]:
    """What ``clip`` needs: encoded rows, their bound, and zeros and ones where some do not count."""
    encoded, counting = Encoder(schema).encode_counted(batch)
    return encoded, row_bound, None if counting is None else counting * 1.0


def by_kernel(compiled, batch, schema, row_bound):
    table = CellTable(schema)
    table.hold(batch)
    most = largest_square(row_bound)
    total = np.zeros((len(table.columns),) * 2, dtype=np.int64)
    compiled.add(table.columns, batch.num_rows, most, compiled.scratch(len(table.columns)), total)
    return compiled.points(table.columns, batch.num_rows, most), np.triu(total) + np.triu(total, 1).T


def assert_same(compiled, batch, schema, row_bound):
    for ours, theirs in zip(by_kernel(compiled, batch, schema, row_bound), by_numpy(batch, schema, row_bound), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def numbers(rng, dtype: str, rows: int) -> np.ndarray:
    """Cells that are ordinary, extreme, tiny, and not finite."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values = rng.normal(0, 2, rows)
        strange = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 5e-324, 1e-30, 1e30, np.finfo(kind).max, np.finfo(kind).min]
        )
        with np.errstate(over="ignore"):
            return np.where(rng.random(rows) < 0.2, rng.choice(strange, rows), values).astype(kind)
    span = np.iinfo(kind)
    near = rng.integers(max(span.min, -3), 4, rows).astype(kind)
    return np.where(rng.random(rows) < 0.2, rng.choice(np.array([span.min, span.max, span.max - 1], kind), rows), near)


def arrow(values: np.ndarray, rng, *, nulls: bool) -> pa.Array:
    """The values somewhere inside a longer array, so that offsets of cells and of validity bits are not whole bytes."""
    padded = np.concatenate([values[:3], values, values[:2]])
    array = pa.array(padded, mask=rng.random(len(padded)) < 0.3 if nulls else None)
    return array.slice(len(values[:3]), len(values))


@EVERY
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows", [1, 7, 8, 255, 1000])
def test_every_type_of_cell(compiled, dtype, nulls, rows):
    rng = np.random.default_rng([rows, TYPES.index(dtype), nulls])
    columns = {name: arrow(numbers(rng, dtype, rows), rng, nulls=nulls) for name in "abcdef"}
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    schema = dpgram.Schema(
        unit="row",
        columns=[
            dpgram.Numeric("a", -2, 2, missing="midpoint"),
            dpgram.Numeric("b", -1, 2.5, missing=0.3),
            dpgram.Numeric("c", 0.1, 0.7, missing="midpoint"),
            dpgram.Boolean("d"),
            dpgram.Boolean("e", missing=True),
            dpgram.Numeric("f", -1e30, 1e30, missing="midpoint"),
        ],
    )
    for row_bound in (0.01, 1.0, 1.7, schema.largest_norm):
        assert_same(compiled, batch, schema, row_bound)


DATES = [pa.date32(), pa.date64(), *(pa.timestamp(unit) for unit in library.TIMES), pa.timestamp("us", "Asia/Tokyo")]


def ticks(rng, kind: pa.DataType, rows: int) -> np.ndarray:
    """Dates before and after 1970, on the hour and off it, and the farthest that the type holds."""
    if kind == pa.date32():
        return np.where(
            rng.random(rows) < 0.1, rng.choice([-(2**31), 2**31 - 1], rows), rng.integers(-4000, 20_000, rows)
        ).astype("i4")
    per_second = TICKS[getattr(kind, "unit", "ms")]
    near = rng.integers(-4000, 20_000, rows) * 86_400 * per_second + rng.choice([0, 3600, -1, 59], rows) * per_second
    near += rng.choice([0, -1, 1, per_second - 1], rows)
    return np.where(rng.random(rows) < 0.1, rng.choice([-(2**63), 2**63 - 1, -1, 0], rows), near)


@EVERY
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 255, 1000])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", DATES, ids=str)
def test_every_type_of_date(compiled, kind, nulls, rows):
    rng = np.random.default_rng([rows, DATES.index(kind), nulls])
    cells = [arrow(ticks(rng, kind, rows), rng, nulls=nulls).view(kind) for _ in range(5)]
    bounds = [("1969-01-01", "2020-01-01"), ("1970-01-01T12:00:00", "1970-03-01"), ("2000-01-01", "2000-01-02")]
    columns = [dpgram.Date(name, *bounds[place % 3]) for place, name in enumerate("abcde")]
    batch = pa.RecordBatch.from_arrays(cells, names=list("abcde"))
    assert_same(compiled, batch, dpgram.Schema(unit="row", columns=columns), 1.3)


@EVERY
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 255, 1000])
@pytest.mark.parametrize("nulls", [False, True])
def test_truth_values_that_are_packed(compiled, nulls, rows):
    rng = np.random.default_rng([rows, nulls])
    cells = [arrow(rng.random(rows) < 0.4, rng, nulls=nulls) for _ in range(6)]
    columns = [
        dpgram.Boolean("a"),
        dpgram.Boolean("b", missing=True),
        *(dpgram.Numeric(name, -1, 3, missing=2) for name in "cdef"),
    ]
    batch = pa.RecordBatch.from_arrays(cells, names=list("abcdef"))
    assert_same(compiled, batch, dpgram.Schema(unit="row", columns=columns), 1.3)


@EVERY
def test_bits_are_read_no_further_than_the_last_row(compiled):
    """The byte after that of the last bit belongs to somebody else: it is at the end of what this process may read."""
    page = mmap.PAGESIZE
    with closing(mmap.mmap(-1, 2 * page)) as room:
        libc = ctypes.CDLL(None, use_errno=True)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(room))
        assert libc.mprotect(ctypes.c_void_p(begin + page), ctypes.c_size_t(page), 0) == 0
        schema = dpgram.Schema(unit="row", columns=[dpgram.Boolean("a")])
        for rows in (1, 7, 8, 9, 100):
            bits = pa.foreign_buffer(begin + page - (rows + 7) // 8, (rows + 7) // 8)
            cells = pa.Array.from_buffers(pa.bool_(), rows, [bits, bits])
            assert_same(compiled, pa.RecordBatch.from_arrays([cells], names=["a"]), schema, 1.0)
            del cells, bits
        gc.collect()


CATEGORICAL = [
    dpgram.Categorical("c", ["a", "b", "z"]),
    dpgram.Categorical("c", ["b", "a"], other=True, missing="level"),
    dpgram.Categorical("c", ["b", "a", "d"], missing="level"),
]


@EVERY
@pytest.mark.parametrize("places", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()], ids=str)
@pytest.mark.parametrize("column", CATEGORICAL, ids=lambda column: f"{column.other}-{column.missing}")
def test_dictionaries_that_change_from_batch_to_batch(compiled, column, places, monkeypatch):
    """The same column is encoded from one batch after the other, as a pass does it: of the same dictionary, in another order, of another
    size, with a null or an empty text among its values, with cells that have no place in it, and without a dictionary."""
    monkeypatch.setattr(table, "kernel", lambda: compiled)
    rng, schema = np.random.default_rng(4), dpgram.Schema(unit="row", columns=[column])
    held, encoder = CellTable(schema), Encoder(schema)
    for values in (
        ["a", "b", "q"],
        ["a", "b", "q"],
        ["b", "q", "a"],
        ["d", None, "a", "", "b"],
        ["z"] * 127,
        [],
        ["a", "b", "q"],
    ):
        found = rng.integers(0, max(1, len(values)), 300)
        indices = pa.array(found, places, mask=(rng.random(300) < 0.2) | (len(values) == 0))
        cells = pa.DictionaryArray.from_arrays(indices, pa.array(values, pa.string())).slice(3, 290)
        for some in (cells, cells.slice(5, 7), cells.dictionary_decode()):
            batch = pa.RecordBatch.from_arrays([some], names=["c"])
            held.hold(batch)
            expected = clip(encoder.encode(batch), 1.0).points
            np.testing.assert_array_equal(compiled.points(held.columns, len(some), largest_square(1.0)), expected)


@pytest.mark.parametrize("place", [-1, 3, 2**31 - 1, -(2**31)])
def test_a_place_outside_a_dictionary_is_an_error(place):
    if kernel() is None:
        pytest.skip("there is no compiled kernel")
    held = CellTable(dpgram.Schema(unit="row", columns=[CATEGORICAL[0]]))
    indices = pa.array([0, 1, place, 2], pa.int32())
    cells = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "q"]), safe=False)
    with pytest.raises(IndexError):
        held.hold(pa.RecordBatch.from_arrays([cells], names=["c"]))


@EVERY
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 11, 12, 13, 22, 41, 47, 48, 49, 97, 130])
def test_every_width(compiled, dim):
    rng = np.random.default_rng(dim)
    rows = rng.uniform(-1.2, 1.2, (5000, dim))
    schema = dpgram.Schema(
        unit="row", columns=[dpgram.Numeric(f"x{i}", -1, 1, missing="midpoint") for i in range(dim)], intercept=dim % 2 == 0
    )
    types = pa.schema([(f"x{i}", pa.float64()) for i in range(dim)])
    for cells in (
        rows,
        np.asfortranarray(rows),
        rows[::-1],
        rows[::2],
        rows.astype("f4"),
        np.asfortranarray(rows.astype("f4")),
    ):
        kind = pa.schema([(name, pa.from_numpy_dtype(cells.dtype)) for name in types.names])
        batch = ArrayBatch({f"x{i}": cells[:, i] for i in range(dim)}, kind, len(cells))
        assert_same(compiled, batch, schema, np.sqrt(dim) / 2)
        assert_same(compiled, MatrixBatch(cells, kind), schema, np.sqrt(dim) / 2)


@EVERY
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_numbers_and_any_bounds(compiled, data):
    dim, rows = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 70))
    cells = data.draw(st.lists(st.floats(width=64), min_size=dim * rows, max_size=dim * rows))
    lower = data.draw(st.floats(-1e6, 1e6))
    half = data.draw(st.floats(1e-2, 1e6))
    schema = dpgram.Schema(
        unit="row", columns=[dpgram.Numeric(f"x{i}", lower, lower + 2 * half, missing="midpoint") for i in range(dim)]
    )
    table = np.array(cells).reshape(rows, dim)
    batch = ArrayBatch(
        {f"x{i}": table[:, i] for i in range(dim)}, pa.schema([(f"x{i}", pa.float64()) for i in range(dim)]), rows
    )
    bound = data.draw(st.floats(2.0**-10, schema.largest_norm))
    assert_same(compiled, batch, schema, bound)


@EVERY
def test_rows_of_every_length_keep_the_bound_exactly(compiled):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(20_000, 6)) * 10.0 ** rng.uniform(-8, 8, (20_000, 1))
    schema = dpgram.Schema(
        unit="row", intercept=False, columns=[dpgram.Numeric(f"x{i}", -1, 1, missing="midpoint") for i in range(6)]
    )
    batch = ArrayBatch(
        {f"x{i}": table[:, i] for i in range(6)}, pa.schema([(f"x{i}", pa.float64()) for i in range(6)]), len(table)
    )
    held = CellTable(schema)
    held.hold(batch)
    for row_bound in (2.0**-10, 0.3, 1.0, 2.2):
        points = compiled.points(held.columns, len(table), largest_square(row_bound)).astype(np.int64)
        assert (points**2).sum(axis=0).max() <= largest_square(row_bound)


@EVERY
def test_a_bound_that_cannot_be_kept_is_an_error(compiled):
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", -1, 1, missing="midpoint")])
    held = CellTable(schema)
    held.hold(ArrayBatch({"x": np.ones(10)}, pa.schema([("x", pa.float64())]), 10))
    with pytest.raises(BoundBrokenError):
        compiled.add(held.columns, 10, -1, compiled.scratch(2), np.zeros((2, 2), dtype=np.int64))


@EVERY
def test_sums_spill_before_they_overflow(compiled, monkeypatch):
    """With the limit lowered, many spills give what one sum gives; and the real limit is the one that the integers allow."""
    assert library.ROWS_PER_TOTAL * 2**40 <= 2**62
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", -1, 1, missing="midpoint")])
    batch = ArrayBatch({"x": np.ones(200_000)}, pa.schema([("x", pa.float64())]), 200_000)
    monkeypatch.setattr(summing, "kernel", lambda: compiled)
    once = summing.summing_for(schema, 2.0)
    once.add(batch)
    monkeypatch.setattr(summing, "ROWS_PER_TOTAL", 40_000)
    often = summing.summing_for(schema, 2.0)
    often.add(batch)
    assert once.total().in_scaled_units().tolist() == often.total().in_scaled_units().tolist() == [[2e5, 2e5], [2e5, 2e5]]


def test_python_and_c_agree_on_the_constants():
    header = (Path(library.__file__).parent / "kernel.h").read_text()
    assert [name.strip().lower() for name in re.search(r"enum cells \{(.*?)\}", header)[1].split(",")] == [
        *(f"{kind[0]}{8 * int(kind[1])}" for kind in library.CELLS),
        *(f"time_{unit}" for unit in library.TIMES),
        "bits",
    ]
    assert [*library.TIMES.values(), library.BITS] == list(range(len(library.CELLS), len(library.CELLS) + 5))
    assert re.search(r"enum rule \{(.*?)\}", header)[1].split() == ["CONSTANT_ONE,", "NUMBER,", "TRUTH,", "LEVEL,", "ABSENT"]
    assert (library.ONE, library.NUMBER, library.TRUTH, library.LEVEL, library.ABSENT) == (0, 1, 2, 3, 4)
    assert float(re.search(r"#define NO_LEVEL (\S+)", header)[1]) == library.NO_LEVEL > MOST_ENCODED_COLUMNS


@EVERY
@pytest.mark.parametrize("dtype", TYPES)
def test_cells_that_lie_anywhere(compiled, dtype):
    """Fields of packed records, which no address is a multiple of."""
    rng = np.random.default_rng(9)
    packed = np.zeros(500, dtype=[("odd", "u1"), *((name, dtype) for name in "abcdef")])
    for name in "abcdef":
        packed[name] = numbers(rng, dtype, 500)
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -2, 2, missing="midpoint") for name in "abcdef"])
    types = pa.schema([(name, pa.from_numpy_dtype(np.dtype(dtype))) for name in "abcdef"])
    assert_same(compiled, ArrayBatch({name: packed[name] for name in "abcdef"}, types, 500), schema, 1.3)


def test_a_choice_of_kernel_that_there_is_none_of(monkeypatch):
    monkeypatch.setenv("DPGRAM_KERNEL", "nump")
    with pytest.raises(OptionError, match="must be numpy"):
        kernel.__wrapped__()
    monkeypatch.setenv("DPGRAM_KERNEL", "numpy")
    assert kernel.__wrapped__() is None


@EVERY
@pytest.mark.parametrize("rows", [1, 5, 2048, 5000])
def test_blas_and_the_kernel_add_up_to_the_same(compiled, rows, monkeypatch):
    table = np.random.default_rng(rows).uniform(-1, 1, (rows, 30))
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(f"x{i}", -1, 1, missing="midpoint") for i in range(30)])
    batch = MatrixBatch(table, pa.schema([(f"x{i}", pa.float64()) for i in range(30)]))
    monkeypatch.setattr(summing, "kernel", lambda: compiled)
    totals = []
    for limit in (10**6, 1):
        monkeypatch.setattr(summing, "BLAS_FROM", limit)
        made = summing.summing_for(schema, 2.5)
        made.add(batch)
        totals.append(made.total())
    assert totals[0].rows == totals[1].rows == rows
    np.testing.assert_array_equal(totals[0].low, totals[1].low)
    np.testing.assert_array_equal(totals[0].high, totals[1].high)
