"""Noise that multiplies: the release is one draw M of a random matrix around S = G + w^2 I.

- Wishart: the regression on M is unbiased for (1 - w^2 S_xx^-1) b, and M_xx^-1 (r - p - 1)/r is unbiased for S_xx^-1; both laws are
  exact, given M_xx. So observed = M_xx^-1 M_xy, gain = 1 - w^2 weight, weight = that inverse's eigenvalues.
- Inverse-Wishart: the same, where S_xx^-1 is estimated by a Wishart matrix of nu - d + p degrees of freedom."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import TINY, Law, Seen
from dpgram.linalg.shrinkage import wishart_shrinkage
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import InverseWishartSample, WishartSample

Array = np.ndarray


@dataclass(frozen=True)
class _Draw:
    """What both laws share."""

    noise: WishartSample | InverseWishartSample

    @property
    def name(self) -> str:
        return self.noise.shape

    @property
    def numbers(self) -> dict[str, float]:
        return asdict(self.noise)

    @property
    def shift(self) -> float:
        return self.noise.shift

    @property
    def sd_off_diagonal(self) -> float:
        return self.noise.sd_off_diagonal

    def products(self, forms: Array, matrix: Array) -> tuple[Array, float]:
        return forms @ matrix @ forms.T / np.sqrt(self.noise.degrees_of_freedom), 0.0

    def _seen(
        self, values: Array, cross: Array, weight: Array, spread: float, degrees: float, left: tuple[Array, Array]
    ) -> Seen:
        """``weight`` estimates the eigenvalues of the inverse scale matrix; ``left`` are estimates of what the scale matrix leaves of the
        label, and of the variance of the label's noise."""
        return Seen(
            observed=cross / values,
            gain=1 - self.shift * weight,
            weight=weight,
            label=np.asarray(left[1])[..., None],
            spread=spread,
            degrees=degrees,
            unexplained=left[0] - self.shift,
            row_weight=weight,
            explaining=self.shift,
        )

    def _expected(self, shrunk: Array, spread: float) -> tuple[Array, Array]:
        """From better estimates, on average, of the eigenvalues of the inverse scale matrix."""
        return 1 - self.shift * shrunk, spread * shrunk * (shrunk.sum(axis=-1, keepdims=True) - shrunk)


def _left(values: Array, cross: Array, square: Array) -> Array:
    """What the draw leaves of the label given the regressors."""
    return np.maximum(square - np.sum(cross**2 / values, axis=-1), TINY)


class WishartLaw(_Draw):
    """W / r, W Wishart of the scale matrix with r degrees of freedom."""

    def most_coefficients(self, dim: int) -> int:
        return int(self.noise.degrees_of_freedom) - 4

    def edge(self, dim: int) -> float:
        """Marchenko and Pastur's."""
        return self.noise.floor * (1 + math.sqrt(dim / self.noise.degrees_of_freedom)) ** 2 - self.shift

    def seen(self, values: Array, cross: Array, square: Array, dim: int) -> Seen:
        p, r = values.shape[-1], self.noise.degrees_of_freedom
        if r < p + 4:
            raise ModelError(
                f"the release is a sketch of {r:g} rows, and a regression with {p} coefficients needs {p + 4} or more: use fewer "
                f"features."
            )
        values = np.maximum(values, TINY)
        left = _left(values, cross, square) * (r / (r - p))
        return self._seen(values, cross, (r - p - 1) / (r * values), self._spread(p), r - p, (left, left / (r - p - 1)))

    def expected(self, values: Array, dim: int) -> tuple[Array, Array]:
        shrunk = 1 / wishart_shrinkage(np.maximum(values, TINY), self.noise.degrees_of_freedom)
        return self._expected(shrunk, self._spread(values.shape[-1]))

    def _spread(self, p: int) -> float:
        return self.shift**2 / (self.noise.degrees_of_freedom - p - 3)

    def again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.gaussian_sketch import draw_sketch  # a fit alone needs no mechanism

        return draw_sketch(gram, self.shift, self.noise.degrees_of_freedom, rng)


@dataclass(frozen=True)
class InverseWishartLaw(_Draw):
    """``multiple`` times a draw of the inverse-Wishart law of the scale matrix."""

    noise: InverseWishartSample

    def most_coefficients(self, dim: int) -> int:
        return dim

    def edge(self, dim: int) -> float:
        gap = math.sqrt(self.noise.degrees_of_freedom) - math.sqrt(dim)
        return self.noise.floor * self.noise.multiple / gap**2 - self.shift if gap > 0 else math.inf

    def seen(self, values: Array, cross: Array, square: Array, dim: int) -> Seen:
        degrees = self._degrees(values, dim)
        values = np.maximum(values, TINY)
        # The label given the regressors, in the draw itself, which is S given them over about `degrees`.
        left = _left(values, cross, square) / self.noise.multiple
        weight = self.noise.multiple / (degrees * values)
        return self._seen(values, cross, weight, self.shift**2 / degrees, degrees, (left * max(degrees - 1, 1.0), left))

    def expected(self, values: Array, dim: int) -> tuple[Array, Array]:
        degrees = self._degrees(values, dim)
        weight = self.noise.multiple / (degrees * np.maximum(values, TINY))
        return self._expected(wishart_shrinkage(weight, degrees), self.shift**2 / degrees)

    def _degrees(self, values: Array, dim: int) -> float:
        """Of freedom of the block of the regressors."""
        return self.noise.degrees_of_freedom - dim + values.shape[-1]

    def again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.inverse_wishart import draw_posterior  # a fit alone needs no mechanism

        return self.noise.multiple * draw_posterior(gram, self.shift, self.noise.degrees_of_freedom, rng)


class DrawEvidence(Evidence):
    """The draw itself, in own columns."""

    def count_sd(self, count: float) -> float:
        return (np.maximum(count, 0.0) + self.noise.shift) * np.sqrt(2 / self.noise.degrees_of_freedom)


class WishartEvidence(DrawEvidence, reads=WishartSample):
    noise: WishartSample

    @cached_property
    def law(self) -> Law:
        return WishartLaw(self.noise)


class InverseWishartEvidence(DrawEvidence, reads=InverseWishartSample):
    noise: InverseWishartSample

    @cached_property
    def law(self) -> Law:
        return InverseWishartLaw(self.noise)
