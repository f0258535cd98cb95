"""Arrow columns as numbers, levels and truth values, where a cell that makes no sense is a missing cell.

Nothing here raises for what a cell holds: whether it would depends on somebody's row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dpgram.rows.types import is_bytes, is_text

Array = np.ndarray

# What counts as a number in a text cell, after white space at its ends is dropped. "nan" and "inf" are missing anyway.
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
TRUE, FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")


def as_numbers(cells: pa.Array) -> Array:
    """float64, NaN where a cell is missing, does not parse or is not finite."""
    cells = _plain(cells)
    if pt.is_decimal(cells.type):
        cells = cells.cast(pa.string())  # by way of text a decimal becomes the nearest float, as it does in a CSV
    if is_text(cells.type):
        text = pc.utf8_trim_whitespace(as_text(cells))
        cells = pc.if_else(pc.match_substring_regex(text, NUMBER), text, None)
    if pt.is_null(cells.type):
        return np.full(len(cells), np.nan)
    values = np.array(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    values[~np.isfinite(values)] = np.nan
    return values


def as_text(cells: pa.Array) -> pa.Array:
    """UTF-8 strings, null where a cell is missing, empty or not UTF-8."""
    cells = _plain(cells)
    if is_bytes(cells.type):
        cells = _decoded(cells.cast(pa.binary()).cast(pa.large_binary()))
    text = cells.cast(pa.large_string())
    return pc.if_else(pc.equal(text, ""), None, text)


def as_truth(cells: pa.Array) -> Array:
    """0.0 and 1.0, NaN where a cell is neither."""
    cells = _plain(cells)
    if is_text(cells.type):
        text = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(cells)))
        place = pc.index_in(text, value_set=pa.array(FALSE + TRUE, pa.large_string()))
        places = _with_nan(place)
        return np.where(np.isnan(places), np.nan, places >= len(FALSE))
    if pt.is_boolean(cells.type):
        cells = cells.cast(pa.int8())
    values = as_numbers(cells)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def text_levels(cells: pa.Array, categories: tuple) -> tuple[Array, Array]:
    """For each cell its place among ``categories`` (NaN if in none), and whether it holds anything at all."""
    text = as_text(cells)
    place = pc.index_in(text, value_set=pa.array(categories, pa.large_string()))
    return _with_nan(place), ~np.asarray(text.is_null())


def number_levels(cells: pa.Array, categories: tuple) -> tuple[Array, Array]:
    """The same for integer categories, matched as numbers: 1, 1.0 and "1" are one."""
    values = as_numbers(cells) + 0.0  # minus zero becomes zero
    place = pc.index_in(pa.array(values), value_set=pa.array([float(c) for c in categories]))
    return _with_nan(place), np.isfinite(values)


def _plain(cells: pa.Array) -> pa.Array:
    """Dictionaries decoded."""
    if not pt.is_dictionary(cells.type):
        return cells
    values = cells.dictionary
    return (values.cast(pa.large_string()) if pt.is_string_view(values.type) else values).take(cells.indices)


def _decoded(cells: pa.Array) -> pa.Array:
    """Bytes as strings, null where they are not UTF-8."""
    try:
        return cells.cast(pa.large_string())  # checks all cells at once
    except pa.ArrowInvalid:
        pass
    return pa.array([_utf8(cell) for cell in cells.to_pylist()], pa.large_string())


def _utf8(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _with_nan(places: pa.Array) -> Array:
    return np.array(places.cast(pa.float64()).to_numpy(zero_copy_only=False))
