"""The released matrix made positive definite, once and whole: what penalised fits, components and correlations start from."""

from __future__ import annotations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.linalg.symmetric import log_det_repair
from dpgram.terms.noise import NoisyInverse

Array = np.ndarray


def repaired(release: GramRelease) -> Array:
    """A positive definite estimate of the true Gram: the public shift taken off, small eigenvalues lifted by what the noise allows."""
    noise = release.noise
    if isinstance(noise, NoisyInverse):
        return np.linalg.inv(log_det_repair(np.linalg.inv(release.gram), noise.sd_off_diagonal_of_inverse))
    return log_det_repair(release.gram - noise.shift * np.eye(len(release.gram)), noise.sd_off_diagonal)
