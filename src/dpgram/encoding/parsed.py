"""A batch whose texts were read: numbers, truth values and days in types of their own, so that a later look need not read them again.

Statement: the encoder makes the same bits of it as of the batch itself, whichever scales are learnt in between. So the first look can be at
either."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dpgram.encoding.cells import as_days, as_numbers, as_truth
from dpgram.encoding.encode import Batch, Cells
from dpgram.encoding.types import as_bytes, is_text
from dpgram.terms.columns import Boolean, Categorical, Column, Date, Numeric
from dpgram.terms.dates import DAY
from dpgram.terms.schema import Schema

Array = np.ndarray


def parsed(schema: Schema, batch: Batch) -> pa.RecordBatch:
    """The declared columns of the batch, and those of ids and weights. May raise with cells in the message: call it quietly."""
    declared = dict(schema.by_name)
    if schema.weight is not None:
        declared.setdefault(schema.weight, Numeric(schema.weight, 0.0, 1.0))
    with np.errstate(all="ignore"):  # a warning would depend on somebody's row
        arrays = {name: _arrow(batch.column(name)) for name in schema.read_names}
        read = [_parsed(declared[n], cells) if n in declared and n != schema.unit_id else cells for n, cells in arrays.items()]
    return pa.RecordBatch.from_arrays(read, names=list(schema.read_names))


def _arrow(cells: Cells) -> pa.Array:
    return pa.array(np.ascontiguousarray(cells)) if isinstance(cells, np.ndarray) else cells


def _parsed(column: Column, cells: pa.Array) -> pa.Array:
    inner = cells.type.value_type if pt.is_dictionary(cells.type) else cells.type
    text, decimal = is_text(inner), pt.is_decimal(inner)  # decimals are read by way of text
    match column:
        case Numeric() if text or decimal:
            return _numbers(as_numbers(cells))
        case Boolean() if text or decimal:
            truth = as_truth(cells)
            return pa.array(truth.astype(np.int8), mask=np.isnan(truth))
        case Date() if text:
            days = as_days(cells)
            whole = np.floor(days)
            seconds = whole * DAY + np.rint((days - whole) * DAY)  # days were made of whole seconds
            return pa.array(seconds.astype(np.int64), mask=np.isnan(days)).cast(pa.timestamp("s"))
        case Categorical() if is_text(cells.type):
            return _coded(as_bytes(cells).dictionary_encode())
    return cells


def _numbers(values: Array) -> pa.Array:
    """The numbers in half the room, where they all fit."""
    single = values.astype(np.float32)
    return pa.array(single if np.array_equal(single, values, equal_nan=True) else values)


def _coded(cells: pa.DictionaryArray) -> pa.DictionaryArray:
    """The cells by the narrowest indices that do."""
    size = len(cells.dictionary)
    narrow = next(kind for kind in (pa.int8(), pa.int16(), pa.int32()) if size <= 2 ** (kind.bit_width - 1))
    return pa.DictionaryArray.from_arrays(cells.indices.cast(narrow), cells.dictionary)
