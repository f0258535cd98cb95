"""How many rows lie in each of some public bins, column by column: whole numbers, the same on every machine.

Statement: a row adds at most one to the bins of a column, whatever its cells hold: one to the bin that its cell lies in, nothing where
the cell is missing. What it adds depends on the row, the schema and the bins alone."""

from __future__ import annotations

import numpy as np

from dpgram.encoding.encode import Batch, Encoder, cells_in
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.bins import Bins
from dpgram.terms.schema import Schema

Array = np.ndarray

COUNT_BOUND = 1.0  # a row adds one at most to any entry, as a row of norm one does to a Gram


class BinCounts:
    """Counts the batches that it is given. One per thread: it is not shared."""

    def __init__(self, schema: Schema, bins: Bins, *, untyped: frozenset[str] = frozenset()):
        self._bins, self._encoder = bins, Encoder(schema, untyped=untyped)
        self._columns = [schema.by_name[name] for name in bins.inner]
        self._edges = [np.array(edges) for edges in bins.inner.values()]
        self._counts = [np.zeros(len(edges) + 1, dtype=np.int64) for edges in self._edges]
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Count the batch's rows. May raise with cells in the message: call it quietly."""
        self._encoder.check_types(batch.schema)
        for column, edges, counts in zip(self._columns, self._edges, self._counts, strict=True):
            with np.errstate(all="ignore"):  # a warning would depend on somebody's row
                cells = cells_in(batch, column)
            counts += counted(cells[~np.isnan(cells)], edges)
        self._rows += batch.num_rows

    def total(self) -> GramSum:
        """The counts of all rows added so far, packed."""
        return packed_counts(self._bins, np.concatenate(self._counts), self._rows)


def counted(cells: Array, edges: Array) -> Array:
    """How many of the numbers lie in each bin."""
    return np.bincount(np.searchsorted(edges, cells, side="right"), minlength=len(edges) + 1)


def packed_counts(bins: Bins, counts: Array, rows: int) -> GramSum:
    """Counts, column after column, as a sum over ``rows`` rows."""
    whole = bins.packed(counts)
    return GramSum(high=whole, low=np.zeros_like(whole), rows=rows, row_bound=COUNT_BOUND)
