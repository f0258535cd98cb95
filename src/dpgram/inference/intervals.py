"""Intervals that count the privacy noise, around the debiased estimate.

- ``wald``: first-order, with the exact covariance of the noise at the estimate; Student's t where the noise has few degrees of freedom.
- ``fieller``: the values that a test does not reject, profiled over all other coefficients (Anderson and Rubin 1949). Right
  however weakly a coefficient is identified; may be the whole line, which then is the answer: not identified at this budget.
- ``auto``: Wald, and Fieller for those coefficients whose uncertainty comes from directions that do not stand (well) above the noise.

Assumed: errors with one variance, and no bias from shrinking many rows; docs/regression.md says what happens otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from dpgram.errors import ModelError
from dpgram.inference.crossing import crossings
from dpgram.inference.pivot import profile, surely_above
from dpgram.regression.channel import Channel

Array = np.ndarray

FAR = 1e4  # standard errors; a set that reaches so far is unbounded
STEPS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0, 1000.0, FAR])
GRID = np.concatenate([[0.0], STEPS])
TOO_CLOSE = 1e-6  # a statistic so close to its limit, relatively, is called by the search
WEAK = 1.96  # a gain below so many sds of its noise may be zero
DOUBTFUL = 4.0  # below so many, first order is not good enough where better can be had
HALVINGS = 12
QUARTERS = np.array([0.25, 0.5, 0.75])


Test = Callable[[Array, Array], Array]
"""Whether coefficients, by their places, may lie so many standard errors from their estimates."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of the debiased coefficients in own units, split into its sources; or of each of a stack."""

    back: Array  # (..., p, p) from what was observed to coefficients
    along: Array  # (..., p) the rank-one part of the privacy noise is this times its transpose
    by_noise: Array  # (..., p) the other part's variance in each direction
    by_rows: Array  # (..., p) what the sampling of rows adds there
    by_clipping: float  # what rows beyond the clip leave open there

    @property
    def noise(self) -> Array:
        """(..., p, p) from the privacy noise."""
        return (self.back * self.by_noise[..., None, :]) @ self.back.mT + self.along[..., :, None] * self.along[..., None, :]

    @property
    def sampling(self) -> Array:
        """(..., p, p) from the sampling of rows."""
        return (self.back * self.by_rows[..., None, :]) @ self.back.mT

    @property
    def clipping(self) -> Array:
        """(..., p, p) from rows that were shrunk, as far as the release does not show what they hold."""
        return self.by_clipping * (self.back @ self.back.mT)

    @property
    def covariance(self) -> Array:
        return self.noise + self.sampling + self.clipping

    @cached_property
    def se(self) -> Array:
        return np.sqrt((self.back**2 @ (self.by_noise + self.by_rows + self.by_clipping)[..., None])[..., 0] + self.along**2)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Lower and upper ends in own units; infinite on both sides where a coefficient is not identified."""

    lower: Array
    upper: Array
    method: tuple[str, ...]  # how each was made

    @property
    def identified(self) -> Array:
        return np.isfinite(self.lower) & np.isfinite(self.upper)


def uncertainty(seen: Channel) -> Uncertainty:
    """Covariance of the debiased estimate, or of each of a stack."""
    back = seen.to_own / seen.debiased[..., None, :]
    along = np.sqrt(seen.spread) * (back @ (seen.weight * seen.estimate)[..., None])[..., 0]
    return Uncertainty(back, along, noise_variances(seen), seen.by_rows, seen.by_clipping)


def noise_variances(seen: Channel) -> Array:
    """The privacy noise's variance in each direction, without the rank-one part.

    It grows with the squares of the coefficients that the table itself has, before noise. Those of the estimate are too large by the
    variance that noise gives them, which is taken off, but for a quarter: where noise is all there is, its size is what is known
    least. What the sampling of rows adds to them stays, because the noise saw those rows."""
    b, weight = seen.estimate, seen.weight
    size = np.sum(weight * b**2, axis=-1, keepdims=True)
    diagonal = weight * (seen.label + seen.spread * size)
    for _ in range(3):
        own = diagonal / seen.debiased**2 + seen.spread * (weight * b / seen.debiased) ** 2
        excess = np.sum(weight * own, axis=-1, keepdims=True)
        diagonal = weight * (seen.label + seen.spread * np.maximum(size - excess, size / 4))
    return diagonal


def quantile(confidence: float, degrees: float) -> float:
    """How many standard errors an interval reaches to each side."""
    tail = (1 - confidence) / 2
    return float(-ndtri(tail) if np.isinf(degrees) else -stdtrit(degrees, tail))


def wald(seen: Channel, confidence: float) -> Intervals:
    check_confidence(confidence)
    estimate = seen.own(seen.estimate)
    reach = quantile(confidence, seen.degrees) * uncertainty(seen).se
    return Intervals(estimate - reach, estimate + reach, ("wald",) * len(reach))


def fieller(seen: Channel, confidence: float, places: Array | None = None) -> Intervals:
    """Intervals of the coefficients at ``places`` by test inversion; the others get NaN."""
    check_confidence(confidence)
    p = len(seen.gain)
    chosen = np.arange(p) if places is None else places
    estimate, known = seen.own(seen.estimate), uncertainty(seen)
    origin = estimate - seen.base
    limit = quantile(confidence, seen.degrees) ** 2
    sampling = seen.by_table

    def accepted(which: Array, steps: Array) -> Array:
        values = estimate[which] + known.se[which] * steps - seen.base[which]
        return profile(seen, seen.to_own[which, None, :], values[:, None], sampling, enough=limit) <= limit

    lower, upper = np.full(p, np.nan), np.full(p, np.nan)
    both, reach = np.tile(chosen, 2), np.repeat([-FAR, FAR], len(chosen))
    within = ~surely_above(seen, seen.to_own[both], origin[both] + known.se[both] * reach, sampling, limit)
    if within.any():
        within[within] = accepted(both[within], reach[within])
    far = within.reshape(2, -1).any(axis=0)
    lower[chosen[far]], upper[chosen[far]] = -np.inf, np.inf
    left = chosen[~far]
    if len(left):
        which, sign = np.tile(left, 2), np.repeat([-1.0, 1.0], len(left))
        unit = sign * known.se[which]
        at, growth = crossings(seen, seen.to_own[which], origin[which], unit, sampling, limit)
        steps = _first_rejected(accepted, which, sign, at, growth / (TOO_CLOSE * (1 + limit)))
        if (unsure := np.isnan(at)).any():
            steps[unsure] = _searched(accepted, which[unsure], sign[unsure])
        ends = estimate[which] + unit * steps
        lower[left], upper[left] = ends[: len(left)], ends[len(left) :]
    return Intervals(lower, upper, ("fieller",) * p)


def _first_rejected(accepted: Test, which: Array, sign: Array, at: Array, certainty: Array) -> Array:
    """The first point of the search's own grid that is rejected, from where the crossing is.

    Where that is too close to a point to call, a test says it."""
    place = np.clip(np.searchsorted(GRID, at, side="right") - 1, 0, len(GRID) - 2)
    low, cell = GRID[place], np.diff(GRID)[place] / 2**HALVINGS
    cells = (at - low) / cell
    nearest, first = np.rint(cells), np.ceil(cells)
    close = np.abs(cells - nearest) * cell * certainty < 1
    if close.any():
        within = accepted(which[close], sign[close] * (low + cell * nearest)[close])
        first[close] = nearest[close] + within
    return low + cell * first


def _searched(accepted: Test, which: Array, sign: Array) -> Array:
    """The first rejected point of the grid by a search: the farthest step within, then halving, for all at once."""
    nearer = STEPS[:-1]
    inside = accepted(np.repeat(which, len(nearer)), (sign[:, None] * nearer).ravel()).reshape(len(which), -1)
    last = np.where(inside.any(axis=1), len(nearer) - inside[:, ::-1].argmax(axis=1), 0)
    low, high = GRID[last], GRID[last + 1]
    for _ in range(HALVINGS // 2):  # two at once: calls are what takes time, not problems
        quarters = low + (high - low) * QUARTERS[:, None]
        lower_half, middle, upper_half = accepted(np.tile(which, 3), (sign * quarters).ravel()).reshape(3, -1)
        further = 2 * middle + np.where(middle, upper_half, lower_half)
        low, high = low + (high - low) * further / 4, low + (high - low) * (further + 1) / 4
    return high


def weakly_identified(seen: Channel, combinations: Array | None = None, *, below: float = WEAK) -> Array:
    """Which coefficients, or ``combinations`` of them, owe most of their variance to directions whose gain may well be zero.

    All coefficients, where that is so for more than half: small standard errors are then picked out by the noise, and hold too seldom.
    Of a stack, those of each."""
    rows = seen.to_own if combinations is None else combinations @ seen.to_own
    weak = seen.gain < below * seen.gain_sd
    if not weak.any():
        return np.zeros(rows.shape[:-1], dtype=bool)
    variance = seen.noise_variance(seen.estimate) / seen.debiased**2
    shares = rows**2 * variance[..., None, :]
    mostly = np.where(weak[..., None, :], shares, 0.0).sum(axis=-1) > shares.sum(axis=-1) / 2
    return mostly if combinations is not None else mostly | (mostly.mean(axis=-1, keepdims=True) > 0.5)


def automatic(seen: Channel, confidence: float) -> Intervals:
    """Wald intervals, and Fieller's where a coefficient is weakly identified.

    Where identification is only doubtful, Fieller's is taken if it is bounded and Wald's if not: the whole line would say too
    little there."""
    first = wald(seen, confidence)
    weak = weakly_identified(seen)
    doubtful = weakly_identified(seen, below=DOUBTFUL) | weak
    if not doubtful.any():
        return first
    second = fieller(seen, confidence, np.flatnonzero(doubtful))
    by_test = weak | (doubtful & np.isfinite(second.lower) & np.isfinite(second.upper))
    method = tuple("fieller" if tested else "wald" for tested in by_test)
    return Intervals(np.where(by_test, second.lower, first.lower), np.where(by_test, second.upper, first.upper), method)


BY_CHANNEL = {"auto": automatic, "wald": wald, "fieller": fieller}  # the bootstrap needs the evidence itself
METHODS = (*BY_CHANNEL, "bootstrap")


def predictions(seen: Channel, features: Array, residual: float, confidence: float) -> tuple[Array, Array]:
    """Debiased predictions for rows of ``features``, and how far an interval reaches to each side of them.

    ``residual`` is the variance of errors that the interval covers too. The reach is infinite for rows that lie mostly in
    directions that are not identified."""
    variance = np.einsum("ij,jk,ik->i", features, uncertainty(seen).covariance, features) + residual
    reach = quantile(confidence, seen.degrees) * np.sqrt(np.maximum(variance, 0.0))
    return features @ seen.own(seen.estimate), np.where(weakly_identified(seen, features), np.inf, reach)


def check_confidence(confidence: object) -> None:
    if isinstance(confidence, bool) or not isinstance(confidence, float | int) or not 0 < confidence < 1:
        raise ModelError(f"confidence is {confidence!r} and must be a number between 0 and 1, such as 0.95.")
