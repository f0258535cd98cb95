"""Rows through a public map: the compiled kernel does to the bit what NumPy does, with every instruction set."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64, c_void_p

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.engines import summing
from dpgram.errors import BoundBrokenError
from dpgram.native import library
from dpgram.native.library import Kernel, MapPanels
from dpgram.rows.clip import largest_square, mapped
from dpgram.rows.gram_sum import integer_gram
from dpgram.rows.table import CellTable
from dpgram.sources.base import ArrayBatch, MatrixBatch
from dpgram.terms.public_map import MOST_EXPONENT, PublicMap
from dpgram.terms.scales import ONE_CLIP, first_scales
from tests.native.test_kernel import EVERY, counted


def numbers(dim: int, **changes) -> dpgram.Schema:
    return dpgram.Schema(
        **{"unit": "row", "columns": [dpgram.Numeric(f"x{i}", -1, 1, missing="midpoint") for i in range(dim)], **changes}
    )


def matrix_batch(table: np.ndarray) -> MatrixBatch:
    kind = pa.from_numpy_dtype(table.dtype)
    return MatrixBatch(table, pa.schema([(f"x{i}", kind) for i in range(table.shape[1])]))


def wild_map(dim: int, seed: int = 0, spread: float = 30.0) -> PublicMap:
    """Rows of ordinary, huge and tiny size, one of zeros, some at the limits of what a map may hold."""
    rng = np.random.default_rng([dim, seed])
    matrix = rng.normal(size=(dim, dim)) * np.exp(rng.normal(scale=spread, size=(dim, 1)) * (rng.random((dim, 1)) < 0.3))
    matrix[rng.random(dim) < 0.1] = 0.0
    made = PublicMap.near(matrix)
    whole = made.whole.copy()
    whole[rng.random(dim) < 0.05] = 2**33 // dim
    return PublicMap(whole, made.exponents)


def mapped_points(compiled: Kernel, columns: np.ndarray, rows: int, largest_square: int, through: MapPanels) -> np.ndarray:
    """The rows as grid points, (columns, rows), multiplied by ``through`` and then shrunk: what ``add`` sums, seen before it is summed."""
    library = compiled.functions
    library.dpgram_map_scratch.restype = c_int64
    out = np.empty((-(-len(columns) // 4) * 4, max(24, -(-rows // 24) * 24)))
    scratch = np.empty(library.dpgram_map_scratch(c_int32(len(columns))))
    broken = library.dpgram_mapped_points(
        c_int32(compiled.isa),
        c_void_p(columns.ctypes.data),
        c_int32(len(columns)),
        c_int64(0),
        c_int64(rows),
        c_double(float(largest_square)),
        c_void_p(None),
        c_void_p(through.table.ctypes.data),
        c_void_p(scratch.ctypes.data),
        c_void_p(out.ctypes.data),
        c_int64(out.shape[1]),
    )
    if broken:
        raise BoundBrokenError
    return out[: len(columns), :rows]


def assert_same(compiled, batch, schema, row_bound, through, scales=ONE_CLIP):
    table, most, dim = CellTable(schema), largest_square(row_bound), len(schema.encoded)
    table.hold(batch)
    panels = MapPanels(through.whole, through.exponents, scales)
    total = np.zeros((len(scales), dim, dim), dtype=np.int64)
    compiled.add(table.columns, batch.num_rows, most, compiled.scratch(dim, len(scales)), total, panels)
    encoded, _, factors = counted(schema, batch, row_bound)
    expected = mapped(encoded, row_bound, through, scales, factors)
    if scales == ONE_CLIP:
        np.testing.assert_array_equal(mapped_points(compiled, table.columns, batch.num_rows, most, panels), expected.points)
    for found, points in zip(total, (expected.points, *expected.outer), strict=True):
        np.testing.assert_array_equal(np.triu(found), np.triu(integer_gram(points)))


@EVERY
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 22, 41, 47, 48, 49, 97, 130])
def test_every_width(compiled, dim):
    rows = np.random.default_rng(dim).uniform(-1.2, 1.2, (1500, dim))
    schema = numbers(dim, intercept=dim % 2 == 0)
    through = wild_map(len(schema.encoded))
    for table in (rows, np.asfortranarray(rows), rows[::-1], rows.astype("f4")):
        assert_same(compiled, matrix_batch(table), schema, 1.0, through)
    assert_same(compiled, matrix_batch(rows), schema, 0.01, through)


@pytest.mark.parametrize("dim", range(1, 30))
def test_panels_hold_every_row_once(dim):
    """In panels of four and of three, to the last bit, and with none left over where these add up to the number of rows."""
    through = wild_map(dim)
    made = MapPanels(through.whole, through.exponents)
    fours, threes = (int(made.table[name][0]) for name in ("fours", "threes"))
    assert 4 * fours + 3 * threes == {1: 3, 2: 3, 5: 6}.get(dim, dim)
    cut = 4 * fours * dim
    rows = [*made._panels[:cut].reshape(fours, dim, 4), *made._panels[cut:].reshape(threes, dim, 3)]
    found = np.concatenate([panel.T for panel in rows])
    np.testing.assert_array_equal(found[:dim], through.matrix)
    assert not found[dim:].any()


@EVERY
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 23, 24, 25, 95, 96, 97, 191, 193, 511, 512, 513, 4097])
def test_every_number_of_rows(compiled, rows):
    table = np.random.default_rng(rows).uniform(-1.2, 1.2, (rows, 6))
    assert_same(
        compiled, matrix_batch(table), numbers(6), 1.0, PublicMap.near(np.random.default_rng(1).normal(size=(7, 7)) / 2)
    )


@EVERY
@pytest.mark.parametrize("dim", [1, 4, 5, 9, 22])
@pytest.mark.parametrize("shape", ["lower", "upper", "diagonal", "one column", "one entry", "nothing"])
def test_maps_with_zeros(compiled, shape, dim):
    """What is zero in four rows at a time is left out, wherever it is."""
    dense = np.random.default_rng(dim).normal(size=(dim, dim))
    shapes = {"lower": np.tril(dense), "upper": np.triu(dense), "diagonal": np.diag(np.diag(dense)), "nothing": 0 * dense}
    shapes["one column"], shapes["one entry"] = 0 * dense, 0 * dense
    shapes["one column"][:, dim // 2], shapes["one entry"][-1, dim // 2] = 1.5, 1.5
    table = np.random.default_rng(0).uniform(-1, 1, (700, dim))
    for scales in (ONE_CLIP, first_scales(3)):
        assert_same(compiled, matrix_batch(table), numbers(dim, intercept=False), 1.0, PublicMap.near(shapes[shape]), scales)


@EVERY
@pytest.mark.parametrize("scales", [1, 4])
@pytest.mark.parametrize("dim", [1, 3, 8])
def test_images_around_the_largest_that_are_squared_exactly(compiled, dim, scales):
    """Entries at 2^21 and next to it, alone and many in a row: their squares alone do not say whether one of them is too large."""
    rng = np.random.default_rng(dim)
    table = np.concatenate([np.eye(dim), np.ones((1, dim)), rng.choice([-1.0, 0.0, 1.0], (100, dim))])
    for entry in (2**20, 2**21 - 1, 2**21, 2**21 + 1, 2**22 - 1, 2**22, 2**33):
        through = PublicMap(entry * np.eye(dim, dtype=np.int64), np.full(dim, 20))
        assert_same(compiled, matrix_batch(table), numbers(dim, intercept=False), 1.0, through, first_scales(scales))


@EVERY
@pytest.mark.parametrize("scales", [1, 4])
@pytest.mark.parametrize("rows", [1, 3, 7, 9, 25, 97])
def test_places_without_a_row_do_no_harm(compiled, rows, scales):
    """A block is filled up with cells of zero, which are no zeros once they are encoded; the images of those may be huge."""
    schema = numbers(5, columns=[dpgram.Numeric(f"x{i}", 1, 3, missing="midpoint") for i in range(5)])
    rng = np.random.default_rng(rows)
    for exponent in (-MOST_EXPONENT, 0, 28):
        through = PublicMap(rng.integers(-(2**30), 2**30, (6, 6)), np.full(6, exponent))
        assert_same(compiled, matrix_batch(rng.uniform(1, 3, (rows, 5))), schema, 1.0, through, first_scales(scales))


@EVERY
def test_every_rule_and_missing_cells(compiled):
    rng = np.random.default_rng(5)
    table = {
        "a": pa.array(rng.normal(size=777), mask=rng.random(777) < 0.2),
        "b": pa.array(rng.integers(0, 3, 777) == 1),
        "c": pa.array(rng.choice(["u", "v", "w", None], 777)),
        "d": pa.array(rng.normal(size=777).astype("f4")),
    }
    schema = dpgram.Schema(
        unit="row",
        columns=[
            dpgram.Numeric("a", -2, 2, missing=0.3),
            dpgram.Boolean("b"),
            dpgram.Categorical("c", ["u", "v", "w"]),
            dpgram.Numeric("d", -1, 1.5, missing="midpoint"),
        ],
    )
    batch = pa.RecordBatch.from_arrays(list(table.values()), names=list(table))
    assert_same(compiled, batch, schema, 1.0, PublicMap.near(rng.normal(size=(6, 6))))


@EVERY
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_numbers_and_any_map(compiled, data):
    dim, rows = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    cells = data.draw(st.lists(st.floats(width=64), min_size=dim * rows, max_size=dim * rows))
    table = np.array(cells).reshape(rows, dim)
    types = pa.schema([(f"x{i}", pa.float64()) for i in range(dim)])
    batch = ArrayBatch({f"x{i}": table[:, i] for i in range(dim)}, types, rows)
    most = 2**33 // dim
    whole = data.draw(st.lists(st.integers(-most, most), min_size=dim**2, max_size=dim**2))
    exponents = data.draw(st.lists(st.integers(-MOST_EXPONENT, MOST_EXPONENT) | st.integers(8, 40), min_size=dim, max_size=dim))
    through = PublicMap(np.array(whole, dtype=np.int64).reshape(dim, dim), np.array(exponents, dtype=np.int64))
    assert_same(compiled, batch, numbers(dim, intercept=False), data.draw(st.floats(2.0**-10, 1)), through)


@EVERY
@pytest.mark.parametrize("rows", [1, 5, 2048, 5000])
def test_blas_the_kernel_and_numpy_add_up_to_the_same(compiled, rows, monkeypatch):
    schema, through = numbers(30), wild_map(31, spread=3.0)
    batch = matrix_batch(np.random.default_rng(rows).uniform(-1, 1, (rows, 30)))
    totals = []
    for found, limit in ((compiled, 10**6), (compiled, 1), (None, 1)):
        monkeypatch.setattr(summing, "kernel", lambda found=found: found)
        monkeypatch.setattr(summing, "BLAS_FROM", limit)
        made = summing.summing_for(schema, 1.0, through)
        made.add(batch)
        totals.append(made.total())
    for other in totals[1:]:
        assert (other.rows, other.through) == (totals[0].rows, totals[0].through) == (rows, through.digest)
        np.testing.assert_array_equal(other.low, totals[0].low)
        np.testing.assert_array_equal(other.high, totals[0].high)


@EVERY
def test_mapped_sums_spill_before_they_overflow(compiled, monkeypatch):
    schema, through = numbers(3), PublicMap.near(np.eye(4))
    batch = matrix_batch(np.random.default_rng(0).uniform(-1, 1, (100_000, 3)))
    monkeypatch.setattr(summing, "kernel", lambda: compiled)
    once = summing.summing_for(schema, 1.0, through)
    once.add(batch)
    monkeypatch.setattr(summing, "ROWS_PER_TOTAL", 40_000)
    often = summing.summing_for(schema, 1.0, through)
    often.add(batch)
    assert often.total().in_scaled_units().tolist() == once.total().in_scaled_units().tolist()
    assert often.total().through == through.digest


@EVERY
def test_a_bound_that_cannot_be_kept_is_an_error(compiled):
    held = CellTable(numbers(1))
    held.hold(matrix_batch(np.ones((10, 1))))
    panels = MapPanels(np.eye(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    with pytest.raises(BoundBrokenError):
        compiled.add(held.columns, 10, -1, compiled.scratch(2), np.zeros((2, 2), dtype=np.int64), panels)
    with pytest.raises(BoundBrokenError):
        mapped_points(compiled, held.columns, 10, -1, panels)


def test_a_library_of_another_version_is_refused(tmp_path, monkeypatch):
    """One from before maps had other functions under the same names."""
    monkeypatch.setattr(library.ctypes, "CDLL", lambda file: object())
    with pytest.raises(OSError, match="install dpgram again"):
        Kernel(tmp_path / "_kernel.so")
