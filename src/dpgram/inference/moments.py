"""Standard errors of means, covariances and correlations: privacy noise to first order, and the sampling of normal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.regression.moments import Moments
from dpgram.terms.noise import NoisyInverse, SymmetricGaussian

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Standard errors in own units, in the shape of what they belong to."""

    mean: Array
    covariance: Array
    correlation: Array


def moment_errors(release: GramRelease, of: Moments) -> MomentErrors:
    """Standard errors of the moments of some columns, noise and sampling together."""
    places = [release.columns.index(name) for name in of.names]
    rows, unit = of.rows, np.eye(len(release.columns))
    middle = (of.mean - np.array([release.schema.encoded[j].centre for j in places])) / of.half
    about = unit[places] - middle[:, None] * unit[0]  # each column less its mean, as a combination of columns
    size = of.sd / of.half  # standard deviations in scaled units
    whole = np.maximum(rows, 1.0)
    mean = np.array([noise_variance(release, _pair(unit[0], a)) for a in about]) / whole**2 + size**2 / whole
    p = len(places)
    covariance, correlation = np.empty((p, p)), np.zeros((p, p))
    for i in range(p):
        for j in range(i, p):
            r, pair = of.correlation[i, j], _pair(about[i], about[j])
            both = (size[i] * size[j]) ** 2
            found = noise_variance(release, pair) / whole**2 + both * (1 + r**2) / whole
            covariance[i, j] = covariance[j, i] = found
            if i < j:
                a, b = about[i] / size[i], about[j] / size[j]
                moved = _pair(a, b) - r / 2 * (np.outer(a, a) + np.outer(b, b))
                correlation[i, j] = correlation[j, i] = noise_variance(release, moved) / whole**2 + (1 - r**2) ** 2 / whole
    return MomentErrors(of.half * np.sqrt(mean), np.outer(of.half, of.half) * np.sqrt(covariance), np.sqrt(correlation))


def noise_variance(release: GramRelease, form: Array) -> float:
    """Variance of tr(E form), E the privacy noise on the whole matrix and ``form`` symmetric; first order where noise multiplies."""
    noise = release.noise
    if isinstance(noise, NoisyInverse):
        form = release.gram @ form @ release.gram
        off, on = noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse
    elif isinstance(noise, SymmetricGaussian):
        off, on = noise.sd_off_diagonal, noise.sd_diagonal
    else:
        turned = form @ release.gram
        return float(2 * np.trace(turned @ turned) / noise.degrees_of_freedom)
    return float(2 * off**2 * np.sum(form**2) + (on**2 - 2 * off**2) * np.sum(np.diag(form) ** 2))


def _pair(a: Array, b: Array) -> Array:
    return (np.outer(a, b) + np.outer(b, a)) / 2
