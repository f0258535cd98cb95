"""Every kind of number that mechanisms draw has its distribution, in exact and in float arithmetic.

Kolmogorov's statistic of ``DRAWS`` numbers lies below ``LIMIT`` but for a chance of ``FALSE_ALARM`` a case. A scale that is doubled on one
side, a tail that is cut elsewhere, or one degree of freedom more lies above it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpgram.sampling import variates
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.reals import Real, RealMatrix
from dpgram.sampling.seeded import SeededSource

DRAWS = 3000
FALSE_ALARM = 1e-9
LIMIT = math.sqrt(math.log(2 / FALSE_ALARM) / 2 / DRAWS)  # Dvoretzky, Kiefer and Wolfowitz, with Massart's constant


def cut(law, upper: float):
    """``law`` given that it is at most ``upper``."""
    return lambda x: np.minimum(law.cdf(x) / law.cdf(upper), 1.0)


LAWS = {
    "laplace": (lambda rng: variates.laplace(3.0, rng), stats.laplace(scale=3).cdf),
    "truncated laplace": (lambda rng: variates.truncated_laplace(3.0, 2.0, rng), cut(stats.laplace(scale=3), 2.0)),
    "truncated laplace, below 0": (lambda rng: variates.truncated_laplace(3.0, -2.0, rng), cut(stats.laplace(scale=3), -2.0)),
    "truncated laplace, just above 0": (
        lambda rng: variates.truncated_laplace(3.0, 0.5, rng),
        cut(stats.laplace(scale=3), 0.5),
    ),
    "truncated laplace, just below 0": (
        lambda rng: variates.truncated_laplace(3.0, -0.5, rng),
        cut(stats.laplace(scale=3), -0.5),
    ),
    "truncated normal": (lambda rng: variates.truncated_normal(2.0, 1.0, rng), cut(stats.norm(scale=2), 1.0)),
    "chi with 0.7 degrees": (lambda rng: variates.chi_diagonal(1, 0.7, rng), stats.chi(0.7).cdf),
    "chi with 2 degrees": (lambda rng: variates.chi_diagonal(1, 2.0, rng), stats.chi(2).cdf),
    "chi with 3 degrees": (lambda rng: variates.chi_diagonal(1, 3.0, rng), stats.chi(3).cdf),
    "chi with 5 degrees": (lambda rng: variates.chi_diagonal(1, 5.0, rng), stats.chi(5).cdf),
}


def drawn(draw, rng) -> np.ndarray:
    """Numbers drawn one at a time, as releases draw them; of a ball of 200 bits its middle."""
    return np.array([_middle(draw(rng)) for _ in range(DRAWS)])


def _middle(drawn) -> float:
    if isinstance(drawn, RealMatrix):
        return float(drawn.at(200)[0, 0].mid())
    return float(drawn.at(200).mid() if isinstance(drawn, Real) else np.squeeze(drawn))


def distance(numbers: np.ndarray, cdf) -> float:
    """The largest difference between the distribution of ``numbers`` and ``cdf``."""
    return stats.kstest(numbers, cdf).statistic


@pytest.mark.parametrize("source", [ExactSource, SeededSource])
@pytest.mark.parametrize("name", LAWS)
def test_numbers_have_their_distribution(name, source):
    draw, cdf = LAWS[name]
    assert distance(drawn(draw, source(1)), cdf) < LIMIT


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("laplace", lambda x: np.where(x < 0, 2 * x, x)),
        ("truncated laplace", lambda x: np.where(x < 0, 2 * x, x)),
        ("truncated laplace", lambda x: 1.3 * x),
        ("truncated normal", lambda x: 1.2 * x),
        ("chi with 5 degrees", lambda x: 0.93 * x),
    ],
)
def test_another_scale_is_seen(name, wrong):
    draw, cdf = LAWS[name]
    assert distance(wrong(drawn(draw, SeededSource(2))), cdf) > LIMIT
