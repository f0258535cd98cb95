"""The law of gaussian-sketch: a Wishart draw around the Gram sum plus a ridge."""

from __future__ import annotations

import numpy as np

from dpgram.accounting.wishart import sampling_delta
from dpgram.audits import reference
from dpgram.audits.laws.base import MechanismLaw, published
from dpgram.audits.laws.wishart_noise import bartlett_uniforms
from dpgram.audits.neighbours import Pair
from dpgram.mechanisms.conversation import Outcome

Array = np.ndarray


class GaussianSketchLaw(MechanismLaw):
    """Also that of the posterior draw, whose ``degrees`` and ``ridge`` have other names."""

    degrees, ridge = "sketch_rows", "w_squared"

    def loss(self, many: Outcome, pair: Pair) -> Array:
        ridge, r = published(many, self.ridge), published(many, self.degrees)
        (a, log_a), (b, log_b) = (inverses(gram, ridge) for gram in (pair.first, pair.second))
        return -np.einsum("nij,nij->n", a - b, many.gram * r[:, None, None]) / 2 - r / 2 * (log_a - log_b)

    def uniforms(self, many: Outcome, table: Array) -> Array:
        r, root = published(many, self.degrees), roots(table, published(many, self.ridge))
        half = np.linalg.solve(root, many.gram * r[:, None, None])
        return bartlett_uniforms(symmetric(np.linalg.solve(root, half.mT)), r)

    def curve(self, epsilon: float, strength: float) -> float:
        r, floor = self.parameters[self.degrees], self.parameters["floor"]
        return sampling_delta(float(epsilon), r, floor / strength, self.task.neighbours, self.task.dim)

    def delta(self) -> float:
        return reference.wishart_draw(
            self.task, self.parameters[self.degrees], self.parameters[self.ridge], self.task.budget.epsilon
        )


def inverses(gram: Array, ridge: Array) -> tuple[Array, Array]:
    """Inverse and ln det of gram + ridge I, for every ridge."""
    values, vectors = np.linalg.eigh(gram)
    least = np.maximum(ridge[:, None], 1e-12)  # a wrong release may have left out a ridge that it needs
    lifted = np.maximum(values, 0.0) + least
    return np.einsum("ik,nk,jk->nij", vectors, 1 / lifted, vectors), np.log(lifted).sum(axis=1)


def roots(gram: Array, ridge: Array) -> Array:
    """R with R R' = gram + ridge I, for each ridge; any root will do. A singular one, which no right release has, is kept regular."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values + ridge[:, None], 1e-12))[:, None, :]


def symmetric(matrices: Array) -> Array:
    return (matrices + matrices.mT) / 2
