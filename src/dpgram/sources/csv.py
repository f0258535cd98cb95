"""One CSV (or TSV) file, compressed or not. Every cell arrives as bytes; nothing in a row can raise.

The header is strict: it must be UTF-8 and hold the column names. Below it, a row with too few fields has missing cells,
fields beyond the header are ignored, blank lines are skipped (in a file of one column they are missing cells), and bytes
that are not UTF-8 are left for the encoder to call missing. Blocks of whole rows are split by Arrow, as long as each quote opens
or closes a cell, or is one of two that stand for one. From the first block with another quote on, Python's csv module reads, twenty
times slower (a quoted cell may hold line breaks, and a quote that is never closed swallows the lines after it)."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv

from dpgram.errors import TableError
from dpgram.sources.base import BATCH_ROWS, OneFile, Piece, quiet_iterator, quietly, record_batch

BLOCK_BYTES = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
QUOTE = ord('"')
OPENERS: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class CsvFile(OneFile):
    """A CSV file. Its format declares names but no types."""

    form = "CSV"
    typed_by_format = False
    costly = True

    def __init__(self, path: Path):
        super().__init__(path)
        self._delimiter = "\t" if ".tsv" in path.name.lower() else ","
        with quietly(self.where, lambda: self._path.open("rb")) as raw:
            header = self._header(self._unpacked(raw))
        self.columns = pa.schema([pa.field(name, pa.binary()) for name in header])
        self.untyped = frozenset(header)

    def _unpacked(self, raw: io.BufferedReader) -> io.BufferedReader:
        opener = OPENERS.get(self._path.suffix.lower())
        return cast(io.BufferedReader, opener(raw)) if opener else raw  # what the openers return can peek too

    def _header(self, stream: io.BufferedReader) -> list[str]:
        """The column names; the stream is left after them."""
        line = quietly(self.where, _first_line, stream)
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = None
        if text is None:
            raise TableError(
                f"{self.where}: the first line must contain the column names, but it is not UTF-8. Save the file as UTF-8."
            )
        if text.count('"') % 2:
            raise TableError(f"{self.where}: a quote in the first line is not closed. Column names cannot contain line breaks.")
        names = quietly(self.where, lambda: next(_rows([text], self._delimiter), []))
        if not any(name.strip() for name in names):
            raise TableError(f"{self.where}: the first line is blank, but it must contain the column names.")
        if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
            raise TableError(
                f"{self.where}: the first line contains semicolons, tabs or bars, but no comma. Save the file with commas between "
                f"the cells. If it uses tabs, end its name in .tsv."
            )
        return names

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        self._check_unchanged()
        size = max(1, quietly(self.where, self._path.stat).st_size)
        wanted = [self.columns.names.index(name) for name in names]
        with quietly(self.where, lambda: self._path.open("rb")) as raw:
            stream = self._unpacked(raw)
            if self._header(stream) != self.columns.names:
                raise self._changed()
            for columns in quiet_iterator(self.where, self._columns(stream, wanted)):
                yield Piece(record_batch(self.where, names, columns), min(1.0, raw.tell() / size))
        self._check_unchanged()

    def _columns(self, stream: io.BufferedReader, wanted: list[int]) -> Iterator[list[pa.Array]]:
        """The wanted columns, some rows at a time."""
        rest = b""
        while block := stream.read(BLOCK_BYTES):
            block = rest + block
            cut = _after_rows(block)
            if not self._is_plain(block[:cut]):
                yield from self._slow(chain([block], iter(lambda: stream.read(BLOCK_BYTES), b"")), wanted)
                return
            rest = block[cut:]
            if cut:
                yield from self._fast(block[:cut], wanted)
        if rest:
            yield from (self._fast(rest, wanted) if self._is_plain(rest) else self._slow(iter([rest]), wanted))

    def _is_plain(self, rows: bytes) -> bool:
        """Whether Arrow splits the rows as Python's csv module does, which it is not asked where a quote stands within a cell."""
        if rows.startswith(BYTE_ORDER_MARK):  # Arrow would drop it
            return False
        return b'"' not in rows or _quoted_plainly(rows, ord(self._delimiter))

    def _fast(self, block: bytes, wanted: list[int]) -> Iterator[list[pa.Array]]:
        """Whole rows: split by Arrow, or row by row where some row has another number of fields."""
        places = [str(i) for i in range(len(self.columns))]
        quote = '"' if b'"' in block else False
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(block),
                read_options=pyarrow.csv.ReadOptions(column_names=places, use_threads=False, block_size=len(block) + 1),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self._delimiter,
                    quote_char=quote,
                    newlines_in_values=bool(quote),
                    ignore_empty_lines=len(places) > 1,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.binary()),
                    include_columns=[places[i] for i in wanted],
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:
            table = None
        if table is None:
            yield from self._slow(iter([block]), wanted)
            return
        for batch in table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
            yield batch.columns

    def _slow(self, blocks: Iterator[bytes], wanted: list[int]) -> Iterator[list[pa.Array]]:
        text = io.TextIOWrapper(cast(BinaryIO, _Joined(blocks)), encoding="utf-8", errors="surrogateescape", newline="")
        single = len(self.columns) == 1
        rows = (row for row in _rows(text, self._delimiter) if row or single)
        while some := list(islice(rows, BATCH_ROWS)):
            yield [_column(some, i) for i in wanted]


