"""An analyst's own rows, encoded by the code that encodes a release's rows, so that a model can predict for them.

These rows are the analyst's: nothing about them is protected. A cell that a release reads is read the same; one that a release would count
as missing because it cannot be read or is no declared level, a typing mistake most likely, raises an error that says so. A row that would
not count in a release has no prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.encoding.cells import NUMBER, as_days, as_numbers, as_text, as_truth, levels_of, plain
from dpgram.encoding.columns import arrow_cells, as_column
from dpgram.encoding.encode import Encoder
from dpgram.encoding.types import as_bytes, check_type, is_text
from dpgram.errors import ColumnTypeError, ModelError, TableError, suggestion
from dpgram.regression.design import Design
from dpgram.terms.columns import DROP_ROW, MIDPOINT, Boolean, Categorical, Column, Date, Numeric
from dpgram.terms.schema import Schema

Array = np.ndarray

# Of a text cell in lower case: a number, too large ones and those that a kind does not allow included, or a word for there being none.
NUMBER_OR_NONE = rf"{NUMBER}|^[+-]?(nan|inf|infinity)?$"
WORDS = {
    "numeric": "numbers",
    "categorical": "its categories",
    "boolean": "truth values",
    "date": "dates, times or ISO 8601 text",
}


def own_features(schema: Schema, design: Design, frame: Any) -> Array:
    """(rows, coefficients): what each coefficient is multiplied by, in own units. Columns that the model does not use need not be there."""
    used = np.flatnonzero(np.any(design.regressors != 0, axis=1))
    scaled = encoded_frame(schema, frame, {name for j in used for name in schema.encoded[j].sources})
    return design.label_unit * np.linalg.solve(design.to_own_units.T, design.regressors.T @ scaled.T).T


def encoded_frame(schema: Schema, frame: Any, needed: set[str]) -> Array:
    """(rows, encoded columns): the rows as a release encodes them, NaN where a needed cell is missing and such rows do not count.

    Declared columns that are not ``needed`` count as missing."""
    columns, rows = _named_columns(frame)
    names = [name for name, _ in columns]
    for name in sorted(needed & set(names)):
        if names.count(name) > 1:
            raise ModelError(f"the frame has several columns named {name!r}, but only one is allowed. Keep one of them.")
    for name in sorted(needed - set(names)):
        raise ModelError(f"the model uses column {name!r}, but the frame has no such column. Add it.")
    cells = {name: _cells(schema.by_name[name], values) for name, values in columns if name in needed}
    batch = pa.record_batch({name: cells.get(name, pa.nulls(rows)) for name in schema.names})
    encoder = Encoder(replace(schema, columns=_not_dropping(schema, needed)), untyped=frozenset(schema.names))
    encoded, counted = encoder.encode_counted(batch)  # types were checked with the cells
    return encoded.T if counted is None else np.where(counted, encoded, np.nan).T


def _not_dropping(schema: Schema, needed: set[str]) -> tuple[Column, ...]:
    """The columns, where those that are not ``needed`` drop no row."""
    instead: dict[type, Any] = {Numeric: MIDPOINT, Date: MIDPOINT, Categorical: "reference", Boolean: False}
    return tuple(
        replace(c, missing=instead[type(c)]) if c.missing == DROP_ROW and c.name not in needed else c for c in schema.columns
    )


def _named_columns(frame: Any) -> tuple[list[tuple[str, Any]], int]:
    """The columns with their names, and the number of rows."""
    try:
        if isinstance(frame, Mapping):
            columns = [(str(name), _listed(values)) for name, values in frame.items()]
            lengths = {len(values) for _, values in columns}
            if len(lengths) > 1:
                raise ModelError("the columns of the frame have different lengths. Give each the same number of rows.")
            return columns, max(lengths, default=0)
        if hasattr(frame, "iloc") and hasattr(frame, "columns"):  # pandas
            return [(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns)], len(frame)
        if isinstance(frame, pa.Table | pa.RecordBatch) or hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
            return list(zip(table.column_names, table.columns, strict=True)), table.num_rows
    except ModelError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise ModelError(f"the frame cannot be read as columns with names: {problem}.") from None
    raise ModelError(
        f"the frame is a {type(frame).__name__}, but predict needs columns with names. Pass a pandas, polars or Arrow table, or a dict "
        f"of lists."
    )


def _listed(values: Any) -> Any:
    """A column of a dict; a single cell is a column of one."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
        return [values]
    return list(values) if isinstance(values, Sequence) and not hasattr(values, "__arrow_c_stream__") else values


