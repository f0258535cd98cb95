"""Normal numbers from the operating system: law, tails and independence."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from dpgram.sampling.secure import SecureSource, box_muller

FALSE_ALARM = 1e-9
DRAWS = 400_000


@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (1.05, False)])
def test_draws_are_normal(scale, accepted):
    """Kolmogorov-Smirnov at 400 000 draws sees a scale that is 5 % off (distance 0.0118, threshold 0.0052, standard error 0.0008)."""
    draws = SecureSource().normal(scale=2.0, size=(DRAWS,)) / (2.0 * scale)
    assert (kstest(draws, "norm").pvalue > FALSE_ALARM) == accepted


def test_tails_have_the_right_mass():
    draws = SecureSource().normal(scale=1.0, size=(DRAWS,))
    for threshold in (2.0, 3.0, 4.0):
        expected = DRAWS * 2 * norm.sf(threshold)
        margin = norm.isf(FALSE_ALARM / 6) * np.sqrt(expected) + 20  # generous for the small counts at 4 sd
        assert abs(np.sum(np.abs(draws) > threshold) - expected) < margin


def test_both_numbers_of_a_pair_are_independent():
    draws = SecureSource().normal(scale=1.0, size=(DRAWS,))
    first, second = draws[: DRAWS // 2], draws[DRAWS // 2 :]
    for f in (lambda x: x, np.square, np.abs):
        a, b = f(first) - f(first).mean(), f(second) - f(second).mean()
        correlation = np.mean(a * b) / (a.std() * b.std())
        assert abs(correlation) * np.sqrt(DRAWS / 2) < norm.isf(FALSE_ALARM / 6)


def test_two_calls_differ():
    assert not np.array_equal(SecureSource().normal(1.0, (50,)), SecureSource().normal(1.0, (50,)))


@pytest.mark.parametrize("size", [(0,), (1,), (3, 3), (7,)])
def test_every_size_comes_back(size):
    assert SecureSource().normal(1.0, size).shape == size


def test_extreme_bits_stay_finite_and_reach_far():
    top = np.iinfo(np.uint64).max
    lowest = box_muller(np.array([[0], [0], [0]], dtype=np.uint64))
    highest = box_muller(np.array([[top], [top], [top]], dtype=np.uint64))
    assert np.isfinite(lowest).all()
    assert lowest[0] > 13
    assert np.isfinite(highest).all()
    assert np.abs(highest).max() == 0
