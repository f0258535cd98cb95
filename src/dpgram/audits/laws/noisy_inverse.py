"""The law of noisy-inverse: that of gaussian-noise, around the inverse of the Gram sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpgram.audits import reference
from dpgram.audits.laws.base import Options
from dpgram.audits.laws.gaussian_noise import GaussianNoiseLaw
from dpgram.audits.neighbours import Pair
from dpgram.mechanisms.conversation import Outcome
from dpgram.mechanisms.noisy_inverse import bounded_inverse
from dpgram.terms.budget import Neighbours

Array = np.ndarray


class NoisyInverseLaw(GaussianNoiseLaw):
    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        return [{"rho": 3.0}]

    def level(self) -> float:
        return self.parameters["claimed_floor"]

    def loss(self, many: Outcome, pair: Pair) -> Array:
        first, second = (bounded_inverse(gram, self.level()) for gram in (pair.first, pair.second))
        return super().loss(_inverted(many), Pair(pair.name, first, second))

    def uniforms(self, many: Outcome, table: Array) -> Array:
        return super().uniforms(_inverted(many), np.linalg.inv(table))  # the tables of an audit keep the claim

    def delta(self) -> float:
        return reference.gaussian(self.task, self.parameters, reference.inverse_moves(self.task, self.level()))


def _inverted(many: Outcome) -> Outcome:
    return replace(many, gram=np.linalg.inv(many.gram))
