"""The test behind Fieller's intervals: how far observations are from what given coefficients predict.

For coefficients b the residual observed - gain b has mean zero and a covariance that is known and itself depends on b. Its
squared length in units of that covariance, made as small as possible over all b with given values of some combinations,
is about chi-square with as many degrees of freedom as combinations were given, however weak the gains are.

Where coefficients go to infinity along a direction, the statistic tends to (gain / gain_sd)^2 of that direction. So a direction with a
gain that may be zero leaves everything open, other coefficients too: each value of theirs agrees with a large enough coefficient there.
``locally`` is for them: there the coefficients of such directions have the size that is plausible, and the noise in other directions grows
with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, fdtrc

from dpgram.regression.channel import Channel

Array = np.ndarray

ITERATIONS, TINY = 80, np.finfo(float).tiny
LOOSE = 1e-6  # of what a change along the weakest direction counts, where a search starts far out
LOWER = 0.99  # of what was found: a start that is no lower leads to the same valley, or to one that is as deep
FADED = 1e-9  # what is left of the noise's dependence on coefficients that are seen to first order


@dataclass(frozen=True, eq=False)
class Pivot:
    """What the test knows of a regression, by directions; names are those of ``Channel``."""

    observed: Array
    gain: Array
    weight: Array
    label: Array
    spread: float
    estimate: Array  # near the least statistic: where searches start
    by_table: Array  # the variance in what was observed that does not grow with the coefficients that are tested

    @classmethod
    def exactly(cls, seen: Channel) -> Pivot:
        """All directions as they are."""
        debiased = seen.observed / seen.debiased
        return cls(seen.observed, seen.gain, seen.weight, seen.label, seen.spread, debiased, seen.by_table)

    @classmethod
    def locally(cls, seen: Channel) -> Pivot:
        """Directions whose gain may be zero as Wald's intervals take them: their coefficients are of plausible size, known about as well as
        the estimate shows."""
        weak = seen.hidden
        if not weak.any():
            return cls.exactly(seen)
        inside = np.sum(np.where(weak, seen.weight * (seen.estimate**2 + seen.left), 0.0))
        return cls(
            seen.observed,
            np.where(weak, seen.divisor, seen.gain),
            np.where(weak, FADED * seen.weight, seen.weight),
            seen.label,
            seen.spread,
            seen.estimate,
            np.where(weak, seen.left * seen.divisor**2, seen.by_table + seen.weight * seen.spread * inside),
        )

    def noise_variance(self, b: Array) -> Array:
        """Diagonal of the noise's covariance at b, without the rank-one part."""
        return self.weight * (self.label + self.spread * np.sum(self.weight * b**2, axis=-1, keepdims=True))

    @cached_property
    def far(self) -> float:
        """The least that the statistic tends to where coefficients go to infinity. True gains are not negative."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.min(np.maximum(self.gain, 0.0) ** 2 / (2 * self.spread * self.weight**2), initial=np.inf))


def statistic(of: Pivot, b: Array) -> tuple[Array, Array, Array]:
    """The squared distance at each row of ``b`` (k, p), its gradient, and the covariance's diagonal part."""
    spread, along = of.spread, of.weight * b
    diagonal = of.weight * (of.label + spread * _dot(along, b)) + of.by_table
    residual = of.observed - of.gain * b
    whitened, shaded = residual / diagonal, along / diagonal
    # covariance = diag + spread along along', inverted by Sherman and Morrison
    inner = _dot(along, whitened)
    share = spread * inner / (1 + spread * _dot(along, shaded))
    distance = _dot(residual, whitened) - share * inner
    solved = whitened - share * shaded
    heavy = of.weight * solved
    gradient = -2 * (of.gain * solved + spread * (_dot(heavy, solved) * along + _dot(along, solved) * heavy))
    return distance[:, 0], gradient, diagonal


def _dot(a: Array, b: Array) -> Array:
    """The product of each row of two (k, p) arrays, as a column."""
    return np.vecdot(a, b)[:, None]


