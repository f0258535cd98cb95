"""Whatever the cells and however the rows are split: bounds hold, and the sum is the same to the bit."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram import Boolean, Categorical, Numeric, Schema
from dpgram.encoding.columns import untyped_array
from dpgram.encoding.encode import Encoder
from dpgram.rows.clip import clip, largest_square
from dpgram.rows.gram_sum import GramSum

ENCODED = st.integers(1, 6).flatmap(
    lambda d: arrays(float, st.tuples(st.just(d), st.integers(0, 40)), elements=st.floats(-1, 1))
)
BOUNDS = st.floats(2**-10, 3)


def same(a: GramSum, b: GramSum) -> bool:
    return np.array_equal(a.high, b.high) and np.array_equal(a.low, b.low) and a.rows == b.rows


@given(encoded=ENCODED, bound=BOUNDS, data=st.data())
def test_any_split_in_any_order_merged_is_the_whole(encoded, bound, data):
    count = encoded.shape[1]
    whole = GramSum.zero(len(encoded), bound).update(clip(encoded, bound))
    order = data.draw(st.permutations(range(count)))
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=5)))
    parts = np.split(encoded[:, order], cuts, axis=1)
    sums = [GramSum.zero(len(encoded), bound).update(clip(part, bound)) for part in parts]
    assert same(reduce(GramSum.merge, sums), whole)


@given(
    encoded=arrays(float, st.tuples(st.integers(1, 8), st.integers(1, 10)), elements=st.floats(allow_nan=True, width=64)),
    bound=BOUNDS,
)
def test_clipping_never_lets_a_row_out_of_bounds(encoded, bound):
    rows = clip(encoded, bound)
    for row in rows.points.T:
        assert sum(int(q) ** 2 for q in row) <= largest_square(bound)
        assert all(float(q).is_integer() for q in row)


NUMBERS = st.floats(-1e6, 1e6)
CELLS = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**400),
    st.floats(),
    st.decimals(),
    st.sampled_from(["a", "b", "1", " 2.5 ", "TRUE", "nan", "-inf", b"\xff", "\ud800", Decimal("sNaN"), [1], {}, object()]),
)
COLUMNS = st.one_of(
    st.tuples(NUMBERS, st.floats(1, 1e6)).map(lambda t: Numeric("x", t[0], t[0] + t[1])),
    st.booleans().map(lambda other: Categorical("x", ["a", "b"], other=other, missing="level")),
    st.booleans().map(lambda other: Categorical("x", [1, 2, 3], other=other)),
    st.booleans().map(lambda missing: Boolean("x", missing=missing)),
)


@settings(max_examples=150)
@given(column=COLUMNS, cells=st.lists(CELLS, min_size=1, max_size=12), intercept=st.booleans(), bound=BOUNDS)
def test_encoding_never_leaves_the_bounds_whatever_the_cell(column, cells, intercept, bound):
    schema = Schema(unit="p", columns=[column], intercept=intercept)
    encoder = Encoder(schema, untyped=frozenset(["x"]))
    together = encoder.encode(pa.record_batch({"x": untyped_array(cells)}))
    assert (np.abs(together) <= 1).all()
    for place, cell in enumerate(cells):  # no row decides what another becomes
        alone = encoder.encode(pa.record_batch({"x": untyped_array([cell])}))
        assert np.array_equal(alone[:, 0], together[:, place])
    for row in clip(together, bound).points.T:
        assert sum(int(q) ** 2 for q in row) <= largest_square(bound)


@given(lower=st.floats(-1e9, 1e9), width=st.floats(10, 1e9), values=st.lists(st.floats(), min_size=1, max_size=8))
def test_typed_numbers_never_leave_the_bounds(lower, width, values):
    schema = Schema(unit="p", columns=[Numeric("x", lower, lower + width)])
    out = Encoder(schema).encode(pa.record_batch({"x": pa.array(values, pa.float64())}))
    assert (np.abs(out) <= 1).all()
