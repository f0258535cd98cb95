"""The law of inverse-wishart: the inverse of a draw is a Wishart draw, so the curve is that of the sketch."""

from __future__ import annotations

import numpy as np

from dpgram.audits.laws.base import Options, published
from dpgram.audits.laws.gaussian_sketch import GaussianSketchLaw, inverses, roots, symmetric
from dpgram.audits.laws.wishart_noise import bartlett_uniforms
from dpgram.audits.neighbours import Pair
from dpgram.mechanisms.conversation import Outcome
from dpgram.terms.budget import Neighbours

Array = np.ndarray


class InverseWishartLaw(GaussianSketchLaw):
    degrees, ridge = "degrees_of_freedom", "psi"

    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        return [{"degrees_of_freedom": dim + 18.0}]

    def loss(self, many: Outcome, pair: Pair) -> Array:
        nu, psi = published(many, self.degrees), published(many, self.ridge)
        (_, log_a), (_, log_b) = (inverses(gram, psi) for gram in (pair.first, pair.second))
        return -np.einsum("ij,nij->n", pair.first - pair.second, self._wishart(many, nu)) / 2 + nu / 2 * (log_a - log_b)

    def uniforms(self, many: Outcome, table: Array) -> Array:
        nu, root = published(many, self.degrees), roots(table, published(many, self.ridge))
        return bartlett_uniforms(symmetric(root.mT @ self._wishart(many, nu) @ root), nu)

    def _wishart(self, many: Outcome, nu: Array) -> Array:
        """The inverses of the draws; published are multiples of them, whose mean is the scale matrix where they have one."""
        multiple = np.where(nu > self.task.dim + 1, nu - self.task.dim - 1, nu)
        return np.linalg.inv(many.gram / multiple[:, None, None])
