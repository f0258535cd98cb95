"""How many rows each unit has, by the ids in one column.

What an id is: the exact bytes of its text. So case, white space and Unicode forms make another id. A whole number is its decimal text,
whatever its type: 7 in any width, 7.0 as a float of any size, and the texts "7" and "7.0" are one id, and "07" is another. A column that
lacks an id is often written with points, and another file of the same table without. Other floats are what Arrow writes for them, as
truth values and dates are. Null, NaN and an empty text are no id.

Ids are counted by a key of 16 bytes. It is the id itself for whole numbers of 64 bits and for texts of at most 15 bytes. For a longer
text it is a hash of 127 bits (SipHash-2-4) under a secret that is drawn for every index. Among n such texts, which cannot depend on the
secret, two have the same key with a probability of at most n^2 2^-128 if SipHash is as good as a random function: the two units would
then count as one."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dpgram.encoding.cells import BEYOND_INTEGERS, plain, texts_of_whole
from dpgram.encoding.columns import arrow_cells
from dpgram.encoding.types import as_bytes, is_text, null_where
from dpgram.errors import MechanismError, TableError
from dpgram.native.library import kernel
from dpgram.native.units import UnitTable

Array = np.ndarray
Cells: TypeAlias = pa.Array | Array

POINT, ZERO = b".0"
WITH_POINT = r"^(-?[0-9]+)\.0+$"  # a whole number, and a point and zeros behind it
ROWS_AT_A_TIME = 65_536  # so that keys stay in cache
CHANGED = "the table was changed since the rows of units were counted. Run again when nothing writes to it."
BYTES_OF_UNIT = 150  # that Python needs for a unit besides its text


class UnitIndex:
    """Counts rows by unit: first ``add`` all ids of a table, by several threads, then ask for ``counts``.

    With the compiled kernel a unit takes at most 40 bytes; without it, Python's own objects give the same counts, and take several times
    as long and as much memory. More than ``limit_bytes`` is a TableError."""

    def __init__(self, limit_bytes: int):
        compiled = kernel()
        self._limit = limit_bytes
        self._rows = _Plain(limit_bytes) if compiled is None else _Compiled(UnitTable(compiled, limit_bytes))
        self._lock = threading.Lock()
        self._complete, self._within_limit = False, True

    def add(self, cells: Cells) -> None:
        """Count one row for each cell. Safe to call by several threads at a time. May raise with cells in the message: call it quietly."""
        for keys in self._keys(cells):
            if self._complete:
                raise MechanismError("ids were counted after their numbers had been asked for: this is a bug, report it.")
            self._check(self._rows.add(keys))

    def counts(self, cells: Cells) -> Array:
        """How many rows the unit of each cell has in all, as int64, and zero where a cell is missing. Nothing can be added afterwards."""
        return self._counted(cells)[0]

    def reading(self) -> Reading:
        """Another pass over the table."""
        return Reading(self)

    def _counted(self, cells: Cells) -> tuple[Array, int]:
        self._finish()
        counts, mark = [np.empty(0, np.int64)], 0
        for keys in self._keys(cells):
            found = self._rows.counts(keys)
            if found is None:
                raise TableError(CHANGED)
            counts.append(found[0])
            mark += found[1]
        return np.concatenate(counts), mark

    @property
    def units(self) -> int:
        """The number of units. Nothing can be added afterwards."""
        self._finish()
        return self._rows.size[0]

    @property
    def mark(self) -> int:
        """The marks of all rows, added up. Nothing can be added afterwards."""
        self._finish()
        return self._rows.size[2]

    @property
    def nbytes(self) -> int:
        """The bytes that the index takes; without the kernel this is an estimate. Nothing can be added afterwards."""
        self._finish()
        return self._rows.size[1]

    def _finish(self) -> None:
        """From now on nothing changes, so that threads can ask without waiting for each other."""
        with self._lock:
            if not self._complete:
                self._check(self._rows.finish())
                self._complete = True

    def _check(self, within_limit: bool) -> None:
        if not within_limit:
            self._within_limit = False
        if not self._within_limit:
            raise TableError(
                f"the ids of units need more than {self._limit / 1e6:,.0f} MB of memory. Allow more with --memory (memory= in Python), in "
                f"megabytes."
            )

    def _keys(self, cells: Cells) -> Iterator[Array | pa.Array]:
        with np.errstate(all="ignore"):  # a warning would depend on somebody's id
            arrow = arrow_cells(cells) if isinstance(cells, np.ndarray) else cells
        for start in range(0, len(arrow), ROWS_AT_A_TIME):
            with np.errstate(all="ignore"):
                keys = self._rows.keys(arrow.slice(start, ROWS_AT_A_TIME))
            yield keys


class Reading:
    """One pass over a table whose rows were counted: how many rows the units have, and whether it is the table that was counted.

    A table in memory can change between two passes. If its ids are others, a unit could count for more than it may. Each row has a mark, a
    keyed hash of its id. Marks are added up, so the order of rows and the number of threads do not matter."""

    def __init__(self, index: UnitIndex):
        self._index, self._mark, self._lock = index, 0, threading.Lock()

    def counts(self, cells: Cells) -> Array:
        """As ``UnitIndex`` says. Safe to call by several threads at a time."""
        counts, mark = self._index._counted(cells)
        with self._lock:
            self._mark = (self._mark + mark) % 2**64
        return counts

    def check(self) -> None:
        """Raise unless the pass has read the ids that were counted, all of them and no other. For a pass over the whole table."""
        if self._mark != self._index.mark:
            raise TableError(CHANGED)


class _Compiled:
    """A table of the compiled kernel, and the keys of Arrow's cells in it."""

    def __init__(self, table: UnitTable):
        self._table = table
        self.add, self.finish, self.counts = table.add, table.finish, table.counts

    @property
    def size(self) -> tuple[int, int, int]:
        return self._table.size

    def keys(self, cells: pa.Array) -> Array:
        if pt.is_dictionary(cells.type) and len(cells.dictionary) < len(cells):  # to look at each value once is less work
            none = np.zeros((1, 2), np.uint64)
            of_values = np.concatenate([self.keys(cells.dictionary), none])
            places = cells.indices.cast(pa.int64()).fill_null(len(cells.dictionary)).to_numpy(zero_copy_only=False)
            if places.min() < 0:
                raise IndexError
            return of_values[places]
        cells = id_cells(cells)
        mask, *buffers = cells.buffers()
        valid, first = (mask.address, cells.offset) if mask is not None and cells.null_count else (0, 0)
        begin = _address(buffers[0]) + 8 * cells.offset
        if pt.is_integer(cells.type):
            return self._table.number_keys((begin, valid, first), len(cells), signed=pt.is_signed_integer(cells.type))
        size = 0 if buffers[1] is None else buffers[1].size
        return self._table.text_keys(begin, _address(buffers[1]), size, valid, first, len(cells))


