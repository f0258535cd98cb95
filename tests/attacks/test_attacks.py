"""Attacks through the lowest bits: they undo samplers of floats, ours included where it is not rounded, and learn nothing from a release.

Two tables that differ in one row are published in turn, and an attack names the one it believes in. Any guess between tables that are
(epsilon, delta)-private is right at most (e^epsilon + delta)/(1 + e^epsilon) of the time, 52.5 % here. A right mechanism exceeds the number
that is allowed with probability at most FALSE_ALARM, and where an attack is said to succeed, the share that is claimed is
missed by a lower confidence bound with probability at most DOUBT."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpgram
from dpgram.engines.encoded import encoded_rows
from dpgram.mechanisms.first_stage import EIGENVALUE_SLACK, plan_stages
from dpgram.sampling.base import FloatSource
from dpgram.sampling.certified import smallest_from_below
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.reals import RealMatrix
from dpgram.sampling.secure import SecureSource
from tests.attacks import naive
from tests.attacks.attacks import (
    BOX_MULLER,
    FINE_BOX_MULLER,
    POLAR,
    by_inverting_laplace,
    by_inverting_pairs,
    by_precision,
)
from tests.attacks.releases import (
    allowed,
    at_least,
    neighbours,
    noise_sd,
    pairs_of_the_library,
    released,
    right_guesses,
    task_for,
    upper,
)

FALSE_ALARM, DOUBT = 1e-9, 1e-9
TRIALS = 400
EPSILON = 0.1
DIM = 4
IN_TURN = [(2 * i, 2 * i + 1) for i in range(DIM * (DIM + 1) // 4)]
SCALE = DIM * (DIM + 1) / 2 / EPSILON  # of Laplace noise: one row moves each of ten entries by one


def setting(epsilon=EPSILON, dim=DIM, rows=20):
    """(task, Grams, true numbers, standard deviations) of a Gaussian release."""
    asked, grams = task_for("gaussian-noise", epsilon, dim), neighbours(dim, rows)
    return asked, grams, (upper(grams[0]), upper(grams[1])), noise_sd(asked)


def gaussian_release(asked, grams, source):
    """A function that publishes one of the two tables by the library's own code, each time from ``source()``."""
    return lambda which: upper(released("gaussian-noise", asked, grams[which], source()).gram)


def exact_sources():
    """Exact sources from seeds that differ, so that a run can be repeated; only the bits come from elsewhere than in use."""
    seeds = iter(range(10**9))
    return lambda: ExactSource(next(seeds))


