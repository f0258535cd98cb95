"""Laws of noise in one symmetric matrix, as a regression sees them: a linear channel with known noise.

Every law comes down to one form. In an orthonormal basis of p directions, with b the coefficients there,

    observed_i = gain_i b_i + error_i,

where the gain is itself seen through symmetric noise, of variance ``spread * weight_i * weight_j`` off the diagonal and twice
that on it. So, at the true b, observed - gain b has mean zero and covariance

    diag(weight_i (label + spread sum_j weight_j b_j^2)) + spread (weight b)(weight b)'        (the privacy noise)
    + diag(sigma^2 per_row_i)                                                                  (the sampling of rows)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgram.linalg.symmetric import log_det_repair
from dpgram.sampling.base import RandomSource

Array = np.ndarray

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Seen:
    """A regression as a law of noise shows it; see above. Arrays may be stacks: one regression along the last axis."""

    observed: Array  # (..., p)
    gain: Array  # (..., p)
    weight: Array  # (..., p)
    label: Array  # (..., 1)
    spread: float
    degrees: float  # of freedom of the label's noise; infinite for additive noise
    unexplained: Array  # (...) the label's own sum of squares, before b explains any of it
    row_weight: Array | float  # per_row, over the gain
    explaining: float  # the sum of squares that b_i explains is gain_i explaining b_i^2


class Law(ABC):
    """The noise in a matrix M that stands for G + ``shift`` I, by the numbers of a noise model."""

    def __init__(self, noise: Any):
        self.noise = noise
        self.shift: float = noise.shift
        self.sd_off_diagonal: float = noise.sd_off_diagonal  # along the weakest directions

    @property
    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """What the page's script knows of it, its name included."""

    def most_coefficients(self, dim: int) -> int:
        """How many coefficients a regression may have at most."""
        return dim

    @abstractmethod
    def edge(self, dim: int) -> float:
        """The eigenvalue, less the shift, up to which noise alone reaches, by the laws of large random matrices."""

    @abstractmethod
    def seen(self, values: Array, cross: Array, square: Array, dim: int) -> Seen:
        """A regression whose regressors have the eigenvalues ``values`` (..., p) in M, with the products ``cross`` of each eigenvector
        with the label, which has the square ``square`` (...)."""

    @abstractmethod
    def expected(self, values: Array, dim: int) -> tuple[Array, Array]:
        """The mean of each gain given the whole spectrum, before it is known to be positive, and the mean square of the other entries in
        its row."""

    @abstractmethod
    def products(self, forms: Array, matrix: Array) -> tuple[Array, float]:
        """For vectors a, b, ... K and e with Cov(a'Eb, c'Ed) = K_ac K_bd + K_ad K_bc + e sum_i a_i b_i c_i d_i, E the noise in ``matrix``.

        First order where noise multiplies."""

    @abstractmethod
    def again(self, gram: Array, rng: RandomSource) -> Array:
        """A matrix with noise of this law around ``gram``."""

    def repaired(self, matrix: Array, **options: Any) -> Array:
        """The matrix without its shift, made positive definite: small eigenvalues are lifted by what the noise allows."""
        return log_det_repair(matrix - self.shift * np.eye(len(matrix)), self.sd_off_diagonal, **options)


def bilinear_covariance(products: Array, excess: float, forms: Array) -> Array:
    """(m, m) covariance of l'E r over m pairs of vectors, from K and e as ``Law.products`` gives them for all l, then all r."""
    m = len(products) // 2
    ll, lr, rr = products[:m, :m], products[:m, m:], products[m:, m:]
    squares = forms[:m] * forms[m:]
    return ll * rr + lr * lr.T + excess * squares @ squares.T