class _Plain:
    """The same with a dict of Python, by the ids themselves."""

    def __init__(self, limit_bytes: int):
        self._limit, self._bytes = limit_bytes, 0
        self._rows: Counter[bytes] = Counter()
        self._secret = secrets.token_bytes(16)
        self._lock = threading.Lock()

    @property
    def size(self) -> tuple[int, int, int]:
        return len(self._rows), self._bytes, sum(rows * self._mark(unit) for unit, rows in self._rows.items()) % 2**64

    def _mark(self, unit: bytes) -> int:
        return int.from_bytes(blake2b(unit, digest_size=8, key=self._secret).digest())

    def keys(self, cells: pa.Array) -> pa.Array:
        return id_bytes(cells)

    def add(self, keys: pa.Array) -> bool:
        found, rows = keys.drop_null().value_counts().flatten()
        with self._lock:
            for unit, more in zip(found.to_pylist(), rows.to_pylist(), strict=True):
                self._bytes += 0 if unit in self._rows else len(unit) + BYTES_OF_UNIT
                self._rows[unit] += more
            return self._bytes <= self._limit

    def finish(self) -> bool:
        return True

    def counts(self, keys: pa.Array) -> tuple[Array, int] | None:
        coded = keys.dictionary_encode()
        units = coded.dictionary.to_pylist()
        rows = [self._rows[unit] for unit in units]
        if 0 in rows:
            return None
        places = coded.indices.fill_null(len(rows)).to_numpy(zero_copy_only=False)
        times = np.bincount(places, minlength=len(rows) + 1).tolist()
        mark = sum(self._mark(unit) * many for unit, many in zip(units, times, strict=False))
        return np.array([*rows, 0], np.int64)[places], mark


