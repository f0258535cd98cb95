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
rows, so the clip takes it to the bound as it would have without, and in the same direction.

At several scales R_k a row z of squared length s above 1 is shared between two sums: w_0 goes to the first, w_k to that of the first scale
with s <= .8 R_k, both along z, with |w_0|^2 = cos t and |w_k|^2 = sin t, where cos t + R_k sin t = s. So |w_0|^4 + |w_k|^4 <= 1, whatever s
is: both are rounded down like any other row. The sum of the k-th is in units of R_k.

Last, a row that counts as a share of one is multiplied by its factor, at most the square root of that share, and rounded towards zero once
more: each part of it becomes shorter by at least that factor (rows/shares.py)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpgram.errors import BoundBrokenError, MechanismError
from dpgram.terms.public_map import PublicMap, digest_of
from dpgram.terms.scales import MOST_SCALES, ONE_CLIP, SWITCH, Scales, first_scales
from dpgram.terms.schema import MOST_ENCODED_COLUMNS

Array = np.ndarray

GRID_BITS = 20
GRID = 2**GRID_BITS  # points per unit
MAPPED_BITS = GRID_BITS + 1  # mapped points are below 2^21 before the clip
MAPPED_BOUND = 1.0  # the largest bound of mapped rows: their clipped points are then at most 2^20, as those of other rows are
JUST_BELOW_ONE = 1 - 2.0**-50  # more than division, square root and product can round up: 2^-51 in all
LEAST_POWER = (
    2.0**-GRID_BITS
)  # of two: a row that was scaled by less than this is longer than every scale, and its square still a float
MOST_TOGETHER = 1 - 2.0**-51  # of |w_0|^4 + |w_k|^4, in floats: what rounding hides of it is half as much


@dataclass(frozen=True, repr=False, eq=False)
class BoundedRows:
    """Rows whose norm is at most ``row_bound``. Only ``clip``, ``mapped`` and its second half make them: the type is the
    evidence.

    At several scales ``points`` holds what of each row is for the first, and ``outer`` what of long ones is for each of the others."""

    points: Array  # (columns, rows), whole numbers in float64; a row is a column of this, in units of 1/GRID
    row_bound: float
    through: str = ""  # which map they went through, and to how many scales, by its digest
    outer: tuple[Array, ...] = ()  # (columns, some of the rows) for each scale but the first

    def __repr__(self) -> str:
        return f"BoundedRows(dim={len(self.points)}, row_bound={self.row_bound:g}, points=<private>)"


def largest_square(row_bound: float) -> int:
    """The largest sum of squares, in grid units, that a row may have."""
    return int(Fraction(row_bound) ** 2 * GRID**2)  # a positive Fraction is rounded down by int()


def clip(encoded: Array, row_bound: float, factors: Array | None = None) -> BoundedRows:
    """The columns of ``encoded``, entries in [-1, 1], as rows of norm at most ``row_bound``, multiplied by ``factors`` of at most one.

    NaN and infinity cannot get here from ``Encoder``; were they to, they count as zero and as the nearest bound."""
    if len(encoded) > MOST_ENCODED_COLUMNS:
        raise BoundBrokenError  # sums of squares would not be exact
    return BoundedRows(_times(_shrunk(_grid_points(encoded), row_bound), factors), row_bound)


def mapped(
    encoded: Array, row_bound: float, through: PublicMap, scales: Scales = ONE_CLIP, factors: Array | None = None
) -> BoundedRows:
    """The columns of ``encoded``, entries in [-1, 1], multiplied by ``through`` and then shrunk to ``row_bound``, at most 1; last by
    ``factors`` of at most one.

    Where the map's product is z, rows are within 2^-19 or so of min(1, row_bound / ||z||) z. NaN and infinity count as in ``clip``."""
    check_map(through, len(encoded), row_bound, scales)
    return bounded_images(through.whole.astype(np.float64) @ _grid_points(encoded), row_bound, through, scales, factors)


