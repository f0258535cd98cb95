"""The bounds of an audit: true with the stated confidence, and close where the curve is exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.audits.bounds import at_least, at_most, lower_bounds
from dpgram.audits.claims import Claim
from dpgram.audits.draws import releases
from dpgram.audits.laws.registry import law_of
from dpgram.audits.neighbours import Rows
from dpgram.audits.run import audit
from dpgram.errors import MechanismError
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from tests.audits.test_mutations import task_for


def gaussian_claim(delta):
    mu = calibrate_mu(Budget(1.0, delta))
    return mu, Claim(1.0, delta, lambda epsilon, strength: gaussian_delta(epsilon, strength * mu))


def normal_losses(mu, draws, seed):
    z = np.random.default_rng(seed).normal(size=(2, draws, 1))
    return mu * (z[0] + mu / 2), mu * (z[1] - mu / 2)


def test_shares_are_bounded_as_by_clopper_and_pearson():
    assert at_least(7, 50, 0.01) == pytest.approx(beta.ppf(0.01, 7, 44))
    assert at_most(7, 50, 0.01) == pytest.approx(beta.ppf(0.99, 8, 43))
    assert at_least(0, 50, 0.01) == 0
    assert at_most(50, 50, 0.01) == 1


@pytest.mark.parametrize("delta", [0.01, 1e-5])
def test_a_few_hundred_thousand_draws_come_within_15_per_cent(delta):
    """On the laws of a Gaussian mechanism; from releases by its code: docs/audits.md."""
    mu, claim = gaussian_claim(delta)
    bounds = lower_bounds(*normal_losses(mu, 300_000, 1), claim, 0.999)
    assert 0.85 < bounds.shaped < 1
    if delta == 0.01:
        assert 0.8 < bounds.counted < 1


def test_the_bounds_are_seldom_wrong():
    """At a confidence of 90 %, of 100 audits at most 25 accuse (chance 1e-5 if a tenth did); Bonferroni leaves far fewer."""
    mu, claim = gaussian_claim(0.01)
    wrong = 0
    for seed in range(100):
        bounds = lower_bounds(*normal_losses(mu, 1000, seed), claim, 0.9)
        wrong += bounds.counted > 1 or bounds.strength > 1
    assert wrong <= 25


def test_impossible_releases_are_counted():
    """Losses of plus and minus infinity: an eighth of the releases gives the table away."""
    _, claim = gaussian_claim(0.01)
    first, second = np.zeros((8000, 1)), np.zeros((8000, 1))
    first[::8], second[::8] = np.inf, -np.inf
    bounds = lower_bounds(first, second, claim, 0.999)
    assert bounds.counted > 3
    assert bounds.strength > 0.5


def test_the_trade_off_curve_of_a_gaussian_mechanism():
    from scipy.special import ndtr, ndtri

    mu, claim = gaussian_claim(0.01)
    alarms = np.array([0.01, 0.2, 0.5, 0.9])
    assert claim.missed(alarms) == pytest.approx(ndtr(ndtri(1 - alarms) - mu), abs=2e-3)
    assert np.all(claim.missed(alarms) <= ndtr(ndtri(1 - alarms) - mu) + 1e-9)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
@pytest.mark.parametrize("neighbours", Neighbours)
def test_pairs_are_neighbours(name, neighbours):
    """They differ by rows of norm one: at most one eigenvalue of each sign, of at most one; positive semi-definite both."""
    task = task_for(name, neighbours, dim=3)
    law = law_of(name)(task, MECHANISMS[name].calibrate(task))
    pairs = [*law.worst_pairs(), *law.random_pairs(5, np.random.default_rng(1))]
    for first, second in (grams for pair in pairs for grams in grams_of(pair)):
        change, size = np.linalg.eigvalsh(first - second), 1e-12 * max(1.0, np.abs(first).max())
        assert change[1] == pytest.approx(0, abs=size)
        assert change[-1] <= 1 + size
        assert change[0] >= (-size if neighbours is Neighbours.ADD_REMOVE else -1 - size)
        assert min(np.linalg.eigvalsh(first)[0], np.linalg.eigvalsh(second)[0]) >= -size


def grams_of(pair):
    """Both Gram sums; of rows, those through some maps."""
    if not isinstance(pair.first, Rows):
        return [(pair.first, pair.second)]
    maps = np.random.default_rng(2).normal(size=(20, 3, 3)) * np.logspace(-3, 3, 20)[:, None, None]
    return [(pair.first.gram(each), pair.second.gram(each)) for each in maps]


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_the_losses_are_those_of_the_law(name):
    """The mean of e^-loss over releases of the first table is at most one (five standard errors), and its curve that of the claim."""
    task = task_for(name)
    law = law_of(name)(task, MECHANISMS[name].calibrate(task))
    pair = law.worst_pairs()[0]
    drawn = law.loss(releases(law.many_at_once(MECHANISMS[name]), task, pair.first, SeededSource(4), 1500), pair)
    ratio = np.exp(-drawn)
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / math.sqrt(len(ratio)) + 0.01
    excess = np.maximum(0.0, -np.expm1(0.3 - drawn))
    error = 5 * excess.std() / math.sqrt(len(excess))
    proven = law.curve(0.3, 1.0)
    assert excess.mean() < proven + error
    if "adaptive" not in name and name != "wishart-noise":  # these have the exact curve on this pair
        assert excess.mean() > proven - error


@pytest.mark.parametrize(("draws", "confidence"), [(10, 0.999), (1000, 1.0)])
def test_audits_that_tell_nothing_are_refused(draws, confidence):
    with pytest.raises(MechanismError, match="must"):
        audit(MECHANISMS["gaussian-noise"], task_for("gaussian-noise"), SeededSource(0), draws=draws, confidence=confidence)
