"""Normal numbers in float64, each with a bound on how far it may lie from the real number that its random bits stand for.

They decide most roundings at once; what they leave open is decided on balls (``sampling.symmetric``). Only operations are used that float64
rounds correctly: sums, products, quotients, square roots. Bounds: mechanisms/proofs/exact_release.md, Lemma 3."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray


def normal_pairs(first: Array, second: Array) -> tuple[Array, Array, Array]:
    """(r cos, r sin, error) with r = sqrt(-2 ln u) and the angle 2 pi v, of uniform u and v of which ``first`` and ``second`` are the
    first 64 bits. Both numbers are within ``error``, which is infinite where nothing is certain."""
    log, apart = _logarithm(first)
    square, off = -2 * log, 2 * apart
    certain = square > 2 * off
    radius = np.sqrt(np.where(certain, square, 1.0))
    cosine, sine = _direction(second)
    error = np.where(certain, 1.02 * off / radius + 2.0**-48 * radius, np.inf)
    return radius * cosine, radius * sine, error


def _logarithm(words: Array) -> tuple[Array, Array]:
    """ln u and a bound on its error; infinite where the word is small."""
    near = words.astype(np.float64)
    large = near >= 2.0**20
    near = np.where(large, near, 2.0**63)
    fraction, exponent = np.frexp(near * 2.0**-64)
    low = fraction < math.sqrt(0.5)
    fraction, exponent = np.where(low, 2 * fraction, fraction), exponent - low
    s = (fraction - 1) / (fraction + 1)
    series = _series([1 / (2 * k + 1) for k in range(12)], s * s)  # ln((1 + s)/(1 - s)) = 2 s (1 + s^2/3 + s^4/5 + ...)
    log = exponent * 0.6931471805599453 + 2 * s * series  # the float nearest to ln 2
    apart = 1.25 / near + 2.0**-50 * (np.abs(log) + 1)
    return log, np.where(large, apart, np.inf)


def _direction(words: Array) -> tuple[Array, Array]:
    """cos and sin of 2 pi v, each within 2^-50."""
    quarter = (words + np.uint64(1 << 61)) >> np.uint64(62)  # the nearest quarter turn; sums of words wrap around, as turns do
    rest = (words - (quarter << np.uint64(62))).view(np.int64)  # an eighth of a turn at most, either way
    x = 6.283185307179586 * (rest.astype(np.float64) * 2.0**-64)  # the float nearest to 2 pi
    cosine = _series([(-1) ** k / math.factorial(2 * k) for k in range(11)], x * x)
    sine = x * _series([(-1) ** k / math.factorial(2 * k + 1) for k in range(10)], x * x)
    odd, back = quarter % 2 == 1, quarter >= 2
    cosine, sine = np.where(odd, -sine, cosine), np.where(odd, cosine, sine)
    return np.where(back, -cosine, cosine), np.where(back, -sine, sine)


def _series(terms: list[float], x: Array) -> Array:
    """terms[0] + terms[1] x + terms[2] x^2 + ..., by Horner's rule."""
    total = np.full_like(x, terms[-1])
    for term in terms[-2::-1]:
        total = term + x * total
    return total
