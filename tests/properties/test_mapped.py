"""Whatever the rows and whatever the public map: the bound holds, the bits are those of whole numbers, and any split is the whole."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram.rows.clip import GRID, JUST_BELOW_ONE, clip, largest_square, mapped
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.public_map import MOST_EXPONENT, PublicMap

BOUNDS = st.one_of(st.floats(2**-10, 1), st.sampled_from([1.0, 2.0**-30]))
EXPONENTS = st.one_of(
    st.integers(-MOST_EXPONENT, MOST_EXPONENT), st.integers(8, 40), st.sampled_from([-MOST_EXPONENT, MOST_EXPONENT])
)


def encoded_of(dim: int):
    values = st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0, 1 / GRID]))
    return arrays(float, st.tuples(st.just(dim), st.integers(0, 20)), elements=values)


def maps_of(dim: int):
    most = 2**33 // dim
    whole = st.one_of(st.integers(-most, most), st.sampled_from([-most, -1, 0, 0, 1, most]))
    return st.builds(PublicMap, arrays(np.int64, (dim, dim), elements=whole), arrays(np.int64, dim, elements=EXPONENTS))


@st.composite
def rows_and_map(draw):
    dim = draw(st.integers(1, 6))
    return draw(encoded_of(dim)), draw(maps_of(dim))


def in_python(encoded: np.ndarray, bound: float, through: PublicMap) -> list[list[int]]:
    """The rows by Python's integers and fractions; the shrinking factor alone is a float."""
    most, rows = largest_square(bound), []
    for row in encoded.T.tolist():
        points = [math.trunc(Fraction(value) * GRID) for value in row]
        images = [
            Fraction(sum(w * x for w, x in zip(line, points, strict=True))) / Fraction(2) ** exponent
            for line, exponent in zip(through.whole.tolist(), through.exponents.tolist(), strict=True)
        ]
        too_long = max(0, int(max(map(abs, images))).bit_length() - 21)
        images = [image / 2**too_long for image in images]
        whole = [math.trunc(image) for image in images]
        squares = sum(q * q for q in whole)
        if squares > most:
            whole = [math.trunc(q * (math.sqrt(most / squares) * JUST_BELOW_ONE)) for q in whole]
        rows.append(whole)
    return rows


@settings(max_examples=150)
@given(both=rows_and_map(), bound=BOUNDS)
def test_mapped_rows_are_those_of_whole_numbers_and_within_the_bound(both, bound):
    encoded, through = both
    rows = mapped(encoded, bound, through).points.T
    assert rows.tolist() == in_python(encoded, bound, through)
    for row in rows:
        assert sum(int(q) ** 2 for q in row) <= largest_square(bound)


@given(
    values=arrays(float, (3, 5), elements=st.floats(allow_nan=True, allow_infinity=True, width=64)),
    through=maps_of(3),
    bound=BOUNDS,
)
def test_no_value_leaves_the_bound(values, through, bound):
    for row in mapped(values, bound, through).points.T:
        assert sum(int(q) ** 2 for q in row) <= largest_square(bound)


@given(both=rows_and_map(), bound=BOUNDS, data=st.data())
def test_any_split_in_any_order_merged_is_the_whole(both, bound, data):
    encoded, through = both
    zero = GramSum.zero(len(encoded), bound, through.digest)
    whole = zero.update(mapped(encoded, bound, through))
    order = data.draw(st.permutations(range(encoded.shape[1])))
    cuts = sorted(data.draw(st.lists(st.integers(0, encoded.shape[1]), max_size=5)))
    parts = np.split(encoded[:, order], cuts, axis=1)
    merged = reduce(GramSum.merge, [zero.update(mapped(part, bound, through)) for part in parts])
    assert np.array_equal(merged.high, whole.high)
    assert np.array_equal(merged.low, whole.low)
    assert merged.rows == whole.rows


@given(encoded=st.integers(1, 6).flatmap(encoded_of), bound=BOUNDS)
def test_the_identity_is_the_clip(encoded, bound):
    rows = mapped(encoded, bound, PublicMap.near(np.eye(len(encoded))))
    assert np.array_equal(rows.points, clip(encoded, bound).points)


@given(
    encoded=st.just(4).flatmap(encoded_of),
    matrix=arrays(float, (4, 4), elements=st.floats(-1e30, 1e30)),
    bound=st.floats(0.01, 1),
)
def test_mapped_rows_are_close_to_those_of_real_numbers(encoded, matrix, bound):
    """Within three grid points: each truncation costs one, and the norm that the factor is made of is off by less than four."""
    matrix = np.where(np.abs(matrix) < 1e-200, 0.0, matrix)
    through = PublicMap.near(matrix)
    points = np.trunc(encoded * GRID) / GRID
    exact = through.matrix @ points
    norms = np.linalg.norm(exact, axis=0)
    ideal = exact * np.minimum(1.0, bound / np.where(norms > 0, norms, 1.0))
    assert np.abs(mapped(encoded, bound, through).points / GRID - ideal).max(initial=0.0) <= 4 / GRID


@given(both=rows_and_map())
def test_a_row_is_mapped_alone(both):
    encoded, through = both
    together = mapped(encoded, 1.0, through).points
    for place in range(encoded.shape[1]):
        assert np.array_equal(mapped(encoded[:, [place]], 1.0, through).points[:, 0], together[:, place])
