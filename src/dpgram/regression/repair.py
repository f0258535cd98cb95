"""The released matrix made positive definite, once and whole: what penalised fits, components and correlations start from."""

from __future__ import annotations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.linalg.rounds import in_own_columns
from dpgram.linalg.symmetric import log_det_repair
from dpgram.regression.channel import rows_summed
from dpgram.regression.design import has_intercept
from dpgram.regression.rounds import pooled_look, unmapped
from dpgram.terms.noise import NoisyInverse, WhitenedGaussian

Array = np.ndarray

STRENGTH_ALONE, STRENGTH = 0.25, 0.1  # of the prior towards large determinants: after one round, after several


def repaired(release: GramRelease) -> Array:
    """A positive definite estimate of the true Gram: the public shift taken off, small eigenvalues lifted by what the noise allows.

    Where the release came about in rounds, all of them that tell of the same rows count. Where rows were shrunk, their public number then
    fixes the scale."""
    noise = release.noise
    if isinstance(noise, WhitenedGaussian):
        matrix, through = _white(release, noise)
        in_doubt = noise.last.kept < 1.0
        known = float(release.rows) if release.rows and in_doubt and has_intercept(release) else None
        return in_own_columns(matrix, through, rows=known)
    return repaired_there(release)[0]


def repaired_there(release: GramRelease) -> tuple[Array, Array]:
    """A positive definite matrix S and T: the regression of T y on T X with S is that of y on X with the repaired matrix.

    T is the identity but where the release came about in rounds: in whitened coordinates no digits are lost."""
    noise = release.noise
    if isinstance(noise, WhitenedGaussian):
        matrix, through = _white(release, noise)
        return matrix, unmapped(through)
    same = np.eye(len(release.gram))
    if isinstance(noise, NoisyInverse):
        return np.linalg.inv(log_det_repair(np.linalg.inv(release.gram), noise.sd_off_diagonal_of_inverse)), same
    return log_det_repair(release.gram - noise.shift * same, noise.sd_off_diagonal), same


def _white(release: GramRelease, noise: WhitenedGaussian) -> tuple[Array, Array]:
    """The repaired matrix of all rounds in whitened coordinates, and the map to them."""
    through, gram, sd = pooled_look(noise, rows_summed(release))
    return log_det_repair(gram, sd, strength=STRENGTH if len(noise.rounds) > 1 else STRENGTH_ALONE), through
