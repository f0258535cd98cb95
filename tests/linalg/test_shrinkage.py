"""Eigenvalues seen through noise: closed forms where there are any, simulation where there are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from dpgram.linalg.shrinkage import debiased_gain, positive_moments, symmetric_shrinkage, wishart_shrinkage


@pytest.mark.parametrize("at", [-25.0, -8.0, -3.0, -1.0, 0.0, 0.5, 3.0, 8.0, 40.0])
@pytest.mark.parametrize("sd", [1e-12, 0.3, 1.0, 1e12])
def test_positive_moments_are_those_of_the_truncated_normal(at, sd):
    law = stats.truncnorm(-at, np.inf)  # of (x - mean) / sd
    first, second = positive_moments(np.array([at * sd]), np.array([sd]))
    mean = law.mean()
    assert first[0] == pytest.approx(sd * (at + mean), rel=1e-6 if at > -10 else 1e-3)
    assert second[0] == pytest.approx(sd**2 * (at**2 + 2 * at * mean + law.moment(2)), rel=1e-5 if at > -10 else 0.05)


@pytest.mark.parametrize("at", [-29.0, -31.0, -100.0, -1e8])
def test_positive_moments_far_below_zero_are_those_of_an_exponential(at):
    """There mean -> 1/|at| and mean square -> 2/at^2; relative corrections are of order 2/at^2 and 4/at^2 below."""
    first, second = positive_moments(np.array([at]), np.array([1.0]))
    assert first[0] == pytest.approx(-1 / at, rel=3 / at**2)
    assert second[0] == pytest.approx(2 / at**2, rel=8 / at**2)


def test_positive_moments_without_noise():
    first, second = positive_moments(np.array([2.0, -2.0]), np.zeros(2))
    assert first.tolist() == [2.0, 0.0]
    assert second.tolist() == [4.0, 0.0]


@given(mean=st.floats(-1e6, 1e6), sd=st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_positive_moments_make_sense(mean, sd):
    first, second = positive_moments(np.array([mean]), np.array([sd]))
    assert 0 < first[0] < np.inf
    assert second[0] >= first[0] ** 2 * (1 - 1e-9)
    assert first[0] >= mean


GAINS = st.integers(1, 6).flatmap(lambda p: arrays(float, p, elements=st.floats(-1e3, 1e3)))
SPREAD = st.floats(1e-6, 1e4)


@given(gain=GAINS, spread=SPREAD, seed=st.integers(0, 9))
@settings(deadline=None)
def test_the_debiased_gain_solves_its_equation(gain, spread, seed):
    weight = np.random.default_rng(seed).uniform(0.1, 3.0, len(gain))
    x = debiased_gain(gain, weight, spread)
    assert (x > 0).all()
    assert x == pytest.approx(
        gain + spread * weight * (np.sum(weight / x) + weight / x), rel=1e-6, abs=1e-6 * np.abs(gain).max() + 1e-9
    )


@given(gain=GAINS, spread=SPREAD, more=st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_the_debiased_gain_grows_with_the_gain(gain, spread, more):
    """All together: what moves one gain alone up moves the others down."""
    weight = np.ones(len(gain))
    low, high = debiased_gain(gain, weight, spread), debiased_gain(gain + more, weight, spread)
    assert (high >= low * (1 - 1e-9)).all()
    order = np.argsort(gain, kind="stable")
    assert (np.diff(low[order]) >= -1e-9 * low.max()).all()


@given(gain=GAINS, spread=SPREAD)
@settings(deadline=None)
def test_the_debiased_gain_of_a_stack_is_that_of_each(gain, spread):
    weight = np.linspace(0.5, 2.0, len(gain))
    stack = debiased_gain(np.stack([gain, 2 * gain, -gain]), np.stack([weight] * 3), spread)
    for row, one in zip(stack, (gain, 2 * gain, -gain), strict=True):
        assert row == pytest.approx(debiased_gain(one, weight, spread), rel=1e-7)


@pytest.mark.parametrize("spread", [1e-24, 1e-12, 1.0, 1e12, 1e24])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_the_debiased_gain_at_any_scale(spread, size):
    gain = size * np.array([2.0, 1.0, -1.0, 0.0])
    x = debiased_gain(gain, np.ones(4), spread)
    assert np.isfinite(x).all()
    assert (x > 0).all()


def goe(rng, draws, p, sd):
    noise = rng.normal(scale=sd / np.sqrt(2), size=(draws, p, p))
    return noise + noise.transpose(0, 2, 1)


def test_the_debiased_inverse_is_right_on_average():
    """Mean of the debiased inverse over 4000 draws against the inverse; the plain inverse, 6 % too large, lies outside.

    Bounds are 5 standard errors of each of nine entries: a false alarm in 200 000 runs."""
    rng, true = np.random.default_rng(0), np.diag([30.0, 40.0, 60.0])
    values, vectors = np.linalg.eigh(true + goe(rng, 4000, 3, 4.0))
    plain = np.einsum("kij,kj,klj->kil", vectors, 1 / values, vectors)
    better = np.einsum("kij,kj,klj->kil", vectors, 1 / debiased_gain(values, np.ones_like(values), 16.0), vectors)
    reach = 5 * better.std(axis=0) / np.sqrt(4000)
    assert (np.abs(better.mean(axis=0) - np.linalg.inv(true)) < reach).all()
    assert (np.abs(plain.mean(axis=0) - np.linalg.inv(true)) > reach).any()


def test_symmetric_shrinkage_comes_closer_to_the_truth():
    """Means along each eigenvector: closer than the eigenvalues themselves in most of 200 draws, and exact without noise."""
    rng = np.random.default_rng(1)
    true = np.diag(np.linspace(0, 30, 12))
    values, vectors = np.linalg.eigh(true + goe(rng, 200, 12, 3.0))
    wanted = np.einsum("kji,jl,kli->ki", vectors, true, vectors)
    found = np.array([symmetric_shrinkage(row, 9.0)[0] for row in values])
    ours, plain = ((found - wanted) ** 2).sum(axis=1), ((values - wanted) ** 2).sum(axis=1)
    assert np.mean(ours < plain) > 0.95
    same, spread = symmetric_shrinkage(np.array([3.0, 3.0, 7.0]), 0.0)
    assert same.tolist() == [3.0, 3.0, 7.0]
    assert spread.tolist() == [0.0, 0.0, 0.0]


def test_wishart_shrinkage_comes_closer_to_the_truth():
    rng, p, degrees = np.random.default_rng(2), 12, 40
    true = np.diag(np.linspace(1, 10, p))
    closer = 0
    for _ in range(100):
        z = rng.normal(size=(degrees, p)) * np.sqrt(np.diag(true))
        values, vectors = np.linalg.eigh(z.T @ z / degrees)
        wanted = np.einsum("ji,jl,li->i", vectors, true, vectors)
        closer += np.sum((wishart_shrinkage(values, degrees) - wanted) ** 2) < np.sum((values - wanted) ** 2)
    assert closer > 85
    assert wishart_shrinkage(np.array([2.0, 5.0]), 1e15) == pytest.approx([2.0, 5.0])
    assert wishart_shrinkage(np.array([2.0]), 50.0) == pytest.approx([2.0 / (1 - 1 / 50) ** 2])


def test_of_many_spectra_each_is_shrunk_as_the_formulas_say():
    """Sums over all other eigenvalues, the resolvent smoothed over half a width: written out entry by entry."""
    rng = np.random.default_rng(5)
    spectra, variance, degrees = np.sort(rng.exponential(3.0, (4, 6)), axis=-1), 0.3, 25.0
    means, spreads = symmetric_shrinkage(spectra, variance)
    scaled = wishart_shrinkage(spectra, degrees)
    p = spectra.shape[1]
    for place, values in enumerate(spectra):
        for i, own in enumerate(values):
            others = np.delete(values, i)
            width = np.sqrt(variance) * p**0.25 / 2
            resolvent = np.sum(1 / (own - others - 1j * width))
            spread = variance * p - variance**2 * abs(resolvent) ** 2 - variance
            assert means[place, i] == pytest.approx(own - 2 * variance * resolvent.real, rel=1e-12)
            assert spreads[place, i] == pytest.approx(max(spread, 0.0), rel=1e-9, abs=1e-12)
            smooth = 1j * own * degrees**-0.5 * p**0.25 / 2
            factor = abs(1 - p / degrees - own * np.sum(1 / (others - own - smooth)) / degrees) ** 2
            assert scaled[place, i] == pytest.approx(own / factor, rel=1e-12)
