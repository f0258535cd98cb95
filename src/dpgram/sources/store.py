"""The rows of one table as they are kept, batch by batch, in the order of the table: in memory up to a limit, beyond it in a file.

The file has no name: it is made without one where the file system can, else unlinked as soon as it is open and before anything is written.
So nobody can open it, its mode is 0600 besides, and whatever ends the process, kill -9 included, nothing is left of it. What is written is
encrypted with a key that never leaves memory, so blocks that the disk has freed tell nothing either."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from dpgram.errors import OutputError, TableError
from dpgram.sources.base import ArrayBatch, Batch, Part, Piece, quietly

SPARE = 1.25  # times the room of its rows that a batch may take in memory
MOST_PARTS = 64  # that threads read the rows in
ELSEWHERE = "Choose another folder with cache= (--cache), or allow more memory with memory= (--memory), in MB."


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
    raise OutputError(f"the cache cannot be created in {folder}: {problem}. {ELSEWHERE}")


class Fresh(ArrayBatch):
    """A batch that was read and is not kept yet, and its number."""

    def __init__(self, number: int, batch: Batch):
        super().__init__({name: batch.column(name) for name in batch.schema.names}, batch.schema, batch.num_rows)
        self.number = number


class _Kept(NamedTuple):
    """One batch: ``held`` in memory, or where that is None in the file, as an Arrow stream of its own: batches of one table may differ in
    type."""

    rows: int
    held: pa.RecordBatch | None
    at: int
    size: int


class Store:
    """All batches of one table. Several threads may add to it, and read from it."""

    def __init__(self, where: str, folder: Path, memory: int):
        self._where, self._folder, self._free = where, folder, memory
        self._batches: dict[int, _Kept] = {}
        self._expected: int | None = None  # how many batches there are, once all were read
        self._lock, self._descriptor, self._end = threading.Lock(), -1, 0
        self._key = os.urandom(32)
        self.begun = False

    def close(self) -> None:
        self._batches.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def fresh(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """The first pass: pieces whose batches are to be kept."""
        self.begun = True
        number = 0
        try:
            for number, (batch, fraction) in enumerate(pieces, 1):
                yield Piece(Fresh(number, batch), fraction)
            self._expected = number
        finally:
            if isinstance(pieces, Generator):
                pieces.close()  # left early, by an interrupt or a failure: a query is cancelled at once

    def keep(self, fresh: Fresh, parse: Callable[[Batch], pa.RecordBatch]) -> pa.RecordBatch:
        """What ``parse`` makes of the batch, kept under its number."""
        batch = quietly(self._where, lambda: _compact(parse(fresh)))
        size = batch.get_total_buffer_size()
        with self._lock:
            in_memory = size <= self._free
            self._free -= size if in_memory else 0
        self._batches[fresh.number] = _Kept(batch.num_rows, batch, 0, size) if in_memory else self._in_file(batch)
        return batch

    def _in_file(self, batch: pa.RecordBatch) -> _Kept:
        stream = quietly(self._where, _stream, batch)
        with self._lock:
            if self._descriptor < 0:
                self._descriptor = open_cache(self._folder)
            at, self._end = self._end, self._end + len(stream)
        self._write(self._encrypted(stream, at), at)
        return _Kept(batch.num_rows, None, at, len(stream))

    def _write(self, left: memoryview, at: int) -> None:
        """Write to the file; a disk that is full is said in words."""
        try:
            while left:
                done = os.pwrite(self._descriptor, left, at)
                at, left = at + done, left[done:]
            return
        except OSError as error:
            problem = error.strerror
        raise OutputError(
            f"the cache in {self._folder} cannot be written: {problem}. It needs room for the declared columns. {ELSEWHERE}"
        )

    def _read(self, kept: _Kept) -> memoryview:
        chunk = os.pread(self._descriptor, kept.size, kept.at)  # as a rule all of it
        while more := os.pread(self._descriptor, kept.size - len(chunk), kept.at + len(chunk)):
            chunk += more
        return self._encrypted(chunk, kept.at)

    def _encrypted(self, data: bytes, at: int) -> memoryview:
        """The data, or back again, under a stream of bits that the key and the place in the file give. No place is written twice."""
        mask = hashlib.shake_128(self._key + at.to_bytes(8, "big")).digest(len(data))
        return np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(mask, np.uint8)).data

    def _whole(self) -> list[_Kept]:
        """All batches, in the order of the table."""
        if self._expected is None or sorted(self._batches) != [*range(1, self._expected + 1)]:
            raise TableError(
                f"{self._where} was not fully read, so the rows that were kept are not the whole table. Release again."
            )
        return [self._batches[number] for number in sorted(self._batches)]

    def rows(self) -> int:
        return sum(batch.rows for batch in self._whole())

    def parts(self) -> list[Part]:
        """The rows again, in runs of batches."""
        whole = self._whole()
        step = -(-len(whole) // MOST_PARTS) or 1
        return [partial(self._pieces, whole[first : first + step]) for first in range(0, len(whole), step)]

    def _pieces(self, run: list[_Kept]) -> Iterator[Piece]:
        for number, kept in enumerate(run, 1):
            yield Piece(quietly(self._where, self._batch, kept), number / len(run))

    def _batch(self, kept: _Kept) -> pa.RecordBatch:
        return _batch(self._read(kept)) if kept.held is None else kept.held


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, copied if it is a small part of what it was cut from, all of which it would hold in memory."""
    return batch if batch.get_total_buffer_size() <= SPARE * batch.nbytes else _batch(_stream(batch))


def _batch(stream: bytes | memoryview) -> pa.RecordBatch:
    return pa.ipc.open_stream(pa.py_buffer(stream)).read_next_batch()


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()
