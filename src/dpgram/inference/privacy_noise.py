"""How much of a coefficient's uncertainty comes from the privacy noise."""

from __future__ import annotations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.regression.fit import LinearFit

Array = np.ndarray

WELL_IDENTIFIED = 5.0


def noise_sd(release: GramRelease, fit: LinearFit) -> Array:
    """Standard deviation that the privacy noise gives to each coefficient, to first order, in its own units.

    With residual direction u = label - regressors b, noise N moves b by R^-1 regressors' N u, and for symmetric Gaussian
    noise Cov(N u) = sd^2 (|u|^2 I + u u'). Sampling error is not in it; where this is as large as the coefficient, the
    first order is no longer the whole story."""
    plan = fit.design
    scaled = np.linalg.solve(plan.to_own_units, fit.coefficients - plan.offset)
    residual = plan.label - plan.regressors @ scaled
    bread = np.linalg.solve(plan.regressors.T @ fit.gram @ plan.regressors, plan.regressors.T)  # (p, d)
    reach = plan.to_own_units @ bread
    along = reach @ residual
    variance = (reach**2).sum(axis=1) * (residual @ residual) + along**2
    return release.noise.sd_off_diagonal * np.sqrt(variance)


def identification(release: GramRelease, fit: LinearFit) -> float:
    """How far the weakest direction of the features stands above the noise: its eigenvalue over the edge of the noise.

    Symmetric noise of sd t in p directions has a largest eigenvalue of about 2 t sqrt(p). Below ``WELL_IDENTIFIED`` the
    repair of the matrix pulls coefficients together and towards zero, which no standard deviation shows."""
    plan = fit.design
    axes = np.linalg.qr(plan.regressors)[0]  # the noise is round in these coordinates
    weakest = np.linalg.eigvalsh(axes.T @ release.gram @ axes)[0]
    return float(weakest / (2 * release.noise.sd_off_diagonal * np.sqrt(axes.shape[1])))
