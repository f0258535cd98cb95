"""The inner loop: the Gram of bounded rows, summed exactly at BLAS speed."""

from __future__ import annotations

import numpy as np

from dpgram.rows.clip import GRID_BITS

Array = np.ndarray

# A grid point is at most 2^20, so a product is at most 2^40 and a sum over 4096 rows at most 2^52: every partial sum, in
# whatever order BLAS takes them, is a whole number below 2^53, which float64 holds exactly.
BLOCK_ROWS = 2 ** (52 - 2 * GRID_BITS)
BLOCKS_PER_SUM = 2**10  # 2^10 blocks of at most 2^52 each stay below 2^63


def integer_gram(points: Array) -> Array:
    """``points @ points.T`` for whole-number points, as exact int64; at most 2^22 rows at a time."""
    if points.shape[1] > BLOCK_ROWS * BLOCKS_PER_SUM:
        raise OverflowError("too many rows for one exact sum: pass them in smaller blocks")
    total = np.zeros((len(points), len(points)), dtype=np.int64)
    for start in range(0, points.shape[1], BLOCK_ROWS):
        block = np.ascontiguousarray(points[:, start : start + BLOCK_ROWS])  # BLAS is three times slower on a slice
        total += np.dot(block, block.T).astype(np.int64)
    return total
