"""A copy of the declared columns for tables that can be read once, where the custodian asked for it.

The rows lie in a file that has no name: made without one where the file system can, else unlinked as soon as it is open and before
anything is written. So nobody can open it, its mode is 0600 besides, and whatever ends the process, kill -9 included, nothing is left.
The first pass writes what it reads, batch by batch; later passes read the file through the descriptor, with the same bits."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from dpgram.errors import OutputError, TableError
from dpgram.sources.base import Batch, Piece, Source, check_columns, quiet_iterator, quietly


def open_cache(folder: Path) -> int:
    """The descriptor of a new file in ``folder`` that has no name and that only this user could read."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except (AttributeError, OSError):  # another system, or a file system that cannot
        pass
    try:
        descriptor, name = tempfile.mkstemp(prefix=".dpgram-", dir=folder)  # mode 0600
    except OSError as error:
        problem = error.strerror
    else:
        os.unlink(name)  # while it is still empty
        return descriptor
    raise OutputError(f"no cache can be made in {folder}: {problem}. Choose another folder for cache= (--cache).")


def cache_folder(cache: object) -> Path:
    """The folder that ``cache`` means: True is the system's own for temporary files."""
    if cache is True:
        return Path(tempfile.gettempdir())
    if not isinstance(cache, str | os.PathLike):
        raise TableError(f"cache is a {type(cache).__name__} and must be a folder, or True for the system's temporary one.")
    folder = Path(cache).expanduser()
    if not folder.is_dir():
        raise OutputError(
            f"{folder} is no folder: cache= (--cache) names one that exists, on a disk with room for the declared columns."
        )
    return folder


class Cached(Source):
    """Another source, whose rows are kept from the first pass on, while ``one_state`` lasts. Outside of it nothing is kept."""

    rereadable = True

    def __init__(self, source: Source, folder: Path):
        self._source, self._folder = source, folder
        self._store: _Store | None = None
        self.where, self.columns, self.untyped = source.where, source.columns, source.untyped
        self.typed_by_format, self.rows_of = source.typed_by_format, source.rows_of

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """Opens the file, and closes it, with which it is gone."""
        with self._source.one_state(), closing(_Store(self.where, open_cache(self._folder), self._folder)) as self._store:
            try:
                yield
            finally:
                self._store = None

    def count(self, names: Sequence[str]) -> int:
        """The number of rows, which are read for it and kept: a stream has no second time."""
        return sum(piece.batch.num_rows for piece in self.pieces(names))

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        check_columns(self, names)
        if self._store is None:
            yield from self._source.pieces(names)
        elif self._store.names:
            yield from self._store.pieces(names)
        else:
            yield from self._store.kept(self._source.pieces(names), names)


class _Store:
    """The file: Arrow streams one behind the other, one for each batch, since batches of one table may differ in type."""

    def __init__(self, where: str, descriptor: int, folder: Path):
        self._where, self._descriptor, self._folder = where, descriptor, folder
        self._starts: list[int] = []  # where each stream begins
        self.names: list[str] = []  # of the columns, once the first pass has begun
        self._whole = False

    def close(self) -> None:
        os.close(self._descriptor)

    def kept(self, pieces: Iterator[Piece], names: Sequence[str]) -> Iterator[Piece]:
        """The pieces, each written down before it is passed on."""
        self.names = list(names)
        sink = _Place(self._descriptor)
        try:
            for piece in pieces:
                batch = quietly(self._where, _as_arrow, piece.batch, list(names))
                self._starts.append(sink.at)
                self._write(sink, batch)
                yield piece
            self._whole = True
        finally:
            if isinstance(pieces, Generator):
                pieces.close()  # left early, by an interrupt or a failure: a query is cancelled at once

    def _write(self, sink: _Place, batch: pa.RecordBatch) -> None:
        """Add a stream to the file; a disk that is full is said in words, what a library says else is withheld."""

        def write() -> None:
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)

        try:
            return quietly(self._where, write)
        except TableError:
            if sink.problem is None:
                raise
        raise OutputError(
            f"the cache in {self._folder} cannot be written: {sink.problem}. It needs room for the declared columns: "
            f"name another folder by cache= (--cache)."
        )

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """The rows again."""
        if not self._whole or list(names) != self.names:
            raise TableError(f"{self._where} was not read to its end, so its cache is no table: release again.")
        for start in self._starts:
            reader = quietly(self._where, pa.ipc.open_stream, pa.PythonFile(_Place(self._descriptor, start), mode="r"))
            for batch in quiet_iterator(self._where, iter(reader)):
                yield Piece(batch, None)


def _as_arrow(batch: Batch, names: list[str]) -> pa.RecordBatch:
    if isinstance(batch, pa.RecordBatch):
        return batch.select(names)
    return pa.RecordBatch.from_arrays([pa.array(batch.column(name)) for name in names], names=names)


class _Place(io.RawIOBase):
    """The file from a place on, to read or to write: several do not disturb each other. Remembers why it could not write."""

    def __init__(self, descriptor: int, at: int = 0):
        self._descriptor, self.at = descriptor, at
        self.problem: str | None = None

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def read(self, size: int = -1) -> bytes:
        chunk = os.pread(self._descriptor, size, self.at)  # as a rule all of it
        while len(chunk) < size and (more := os.pread(self._descriptor, size - len(chunk), self.at + len(chunk))):
            chunk += more
        self.at += len(chunk)
        return chunk

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while left:
                done = os.pwrite(self._descriptor, left, self.at)
                self.at, left = self.at + done, left[done:]
        except OSError as error:
            self.problem = error.strerror
            raise
        return size
