"""Noise that comes twice: seen where it was drawn once, and not where a grid makes numbers meet by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from dpgram.audits.draws import BatchedSource, PairReleases, is_rounding
from dpgram.audits.fit import faults_between
from dpgram.audits.laws.registry import law_of
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.base import grid_step
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource
from dpgram.sampling.seeded import SeededSource
from tests.audits.test_mutations import task_for

AGAIN = "the same noise was drawn again"
FALSE_ALARM = 1e-9  # of this suite, when the code is right


def rounded(numbers):
    """Standard normal numbers as they are published, on the coarsest grid there is for them."""
    step = grid_step(1.0)
    assert step == 2.0**-24
    return step * np.rint(numbers / step)


def alarms(looks, error, *, on_grid, releases=1000, columns=3):
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(looks):
        first, second = (ndtr(rounded(rng.normal(size=(releases, columns)))) for _ in range(2))
        found += any(words.startswith(AGAIN) for words in faults_between(first, second, error, rounded=on_grid))
    return found


def test_rounded_numbers_that_meet_by_chance_are_accused_no_more_often_than_is_said():
    """One look in ten at 1,000 right releases of each table has such a meeting; at an error of 1e-4, half of it for repeats, at most one
    in 20,000 may accuse. Taken for unrounded numbers, each meeting would."""
    looks = 400
    assert alarms(looks, 1e-4, on_grid=True) <= binom.isf(FALSE_ALARM, looks, 0.5e-4)
    assert alarms(looks, 1e-4, on_grid=False) > 10


@pytest.mark.parametrize("on_grid", [True, False])
def test_many_right_releases_are_not_accused_of_repeating_themselves(on_grid):
    rng = np.random.default_rng(6)
    first, second = (rng.normal(size=(50_000, 3)) for _ in range(2))
    if on_grid:
        first, second = rounded(first), rounded(second)
    assert faults_between(ndtr(first), ndtr(second), 1e-6, rounded=on_grid) == []


@pytest.mark.parametrize("on_grid", [True, False])
def test_two_releases_in_a_hundred_that_are_drawn_twice_are_seen(on_grid):
    rng = np.random.default_rng(7)
    first, second = (rounded(rng.normal(size=(300, 3))) for _ in range(2))
    second[::50] = first[1::50]
    assert any(words.startswith(AGAIN) for words in faults_between(ndtr(first), ndtr(second), 1e-6, rounded=on_grid))


def test_which_sources_round():
    """A release at a time as it is published; many at once, which show how fine the noise is, not at all."""
    assert is_rounding(SecureSource())
    assert is_rounding(ExactSource())
    assert not is_rounding(SeededSource(1))
    assert not is_rounding(BatchedSource(SecureSource(), 3))


@pytest.mark.parametrize("source", [SecureSource, ExactSource])
def test_noise_that_is_kept_is_seen_through_the_grid(source, monkeypatch):
    """One matrix of noise for every ten releases, made one at a time."""
    mechanism, task = MECHANISMS["gaussian-noise"], task_for("gaussian-noise")
    law = law_of(mechanism.name)(task, mechanism.calibrate(task))
    drawing = PairReleases(mechanism, law, law.worst_pairs()[0])
    drawn = "symmetric_normal" if source is ExactSource else "normal"
    right, kept = getattr(source, drawn), []

    def again(self, *of):
        if len(kept) % 10 == 0:
            kept.append(right(self, *of))
        else:
            kept.append(kept[-1])
        return kept[-1]

    monkeypatch.setattr(source, drawn, again)
    found = drawing.look(source(), 60, 1e-6, one_at_a_time=True)
    assert any(words.startswith(AGAIN) for words in found)
