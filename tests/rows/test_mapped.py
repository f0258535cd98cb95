"""Rows through a public map: whole numbers within the bound, close to what real numbers give, and what cannot be done is said."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram import Numeric, Schema
from dpgram.engines.local import LocalPass
from dpgram.engines.summing import summing_for
from dpgram.errors import MapMismatchError, MechanismError
from dpgram.rows.clip import GRID, clip, mapped
from dpgram.rows.gram_sum import GramSum
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap


def random_map(dim: int, size: float = 1.0) -> PublicMap:
    return PublicMap.near(size * np.random.default_rng(dim).normal(size=(dim, dim)))


def test_the_identity_is_the_clip():
    values = np.random.default_rng(0).uniform(-1, 1, (6, 500))
    rows = mapped(values, 1.0, PublicMap.near(np.eye(6)))
    assert np.array_equal(rows.points, clip(values, 1.0).points)


def test_one_column_and_no_rows():
    through = PublicMap.near(np.array([[-0.5]]))
    assert mapped(np.array([[1.0, -0.5, 0.0]]), 1.0, through).points.tolist() == [[-GRID // 2, GRID // 4, 0]]
    assert mapped(np.empty((1, 0)), 1.0, through).points.shape == (1, 0)


def test_a_huge_row_keeps_its_direction_at_the_bound():
    rows = mapped(np.array([[1.0], [1.0]]), 0.5, PublicMap.near(np.diag([0.8e100, -0.6e100])))
    assert rows.points[:, 0] / GRID == pytest.approx([0.4, -0.3], abs=3 / GRID)


def test_a_column_that_is_tiny_beside_a_huge_one_vanishes_without_a_word():
    """The smaller entry would underflow, which NumPy may be told to raise for."""
    through = PublicMap(np.array([[2**33, 0], [0, 1]]), np.array([-900, 900]))
    with np.errstate(all="raise"):
        assert mapped(np.ones((2, 1)), 1.0, through).points.tolist() == [[GRID], [0]]


def test_what_is_not_finite_counts_as_in_the_clip():
    values = np.array([[np.nan, np.inf, -np.inf], [0.5, 0.5, 0.5]])
    tame = np.array([[0.0, 1.0, -1.0], [0.5, 0.5, 0.5]])
    through = random_map(2)
    assert np.array_equal(mapped(values, 1.0, through).points, mapped(tame, 1.0, through).points)


def test_the_most_columns_there_are_stay_exact():
    """Every entry just below 2^21 before the clip: the sum of squares, in Python's integers, is what the clip must have seen."""
    dim = 2048
    whole = np.zeros((dim, dim), dtype=np.int64)
    whole[:, 0] = 2**33 - 1 - np.arange(dim)
    points = mapped(np.ones((dim, 1)), 1.0, PublicMap(whole, np.full(dim, 32))).points
    assert sum(int(q) ** 2 for q in points[:, 0]) <= GRID**2
    assert points[:, 0] / GRID == pytest.approx(np.full(dim, dim**-0.5), abs=3 / GRID)


def test_more_columns_than_a_map_can_have_are_refused():
    with pytest.raises(MechanismError, match="at most 2048 columns"):
        PublicMap.near(np.eye(2049))


@pytest.mark.parametrize("bound", [1.5, 0.0, -1.0, float("nan")])
def test_mapped_rows_need_a_bound_of_at_most_one(bound):
    with pytest.raises(MechanismError, match="at most 1 is needed: scale the map"):
        mapped(np.zeros((2, 1)), bound, random_map(2))


def test_a_map_of_another_size_is_refused_before_a_row_is_read():
    schema = Schema(unit="p", columns=[Numeric("x", 0, 1)])
    with pytest.raises(MechanismError, match="of 3 columns cannot map rows of 2 encoded columns"):
        summing_for(schema, 1.0, random_map(3))
    with pytest.raises(MechanismError, match="cannot map rows of 2"):
        LocalPass(open_source({"x": [1.0]}), schema).gram(1.0, random_map(3))


def test_sums_through_different_maps_do_not_mix():
    a, b = random_map(2), random_map(2, size=2.0)
    values = np.full((2, 3), 0.25)
    through_a = GramSum.zero(2, 1.0, a.digest).update(mapped(values, 1.0, a))
    assert through_a.rows == 3
    for other in (mapped(values, 1.0, b), clip(values, 1.0)):
        with pytest.raises(MapMismatchError, match="Use one map"):
            through_a.update(other)
    with pytest.raises(MapMismatchError):
        GramSum.zero(2, 1.0).merge(through_a)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pass_through_a_map_is_the_sum_of_its_mapped_rows(threads):
    rng = np.random.default_rng(3)
    table, through = rng.uniform(-3, 3, (5000, 7)), random_map(8, size=0.6)
    schema = Schema(unit="p", columns=[Numeric(f"x{i}", -2, 2) for i in range(7)])
    found = LocalPass(open_source(table, columns=list(schema.names)), schema, threads=threads).gram(0.9, through)
    encoded = np.vstack([np.ones(5000), np.clip(table.T, -2, 2) / 2])
    expected = GramSum.zero(8, 0.9, through.digest).update(mapped(encoded, 0.9, through))
    assert np.array_equal(found.high, expected.high)
    assert np.array_equal(found.low, expected.low)
    assert (found.rows, found.through) == (5000, through.digest)
