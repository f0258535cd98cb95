"""Eigenvalues seen through noise: what they were, how sure that is, and how to invert without bias."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

Array = np.ndarray

STEPS = 200  # of a search that takes about ten, and at worst halves an interval each time


def symmetric_shrinkage(values: Array, variance: float) -> tuple[Array, Array]:
    """For each eigenvector of G + N its mean in G, and the spread of G's other entries in its row, given the spectrum.

    N is of the Gaussian orthogonal ensemble with off-diagonal ``variance``; ``values`` are the eigenvalues of the sum. The
    rotation-invariant estimate of free probability (Bun, Bouchaud and Potters 2017), with the resolvent smoothed over a
    fraction of the noise's own width, because the dimension is finite."""
    p = len(values)
    width = np.sqrt(variance) * p**0.25 / 2
    apart = values[:, None] - values[None, :]
    size = apart**2 + width**2
    np.fill_diagonal(size, np.inf)
    size[size == 0] = np.inf
    pull, density = (apart / size).sum(axis=1), (width / size).sum(axis=1)
    spread = variance * p - variance**2 * (pull**2 + density**2) - variance
    return values - 2 * variance * pull, np.maximum(spread, 0.0)


def wishart_shrinkage(values: Array, degrees: float) -> Array:
    """The same for the eigenvalues of W(S, degrees) / degrees: each eigenvector's mean in S (Ledoit and Peche 2011)."""
    p = len(values)
    width = values * degrees**-0.5 * p**0.25 / 2
    apart = values[None, :] - values[:, None] - 1j * width[:, None]
    np.fill_diagonal(apart, np.inf)
    resolvent = np.sum(1 / apart, axis=1) / degrees
    return values / np.abs(1 - p / degrees - values * resolvent) ** 2


def positive_moments(mean: Array, sd: Array) -> tuple[Array, Array]:
    """Mean and mean square of normal variates given that they are positive.

    >>> [float(m[0].round(4)) for m in positive_moments(np.array([0.0]), np.array([1.0]))]
    [0.7979, 1.0]
    """
    safe = np.where(sd > 0, sd, 1.0)
    at = mean / safe
    near = np.maximum(at, -31.0)
    hazard = np.exp(-(near**2) / 2 - 0.5 * np.log(2 * np.pi) - log_ndtr(near))
    first, second = mean + safe * hazard, mean**2 + safe**2 + safe * mean * hazard
    far = at < -30  # there the sums above cancel; an exponential of scale sd / |at| is left
    first = np.where(far, -safe / np.where(far, at, -1.0), first)
    second = np.where(far, 2 * first**2, second)
    known = sd <= 0
    return np.where(known, np.maximum(mean, 0.0), first), np.where(known, np.maximum(mean, 0.0) ** 2, second)


def debiased_gain(gain: Array, weight: Array, spread: float) -> Array:
    """x > 0 such that diag(1/x) is, to second order, an unbiased inverse of what ``gain`` was before noise.

    Noise with variance spread * weight_i * weight_j off the diagonal, and twice that on it, makes the inverse too large. x solves
    x_i = gain_i + spread weight_i (sum_j weight_j / x_j + weight_i / x_i); the sum is found first, each x_i is then a
    quadratic's positive root, so that there always is an answer. ``gain`` and ``weight`` may be stacks, one problem along the last axis.

    >>> debiased_gain(np.array([10.0, 5.0]), np.ones(2), 0.0)
    array([10.,  5.])
    """
    if spread == 0.0:
        return gain

    q = 4 * spread * weight**2

    def roots(total: Array) -> tuple[Array, Array]:
        """The x of a given sum, and by how much more they add up to."""
        a = gain + spread * weight * total
        root = np.sqrt(a**2 + q)
        x = np.where(a > 0, a + root, q / np.where(a > 0, 1.0, root - a)) / 2
        return x, np.sum(weight / x, axis=-1, keepdims=True) - total

    # The excess falls with the sum. Newton's steps within a bracket that closes in on its zero; the slope by
    # dx/dtotal = spread weight x / root, root = 2 x - a.
    below = np.zeros((*gain.shape[:-1], 1))
    above = below + 1.0 / np.sqrt(spread)
    while (low := roots(above)[1] > 0).any():
        below, above = np.where(low, above, below), np.where(low, 4 * above, above)
    total = above
    for _ in range(STEPS):
        x, excess = roots(total)
        below, above = np.where(excess > 0, total, below), np.where(excess > 0, above, total)
        slope = 1 + np.sum(spread * weight**2 / (x * (2 * x - gain - spread * weight * total)), axis=-1, keepdims=True)
        step = excess / slope
        if (np.abs(step) <= 1e-14 * total).all():
            break
        total = np.where((total + step > below) & (total + step < above), total + step, (below + above) / 2)
    return roots(total)[0]
