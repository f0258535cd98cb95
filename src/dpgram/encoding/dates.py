"""Dates of many rows as days since 1970-01-01 00:00 UTC, and their parts. Every part is exact: ``terms/dates.py`` says why."""

from __future__ import annotations

import numpy as np

from dpgram.terms.dates import DAY

Array = np.ndarray


def days_of_seconds(seconds: Array) -> Array:
    """Whole seconds since 1970 (int64) as days: one division and one sum, so every source and machine gets the same bits."""
    whole = seconds // DAY
    return whole + (seconds - whole * DAY) / DAY


def date_part(days: Array, part: str) -> Array:
    """The part of each date as a number; NaN where the date is. The dates lie in the years 1 to 9999."""
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
