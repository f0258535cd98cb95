"""What a mechanism did to the true Gram matrix: mechanisms write it, estimators read it and never ask for a name."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SymmetricGaussian:
    """The release is the Gram plus symmetric Gaussian noise, independent of the data.

    Entries above the diagonal are N(0, sd_off_diagonal^2), those on it N(0, 2 sd_off_diagonal^2): the Gaussian
    orthogonal ensemble. Both scales are named, because a bare "sigma" once cost a peer its guarantee."""

    sd_off_diagonal: float

    @property
    def sd_diagonal(self) -> float:
        return math.sqrt(2) * self.sd_off_diagonal


NoiseModel = SymmetricGaussian
"""Every noise model there is; a mechanism with another shape of noise adds its own."""
