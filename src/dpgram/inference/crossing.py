"""How far from its estimate a coefficient is first rejected, found by Newton's steps instead of a search.

The least statistic over all other coefficients is a sum of squares, in which the covariance's rank-one part counts as one more: with
h = gain + sqrt(spread) z weight,

    sum_i (observed_i - h_i b_i)^2 / diagonal_i(b) + z^2,    least over z.

Gauss and Newton's model of it is a diagonal matrix and three vectors more, so that a step within one constraint, and how the least value
grows as the constraint moves, cost a few products. What is not found in a few steps, or is too close to call, is left to the search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpgram.inference.pivot import Pivot, surely_above

Array = np.ndarray

STEPS, FEW = 14, 5
STILL = 3e-7
FIRST = 2.0  # standard errors
FARTHER = np.array([1.25, 1.6, 2.5, 5.0, 20.0, 200.0])  # times the crossing: what is looked at beyond it


class Model(NamedTuple):
    """The statistic near each of k points, within one constraint each."""

    value: Array  # (k,)
    fall: Array  # (k,) from there to the least value expected; not negative
    step: Array  # (k, p) to it
    along: Array  # (k, p) how the least point moves with the constraint
    growth: Array  # (k,) how the least value grows with it


def crossings(of: Pivot, rows: Array, origin: Array, unit: Array, limit: float) -> tuple[Array, Array]:
    """(k,) t at which the least statistic with rows b = origin + t unit is ``limit``, and how it grows there; NaN where that is not sure.

    Sure is what no larger t is accepted for, as far as a look at some of them tells."""
    estimate = of.estimate
    with np.errstate(all="ignore"):
        metric = of.gain**2 / (of.noise_variance(estimate) + of.by_table)
        over = rows / (metric + 1e-3 * np.median(metric) + np.finfo(float).tiny)
        t = np.full(len(rows), FIRST)
        b = estimate + over * ((origin + unit * t - rows @ estimate) / np.vecdot(over, rows))[:, None]
        try:
            for _ in range(STEPS):
                near = _model(of, b, rows)
                growth, root = near.growth * unit, np.sqrt(np.maximum(near.value - near.fall, 1e-3 * limit))
                more = np.clip(
                    (np.sqrt(limit) - root) * 2 * root / growth, -t / 2, (t + 1) / 2
                )  # the root is about linear in t
                sure = (np.abs(more) < STILL * (1 + t)) & (near.fall < STILL) & (growth > 0)
                if sure.all():
                    break
                t, b = t + more, b + near.step + (more * unit)[:, None] * near.along
            which, times = np.repeat(np.arange(len(t)), len(FARTHER)), np.tile(FARTHER, len(t))
            beyond = surely_above(of, rows[which], origin[which] + (unit * t)[which] * times, limit)
            which, times = which[~beyond], times[~beyond]
            further = b[which] + ((t * unit)[which] * (times - 1))[:, None] * near.along[which]
            beyond[~beyond] = _is_above(of, further, rows[which], limit)
            sure &= beyond.reshape(len(t), -1).all(axis=1)
        except np.linalg.LinAlgError:
            sure = np.zeros(len(rows), dtype=bool)
            growth = t
    return np.where(sure, t, np.nan), growth


def _is_above(of: Pivot, b: Array, rows: Array, limit: float) -> Array:
    """Whether the least statistic near b is certainly larger than ``limit``."""
    for _ in range(FEW):
        near = _model(of, b, rows)
        above = near.fall < 0.1 * (near.value - limit)
        if above.all():
            break
        b = b + near.step
    return above


def _model(of: Pivot, b: Array, rows: Array) -> Model:
    weight, spread, root = of.weight, of.spread, np.sqrt(of.spread)
    along = weight * b
    over = 1 / (weight * (of.label + spread * np.vecdot(along, b)[:, None]) + of.by_table)
    residual, shaded = of.observed - of.gain * b, along * over
    inflated = 1 + spread * np.vecdot(shaded, along)
    z = (root * np.vecdot(shaded, residual) / inflated)[:, None]
    gain, residual = of.gain + root * z * weight, residual - root * z * along
    whitened = residual * over
    heavy = weight * whitened
    gradient = -2 * (gain * whitened + spread * np.vecdot(heavy, whitened)[:, None] * along)
    value = np.vecdot(whitened, residual) + z[:, 0] ** 2
    curve = 2 * gain**2 * over
    curve += 1e-12 * curve.max(axis=1, keepdims=True)
    # The model's matrix is diag(curve) + m q' + q m' + c q q' - n n' / w, by these vectors; the constraint and the gradient go along.
    heavier = heavy * over
    vectors = np.empty((len(b), 5, b.shape[1]))
    vectors[:, 0] = spread * gain * heavier
    vectors[:, 1] = 2 * along
    vectors[:, 2] = 2 * root * gain * shaded + (spread * root * np.vecdot(heavier, along))[:, None] * vectors[:, 1]
    vectors[:, 3], vectors[:, 4] = rows, gradient
    scaled = vectors / curve[:, None, :]
    inner = scaled @ vectors.mT
    small = inner[:, :4, :4].copy()
    small[:, 0, 0] -= 0.5 * spread**2 * np.vecdot(heavier, heavy)
    small[:, [0, 1], [1, 0]] += 1.0
    small[:, 2, 2] -= 2 * inflated
    wanted = np.zeros((len(b), 4, 2))
    wanted[:, :, 0], wanted[:, 3, 1] = -inner[:, :4, 4], -1.0
    factors = np.linalg.solve(small, wanted)
    moves = -(factors.mT @ scaled[:, :4])
    step = moves[:, 0] - scaled[:, 4]
    return Model(value, -np.vecdot(gradient, step) / 2, step, moves[:, 1], -factors[:, 3, 0])