def id_bytes(cells: Cells) -> pa.Array:
    """The ids as large binary, null where there is none: two rows are of one unit where these bytes are the same."""
    ids = id_cells(arrow_cells(cells) if isinstance(cells, np.ndarray) else cells)
    text = ids.cast(pa.large_string()).cast(pa.large_binary()) if pt.is_integer(ids.type) else ids
    return null_where(pc.equal(pc.binary_length(text), 0), text)


def id_cells(cells: pa.Array) -> pa.Array:
    """The ids as whole numbers of 64 bits or as large binary, null or empty where there is none. Types that hold others are an error."""
    cells = plain(cells)
    kind = cells.type
    if is_text(kind):
        return _without_points(as_bytes(cells))
    if pt.is_integer(kind):
        return cells.cast(pa.int64() if pt.is_signed_integer(kind) else pa.uint64())
    if pt.is_floating(kind):
        return _of_floats(cells)
    if pt.is_decimal(kind) and kind.scale <= 0:
        cells = cells.cast(pa.decimal256(76, 0))
    if pt.is_nested(kind):
        raise TableError(
            f"the ids of units are of type {kind}. They must be text or whole numbers: convert them in the source."
        )
    return _without_points(cells.cast(pa.large_string()).cast(pa.large_binary()))


def _of_floats(cells: pa.Array) -> pa.Array:
    """Whole numbers of 64 bits where all are, else the texts of all."""
    cells = cells.cast(pa.float32()) if pt.is_float16(cells.type) else cells
    values = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    missing = np.isnan(values)
    whole = (np.abs(values) < BEYOND_INTEGERS) & (values == np.trunc(values))
    if (whole | missing).all():
        return pa.array(np.where(whole, values, 0.0).astype(np.int64), mask=~whole)
    others = null_where(pa.array(missing), cells.cast(pa.large_string()))
    return pc.coalesce(texts_of_whole(values), others).cast(pa.large_binary())


def _without_points(texts: pa.Array) -> pa.Array:
    """The texts, of which "7.0" and "7.00" become "7". Those that hold no point, as most do, are not looked at one by one."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return texts
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if ends[0] < 0 or ends[-1] > data.size or (ends[1:] < ends[:-1]).any():  # a file may lie
        raise IndexError
    letters = np.frombuffer(data, np.uint8)[: ends[-1]]
    if not (letters[ends[0] :] == POINT).any():
        return texts
    likely = (ends[1:] > ends[:-1]) & (letters[ends[1:] - 1] == ZERO)
    places = np.flatnonzero(likely & np.asarray(texts.is_valid()))
    some = texts.take(pa.array(places))
    written = np.asarray(pc.match_substring_regex(some, WITH_POINT))
    if not written.any():
        return texts
    short = pc.replace_substring_regex(some.filter(pa.array(written)), WITH_POINT, r"\1")
    order = np.arange(len(texts))
    order[places[written]] = len(texts) + np.arange(len(short))
    return pa.concat_arrays([texts, short]).take(pa.array(order))


def _address(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else buffer.address
