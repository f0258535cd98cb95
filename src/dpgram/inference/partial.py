"""Partial correlations with standard errors and intervals: privacy noise, the sampling of rows, and the clipping of long rows.

With b_ij the coefficient of column j in the regression of column i on all the others, and s_i the standard deviation of what that
regression leaves, the partial correlation of i and j is b_ij s_j / s_i, and b_ji s_i / s_j too. To first order it moves by the mean of
both: db_ij s_j / s_i and db_ji s_i / s_j. So its standard error is at most the mean of theirs, which the regressions know for every kind
of noise. How much less it is follows from the law of the noise: with u_i the residual of column i in standard units and E the noise on
sums of products, these are u_i'E u_j + r u_i'E u_i and u_i'E u_j + r u_j'E u_j.

Both regressions leave too little where long rows were clipped. If the sum of squares of column i lacks a part l_i more than that of column
j, and the two have nothing to do with each other there, the partial correlation is too large by about r l_i / 2: counted with the clipping.

Normal rows give it the sampling variance (1 - r^2)^2 / n. Intervals are made for Fisher's z = artanh r, so that they stay within
[-1, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import check_confidence, quantile, uncertainty, weakly_identified
from dpgram.regression.channel import channel
from dpgram.regression.design import assemble, check_unit, encoded_parts, feature_places

Array = np.ndarray

LARGEST = 1 - 1e-12  # Fisher's z is finite below it


@dataclass(frozen=True, eq=False)
class Partials:
    """Partial correlations of some columns, each pair given all the others, and what is known of them: (p, p), symmetric."""

    names: tuple[str, ...]
    estimate: Array  # 1 on the diagonal
    sampling: Array  # parts of the standard error
    privacy: Array
    clipping: Array
    lower: Array
    upper: Array
    p_value: Array
    identified: Array  # where not, the interval is [-1, 1]

    @property
    def se(self) -> Array:
        return np.sqrt(self.sampling**2 + self.privacy**2 + self.clipping**2)


def partial_correlations(evidence: Evidence, columns: Sequence[str] | None, confidence: float) -> Partials:
    """The partial correlations of ``columns``, declared or encoded ones; of all where left out."""
    confidence = check_confidence(confidence)
    if not evidence.intercept:
        raise ModelError("partial correlations need the intercept column, but the release was made without one.")
    schema, places = evidence.schema, feature_places(evidence.schema, columns, [], "columns")
    if len(places) < 2:
        raise ModelError("a partial correlation needs at least two columns. Name another one.")
    parts = encoded_parts(schema, places)
    for part in parts:
        check_unit(part.name, part.half)
    p = len(parts)
    slopes, noise, clip, known = (np.zeros((p, p)) for _ in range(4))
    left, unsure, residuals = np.zeros(p), np.zeros(p), np.zeros((p, len(schema.encoded)))
    for i, part in enumerate(parts):
        plan = assemble(schema, part, parts[:i] + parts[i + 1 :], True)
        seen = channel(evidence, plan)
        if not (seen.debiased > 0).all():  # only where there is no noise to speak of
            raise ModelError("these columns are exactly dependent in the release. Leave one of them out.")
        others, parted, own = np.arange(p) != i, uncertainty(seen), seen.own(seen.estimate)
        slopes[i, others] = own[1:]
        residuals[i] = (plan.label - plan.regressors @ np.linalg.solve(plan.to_own_units, own - plan.offset)) * part.half
        noise[i, others] = np.sqrt(np.diag(parted.noise))[1:]
        clip[i, others] = np.sqrt(np.diag(parted.clipping))[1:]
        known[i, others] = ~weakly_identified(seen)[1:]
        left[i] = np.sqrt(seen.error_variance) * seen.label_scale * part.half
        unsure[i] = seen.squares_left_open
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = left[None, :] / left[:, None]
        estimate, privacy, clipping = (_mean(ratio * values) for values in (slopes, noise, clip))
        privacy = privacy * _less(evidence, residuals / left[:, None], estimate)
        clipping = np.sqrt(clipping**2 + (estimate / 2) ** 2 * (unsure[:, None] ** 2 + unsure**2))
    identified = (known * known.T > 0) & np.isfinite(estimate) & np.isfinite(privacy) & np.isfinite(clipping)
    estimate = np.where(np.isfinite(estimate), np.clip(estimate, -1.0, 1.0), 0.0)
    clipped = ~(clip + clip.T + unsure[:, None] + unsure == 0)
    privacy = np.where(np.isfinite(privacy), privacy, 1.0)  # nothing is known: as far as it goes
    clipping = np.where(np.isfinite(clipping), clipping, 1.0 * clipped)
    identified &= np.abs(estimate) < LARGEST
    sampling = (1 - estimate**2) * np.sqrt(seen.design_effect / seen.rows_left(evidence.rows))
    inner = np.where(identified, estimate, 0.0)
    spread = np.sqrt(sampling**2 + privacy**2 + clipping**2) / (1 - inner**2)
    z, reach = np.arctanh(inner), quantile(confidence, seen.degrees) * spread
    tail = ndtr if np.isinf(seen.degrees) else lambda far: stdtr(seen.degrees, far)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = 2 * tail(-np.abs(z / spread))
    values = {
        "sampling": sampling,
        "privacy": privacy,
        "clipping": clipping,
        "lower": np.where(identified, np.tanh(z - reach), -1.0),
        "upper": np.where(identified, np.tanh(z + reach), 1.0),
        "p_value": np.where(identified, p_value, 1.0),
    }
    for name, on_diagonal in {"sampling": 0, "privacy": 0, "clipping": 0, "lower": 1, "upper": 1, "p_value": 0}.items():
        np.fill_diagonal(values[name], on_diagonal)
    np.fill_diagonal(estimate, 1.0)
    np.fill_diagonal(identified, True)
    return Partials(tuple(part.name for part in parts), estimate, identified=identified, **values)


def _mean(values: Array) -> Array:
    """Of what both regressions of a pair say."""
    return (values + values.T) / 2


def _less(evidence: Evidence, residuals: Array, r: Array) -> Array:
    """What the noise's standard error of each partial correlation is of the mean of those of both regressions."""
    known = np.isfinite(residuals).all(axis=1)
    products, excess, forms = evidence.noise_law(np.where(known[:, None], residuals, 0.0))
    own, squares = np.diag(products), forms**2
    mixed = np.outer(own, own) + products**2 + excess * squares @ squares.T  # variance of u_i'E u_j
    ends = 2 * own[:, None] * products + excess * forms**3 @ forms.T  # its covariance with u_i'E u_i
    whole, apart = np.diag(mixed), 2 * products**2 + excess * squares @ squares.T
    first = np.sqrt(np.maximum(mixed + 2 * r * ends + r**2 * whole[:, None], 0.0))
    both = mixed + r * (ends + ends.T) + r**2 / 4 * (whole[:, None] + whole + 2 * apart)
    return np.where(np.outer(known, known), np.sqrt(np.maximum(both, 0.0)) / _mean(first), 1.0)
