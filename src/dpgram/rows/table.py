"""The encoded columns of a batch, laid out for the compiled kernel: plain cells where they lie, others as numbers made here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dpgram.encoding.derive import derived_values
from dpgram.encoding.encode import Batch, Encoder, cells_in, cells_of
from dpgram.errors import BoundBrokenError
from dpgram.native.library import ABSENT, BITS, CELLS, COLUMN, LEVEL, NO_LEVEL, NUMBER, ONE, TIMES, TRUTH, kernel
from dpgram.terms.columns import DROP_ROW, INDICATOR, Boolean, Categorical, Numeric, bounds
from dpgram.terms.schema import MOST_ENCODED_COLUMNS, EncodedColumn, Schema

Array = np.ndarray

IN_NUMPY = {np.dtype(cells): place for place, cells in enumerate(CELLS)}
IN_ARROW = {pa.from_numpy_dtype(dtype): place for dtype, place in IN_NUMPY.items()} | {
    pa.date32(): CELLS.index("i4"),  # days
    pa.date64(): TIMES["ms"],
    pa.bool_(): BITS,
}
POINTERS = ["data", "stride", "valid", "first_valid", "cells"]  # the fields that a batch changes


class CellTable:
    """One per thread: each batch takes the place of the one before it."""

    def __init__(self, schema: Schema, *, untyped: frozenset[str] = frozenset()):
        if len(schema.encoded) > MOST_ENCODED_COLUMNS:
            raise BoundBrokenError  # sums of squares would not be exact
        self._schema = schema
        self._encoder = Encoder(schema, untyped=untyped)
        self._only_numbers = not self._encoder.parents and all(isinstance(c, Numeric | Boolean) for c in schema.columns)
        self._levels = {column.name: _Levels(column) for column in schema.columns if isinstance(column, Categorical)}
        self.columns = np.zeros(len(schema.encoded), dtype=COLUMN)
        self._kept: list[pa.Array | Array] = []  # what the addresses in `columns` point into
        spans = [len(range(*self._encoder.places[column.name].indices(len(self.columns)))) for column in schema.columns]
        own = len(self.columns) - int(schema.intercept) - sum(spans)  # derived columns, each with cells of its own
        self._sources = np.repeat(np.arange(len(spans) + own), spans + [1] * own)  # by encoded column: which of the cells
        self._declare()

    def _declare(self) -> None:
        """Write down what does not depend on the rows."""
        if self._schema.intercept:
            self.columns["rule"][0] = ONE
        for column in self._schema.columns:
            place = self._encoder.places[column.name].start
            self.columns["drop"][place] = column.missing == DROP_ROW
            match column:
                case Categorical():
                    for level in range(1, len(column.levels)):
                        self.columns["rule"][place + level - 1], self.columns["level"][place + level - 1] = LEVEL, level
                case Boolean():
                    self.columns["rule"][place], self.columns["fill"][place] = TRUTH, column.fill
                case _ if column.missing == INDICATOR:
                    self._declare_number(place, *bounds(column), self._schema.encoded[place].centre)
                    self.columns["rule"][place + 1] = ABSENT
                case _:
                    self._declare_number(place, *bounds(column), column.fill)
        for derived in self._schema.derived:
            for place in range(*self._encoder.places[derived.name].indices(len(self.columns))):
                self._declare_number(place, -np.inf, np.inf, 0.0)

    def _declare_number(self, place: int, lower: float, upper: float, fill: float) -> None:
        encoded: EncodedColumn = self._schema.encoded[place]
        one = self.columns[place : place + 1]
        one["rule"], one["lower"], one["upper"], one["fill"] = NUMBER, lower, upper, fill
        one["centre"], one["half"] = encoded.centre, encoded.half

    def hold(self, batch: Batch) -> None:
        """Point ``columns`` at the batch's cells, which stay alive until the next batch."""
        self._encoder.check_types(batch.schema)
        if self._hold_matrix(batch):
            return
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            self._kept = list(self._cells(batch))
        pointers = self.columns[POINTERS][int(self._schema.intercept) :]
        pointers[:] = np.array([_address(one) for one in self._kept], dtype=pointers.dtype)[self._sources]

    def _hold_matrix(self, batch: Batch) -> bool:
        """Point at the columns of one matrix of numbers, all at once; False if the batch is none."""
        matrix: Array | None = getattr(batch, "matrix", None)
        if matrix is None or matrix.dtype not in IN_NUMPY or not self._only_numbers:
            return False
        address, row, column = matrix.__array_interface__["data"][0], *matrix.strides
        places = slice(int(self._schema.intercept), None)
        self._kept = [matrix]
        self.columns["valid"] = 0
        self.columns["data"][places] = (address + column * self._sources).astype(np.uintp)
        self.columns["stride"][places], self.columns["cells"][places] = row, IN_NUMPY[matrix.dtype]
        return True

    def _cells(self, batch: Batch) -> Iterator[pa.Array | Array]:
        """The cells of each column, then of each derived one: where they lie, if the kernel can read them, else as numbers made here."""
        parents: dict[str, Array] = {}
        for column in self._schema.columns:
            cells = batch.column(column.name)
            if column.name in self._encoder.parents:
                parents[column.name] = cells_in(batch, column)
                yield parents[column.name]
            elif isinstance(column, Categorical) and isinstance(cells, pa.DictionaryArray):
                yield self._levels[column.name].of(cells)
            elif isinstance(column, Categorical) or _kind(cells) is None:
                yield cells_in(batch, column)
            else:
                yield cells
        for derived in self._schema.derived:
            yield from map(np.ascontiguousarray, derived_values(self._schema, derived, parents))


