"""The encoded columns of a batch, laid out for the compiled kernel: plain cells where they lie, others as numbers made here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpgram.errors import BoundBrokenError
from dpgram.native.library import CELLS, LEVEL, NUMBER, ONE, TRUTH
from dpgram.native.library import Column as NativeColumn
from dpgram.rows.batch import Batch, arrow_column
from dpgram.rows.encode import Encoder, cells_of
from dpgram.terms.columns import Boolean, Categorical, Column, Date, Numeric, bounds
from dpgram.terms.schema import MOST_ENCODED_COLUMNS, EncodedColumn, Schema

Array = np.ndarray

PLAIN = {pa.from_numpy_dtype(np.dtype(cells)): place for place, cells in enumerate(CELLS)}


class CellTable:
    """One per thread: each batch takes the place of the one before it."""

    def __init__(self, schema: Schema, *, untyped: frozenset[str] = frozenset()):
        if len(schema.encoded) > MOST_ENCODED_COLUMNS:
            raise BoundBrokenError  # sums of squares would not be exact
        self._schema = schema
        self._encoder = Encoder(schema, untyped=untyped)
        self.columns = (NativeColumn * len(schema.encoded))()
        self._kept: list[object] = []  # what the pointers in `columns` point into
        if schema.intercept:
            self.columns[0].rule = ONE

    def hold(self, batch: Batch) -> None:
        """Point ``columns`` at the batch's cells, which stay alive until the next batch."""
        self._encoder.check_batch(batch)
        self._kept = []
        parents: dict[str, Array] = {}
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            for column in self._schema.columns:
                cells = batch.column(column.name)
                first = self._encoder.places[column.name].start
                if column.name not in self._encoder.parents and self._hold_plain(column, cells, first):
                    continue
                values = cells_of(column, arrow_column(cells))
                if column.name in self._encoder.parents:
                    parents[column.name] = values
                self._hold_made(column, values, first)
            for derived in self._schema.derived:
                place = self._encoder.places[derived.name]
                made = self._schema.derive(derived, parents)
                for target, values in zip(range(place.start, place.stop), made, strict=True):
                    self._number(target, values, self._schema.encoded[target], -np.inf, np.inf, 0.0)

    def _hold_plain(self, column: Column, cells: pa.Array | Array, place: int) -> bool:
        """Point at numbers that the kernel can read where they lie; False if it cannot."""
        if not isinstance(column, Numeric | Boolean):
            return False
        if isinstance(cells, np.ndarray):
            kind = PLAIN.get(pa.from_numpy_dtype(cells.dtype))
            if kind is None:
                return False
            address, stride, valid, first = cells.ctypes.data, cells.strides[0], None, 0
        else:
            kind = PLAIN.get(cells.type)
            if kind is None:
                return False
            mask, data = cells.buffers()
            size = cells.type.bit_width // 8
            address, stride = (0 if data is None else data.address) + cells.offset * size, size
            valid, first = (mask.address, cells.offset) if mask is not None and cells.null_count else (None, 0)
        self._kept.append(cells)
        target = self.columns[place]
        target.data, target.stride, target.valid, target.first_valid, target.cells = address, stride, valid, first, kind
        self._rule(column, place)
        return True

    def _hold_made(self, column: Column, values: Array, place: int) -> None:
        match column:
            case Categorical():
                values = np.where(np.isnan(values), 0.0, values)  # a missing cell is the reference
                for level in range(1, len(column.levels)):
                    self._point(place + level - 1, values)
                    self.columns[place + level - 1].rule, self.columns[place + level - 1].level = LEVEL, level
            case _:
                self._point(place, values)
                self._rule(column, place)

    def _rule(self, column: Numeric | Date | Boolean, place: int) -> None:
        target = self.columns[place]
        match column:
            case Boolean():
                target.rule, target.fill = TRUTH, float(column.missing)
            case _:
                lower, upper = bounds(column)
                self._scale(place, self._schema.encoded[place], lower, upper, column.fill)

    def _number(self, place: int, values: Array, encoded: EncodedColumn, lower: float, upper: float, fill: float) -> None:
        self._point(place, np.ascontiguousarray(values))
        self._scale(place, encoded, lower, upper, fill)

    def _scale(self, place: int, encoded: EncodedColumn, lower: float, upper: float, fill: float) -> None:
        target = self.columns[place]
        target.rule, target.lower, target.upper, target.fill = NUMBER, lower, upper, fill
        target.centre, target.half = encoded.centre, encoded.half

    def _point(self, place: int, values: Array) -> None:
        """Point at float64 values that were made here."""
        self._kept.append(values)
        target = self.columns[place]
        target.data, target.stride, target.valid, target.cells = values.ctypes.data, values.strides[0], None, CELLS.index("f8")
