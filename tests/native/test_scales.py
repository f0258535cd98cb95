"""Rows at several scales: the compiled kernel does to the bit what NumPy does, with every instruction set, and BLAS as well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.engines import summing
from dpgram.errors import BoundBrokenError
from dpgram.native.library import MapPanels
from dpgram.rows.clip import largest_square
from dpgram.rows.gram_sum import GramSum
from dpgram.rows.table import CellTable
from dpgram.terms.public_map import MOST_EXPONENT, PublicMap, digest_of
from dpgram.terms.scales import MOST_SCALES, first_scales
from tests.native.test_kernel import EVERY
from tests.native.test_mapped import assert_same as assert_batch
from tests.native.test_mapped import matrix_batch, numbers, wild_map


def some_long(dim: int, share: float) -> PublicMap:
    """About one row in two is long at a ``share`` of 1, more of them beyond it."""
    return PublicMap.near(share * np.random.default_rng(dim).normal(size=(dim, dim)) * 1.7 / dim)


def assert_same(compiled, table, schema, through, scales):
    assert_batch(compiled, matrix_batch(table), schema, 1.0, through, scales)


@EVERY
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 8, 12, 13, 22, 47, 48, 97])
@pytest.mark.parametrize("count", [2, 3, MOST_SCALES])
def test_every_width(compiled, dim, count):
    table = np.random.default_rng(dim).uniform(-1.2, 1.2, (3000, dim))
    schema = numbers(dim, intercept=dim % 2 == 0)
    for through in (some_long(len(schema.encoded), 1.0), some_long(len(schema.encoded), 20.0), wild_map(len(schema.encoded))):
        assert_same(compiled, table, schema, through, first_scales(count))


@EVERY
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 95, 96, 97, 511, 512, 513, 1023, 1024, 1025, 4097, 9000])
@pytest.mark.parametrize("share", [0.5, 1.0, 50.0])
def test_every_number_of_rows(compiled, rows, share):
    """With a ``share`` of 50 all rows are long, and the room for those that are gathered is full again and again."""
    table = np.random.default_rng(rows).uniform(-1, 1, (rows, 6))
    assert_same(compiled, table, numbers(6), some_long(7, share), first_scales(4))


@EVERY
def test_rows_at_every_switch(compiled):
    """Lengths at one, at .8 of each scale, and next to them; powers of two, where a scaled row has a norm of one exactly."""
    squares = np.array([1.0, *(0.8 * scale for scale in first_scales(MOST_SCALES)), *first_scales(10)])
    lengths = np.sqrt(np.concatenate([squares * (1 + step * 2.0**-18) for step in range(-3, 4)])) / 1024
    through = PublicMap(np.array([[2**30, 0], [0, 2**30]]), np.array([20, 20]))  # times 1024
    table = np.column_stack([lengths, np.zeros(len(lengths))])
    for turned in (table, table[:, ::-1], -table):
        assert_same(compiled, np.ascontiguousarray(turned), numbers(2, intercept=False), through, first_scales(MOST_SCALES))


@EVERY
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_any_numbers_and_any_map(compiled, data):
    dim, rows = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 40))
    cells = data.draw(st.lists(st.floats(width=64), min_size=dim * rows, max_size=dim * rows))
    most = 2**33 // dim
    whole = data.draw(st.lists(st.integers(-most, most), min_size=dim**2, max_size=dim**2))
    exponents = data.draw(st.lists(st.integers(-MOST_EXPONENT, MOST_EXPONENT) | st.integers(8, 40), min_size=dim, max_size=dim))
    through = PublicMap(np.array(whole, dtype=np.int64).reshape(dim, dim), np.array(exponents, dtype=np.int64))
    scales = first_scales(data.draw(st.integers(1, MOST_SCALES)))
    assert_same(compiled, np.array(cells).reshape(rows, dim), numbers(dim, intercept=False), through, scales)


@EVERY
@pytest.mark.parametrize("rows", [1, 5, 2048, 5000])
def test_blas_the_kernel_and_numpy_add_up_to_the_same(compiled, rows, monkeypatch):
    schema, through, scales = numbers(30), some_long(31, 1.5), first_scales(4)
    table = np.random.default_rng(rows).uniform(-1, 1, (rows, 30))
    table[0] = 0.0  # one is short
    totals: list[GramSum] = []
    for found, limit, spill in ((compiled, 10**6, 2**22), (compiled, 1, 2**22), (None, 1, 2**22), (compiled, 10**6, 4000)):
        monkeypatch.setattr(summing, "kernel", lambda found=found: found)
        monkeypatch.setattr(summing, "BLAS_FROM", limit)
        monkeypatch.setattr(summing, "ROWS_PER_TOTAL", spill)
        made = summing.summing_for(schema, 1.0, through, scales)
        for start in range(0, rows, 3000):
            made.add(matrix_batch(table[start : start + 3000]))
        totals.append(made.total())
    for other in totals:
        assert (other.rows, other.through) == (rows, digest_of(through, scales))
        assert other.high.shape == (4, 31, 31)
        np.testing.assert_array_equal(other.low, totals[0].low)
        np.testing.assert_array_equal(other.high, totals[0].high)


@EVERY
@pytest.mark.parametrize("offset", range(8))
def test_room_that_begins_anywhere_is_enough(compiled, offset):
    held, dim = CellTable(numbers(4)), 5
    held.hold(matrix_batch(np.ones((600, 4))))
    panels = MapPanels(2**20 * np.eye(dim, dtype=np.int64), np.full(dim, 18), (1.0, 4.0))
    needed = len(compiled.scratch(dim, 2))
    around = np.full(needed + 64, 7.0)
    total = np.zeros((2, dim, dim), dtype=np.int64)
    compiled.add(held.columns, 600, largest_square(1.0), around[8 + offset :][:needed], total, panels)
    assert (around[: 8 + offset] == 7).all()
    assert (around[8 + offset + needed :] == 7).all()


@EVERY
def test_shares_that_cannot_be_kept_are_an_error(compiled):
    """A scale that is no number, which nobody can ask for."""
    held = CellTable(numbers(1))
    held.hold(matrix_batch(np.ones((10, 1))))
    panels = MapPanels(2**20 * np.eye(2, dtype=np.int64), np.full(2, 18), (1.0, 4.0))
    panels._scales[:] = np.nan
    with pytest.raises(BoundBrokenError):
        compiled.add(held.columns, 10, largest_square(1.0), compiled.scratch(2, 2), np.zeros((2, 2, 2), dtype=np.int64), panels)
