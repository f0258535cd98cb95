"""The test behind Fieller's intervals, and joint tests: how far observations are from what given coefficients predict.

For coefficients b the residual observed - gain b has mean zero and a covariance that is known and itself depends on b. Its
squared length in units of that covariance, made as small as possible over all b with given values of some combinations,
is about chi-square with as many degrees of freedom as combinations were given, however weak the gains are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from dpgram.errors import ModelError
from dpgram.regression.channel import Channel

Array = np.ndarray

ITERATIONS, TINY = 80, np.finfo(float).tiny
LOOSE = 1e-6  # of what a change along the weakest direction counts, where a search starts far out
LOWER = 0.99  # of what was found: a start that is no lower leads to the same valley, or to one that is as deep


def statistic(seen: Channel, b: Array, sampling: Array) -> tuple[Array, Array, Array]:
    """The squared distance at each row of ``b`` (k, p), its gradient, and the covariance's diagonal part."""
    spread, along = seen.spread, seen.weight * b
    diagonal = seen.weight * (seen.label + spread * _dot(along, b)) + sampling
    residual = seen.observed - seen.gain * b
    whitened, shaded = residual / diagonal, along / diagonal
    # covariance = diag + spread along along', inverted by Sherman and Morrison
    inner = _dot(along, whitened)
    share = spread * inner / (1 + spread * _dot(along, shaded))
    distance = _dot(residual, whitened) - share * inner
    solved = whitened - share * shaded
    heavy = seen.weight * solved
    gradient = -2 * (seen.gain * solved + spread * (_dot(heavy, solved) * along + _dot(along, solved) * heavy))
    return distance[:, 0], gradient, diagonal


def _dot(a: Array, b: Array) -> Array:
    """The product of each row of two (k, p) arrays, as a column."""
    return np.vecdot(a, b)[:, None]


def profile(seen: Channel, combinations: Array, values: Array, sampling: Array, *, enough: float = 0.0) -> Array:
    """The smallest statistic over all b with ``combinations @ b = values``, for k such problems at once.

    A problem is left as soon as its statistic is at most ``enough``: a test needs no more.

    ``combinations`` (k, c, p), ``values`` (k, c). Damped Gauss-Newton steps within the constraints: the metric is diagonal, so a step
    costs c by c.

    Far from the estimate there may be several valleys: along a direction the statistic tends to (gain / gain_sd)^2 of that one. So the
    search starts at the nearest point, and once more along the weakest direction, where that is clearly lower than what was found."""
    squares = seen.gain**2
    metric = squares / (seen.noise_variance(seen.estimate) + sampling)
    metric = np.broadcast_to(metric + 1e-3 * np.median(metric) + TINY, (len(values), len(seen.gain)))
    gap = values - np.vecdot(combinations, seen.estimate)
    least = _descended(seen, combinations, seen.estimate + _lifted(combinations, metric, gap), sampling, enough)
    weakest = np.arange(len(squares)) == np.argmin(squares / seen.weight**2)
    far = seen.estimate + _lifted(combinations, np.where(weakest, LOOSE * metric, metric), gap)
    lower = (least > enough) & (statistic(seen, far, sampling)[0] < LOWER * least)
    if lower.any():
        least[lower] = np.minimum(least[lower], _descended(seen, combinations[lower], far[lower], sampling, enough))
    return least


def _descended(seen: Channel, combinations: Array, b: Array, sampling: Array, enough: float) -> Array:
    """The smallest statistic that steps from each row of ``b`` lead to."""
    squares = seen.gain**2
    best, gradient, diagonal = statistic(seen, b, sampling)
    damping = np.full(len(b), 1e-3)
    least, moving = best.copy(), np.arange(len(b))  # problems drop out as they settle
    for _ in range(ITERATIONS):
        metric = squares / diagonal
        metric = metric + (damping * metric.max(axis=1) + TINY)[:, None]
        step = gradient / (-2 * metric)
        step = step - _lifted(combinations, metric, np.vecdot(combinations, step[:, None, :]))
        tried, slope, spread = statistic(seen, b + step, sampling)
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


def surely_above(seen: Channel, rows: Array, values: Array, sampling: Array, limit: float) -> Array:
    """Whether no b with ``rows`` (k, p) @ b = ``values`` (k,) has a statistic of ``limit`` or less, as far as a bound tells it.

    With c = sqrt(weight) b, and what was observed over sqrt(weight), the residual is u = gain / weight (c0 - c), c0 where it is zero.
    Its covariance is at most label + 2 spread |c|^2 + the largest sampling, where |c| is at most |c0| + |u| / the least gain: so the
    statistic is at least |u|^2 over that, which grows with |u|, and is least at the shortest u."""
    with np.errstate(all="ignore"):
        root, exact = np.sqrt(seen.weight), seen.observed / seen.gain
        u = np.abs(values - rows @ exact) / np.linalg.norm(rows * (root / seen.gain), axis=1)
        c = np.linalg.norm(root * exact) + u / np.min(np.abs(seen.gain) / seen.weight)
        return u**2 > limit * (seen.label + 2 * seen.spread * c**2 + np.max(sampling / seen.weight))


def _lifted(combinations: Array, metric: Array, gap: Array) -> Array:
    """The shortest change of b, in ``metric``, that moves the combinations by ``gap``."""
    if combinations.shape[1] == 1:  # most often, and then a division does
        only = combinations[:, 0]
        over = only / metric
        return over * (gap / _dot(over, only))
    over = combinations / metric[:, None, :]
    return (np.linalg.solve(over @ combinations.mT, gap[:, :, None]).mT @ over)[:, 0]


@dataclass(frozen=True)
class JointTest:
    """The test that some coefficients are all zero.

    Attributes
    ----------
    name : str
        What was tested.
    coefficients : tuple of str
        Names of the coefficients.
    statistic : float
        The chi-square statistic.
    degrees : int
        Its degrees of freedom, the number of coefficients.
    p_value : float
        The p-value. It comes from an F distribution if the noise of the release has few degrees of freedom.
    """

    name: str
    coefficients: tuple[str, ...]
    statistic: float  # chi-square; divided by its degrees of freedom and compared with F where the noise has few
    degrees: int
    p_value: float


def joint_test(seen: Channel, names: Sequence[str], places: Sequence[int], *, name: str = "") -> JointTest:
    """The test that the coefficients at ``places`` are all zero in own units. Holds however weakly they are identified."""
    if not places:
        raise ModelError("a joint test needs at least one coefficient. Name one.")
    chosen = np.array(places)
    distance = float(profile(seen, seen.to_own[chosen][None], -seen.base[chosen][None], seen.by_table)[0])
    return JointTest(name, tuple(names[j] for j in places), distance, len(chosen), p_value(distance, len(chosen), seen.degrees))


def single_p_values(seen: Channel) -> Array:
    """P-values of the test that one coefficient is zero, for each of them, all at once."""
    distances = profile(seen, seen.to_own[:, None, :], -seen.base[:, None], seen.by_table)
    return np.array([p_value(distance, 1, seen.degrees) for distance in distances])


def p_value(statistic: float, count: int, degrees: float) -> float:
    if np.isinf(degrees):
        return float(chdtrc(count, max(statistic, 0.0)))
    return float(fdtrc(count, degrees, max(statistic, 0.0) / count))
