"""Rows on a fixed-point grid, with a norm bound that holds exactly; before it, if asked, a public linear map.

Statement: whatever the encoded values, and whatever the map, the rows that come out are vectors q of whole numbers with
sum(q^2) <= floor(row_bound^2 * 4^20), so z = q / 2^20 has ||z||_2 <= row_bound in exact arithmetic.

Encoded values are put on the grid of step 2^-20 by rounding towards zero, which never lengthens a row and keeps -1, 0
and 1 as they are. The sum of squares is then a whole number below 2^53, hence exact in float64 in any order. A row above
the bound is multiplied by a factor just below sqrt(bound / sum) and rounded towards zero again. Multiplication, division
and square root are correctly rounded on every machine, so every machine gets the same rows to the bit.

A map is applied to the grid points x. Its products and their sums are whole numbers of at most 2^53 (see PublicMap), exact in any
order and with fused operations; the power of two of each of its rows is exact too. A row with an entry of 2^21 or more is
multiplied by the power of two that brings its largest entry into [2^20, 2^21): what that loses lies below the grid. Then it is
rounded towards zero like any other. Entries are now whole numbers below 2^21, so for at most 2048 columns the sum of squares is again
below 2^53 and exact, and the clip goes on as above. A row that was scaled still has a norm of at least 1, the largest bound of mapped
rows, so the clip takes it to the bound as it would have without, and in the same direction."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpgram.errors import BoundBrokenError, MechanismError
from dpgram.terms.public_map import PublicMap
from dpgram.terms.schema import MOST_ENCODED_COLUMNS

Array = np.ndarray

GRID_BITS = 20
GRID = 2**GRID_BITS  # points per unit
MAPPED_BITS = GRID_BITS + 1  # mapped points are below 2^21 before the clip
MAPPED_BOUND = 1.0  # the largest bound of mapped rows: their clipped points are then at most 2^20, as those of other rows are
JUST_BELOW_ONE = 1 - 2.0**-50  # more than division, square root and product can round up: 2^-51 in all


@dataclass(frozen=True, repr=False, eq=False)
class BoundedRows:
    """Rows whose norm is at most ``row_bound``. Only ``clip``, ``mapped`` and its second half make them: the type is the
    evidence."""

    points: Array  # (columns, rows), whole numbers in float64; a row is a column of this, in units of 1/GRID
    row_bound: float
    through: str = ""  # which map they went through, by its digest

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
    return BoundedRows(_shrunk(_grid_points(encoded), row_bound), row_bound)


def mapped(encoded: Array, row_bound: float, through: PublicMap) -> BoundedRows:
    """The columns of ``encoded``, entries in [-1, 1], multiplied by ``through`` and then shrunk to ``row_bound``, at most 1.

    Where the map's product is z, rows are within 2^-19 or so of min(1, row_bound / ||z||) z. NaN and infinity count as in ``clip``."""
    check_map(through, len(encoded), row_bound)
    return bounded_images(through.whole.astype(np.float64) @ _grid_points(encoded), row_bound, through)


def bounded_images(points: Array, row_bound: float, through: PublicMap) -> BoundedRows:
    """The second half of ``mapped``, for a map that was checked: ``points`` are the products of its whole numbers with the rows' grid
    points, and are overwritten."""
    points *= np.ldexp(1.0, -through.exponents)[:, None]
    largest = np.abs(points).max(axis=0)
    power = np.where(largest >= 2.0**MAPPED_BITS, MAPPED_BITS - np.frexp(largest)[1], 0)
    with np.errstate(under="ignore"):  # an entry too small for float64 is far below one grid point, and so zero in the end
        points *= np.ldexp(1.0, power)
    np.trunc(points, out=points)
    return BoundedRows(_shrunk(points, row_bound), row_bound, through.digest)


def check_map(through: PublicMap | None, dim: int, row_bound: float) -> None:
    """Raise MechanismError if rows of ``dim`` entries cannot be mapped by ``through`` and shrunk to ``row_bound``."""
    if through is None:
        return
    if len(through.whole) != dim:
        raise MechanismError(f"a public map of {len(through.whole)} columns cannot map rows of {dim} encoded columns.")
    if not 0 < row_bound <= MAPPED_BOUND:
        raise MechanismError(
            f"mapped rows have row_bound={row_bound:g}, and a bound above 0 and of at most {MAPPED_BOUND:g} is needed: scale the map."
        )


def _grid_points(encoded: Array) -> Array:
    points = np.nan_to_num(encoded, nan=0.0, posinf=1.0, neginf=-1.0)
    np.clip(points, -1.0, 1.0, out=points)
    points *= GRID
    return np.trunc(points, out=points)


def _shrunk(points: Array, row_bound: float) -> Array:
    """The points, which are overwritten: columns above the bound are shrunk to it."""
    most = float(largest_square(row_bound))
    squares = _squares(points)
    over = squares > most
    if over.any():
        points[:, over] = np.trunc(points[:, over] * (np.sqrt(most / squares[over]) * JUST_BELOW_ONE))
        if (_squares(points[:, over]) > most).any():
            raise BoundBrokenError
    return points


def _squares(points: Array) -> Array:
    return np.einsum("ij,ij->j", points, points)
