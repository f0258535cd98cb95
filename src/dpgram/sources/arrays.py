"""NumPy arrays with named columns: structured arrays, dicts of one-dimensional arrays, two-dimensional arrays with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from dpgram.errors import TableError
from dpgram.sources.base import BATCH_ROWS, Piece, quietly, record_batch
from dpgram.sources.cells import declared_type, untyped_array


class NamedArrays:
    """Named one-dimensional arrays of one length. Columns of text or objects are untyped."""

    where = "the table (NumPy arrays)"
    typed_by_format = True

    def __init__(self, columns: Sequence[tuple[str, np.ndarray]]):
        if not columns:
            raise TableError("the table has no columns, and at least one is needed.")
        for name, values in columns:
            if values.ndim != 1:
                raise TableError(f"column {name!r} has {values.ndim} dimensions, and one is needed: pass it as a flat array.")
        if len({len(values) for _, values in columns}) > 1:
            raise TableError("the table's columns differ in length: every column needs one cell per row.")
        self._columns = dict(columns)
        self.untyped = frozenset(name for name, values in columns if values.dtype.kind in "OUST")
        self.columns = pa.schema([pa.field(name, self._type(name, values)) for name, values in columns])

    def _type(self, name: str, values: np.ndarray) -> pa.DataType:
        return pa.binary() if name in self.untyped else declared_type(lambda: pa.array(_native(values[:0])), values.dtype)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        rows = len(next(iter(self._columns.values())))
        for start in range(0, rows, BATCH_ROWS):
            arrays = [quietly(self.where, self._array, name, slice(start, start + BATCH_ROWS)) for name in names]
            yield Piece(record_batch(self.where, names, arrays), min(1.0, (start + BATCH_ROWS) / rows))

    def _array(self, name: str, part: slice) -> pa.Array:
        values = self._columns[name][part]
        if name in self.untyped:
            return untyped_array(_items(values))
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(_native(values.data), mask=np.ma.getmaskarray(values))
        return pa.array(_native(values))


def _native(values: np.ndarray) -> np.ndarray:
    """The values in one stretch of memory and in this machine's byte order, as Arrow wants them."""
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False)


def from_structured(table: np.ndarray) -> NamedArrays:
    """A structured array: one column per field."""
    if table.ndim != 1:
        raise TableError(f"the structured array has {table.ndim} dimensions, and one is needed: one record per row.")
    return NamedArrays([(name, table[name]) for name in table.dtype.names or ()])


def from_mapping(table: Mapping) -> NamedArrays:
    """A dict of names and one-dimensional arrays, series or lists."""
    columns = []
    for name, values in table.items():
        if not isinstance(values, np.ndarray):
            values = _as_array(values)
        columns.append((str(name), values))
    return NamedArrays(columns)


def from_matrix(table: np.ndarray, names: Sequence[str]) -> NamedArrays:
    """A two-dimensional array, rows down, and the names of its columns."""
    if table.ndim != 2 or table.shape[1] != len(names):
        raise TableError(
            f"columns= gives {len(names)} names, so a two-dimensional array of {len(names)} columns is needed, one row per "
            f"unit of privacy."
        )
    if len(set(names)) < len(names):
        raise TableError("columns= gives a name twice: every column needs a name of its own.")
    return NamedArrays([(name, table[:, i]) for i, name in enumerate(names)])


def _as_array(values: object) -> np.ndarray:
    """A series as NumPy sees it; a list as an object array.

    So the cells of a list are cast one by one, and none can decide the type of the others."""
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if not isinstance(values, list | tuple):
        raise TableError("each column of a dict table must be a one-dimensional array or a list.")
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):  # all at once, NumPy would look into the values
        array[place] = value
    return array


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
