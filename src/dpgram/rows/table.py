"""The encoded columns of a batch, laid out for the compiled kernel: plain cells where they lie, others as numbers made here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dpgram.encoding.derive import derived_values
from dpgram.encoding.encode import Batch, Encoder, cells_in
from dpgram.errors import BoundBrokenError
from dpgram.native.library import CELLS, COLUMN, LEVEL, NUMBER, ONE, TRUTH
from dpgram.terms.columns import Boolean, Categorical, Numeric, bounds
from dpgram.terms.schema import MOST_ENCODED_COLUMNS, EncodedColumn, Schema

Array = np.ndarray

IN_NUMPY = {np.dtype(cells): place for place, cells in enumerate(CELLS)}
IN_ARROW = {pa.from_numpy_dtype(dtype): place for dtype, place in IN_NUMPY.items()}
POINTERS = ["data", "stride", "valid", "first_valid", "cells"]  # the fields that a batch changes


class CellTable:
    """One per thread: each batch takes the place of the one before it."""

    def __init__(self, schema: Schema, *, untyped: frozenset[str] = frozenset()):
        if len(schema.encoded) > MOST_ENCODED_COLUMNS:
            raise BoundBrokenError  # sums of squares would not be exact
        self._schema = schema
        self._encoder = Encoder(schema, untyped=untyped)
        self._plain = {  # columns that the kernel may read where they lie
            column.name
            for column in schema.columns
            if isinstance(column, Numeric | Boolean) and column.name not in self._encoder.parents
        }
        self.columns = np.zeros(len(schema.encoded), dtype=COLUMN)
        self._kept: list[object] = []  # what the addresses in `columns` point into
        self._declare()

    def _declare(self) -> None:
        """Write down what does not depend on the rows."""
        if self._schema.intercept:
            self.columns["rule"][0] = ONE
        for column in self._schema.columns:
            place = self._encoder.places[column.name].start
            match column:
                case Categorical():
                    for level in range(1, len(column.levels)):
                        self.columns["rule"][place + level - 1], self.columns["level"][place + level - 1] = LEVEL, level
                case Boolean():
                    self.columns["rule"][place], self.columns["fill"][place] = TRUTH, float(column.missing)
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
            cells = dict(self._cells(batch))
        self._kept = list(cells.values())
        pointers = self.columns[POINTERS]
        pointers[list(cells)] = np.array([_address(one) for one in self._kept], dtype=pointers.dtype)

    def _hold_matrix(self, batch: Batch) -> bool:
        """Point at the columns of one matrix of numbers, all at once; False if the batch is none."""
        matrix: Array | None = getattr(batch, "matrix", None)
        if matrix is None or matrix.dtype not in IN_NUMPY or len(self._plain) < len(self._schema.columns):
            return False
        address, row, column = matrix.__array_interface__["data"][0], *matrix.strides
        places = slice(int(self._schema.intercept), int(self._schema.intercept) + matrix.shape[1])
        self._kept = [matrix]
        self.columns["valid"] = 0
        self.columns["data"][places] = (address + column * np.arange(matrix.shape[1])).astype(np.uintp)
        self.columns["stride"][places], self.columns["cells"][places] = row, IN_NUMPY[matrix.dtype]
        return True

    def _cells(self, batch: Batch) -> Iterator[tuple[int, pa.Array | Array]]:
        """Each encoded column's place and its cells: where they lie, if the kernel can read them, else as float64 made here."""
        parents: dict[str, Array] = {}
        for column in self._schema.columns:
            place = self._encoder.places[column.name].start
            cells = batch.column(column.name)
            if column.name in self._plain and _kind(cells) is not None:
                yield place, cells
                continue
            values = cells_in(batch, column)
            if column.name in self._encoder.parents:
                parents[column.name] = values
            if not isinstance(column, Categorical):
                yield place, values
                continue
            values = np.where(np.isnan(values), 0.0, values)  # a missing cell is the reference
            for level in range(1, len(column.levels)):
                yield place + level - 1, values
        for derived in self._schema.derived:
            place = self._encoder.places[derived.name].start
            for target, values in enumerate(derived_values(self._schema, derived, parents), place):
                yield target, np.ascontiguousarray(values)


def _kind(cells: pa.Array | Array) -> int | None:
    """Which of the kernel's types the cells have; None if it does not know theirs."""
    return IN_NUMPY.get(cells.dtype) if isinstance(cells, np.ndarray) else IN_ARROW.get(cells.type)


def _address(cells: pa.Array | Array) -> tuple[int, int, int, int, int | None]:
    """Where cells of a known kind begin, bytes from one to the next, where their validity bits begin and which is the first (0 if
    none is missing), and their kind."""
    kind = _kind(cells)
    if isinstance(cells, np.ndarray):
        return cells.__array_interface__["data"][0], cells.strides[0], 0, 0, kind
    mask, data = cells.buffers()
    size = cells.type.byte_width
    valid, first = (mask.address, cells.offset) if mask is not None and cells.null_count else (0, 0)
    return (0 if data is None else data.address) + cells.offset * size, size, valid, first, kind
