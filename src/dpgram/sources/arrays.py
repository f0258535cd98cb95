"""NumPy arrays with named columns: structured arrays, dicts of one-dimensional arrays, two-dimensional arrays with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dpgram.errors import TableError
from dpgram.sources.base import ArrayBatch, MatrixBatch, Piece, batch_rows, quietly
from dpgram.sources.cells import check_buffers, declared_type, is_arrow_text, text_as_bytes, untyped_array
from dpgram.sources.frames import pandas_column

Column = Any  # a NumPy array or an Arrow chunked array
PLAIN_NUMBERS = frozenset(np.dtype(kind).str for kind in ("f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"))  # native
FARTHEST_DAY = 10**12  # in seconds still within 64 bits


class NamedArrays:
    """Named one-dimensional arrays of one length, NumPy's or Arrow's. Columns of text or objects are untyped."""

    where = "the table (NumPy arrays)"
    typed_by_format = True
    rows_of = "table"
    rereadable = True

    def __init__(self, columns: Sequence[tuple[str, Column]]):
        if not columns:
            raise TableError("the table has no columns, and at least one is needed.")
        for name, values in columns:
            if isinstance(values, np.ndarray) and values.ndim != 1:
                raise TableError(f"column {name!r} has {values.ndim} dimensions, and one is needed: pass it as a flat array.")
        if len({len(values) for _, values in columns}) > 1:
            raise TableError("the table's columns differ in length: every column needs one cell per row.")
        self._columns = dict(columns)
        self.untyped = frozenset(name for name, values in columns if _is_untyped(values))
        self.columns = pa.schema([pa.field(name, self._type(name, values)) for name, values in columns])

    def _type(self, name: str, values: Column) -> pa.DataType:
        if isinstance(values, pa.ChunkedArray):
            return pa.binary() if name in self.untyped else values.type
        return pa.binary() if name in self.untyped else declared_type(lambda: pa.array(_native(values[:0])), values.dtype)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        rows = len(next(iter(self._columns.values())))
        step = batch_rows(len(names))
        types = pa.schema([self.columns.field(name) for name in names])
        for start in range(0, rows, step):
            end = min(rows, start + step)
            arrays = {name: quietly(self.where, self._array, name, slice(start, end)) for name in names}
            yield Piece(ArrayBatch(arrays, types, end - start), end / rows)

    def _array(self, name: str, part: slice) -> pa.Array | np.ndarray:
        whole = self._columns[name]
        if type(whole) is np.ndarray and whole.dtype.str in PLAIN_NUMBERS and name not in self.untyped:
            return whole[part]
        if isinstance(whole, pa.ChunkedArray):
            cells = whole.slice(part.start, part.stop - part.start)
            check_buffers(cells)
            return (text_as_bytes(cells) if name in self.untyped else cells).combine_chunks()
        values = whole[part]
        if name in self.untyped:
            return untyped_array(_items(values))
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(_native(values.data), mask=np.ma.getmaskarray(values))
        return pa.array(_native(values))


class Matrix:
    """The columns of a two-dimensional array of plain numbers, by name. Nothing is copied."""

    where, rows_of = NamedArrays.where, "table"
    rereadable = True
    untyped: frozenset[str] = frozenset()
    typed_by_format = True

    def __init__(self, table: np.ndarray, names: Sequence[str]):
        if not names:
            raise TableError("the table has no columns, and at least one is needed.")
        self._table = table
        self._places = {name: place for place, name in enumerate(names)}
        self.columns = pa.schema([pa.field(name, pa.from_numpy_dtype(table.dtype)) for name in names])

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        places = [self._places[name] for name in names]
        rows = len(self._table)
        step = batch_rows(len(names))
        types = pa.schema([self.columns.field(name) for name in names])
        together = places == list(range(places[0], places[0] + len(places)))
        for start in range(0, rows, step):
            part = self._table[start : start + step]
            wanted = part[:, places[0] : places[0] + len(places)] if together else part[:, places]
            yield Piece(MatrixBatch(wanted, types), min(1.0, (start + step) / rows))


def _native(values: np.ndarray) -> np.ndarray:
    """The values in one stretch of memory and in this machine's byte order, as Arrow wants them.

    Arrow counts days in 32 bits, and one far off would wrap into the middle of somebody's bounds: days become seconds here."""
    plain = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False)
    if plain.dtype == np.dtype("datetime64[D]"):
        within = np.clip(plain.view(np.int64), -FARTHEST_DAY, FARTHEST_DAY).view("datetime64[D]")
        plain = np.where(np.isnat(plain), plain, within).astype("datetime64[s]")
    return plain


def from_structured(table: np.ndarray) -> NamedArrays:
    """A structured array: one column per field."""
    if table.ndim != 1:
        raise TableError(f"the structured array has {table.ndim} dimensions, and one is needed: one record per row.")
    return NamedArrays([(name, table[name]) for name in table.dtype.names or ()])


def from_mapping(table: Mapping) -> NamedArrays:
    """A dict of names and one-dimensional arrays, series or lists."""
    return NamedArrays([(str(name), quietly(NamedArrays.where, as_column, values)) for name, values in table.items()])


def from_matrix(table: np.ndarray, names: Sequence[str]) -> NamedArrays | Matrix:
    """A two-dimensional array, rows down, and the names of its columns."""
    if table.ndim != 2 or table.shape[1] != len(names):
        raise TableError(
            f"columns= gives {len(names)} names, so a two-dimensional array of {len(names)} columns is needed, one row per "
            f"unit of privacy."
        )
    if len(set(names)) < len(names):
        raise TableError("columns= gives a name twice: every column needs a name of its own.")
    if type(table) is np.ndarray and table.dtype.str in PLAIN_NUMBERS:
        return Matrix(table, names)
    return NamedArrays([(name, table[:, i]) for i, name in enumerate(names)])


def as_column(values: object) -> Column:
    """A column by what is declared about it, never by what its cells hold: a missing cell must not turn integers into floats.

    NumPy's arrays stay as they are; the cells of a list are cast one by one; series of pandas and polars, and Arrow's own arrays, go
    through Arrow, whose types know missing cells."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _arrow_column(values)
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "iloc") and not isinstance(dtype, np.dtype):
        return _arrow_column(pandas_column(values))
    if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "iloc"):
        return _arrow_column(pa.chunked_array(values))
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if not isinstance(values, list | tuple):
        raise TableError("each column of a dict table must be a one-dimensional array or a list.")
    return object_array(values)


def object_array(values: Sequence[object]) -> np.ndarray:
    """A one-dimensional array of the objects. All at once, NumPy would look into them."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _arrow_column(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _is_untyped(values: Column) -> bool:
    return is_arrow_text(values.type) if isinstance(values, pa.ChunkedArray) else values.dtype.kind in "OUST"


def _items(values: np.ndarray) -> list:
    """The cells as Python objects, masked ones as None, and None for text that is no Unicode."""
    try:
        return values.tolist()
    except ValueError:
        return [_item(values, place) for place in range(len(values))]


def _item(values: np.ndarray, place: int) -> object:
    try:
        return values[place : place + 1].tolist()[0]
    except ValueError:
        return None
