"""How much of a coefficient's uncertainty comes from the privacy noise."""

from __future__ import annotations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.regression.fit import LinearFit
from dpgram.terms.noise import InverseWishartSample, NoisyInverse, SymmetricGaussian, WishartSample

Array = np.ndarray

WELL_IDENTIFIED = 5.0


def noise_sd(release: GramRelease, fit: LinearFit) -> Array:
    """Standard deviation that the privacy noise gives to each coefficient, to first order, in its own units.

    Sampling error is not in it; where this is as large as the coefficient, the first order is no longer the whole story."""
    plan, noise = fit.design, release.noise
    scaled = np.linalg.solve(plan.to_own_units, fit.coefficients - plan.offset)
    residual = plan.label - plan.regressors @ scaled  # the combination of columns that is left over
    inverse = np.linalg.inv(plan.regressors.T @ fit.gram @ plan.regressors)
    reach = plan.to_own_units @ inverse @ plan.regressors.T  # noise N moves the coefficients by reach N residual
    match noise:
        case SymmetricGaussian():
            return _additive_sd(reach, residual, noise.sd_off_diagonal, noise.sd_diagonal)
        case NoisyInverse():
            g = fit.gram  # noise M on the inverse is about -g M g on the matrix
            return _additive_sd(reach @ g, g @ residual, noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse)
        case WishartSample() | InverseWishartSample():
            spent = len(scaled) + 1 if isinstance(noise, WishartSample) else len(release.columns) - len(scaled) + 1
            degrees = max(noise.degrees_of_freedom - spent, 1.0)
            left_over = max(float(residual @ release.gram @ residual), 0.0)
            return np.sqrt(np.diag(plan.to_own_units @ inverse @ plan.to_own_units.T) * left_over / degrees)


def _additive_sd(reach: Array, u: Array, off: float, on: float) -> Array:
    """Sd of reach N u for symmetric N: Cov(N u) = off^2 (|u|^2 I + u u') + (on^2 - 2 off^2) diag(u^2)."""
    variance = off**2 * ((reach**2).sum(axis=1) * (u @ u) + (reach @ u) ** 2) + (on**2 - 2 * off**2) * (reach**2 @ u**2)
    return np.sqrt(np.maximum(variance, 0.0))


def identification(release: GramRelease, fit: LinearFit) -> float:
    """How far the weakest direction of the features stands above the noise: its eigenvalue over the edge of the noise.

    Symmetric noise of sd t in p directions has a largest eigenvalue of about 2 t sqrt(p). Below ``WELL_IDENTIFIED`` the
    repair of the matrix pulls coefficients together and towards zero, which no standard deviation shows."""
    plan = fit.design
    axes = np.linalg.qr(plan.regressors)[0]  # the noise is round in these coordinates
    weakest = np.linalg.eigvalsh(axes.T @ release.gram @ axes)[0] - release.noise.shift
    return float(weakest / (2 * release.noise.sd_off_diagonal * np.sqrt(axes.shape[1])))
