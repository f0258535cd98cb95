"""A mechanism that the library does not know, with noise of a shape of its own: the mean of two noisy Grams, and half their difference.

The first of the two files that a new mechanism takes: options, calibration and conversation. The second, ``two_draws_evidence``, says how
its noise is read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpgram.mechanisms import gaussian_noise
from dpgram.mechanisms.conversation import GramQuestion, Mechanism, Outcome, ask_back, publish
from dpgram.sampling.base import known
from dpgram.terms.noise import ADDED, NoiseModel, SymmetricGaussian

NAME = "two-draws"


@dataclass(frozen=True, eq=False)
class TwoDraws(NoiseModel, shape="two-draws"):
    """The release is G + N, N symmetric Gaussian; ``apart`` has the law of N, is independent of it, and knows nothing of the rows."""

    words = "Random numbers were added to every entry of the Gram matrix, twice, and the mean was taken."
    numbers = ADDED
    shift = 0.0

    sd_off_diagonal: float
    apart: np.ndarray

    @property
    def sd_diagonal(self):
        return gaussian_noise.diagonal_sd(self.sd_off_diagonal)

    def __eq__(self, other):
        return self.sd_off_diagonal == other.sd_off_diagonal and np.array_equal(self.apart, other.apart)


def start(task, rng):
    found = gaussian_noise.calibrate(task)
    ask_back(task, NAME, found["delta_at_epsilon"])
    answer = yield GramQuestion(task.row_bound)
    off = math.sqrt(2) * found["sd_off_diagonal"]
    on = gaussian_noise.diagonal_sd(off)
    gram = known(answer.gram, rng)
    noise = SymmetricGaussian(off, on)
    one, other = (publish(gaussian_noise.add_symmetric_noise(gram, off, on, rng), noise, rng)[0] for _ in range(2))
    return Outcome((one + other) / 2, TwoDraws(found["sd_off_diagonal"], (one - other) / 2), found)


MECHANISM = Mechanism(
    name=NAME,
    summary="the mean of two Grams with Gaussian noise",
    proof="gaussian_noise.md",
    calibrate=gaussian_noise.calibrate,
    start=start,
    cost=gaussian_noise.gaussian_cost,
)