class _Levels:
    """The levels of a categorical column's cells. A missing cell is in NO_LEVEL, unless it has a level of its own.

    Where cells come with a dictionary of Arrow's, its values are looked at once, for all batches that have the same."""

    def __init__(self, column: Categorical):
        self._column, self._missing = column, cells_of(column, pa.nulls(1))
        self._values: pa.Array | None = None  # of the last dictionary
        self._table = np.empty(0, np.uint16)  # their levels, below MOST_ENCODED_COLUMNS, and that of a missing cell

    def of(self, cells: pa.DictionaryArray) -> Array:
        """One number for each cell."""
        if self._values is None or not self._values.equals(cells.dictionary):
            each = np.append(cells_of(self._column, cells.dictionary), self._missing)
            self._values, self._table = cells.dictionary, np.where(np.isnan(each), NO_LEVEL, each).astype(np.uint16)
        compiled = kernel()
        assert compiled is not None
        indices = cells.indices.cast(pa.int32())  # perhaps new ones, which must outlive the call
        data, _, valid, first, _ = _address(indices)
        return compiled.levels((data, valid, first), len(cells), self._table)


def _kind(cells: pa.Array | Array) -> int | None:
    """Which of the kernel's types the cells have; None if it does not know theirs."""
    if isinstance(cells, np.ndarray):
        return IN_NUMPY.get(cells.dtype)
    if pt.is_timestamp(cells.type):
        return TIMES[cells.type.unit]
    return IN_ARROW.get(cells.type)


def _address(cells: pa.Array | Array) -> tuple[int, int, int, int, int | None]:
    """Where cells of a known kind begin, bytes from one to the next (of bits: which is the first), where their validity bits begin and
    which is the first (0 if none is missing), and their kind."""
    kind = _kind(cells)
    if isinstance(cells, np.ndarray):
        return cells.__array_interface__["data"][0], cells.strides[0], 0, 0, kind
    mask, data = cells.buffers()
    valid, first = (mask.address, cells.offset) if mask is not None and cells.null_count else (0, 0)
    begin = 0 if data is None else data.address
    if kind == BITS:
        return begin, cells.offset, valid, first, kind
    size = cells.type.byte_width
    return begin + cells.offset * size, size, valid, first, kind
