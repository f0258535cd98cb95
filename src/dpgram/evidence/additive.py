"""Noise that was added, independent of the data: observed = M_xy, gain = eigenvalues of M_xx less the public shift, weight = 1."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import Seen
from dpgram.linalg.shrinkage import symmetric_shrinkage
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import SymmetricGaussian

Array = np.ndarray


@dataclass(frozen=True)
class Additive:
    """Symmetric noise, Gaussian or close to it, of these standard deviations."""

    name = "symmetric-gaussian"

    sd_off_diagonal: float
    sd_diagonal: float
    shift: float = 0.0

    @property
    def numbers(self) -> dict[str, float]:
        return asdict(self)

    def most_coefficients(self, dim: int) -> int:
        return dim

    def edge(self, dim: int) -> float:
        """Wigner's semicircle."""
        return 2 * self.sd_off_diagonal * math.sqrt(dim)

    def seen(self, values: Array, cross: Array, square: Array, dim: int) -> Seen:
        variance, gain = self.sd_off_diagonal**2, values - self.shift
        return Seen(
            observed=cross,
            gain=gain,
            weight=np.ones_like(values),
            label=np.full((*values.shape[:-1], 1), variance),
            spread=variance,
            degrees=np.inf,
            unexplained=square - self.shift,
            row_weight=1.0,
            explaining=1.0,
        )

    def expected(self, values: Array, dim: int) -> tuple[Array, Array]:
        return symmetric_shrinkage(values - self.shift, self.sd_off_diagonal**2)

    def products(self, forms: Array, matrix: Array) -> tuple[Array, float]:
        return self.sd_off_diagonal * forms @ forms.T, self.sd_diagonal**2 - 2 * self.sd_off_diagonal**2

    def again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.gaussian_noise import add_symmetric_noise  # a fit alone needs no mechanism

        return add_symmetric_noise(gram + self.shift * np.eye(len(gram)), self.sd_off_diagonal, self.sd_diagonal, rng)


class AdditiveEvidence(Evidence, reads=SymmetricGaussian):
    """The matrix itself, in own columns."""

    @cached_property
    def law(self) -> Additive:
        return Additive(self.noise.sd_off_diagonal, self.noise.sd_diagonal, self.noise.shift)
