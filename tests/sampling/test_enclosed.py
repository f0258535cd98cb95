"""The floats that decide nearly all bits are within the errors that they state: at the edges and at random words, against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpgram.sampling import enclosed

EDGES = [
    2**20,
    2**20 + 1,
    2**32 - 1,
    2**53 + 1,
    2**61 - 1,
    2**61,
    2**62,
    2**63 - 1,
    2**63,
    2**63 + 2**62,
    2**64 - 2**53,
    2**64 - 1,
]


@pytest.fixture(scope="module")
def words() -> np.ndarray:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2**20, 2**64, size=300, dtype=np.uint64) >> rng.integers(0, 44, size=300).astype(np.uint64)
    half = np.uint64(round(0.5**0.5 * 2**64))  # where the series changes its argument
    return np.concatenate([np.array(EDGES, np.uint64), [half - np.uint64(2**12), half, half + np.uint64(2**12)], sizes])


def farthest(log: np.ndarray, words: np.ndarray) -> np.ndarray:
    """How far a logarithm is from that of any number a word stands for: between its own and the next."""
    with mpmath.workprec(200):
        ends = [[mpmath.log(mpmath.mpf(int(w) + more) / 2**64) for more in (0, 1)] for w in words]
        return np.array([float(max(abs(end - float(x)) for end in pair)) for x, pair in zip(log, ends, strict=True)])


def test_logarithms_are_within_their_errors(words):
    log, error = enclosed._logarithm(words)
    certain = words >= 2**20
    assert np.all(np.isinf(error[~certain]))
    off = farthest(log[certain], words[certain])
    assert np.all(off <= error[certain])
    assert np.max(off[words[certain] > 2**60]) > 2.0**-60  # rounding is part of it, and not only the word's own width


def test_directions_are_within_their_errors(words):
    cosine, sine = enclosed._direction(words)
    with mpmath.workprec(200):
        turns = [2 * mpmath.pi * mpmath.mpf(int(w)) / 2**64 for w in words]
        off = [max(abs(mpmath.cos(t) - c), abs(mpmath.sin(t) - s)) for t, c, s in zip(turns, cosine, sine, strict=True)]
    assert max(map(float, off)) <= 2.0**-50
