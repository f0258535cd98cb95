"""How many rows lie in each of some public bins, column by column: whole numbers, the same on every machine.

Statement: a row adds at most one to the bins of a column, whatever its cells hold: one to the bin that its cell lies in, nothing where
the cell is missing. What it adds depends on the row, the schema and the bins alone."""

from __future__ import annotations

import math

import numpy as np

from dpgram.encoding.encode import Batch, Encoder, cells_in
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.bins import Bins
from dpgram.terms.schema import Schema

Array = np.ndarray

COUNT_BOUND = 1.0  # a row adds one at most to any entry, as a row of norm one does to a Gram
SLOTS = 4096  # of equal width between the outermost edges


class BinCounts:
    """Counts the batches that it is given. One per thread: it is not shared."""

    def __init__(self, schema: Schema, bins: Bins, *, untyped: frozenset[str] = frozenset()):
        self._bins, self._encoder = bins, Encoder(schema, untyped=untyped)
        self._columns = [schema.by_name[name] for name in bins.inner]
        self._edges = [_Edges(np.array(edges)) for edges in bins.inner.values()]
        self._counts = [np.zeros(len(edges) + 1, dtype=np.int64) for edges in bins.inner.values()]
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Count the batch's rows. May raise with cells in the message: call it quietly."""
        self._encoder.check_types(batch.schema)
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            for column, edges, counts in zip(self._columns, self._edges, self._counts, strict=True):
                cells = cells_in(batch, column)
                missing = np.isnan(cells)
                counts += edges.counted(cells[~missing] if missing.any() else cells)
        self._rows += batch.num_rows

    def total(self) -> GramSum:
        """The counts of all rows added so far, packed."""
        return packed_counts(self._bins, np.concatenate(self._counts), self._rows)


class _Edges:
    """The inner edges of a column's bins, and slots by which most numbers are counted without a search.

    A number's slot never falls as the number rises, whatever its computation rounds. So numbers in a slot that holds no edge all lie above
    the edges of earlier slots and below those of later ones: in one bin. Only numbers in the few slots that hold an edge are searched."""

    def __init__(self, edges: Array):
        self._edges = edges
        width = float(edges[-1]) - float(edges[0]) if len(edges) else 0.0
        self._per_unit = SLOTS / width if width else math.inf
        self._useful = 0 < self._per_unit < math.inf
        if self._useful:
            slots = self._slots(edges)
            self._bin = np.searchsorted(slots, np.arange(SLOTS + 1))  # of a slot that holds no edge
            self._holds_edge = np.isin(np.arange(SLOTS + 1), slots)

    def counted(self, cells: Array) -> Array:
        """How many of the numbers, none of which is NaN, lie in each bin."""
        if not self._useful:
            return counted(cells, self._edges)
        slots = self._slots(cells)
        found = counted(cells[self._holds_edge[slots]], self._edges)
        np.add.at(found, self._bin, np.where(self._holds_edge, 0, np.bincount(slots, minlength=SLOTS + 1)))
        return found

    def _slots(self, cells: Array) -> Array:
        """From 0 to SLOTS, whose last one holds what is beyond the edges."""
        places = (cells - self._edges[0]) * self._per_unit
        return np.clip(places, 0, SLOTS, out=places).astype(np.int16)


def counted(cells: Array, edges: Array) -> Array:
    """How many of the numbers lie in each bin."""
    return np.bincount(np.searchsorted(edges, cells, side="right"), minlength=len(edges) + 1)


def packed_counts(bins: Bins, counts: Array, rows: int) -> GramSum:
    """Counts, column after column, as a sum over ``rows`` rows."""
    whole = bins.packed(counts)
    return GramSum(high=whole, low=np.zeros_like(whole), rows=rows, row_bound=COUNT_BOUND)
