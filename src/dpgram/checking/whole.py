"""What is counted of whole rows, a batch at a time: rows that do not count, rows that are clipped, and the exact Gram of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from dpgram.encoding.encode import encoded_numbers
from dpgram.rows.clip import clip, largest_square
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.columns import DROP_ROW, Column
from dpgram.terms.schema import Schema

Array = np.ndarray
BLOCK_ROWS = 4096  # encoded rows in flight
HARDLY_READ = 0.5  # share of missing cells in the first batch


class WholeTally:
    """Counts rows under a schema whose columns are all there.

    A column of which hardly a cell can be read would drop all rows. If it is so in the first batch, it is left out of the Gram, so that the
    other columns can be compared."""

    def __init__(self, schema: Schema):
        self._all = schema.columns
        self.schema: Schema | None = schema  # of the Gram
        self.rows = self.dropped = self.counting = self.clipped = 0
        self.dropped_for: Counter[str] = Counter()  # by column: rows that its missing cells drop
        self.gram: GramSum | None = None  # over the rows that count, where there are any

    def add(self, cells: Mapping[str, Array], counting: Array) -> None:
        """Count rows, given as cells by column, NaN where one is missing; ``counting`` says which have an id and a weight."""
        missing = {column.name: np.isnan(cells[column.name]) for column in self._all if column.missing == DROP_ROW}
        if not self.rows and self.schema is not None:
            self.schema = restricted(self.schema, tuple(c for c in self._all if np.mean(missing.get(c.name, 0)) <= HARDLY_READ))
        self.rows += len(counting)
        self.dropped_for.update({name: int(each.sum()) for name, each in missing.items()})
        dropped = _any(missing.values(), len(counting))
        self.dropped += int(dropped.sum())
        self.counting += int((counting & ~dropped).sum())
        if self.schema is None:
            return
        left_out = _any((each for name, each in missing.items() if name in self.schema.by_name), len(counting))
        places = np.flatnonzero(counting & ~left_out)
        for start in range(0, len(places), BLOCK_ROWS):
            block = {name: cells[name][places[start : start + BLOCK_ROWS]] for name in self.schema.names}
            self._add_counting(self.schema, encoded_numbers(self.schema, block).T)

    def _add_counting(self, schema: Schema, encoded: Array) -> None:
        bounded = clip(encoded, schema.largest_norm)  # no row is longer
        squares = np.einsum("ij,ij->j", bounded.points, bounded.points)
        self.clipped += int((squares > largest_square(schema.effective_row_bound)).sum())
        self.gram = (self.gram or GramSum.zero(len(encoded), bounded.row_bound)).update(bounded)


def _any(masks: Iterable[Array], rows: int) -> Array:
    return np.logical_or.reduce([np.zeros(rows, dtype=bool), *masks])


def restricted(schema: Schema, columns: tuple[Column, ...]) -> Schema | None:
    """The schema with these of its columns alone, and the derived ones that need no other; None where none is left."""
    names = {column.name for column in columns}
    derived = tuple(d for d in schema.derived if {p.name for p in d.parents(schema.by_name)} <= names)
    return replace(schema, columns=columns, derived=derived, learnt={}) if columns else None
