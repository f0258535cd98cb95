"""Noise that multiplies: the release is one draw M of a random matrix around S = G + w^2 I.

- Wishart: the regression on M is unbiased for (1 - w^2 S_xx^-1) b, and M_xx^-1 (r - p - 1)/r is unbiased for S_xx^-1; both laws are
  exact, given M_xx. So observed = M_xx^-1 M_xy, gain = 1 - w^2 weight, weight = that inverse's eigenvalues.
- Inverse-Wishart: the same, where S_xx^-1 is estimated by a Wishart matrix of nu - d + p degrees of freedom."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dpgram.errors import ModelError
from dpgram.evidence.additive import part_of
from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import TINY, Law, Seen
from dpgram.linalg.shrinkage import wishart_shrinkage
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import InverseWishartSample, WishartSample

Array = np.ndarray


class DrawLaw(Law):
    """What both laws share."""

    noise: WishartSample | InverseWishartSample
    lost = 0  # degrees of freedom, in the variance of the gains

    @property
    def numbers(self) -> dict[str, Any]:
        return {"name": self.noise.shape, **asdict(self.noise)}

    @abstractmethod
    def degrees(self, p: int, dim: int) -> float:
        """Of freedom, of a regression with p coefficients."""

    @abstractmethod
    def weight(self, values: Array, degrees: float) -> Array:
        """The eigenvalues of S_xx^-1 without bias, from those of M_xx."""

    @abstractmethod
    def likely_weight(self, values: Array, degrees: float) -> Array:
        """Better estimates of them on average."""

    @abstractmethod
    def of_label(self, left: Array, degrees: float) -> tuple[Array, Array]:
        """What S leaves of the label given the regressors, and the variance of the label's noise, where M leaves ``left``."""

    def seen(self, values: Array, cross: Array, square: Array, dim: int) -> Seen:
        degrees, values = self.degrees(values.shape[-1], dim), np.maximum(values, TINY)
        conditional, label = self.of_label(np.maximum(square - np.sum(cross**2 / values, axis=-1), TINY), degrees)
        weight = self.weight(values, degrees)
        return Seen(
            observed=cross / values,
            gain=1 - self.shift * weight,
            weight=weight,
            label=np.asarray(label)[..., None],
            spread=self.shift**2 / (degrees - self.lost),
            degrees=degrees,
            unexplained=conditional - self.shift,
            row_weight=weight,
            explaining=self.shift,
        )

    def expected(self, values: Array, dim: int) -> tuple[Array, Array]:
        degrees = self.degrees(values.shape[-1], dim)
        weight = self.likely_weight(np.maximum(values, TINY), degrees)
        spread = self.shift**2 / (degrees - self.lost)
        return 1 - self.shift * weight, spread * weight * (weight.sum(axis=-1, keepdims=True) - weight)

    def products(self, forms: Array, matrix: Array) -> tuple[Array, float]:
        return forms @ matrix @ forms.T / np.sqrt(self.noise.degrees_of_freedom), 0.0


class WishartLaw(DrawLaw):
    """W / r, W Wishart of the scale matrix with r degrees of freedom."""

    lost = 3

    def most_coefficients(self, dim: int) -> int:
        return int(self.noise.degrees_of_freedom) - 4

    def edge(self, dim: int) -> float:
        """Marchenko and Pastur's."""
        return self.noise.floor * (1 + math.sqrt(dim / self.noise.degrees_of_freedom)) ** 2 - self.shift

    def degrees(self, p: int, dim: int) -> float:
        r = self.noise.degrees_of_freedom
        if r < p + 4:
            raise ModelError(
                f"the release is a sketch of {r:g} rows, but a regression with {p} coefficients needs at least {p + 4}. Use fewer "
                f"features."
            )
        return r - p

    def weight(self, values: Array, degrees: float) -> Array:
        return (degrees - 1) / (self.noise.degrees_of_freedom * values)

    def likely_weight(self, values: Array, degrees: float) -> Array:
        return 1 / wishart_shrinkage(values, self.noise.degrees_of_freedom)

    def of_label(self, left: Array, degrees: float) -> tuple[Array, Array]:
        conditional = left * self.noise.degrees_of_freedom / degrees
        return conditional, conditional / (degrees - 1)

    def again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.gaussian_sketch import draw_sketch  # a fit alone needs no mechanism

        return draw_sketch(gram, self.shift, self.noise.degrees_of_freedom, rng)


class InverseWishartLaw(DrawLaw):
    """``multiple`` times a draw of the inverse-Wishart law of the scale matrix."""

    noise: InverseWishartSample

    def edge(self, dim: int) -> float:
        gap = math.sqrt(self.noise.degrees_of_freedom) - math.sqrt(dim)
        return self.noise.floor * self.noise.multiple / gap**2 - self.shift if gap > 0 else math.inf

    def degrees(self, p: int, dim: int) -> float:
        """Those of the block of the regressors."""
        return self.noise.degrees_of_freedom - dim + p

    def weight(self, values: Array, degrees: float) -> Array:
        return self.noise.multiple / (degrees * values)

    def likely_weight(self, values: Array, degrees: float) -> Array:
        return wishart_shrinkage(self.weight(values, degrees), degrees)

    def of_label(self, left: Array, degrees: float) -> tuple[Array, Array]:
        """In the draw itself the label given the regressors is that of S over about ``degrees``."""
        label = left / self.noise.multiple
        return label * max(degrees - 1, 1.0), label

    def again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.inverse_wishart import draw_posterior  # a fit alone needs no mechanism

        return self.noise.multiple * draw_posterior(gram, self.shift, self.noise.degrees_of_freedom, rng)


class WishartEvidence(Evidence, reads=WishartSample, by=WishartLaw):
    """The draw itself, in own columns."""

    noise: WishartSample | InverseWishartSample

    def among(self, places: list[int]) -> Evidence | None:
        """Some columns of a Wishart draw are one with as many degrees of freedom."""
        return part_of(self, places, self.noise)

    def count_sd(self, count: float) -> float:
        return (np.maximum(count, 0.0) + self.noise.shift) * np.sqrt(2 / self.noise.degrees_of_freedom)


class InverseWishartEvidence(WishartEvidence, reads=InverseWishartSample, by=InverseWishartLaw):
    """The draw itself, in own columns, by its own law."""

    def among(self, places: list[int]) -> Evidence | None:
        """Each column that is left out takes a degree of freedom with it."""
        left = self.noise.degrees_of_freedom - (len(self.gram) - len(places))
        return part_of(self, places, replace(self.noise, degrees_of_freedom=left))
