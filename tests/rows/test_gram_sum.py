"""GramSum is exact, mergeable, roomy and silent."""

import numpy as np
import pytest

from dpgram.errors import BoundMismatchError
from dpgram.rows.clip import GRID, GRID_BITS, clip
from dpgram.rows.gram_sum import BLOCK_ROWS, BLOCKS_PER_SUM, GramSum, integer_gram


def exact_total(total: GramSum) -> list[list[int]]:
    return (total.high.astype(object) * 2**40 + total.low.astype(object)).tolist()


def test_the_sum_is_that_of_python_integers():
    values = np.random.default_rng(1).uniform(-1, 1, (4, 300))
    rows = clip(values, row_bound=1.2)
    expected = [[0] * 4 for _ in range(4)]
    for q in rows.points.T.astype(int).tolist():
        for i in range(4):
            for j in range(4):
                expected[i][j] += q[i] * q[j]
    assert exact_total(GramSum.zero(4, 1.2).update(rows)) == expected


def test_float_rounding_would_show():
    """The largest entries over many blocks exceed 2^53, where a plain float sum starts to lose units."""
    values = np.full((2, 3 * BLOCK_ROWS), 1.0)
    values[1] = (GRID - 1) / GRID
    total = GramSum.zero(2, 2.0).update(clip(values, row_bound=2.0))
    assert exact_total(total)[1][1] == 3 * BLOCK_ROWS * (GRID - 1) ** 2


def test_ten_billion_rows_do_not_overflow():
    """Merging doubles the rows 24 times: 1024 rows become 1.7e10."""
    values = np.array([[1.0], [-1.0]]).repeat(1024, axis=1)
    total = GramSum.zero(2, 2.0).update(clip(values, row_bound=2.0))
    for _ in range(24):
        total = total.merge(total)
    rows = 1024 * 2**24
    assert total.rows == rows > 10**10
    assert exact_total(total) == [[rows * GRID**2, -rows * GRID**2], [-rows * GRID**2, rows * GRID**2]]
    assert total.in_scaled_units().tolist() == [[rows, -rows], [-rows, rows]]


def test_scaled_units_are_correctly_rounded():
    total = GramSum(
        high=np.array([[2**30 + 1]]), low=np.array([[2**40 - 1]]), rows=1, row_bound=1.0
    )  # 71 bits: more than a float holds
    exact = (2**30 + 1) * 2**40 + 2**40 - 1
    assert total.in_scaled_units()[0, 0] == float(exact) / 2 ** (2 * GRID_BITS)


def test_block_bounds_leave_room():
    assert BLOCK_ROWS * GRID**2 < 2**53
    assert BLOCK_ROWS * BLOCKS_PER_SUM * GRID**2 < 2**63
    with pytest.raises(OverflowError):
        integer_gram(np.broadcast_to(0.0, (1, BLOCK_ROWS * BLOCKS_PER_SUM + 1)))


def test_sums_under_different_bounds_do_not_mix():
    with pytest.raises(BoundMismatchError, match="rows with the bound 2 cannot be added to a sum of rows with the bound 1"):
        GramSum.zero(1, 1.0).merge(GramSum.zero(1, 2.0))


def test_it_prints_no_numbers():
    total = GramSum.zero(2, 2.0).update(clip(np.full((2, 777), 0.5), row_bound=2.0))
    assert repr(total) == "GramSum(dim=2, row_bound=2, total=<private>)"
