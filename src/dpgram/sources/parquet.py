"""One Parquet file, read in batches; only the declared columns are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from dpgram.errors import UnreadableTableError
from dpgram.sources.base import BATCH_ROWS, Piece, quiet_iterator, quietly

READ_BUFFER = 1 << 20  # pages are streamed through this, so that a huge row group does not sit in memory


class ParquetFile:
    """A Parquet file."""

    untyped: frozenset[str] = frozenset()
    typed_by_format = True
    rows_of = "table"

    def __init__(self, path: Path):
        self.where = f"Parquet file {path}"
        self._path = path
        with self._open() as file:
            self.columns = file.schema_arrow
            self._rows = file.metadata.num_rows

    def _open(self) -> pq.ParquetFile:
        try:
            return quietly(self.where, pq.ParquetFile, self._path, pre_buffer=False, buffer_size=READ_BUFFER)
        except UnreadableTableError as error:
            failure = error.failure
        raise UnreadableTableError(
            where=self.where,
            failure=failure,
            do="it is not a Parquet file, or it is truncated: copy or export it again",
        )

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        done = 0
        with self._open() as file:
            batches = file.iter_batches(batch_size=BATCH_ROWS, columns=list(names))
            for batch in quiet_iterator(self.where, batches):
                done += batch.num_rows
                yield Piece(batch.select(list(names)), done / self._rows)
