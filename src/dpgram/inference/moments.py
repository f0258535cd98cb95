"""Standard errors of means, covariances and correlations: privacy noise to first order, and the sampling of normal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.regression.channel import additive_form
from dpgram.regression.moments import Moments
from dpgram.terms.noise import NoisyInverse, SymmetricGaussian, WhitenedGaussian

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
    r, sizes = of.correlation, np.outer(size, size)
    products, excess, forms = _noise_law(release, np.vstack([unit[:1], about / size[:, None]]))
    lengths, fourth = np.diag(products), excess * forms**2 @ (forms**2).T
    both = np.outer(lengths, lengths) + products**2 + fourth  # variance of a'Eb, for each pair of a and b
    mean = both[0, 1:] / whole**2 + 1 / whole
    covariance = both[1:, 1:] / whole**2 + (1 + r**2) / whole
    # To first order a correlation r moves by a'Eb - r/2 (a'Ea + b'Eb).
    ends = 2 * lengths[:, None] * products + excess * forms**3 @ forms.T  # covariance of a'Eb with a'Ea
    apart = 2 * products**2 + fourth  # ... of a'Ea with b'Eb
    own = np.diag(both)
    moved = both[1:, 1:] - r * (ends + ends.T)[1:, 1:] + r**2 / 4 * (own[:, None] + own + 2 * apart)[1:, 1:]
    correlation = np.maximum(moved, 0.0) / whole**2 + (1 - r**2) ** 2 / whole
    np.fill_diagonal(correlation, 0.0)
    return MomentErrors(
        of.half * size * np.sqrt(mean), np.outer(of.half, of.half) * sizes * np.sqrt(covariance), np.sqrt(correlation)
    )


def _noise_law(release: GramRelease, forms: Array) -> tuple[Array, float, Array]:
    """For vectors a, b, ... the products K and the rest e with Cov(a'Eb, c'Ed) = K_ac K_bd + K_ad K_bc + e sum_i a_i b_i c_i d_i.

    Vectors come back as they are seen by the noise. First order where noise multiplies."""
    noise = release.noise
    if isinstance(noise, NoisyInverse):
        forms = forms @ release.gram
        off, on = noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse
    elif isinstance(noise, SymmetricGaussian):
        off, on = noise.sd_off_diagonal, noise.sd_diagonal
    elif isinstance(noise, WhitenedGaussian):
        _, last, turn = additive_form(release)  # alone: what earlier rounds add to the moments makes them better than this says
        forms, off, on = forms @ turn.T, last.sd_off_diagonal, last.sd_diagonal
    else:
        return forms @ release.gram @ forms.T / np.sqrt(noise.degrees_of_freedom), 0.0, forms
    return off * forms @ forms.T, on**2 - 2 * off**2, forms


def noise_variance(release: GramRelease, form: Array) -> float:
    """Variance of tr(E form), E the privacy noise on the whole matrix and ``form`` symmetric; first order where noise multiplies."""
    noise = release.noise
    if isinstance(noise, NoisyInverse):
        form = release.gram @ form @ release.gram
        off, on = noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse
    elif isinstance(noise, SymmetricGaussian):
        off, on = noise.sd_off_diagonal, noise.sd_diagonal
    elif isinstance(noise, WhitenedGaussian):
        _, last, turn = additive_form(release)
        form, off, on = turn @ form @ turn.T, last.sd_off_diagonal, last.sd_diagonal
    else:
        turned = form @ release.gram
        return float(2 * np.trace(turned @ turned) / noise.degrees_of_freedom)
    return float(2 * off**2 * np.sum(form**2) + (on**2 - 2 * off**2) * np.sum(np.diag(form) ** 2))