ATTACKS = {
    "Laplace by inversion": (
        lambda true, sd, rng: naive.laplace(true, SCALE, rng),
        lambda true, sd: lambda y: by_inverting_laplace(y, true, SCALE),
    ),
    "Box and Muller": (naive.box_muller, lambda true, sd: lambda y: by_inverting_pairs(y, true, sd, IN_TURN, BOX_MULLER)),
    "polar": (
        lambda true, sd, rng: naive.polar(true, sd, np.random.RandomState(rng.integers(2**32))),
        lambda true, sd: lambda y: by_inverting_pairs(y, true, sd, IN_TURN, POLAR),
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_samplers_of_floats_are_undone_by_inverting_them(name):
    """More than 90 % of the guesses are right, where the budget of the noise allows 52.5 %."""
    sampler, attack = ATTACKS[name]
    _, _, true, sd = setting()
    rng = np.random.default_rng(0)
    right = right_guesses(lambda which: sampler(true[which], sd, rng), attack(true, sd), TRIALS)
    assert at_least(right, TRIALS, DOUBT) > 0.9
    assert right > allowed(TRIALS, EPSILON, FALSE_ALARM)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_exact_release_is_not_undone_by_inverting_samplers(name):
    asked, grams, true, sd = setting()
    right = right_guesses(gaussian_release(asked, grams, exact_sources()), ATTACKS[name][1](true, sd), TRIALS)
    assert right <= allowed(TRIALS, EPSILON, FALSE_ALARM)


def test_nor_by_inverting_the_one_that_float_arithmetic_uses():
    asked, grams, true, sd = setting()
    pairs = pairs_of_the_library(DIM)
    right = right_guesses(
        gaussian_release(asked, grams, exact_sources()),
        lambda y: by_inverting_pairs(y, true, sd, pairs, FINE_BOX_MULLER),
        TRIALS,
    )
    assert right <= allowed(TRIALS, EPSILON, FALSE_ALARM)


@pytest.mark.parametrize(("sampler", "broken"), [("naive", True), ("exact", False)])
def test_precision_gives_a_small_value_away_unless_the_release_is_exact(sampler, broken):
    """An empty table against one row of ones in 16 columns, at epsilon 1: 73 % of guesses can be right; of naive noise, over 90 % are."""
    asked = task_for("gaussian-noise", 1.0, dim=16)
    grams = np.zeros((16, 16)), np.ones((16, 16))
    true, sd = (upper(grams[0]), upper(grams[1])), noise_sd(asked)
    rng = np.random.default_rng(0)
    publish = {
        "naive": lambda which: naive.ziggurat(true[which], sd, rng),
        "exact": gaussian_release(asked, grams, exact_sources()),
    }[sampler]
    right = right_guesses(publish, lambda y: by_precision(y, true), TRIALS)
    assert (right > allowed(TRIALS, 1.0, FALSE_ALARM)) == broken
    assert (at_least(right, TRIALS, DOUBT) > 0.9) == broken


class Unrounded(SecureSource):
    """Our float arithmetic as it was before its results were rounded to a grid."""

    publish = FloatSource.publish
    publish_below = FloatSource.publish_below


@pytest.mark.parametrize(("rows", "dim"), [(20, 4), (20, 12), (1000, 12)])
@pytest.mark.parametrize(("source", "broken"), [(Unrounded, True), (SecureSource, False)])
def test_our_own_floats_are_undone_unless_they_are_rounded(rows, dim, source, broken):
    """Rounded, they pass what these attacks ask; that nothing else is left in them is proven of exact arithmetic alone."""
    asked, grams, true, sd = setting(dim=dim, rows=rows)
    pairs = pairs_of_the_library(dim)
    right = right_guesses(
        gaussian_release(asked, grams, source), lambda y: by_inverting_pairs(y, true, sd, pairs, FINE_BOX_MULLER), TRIALS
    )
    assert (right > allowed(TRIALS, EPSILON, FALSE_ALARM)) == broken
    assert (at_least(right, TRIALS, DOUBT) > 0.9) == broken


@pytest.mark.parametrize(("source", "broken"), [(Unrounded, True), (SecureSource, False), (None, False)])
def test_precision_gives_the_entries_of_wishart_noise_away_unless_they_are_rounded(source, broken):
    """Those beside the diagonal, of an empty table against one row of ones, in 12 columns, at epsilon 1."""
    asked = task_for("wishart-noise", 1.0, dim=12)
    grams = np.zeros((12, 12)), np.ones((12, 12))
    beside = np.triu_indices(12, 1)
    true = grams[0][beside], grams[1][beside]
    make = source or exact_sources()
    right = right_guesses(
        lambda which: released("wishart-noise", asked, grams[which], make()).gram[beside], lambda y: by_precision(y, true), 300
    )
    assert (right > allowed(300, 1.0, FALSE_ALARM)) == broken


def test_the_first_stage_is_not_undone_by_inverting_laplace_noise():
    """The number that an adaptive mechanism releases. The attack is even given the certified eigenvalues, which nobody outside knows."""
    asked = task_for("gaussian-sketch-adaptive", EPSILON, dim=1)
    stages = plan_stages(asked, 2.0)
    grams = [np.array([[math.ceil(stages.offset) + more]], dtype=float) for more in (1, 2)]
    true = tuple(
        np.array([float(smallest_from_below(RealMatrix.of_floats(gram), EIGENVALUE_SLACK)) - stages.offset]) for gram in grams
    )
    sources, rng = exact_sources(), np.random.default_rng(0)

    def publish(which, source):
        return np.array([released("gaussian-sketch-adaptive", asked, grams[which], source).parameters["first_stage_value"]])

    def attack(y):
        return by_inverting_laplace(y, true, stages.scale)

    exact = right_guesses(lambda which: publish(which, sources()), attack, 300)
    rounded = right_guesses(lambda which: publish(which, SecureSource()), attack, 300)
    from_naive = right_guesses(lambda which: naive.laplace(true[which], stages.scale, rng), attack, 300)
    assert max(exact, rounded) <= allowed(300, EPSILON, FALSE_ALARM) < from_naive


def test_a_release_by_the_curator_is_not_undone(monkeypatch):
    """The same through ``dpgram.release``, from rows, on the operating system's bits; the second table has one row more."""
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(c, 0, 1) for c in "abc"], neighbours="add-remove")
    rows = np.random.default_rng(5).integers(0, 2, size=(20, 3)).astype(float)
    tables = rows, np.vstack([rows, np.ones(3)])

    def publish(which, arithmetic):
        return dpgram.release(
            tables[which],
            schema,
            epsilon=EPSILON,
            delta=1e-6,
            mechanism="gaussian-noise",
            columns=list("abc"),
            arithmetic=arithmetic,
        )

    encoded = [encoded_rows({c: table[:, i] for i, c in enumerate("abc")}, schema) for table in tables]
    true = tuple(upper(z.T @ z) for z in encoded)
    noise = publish(0, "exact").noise
    dim = encoded[0].shape[1]
    sd = upper(np.where(np.eye(dim) > 0, noise.sd_diagonal, noise.sd_off_diagonal))
    pairs = pairs_of_the_library(dim)

    def right(arithmetic):
        return right_guesses(
            lambda which: upper(publish(which, arithmetic).gram),
            lambda y: by_inverting_pairs(y, true, sd, pairs, FINE_BOX_MULLER),
            200,
        )

    assert right("exact") <= allowed(200, EPSILON, FALSE_ALARM)
    assert right("float") <= allowed(200, EPSILON, FALSE_ALARM)
    monkeypatch.setattr(SecureSource, "publish", FloatSource.publish)
    assert right("float") > allowed(200, EPSILON, FALSE_ALARM)
