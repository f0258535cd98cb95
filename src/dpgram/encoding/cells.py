"""Arrow columns as numbers, levels, truth values and dates, where a cell that makes no sense is a missing cell.

Nothing here raises for what a cell holds: whether it would depends on somebody's row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dpgram.encoding.types import as_bytes, is_text, null_where
from dpgram.terms.columns import EXACT_INTEGERS
from dpgram.terms.dates import DAY, days_of_seconds

Array = np.ndarray

# What counts as a number in a text cell, after white space at its ends is dropped. "nan" and "inf" are missing anyway.
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"  # in lower case
# What counts as a date in a text cell: ISO 8601 in its extended format, T or a space before the time of day.
DATE = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)?)?$"
)
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second
NONE = (b"", b"NA", b"N/A", b"NULL", b"null", b"None", b"NaN", b"nan", b"-")  # how a missing number is often written
BEYOND_INTEGERS = 2.0**63  # the smallest float that is too large for 64 bits
YES, NO = ("t", "yes", "y"), ("f", "no", "n")  # besides numbers, true and false


def as_numbers(cells: pa.Array) -> Array:
    """float64, NaN where a cell is missing, does not parse or is not finite. True and false are 1 and 0."""
    cells = plain(cells)
    if pt.is_decimal(cells.type):
        cells = cells.cast(pa.string())  # by way of text a decimal becomes the nearest float, as it does in a CSV
    if is_text(cells.type):
        cells = _numbers_of_text(cells)
    if pt.is_boolean(cells.type):
        cells = cells.cast(pa.int8())
    values = np.array(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    values[~np.isfinite(values)] = np.nan
    return values


def _numbers_of_text(cells: pa.Array) -> pa.Array:
    """float64, null where a cell holds no number. Where all cells are numbers or say that there is none, as they mostly do, they are cast
    at once: to look at each takes thirty times as long."""
    plain = as_bytes(cells)
    for is_missing in (_is_empty, _says_none):
        try:
            return null_where(is_missing(plain), plain).cast(pa.float64())
        except pa.ArrowInvalid:  # its message quotes a cell, and goes no further
            pass
    text = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(cells)))
    word = pc.index_in(text, value_set=pa.array(["false", "true"], pa.large_string()))
    number = null_where(pc.invert(pc.match_substring_regex(text, NUMBER)), text)
    return pc.coalesce(number.cast(pa.float64()), word.cast(pa.float64()))


def _is_empty(cells: pa.Array) -> pa.Array:
    return pc.equal(pc.binary_length(cells), 0)


def _says_none(cells: pa.Array) -> pa.Array:
    return pc.is_in(cells, pa.array(NONE, pa.large_binary()))


def as_text(cells: pa.Array) -> pa.Array:
    """UTF-8 strings, null where a cell is missing, empty or not UTF-8. A whole number is written without a point."""
    cells = plain(cells)
    if pt.is_floating(cells.type) or pt.is_decimal(cells.type):
        numbers = as_numbers(cells)
        other = null_where(pa.array(~np.isfinite(numbers)), cells.cast(pa.large_string()))
        rounded = pt.is_decimal(cells.type) & (np.abs(numbers) > EXACT_INTEGERS)  # a decimal of so many digits is its own text
        cells = pc.coalesce(texts_of_whole(np.where(rounded, np.nan, numbers)), other)
    if is_text(cells.type):
        cells = _decoded(as_bytes(cells))
    text = cells.cast(pa.large_string())
    return null_where(pc.equal(text, ""), text)


def texts_of_whole(values: Array) -> pa.Array:
    """Whole numbers of any size as all of their digits; null where a float is none."""
    whole = np.isfinite(values) & (values == np.trunc(values))
    within = whole & (np.abs(values) < BEYOND_INTEGERS)
    texts = pa.array(np.where(within, values, 0.0).astype(np.int64), mask=~within).cast(pa.large_string())
    if (beyond := np.flatnonzero(whole & ~within)).size:
        digits = np.full(len(values), None, dtype=object)
        digits[beyond] = [str(int(value)) for value in values[beyond]]
        texts = pc.coalesce(texts, pa.array(digits, pa.large_string()))
    return texts


def as_truth(cells: pa.Array) -> Array:
    """0.0 and 1.0, NaN where a cell is neither. Text may say it in words."""
    cells = plain(cells)
    values = _each_once(_truth_of_text, cells) if is_text(cells.type) else as_numbers(cells)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def _truth_of_text(cells: pa.Array) -> Array:
    text = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(cells)))
    word = _with_nan(pc.index_in(text, value_set=pa.array(NO + YES, pa.large_string())))
    return np.where(np.isnan(word), as_numbers(cells), word >= len(NO))


def _each_once(number: Callable[[pa.Array], Array], cells: pa.Array) -> Array:
    """The ``number`` of each cell, worked out once for each text that occurs: to read a date takes longer than to find it again."""
    coded = as_bytes(cells).dictionary_encode()
    return _with_nan(pa.array(number(coded.dictionary)).take(coded.indices))


def as_days(cells: pa.Array) -> Array:
    """Days since 1970-01-01 00:00 UTC, cut to the second; NaN where a cell is missing or is no date.

    Timestamps with a time zone are instants, which Arrow keeps in UTC; those without are taken as UTC."""
    cells = plain(cells)
    if is_text(cells.type):
        return _each_once(_days_of_text, cells)
    missing = np.asarray(cells.is_null())
    if pt.is_null(cells.type):
        return np.full(len(cells), np.nan)
    if pt.is_date32(cells.type):
        return np.where(missing, np.nan, _integers(cells.cast(pa.int32())).astype(np.float64))
    ticks = TICKS["ms" if pt.is_date64(cells.type) else cells.type.unit]
    seconds = _integers(cells.cast(pa.int64())) // ticks
    return np.where(missing, np.nan, days_of_seconds(seconds))


def _days_of_text(cells: pa.Array) -> Array:
    parts = pc.extract_regex(pc.utf8_trim_whitespace(as_text(cells)), DATE)
    part = {field.name: parts.field(i) for i, field in enumerate(parts.type)}
    missing = np.asarray(parts.is_null())
    year, month, day, hour, minute, second, zone_hour, zone_minute = (
        _integers(null_where(pc.equal(part[name], ""), part[name]).cast(pa.int64()))
        for name in ("year", "month", "day", "hour", "minute", "second", "zone_hour", "zone_minute")
    )
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    date = months.astype("datetime64[D]") + (day - 1)
    sound = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (date.astype("datetime64[M]") == months)
    sound &= (hour <= 23) & (minute <= 59) & (second <= 59) & (zone_hour <= 23) & (zone_minute <= 59)
    zone = (zone_hour * 60 + zone_minute) * np.where(_truth(pc.equal(part["sign"], "-")), -60, 60)
    seconds = date.astype(np.int64) * DAY + hour * 3600 + minute * 60 + second - zone
    return np.where(missing | ~sound, np.nan, days_of_seconds(seconds))


def levels_of(cells: pa.Array, categories: tuple) -> tuple[Array, Array]:
    """For each cell its place among ``categories`` (NaN if in none), and whether it holds anything at all.

    Integer categories are matched as numbers: 1, 1.0 and "1" are one."""
    if pt.is_dictionary(cells.type) and len(cells.dictionary) < len(cells):  # to look at each value once is less work
        # Arrow checks the indices, which NumPy would count from the end. A cell without one is in no place, and holds nothing.
        place, present = (pa.array(of_value).take(cells.indices) for of_value in levels_of(cells.dictionary, categories))
        return _with_nan(place), _truth(present)
    if isinstance(categories[0], int):
        values = as_numbers(cells) + 0.0  # minus zero becomes zero
        place = pc.index_in(pa.array(values), value_set=pa.array([float(c) for c in categories]))
        return _with_nan(place), np.isfinite(values)
    text = as_text(cells)
    place = pc.index_in(text, value_set=pa.array(categories, pa.large_string()))
    return _with_nan(place), ~np.asarray(text.is_null())


def plain(cells: pa.Array) -> pa.Array:
    """Dictionaries decoded."""
    if not pt.is_dictionary(cells.type):
        return cells
    values = cells.dictionary
    if is_text(values.type):
        values = as_bytes(values)  # views cannot be taken from, and what they hold is checked later
    return values.take(cells.indices)


def _decoded(cells: pa.Array) -> pa.Array:
    """Bytes as strings, null where they are not UTF-8. Declared strings too are checked: files may lie."""
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


def _integers(cells: pa.Array) -> Array:
    """int64, zero where a cell is null."""
    return cells.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def _truth(cells: pa.Array) -> Array:
    return cells.fill_null(False).to_numpy(zero_copy_only=False)
