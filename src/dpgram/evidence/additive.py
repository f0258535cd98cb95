"""Noise that was added, independent of the data: observed = M_xy, gain = eigenvalues of M_xx less the public shift, weight = 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import Law, Seen
from dpgram.linalg.shrinkage import symmetric_shrinkage
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import NoiseModel, SymmetricGaussian

Array = np.ndarray


class Additive(Law):
    """Symmetric noise, Gaussian or close to it."""

    @property
    def numbers(self) -> dict[str, Any]:
        sds = {"sd_off_diagonal": self.sd_off_diagonal, "sd_diagonal": self.noise.sd_diagonal}
        return {"name": SymmetricGaussian.shape, **sds, "shift": self.shift}

    def edge(self, dim: int) -> float:
        """Wigner's semicircle."""
        return 2 * self.sd_off_diagonal * math.sqrt(dim)

    def seen(self, values: Array, cross: Array, square: Array, dim: int) -> Seen:
        variance = self.sd_off_diagonal**2
        label = np.full((*values.shape[:-1], 1), variance)
        weight = np.ones_like(values)
        return Seen(cross, values - self.shift, weight, label, variance, np.inf, square - self.shift, 1.0, 1.0)

    def expected(self, values: Array, dim: int) -> tuple[Array, Array]:
        return symmetric_shrinkage(values - self.shift, self.sd_off_diagonal**2)

    def products(self, forms: Array, matrix: Array) -> tuple[Array, float]:
        return self.sd_off_diagonal * forms @ forms.T, self.noise.sd_diagonal**2 - 2 * self.sd_off_diagonal**2

    def again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.gaussian_noise import add_symmetric_noise  # a fit alone needs no mechanism

        return add_symmetric_noise(gram + self.shift * np.eye(len(gram)), self.sd_off_diagonal, self.noise.sd_diagonal, rng)


class AdditiveEvidence(Evidence, reads=SymmetricGaussian, by=Additive):
    """The matrix itself, in own columns."""

    def among(self, places: list[int]) -> Evidence | None:
        return part_of(self, places, self.noise)


def part_of(evidence: Evidence, places: list[int], noise: NoiseModel) -> Evidence | None:
    """The evidence of some columns, whose part of the matrix has ``noise``; None where the number of rows follows from all columns."""
    if evidence.public_rows is None and not evidence.intercept:
        return None
    rows, own = None if evidence.most_rows is None else int(evidence.most_rows), np.ix_(places, places)
    part = type(evidence)(evidence.schema, evidence.gram[own], noise, rows, evidence.row_bound)
    part.repaired_there, part.design_effect = (evidence.repaired[own], None), evidence.design_effect
    return part
