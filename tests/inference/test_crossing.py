"""Fieller's ends by Newton's steps are those of the search, to the last bit of its grid."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.evidence.evidence import Evidence
from dpgram.inference import intervals
from dpgram.inference.crossing import crossings
from dpgram.inference.intervals import fieller
from dpgram.regression.channel import channel
from dpgram.regression.design import design
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import SymmetricGaussian
from tests.conftest import small_schema, small_table
from tests.releases import NOISES, matrix_release, pass_through, seen_through


def weak(seed, sd=20.0, dim=8):
    """A channel with a direction or two that hardly stand above the noise."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim)) * np.geomspace(1.0, 0.15, dim)
    noise = SymmetricGaussian.orthogonal(sd)
    gram = pass_through(noise, 4000 * root @ root.T / dim, SeededSource(seed))
    release = matrix_release(gram, noise, intercept=False, rows=4000)
    return channel(Evidence.of(release), design(release.schema, "y", None, None))


CHANNELS = {f"weak {seed}": weak(seed, sd=0.5 * 1.5**seed) for seed in range(12)}
for name, noise in NOISES.items():
    made = seen_through(noise, small_table(), small_schema())
    CHANNELS[name] = channel(Evidence.of(made), design(made.schema, "y", None, None))


def by_search(monkeypatch, of, confidence):
    with monkeypatch.context() as patch:
        patch.setattr(intervals, "crossings", lambda seen, rows, *given: (np.full(len(rows), np.nan), np.ones(len(rows))))
        return fieller(of, confidence)


@pytest.mark.parametrize("of", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_ends_are_those_of_the_search(monkeypatch, of, confidence):
    one, other = fieller(of, confidence), by_search(monkeypatch, of, confidence)
    assert np.array_equal(one.lower, other.lower)
    assert np.array_equal(one.upper, other.upper)


def test_most_ends_need_no_search(monkeypatch):
    sure = []

    def counted(*given):
        found = crossings(*given)
        sure.extend(~np.isnan(found[0]))
        return found

    monkeypatch.setattr(intervals, "crossings", counted)
    for of in CHANNELS.values():
        fieller(of, 0.95)
    assert len(sure) > 60
    assert np.mean(sure) > 0.7


def test_a_crossing_that_is_a_little_off_would_be_seen(monkeypatch):
    def moved(*given):
        at, growth = crossings(*given)
        return at + 1e-3, growth

    wanted = {name: by_search(monkeypatch, of, 0.95) for name, of in CHANNELS.items()}
    monkeypatch.setattr(intervals, "crossings", moved)
    apart = [name for name, of in CHANNELS.items() if not np.array_equal(fieller(of, 0.95).upper, wanted[name].upper)]
    assert len(apart) > len(CHANNELS) / 2
