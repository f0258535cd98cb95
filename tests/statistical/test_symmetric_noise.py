"""The noise of gaussian-noise: scale on and off the diagonal, independence, and power to see small mistakes."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.sampling.secure import SecureSource
from tests.statistical.arithmetics import both, given, matrices

FALSE_ALARM = 1e-9  # per case, when the code is right; the suite's README adds these up
SD, DIM, DRAWS = 3.0, 20, 2_000


def draws(sd, source):
    nothing = given(np.zeros((DIM, DIM)), source)
    return matrices(lambda rng: add_symmetric_noise(nothing, sd, np.sqrt(2) * sd, rng), DRAWS, source)


def within(statistic, dof):
    return chi2.ppf(FALSE_ALARM / 2, dof) < statistic < chi2.isf(FALSE_ALARM / 2, dof)


@both
@pytest.mark.parametrize(("scale", "accepted"), [(1.00, True), (0.98, False), (1.02, False)])
def test_noise_has_the_promised_scale(rng, scale, accepted):
    """Accepts the promised scale and sees a 2 % error: it lies 12 sd outside off the diagonal, at 380 000 degrees of
    freedom. The diagonal alone, at 40 000 degrees, must agree when the scale is right."""
    noise = draws(scale * SD, rng)
    off = noise[:, *np.triu_indices(DIM, 1)]
    on = np.diagonal(noise, axis1=1, axis2=2)
    assert within(np.sum(off**2) / SD**2, off.size) == accepted
    if accepted:
        assert within(np.sum(on**2) / (2 * SD**2), on.size)
        assert not within(np.sum(on**2) / SD**2, on.size)  # sees a diagonal that lacks the factor sqrt(2)


def test_the_secure_source_gives_the_same_noise():
    noise = draws(SD, SecureSource())
    assert np.array_equal(noise, noise.transpose(0, 2, 1))
    off = noise[:, *np.triu_indices(DIM, 1)]
    on = np.diagonal(noise, axis1=1, axis2=2)
    assert within(np.sum(off**2) / SD**2 + np.sum(on**2) / (2 * SD**2), off.size + on.size)
    # Neighbouring entries, and the two halves of the draws, are uncorrelated.
    n = off[:, 1:].size
    assert abs(np.sum(off[:, 1:] * off[:, :-1])) / SD**2 / np.sqrt(n) < norm.isf(FALSE_ALARM / 4)
    half = DRAWS // 2
    assert abs(np.sum(off[:half] * off[half:])) / SD**2 / np.sqrt(off[:half].size) < norm.isf(FALSE_ALARM / 4)
