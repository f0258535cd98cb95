"""Other laws, from normal and uniform numbers: chi-square with any degrees of freedom, Wishart factors, truncated Laplace."""

from __future__ import annotations

import math

import numpy as np

from dpgram.sampling.base import RandomSource

Array = np.ndarray


def chi_square(degrees: Array, rng: RandomSource) -> Array:
    """Independent chi-square numbers, one for each entry of ``degrees`` (> 0, real, up to 10^12 and beyond).

    Gamma variables by Marsaglia and Tsang (2000): a cube of a normal number, accepted or drawn again."""
    shape = np.asarray(degrees, dtype=float).ravel() / 2
    boosted = np.where(shape < 1, shape + 1, shape)
    d = boosted - 1 / 3
    c = 1 / np.sqrt(9 * d)
    out = np.full(len(shape), np.nan)
    while (todo := np.flatnonzero(np.isnan(out))).size:
        x = rng.normal(1.0, (todo.size,))
        step = c[todo] * x
        w = step * (3 + step * (3 + step))  # v - 1 for v = (1 + c x)^3
        u = rng.uniform((todo.size,))
        with np.errstate(all="ignore"):
            accepted = (step > -1) & (np.log(u) < x * x / 2 - d[todo] * _minus_log1p(w))
        out[todo[accepted]] = (d[todo] * (1 + w))[accepted]
    small = shape < 1
    if small.any():
        out[small] *= rng.uniform((int(small.sum()),)) ** (1 / shape[small])
    return (2 * out).reshape(np.shape(degrees))


def _minus_log1p(w: Array) -> Array:
    """w - ln(1 + w), without cancellation: for 10^12 degrees of freedom it is multiplied by as many."""
    series = w * w * sum((-w) ** k / (k + 2) for k in range(8))
    return np.where(np.abs(w) < 0.01, series, w - np.log1p(w))


def bartlett_factor(dim: int, degrees: float, rng: RandomSource) -> Array:
    """T such that T T' is Wishart with identity scale and ``degrees`` of freedom: lower triangular (Bartlett 1933).

    Degrees are real and above dim - 1; a whole number below that gives the dim by degrees matrix of normal numbers."""
    if degrees <= dim - 1:
        return rng.normal(1.0, (dim, int(degrees)))
    factor = np.tril(rng.normal(1.0, (dim, dim)), -1)
    factor[np.diag_indices(dim)] = np.sqrt(chi_square(degrees - np.arange(dim), rng))
    return factor


def truncated_laplace(scale: float, upper: float, rng: RandomSource) -> float:
    """One Laplace number of the given scale, conditioned on being at most ``upper``; without an atom, and fine at both ends.

    First the side, then the exponential on it by inversion from its small end: e^(-z/scale) is uniform between e^(-upper/scale) and 1."""
    side, v = (float(u) for u in rng.uniform((2,)))
    if upper <= 0:
        return upper + scale * math.log(v)
    least = math.exp(-upper / scale)
    if side * (2 - least) < 1:  # the two sides have masses 1/2 and (1 - least)/2
        return scale * math.log(v)
    return min(upper, -scale * math.log(least + v * (1 - least)))


def truncated_normal(sd: float, upper: float, rng: RandomSource) -> float:
    """One normal number conditioned on being at most ``upper`` (>= 0): drawn until it is."""
    while (z := float(rng.normal(sd, (1,))[0])) > upper:
        pass
    return z
