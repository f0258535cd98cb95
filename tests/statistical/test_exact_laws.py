"""A short version, in every run, of what `make test-slow` does with exact draws in test_wishart_laws.py and test_symmetric_noise.py."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.mechanisms.gaussian_sketch import draw_sketch
from dpgram.mechanisms.inverse_wishart import draw_posterior
from dpgram.sampling.variates import laplace, truncated_laplace, truncated_normal
from tests.statistical.arithmetics import FINE, chi_squares, given, matrices, numbers

FALSE_ALARM = 1e-9


def test_normal_numbers(exact):
    """Kolmogorov-Smirnov at 90 000 draws sees a scale that is 7 % off."""
    draws = exact.publish(exact.normal(1.0, (424, 424)), FINE)[np.triu_indices(424)]
    assert kstest(draws, "norm").pvalue > FALSE_ALARM
    assert kstest(1.07 * draws, "norm").pvalue < FALSE_ALARM


@pytest.mark.parametrize("degrees", [0.3, 3.7, 1e4])
def test_chi_square_numbers(degrees, exact):
    """Kolmogorov-Smirnov at 10 000 draws, on the scale on which the law is widest, sees degrees that are a quarter off."""
    draws = chi_squares(degrees, 10_000, exact)
    assert kstest(draws, chi2(degrees).cdf).pvalue > FALSE_ALARM
    assert kstest(draws, chi2(1.25 * degrees).cdf).pvalue < FALSE_ALARM


def test_truncated_laplace_numbers(exact):
    draws = numbers(lambda source: truncated_laplace(1.0, 0.5, source), 10_000, exact)
    top = 1 - np.exp(-0.5) / 2

    def cdf(z):
        return np.minimum(np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2) / top, 1.0)

    assert draws.max() <= 0.5
    assert kstest(draws, cdf).pvalue > FALSE_ALARM
    assert kstest(1.25 * draws, cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("upper", [0.1, 1.0])
def test_truncated_normal_numbers(upper, exact):
    """The first stage of adaptive mechanisms subtracts ``upper``: a number above it would put the value above the true eigenvalue."""
    draws = numbers(lambda source: truncated_normal(1.0, upper, source), 10_000, exact)

    def cdf(z):
        return np.minimum(norm.cdf(z) / norm.cdf(upper), 1.0)

    assert draws.max() <= upper
    assert kstest(draws, cdf).pvalue > FALSE_ALARM
    assert kstest(1.25 * draws, cdf).pvalue < FALSE_ALARM


def test_laplace_numbers(exact):
    draws = numbers(lambda source: laplace(1.0, source), 10_000, exact)
    assert kstest(draws, "laplace").pvalue > FALSE_ALARM
    assert kstest(1.25 * draws, "laplace").pvalue < FALSE_ALARM


@pytest.mark.parametrize("law", ["symmetric", "sketch", "posterior"])
def test_a_form_that_has_a_known_law(law, exact):
    """x'Mx, over 3000 draws of each mechanism's matrix; a scale that is a third off is seen."""
    s, x = np.diag([3.0, 2.0, 4.0]) + 0.5, np.array([1.0, -2.0, 0.5])
    gram = given(s, exact)
    if law == "symmetric":
        noise = matrices(lambda source: add_symmetric_noise(gram, 1.0, np.sqrt(2), source), 3000, exact) - s
        forms, degrees = np.einsum("i,nij,j->n", x, noise, x) ** 2 / (2 * (x @ x) ** 2), 1
    elif law == "sketch":
        draws = matrices(lambda source: draw_sketch(gram, 0.25, 7.5, source), 3000, exact)
        forms, degrees = 7.5 * np.einsum("i,nij,j->n", x, draws, x) / (x @ (s + 0.25 * np.eye(3)) @ x), 7.5
    else:
        draws = matrices(lambda source: draw_posterior(gram, 0.0, 7.5, source), 3000, exact)
        forms, degrees = (x @ s @ x) / np.einsum("i,nij,j->n", x, draws, x), 5.5
    assert kstest(forms, chi2(degrees).cdf).pvalue > FALSE_ALARM
    off = 1.33**2 if law == "symmetric" else 1.33  # there the form is squared
    assert kstest(forms * off, chi2(degrees).cdf).pvalue < FALSE_ALARM