def bounded_images(
    points: Array, row_bound: float, through: PublicMap, scales: Scales = ONE_CLIP, factors: Array | None = None
) -> BoundedRows:
    """The second half of ``mapped``, for a map that was checked: ``points`` are the products of its whole numbers with the rows' grid
    points, and are overwritten."""
    points *= np.ldexp(1.0, -through.exponents)[:, None]
    largest = np.abs(points).max(axis=0)
    powers = np.ldexp(1.0, np.where(largest >= 2.0**MAPPED_BITS, MAPPED_BITS - np.frexp(largest)[1], 0))
    with np.errstate(under="ignore"):  # an entry too small for float64 is far below one grid point, and so zero in the end
        points *= powers
    np.trunc(points, out=points)
    if len(scales) == 1:
        return BoundedRows(_times(_shrunk(points, row_bound), factors), row_bound, through.digest)
    outer = _shared(points, powers, scales, factors)
    return BoundedRows(_times(points, factors), row_bound, digest_of(through, scales), outer)


def check_map(through: PublicMap | None, dim: int, row_bound: float, scales: Scales = ONE_CLIP) -> None:
    """Raise MechanismError if rows of ``dim`` entries cannot be mapped by ``through`` and shrunk to ``row_bound``, at these scales."""
    if scales != ONE_CLIP and (through is None or row_bound != MAPPED_BOUND):
        raise MechanismError(f"rows are summed at several scales after a public map, with a bound of {MAPPED_BOUND:g}.")
    if not 1 <= len(scales) <= MOST_SCALES or scales != first_scales(len(scales)):
        raise MechanismError(f"scales are {scales}, and must be the first of {first_scales(MOST_SCALES)}.")
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
        points[:, over] = _taken_to(most, points[:, over], squares[over])
        if (_squares(points[:, over]) > most).any():
            raise BoundBrokenError
    return points


def _taken_to(most: float | Array, points: Array, squares: Array) -> Array:
    """The points, whose sums of squares are ``squares``, shrunk until those are at most ``most``, and hardly less."""
    return np.trunc(points * (np.sqrt(most / squares) * JUST_BELOW_ONE))


def _times(points: Array, factors: Array | None) -> Array:
    """The points, which are overwritten: each column multiplied by its factor."""
    if factors is not None:
        points *= np.clip(factors, 0.0, 1.0)
        np.trunc(points, out=points)
    return points


def _shared(points: Array, powers: Array, scales: Scales, factors: Array | None) -> tuple[Array, ...]:
    """What of long columns is for each scale but the first; what is for the first stays in ``points``, which are overwritten.

    ``powers`` of two were multiplied with the columns before they were truncated. A square is that of the row before."""
    squares = _squares(points)
    powers = np.maximum(powers, LEAST_POWER)
    lengths = squares * GRID**-2.0 / (powers * powers)  # exact: products with powers of two
    long = np.flatnonzero(lengths > 1.0)
    steps = SWITCH * np.array(scales[1:])
    lengths, squares, rows = np.minimum(lengths[long], steps[-1]), squares[long], points[:, long]
    place = np.searchsorted(steps, lengths)  # the first step that is not below
    inner, outer = _shares(lengths, np.array(scales[1:])[place])
    first, second = (_taken_to(share * GRID**2, rows, squares) for share in (inner, outer))
    one, other = (_squares(part) * GRID**-2.0 for part in (first, second))
    if not (one * one + other * other <= MOST_TOGETHER).all():
        raise BoundBrokenError
    points[:, long] = first
    second = _times(second, None if factors is None else factors[long])
    return tuple(second[:, place == k] for k in range(len(steps)))


def _shares(length: Array, scale: Array) -> tuple[Array, Array]:
    """cos t and sin t with cos t + ``scale`` sin t = ``length``, t as small as can be."""
    total = 1.0 + scale * scale
    root = np.sqrt(total - length * length)
    return (length + scale * root) / total, (scale * length - root) / total


def _squares(points: Array) -> Array:
    return np.einsum("ij,ij->j", points, points)
