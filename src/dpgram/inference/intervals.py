"""Intervals that count the privacy noise, around the debiased estimate.

- ``wald``: first-order, with the exact covariance of the noise at the estimate; Student's t where the noise has few degrees of freedom.
- ``fieller``: the values that a test does not reject, profiled over all other coefficients (Anderson and Rubin 1949). Right
  however weakly a coefficient is identified; may be the whole line, which then is the answer: not identified at this budget.
- ``auto``: each coefficient by itself. Fieller's where most of its variance comes from directions that may have no gain at all. Where it
  comes from directions that hardly stand above the noise, Fieller's too, but with coefficients of plausible size in the former directions
  (``Pivot.locally``): a rare level leaves itself unidentified, not the rest of the model. Wald's everywhere else.

All of them are of coefficients, or of linear combinations of them, given as rows in own units. ``inference.hypotheses`` has the tests that
belong to them: the same choice for the same combination.

Assumed: errors with one variance, no bias from shrinking many rows, and, in directions that the noise hides, coefficients of plausible
size (``Channel.plausible``); docs/regression.md says what happens otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real

import numpy as np
from scipy.special import ndtri, stdtrit

from dpgram.errors import ModelError
from dpgram.inference.crossing import crossings
from dpgram.inference.pivot import Pivot, profile, surely_above
from dpgram.regression.channel import WEAK, Channel

Array = np.ndarray

FAR = 1e4  # standard errors; a set that reaches so far is unbounded
STEPS = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0, 1000.0, FAR])
GRID = np.concatenate([[0.0], STEPS])
TOO_CLOSE = 1e-6  # a statistic so close to its limit, relatively, is called by the search
DOUBTFUL = 4.0  # below so many sds of its noise, a gain is too uncertain for first order
ABOUT = 0.1  # of a combination's squares: so much in hidden directions is more than noise would turn there
HALVINGS = 12
QUARTERS = np.array([0.25, 0.5, 0.75])
AUTO, WALD, FIELLER, BOOTSTRAP = "auto", "wald", "fieller", "bootstrap"


Test = Callable[[Array, Array], Array]
"""Whether coefficients, by their places, may lie so many standard errors from their estimates."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of the debiased coefficients in own units, split into its sources; or of each of a stack."""

    back: Array  # (..., p, p) from the channel's directions to coefficients
    along: Array  # (..., p) the rank-one part of the privacy noise is this times its transpose
    by_noise: Array  # (..., p) the other part's variance in each direction
    by_rows: Array  # (..., p) what the sampling of rows adds there
    by_clipping: Array  # (..., p) what rows beyond the clip leave open there
    leaning: Array  # (..., p, p) as ``back``, for what they leave open: they favour some directions

    @property
    def noise(self) -> Array:
        """(..., p, p) from the privacy noise."""
        return self._turned(self.by_noise) + self.along[..., :, None] * self.along[..., None, :]

    @property
    def sampling(self) -> Array:
        """(..., p, p) from the sampling of rows."""
        return self._turned(self.by_rows)

    @property
    def clipping(self) -> Array:
        """(..., p, p) from rows that were shrunk, as far as the release does not show what they hold."""
        return (self.leaning * self.by_clipping[..., None, :]) @ self.leaning.mT

    def _turned(self, variances: Array) -> Array:
        return (self.back * variances[..., None, :]) @ self.back.mT

    @property
    def covariance(self) -> Array:
        return self.noise + self.sampling + self.clipping

    def of(self, combinations: Array) -> Uncertainty:
        """That of ``combinations`` (k, p) of the coefficients."""
        back, leaning = combinations @ self.back, combinations @ self.leaning
        return replace(self, back=back, along=self.along @ combinations.T, leaning=leaning)

    @property
    def spent(self) -> Array:
        """(..., p) the variance of the estimate in each direction, without the rank-one part: what identification is judged by."""
        return self.by_noise + self.by_rows + self.by_clipping

    @cached_property
    def se(self) -> Array:
        noise_and_rows = (self.back**2 @ (self.by_noise + self.by_rows)[..., None])[..., 0]
        return np.sqrt(noise_and_rows + (self.leaning**2 @ self.by_clipping[..., None])[..., 0] + self.along**2)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Lower and upper ends in own units; infinite on both sides where a coefficient is not identified."""

    lower: Array
    upper: Array
    method: tuple[str, ...]  # how each was made
    sets: tuple[tuple[tuple[float, float], ...], ...] = ()  # the pieces of each, where they need not be intervals

    @property
    def identified(self) -> Array:
        return np.isfinite(self.lower) & np.isfinite(self.upper)


def uncertainty(seen: Channel, combinations: Array | None = None) -> Uncertainty:
    """Covariance of the debiased estimate, or of each of a stack; of ``combinations`` (k, p) of its coefficients where given."""
    clear = np.where(seen.hidden, 0.0, 1 / seen.divisor)
    along = np.sqrt(seen.spread) * (seen.to_own @ (clear * seen.weight * seen.estimate)[..., None])[..., 0]
    by_noise = seen.left + clear**2 * seen.believed_noise
    by_clipping, leaning = clear**2 * seen.by_clipping, seen.leaning[..., :, None] * seen.to_own
    known = Uncertainty(seen.to_own, along, by_noise, clear**2 * seen.by_rows, by_clipping, leaning)
    return known if combinations is None else known.of(combinations)


def turned(seen: Channel, combinations: Array | None) -> Array:
    """(..., k, p) combinations of coefficients, all of them one by one where None, by the directions of the channel."""
    return seen.to_own if combinations is None else combinations @ seen.to_own


def valued(combinations: Array | None, coefficients: Array) -> Array:
    """(k,) what combinations of ``coefficients`` are."""
    return coefficients if combinations is None else combinations @ coefficients


def quantile(confidence: float, degrees: float) -> float:
    """How many standard errors an interval reaches to each side."""
    tail = (1 - confidence) / 2
    return float(-ndtri(tail) if np.isinf(degrees) else -stdtrit(degrees, tail))


def wald(seen: Channel, confidence: float, combinations: Array | None = None) -> Intervals:
    confidence = check_confidence(confidence)
    estimate = valued(combinations, seen.own(seen.estimate))
    reach = quantile(confidence, seen.degrees) * uncertainty(seen, combinations).se
    return Intervals(estimate - reach, estimate + reach, (WALD,) * len(reach))


def fieller(seen: Channel, confidence: float, combinations: Array | None = None) -> Intervals:
    """Intervals by test inversion."""
    return inverted(seen, Pivot.exactly(seen), confidence, combinations)


def inverted(seen: Channel, of: Pivot, confidence: float, combinations: Array | None) -> Intervals:
    """The values that the test of ``of`` does not reject, the estimate and all between; the whole line where it has no end on either side.

    Where noise hides a direction the estimate is shrunk, so that at a low confidence the test may reject it."""
    confidence = check_confidence(confidence)
    rows, se = turned(seen, combinations), uncertainty(seen, combinations).se
    base, limit = valued(combinations, seen.base), quantile(confidence, seen.degrees) ** 2
    origin = rows @ of.estimate

    def accepted(which: Array, steps: Array) -> Array:
        values = origin[which] + se[which] * steps
        return profile(of, rows[which, None, :], values[:, None], enough=limit) <= limit

    lower, upper = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    method = (FIELLER,) * len(rows)
    if of.far <= limit:
        return Intervals(lower, upper, method)
    both, reach = np.tile(np.arange(len(rows)), 2), np.repeat([-FAR, FAR], len(rows))
    within = ~surely_above(of, rows[both], origin[both] + se[both] * reach, limit)
    if within.any():
        within[within] = accepted(both[within], reach[within])
    left = np.flatnonzero(~within.reshape(2, -1).any(axis=0))
    if len(left):
        which, sign = np.tile(left, 2), np.repeat([-1.0, 1.0], len(left))
        unit = sign * se[which]
        at, growth = crossings(of, rows[which], origin[which], unit, limit)
        steps = _first_rejected(accepted, which, sign, at, growth / (TOO_CLOSE * (1 + limit)))
        if (unsure := np.isnan(at)).any():
            steps[unsure] = _searched(accepted, which[unsure], sign[unsure])
        ends = (base + origin)[which] + unit * steps
        estimate = valued(combinations, seen.own(seen.estimate))[left]
        lower[left], upper[left] = np.minimum(ends[: len(left)], estimate), np.maximum(ends[len(left) :], estimate)
    return Intervals(lower, upper, method)


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

    Directions that may have no gain at all count only for combinations that are about them: what they add to others, because noise turned
    them there, is bounded, as plausible coefficients are. Of a stack, those of each."""
    rows, weak = turned(seen, combinations), seen.gain_below(below)
    if not weak.any():
        return np.zeros(rows.shape[:-1], dtype=bool)
    mostly = _share(rows, uncertainty(seen).spent, weak) > 0.5
    if not seen.hidden.any():
        return mostly
    endless = _share(rows, uncertainty(seen).spent, weak & ~seen.hidden) > 0.5
    return endless | (mostly & (_share(rows, np.ones_like(seen.gain), weak) > ABOUT))


