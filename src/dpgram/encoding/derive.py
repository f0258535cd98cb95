"""Derived columns of many rows, computed from the cells of their parents.

All of it is made of sums, products, quotients and comparisons, which are correctly rounded: every machine gets the same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpgram.terms.columns import Boolean, Categorical, Column, Columns, Date, Numeric, bounds
from dpgram.terms.dates import DAY
from dpgram.terms.derived import DatePart, Derived, Interval, Log, Log1p, Power, Product
from dpgram.terms.elementary import log, log1p, power
from dpgram.terms.schema import Schema

Array = np.ndarray
Cells = Mapping[str, Array]  # see ``derived_values``


def derived_values(schema: Schema, derived: Derived, cells: Cells) -> Array:
    """The derived column in its own units, (encoded columns, rows): clamped, and filled where it is missing.

    ``cells`` holds an array per parent: numbers in own units (days for a date), 0 and 1 for a truth value, for a category the
    place among ``levels``. NaN is a missing cell, and so is whatever makes no sense for the kind; numbers are clamped here."""
    made, columns = schema.made[derived.name], schema.by_name
    with np.errstate(all="ignore"):  # a warning would depend on somebody's row
        clamped = {parent.name: _clamp(parent, cells[parent.name]) for parent in derived.parents(columns)}
        values = _compute(derived, columns, clamped)
        missing = np.isnan(values).any(axis=0)
        values[:, missing] = np.array(made.fill)[:, None]
        return np.clip(values, made.lower, made.upper, out=values)


def _clamp(column: Column, values: Array) -> Array:
    """A new array of cells that the column's kind allows: numbers within its bounds, places of levels, 0 and 1, or NaN."""
    match column:
        case Numeric() | Date():
            return np.where(np.isfinite(values), np.clip(values, *bounds(column)), np.nan)
        case Categorical():
            return np.where((values >= 0) & (values < len(column.levels)) & (values == np.trunc(values)), values, np.nan)
        case Boolean():
            return np.where((values == 0) | (values == 1), values, np.nan)


def _compute(derived: Derived, columns: Columns, cells: Cells) -> Array:
    """(encoded columns, rows) from clamped cells, NaN where a parent's cell is missing."""
    match derived:
        case Product():
            first, second = (_indicators(cells[column.name], places) for column, places in derived.factors(columns))
            pairs = first[:, None] * second[None, :]  # NaN times zero is NaN: what is missing stays so
            return pairs.reshape(len(first) * len(second), first.shape[1])
        case Power():
            return power(cells[derived.of], derived.exponent)[None]
        case Log():
            return log(cells[derived.of])[None]
        case Log1p():
            return log1p(cells[derived.of])[None]
        case Interval():
            low, high = derived.ends(columns)
            x = cells[derived.of]
            return np.where(np.isnan(x), np.nan, (low <= x) & (x < high))[None]
        case DatePart():
            parts = date_part(cells[derived.of], derived.part)
            return _indicators(parts, derived.wanted(columns)) if derived.levels else parts[None]
    raise AssertionError("a schema has checked its derived columns")


def _indicators(cells: Array, values: Sequence[float]) -> Array:
    """(values, rows): 1 where a cell is the value, NaN where it is missing. Without values the cells as they are, (1, rows)."""
    return np.where(np.isnan(cells), np.nan, cells == np.array(values)[:, None]) if len(values) else cells[None]


def date_part(days: Array, part: str) -> Array:
    """The part of each date as a number; NaN where the date is. The dates lie in the years 1 to 9999, where every part is exact."""
    missing = np.isnan(days)
    seconds = np.rint(np.where(missing, 0.0, days) * DAY).astype(np.int64)
    whole = seconds // DAY
    dates = whole.astype("datetime64[D]")
    match part:
        case "year":
            values = _count(dates, "Y") + 1970
        case "quarter":
            values = _count(dates, "M") % 12 // 3 + 1
        case "month":
            values = _count(dates, "M") % 12 + 1
        case "day_of_year":
            values = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1
        case "day":
            values = (dates - dates.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1
        case "weekday":
            values = (whole + 3) % 7 + 1  # 1970-01-01 was a Thursday
        case _:
            values = (seconds - whole * DAY) // 3600
    return np.where(missing, np.nan, values)


def _count(dates: Array, unit: str) -> Array:
    """Whole years or months since 1970."""
    return dates.astype(f"datetime64[{unit}]").astype(np.int64)
