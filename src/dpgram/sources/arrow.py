"""Arrow tables, record batches, streams (anything with ``__arrow_c_stream__``) and IPC files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from dpgram.errors import TableError
from dpgram.sources.base import OneFile, Piece, Source, check_buffers, declared_columns, quiet_iterator, quietly, slices


class ArrowStream(Source):
    """Anything that offers an Arrow stream: a pyarrow table or reader, a polars frame, a DuckDB relation."""

    def __init__(self, stream: Any):
        self.where = f"the table (a {type(stream).__module__.partition('.')[0].lstrip('_')} {type(stream).__name__})"
        self.rows_of = "table" if _is_table(stream) else "result"
        if isinstance(stream, pa.RecordBatch):
            stream = pa.Table.from_batches([stream])
        self._table = stream if self.rows_of == "table" else None
        self.rereadable = self._table is not None
        self._reader: pa.RecordBatchReader | None = self._opened(stream)
        reader = self._reader
        self.columns = declared_columns(self.where, lambda: reader.schema)

    def _opened(self, stream: Any) -> pa.RecordBatchReader:
        if isinstance(stream, pa.RecordBatchReader):  # it may carry an interrupt through
            return stream
        return quietly(self.where, pa.RecordBatchReader.from_stream, stream)

    def count(self, names: Sequence[str]) -> int | None:
        """The number of rows of a table; of a stream nobody knows it before its end."""
        return None if self._table is None else len(self._table)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        reader, self._reader = self._reader, None
        if reader is None and self._table is not None:
            reader = self._opened(self._table)
        if reader is None:  # what is left of it is nothing, and nothing is a table too
            raise TableError(f"{self.where} was read already, and it can be read only once. Pass a table or a path.")
        for batch in quiet_iterator(self.where, iter(reader)):
            quietly(self.where, batch.validate)  # a damaged stream must not make us read beyond its buffers
            for part in slices(quietly(self.where, _sound, batch, names)):
                yield Piece(part, None)


def _is_table(stream: Any) -> bool:
    """Whether the rows lie there as they are. A reader, a relation or an unknown stream may compute them from other rows."""
    polars = sys.modules.get("polars")
    return isinstance(stream, pa.Table | pa.RecordBatch) or bool(polars and isinstance(stream, polars.DataFrame))


class ArrowFile(OneFile):
    """An Arrow IPC (Feather) file."""

    form = "Arrow"

    def __init__(self, path: Path):
        super().__init__(path)
        with quietly(self.where, pyarrow.ipc.open_file, str(path)) as file:
            self.columns = declared_columns(self.where, lambda: file.schema)

    def _open(self, names: Sequence[str]) -> pa.RecordBatchFileReader:
        options = pyarrow.ipc.IpcReadOptions(included_fields=[self.columns.names.index(name) for name in names])
        return quietly(self.where, pyarrow.ipc.open_file, str(self._path), options=options)

    def count(self, names: Sequence[str]) -> int:
        """The number of rows by what each batch declares; of its columns one is opened."""
        self._check_unchanged()
        with self._open(names[:1]) as file:
            return sum(quietly(self.where, file.get_batch, i).num_rows for i in range(file.num_record_batches))

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        self._check_unchanged()
        with self._open(names) as file:
            for i in range(file.num_record_batches):
                batch = quietly(self.where, file.get_batch, i)
                for part in slices(quietly(self.where, _sound, batch, names)):
                    yield Piece(part, (i + 1) / file.num_record_batches)
        self._check_unchanged()


def _sound(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns ``names`` of the batch, whose buffers were checked: a damaged file or stream must not crash the process."""
    chosen = batch.select(list(names))
    for column in chosen.columns:
        check_buffers(column)
    return chosen
