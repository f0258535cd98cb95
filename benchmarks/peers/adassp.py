"""AdaSSP: noisy X'X and X'y, and a ridge that adapts to a noisy smallest eigenvalue (Wang 2018, Algorithm 2).

Guarantee: three Gaussian mechanisms with equal mu, together mu-GDP. Neighbours: one row replaced; the paper's sensitivities are those
of a row added, so here they are the replaced row's: sqrt(2) B^2 for X'X in the Frobenius norm, 2 B for X'y, B^2 for the smallest
eigenvalue. X'X gets noise whose off-diagonal sd is 1/sqrt(2) of the diagonal's, which spends the same and is never worse than
the paper's noise of one sd. Two quantiles of the noise are the paper's, with its failure probability 0.05."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.questions import LABEL_BOUND, Answers, Array, Method, Questions, Regression
from benchmarks.peers.shares import gaussian_share

FAILURE = 0.05


@dataclass(frozen=True)
class Scales:
    """Standard deviations of the noise; ``gram`` is that of X'X's diagonal."""

    gram: float
    moments: float
    smallest: float


def scales(mu: float, x_bound: float) -> Scales:
    """Of three mechanisms that spend ``mu`` together, equal parts of its square."""
    each = mu / math.sqrt(3)
    return Scales(math.sqrt(2) * x_bound**2 / each, 2 * x_bound * LABEL_BOUND / each, x_bound**2 / each)


def symmetric_noise(size: int, sd: float, rng: np.random.Generator) -> Array:
    """A symmetric Gaussian matrix: ``sd`` on the diagonal, sd/sqrt(2) off it; isotropic in the Frobenius norm."""
    upper = np.triu(rng.normal(scale=sd / math.sqrt(2), size=(size, size)), 1)
    return upper + upper.T + np.diag(rng.normal(scale=sd, size=size))


def noisy_ridge(regression: Regression, sd_gram: float, sd_smallest: float, delta: float, rng: np.random.Generator) -> Array:
    """X'X with noise, plus the adaptive ridge: enough to outweigh the noise, less what the smallest eigenvalue offers."""
    size = regression.size
    offered = (
        np.linalg.eigvalsh(regression.gram)[0] + rng.normal(scale=sd_smallest) - math.sqrt(math.log(6 / delta)) * sd_smallest
    )
    wanted = math.sqrt(size * math.log(2 * size**2 / FAILURE)) * sd_gram
    ridge = max(0.0, wanted - max(offered, 0.0))
    return regression.gram + symmetric_noise(size, sd_gram, rng) + ridge * np.eye(size)


def fit(regression: Regression, mu: float, delta: float, rng: np.random.Generator) -> Array:
    sd = scales(mu, regression.x_bound)
    lhs = noisy_ridge(regression, sd.gram, sd.smallest, delta, rng)
    return np.linalg.solve(lhs, regression.moments + rng.normal(scale=sd.moments, size=regression.size))


def answer(questions: Questions, rng: np.random.Generator) -> Answers:
    mu = gaussian_share(questions.budget, questions.k)
    return [fit(regression, mu, questions.budget.delta, rng) for regression in questions.asked]


METHOD = Method(
    name="AdaSSP",
    paper="Wang 2018",
    cost="3 Gaussian mechanisms per regression, composed exactly",
    setting="the paper's equal thirds and its ridge rule (failure probability 0.05)",
    answer=answer,
)
