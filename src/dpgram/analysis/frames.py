"""An analyst's own rows, encoded as the release's rows were, so that a model can predict for them.

These rows are the analyst's: nothing about them is protected, and what makes no sense raises an error that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.errors import ModelError
from dpgram.regression.design import Design
from dpgram.terms.columns import MISSING, OTHER, Boolean, Categorical, Column, Date
from dpgram.terms.derivation import clamp
from dpgram.terms.schema import Schema

Array = np.ndarray

SECONDS_IN_A_DAY = 86_400


def own_features(schema: Schema, plan: Design, frame: Any) -> Array:
    """(rows, coefficients): what each coefficient is multiplied by, in own units.

    Cells are treated as in the release: clamped to the declared bounds, missing ones filled. Columns that the model does not use
    need not be there."""
    used = [j for j in np.flatnonzero(np.any(plan.regressors != 0, axis=1)) if schema.encoded[j].column is not None]
    needed = {name for j in used for name in schema.encoded[j].sources}
    table = _table(frame)
    missing = sorted(needed - set(table.column_names))
    if missing:
        raise ModelError(f"the frame has no column {missing[0]!r}, which the model uses: add it.")
    twice = sorted(name for name in needed if table.column_names.count(name) > 1)
    if twice:
        raise ModelError(f"the frame has two columns {twice[0]!r}: keep one.")
    cells = {name: _cells(schema.by_name[name], table.column(name)) for name in needed}
    scaled = np.zeros((table.num_rows, len(schema.encoded)))
    if schema.intercept:
        scaled[:, 0] = 1.0
    for name in dict.fromkeys(schema.encoded[j].column for j in used):
        places = [j for j, e in enumerate(schema.encoded) if e.column == name]
        for j, own in zip(places, _own_columns(schema, str(name), cells), strict=True):
            e = schema.encoded[j]
            scaled[:, j] = np.clip((own - e.centre) / e.half, -1.0, 1.0)
    return plan.label_unit * np.linalg.solve(plan.to_own_units.T, plan.regressors.T @ scaled.T).T


def _own_columns(schema: Schema, name: str, cells: Mapping[str, Array]) -> Array:
    """(encoded columns, rows) of a declared or derived column in its own units, with missing cells filled."""
    for derived in schema.derived:
        if derived.name == name:
            return schema.derive(derived, cells)
    column = schema.by_name[name]
    values = clamp(column, cells[name])
    match column:
        case Categorical():
            place = np.where(np.isnan(values), 0, values)  # the reference
            return np.array([place == level for level in range(1, len(column.levels))], dtype=float)
        case Boolean():
            return np.where(np.isnan(values), float(column.missing), values)[None]
        case _:
            return np.where(np.isnan(values), column.fill, values)[None]


def _table(frame: Any) -> pa.Table:
    try:
        if isinstance(frame, Mapping):
            frame = _equally_long({name: _column(values) for name, values in frame.items()})
        if isinstance(frame, dict | pa.Table | pa.RecordBatch) or hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
    except ModelError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise ModelError(f"the frame cannot be read as columns with names: {problem}.") from None
    raise ModelError(
        f"the frame is a {type(frame).__name__}, and columns with names are needed: a pandas, polars or Arrow table, or a dict of lists."
    )


def _equally_long(columns: dict[str, Any]) -> dict[str, Any]:
    if len({len(column) for column in columns.values()}) > 1:
        raise ModelError("the columns of the frame differ in length: give each the same number of rows.")
    return columns


def _column(values: Any) -> pa.Array | pa.ChunkedArray:
    """One value of a dict: a list, an array, a series, or a single cell."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    return pa.array(values if isinstance(values, list | tuple) else np.atleast_1d(np.asarray(values)), from_pandas=True)


def _cells(column: Column, cells: pa.ChunkedArray) -> Array:
    """Numbers (days for a date), places of levels, or truth values; NaN where a cell is missing."""
    try:
        if pa.types.is_dictionary(cells.type):
            cells = _decoded(cells)
        match column:
            case Categorical():
                return _levels(column, cells)
            case Date():
                return _days(column, cells)
            case _:
                return _floats(cells.cast(pa.int8()) if pa.types.is_boolean(cells.type) else cells)
    except pa.ArrowException as problem:
        raise ModelError(f"column {column.name!r} of the frame cannot be read as {column.kind}: {problem}.") from None


def _decoded(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """What a dictionary's codes stand for, chunk by chunk: a view of strings, as polars has it, cannot be taken from."""
    kind = cells.type.value_type
    kind = pa.large_string() if pa.types.is_string_view(kind) else kind
    return pa.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in cells.chunks], kind)


def _days(column: Date, cells: pa.ChunkedArray) -> Array:
    of = cells.type
    if pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of):
        cells = cells.cast(pa.large_string()).cast(pa.timestamp("us"))
    elif cells.null_count < len(cells) and not (pa.types.is_date(of) or pa.types.is_timestamp(of)):
        raise ModelError(f"column {column.name!r} of the frame holds {of}, and dates, times or ISO 8601 text are needed.")
    elif not len(cells) or pa.types.is_null(of):
        return np.full(len(cells), np.nan)
    return _floats(cells.cast(pa.timestamp("s"), safe=False).cast(pa.int64())) / SECONDS_IN_A_DAY


def _floats(cells: pa.ChunkedArray) -> Array:
    return np.array(pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=float)  # our own copy


def _levels(column: Categorical, cells: pa.ChunkedArray) -> Array:
    """Places among the levels, NaN where a cell is missing and has no level of its own.

    A value that is not declared is ``other``, or missing where there is no such level."""
    if column.matches_numbers:
        values, known = _floats(cells), np.array(column.categories, dtype=float)
        place = np.full(len(values), np.nan)
        for level, category in enumerate(known):
            place[values == category] = level
        present = np.isfinite(values)
    else:
        text = cells.cast(pa.large_string())
        found = pc.index_in(text, value_set=pa.array(column.categories, pa.large_string()))
        place = _floats(found)
        present = np.asarray(pc.and_(text.is_valid(), pc.not_equal(pc.fill_null(text, ""), "")))
    undeclared = np.isnan(place)
    if column.missing == "level":  # a level like the others, in a derived column too
        place[undeclared] = column.levels.index(MISSING)
    if column.other:
        place[undeclared & present] = column.levels.index(OTHER)
    return place
