"""The bound holds in whole numbers, and rows within it are left alone."""

from fractions import Fraction

import numpy as np
import pytest

from dpgram.errors import BoundBrokenError
from dpgram.rows.clip import GRID, clip, largest_square


def squares(rows):
    return [sum(int(q) ** 2 for q in column) for column in rows.points.T]


def test_rows_within_the_bound_are_only_put_on_the_grid():
    rows = clip(np.array([[1.0, 0.3, -0.3], [0.0, -1.0, 0.25]]), row_bound=2.0)
    assert rows.points.tolist() == [[GRID, int(0.3 * GRID), -int(0.3 * GRID)], [0, -GRID, GRID // 4]]


def test_a_long_row_keeps_its_direction():
    rows = clip(np.array([[0.8], [-0.6]]), row_bound=0.5)
    assert rows.points[:, 0] / GRID == pytest.approx([0.4, -0.3], abs=2 / GRID)


def test_a_row_is_shrunk_alone():
    values = np.random.default_rng(0).uniform(-1, 1, (6, 50))
    together = clip(values, row_bound=1.0).points
    apart = np.column_stack([clip(values[:, [i]], row_bound=1.0).points for i in range(50)])
    assert np.array_equal(together, apart)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, -5.0])
def test_nothing_gets_past_the_bound(bad):
    rows = clip(np.full((3, 4), bad), row_bound=1.1)
    assert max(squares(rows)) <= largest_square(1.1)


def test_an_entry_outside_of_its_range_counts_as_its_end():
    """No encoder makes one; were one to, the other entries of its row stay what they are where the bound leaves room."""
    rows = clip(np.array([[1.5, -1.5, np.inf, -np.inf, np.nan], [0.25, 0.25, 0.25, 0.25, 0.25]]), row_bound=3.0)
    assert rows.points.tolist() == [[GRID, -GRID, GRID, -GRID, 0], [GRID // 4] * 5]


@pytest.mark.parametrize("bound", [2**-10, 0.1, 1.0, np.nextafter(1.0, 2), 1.7, np.sqrt(3), 63.9])
def test_the_largest_square_is_the_bound_rounded_down(bound):
    assert largest_square(bound) <= Fraction(bound) ** 2 * GRID**2 < largest_square(bound) + 1


def test_a_broken_bound_would_be_noticed(monkeypatch):
    monkeypatch.setattr("dpgram.rows.clip.JUST_BELOW_ONE", 1.01)
    with pytest.raises(BoundBrokenError, match="nothing was released"):
        clip(np.full((3, 4), 1.0), row_bound=1.0)


def test_too_many_columns_for_exact_sums_are_refused():
    with pytest.raises(BoundBrokenError):
        clip(np.zeros((4097, 1)), row_bound=1.0)


def test_rows_print_no_numbers():
    assert repr(clip(np.full((2, 3), 0.123), row_bound=1.0)) == "BoundedRows(dim=2, row_bound=1, points=<private>)"
