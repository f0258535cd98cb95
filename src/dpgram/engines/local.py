"""The pass over the rows on this machine: read, encode, clip, add, a block at a time."""

from __future__ import annotations

import numpy as np

from dpgram.engines.base import Progress, Steps
from dpgram.engines.summing import Summing
from dpgram.gram.accumulator import GramSum
from dpgram.rows.encode import Encoder
from dpgram.sources.base import Source, check_columns, quietly
from dpgram.terms.schema import Schema

Array = np.ndarray


class LocalPass:
    """Sums the Gram of a source's rows under a schema.

    Making one checks names and types, which are public, and reads no row."""

    def __init__(self, source: Source, schema: Schema, *, progress: Progress | None = None):
        check_columns(source, schema.names)
        self._source, self._schema, self._progress = source, schema, progress
        self.rows_of = source.rows_of
        self._encoder = Encoder(schema, untyped=source.untyped)
        self._encoder.check_types(source.columns)

    def gram(self, row_bound: float) -> GramSum:
        """The exact sum over all rows, each shrunk to ``row_bound``. Memory does not grow with the number of rows."""
        summing = Summing(self._schema, row_bound, untyped=self._source.untyped)
        steps = Steps(self._progress)
        for batch, fraction in self._source.pieces(self._schema.names):
            quietly(self._source.where, summing.add, batch)
            steps.reach(fraction or 0.0)
        steps.reach(1.0)
        return summing.total()

    def encoded(self) -> Array:
        """The rows themselves in scaled units, one below the other, as they are before the clip. Unprotected."""
        pieces = self._source.pieces(self._schema.names)
        blocks = [quietly(self._source.where, self._encoder.encode, batch).T for batch, _ in pieces]
        return np.concatenate([np.empty((0, len(self._schema.encoded))), *blocks])
