"""GramSum: the exact sum of z z' over all rows seen, in any order, in any number of parts. It carries no noise yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpgram.errors import BoundMismatchError, MapMismatchError
from dpgram.rows.clip import GRID_BITS, BoundedRows

Array = np.ndarray

LIMB_BITS = 40
LIMB_MASK = 2**LIMB_BITS - 1
ROUNDED_ROWS = 2**52  # at most; the upper limb is then below 2^53, which float64 holds exactly

# A grid point is at most 2^20, so a product is at most 2^40 and a sum over 4096 rows at most 2^52: every partial sum, in
# whatever order BLAS takes them, is a whole number below 2^53, which float64 holds exactly.
BLOCK_ROWS = 2 ** (52 - 2 * GRID_BITS)
BLOCKS_PER_SUM = 2**10  # 2^10 blocks of at most 2^52 each stay below 2^63


@dataclass(frozen=True, repr=False, eq=False)
class GramSum:
    """Sum of z z' over the rows seen. Unprotected: it stays with the curator and prints no numbers.

    Over rows at several scales it is one sum for each, one behind the other: (scales, dim, dim). All of it is done entry by entry.
    In grid units the sum is ``high * 2^40 + low`` with 0 <= low < 2^40. A row adds at most 2^40 to an entry, so ``high``
    has room for 2^62 rows. Being whole numbers, the sum has the same bits whatever the chunking and the order of rows."""

    high: Array
    low: Array
    rows: int
    row_bound: float
    through: str = ""  # which public map the rows went through, and to how many scales, by its digest; of none it is empty

    @classmethod
    def zero(cls, dim: int, row_bound: float, through: str = "", scales: int = 1) -> GramSum:
        nothing = stacked([np.zeros((dim, dim), dtype=np.int64)] * scales)
        return cls(high=nothing, low=nothing, rows=0, row_bound=row_bound, through=through)

    @classmethod
    def of_integers(cls, total: Array, rows: int, row_bound: float, through: str = "") -> GramSum:
        """A sum that was made elsewhere, as int64 in grid units."""
        return cls(high=total >> LIMB_BITS, low=total & LIMB_MASK, rows=rows, row_bound=row_bound, through=through)

    def update(self, rows: BoundedRows) -> GramSum:
        """This sum and the rows."""
        whole = stacked([integer_gram(points) for points in (rows.points, *rows.outer)])
        return self.merge(GramSum.of_integers(whole, rows.points.shape[1], rows.row_bound, rows.through))

    def merge(self, other: GramSum) -> GramSum:
        """This sum and another."""
        if other.row_bound != self.row_bound:
            raise BoundMismatchError(expected=self.row_bound, got=other.row_bound)
        if other.through != self.through:
            raise MapMismatchError
        low = self.low + other.low
        high = self.high + other.high + (low >> LIMB_BITS)
        return replace(self, high=high, low=low & LIMB_MASK, rows=self.rows + other.rows)

    def in_whole_numbers(self) -> tuple[Array, int]:
        """(whole, e): the sum of z z' is exactly ``whole`` times 2^e; Python's integers, so that no number of rows is too many."""
        return (self.high.astype(object) << LIMB_BITS) + self.low.astype(object), -2 * GRID_BITS

    def in_scaled_units(self) -> Array:
        """The sum of z z' in float64, each entry the exact value correctly rounded."""
        if self.rows > ROUNDED_ROWS:
            raise OverflowError("a sum over more than 2^52 rows cannot be rounded exactly: release the table in parts.")
        # Both terms are exact in float64, so the one addition is the one rounding.
        return np.ldexp(np.ldexp(self.high.astype(np.float64), LIMB_BITS) + self.low, -2 * GRID_BITS)

    def __repr__(self) -> str:
        return f"GramSum(dim={self.low.shape[-1]}, row_bound={self.row_bound:g}, total=<private>)"


def stacked(sums: Sequence[Array]) -> Array:
    """One matrix as it is, several one behind the other."""
    return sums[0] if len(sums) == 1 else np.stack(sums)


def integer_gram(points: Array) -> Array:
    """``points @ points.T`` for whole-number points, as exact int64 and at BLAS speed; at most 2^22 rows at a time."""
    if points.shape[1] > BLOCK_ROWS * BLOCKS_PER_SUM:
        raise OverflowError("too many rows for one exact sum: pass them in smaller blocks")
    total = np.zeros((len(points), len(points)), dtype=np.int64)
    for start in range(0, points.shape[1], BLOCK_ROWS):
        block = np.ascontiguousarray(points[:, start : start + BLOCK_ROWS])  # BLAS is three times slower on a slice
        total += np.dot(block, block.T).astype(np.int64)
    return total
