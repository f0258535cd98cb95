"""Normal numbers from the operating system: law, tails and independence."""

import os

import numpy as np
import pytest
from scipy.stats import kstest, norm

from dpgram.sampling.exact import ExactSource
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


@pytest.mark.parametrize(
    ("draw", "least"),
    [
        (lambda source: source.normal(1.0, (6,)), 6 * 12),  # two numbers from 24 bytes
        (lambda source: source.uniform((6,)), 6 * 16),
        (lambda source: source.key(), 32),
        (lambda source: ExactSource().normal(1.0, (6, 1)).at(64), 6 * 8),
        (lambda source: ExactSource().key(), 32),
    ],
)
def test_all_randomness_comes_fresh_from_the_operating_system(draw, least, monkeypatch):
    """A generator that is seeded from it once has no more than its seed: releases could be tried one by one."""
    given, fresh = [], os.urandom

    def counted(size):
        given.append(size)
        return fresh(size)

    monkeypatch.setattr(os, "urandom", counted)
    for _ in range(2):  # the second time nothing is left over
        given.clear()
        draw(SecureSource())
        assert sum(given) >= least


@pytest.mark.parametrize("number", [0.7, -0.7, 0.2, -0.2, 3.0, 2.0**40 + 0.75])
def test_what_is_published_from_below_is_never_above(number):
    assert SecureSource().publish_below(number, 0.5) == 0.5 * np.floor(2 * number)


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
