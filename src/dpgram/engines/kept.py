"""A table whose rows were decoded once and lie in memory: all of them, or a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from dpgram.rows.decoded import DecodedBatch
from dpgram.sources.base import Part, Piece, Source


class KeptRows(Source):
    """Rows of the table ``where``, to be read as often as asked. Who is among them, and how many they are, is not told."""

    rereadable = True

    def __init__(self, where: str, names: Sequence[str], batches: Sequence[DecodedBatch]):
        self.where, self._batches = where, tuple(batches)
        self.columns = pa.schema([(name, pa.float64()) for name in names])
        self.untyped = frozenset(names)  # types were checked when they were decoded

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        return (Piece(batch, (place + 1) / len(self._batches)) for place, batch in enumerate(self._batches))

    def parts(self, names: Sequence[str]) -> list[Part]:
        return [partial(iter, [Piece(batch, 1.0)]) for batch in self._batches]
