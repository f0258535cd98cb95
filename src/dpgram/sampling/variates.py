"""Other laws, from normal and uniform numbers: chi-square with any degrees of freedom, Wishart factors, truncated Laplace.

Each function serves both arithmetics. In float64 it also draws many copies at once where the source says so (``copies``): they stand in
front of the shape."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpgram.linalg import symmetric
from dpgram.sampling.base import EXACT, Matrix, RandomSource

Array = np.ndarray


def normal_matrix(shape: tuple[int, int], rng: Any) -> Matrix:
    """A matrix of independent standard normal numbers."""
    return rng.normal(1.0, (*rng.copies, *shape))


def symmetric_normal(dim: int, off: float, on: float, rng: Any) -> Matrix:
    """A symmetric matrix of independent N(0, off^2) above the diagonal and N(0, on^2) on it."""
    if rng.arithmetic == EXACT:
        return rng.symmetric_normal(dim, off, on)
    draw = normal_matrix((dim, dim), rng)
    upper = np.triu(np.ones((dim, dim)), 1) * draw
    return off * (upper + upper.mT) + on * (np.eye(dim) * draw)


def chi_square(degrees: Array, rng: Any) -> Array:
    """Independent chi-square numbers in float64, one for each entry of ``degrees`` (> 0, real, up to 10^12 and beyond).

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


def chi_diagonal(dim: int, degrees: Any, rng: Any) -> Matrix:
    """The diagonal matrix of square roots of independent chi-square numbers with degrees, degrees - 1, ... degrees of freedom."""
    if rng.arithmetic == EXACT:
        return rng.chi_diagonal([Fraction(degrees) - i for i in range(dim)])
    each = np.broadcast_to(np.asarray(degrees)[..., None] - np.arange(dim), (*rng.copies, dim))
    return np.sqrt(chi_square(each, rng))[..., None] * np.eye(dim)


def bartlett_factor(dim: int, degrees: float | Array, rng: RandomSource) -> Matrix:
    """T such that T T' is Wishart with identity scale and ``degrees`` of freedom: lower triangular (Bartlett 1933).

    Degrees are real and above dim - 1; a whole number below that gives the dim by degrees matrix of normal numbers."""
    if np.ndim(degrees) == 0 and degrees <= dim - 1:
        return normal_matrix((dim, int(degrees)), rng)
    below_diagonal = np.tril(np.ones((dim, dim)), -1)
    return below_diagonal * normal_matrix((dim, dim), rng) + chi_diagonal(dim, degrees, rng)


def truncated_laplace(scale: float, upper: float, rng: Any) -> Any:
    """Laplace noise of the given scale, conditioned on being at most ``upper``; without an atom, and fine at both ends.

    First the side, then the exponential on it by inversion from its small end: e^(-z/scale) is uniform between e^(-upper/scale) and 1."""
    if rng.arithmetic == EXACT:
        return rng.truncated_laplace(scale, upper)
    side, v = rng.uniform(rng.copies), rng.uniform(rng.copies)
    if upper <= 0:
        return plain(upper + scale * np.log(v))
    least = np.exp(-upper / scale)
    above = np.minimum(upper, -scale * np.log(least + v * (1 - least)))
    return plain(np.where(side * (2 - least) < 1, scale * np.log(v), above))  # the two sides have masses 1/2 and (1 - least)/2


def laplace(scale: float, rng: Any) -> Any:
    """Laplace noise of the given scale."""
    if rng.arithmetic == EXACT:
        return rng.laplace(scale)
    magnitude = -scale * np.log(rng.uniform(rng.copies))
    return plain(np.copysign(magnitude, rng.uniform(rng.copies) - 0.5))


def truncated_normal(sd: float, upper: float, rng: Any) -> Any:
    """Normal noise conditioned on being at most ``upper`` (>= 0): drawn until it is."""
    if rng.arithmetic == EXACT:
        return rng.truncated_normal(sd, upper)
    z = np.asarray(rng.normal(sd, rng.copies))
    while (again := z > upper).any():
        z = np.where(again, rng.normal(sd, rng.copies), z)
    return plain(z)


def plain(number: Any) -> Any:
    """A Python number, or an array of one for each copy."""
    return number if np.ndim(number) else float(number)


def per_copy(number: Any) -> Any:
    """A number by which a matrix is multiplied: itself, or one for each of the copies that are drawn at once."""
    return number if np.ndim(number) == 0 else number[..., None, None]


def square_root(matrix: Matrix, ridge: float | Array) -> Matrix:
    """R with R R' = matrix + ridge I, for a positive semi-definite matrix."""
    if isinstance(matrix, np.ndarray):
        return symmetric.square_root(matrix, ridge=ridge)
    return (matrix + ridge * np.eye(len(matrix))).cholesky()


def divided_by_lower(matrix: Matrix, lower: Matrix) -> Matrix:
    """matrix @ (lower^-1)' for a lower triangular matrix."""
    if isinstance(matrix, np.ndarray):
        return np.linalg.solve(lower, matrix.mT).mT
    return matrix @ lower.inverse_of_lower().mT
