"""The law of wishart-noise: what was added to the Gram sum is a Wishart draw of a multiple of the identity."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc, ndtr

from dpgram.accounting.additive_wishart import additive_delta
from dpgram.audits import reference
from dpgram.audits.laws.base import MechanismLaw, Options, published
from dpgram.audits.neighbours import Pair
from dpgram.mechanisms.conversation import EXACT_CURVE, Outcome
from dpgram.terms.budget import Neighbours

Array = np.ndarray


class WishartNoiseLaw(MechanismLaw):
    varying = ("shift_removed",)

    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        """Few degrees of freedom are where the noise may be too small to hide a row."""
        return [{}, {"degrees_of_freedom": dim + 10.0}] if calibration == EXACT_CURVE else [{}]

    def _noisy(self, many: Outcome) -> Array:
        return many.gram + published(many, "shift_removed")[:, None, None] * np.eye(self.task.dim)

    def loss(self, many: Outcome, pair: Pair) -> Array:
        one, other = (_log_det(self._noisy(many) - gram) for gram in (pair.first, pair.second))
        both = np.isfinite(one) & np.isfinite(other)  # otherwise one of the tables cannot have led here
        power = (self.parameters["degrees_of_freedom"] - self.task.dim - 1) / 2
        step = float(np.trace(pair.first - pair.second)) / (2 * self.parameters["scale"])
        inside = power * (np.where(both, one, 0.0) - np.where(both, other, 0.0)) + step
        return np.where(both, inside, np.where(np.isfinite(one), np.inf, -np.inf))

    def uniforms(self, many: Outcome, table: Array) -> Array:
        wishart = (self._noisy(many) - table) / self.parameters["scale"]
        return bartlett_uniforms(wishart, np.full(len(wishart), self.parameters["degrees_of_freedom"]))

    def curve(self, epsilon: float, strength: float) -> float:
        k, b = int(self.parameters["degrees_of_freedom"]), self.task.row_bound**2 / self.parameters["scale"]
        return additive_delta(float(epsilon), k, self.task.dim, strength * b, self.task.neighbours)

    def delta(self) -> float:
        return reference.additive_wishart(self.task, self.parameters["degrees_of_freedom"], self.parameters["scale"])


def _log_det(matrices: Array) -> Array:
    """ln det of each matrix, -infinity where it is not positive definite."""
    values = np.linalg.eigvalsh(matrices)
    with np.errstate(all="ignore"):
        return np.where(values[:, 0] > 0, np.log(np.maximum(values, 0.0)).sum(axis=1), -np.inf)


def bartlett_uniforms(wishart: Array, degrees: Array) -> Array:
    """Wishart matrices of identity scale, by Bartlett's factor, which is normal below the diagonal and has roots of chi-squares on it.

    Zeros where a matrix is not positive definite. Of fewer degrees than columns only as many columns are looked at: they are a Wishart
    matrix of full rank."""
    dim = min(wishart.shape[-1], max(1, int(np.min(degrees))))
    wishart = wishart[:, :dim, :dim]
    good = np.linalg.eigvalsh(np.where(np.isfinite(wishart), wishart, 0.0))[:, 0] > 0
    factor = np.linalg.cholesky(np.where(good[:, None, None], wishart, np.eye(dim)))
    below = np.tril_indices(dim, -1)
    on = np.diagonal(factor, axis1=-2, axis2=-1) ** 2
    chi = gammainc((degrees[:, None] - np.arange(dim)) / 2, on / 2)
    return np.where(good[:, None], np.hstack([ndtr(factor[:, *below]), chi]), 0.0)
