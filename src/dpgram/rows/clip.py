"""Rows on a fixed-point grid, with a norm bound that holds exactly.

Statement: whatever the encoded values, the rows that come out are vectors q of whole numbers with
sum(q^2) <= floor(row_bound^2 * 4^20), so z = q / 2^20 has ||z||_2 <= row_bound in exact arithmetic.

Encoded values are put on the grid of step 2^-20 by rounding towards zero, which never lengthens a row and keeps -1, 0
and 1 as they are. The sum of squares is then a whole number below 2^53, hence exact in float64 in any order. A row above
the bound is multiplied by a factor just below sqrt(bound / sum) and rounded towards zero again. Multiplication, division
and square root are correctly rounded on every machine, so every machine gets the same rows to the bit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpgram.errors import BoundBrokenError
from dpgram.terms.schema import MOST_ENCODED_COLUMNS

Array = np.ndarray

GRID_BITS = 20
GRID = 2**GRID_BITS  # points per unit
JUST_BELOW_ONE = 1 - 2.0**-50  # more than division, square root and product can round up: 2^-51 in all


@dataclass(frozen=True, repr=False, eq=False)
class BoundedRows:
    """Rows whose norm is at most ``row_bound``. Only ``clip`` makes them: the type is the evidence."""

    points: Array  # (columns, rows), whole numbers in float64; a row is a column of this, in units of 1/GRID
    row_bound: float

    def __repr__(self) -> str:
        return f"BoundedRows(dim={len(self.points)}, row_bound={self.row_bound:g}, points=<private>)"


def largest_square(row_bound: float) -> int:
    """The largest sum of squares, in grid units, that a row may have."""
    return int(Fraction(row_bound) ** 2 * GRID**2)  # a positive Fraction is rounded down by int()


def clip(encoded: Array, row_bound: float) -> BoundedRows:
    """The columns of ``encoded``, entries in [-1, 1], as rows of norm at most ``row_bound``.

    NaN and infinity cannot get here from ``Encoder``; were they to, they count as zero and as the nearest bound."""
    if len(encoded) > MOST_ENCODED_COLUMNS:
        raise BoundBrokenError  # sums of squares would not be exact
    most = float(largest_square(row_bound))
    points = np.nan_to_num(encoded, nan=0.0, posinf=1.0, neginf=-1.0)
    np.clip(points, -1.0, 1.0, out=points)
    points *= GRID
    np.trunc(points, out=points)
    squares = _squares(points)
    over = squares > most
    if over.any():
        points[:, over] = np.trunc(points[:, over] * (np.sqrt(most / squares[over]) * JUST_BELOW_ONE))
        if (_squares(points[:, over]) > most).any():
            raise BoundBrokenError
    return BoundedRows(points, row_bound)


def _squares(points: Array) -> Array:
    return np.einsum("ij,ij->j", points, points)
