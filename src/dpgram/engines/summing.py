"""Record batches to an exact sum: the one inner loop of every engine, in a thread here or in a worker elsewhere."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from dpgram.encoding.encode import Batch, Encoder
from dpgram.native.library import ROWS_PER_TOTAL, MapPanels, kernel
from dpgram.rows.clip import bounded_images, check_map, clip, largest_square, mapped
from dpgram.rows.gram_sum import GramSum, stacked
from dpgram.rows.shares import Shares
from dpgram.rows.table import CellTable
from dpgram.sources.base import BATCH_ROWS, slices
from dpgram.terms.public_map import PublicMap, digest_of
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

Array = np.ndarray

BLAS_FROM = 640  # encoded columns from which BLAS multiplies faster than the kernel


class Summing:
    """Adds up the Gram of the batches that it is given, in NumPy, their rows multiplied by ``through`` where it is given, at one scale or
    several. One per thread: it is not shared.

    ``untyped`` columns hold bytes to be cast cell by cell."""

    block_rows = 4096  # encoded rows in flight: they stay in cache

    def __init__(
        self,
        schema: Schema,
        row_bound: float,
        through: PublicMap | None,
        scales: Scales,
        *,
        untyped: frozenset[str],
        shares: Shares | None = None,
    ):
        self._row_bound, self._through, self._scales = row_bound, through, scales
        self._shares = shares or Shares(schema)
        self._total = GramSum.zero(len(schema.encoded), row_bound, digest_of(through, scales), len(scales))
        self._prepare(schema, untyped)

    def add(self, batch: Batch) -> None:
        """Encode the batch's rows, shrink them to the bound and add them. May raise with cells in the message: call it quietly."""
        for block in slices(batch, self.block_rows):
            self._add_block(block)

    def total(self) -> GramSum:
        """The sum over all rows added so far."""
        return self._total

    def _prepare(self, schema: Schema, untyped: frozenset[str]) -> None:
        self._encoder = Encoder(schema, untyped=untyped)

    def _add_block(self, block: Batch) -> None:
        (encoded, counting), factors = self._encoder.encode_counted(block), self._shares.of(block)
        if counting is not None:
            factors = counting * (1.0 if factors is None else factors)
        bound, through = self._row_bound, self._through
        rows = clip(encoded, bound, factors) if through is None else mapped(encoded, bound, through, self._scales, factors)
        self._total = self._total.update(rows)


def summing_for(
    schema: Schema,
    row_bound: float,
    through: PublicMap | None = None,
    scales: Scales = ONE_CLIP,
    *,
    untyped: frozenset[str] = frozenset(),
    shares: Shares | None = None,
) -> Summing:
    """What sums here: the compiled kernel where there is one, else NumPy; the sum has the same bits.

    ``shares`` says what each row counts as; it can be left out where all count in full."""
    check_map(through, len(schema.encoded), row_bound, scales)
    compiled = _Compiled if len(schema.encoded) < BLAS_FROM else _CompiledRows
    return (Summing if kernel() is None else compiled)(schema, row_bound, through, scales, untyped=untyped, shares=shares)


class _Compiled(Summing):
    """The kernel does it all, rows and products."""

    block_rows = BATCH_ROWS  # most batches are no larger, and the kernel has blocks of its own

    def _prepare(self, schema: Schema, untyped: frozenset[str]) -> None:
        compiled = kernel()
        assert compiled is not None
        self._kernel, self._most = compiled, largest_square(self._row_bound)
        self._table = CellTable(schema, untyped=untyped)
        dim = len(schema.encoded)
        self._make_room(dim)
        self._recent = np.zeros((len(self._scales), dim, dim), dtype=np.int64)  # upper triangles, of rows not in the total yet
        self._recent_rows = 0  # at most ROWS_PER_TOTAL

    def _add_block(self, block: Batch) -> None:
        if self._recent_rows + block.num_rows > ROWS_PER_TOTAL:
            self._total = self.total()
            self._recent[:], self._recent_rows = 0, 0
        self._table.hold(block)
        self._add_rows(block.num_rows, self._shares.of(block))
        self._recent_rows += block.num_rows

    def _make_room(self, dim: int) -> None:
        through, scales = self._through, self._scales
        self._scratch = self._kernel.scratch(dim, len(scales))
        self._panels = None if through is None else MapPanels(through.whole, through.exponents, scales)

    def _add_rows(self, rows: int, factors: Array | None) -> None:
        self._kernel.add(self._table.columns, rows, self._most, self._scratch, self._recent, self._panels, factors)

    def total(self) -> GramSum:
        whole = np.triu(self._recent)
        whole += np.triu(self._recent, 1).mT
        digest = digest_of(self._through, self._scales)
        return self._total.merge(GramSum.of_integers(stacked([*whole]), self._recent_rows, self._row_bound, digest))


class _CompiledRows(_Compiled):
    """The kernel makes the rows, BLAS the products."""

    block_rows = 2048  # in one product; up to 4096 its sums are exact

    def _make_room(self, dim: int) -> None:
        self._points, self._sums = np.empty((dim, self.block_rows)), np.empty((dim, dim))

    def _add_rows(self, rows: int, factors: Array | None) -> None:
        through, columns = self._through, self._table.columns
        if through is None:
            points = self._kernel.points(columns, rows, self._most, self._points, factors)
            made = [np.ascontiguousarray(points)]  # BLAS is three times slower on a slice
        else:  # mapped rows are shrunk, and multiplied with their factors, after the map; rows that do not count are zero before it
            points = self._kernel.points(columns, rows, math.inf, self._points)
            images = np.dot(through.whole.astype(np.float64), np.ascontiguousarray(points))
            bounded = bounded_images(images, self._row_bound, through, self._scales, factors)
            made = [bounded.points, *bounded.outer]
        for each, total in zip(made, self._recent, strict=True):
            if each.shape[1]:
                self._kernel.add_sums(np.dot(each, each.T, out=self._sums), total)


def one_blas_thread(dim: int) -> AbstractContextManager:
    """Within it BLAS, where it is used at all, keeps to the calling thread: the pass has threads of its own, and idle ones of BLAS
    would spin."""
    if kernel() is not None and dim < BLAS_FROM:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")
