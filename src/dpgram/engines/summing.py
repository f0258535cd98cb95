"""Record batches to an exact sum: the one inner loop of every engine, in a thread here or in a worker elsewhere."""

from __future__ import annotations

import pyarrow as pa

from dpgram.gram.accumulator import GramSum
from dpgram.rows.clip import clip
from dpgram.rows.encode import Encoder
from dpgram.sources.base import slices
from dpgram.terms.schema import Schema

BLOCK_ROWS = 8192  # encoded rows in flight: 8 KiB per column and thousand rows, whatever the source's batches


class Summing:
    """Adds up the Gram of the batches that it is given. One per thread: it is not shared.

    ``untyped`` columns hold bytes to be cast cell by cell."""

    def __init__(self, schema: Schema, row_bound: float, *, untyped: frozenset[str] = frozenset()):
        self._encoder = Encoder(schema, untyped=untyped)
        self._row_bound = row_bound
        self._total = GramSum.zero(len(schema.encoded), row_bound)

    def add(self, batch: pa.RecordBatch) -> None:
        """Encode the batch's rows, shrink them to the bound and add them. May raise with cells in the message: call it quietly."""
        for block in slices(batch, BLOCK_ROWS):
            self._total = self._total.update(clip(self._encoder.encode(block), self._row_bound))

    def total(self) -> GramSum:
        """The sum over all rows added so far."""
        return self._total
