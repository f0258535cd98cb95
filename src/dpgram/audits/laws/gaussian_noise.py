"""The law of gaussian-noise: independent normal entries around the Gram sum."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from dpgram.accounting.gaussian import gaussian_delta
from dpgram.audits import reference
from dpgram.audits.laws.base import Law
from dpgram.audits.neighbours import Pair
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import Outcome, Task

Array = np.ndarray


class GaussianNoiseLaw(Law):
    """Also that of the inverse, with other matrices and another change by one row."""

    @classmethod
    def prepared(cls, task: Task) -> Task:
        repair = task.options.get("repair", "none")
        if repair != "none":
            raise MechanismError(
                f"repair is {repair!r}, and an audit looks at the noise before any repair: leave it out. A repair is made of what could "
                "be published without it, so it changes nothing about privacy."
            )
        return task

    def loss(self, many: Outcome, pair: Pair) -> Array:
        return gaussian_loss(many.gram, pair.first, pair.second, self.found["sd_off_diagonal"], self.found["sd_diagonal"])

    def uniforms(self, many: Outcome, table: Array) -> Array:
        return normal_uniforms(many.gram - table, self.found["sd_off_diagonal"], self.found["sd_diagonal"])

    def curve(self, epsilon: float, strength: float) -> float:
        return gaussian_delta(epsilon, strength * self.found["mu"])

    def delta(self) -> float:
        return reference.gaussian(self.task, self.found, self.task.row_bound**2)


def gaussian_loss(released: Array, first: Array, second: Array, off: float, on: float) -> Array:
    """The loss of symmetric matrices with independent normal noise around ``first`` or ``second``, which may be another for each."""
    dim = first.shape[-1]
    precision = np.full((dim, dim), 0.5 / off**2)  # each entry off the diagonal stands there twice
    np.fill_diagonal(precision, 1 / on**2)
    weights = precision * (first - second)
    return np.einsum("nij,ij->n" if weights.ndim == 2 else "nij,nij->n", released - (first + second) / 2, weights)


def normal_uniforms(noise: Array, off: float, on: float) -> Array:
    """Normal noise of sd ``off`` off the diagonal and ``on`` on it, as uniform numbers."""
    rows, columns = np.triu_indices(noise.shape[-1])
    return ndtr(noise[:, rows, columns] / np.where(rows == columns, on, off))
