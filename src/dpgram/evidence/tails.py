"""What rows beyond the clip hold, as far as the outer matrices of the last round show it, and how far that moves a regression.

A row that is long after the map counts in the first matrix for part of its square. The rest is in the outer matrix of its scale R_k,
whose entries are seen through the same noise, so R_k times as much of it in units of the first. With U the first matrix, shrinking
undone, of mean square u, and M_k an outer one, of mean square c_k, the whole sum is about

    U + sum_k R_k (M_k - c_k U / u),

where a bracket is zero if long rows say the same as the others. For a regression with orthonormal regressors Q and a residual v only
Q'(M_k - c_k U / u) v matters: p numbers with noise of variance t^2 |v|^2. Their prior variance is taken to be rho^2 c_k D_k |v|^2, D_k the
mean square of outer rows along v. rho, how far long rows agree on a direction, is averaged over its posterior. Of what was seen the share

    f_k = E[rho^2 c_k D_k / (rho^2 c_k D_k + t^2)]

is believed, and the estimate is that of (1 - sum_k R_k f_k c_k / u) U + sum_k R_k f_k M_k, whose noise is additive and known. What is not
believed leaves the variance R_k^2 |v|^2 (1 - f_k)^2 c_k D_k E[rho^2] in what was observed. Estimates expect a small rho, intervals any.

Sizes c_k come from traces, and are taken to fall from scale to scale: rows fewer than a few times t cannot be seen by anybody."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpgram.evidence.additive import Additive
from dpgram.linalg.shrinkage import positive_moments
from dpgram.terms.noise import Round, SymmetricGaussian

Array = np.ndarray

DECLINE = 0.1  # of the mean square from one scale to the next, in units of the scales, that is expected before anything is seen
AGREEMENT = np.geomspace(0.005, 1.0, 12)  # values of rho
CAREFUL = 1 / AGREEMENT  # prior weights of them: for estimates; those for intervals are all one
SMALLEST = 1e-9  # of the noise: what a size is at least


@dataclass(frozen=True, eq=False)
class Tails:
    """The outer matrices of the last round, beside what the first says of all rows."""

    outer: Array  # (K, d, d), each in units of its scale
    scales: Array  # (K,) squared lengths, in units of the first clip
    sd: float  # of the noise off the diagonal, in each of them
    sizes: Array  # (K,) mean squares of what they hold, without noise
    mean: float  # of the squares of the first matrix, shrinking undone
    inner_sd: float  # of its noise

    @classmethod
    def of(cls, last: Round, matrix: Array, sd: float) -> Tails | None:
        """Of a last round whose first matrix, shrinking undone, is ``matrix`` with noise of ``sd``; None where it has no outer ones."""
        if not last.outer or np.trace(matrix) <= 0:  # nothing there, or nothing but noise
            return None
        mean = float(np.trace(matrix)) / len(matrix)
        outer = np.stack(last.outer)
        return cls(outer, np.array(last.scales[1:]), last.sd_off_diagonal, _sizes(last, outer), mean, sd)

    @property
    def shares(self) -> Array:
        """(K,) about what part of all squares rows hold beyond the clip, by scale."""
        return self.scales * self.sizes / self.mean

    @property
    def rows(self) -> float:
        """About how many rows are beyond the clip: one counts for a tenth or so in the next matrix, for a quarter further out."""
        return len(self.outer[0]) * float(self.sizes @ np.where(self.scales == self.scales[0], 9.0, 3.5))

    def joined(self, inner: Array, outer: Array, believed: Array) -> tuple[Array, Additive]:
        """The first matrix, or a block of it, with the outer ones by the shares ``believed``; and the law of the noise in that."""
        weights = self.scales * believed
        own = max(1 - float(weights @ self.sizes) / self.mean, 0.0)
        sd = math.hypot(own * self.inner_sd, *(weights * self.sd))
        return own * inner + np.tensordot(weights, outer, 1), Additive(SymmetricGaussian.orthogonal(sd))

    def judged(self, inner: Array, outer: Array, residual: Array, believed: Array | None) -> tuple[Array, float]:
        """The share to believe of each outer matrix, and the variance that the rest leaves open in what a regression observes.

        ``inner`` and ``outer`` are the matrices in an orthonormal basis of the regressors and what is left of the label, the latter last.
        ``residual`` is the label less the fit there. Shares that were ``believed`` before are gone away from by half."""
        size = float(residual @ residual)
        apart = (outer - self.sizes[:, None, None] * inner / self.mean) @ residual
        seen = np.sum(apart[:, :-1] ** 2, axis=1) / size
        along = np.einsum("i,kij,j->k", residual, outer, residual) / size
        own = np.clip(self.sizes, along - math.sqrt(2) * self.sd, along + math.sqrt(2) * self.sd)
        prior = AGREEMENT**2 * (self.sizes * np.maximum(own, 0.0))[:, None]
        total = prior + self.sd**2
        likely = -0.5 * (apart[:, :-1].shape[1] * np.log(total) + seen[:, None] / total)
        chance = np.exp(likely - likely.max(axis=1, keepdims=True))
        shares = _mean(prior / total, chance * CAREFUL)
        if believed is not None:
            shares = (shares + believed) / 2
        left = (self.scales * (1 - shares)) ** 2 * _mean(prior, chance)
        return shares, size * float(np.sum(left))


def _mean(values: Array, weights: Array) -> Array:
    return np.sum(values * weights, axis=1) / np.sum(weights, axis=1)


def _sizes(last: Round, outer: Array) -> Array:
    """The mean square of each outer matrix given its trace: positive, and expected to be a tenth of that of the scale before it."""
    dim, sd = len(last.gram), last.sd_off_diagonal
    before = max(float(np.trace(last.gram)) / dim, SMALLEST * sd)
    spread = math.sqrt(2 / dim) * sd
    sizes = []
    for matrix in outer:
        mean = float(np.trace(matrix)) / dim - spread**2 / (DECLINE * before)
        before = max(float(positive_moments(np.array([mean]), np.array([spread]))[0][0]), SMALLEST * sd)
        sizes.append(before)
    return np.array(sizes)
