"""Python objects as untyped cells: the bytes of their text, to be cast one by one under the schema."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

# Types with the same buffers, in which every cell is sound.
MEANINGLESS = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.date64(): pa.int64(),
}
LONGEST_INTEGER = 1024  # bits; beyond it the number is no float, and its text may be refused by Python


def declared_type(empty: Callable[[], pa.Array], dtype: object) -> pa.DataType:
    """The Arrow type of a column's empty slice; for a dtype that Arrow lacks, a type that no kind of column takes.

    The column may be one that the schema does not declare, so a strange dtype is no error here."""
    try:
        return empty().type
    except (pa.ArrowException, TypeError, ValueError):
        return pa.struct([pa.field(type(dtype).__name__, pa.null())])  # its full name may hold a value (sparse dtypes)


def check_buffers(cells: pa.Array | pa.ChunkedArray) -> None:
    """Raise if offsets, views or indices point outside: read as they are, they would end the process. May quote them: call it quietly.

    What a cell holds is not looked at. Text that is not UTF-8, a decimal of too many digits or a date in the middle of a day is no
    damage but somebody's cell."""
    for chunk in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        _without_meaning(chunk).validate(full=True)


def _without_meaning(cells: pa.Array) -> pa.Array:
    if isinstance(cells, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(cells.indices, _without_meaning(cells.dictionary), safe=False)
    if pt.is_decimal(cells.type):
        return cells.view(pa.binary(cells.type.byte_width))
    return cells.view(MEANINGLESS[cells.type]) if cells.type in MEANINGLESS else cells


def untyped_array(objects: Iterable[object]) -> pa.Array:
    """A binary array of the objects' texts; null where an object is no text, number, truth value or date."""
    return pa.array([_quiet_text(item) for item in objects], pa.large_binary())


def text_as_bytes(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Arrow text as bytes, unchecked: files may lie, and what is not UTF-8 is a missing cell to the encoder."""
    if pt.is_large_string(cells.type) or pt.is_large_binary(cells.type):
        return cells.cast(pa.large_binary())
    return cells.cast(pa.binary())


def is_arrow_text(arrow_type: pa.DataType) -> bool:
    text = pt.is_string(arrow_type) or pt.is_large_string(arrow_type) or pt.is_string_view(arrow_type)
    return text or pt.is_binary(arrow_type) or pt.is_large_binary(arrow_type) or pt.is_binary_view(arrow_type)


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
        case bool():
            return b"true" if cell else b"false"
        case int():
            return str(cell).encode() if cell.bit_length() <= LONGEST_INTEGER else None
        case float():
            return None if cell != cell else repr(float(cell)).encode()  # NaN is how pandas writes "missing"
        case Decimal():
            return None if cell.is_nan() else str(cell).encode()
        case datetime.date():
            return None if cell != cell else cell.isoformat().encode()  # pandas' NaT is a datetime that equals nothing
        case _:
            return None
