"""The released matrix made positive definite, once and whole: what penalised fits, components and correlations start from."""

from __future__ import annotations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.linalg.rounds import in_own_columns, most_likely, unshrunk
from dpgram.linalg.symmetric import log_det_repair
from dpgram.regression.channel import TINY, effective_rows, rows_in_rounds, unwhitened
from dpgram.regression.design import has_intercept
from dpgram.terms.noise import NoisyInverse, WhitenedGaussian

Array = np.ndarray

STRENGTH_ALONE, STRENGTH = 0.25, 0.1  # of the prior towards large determinants: after one round, after several
MOST_DROPPED = 3
WIDE = 2.0


def repaired(release: GramRelease) -> Array:
    """A positive definite estimate of the true Gram: the public shift taken off, small eigenvalues lifted by what the noise allows.

    Where the release came about in rounds, all of them that tell of the same rows count. A public number of rows then fixes the scale."""
    noise = release.noise
    if isinstance(noise, WhitenedGaussian):
        known = float(release.rows) if release.rows and has_intercept(release) else None
        return in_own_columns(_together(release, noise), noise.last.through, rows=known)
    return repaired_there(release)[0]


def repaired_there(release: GramRelease) -> tuple[Array, Array]:
    """A positive definite matrix S and T: the regression of T y on T X with S is that of y on X with the repaired matrix.

    T is the identity but where the release came about in rounds: in the coordinates of the last one no digits are lost."""
    noise = release.noise
    if isinstance(noise, WhitenedGaussian):
        return _together(release, noise), unwhitened(noise)
    same = np.eye(len(release.gram))
    if isinstance(noise, NoisyInverse):
        return np.linalg.inv(log_det_repair(np.linalg.inv(release.gram), noise.sd_off_diagonal_of_inverse)), same
    return log_det_repair(release.gram - noise.shift * same, noise.sd_off_diagonal), same


def _together(release: GramRelease, noise: WhitenedGaussian) -> Array:
    """The positive definite matrix in the last round's coordinates that the rounds make most likely.

    The oldest rounds only steered the maps: their rows were shrunk hard, and tell of other weights. So do all but the last where that
    one leaves rows (much) longer."""
    strength = STRENGTH if len(noise.rounds) > 1 else STRENGTH_ALONE
    oldest = min(len(noise.rounds) // 2, MOST_DROPPED)
    counted = noise.rounds[-1:] if _room(release, noise) > WIDE else noise.rounds[oldest:]
    rows, looks = rows_in_rounds(release), []
    for r in counted:
        gram, factor = unshrunk(r.gram, r.kept, rows)
        looks.append((r.through, gram, factor * r.sd_off_diagonal))
    return most_likely(looks, strength=strength)


def _room(release: GramRelease, noise: WhitenedGaussian) -> float:
    """How many times its mean a whitened row's square may be in the last round before it is shrunk."""
    return effective_rows(release) * noise.last.kept / max(float(np.trace(noise.last.gram)), TINY)
