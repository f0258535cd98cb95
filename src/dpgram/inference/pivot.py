"""The test behind Fieller's intervals and joint tests: how far observations are from what given coefficients predict.

For coefficients b the residual observed - gain b has mean zero and a covariance that is known and itself depends on b. Its
squared length in units of that covariance, made as small as possible over all b with given values of some combinations,
is about chi-square with as many degrees of freedom as combinations were given, however weak the gains are."""

from __future__ import annotations

import numpy as np

from dpgram.regression.channel import Channel

Array = np.ndarray

ITERATIONS = 80


def statistic(seen: Channel, b: Array, sampling: Array) -> tuple[Array, Array, Array]:
    """The squared distance at each row of ``b`` (k, p), its gradient, and the covariance's diagonal part."""
    weight, spread = seen.weight, seen.spread
    diagonal = seen.noise_variance(b) + sampling
    residual, along = seen.observed - seen.gain * b, weight * b
    whitened, shaded = residual / diagonal, along / diagonal
    # covariance = diag + spread along along', inverted by Sherman and Morrison
    inner = np.sum(along * whitened, axis=1, keepdims=True)
    share = spread * inner / (1 + spread * np.sum(along * shaded, axis=1, keepdims=True))
    distance = np.sum(residual * whitened, axis=1, keepdims=True) - share * inner
    solved = whitened - share * shaded
    growth = np.sum(weight * solved**2, axis=1, keepdims=True)
    slope = np.sum(along * solved, axis=1, keepdims=True)
    gradient = -2 * seen.gain * solved - 2 * spread * weight * (growth * b + slope * solved)
    return distance[:, 0], gradient, diagonal


def profile(seen: Channel, combinations: Array, values: Array, sampling: Array, *, enough: float = 0.0) -> Array:
    """The smallest statistic over all b with ``combinations @ b = values``, for k such problems at once.

    A problem is left as soon as its statistic is at most ``enough``: a test needs no more.

    ``combinations`` (k, c, p), ``values`` (k, c). Damped Gauss-Newton steps within the constraints: the metric is diagonal, so a step
    costs c by c."""
    metric = seen.gain**2 / (seen.noise_variance(seen.estimate) + sampling)
    metric = np.broadcast_to(metric + 1e-3 * np.median(metric) + np.finfo(float).tiny, (len(values), len(seen.gain)))
    start = np.broadcast_to(seen.estimate, metric.shape)
    gap = values - np.einsum("kcp,kp->kc", combinations, start)
    b = start + _lifted(combinations, metric, gap)
    best, gradient, diagonal = statistic(seen, b, sampling)
    damping = np.full(len(b), 1e-3)
    found, moving = best.copy(), np.arange(len(b))  # problems drop out as they settle
    for _ in range(ITERATIONS):
        metric = seen.gain**2 / diagonal
        metric = metric + damping[:, None] * metric.max(axis=1, keepdims=True) + np.finfo(float).tiny
        step = -gradient / 2 / metric
        step = step - _lifted(combinations, metric, np.einsum("kcp,kp->kc", combinations, step))
        tried, slope, spread = statistic(seen, b + step, sampling)
        better = tried < best
        settled = (better & (best - tried < 1e-7 * (1 + best))) | (damping > 1e7) | (np.minimum(best, tried) <= enough)
        b = np.where(better[:, None], b + step, b)
        gradient, diagonal = np.where(better[:, None], slope, gradient), np.where(better[:, None], spread, diagonal)
        best = np.where(better, tried, best)
        damping = np.where(better, np.maximum(damping / 4, 1e-12), np.minimum(damping * 6, 1e8))
        found[moving] = best
        if settled.any():
            left = ~settled
            if not left.any():
                break
            combinations, moving, b, best = combinations[left], moving[left], b[left], best[left]
            gradient, diagonal, damping = gradient[left], diagonal[left], damping[left]
    return found


def _lifted(combinations: Array, metric: Array, gap: Array) -> Array:
    """The shortest change of b, in ``metric``, that moves the combinations by ``gap``."""
    over = combinations / metric[:, None, :]
    inner = np.einsum("kcp,kep->kce", over, combinations)
    return np.einsum("kcp,kc->kp", over, np.linalg.solve(inner, gap[:, :, None])[:, :, 0])
