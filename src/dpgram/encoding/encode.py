"""Declared columns to numbers in [-1, 1]: numbers clamped and scaled, categories as indicators, missing cells filled or marked.

Derived columns are computed from the same cells before they are filled, because a derived cell is missing when a parent is.
The result depends on one row at a time, on the schema and on nothing else: no row decides what another becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from dpgram.encoding.cells import as_days, as_numbers, as_truth, levels_of
from dpgram.encoding.columns import arrow_cells, as_column, is_untyped
from dpgram.encoding.derive import derived_values
from dpgram.encoding.types import check_id_type, check_type, check_weight_type
from dpgram.terms.columns import DROP_ROW, INDICATOR, MISSING, Boolean, Categorical, Column, Date, Numeric, bounds
from dpgram.terms.schema import EncodedColumn, Schema

Array = np.ndarray
Cells: TypeAlias = pa.Array | Array  # NumPy's hold numbers in this machine's byte order, none missing but NaN


class Batch(Protocol):
    """Some rows, by column. Arrow's record batches are such; so is anything that holds NumPy arrays by name."""

    @property
    def num_rows(self) -> int: ...

    @property
    def schema(self) -> pa.Schema: ...

    def column(self, name: str) -> Cells: ...


class Encoder:
    """Encodes record batches that hold the schema's columns.

    ``untyped`` columns hold bytes to be cast cell by cell; the type of every other column is checked."""

    def __init__(self, schema: Schema, *, untyped: frozenset[str] = frozenset()):
        self._schema, self._untyped = schema, untyped
        self._checked: pa.Schema | None = None
        self.parents = {parent for encoded in schema.encoded for parent in encoded.parents}
        self.places: dict[str, slice] = {}  # where the encoded columns of a column stand, together
        for i, encoded in enumerate(schema.encoded):
            if encoded.column is not None:
                first = self.places.get(encoded.column, slice(i, i))
                self.places[encoded.column] = slice(first.start, i + 1)
        self._numbers = self._all_numbers()
        self._drops = [column.missing == DROP_ROW for column in schema.columns]

    def _all_numbers(self) -> Array | None:
        """Of a schema of numbers alone: fill, lower, upper, centre and half of its columns, (5, columns, 1)."""
        columns = self._schema.columns
        if self._schema.derived or not all(isinstance(c, Numeric) and c.missing != INDICATOR for c in columns):
            return None
        scales = self._schema.encoded[int(self._schema.intercept) :]
        declared = [(c.fill, *bounds(c), e.centre, e.half) for c, e in zip(columns, scales, strict=True)]  # type: ignore[arg-type, union-attr]
        return np.array(declared).T[:, :, None]

    def check_types(self, given: pa.Schema) -> None:
        """Raise ColumnTypeError if a declared column has a type that its kind cannot take. What was just checked is not checked again."""
        if given is self._checked or given == self._checked:
            return
        for column in self._schema.columns:
            if column.name not in self._untyped:
                check_type(column, given.field(column.name).type)
        for name, check in ((self._schema.weight, check_weight_type), (self._schema.unit_id, check_id_type)):
            if name is not None and name in given.names and name not in self._untyped:
                check(name, given.field(name).type)
        self._checked = given

    def encode(self, batch: Batch) -> Array:
        """The rows as columns of a (number of encoded columns, number of rows) array, every entry in [-1, 1]."""
        return self.encode_counted(batch)[0]

    def encode_counted(self, batch: Batch) -> tuple[Array, Array | None]:
        """The rows as ``encode`` gives them, and which of them count: None where all do.

        A row does not count where the cell of a column that says "drop-row" is missing."""
        self.check_types(batch.schema)
        first = int(self._schema.intercept)
        out = np.empty((len(self._schema.encoded), batch.num_rows))
        out[:first] = 1.0
        matrix: Array | None = getattr(batch, "matrix", None)
        parents: dict[str, Array] = {}
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row; a signalling NaN warns when it is copied
            if matrix is not None and self._numbers is not None:
                missing = _encode_matrix(matrix[:, : len(self._schema.columns)], self._numbers, out[first:])
                return out, _counting([each for each, drops in zip(missing, self._drops, strict=True) if drops])
            dropping = []
            for column, drops in zip(self._schema.columns, self._drops, strict=True):
                cells = cells_in(batch, column)
                if column.name in self.parents:
                    parents[column.name] = cells.copy()
                missing = np.isnan(cells)
                self._encode(column, cells, missing, out)
                if drops:
                    dropping.append(missing)
            for derived in self._schema.derived:
                place = self.places[derived.name]
                _scale(derived_values(self._schema, derived, parents), self._schema.encoded[place.start], out[place])
        return out, _counting(dropping)

    def _encode(self, column: Column, cells: Array, missing: Array, out: Array) -> None:
        """Fill the column's missing ``cells``, and write it to its places in ``out``."""
        place = self.places[column.name]
        scale = self._schema.encoded[place.start]
        match column:
            case Numeric() | Date():
                marked = column.missing == INDICATOR
                cells[missing] = scale.centre if marked else column.fill
                np.clip(cells, *bounds(column), out=cells)
                _scale(cells, scale, out[place.start])
                if marked:
                    out[place.start + 1] = missing
            case Categorical():
                cells[missing] = 0  # the reference
                for level in range(1, len(column.levels)):
                    out[place.start + level - 1] = cells == level
            case Boolean():
                cells[missing] = column.fill
                out[place.start] = cells


