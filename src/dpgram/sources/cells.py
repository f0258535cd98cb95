"""What a source declares and holds, before a cell is looked at: the type of a column, and buffers that can be read safely."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

# Types with the same buffers, in which every cell is sound.
MEANINGLESS = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.date64(): pa.int64(),
}


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