def _share(rows: Array, variances: Array, which: Array) -> Array:
    """(..., k) how much of the variance of combinations comes from some of the directions."""
    parts = rows**2 * variances[..., None, :]
    return np.where(which[..., None, :], parts, 0.0).sum(axis=-1) / np.maximum(parts.sum(axis=-1), np.finfo(float).tiny)


def judged(seen: Channel, combinations: Array | None = None) -> tuple[Array, Array]:
    """Which coefficients, or combinations of them, are weakly identified, and which of the others only doubtfully."""
    weak = weakly_identified(seen, combinations)
    return weak, weakly_identified(seen, combinations, below=DOUBTFUL) & ~weak


def automatic(seen: Channel, confidence: float, combinations: Array | None = None) -> Intervals:
    """Wald's intervals, and Fieller's for what is identified weakly or doubtfully."""
    first = wald(seen, confidence, combinations)
    lower, upper, method = first.lower.copy(), first.upper.copy(), np.array(first.method, dtype=object)
    for which, pivot in zip(judged(seen, combinations), (Pivot.exactly, Pivot.locally), strict=True):
        if which.any():
            chosen = (np.eye(len(which)) if combinations is None else combinations)[which]
            second = inverted(seen, pivot(seen), confidence, chosen)
            lower[which], upper[which], method[which] = second.lower, second.upper, FIELLER
    return Intervals(lower, upper, tuple(method))


BY_CHANNEL = {AUTO: automatic, WALD: wald, FIELLER: fieller}  # the bootstrap needs the evidence itself
METHODS = (*BY_CHANNEL, BOOTSTRAP)


def predictions(seen: Channel, features: Array, residual: float, confidence: float) -> tuple[Array, Array]:
    """Debiased predictions for rows of ``features``, and how far an interval reaches to each side of them.

    ``residual`` is the variance of errors that the interval covers too. The reach is infinite for rows that lie mostly in
    directions that are not identified."""
    variance = np.einsum("ij,jk,ik->i", features, uncertainty(seen).covariance, features) + residual
    reach = quantile(confidence, seen.degrees) * np.sqrt(np.maximum(variance, 0.0))
    return features @ seen.own(seen.estimate), np.where(weakly_identified(seen, features), np.inf, reach)


def check_confidence(confidence: object) -> float:
    """The confidence level that was given, in double precision."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise ModelError(f"confidence is {confidence!r} and must be a number between 0 and 1, such as 0.95.")
    return float(confidence)
