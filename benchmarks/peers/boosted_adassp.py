"""Boosted AdaSSP: AdaSSP's matrix once, then rounds of X' times the clipped residual (Tang et al. 2023).

Guarantee: Gaussian mechanisms, together mu-GDP: a third of mu^2 for X'X, a third for the smallest eigenvalue, a third for all rounds.
Neighbours: one row replaced, so X' times residuals within +-c has sensitivity 2 B c. The residuals of a round use coefficients
that are already public, so the composition is adaptive, and still exact."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers.adassp import noisy_ridge
from benchmarks.peers.questions import Answers, Array, Method, Questions, Regression
from benchmarks.peers.shares import gaussian_share

ROUNDS = 20


def public_clip(rows: int, mu: float) -> float:
    """Of residuals, from n mu alone. With ``ROUNDS`` chosen in hindsight, in the method's favour, among 20 settings on regressions of the
    benchmark's own tables, other ones than are scored. The paper's own 100 rounds at the label's bound lose up to everything here."""
    signal = rows * mu
    return 0.1 if signal < 2000 else 0.25 if signal < 20_000 else 0.5


def scales(mu: float, x_bound: float, rounds: int, clip: float) -> tuple[float, float, float]:
    """Noise sd of X'X's diagonal, of the smallest eigenvalue, and of every round."""
    third = mu / math.sqrt(3)
    return math.sqrt(2) * x_bound**2 / third, x_bound**2 / third, 2 * x_bound * clip * math.sqrt(rounds) / third


def fit(
    regression: Regression, mu: float, delta: float, rng: np.random.Generator, rounds: int = ROUNDS, clip: float | None = None
) -> Array:
    clip = public_clip(regression.rows, mu) if clip is None else clip
    sd_gram, sd_smallest, sd_round = scales(mu, regression.x_bound, rounds, clip)
    inverse = np.linalg.inv(noisy_ridge(regression, sd_gram, sd_smallest, delta, rng))
    coefficients = np.zeros(regression.size)
    for _ in range(rounds):
        residual = np.clip(regression.y - coefficients @ regression.x, -clip, clip)
        coefficients = coefficients + inverse @ (regression.x @ residual + rng.normal(scale=sd_round, size=regression.size))
    return coefficients


def answer(questions: Questions, rng: np.random.Generator) -> Answers:
    mu = gaussian_share(questions.budget, questions.k)
    return [fit(regression, mu, questions.budget.delta, rng) for regression in questions.asked]


METHOD = Method(
    name="boosted AdaSSP",
    paper="Tang et al. 2023",
    cost="2 Gaussian mechanisms and one per round, composed exactly",
    setting=f"{ROUNDS} rounds, residuals clipped at 0.1 to 0.5 by n mu, chosen in hindsight",
    answer=answer,
)
