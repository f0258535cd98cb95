"""Residual variance and R^2 with intervals that count the privacy noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv, gammaincinv

from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import quantile, weakly_identified
from dpgram.regression.channel import channel_of_shrunk
from dpgram.regression.design import Design
from dpgram.terms.schema import INTERCEPT

Array = np.ndarray


@dataclass(frozen=True)
class Goodness:
    """Residual variance and R-squared of a fit, with confidence intervals.

    Attributes
    ----------
    residual_variance : float
        Variance of the residuals, in the target's own units squared.
    residual_variance_interval : tuple of float
        Its confidence interval.
    r_squared : float or None
        Share of the target's variance that is explained. None if the variance cannot be told from the noise.
    r_squared_interval : tuple of float
        Its confidence interval, within [0, 1].
    """

    residual_variance: float
    residual_variance_interval: tuple[float, float]
    r_squared: float | None  # None where the noise leaves the target no variance of its own
    r_squared_interval: tuple[float, float]


def goodness(evidence: Evidence, plan: Design, confidence: float) -> Goodness:
    """First order in the noise, with the sampling of rows added. Of rows as they were shrunk, where they were."""
    seen = channel_of_shrunk(evidence, plan)
    rows, reach = float(seen.rows_left(evidence.rows)), quantile(confidence, seen.degrees)
    plainly = seen.observed / seen.debiased  # the sum of squares has not seen less noise where coefficients are shrunk
    scaled = np.linalg.solve(plan.to_own_units, seen.own(plainly) - plan.offset)
    u = plan.label - plan.regressors @ scaled
    left = max(float(seen.error_variance * rows * np.square(seen.label_scale)) + evidence.weighing(u), 0.0)
    about = _about_its_mean(evidence, plan)
    whole = evidence.product(about, about)
    noise = evidence.quadratic_covariance(u, u)
    around = seen.law.shift * float(u @ u)
    if np.isfinite(seen.degrees):  # a draw multiplies what is left over, the shift within it, by chi-square over its degrees
        noise = 2 * (left + around) ** 2 / seen.degrees
        low, high = _chi_square_ends(seen.degrees, confidence)
        below, above = (left + around) * (1 - 1 / high), (left + around) * (1 / low - 1)
    else:
        below = above = reach * np.sqrt(noise)
    sampling = reach * np.sqrt(2 * seen.design_effect / rows) * left
    count, count_sd = evidence.weighed_rows
    if count_sd > 0:  # the number of rows was read from the matrix too
        low, high = _chi_square_ends(max(2 * (count / count_sd) ** 2, 1.0), confidence)
        below, above = np.hypot(below, left * (1 - low)), np.hypot(above, left * (high - 1))
    unit = plan.label_unit**2 / float(seen.rows_left(count))
    variance = left * unit
    weak = weakly_identified(seen)
    may_explain_all = weak.any()  # what is not identified may explain whatever is left
    lowest = 0.0 if may_explain_all else max(left - np.hypot(below, sampling), 0.0)
    highest = left + np.hypot(above, sampling)
    if evidence.hides_squares and weak.mean() > 0.5:
        highest = np.inf  # not even the label's own sum of squares is known
    variance_ends = (float(lowest * unit), float(highest * unit))
    whole_noise = evidence.quadratic_covariance(about, about)
    if whole <= reach * np.sqrt(whole_noise):
        return Goodness(variance, variance_ends, None, (0.0, 1.0))
    ratio = min(left / whole, 1.0)
    by_noise = noise - 2 * ratio * evidence.quadratic_covariance(u, about) + ratio**2 * whole_noise
    by_rows = 4 * (1 - ratio) * ratio**2 / evidence.effective_rows
    wide = reach * np.sqrt(max(by_noise / whole**2 + by_rows, 0.0))
    r_squared = 1 - ratio
    most = 1.0 if may_explain_all else min(r_squared + wide, 1.0)
    return Goodness(variance, variance_ends, float(r_squared), (max(r_squared - wide, 0.0), most))


def _chi_square_ends(degrees: float, confidence: float) -> tuple[float, float]:
    """What chi-square over its degrees of freedom lies between."""
    tail = (1 - confidence) / 2
    return float(2 * gammaincinv(degrees / 2, tail) / degrees), float(2 * gammainccinv(degrees / 2, tail) / degrees)


def _about_its_mean(evidence: Evidence, plan: Design) -> Array:
    """The label less its mean, as a combination of columns; the label itself where the model has no intercept."""
    if plan.names[0] != INTERCEPT:
        return plan.label
    ones = plan.regressors[:, 0]
    return plan.label - ones * evidence.product(ones, plan.label) / max(evidence.product(ones, ones), 1.0)
