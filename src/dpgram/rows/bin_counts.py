"""How many rows lie in each of some public bins, column by column: whole numbers, the same on every machine.

Statement: a row adds at most its share to the bins of a column, whatever its cells hold: that share, rounded down to a multiple of 2^-40,
to the bin that its cell lies in, nothing where the cell is missing. A share is one, or less by weight and unit (rows/shares.py). What a
row adds depends on the rows of its unit, the schema and the bins alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpgram.encoding.encode import Batch, Encoder, cells_in
from dpgram.rows.gram_sum import LIMB_BITS, LIMB_MASK, GramSum
from dpgram.rows.shares import Shares, in_grid_units
from dpgram.terms.bins import Bins
from dpgram.terms.schema import Schema

Array = np.ndarray

COUNT_BOUND = 1.0  # a row adds one at most to any entry, as a row of norm one does to a Gram
SHARES_AT_ONCE = 2**22
SLOTS = 4096  # of equal width between the outermost edges


class BinCounts:
    """Counts the batches that it is given. One per thread: it is not shared."""

    def __init__(self, schema: Schema, bins: Bins, *, untyped: frozenset[str] = frozenset(), shares: Shares | None = None):
        self._bins, self._encoder, self._shares = bins, Encoder(schema, untyped=untyped), shares or Shares(schema)
        self._columns = [schema.by_name[name] for name in bins.inner]
        self._edges = [_Edges(np.array(edges)) for edges in bins.inner.values()]
        self._counts = [np.zeros((2, len(edges) + 1), dtype=np.int64) for edges in bins.inner.values()]  # whole, and in 2^-40
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Count the batch's rows. May raise with cells in the message: call it quietly."""
        self._encoder.check_types(batch.schema)
        factors = self._shares.of(batch)
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            for column, edges, counts in zip(self._columns, self._edges, self._counts, strict=True):
                cells = cells_in(batch, column)
                there = ~np.isnan(cells)
                whole = there if factors is None else there & (factors == 1.0)
                counts[0] += edges.counted(cells if whole.all() else cells[whole])
                if factors is None:
                    continue
                for part in _few_at_a_time(there & ~whole):
                    np.add.at(counts[1], edges.places(cells[part]), in_grid_units(factors[part], LIMB_BITS))
                    counts[0] += counts[1] >> LIMB_BITS
                    counts[1] &= LIMB_MASK
        self._rows += batch.num_rows

    def total(self) -> GramSum:
        """The counts of all rows added so far, packed."""
        whole, part = np.concatenate(self._counts, axis=1)
        return packed_counts(self._bins, whole, self._rows, part)


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

    def places(self, cells: Array) -> Array:
        """The bin of each of the numbers."""
        return np.searchsorted(self._edges, cells, side="right")

    def _slots(self, cells: Array) -> Array:
        """From 0 to SLOTS, whose last one holds what is beyond the edges."""
        places = (cells - self._edges[0]) * self._per_unit
        return np.clip(places, 0, SLOTS, out=places).astype(np.int16)


def _few_at_a_time(chosen: Array) -> Iterator[Array]:
    """The chosen places, so few at a time that 63 bits hold the sum of their shares and what was there before."""
    places = np.flatnonzero(chosen)
    return (places[start : start + SHARES_AT_ONCE] for start in range(0, len(places), SHARES_AT_ONCE))


def counted(cells: Array, edges: Array) -> Array:
    """How many of the numbers lie in each bin."""
    return np.bincount(np.searchsorted(edges, cells, side="right"), minlength=len(edges) + 1)


def packed_counts(bins: Bins, counts: Array, rows: int, part: Array | None = None) -> GramSum:
    """Counts, column after column, as a sum over ``rows`` rows; ``part`` of one more, in units of 2^-40."""
    whole = bins.packed(counts)
    low = np.zeros_like(whole) if part is None else bins.packed(part)
    return GramSum(high=whole, low=low, rows=rows, row_bound=COUNT_BOUND)