def profile(of: Pivot, combinations: Array, values: Array, *, enough: float = 0.0) -> Array:
    """The smallest statistic over all b with ``combinations @ b = values``, for k such problems at once.

    A problem is left as soon as its statistic is at most ``enough``: a test needs no more.

    ``combinations`` (k, c, p), ``values`` (k, c). Damped Gauss-Newton steps within the constraints: the metric is diagonal, so a step
    costs c by c.

    Far from the estimate there may be several valleys. So the search starts at the nearest point, and once more along the weakest
    direction, where that is clearly lower than what was found."""
    squares = of.gain**2
    metric = squares / (of.noise_variance(of.estimate) + of.by_table)
    metric = np.broadcast_to(metric + 1e-3 * np.median(metric) + TINY, (len(values), len(of.gain)))
    gap = values - np.vecdot(combinations, of.estimate)
    least = _descended(of, combinations, of.estimate + _lifted(combinations, metric, gap), enough)
    weakest = np.arange(len(squares)) == np.argmin(squares / of.weight**2)
    far = of.estimate + _lifted(combinations, np.where(weakest, LOOSE * metric, metric), gap)
    lower = (least > enough) & (statistic(of, far)[0] < LOWER * least)
    if lower.any():
        least[lower] = np.minimum(least[lower], _descended(of, combinations[lower], far[lower], enough))
    return least


def _descended(of: Pivot, combinations: Array, b: Array, enough: float) -> Array:
    """The smallest statistic that steps from each row of ``b`` lead to."""
    squares = of.gain**2
    best, gradient, diagonal = statistic(of, b)
    damping = np.full(len(b), 1e-3)
    least, moving = best.copy(), np.arange(len(b))  # problems drop out as they settle
    for _ in range(ITERATIONS):
        metric = squares / diagonal
        metric = metric + (damping * metric.max(axis=1) + TINY)[:, None]
        step = gradient / (-2 * metric)
        step = step - _lifted(combinations, metric, np.vecdot(combinations, step[:, None, :]))
        tried, slope, spread = statistic(of, b + step)
        better = tried < best
        settled = (better & (best - tried < 1e-7 * (1 + best))) | (damping > 1e7) | (np.minimum(best, tried) <= enough)
        if better.all():
            b, gradient, diagonal, best = b + step, slope, spread, tried
        else:
            b, gradient, diagonal, best = (
                np.where(better if new.ndim == 1 else better[:, None], new, old)
                for new, old in ((b + step, b), (slope, gradient), (spread, diagonal), (tried, best))
            )
        damping = np.where(better, np.maximum(damping / 4, 1e-12), np.minimum(damping * 6, 1e8))
        least[moving] = best
        if settled.any():
            left = ~settled
            if not left.any():
                break
            combinations, moving, b, best = combinations[left], moving[left], b[left], best[left]
            gradient, diagonal, damping = gradient[left], diagonal[left], damping[left]
    return least


def surely_above(of: Pivot, rows: Array, values: Array, limit: float) -> Array:
    """Whether no b with ``rows`` (k, p) @ b = ``values`` (k,) has a statistic of ``limit`` or less, as far as a bound tells it.

    With c = sqrt(weight) b, and what was observed over sqrt(weight), the residual is u = gain / weight (c0 - c), c0 where it is zero.
    Its covariance is at most label + 2 spread |c|^2 + the largest of what the table adds, where |c| is at most |c0| + |u| / the least
    gain: so the statistic is at least |u|^2 over that, which grows with |u|, and is least at the shortest u."""
    with np.errstate(all="ignore"):
        root, exact = np.sqrt(of.weight), of.observed / of.gain
        u = np.abs(values - rows @ exact) / np.linalg.norm(rows * (root / of.gain), axis=1)
        c = np.linalg.norm(root * exact) + u / np.min(np.abs(of.gain) / of.weight)
        return u**2 > limit * (of.label + 2 * of.spread * c**2 + np.max(of.by_table / of.weight))


def _lifted(combinations: Array, metric: Array, gap: Array) -> Array:
    """The shortest change of b, in ``metric``, that moves the combinations by ``gap``."""
    if combinations.shape[1] == 1:  # most often, and then a division does
        only = combinations[:, 0]
        over = only / metric
        return over * (gap / _dot(over, only))
    over = combinations / metric[:, None, :]
    return (np.linalg.solve(over @ combinations.mT, gap[:, :, None]).mT @ over)[:, 0]


def p_value(statistic: float, count: int, degrees: float) -> float:
    """Of a statistic with ``count`` degrees of freedom: chi-square, or F where the noise has few degrees of freedom."""
    if np.isinf(degrees):
        return float(chdtrc(count, max(statistic, 0.0)))
    return float(fdtrc(count, degrees, max(statistic, 0.0) / count))
