"""Rows that are kept: the cells of declared columns as numbers, decoded once, to be encoded under one scale or another.

What is kept of a cell is what ``cells_of`` makes of it, and of ids and weights the factor that follows from them, so a sum over kept
rows has the bits of a sum over the rows themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dpgram.encoding.encode import Batch, Cells, Encoder, cells_of
from dpgram.encoding.types import as_bytes
from dpgram.rows.shares import Shares
from dpgram.terms.columns import Column, Numeric
from dpgram.terms.schema import Schema

Array = np.ndarray

KEPT_ROWS, KEPT_CELLS = 32_768, 1 << 20  # in one batch, at most
SENT = np.dtype("<f8")  # between machines


class DecodedBatch:
    """Some rows, (columns, rows) in float64: numbers and days in own units, places among levels, truth values; NaN where one is missing.

    Where rows have factors, these stand below the columns."""

    decoded = True

    def __init__(self, cells: Array, schema: pa.Schema):
        self._cells, self.schema, self.num_rows = cells, schema, cells.shape[1]
        self.factors = cells[len(schema)] if len(cells) > len(schema) else None

    @classmethod
    def from_bytes(cls, cells: bytes, schema: Schema) -> DecodedBatch:
        """What ``to_bytes`` made on another machine."""
        lines = len(schema.columns) + has_factors(schema)
        return cls(np.frombuffer(cells, SENT).reshape(lines, -1).astype(np.float64), decoded_types(schema))

    def to_bytes(self) -> bytes:
        return self._cells.astype(SENT).tobytes()

    def column(self, name: str) -> Array:
        return self._cells[self.schema.get_field_index(name)]

    def slice(self, start: int, rows: int) -> DecodedBatch:
        return DecodedBatch(self._cells[:, start : start + rows], self.schema)


def has_factors(schema: Schema) -> bool:
    """Whether rows count by an id or a weight."""
    return schema.unit_id is not None or schema.weight is not None


def bytes_of_row(schema: Schema) -> int:
    """How much memory a row takes that is kept."""
    return SENT.itemsize * (len(schema.columns) + has_factors(schema))


def decoded_types(schema: Schema) -> pa.Schema:
    return pa.schema([(column.name, pa.float64()) for column in schema.columns])


class Decoding:
    """Keeps rows of the batches that it is given. One per thread: it is not shared."""

    def __init__(self, schema: Schema, *, untyped: frozenset[str] = frozenset(), shares: Shares | None = None):
        self._encoder, self._columns = Encoder(schema, untyped=untyped), schema.columns
        self._shares = shares or Shares(schema)
        self._lines = len(schema.columns) + has_factors(schema)
        self._schema = decoded_types(schema)
        self._most = max(1024, min(KEPT_ROWS, KEPT_CELLS // max(1, len(schema.columns))))  # rows in one batch
        self._full: list[Array] = []
        self._last, self._used = self._room(), 0

    def add(self, batch: Batch, places: Array | None = None) -> None:
        """Keep the rows at these places, or all of them. May raise with cells in the message: call it quietly."""
        self._encoder.check_types(batch.schema)
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            cells = [_decoded(column, batch.column(column.name), places) for column in self._columns]
        factors = self._shares.of(batch)
        if factors is not None:
            cells.append(factors if places is None else factors[places])
        start, rows = 0, batch.num_rows if places is None else len(places)
        while start < rows:
            stop = min(rows, start + self._most - self._used)
            for kept, values in zip(self._last, cells, strict=True):
                kept[self._used : self._used + stop - start] = values[start:stop]
            self._used += stop - start
            start = stop
            if self._used == self._most:
                self._full.append(self._last)
                self._last, self._used = self._room(), 0

    @property
    def nbytes(self) -> int:
        """The bytes of what was kept."""
        return len(self._full) * self._last.nbytes + self._used * self._lines * self._last.itemsize

    def batches(self) -> list[DecodedBatch]:
        """All that was kept."""
        return [DecodedBatch(cells, self._schema) for cells in (*self._full, self._last[:, : self._used]) if cells.shape[1]]

    def _room(self) -> Array:
        return np.empty((self._lines, self._most))


def _decoded(column: Column, cells: Cells, places: Array | None) -> Array:
    """What ``cells_of`` makes of the cells at these places, or of all of them."""
    if places is None:
        return cells_of(column, cells)
    taken = _taken(cells, places)
    if isinstance(column, Numeric) and isinstance(taken, np.ndarray) and taken.dtype == np.float64:
        taken[~np.isfinite(taken)] = np.nan  # all that there is to do, and what it takes is most of the time of a small sample
        return taken
    return cells_of(column, taken)


def _taken(cells: Cells, places: Array) -> Cells:
    """New ones: the cells at these places."""
    if not isinstance(cells, np.ndarray) and (pt.is_floating(cells.type) or pt.is_integer(cells.type)) and not cells.null_count:
        cells = np.from_dlpack(cells)  # a view, faster to take from; to_numpy() would import pandas
    if isinstance(cells, np.ndarray):
        return cells[places]
    if pt.is_string_view(cells.type) or pt.is_binary_view(cells.type):  # of which Arrow takes none
        cells = as_bytes(cells)
    return cells.take(pa.array(places))
