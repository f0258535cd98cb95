"""Eigenvalues seen through noise: what they were, how sure that is, and how to invert without bias."""

from __future__ import annotations

import numpy as np

from dpgram.linalg.special import log_ndtr

Array = np.ndarray

HALF_LOG = 0.5 * np.log(2 * np.pi)
STEPS = 200  # of a search that takes about ten, and at worst halves an interval each time


def symmetric_shrinkage(values: Array, variance: float) -> tuple[Array, Array]:
    """For each eigenvector of G + N its mean in G, and the spread of G's other entries in its row, given the spectrum.

    N is of the Gaussian orthogonal ensemble with off-diagonal ``variance``; ``values`` are the eigenvalues of the sum. The
    rotation-invariant estimate of free probability (Bun, Bouchaud and Potters 2017), with the resolvent smoothed over a
    fraction of the noise's own width, because the dimension is finite. ``values`` may be stacks, one spectrum along the last axis."""
    p = values.shape[-1]
    width = np.sqrt(variance) * p**0.25 / 2
    apart = values[..., :, None] - values[..., None, :]
    size = apart**2 + width**2
    size[..., range(p), range(p)] = np.inf
    size[size == 0] = np.inf
    pull, density = (apart / size).sum(axis=-1), (width / size).sum(axis=-1)
    spread = variance * p - variance**2 * (pull**2 + density**2) - variance
    return values - 2 * variance * pull, np.maximum(spread, 0.0)


def wishart_shrinkage(values: Array, degrees: float) -> Array:
    """Eigenvalues of S from those of W(S, degrees) / degrees: each eigenvector's mean in S (Ledoit and Peche 2011).

    ``values`` may be stacks, one spectrum along the last axis."""
    p = values.shape[-1]
    width = values * degrees**-0.5 * p**0.25 / 2
    apart = values[..., None, :] - values[..., :, None] - 1j * width[..., :, None]
    apart[..., range(p), range(p)] = np.inf
    resolvent = np.sum(1 / apart, axis=-1) / degrees
    return values / np.abs(1 - p / degrees - values * resolvent) ** 2


def positive_moments(mean: Array, sd: Array) -> tuple[Array, Array]:
    """Mean and mean square of normal variates given that they are positive.

    >>> [float(m[0].round(4)) for m in positive_moments(np.array([0.0]), np.array([1.0]))]
    [0.7979, 1.0]
    """
    if (known := sd <= 0).any():
        first, second = positive_moments(mean, np.where(known, 1.0, sd))
        return np.where(known, np.maximum(mean, 0.0), first), np.where(known, np.maximum(mean, 0.0) ** 2, second)
    at = mean / sd
    near = np.maximum(at, -31.0)
    hazard = sd * np.exp(-(near**2) / 2 - HALF_LOG - log_ndtr(near))
    first, second = mean + hazard, mean**2 + sd**2 + mean * hazard
    if (far := at < -30).any():  # there the sums above cancel; an exponential of scale sd / |at| is left
        first = np.where(far, -sd / np.where(far, at, -1.0), first)
        second = np.where(far, 2 * first**2, second)
    return first, second


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

    pull = spread * weight
    q = 4 * pull * weight

    def roots(total: Array | float) -> tuple[Array, Array, Array]:
        """The x of a given sum, what 1/x then adds up to, and sqrt(a^2 + q), a the linear coefficient of the quadratics."""
        a = gain + pull * total
        root = np.sqrt(a**2 + q)
        x = (np.abs(a) + root) / 2
        if (a <= 0).any():
            x = np.where(a > 0, x, q / (4 * x))
        return x, np.add.reduce(weight / x, axis=-1, keepdims=True), root

    # What 1/x adds up to falls with the sum, and is convex in it: what is found at zero lies above the answer, what is found there lies
    # below, and Newton's steps from below never pass it. The slope by dx/dtotal = pull x / root. A bracket is for rounding.
    above = roots(0.0)[1]
    below = roots(above)[1]
    total = below
    for _ in range(STEPS):
        x, inverses, root = roots(total)
        excess = inverses - total
        step = excess / (1 + np.add.reduce(pull * weight / (x * root), axis=-1, keepdims=True))
        if (np.abs(step) <= 1e-14 * total).all():
            break
        below, above = np.where(excess > 0, total, below), np.where(excess > 0, above, total)
        total = np.where((total + step > below) & (total + step < above), total + step, np.sqrt(below * above))
    return roots(total)[0]