def _cells(column: Column, values: Any) -> pa.Array:
    """The cells in Arrow, as a release has them; an error if the type, or a cell, is not for the column's kind."""
    try:
        given = as_column(values)
        if isinstance(given, np.ndarray) and given.ndim != 1:
            raise ModelError(
                f"the frame cannot be read as columns with names: column {column.name!r} has {given.ndim} dimensions."
            )
        cells = plain(arrow_cells(given))
        if not is_text(cells.type):
            check_type(column, cells.type)
    except ColumnTypeError as problem:
        raise ModelError(
            f"column {column.name!r} of the frame contains {problem.found}, but it needs {WORDS[column.kind]}."
        ) from None
    except (TableError, pa.ArrowException, TypeError, ValueError) as problem:
        raise ModelError(f"column {column.name!r} of the frame cannot be read as {column.kind}: {problem}.") from None
    wrong = _unreadable(column, cells) | _lost(given, cells)
    if wrong.any():
        cell = given[int(wrong.argmax())]
        shown = cell.as_py() if isinstance(cell, pa.Scalar) else cell
        raise ModelError(f"column {column.name!r} of the frame cannot be read as {column.kind}. One of its cells is {shown!r}.")
    if isinstance(column, Categorical) and not column.other:
        _check_levels(column, cells)
    if isinstance(column, Boolean):
        _check_truth(column, cells)
    return cells


def _check_truth(column: Boolean, cells: pa.Array) -> None:
    """Raise where a cell holds a number that is no truth value: the answer would be that of a missing cell."""
    undeclared = np.isnan(as_truth(cells)) & ~np.isnan(as_numbers(cells))
    if undeclared.any():
        raise ModelError(
            f"column {column.name!r} of the frame contains {_first(cells, undeclared)!r}, which is not a truth value. The truth values are "
            f"True and False, or 1 and 0."
        )


def _first(cells: pa.Array, which: Array) -> str:
    """The first of some cells, as text."""
    place = int(which.argmax())
    return str(as_text(cells)[place].as_py()) if is_text(cells.type) else str(cells[place])


def _check_levels(column: Categorical, cells: pa.Array) -> None:
    """Raise where a cell holds something that is no declared level: the answer would be that of a missing cell."""
    place, present = levels_of(cells, column.categories)
    undeclared = np.isnan(place) & present
    if undeclared.any():
        level = _first(cells, undeclared)
        shown = ", ".join(map(repr, column.levels[:20])) + (
            f" and {len(column.levels) - 20} more" if len(column.levels) > 20 else ""
        )
        raise ModelError(
            f"column {column.name!r} of the frame contains {level!r}, which is not a declared level.{suggestion(level, column.levels)} "
            f"The levels are {shown}."
        )


def _unreadable(column: Column, cells: pa.Array) -> Array:
    """Where a text holds something, and nothing of the column's kind. That a number lies beyond the bounds is no mistake."""
    if not is_text(cells.type):
        return np.zeros(len(cells), dtype=bool)
    text = as_text(cells)
    holds = np.asarray(pc.fill_null(pc.greater(pc.binary_length(as_bytes(cells)), 0), False))
    match column:
        case Categorical() if not column.matches_numbers:
            return holds & np.asarray(text.is_null())  # not UTF-8
        case Date():
            read, instead = as_days(cells), "^$"
        case Boolean():
            read, instead = as_truth(cells), NUMBER_OR_NONE
        case _:
            read, instead = as_numbers(cells), NUMBER_OR_NONE
    words = pc.match_substring_regex(pc.utf8_lower(pc.utf8_trim_whitespace(text)), instead)
    return holds & np.isnan(read) & ~np.asarray(words.fill_null(False))


def _lost(given: Array | pa.ChunkedArray, cells: pa.Array) -> Array:
    """Where an object is neither a cell nor a way to say that there is none."""
    lost = np.zeros(len(cells), dtype=bool)
    if isinstance(given, np.ndarray) and given.dtype == object:
        objects = given.tolist()  # None where an array masks a cell
        for place in np.flatnonzero(cells.is_null()):
            lost[place] = not _says_missing(objects[place])
    return lost


def _says_missing(cell: object) -> bool:
    try:
        return cell is None or bool(cell != cell)  # NaN and NaT equal nothing
    except TypeError:
        return True  # pandas' NA cannot say what it equals
    except (ValueError, ArithmeticError):
        return False
