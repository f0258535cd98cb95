"""The pass over the rows on this machine: read, encode, clip, add, a block at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpgram.gram.accumulator import GramSum
from dpgram.rows.clip import clip
from dpgram.rows.encode import Encoder
from dpgram.sources.base import Source, check_columns, quietly, slices
from dpgram.terms.schema import Schema

Array = np.ndarray

BLOCK_ROWS = 8192  # encoded rows in flight: 8 KiB per column and thousand rows, whatever the source's batches

Progress = Callable[[float], None]


class LocalPass:
    """Sums the Gram of a source's rows under a schema.

    Making one checks names and types, which are public, and reads no row."""

    def __init__(self, source: Source, schema: Schema, *, progress: Progress | None = None):
        check_columns(source, schema.names)
        self._source, self._schema, self._progress = source, schema, progress
        self._encoder = Encoder(schema, untyped=source.untyped)
        self._encoder.check_types(source.columns)

    def gram(self, row_bound: float) -> GramSum:
        """The exact sum over all rows, each shrunk to ``row_bound``. Memory does not grow with the number of rows."""
        total = GramSum.zero(len(self._schema.encoded), row_bound)
        steps = _Steps(self._progress)
        for batch, fraction in self._source.pieces(self._schema.names):
            for block in slices(batch, BLOCK_ROWS):
                total = quietly(
                    self._source.where, lambda t, b: t.update(clip(self._encoder.encode(b), row_bound)), total, block
                )
            steps.reach(fraction or 0.0)
        steps.reach(1.0)
        return total

    def encoded(self) -> Array:
        """The rows themselves in scaled units, one below the other, as they are before the clip. Unprotected."""
        pieces = self._source.pieces(self._schema.names)
        blocks = [quietly(self._source.where, self._encoder.encode, batch).T for batch, _ in pieces]
        return np.concatenate([np.empty((0, len(self._schema.encoded))), *blocks])


class _Steps:
    """Calls ``progress`` with 0.01, 0.02, ... 1.00, each once and in order, whatever the table.

    Finer fractions, or their number, would give away the number of rows, which can be protected."""

    def __init__(self, progress: Progress | None):
        self._progress, self._done = progress, 0

    def reach(self, fraction: float) -> None:
        while self._done < int(100 * fraction):
            self._done += 1
            if self._progress is not None:
                self._progress(self._done / 100)
