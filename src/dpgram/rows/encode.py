"""Declared columns to numbers in [-1, 1]: numbers clamped and scaled, categories as indicators, missing cells filled.

The result depends on one row at a time, on the schema and on nothing else: no row decides what another becomes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dpgram.rows.cells import as_numbers, as_truth, number_levels, text_levels
from dpgram.rows.types import check_type
from dpgram.terms.columns import MISSING, Boolean, Categorical, Column, Numeric
from dpgram.terms.schema import EncodedColumn, Schema

Array = np.ndarray


class Encoder:
    """Encodes record batches that hold the schema's columns.

    ``untyped`` columns hold bytes to be cast cell by cell; the type of every other column is checked."""

    def __init__(self, schema: Schema, *, untyped: frozenset[str] = frozenset()):
        self._schema, self._untyped = schema, untyped
        self._checked: pa.Schema | None = None
        self._places = [
            (column, [i for i, e in enumerate(schema.encoded) if e.column == column.name]) for column in schema.columns
        ]

    def check_types(self, found: pa.Schema) -> None:
        """Raise ColumnTypeError if a declared column has a type that its kind cannot take."""
        for column in self._schema.columns:
            if column.name not in self._untyped:
                check_type(column, found.field(column.name).type)
        self._checked = found

    def encode(self, batch: pa.RecordBatch) -> Array:
        """The rows as columns of a (number of encoded columns, number of rows) array, every entry in [-1, 1]."""
        if batch.schema != self._checked:
            self.check_types(batch.schema)
        out = np.empty((len(self._schema.encoded), batch.num_rows))
        if self._schema.intercept:
            out[0] = 1.0
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            for column, places in self._places:
                rows = out[places[0] : places[-1] + 1]
                _encode_column(column, self._schema.encoded[places[0]], batch.column(column.name), rows)
        return out


def _encode_column(column: Column, scale: EncodedColumn, cells: pa.Array, out: Array) -> None:
    match column:
        case Numeric():
            _encode_numbers(column, scale, cells, out[0])
        case Categorical():
            _encode_levels(column, cells, out)
        case Boolean():
            values = as_truth(cells)
            values[np.isnan(values)] = float(column.missing)
            out[0] = values


def _encode_numbers(column: Numeric, scale: EncodedColumn, cells: pa.Array, out: Array) -> None:
    values = as_numbers(cells)
    values[np.isnan(values)] = column.fill
    np.clip(values, column.lower, column.upper, out=values)
    values -= scale.centre
    values /= scale.half
    np.clip(values, -1.0, 1.0, out=out)  # the two operations above may round past one


def _encode_levels(column: Categorical, cells: pa.Array, out: Array) -> None:
    if column.matches_numbers:
        place, present = number_levels(cells, column.categories)
    else:
        place, present = text_levels(cells, column.categories)
    undeclared = np.isnan(place)
    place[undeclared] = column.levels.index(MISSING) if column.missing == "level" else 0
    if column.other:
        place[undeclared & present] = len(column.categories)  # the level "other" follows the declared ones
    for level in range(1, len(column.levels)):
        out[level - 1] = place == level
