"""A public map holds what exact sums can take, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.errors import MechanismError
from dpgram.terms.public_map import MOST_EXPONENT, PublicMap

LEAST = np.iinfo(np.int64).min


@pytest.mark.parametrize(
    ("whole", "exponents"),
    [
        ([[2**33 + 1]], [0]),
        ([[-(2**33) - 1]], [0]),
        ([[LEAST]], [0]),
        ([[2**33, -1], [0, 1]], [0, 0]),
        ([[LEAST, LEAST], [0, 1]], [0, 0]),
        ([[1]], [MOST_EXPONENT + 1]),
        ([[1]], [LEAST]),
    ],
)
def test_numbers_too_large_for_exact_sums_are_refused(whole, exponents):
    with pytest.raises(MechanismError, match="too large for exact sums"):
        PublicMap(np.array(whole, dtype=np.int64), np.array(exponents, dtype=np.int64))


@pytest.mark.parametrize("size", [1e308, 1e-300, np.inf, np.nan])
def test_a_matrix_too_far_from_one_is_refused(size):
    with pytest.raises(MechanismError, match="a public map"):
        PublicMap.near(np.full((2, 2), size))


@pytest.mark.parametrize("size", [1e250, 1e-240, 1.0])
def test_the_nearest_map_is_close_row_by_row(size):
    matrix = np.random.default_rng(0).uniform(-1, 1, (5, 5)) * size
    matrix[2] = 0.0
    matrix[3] *= 1e-9
    found = PublicMap.near(matrix).matrix
    assert (np.abs(found - matrix) <= 2.0**-30 * np.abs(matrix).sum(axis=1, keepdims=True)).all()


def test_different_maps_have_different_digests():
    eye = PublicMap.near(np.eye(3))
    assert eye.digest == PublicMap.near(np.eye(3)).digest
    others = [PublicMap.near(2 * np.eye(3)), PublicMap.near(np.eye(2)), PublicMap(eye.whole[::-1], eye.exponents)]
    assert len({eye.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_a_map_comes_back_from_bytes(dim):
    made = PublicMap.near(np.random.default_rng(dim).normal(size=(dim, dim)))
    again = PublicMap.from_bytes(made.to_bytes())
    assert again == made
    assert again.digest == made.digest


def test_a_map_that_was_checked_stays_as_it_is():
    whole = np.eye(2, dtype=np.int64)
    made = PublicMap(whole, np.zeros(2, dtype=np.int64))
    whole[0, 0] = LEAST
    assert made.whole[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        made.whole[0, 0] = 2