def _counting(dropping: list[Array]) -> Array | None:
    """Which rows are missing in none of the columns; None where all are there."""
    dropped = np.any(dropping, axis=0) if dropping else np.zeros(0, bool)
    return ~dropped if dropped.any() else None


def _encode_matrix(matrix: Array, numbers: Array, out: Array) -> Array:
    """Write columns of numbers to ``out``, all at once: each operation is that of ``_encode``. Returns which cells are missing."""
    fill, lower, upper, centre, half = numbers
    np.copyto(out, matrix.T, casting="unsafe")
    missing = ~np.isfinite(out)
    np.copyto(out, fill, where=missing)
    np.clip(out, lower, upper, out=out)
    out -= centre
    out /= half
    np.clip(out, -1.0, 1.0, out=out)
    return missing


def encoded_columns(schema: Schema, columns: Mapping[str, object]) -> Array:
    """(rows, encoded columns) of a table given as columns by name, each an array, a series or a list."""
    given = {name: as_column(columns[name]) for name in schema.names}
    untyped = frozenset(name for name, values in given.items() if is_untyped(values))
    batch = pa.record_batch({name: arrow_cells(values) for name, values in given.items()})
    return Encoder(schema, untyped=untyped).encode(batch).T


def encoded_numbers(schema: Schema, cells: Mapping[str, Array]) -> Array:
    """(rows, encoded columns) of cells that ``cells_of`` would make as they stand: days, places among the levels, 0.0 and 1.0.

    Made-up rows need no Arrow arrays, whose making would import pandas."""
    return Encoder(schema, untyped=frozenset(schema.names)).encode(_Numbers(cells)).T


class _Numbers:
    """A batch of such cells, by column."""

    decoded = True
    schema = pa.schema([])

    def __init__(self, cells: Mapping[str, Array]):
        self._cells = cells
        self.num_rows = len(next(iter(cells.values())))

    def column(self, name: str) -> Array:
        return self._cells[name]


def own_units(schema: Schema, scaled: Array) -> Array:
    """Encoded rows, (rows, encoded columns), back in the columns' own units."""
    return np.array([e.centre for e in schema.encoded]) + np.array([e.half for e in schema.encoded]) * scaled


def cells_in(batch: Batch, column: Column) -> Array:
    """A new array of the batch's cells in that column, as ``cells_of`` makes them; what was decoded before is as it was then."""
    given = batch.column(column.name)
    return np.array(given) if getattr(batch, "decoded", False) else cells_of(column, given)


def cells_of(column: Column, given: Cells) -> Array:
    """A new array of numbers in own units, places among the levels, or 0 and 1; NaN where a cell is missing."""
    cells = pa.array(np.ascontiguousarray(given)) if isinstance(given, np.ndarray) else given
    match column:
        case Numeric():
            return as_numbers(cells)
        case Date():
            return as_days(cells)
        case Categorical():
            return _levels(column, cells)
        case Boolean():
            return as_truth(cells)


def _levels(column: Categorical, cells: pa.Array) -> Array:
    """Places among the levels. A missing cell is NaN, unless it has a level of its own: then it is a level like the others."""
    place, present = levels_of(cells, column.categories)
    undeclared = np.isnan(place)
    if column.missing == "level":
        place[undeclared] = column.levels.index(MISSING)
    if column.other:
        place[undeclared & present] = len(column.categories)  # the level "other" follows the declared ones
    return place


def _scale(values: Array, scale: EncodedColumn, out: Array) -> None:
    values -= scale.centre
    values /= scale.half
    np.clip(values, -1.0, 1.0, out=out)  # the two operations above may round past one
