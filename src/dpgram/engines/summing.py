"""Record batches to an exact sum: the one inner loop of every engine, in a thread here or in a worker elsewhere."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from dpgram.gram.accumulator import GramSum
from dpgram.native.library import MOST_ROWS, Kernel, kernel
from dpgram.rows.batch import Batch
from dpgram.rows.clip import clip, largest_square
from dpgram.rows.encode import Encoder
from dpgram.rows.table import CellTable
from dpgram.sources.base import slices
from dpgram.terms.schema import Schema

BLOCK_ROWS = 8192  # encoded rows in flight where NumPy sums: 8 KiB per column and thousand rows
BATCH_ROWS = 32_768  # rows in flight for the compiled kernel, which has blocks of its own
BLAS_FROM = 384  # encoded columns from which BLAS multiplies faster than the kernel
BLAS_ROWS = 4096  # in one product, whose sums are then exact


class Summing:
    """Adds up the Gram of the batches that it is given. One per thread: it is not shared.

    ``untyped`` columns hold bytes to be cast cell by cell. The compiled kernel does the work where there is one, else NumPy; the sum has
    the same bits."""

    def __init__(self, schema: Schema, row_bound: float, *, untyped: frozenset[str] = frozenset()):
        found = kernel()
        self._sum: _Compiled | _InNumPy = (
            _InNumPy(schema, row_bound, untyped) if found is None else _Compiled(found, schema, row_bound, untyped)
        )

    def add(self, batch: Batch) -> None:
        """Encode the batch's rows, shrink them to the bound and add them. May raise with cells in the message: call it quietly."""
        self._sum.add(batch)

    def total(self) -> GramSum:
        """The sum over all rows added so far."""
        return self._sum.total()


class _InNumPy:
    def __init__(self, schema: Schema, row_bound: float, untyped: frozenset[str]):
        self._encoder = Encoder(schema, untyped=untyped)
        self._row_bound = row_bound
        self._total = GramSum.zero(len(schema.encoded), row_bound)

    def add(self, batch: Batch) -> None:
        for block in slices(batch, BLOCK_ROWS):
            self._total = self._total.update(clip(self._encoder.encode(block), self._row_bound))

    def total(self) -> GramSum:
        return self._total


class _Compiled:
    def __init__(self, found: Kernel, schema: Schema, row_bound: float, untyped: frozenset[str]):
        dim = len(schema.encoded)
        self._kernel, self._row_bound, self._most = found, row_bound, largest_square(row_bound)
        self._table = CellTable(schema, untyped=untyped)
        self._by_blas = dim >= BLAS_FROM
        self._scratch = found.scratch(0 if self._by_blas else dim)
        self._recent, self._recent_rows = np.zeros((dim, dim), dtype=np.int64), 0  # upper triangle, at most MOST_ROWS rows
        self._earlier = GramSum.zero(dim, row_bound)

    def add(self, batch: Batch) -> None:
        for block in slices(batch, BLAS_ROWS if self._by_blas else BATCH_ROWS):
            if self._recent_rows + block.num_rows > MOST_ROWS:
                self._earlier = self.total()
                self._recent[:], self._recent_rows = 0, 0
            self._table.hold(block)
            if self._by_blas:
                points = np.ascontiguousarray(self._kernel.points(self._table.columns, block.num_rows, self._most))
                self._kernel.add_sums(np.dot(points, points.T), self._recent)
            else:
                self._kernel.add(self._table.columns, block.num_rows, self._most, self._scratch, self._recent)
            self._recent_rows += block.num_rows

    def total(self) -> GramSum:
        whole = np.triu(self._recent) + np.triu(self._recent, 1).T
        return self._earlier.merge(GramSum.of_integers(whole, self._recent_rows, self._row_bound))


def one_blas_thread(dim: int) -> AbstractContextManager:
    """Within it BLAS, where it is used at all, keeps to the calling thread: the pass has threads of its own, and idle ones of BLAS
    would spin."""
    if kernel() is not None and dim < BLAS_FROM:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")
