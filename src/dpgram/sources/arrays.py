"""NumPy arrays with named columns: structured arrays, dicts of one-dimensional arrays, two-dimensional arrays with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpgram.encoding.columns import Column, arrow_cells, as_column, is_untyped
from dpgram.errors import TableError
from dpgram.sources.base import ArrayBatch, MatrixBatch, Piece, Source, batch_rows, check_buffers, declared_type, quietly, spans

PLAIN_NUMBERS = frozenset(np.dtype(kind).str for kind in ("f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))  # native


class NamedArrays(Source):
    """Named one-dimensional arrays of one length, NumPy's or Arrow's. Columns of text or objects are untyped."""

    where = "the table (NumPy arrays)"
    rereadable = True

    def __init__(self, columns: Sequence[tuple[str, Column]]):
        if not columns:
            raise TableError("the table has no columns, but at least one is needed.")
        check_flat(columns, "array")
        self._columns = dict(columns)
        self.untyped = frozenset(name for name, values in columns if is_untyped(values))
        types = [(name, pa.binary() if name in self.untyped else self._type(values)) for name, values in columns]
        self.columns = pa.schema(types)

    def _type(self, values: Column) -> pa.DataType:
        if isinstance(values, pa.ChunkedArray):
            return values.type
        return declared_type(lambda: arrow_cells(values[:0]), values.dtype)

    def count(self, names: Sequence[str]) -> int:
        return len(next(iter(self._columns.values())))

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        types = pa.schema([self.columns.field(name) for name in names])
        for span, fraction in spans(self.count(names), batch_rows(len(names))):
            arrays = {name: quietly(self.where, self._array, name, span) for name in names}
            yield Piece(ArrayBatch(arrays, types, span.stop - span.start), fraction)

    def _array(self, name: str, part: slice) -> pa.Array | np.ndarray:
        cells = self._columns[name][part]
        if type(cells) is np.ndarray and cells.dtype.str in PLAIN_NUMBERS:
            return cells
        if isinstance(cells, pa.ChunkedArray):
            check_buffers(cells)
        return arrow_cells(cells)


class Matrix(Source):
    """The columns of a two-dimensional array of plain numbers, by name. Nothing is copied."""

    where = NamedArrays.where
    rereadable = True

    def __init__(self, table: np.ndarray, names: Sequence[str]):
        self._table = table
        self.columns = pa.schema([(name, pa.from_numpy_dtype(table.dtype)) for name in names])

    def count(self, names: Sequence[str]) -> int:
        return len(self._table)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        places = [self.columns.get_field_index(name) for name in names]
        first, end = places[0], places[0] + len(places)
        wanted = slice(first, end) if places == list(range(first, end)) else places  # a slice is a view
        types = pa.schema([self.columns.field(name) for name in names])
        for span, fraction in spans(len(self._table), batch_rows(len(names))):
            yield Piece(MatrixBatch(self._table[span, wanted], types), fraction)


def from_structured(table: np.ndarray) -> NamedArrays:
    """A structured array: one column per field."""
    if table.ndim != 1:
        raise TableError(f"the structured array has {table.ndim} dimensions, but it must have one, with one record per row.")
    return NamedArrays([(name, table[name]) for name in table.dtype.names or ()])


def from_mapping(table: Mapping) -> NamedArrays:
    """A dict of names and one-dimensional arrays, series or lists."""
    return NamedArrays([(str(name), quietly(NamedArrays.where, as_column, values)) for name, values in table.items()])


def from_matrix(table: np.ndarray, names: Sequence[str]) -> NamedArrays | Matrix:
    """A two-dimensional array, rows down, and the names of its columns."""
    check_named(table, names, "array")
    if names and type(table) is np.ndarray and table.dtype.str in PLAIN_NUMBERS:
        return Matrix(table, names)
    return NamedArrays([(name, table[:, i]) for i, name in enumerate(names)])


def check_named(table: Any, names: Sequence[str], what: str, least: int = 0) -> None:
    """Raise unless ``columns=`` names each column of a two-dimensional array or tensor, of ``least`` columns at least, by its own name."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TableError(f"columns= must be a list of names, one for each column of the {what}.")
    if table.ndim != 2 or table.shape[1] != len(names) or len(names) < least:
        raise TableError(
            f"columns= gives {len(names)} names, so the table must be a two-dimensional {what} with {max(least, len(names))} columns and "
            f"one row per unit of privacy."
        )
    if len(set(names)) < len(names):
        raise TableError("columns= gives a name twice. Give every column its own name.")


def check_flat(columns: Sequence[tuple[object, Any]], what: str) -> None:
    """Raise unless the columns have one dimension, and are of one length."""
    for name, values in columns:
        if getattr(values, "ndim", 1) != 1:
            raise TableError(f"column {name!r} has {values.ndim} dimensions, but it must have one. Pass it as a flat {what}.")
    if len({len(values) for _, values in columns}) > 1:
        raise TableError("the table's columns differ in length, but every column needs one cell per row.")
