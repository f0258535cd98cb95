"""What is certain about the eigenvalues of an exactly known symmetric matrix. All of it is a function of the matrix alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat

from dpgram.sampling.reals import RealMatrix, Undecided, cholesky, precision

Array = np.ndarray

FIRST_BITS, MOST_BITS = 128, 4096
BITS_PER_COLUMN = 512  # with so many more, a pivot that is not zero is told from zero: exact_release.md, Theorem 3


def middles(matrix: RealMatrix) -> Array:
    """The matrix in floats: good enough to look for something that is then certified."""
    with precision(64):
        return np.array([float(entry.mid()) for entry in matrix.at(64).entries()]).reshape(matrix.shape)


def is_above(matrix: RealMatrix, level: Fraction) -> bool | None:
    """Whether all eigenvalues are above ``level``; None where that is not certain, because one of them is ``level`` or next to it."""
    bits = FIRST_BITS
    while bits <= MOST_BITS + BITS_PER_COLUMN * len(matrix):
        with precision(bits):
            rows, shift = matrix.at(bits).tolist(), arb(level.numerator) / arb(level.denominator)
            for i, row in enumerate(rows):
                row[i] = row[i] - shift
            try:
                cholesky(rows)
            except Undecided as undecided:
                if undecided.not_definite:
                    return False
            else:
                return True
        bits *= 2
    return None


def smallest_from_below(matrix: RealMatrix, tolerance: float) -> Fraction:
    """A number that is at most the smallest eigenvalue of the positive semi-definite ``matrix``, and by at most ``tolerance``."""
    unit = Fraction(2) ** (math.frexp(tolerance)[1] - 4)  # between 1/16 and 1/8 of the tolerance
    high = _above_smallest(matrix, unit)
    width = 4 * unit
    while (low := high - width) > 0 and not is_above(matrix, low):
        width *= 4
    low = max(low, Fraction(0))  # no eigenvalue is negative
    while high - low > 8 * unit:
        middle, above = _decided_between(matrix, low, high, unit)
        low, high = (middle, high) if above else (low, middle)
    return low


def _above_smallest(matrix: RealMatrix, unit: Fraction) -> Fraction:
    """A multiple of ``unit`` that is at least the smallest eigenvalue: the quotient x'Gx / x'x of a vector close to its own."""
    try:
        vector = np.linalg.eigh(middles(matrix))[1][:, 0]
    except np.linalg.LinAlgError:  # any vector will do, and no table may be told by an error
        vector = np.eye(len(matrix))[0]
    with precision(256):
        x = arb_mat([[arb(float(entry))] for entry in vector])
        quotient = (x.transpose() * (matrix.at(256) * x))[0, 0] / (x.transpose() * x)[0, 0]
        mantissa, exponent = (int(part) for part in quotient.upper().man_exp())
    return unit * math.ceil(mantissa * Fraction(2) ** exponent / unit)


def _decided_between(matrix: RealMatrix, low: Fraction, high: Fraction, unit: Fraction) -> tuple[Fraction, bool]:
    """A level near the middle, and whether all eigenvalues are above it; another level where that is not certain of the first.

    It is uncertain only where the level is an eigenvalue of a leading block, so of d (d + 1)/2 + 1 levels one is certain."""
    places = 1 << (len(matrix) * (len(matrix) + 1) // 2).bit_length()
    for place in range(places):
        level = (low + high) / 2 + unit * Fraction(place, places)
        if (above := is_above(matrix, level)) is not None:
            return level, above
    raise ArithmeticError("no level was certain: this cannot be.")
