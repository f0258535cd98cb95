"""One column of a user's table as Arrow cells: a NumPy array, a series of pandas or polars, Arrow's own, or a list.

A column goes by what is declared about it, never by what its cells hold: a missing cell must not turn integers into floats. Text and
objects have no declared type: each cell becomes the bytes of its text, to be cast one by one under the schema."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dpgram.encoding.types import as_bytes, is_text
from dpgram.errors import TableError

Column: TypeAlias = np.ndarray | pa.ChunkedArray

FARTHEST_DAY = 10**12  # in seconds still within 64 bits
MOST_DIGITS = 300  # of a whole number that is no integer; beyond it the number is hardly a float
LONGEST_INTEGER = 1024  # bits; beyond it the number is no float, and its text may be refused by Python


def as_column(values: object) -> Column:
    """NumPy's arrays as they are, the cells of a list as objects; series, and Arrow's own arrays, go through Arrow, whose types know
    missing cells."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return _chunked(values)
    dtype = getattr(values, "dtype", None)
    if hasattr(values, "iloc") and not isinstance(dtype, np.dtype):
        return _chunked(pandas_column(values))
    if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "iloc"):
        return pa.chunked_array(values)
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if not isinstance(values, list | tuple):
        raise TableError("each column of a dict table must be a one-dimensional array or a list.")
    return object_array(values)


def is_untyped(column: Column) -> bool:
    """Whether its cells are text or objects, to be cast one by one."""
    return _is_text(column.type) if isinstance(column, pa.ChunkedArray) else column.dtype.kind in "OUST"


def arrow_cells(column: Column) -> pa.Array:
    """The cells in Arrow by the column's declared type; untyped ones as bytes."""
    if isinstance(column, pa.ChunkedArray):
        return (as_bytes(column) if is_untyped(column) else column).combine_chunks()
    if is_untyped(column):
        return untyped_array(_items(column))
    if isinstance(column, np.ma.MaskedArray):
        return pa.array(_native(column.data), mask=np.ma.getmaskarray(column))
    return pa.array(_native(column))


def pandas_column(column: Any) -> pa.Array | pa.ChunkedArray:
    """A series of pandas in Arrow by its declared dtype, text and objects as bytes."""
    if not is_pandas_text(column.dtype):
        return pa.Array.from_pandas(column)
    if column.dtype != object and hasattr(column.array, "__arrow_array__"):
        held = column.array.__arrow_array__()  # text that Arrow holds never becomes Python strings: one may not be UTF-8
        if _is_text(held.type):
            return as_bytes(held)
    return untyped_array(column.array)


def is_pandas_text(dtype: Any) -> bool:
    """Whether a pandas dtype is object or a string type, or a category of such values."""
    categories = getattr(dtype, "categories", None)
    if categories is not None and hasattr(categories, "dtype"):
        return is_pandas_text(categories.dtype)
    name = getattr(dtype, "name", "")
    return name in ("object", "str") or name.startswith("string")


def object_array(values: Sequence[object]) -> np.ndarray:
    """A one-dimensional array of the objects, taken one by one: ``np.array`` would look into them."""
    return np.fromiter(values, dtype=object, count=len(values))


def untyped_array(objects: Iterable[object]) -> pa.Array:
    """A binary array of the objects' texts; null where an object is no text, number, UUID, truth value or date."""
    return pa.array([_quiet_text(item) for item in objects], pa.large_binary())


def _is_text(type_: pa.DataType) -> bool:
    """Whether it is text, or bytes that may be: those of a fixed size are declared as something else."""
    return is_text(type_) and not pt.is_fixed_size_binary(type_)


def _chunked(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _native(values: np.ndarray) -> np.ndarray:
    """The values in one stretch of memory and in this machine's byte order, as Arrow wants them.

    Arrow counts days in 32 bits, and one far off would wrap into the middle of somebody's bounds: days become seconds here."""
    plain = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False)
    if plain.dtype == np.dtype("datetime64[D]"):
        within = np.clip(plain.view(np.int64), -FARTHEST_DAY, FARTHEST_DAY).view("datetime64[D]")
        plain = np.where(np.isnat(plain), plain, within).astype("datetime64[s]")
    return plain


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


def _quiet_text(cell: object) -> bytes | None:
    """The cell's text; None where asking for it fails (a time zone that raises, say): that it failed would speak of the cell."""
    try:
        return _text(cell)
    except Exception:
        return None


def _text(cell: object) -> bytes | None:
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else str(cell).encode()  # its item is a bare number where the unit is nanoseconds
    if isinstance(cell, np.generic):
        cell = cell.item()
    match cell:
        case str():
            return cell.encode("utf-8", "surrogatepass")  # a lone surrogate is not UTF-8: the encoder calls it missing
        case bytes():
            return cell
        case UUID():
            return str(cell).encode()
        case bool():
            return b"true" if cell else b"false"
        case int():
            return str(cell).encode() if cell.bit_length() <= LONGEST_INTEGER else None
        case float() if cell.is_integer():
            return str(int(cell)).encode()  # a whole number is written in one way, whatever its type: ids are compared by it
        case float():
            return None if cell != cell else repr(float(cell)).encode()  # NaN is how pandas writes "missing"
        case Decimal() if cell.is_finite() and cell.adjusted() < MOST_DIGITS and cell == cell.to_integral_value():
            return str(int(cell)).encode()
        case Decimal():
            return None if cell.is_nan() else str(cell).encode()
        case datetime.date():
            return None if cell != cell else cell.isoformat().encode()  # pandas' NaT is a datetime that equals nothing
        case _:
            return None