def _after_rows(block: bytes) -> int:
    """Where the last whole row of a block ends, which begins with one: after a line break that has an even number of quotes before it."""
    cut = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1  # a final \r may be half of \r\n
    if block.count(b'"', 0, cut) % 2 == 0:
        return cut
    cells = np.frombuffer(block, dtype=np.uint8)[:cut]
    breaks = np.flatnonzero((cells == ord("\n")) | (cells == ord("\r")))
    outside = breaks[np.searchsorted(np.flatnonzero(cells == QUOTE), breaks) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else cut


def _quoted_plainly(rows: bytes, delimiter: int) -> bool:
    """Whether quotes open a cell and close it in turn; two that stand for one close it, and open it again at once."""
    padded = np.frombuffer(b"\n%b\n" % rows, dtype=np.uint8)
    quotes = np.flatnonzero(padded == QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    again = opening[1:] == closing[:-1] + 1
    between = np.isin(np.arange(256), [delimiter, *b"\n\r"])
    begins, ends = between[padded[opening - 1]], between[padded[closing + 1]]
    return bool(begins[0] and ends[-1] and (begins[1:] | again).all() and (ends[:-1] | again).all())


def _rows(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The rows that Python's csv module finds, with cells of any length."""
    with LONG_CELLS.allowed():
        yield from csv.reader(lines, delimiter=delimiter)


class _LongCells:
    """Python's limit on the length of a cell, which is one for the whole process, lifted while any thread reads.

    A long cell is a cell like any other; it must not raise, whichever file is read to its end first."""

    def __init__(self) -> None:
        self._lock, self._readers, self._before = threading.Lock(), 0, 0

    @contextmanager
    def allowed(self) -> Iterator[None]:
        with self._lock:
            if self._readers == 0:
                self._before = csv.field_size_limit(2**31 - 1)
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                if self._readers == 0:
                    csv.field_size_limit(self._before)


LONG_CELLS = _LongCells()


def _first_line(stream: io.BufferedReader) -> bytes:
    """The first line, whatever ends it: line feed, carriage return or both. The stream is left after it."""
    line = bytearray()
    while byte := stream.read(1):
        if byte == b"\n":
            break
        if byte == b"\r":
            if stream.peek(1)[:1] == b"\n":
                stream.read(1)
            break
        line += byte
    return bytes(line)


def _column(rows: list[list[str]], place: int) -> pa.Array:
    cells = [row[place].encode("utf-8", "surrogateescape") if place < len(row) else None for row in rows]
    return pa.array(cells, pa.large_binary())


class _Joined(io.RawIOBase):
    """Blocks of bytes as one readable stream."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._blocks, b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
