"""Noise that was added to the inverse of the Gram.

Noise N on the inverse moves the matrix G by about -G N G, so a regression with G is one with G^-1, which carries additive noise, on the
columns G X and the label G y: additive noise again. Where the noisy inverse's smallest eigenvalue does not stand above the noise, "about"
is not good enough, and the gains count as unknown."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dpgram.evidence.additive import Additive
from dpgram.evidence.evidence import Evidence, Spectrum, View
from dpgram.linalg.shrinkage import debiased_gain
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import NoisyInverse, SymmetricGaussian

Array = np.ndarray


class InverseEvidence(Evidence, reads=NoisyInverse):
    """The noisy inverse with its bias removed, on columns that its own inverse turns."""

    hides_squares = True

    noise: NoisyInverse

    @cached_property
    def law(self) -> Additive:
        return Additive(SymmetricGaussian(self.noise.sd_off_diagonal_of_inverse, self.noise.sd_diagonal_of_inverse))

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and vectors of the noisy inverse."""
        return np.linalg.eigh(np.linalg.inv(self.gram))

    @cached_property
    def alone(self) -> View:
        values, vectors = self._spectrum
        unbiased = debiased_gain(values, np.ones_like(values), self.law.sd_off_diagonal**2)[..., None, :]
        return View((vectors * unbiased) @ vectors.mT, self.law, (vectors / unbiased) @ vectors.mT)

    @cached_property
    def plain(self) -> View:
        return View(self.gram, Additive(self.noise))

    @cached_property
    def repaired_there(self) -> tuple[Array, Array | None]:
        return np.linalg.inv(self.law.repaired(np.linalg.inv(self.gram))), None

    @cached_property
    def hidden(self) -> bool | Array:
        """Whether the noisy inverse has an eigenvalue that noise alone could have made: half of the noise's spectral edge, or less."""
        values, _ = self._spectrum
        return values[..., 0] < self.law.sd_off_diagonal * np.sqrt(values.shape[-1])

    def count_sd(self, count: float) -> float:
        return self.noise.sd_diagonal_of_inverse * np.sum(self.gram[..., 0, :] ** 2, axis=-1)

    def seen_by_noise(self, forms: Array) -> Array:
        return forms @ self.gram

    @property
    def spectrum(self) -> Spectrum:
        values, edge = np.sort(1 / self._spectrum[0])[::-1], 1 / self.law.edge(len(self.gram))
        words = (
            "Noise was added to the inverse of the matrix, so it hides large eigenvalues. The true value of an eigenvalue above the "
            "edge, or below zero, can be anything above the edge."
        )
        return Spectrum(tuple(values.tolist()), edge, tuple(((values < 0) | (values > edge)).tolist()), words)

    def published_again(self, gram: Array, rng: RandomSource) -> Array:
        from dpgram.mechanisms.noisy_inverse import bounded_inverse  # a fit alone needs no mechanism

        return np.linalg.inv(self.law.again(bounded_inverse(gram, self.noise.floor), rng))
