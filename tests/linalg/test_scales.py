"""Shares of rows in floats are those of rows in whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.linalg.scales import grams, weights
from dpgram.rows.clip import GRID, mapped
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import MOST_SCALES, SWITCH, first_scales, scales_up_to


@pytest.mark.parametrize("count", range(1, MOST_SCALES + 1))
def test_sums_in_floats_are_those_of_the_engines(count):
    rng = np.random.default_rng(count)
    rows = rng.uniform(-1, 1, (2000, 3)) * np.exp(rng.normal(size=(2000, 1)) - 3).clip(0, 1)
    through, scales = PublicMap.near(30 * rng.normal(size=(3, 3))), first_scales(count)
    made = mapped(np.asfortranarray(rows.T), 1.0, through, scales)
    images = rows @ through.matrix.T
    for found, points in zip(grams(np.array_split(images, 7), scales, SWITCH), (made.points, *made.outer), strict=True):
        assert found == pytest.approx(points @ points.T / GRID**2, abs=0.02)


def test_the_squares_of_shares_add_up_to_one_and_their_sum_is_the_row():
    squares = np.concatenate([np.linspace(0.1, 60, 5000), 0.8 * 4.0 ** np.arange(4), 4.0 ** np.arange(8)])
    for count in range(2, 6):
        scales = np.array(first_scales(count))
        parts = weights(squares, tuple(scales), SWITCH) * squares
        long = squares > 1
        assert np.sum(parts**2, axis=0)[long] == pytest.approx(1.0, rel=1e-12)
        assert np.count_nonzero(parts[:, ~long], axis=0).tolist() == [1] * int((~long).sum())
        assert scales @ parts == pytest.approx(np.where(long, np.minimum(squares, 0.8 * scales[-1]), squares), rel=1e-9)
        assert parts[0, long].min() >= 0.6


def test_scales_go_as_far_as_rows_can():
    assert scales_up_to(0.0) == scales_up_to(3.99) == (1.0,)
    assert scales_up_to(4.0) == (1.0, 4.0)
    assert scales_up_to(1e300) == first_scales(MOST_SCALES)
