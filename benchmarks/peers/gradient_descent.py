"""Private gradient descent: full batches, each example's gradient clipped, Gaussian noise on their sum.

After Varshney, Thakurta and Jain 2022 and Brown et al. 2024, with a fixed clip. Guarantee: every step is a Gaussian mechanism, T of
them mu-GDP together. Neighbours: one row replaced, so a sum of gradients of norm at most C has sensitivity 2 C. Columns are first
divided by their publicly typical size, and steps may have momentum: descent is slow where columns are nearly dependent, and these help.

Two lines of the comparison: tuned by looking at these very tables, which nobody can do who keeps a promise of privacy, and untuned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.questions import Answers, Array, Method, Questions, Regression
from benchmarks.peers.shares import gaussian_share


@dataclass(frozen=True)
class Setting:
    steps: int
    clip: float  # of a gradient, in units of the features' reach
    rate: float  # step size times the square of the reach
    momentum: float  # heavy ball: post-processing of the noisy gradients


def hindsight_setting(rows: int, mu: float) -> Setting:
    """From n mu alone, the number of rows over the noise of one sum: the better it is, the more steps pay and the less clipping does.

    Chosen in hindsight, in the method's favour, among 90 settings on the benchmark's own tables."""
    signal = rows * mu
    if signal < 300:
        return Setting(steps=30, clip=0.1, rate=2, momentum=0.8)
    if signal < 800:
        return Setting(steps=100, clip=0.05, rate=4, momentum=0.8)
    if signal < 2000:
        return Setting(steps=200, clip=0.1, rate=4, momentum=0.9)
    return Setting(steps=200, clip=0.3 if signal < 20_000 else 0.4, rate=4, momentum=0.95)


def reach(regression: Regression) -> float:
    """The features' norm where every column has its typical size; public, and only a unit: clipping alone carries the guarantee."""
    return math.sqrt(1 + len(regression.features))


def step_scale(mu: float, clip: float, steps: int) -> float:
    """Noise sd of one step's sum of gradients, each of norm at most ``clip``, when ``steps`` of them spend ``mu``."""
    return 2 * clip * math.sqrt(steps) / mu


def clipped_sum(x: Array, y: Array, lengths: Array, coefficients: Array, clip: float) -> Array:
    """Sum over examples of the gradients of half the squared error, each shrunk to norm ``clip``."""
    residual = coefficients.astype(x.dtype) @ x - y
    limit = (clip / lengths).astype(x.dtype)
    return (x @ np.clip(residual, -limit, limit)).astype(float)


def prepared(regression: Regression) -> tuple[Array, Array, Array]:
    """(x in typical sizes, y, lengths of the examples), in single precision: rounding is far below the noise."""
    if "prepared" not in regression.kept:
        x = (regression.x / regression.typical[:, None]).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->j", x, x)) * np.float32(
            1 + 1e-5
        )  # above the true ones, so that no gradient exceeds the clip
        regression.kept["prepared"] = x, regression.y.astype(np.float32), lengths
    return regression.kept["prepared"]


def fit(regression: Regression, mu: float, setting: Setting, rng: np.random.Generator) -> Array:
    """The mean of the second half of the iterates."""
    x, y, lengths = prepared(regression)
    unit = reach(regression)
    clip, rate = setting.clip * unit, setting.rate / unit**2 / regression.rows
    sd = step_scale(mu, clip, setting.steps)
    coefficients = np.zeros(regression.size)
    velocity = np.zeros(regression.size)
    late = []
    for step in range(setting.steps):
        gradient = clipped_sum(x, y, lengths, coefficients + setting.momentum * velocity, clip)
        velocity = setting.momentum * velocity - rate * (gradient + rng.normal(scale=sd, size=regression.size))
        coefficients = coefficients + velocity
        if step >= setting.steps // 2:
            late.append(coefficients)
    return np.mean(late, axis=0) / regression.typical


def answer_with(setting_for: Callable[[int, float], Setting]) -> Callable[[Questions, np.random.Generator], Answers]:
    def answer(questions: Questions, rng: np.random.Generator) -> Answers:
        mu = gaussian_share(questions.budget, questions.k)
        return [fit(regression, mu, setting_for(regression.rows, mu), rng) for regression in questions.asked]

    return answer


TUNED = Method(
    name="gradient descent, tuned",
    paper="Varshney et al. 2022, Brown et al. 2024",
    cost="one Gaussian mechanism per step, composed exactly",
    setting="30 to 200 steps with momentum; steps, clip and step size from n mu, chosen in hindsight on these very tables",
    answer=answer_with(hindsight_setting),
)
UNTUNED = Method(
    name="gradient descent, untuned",
    paper="the same",
    cost="the same",
    setting="50 steps, no gradient clipped at the start, step size 1/bound^2, no momentum: what bounds alone suggest",
    answer=answer_with(lambda rows, mu: Setting(steps=50, clip=1.0, rate=1, momentum=0)),
)
