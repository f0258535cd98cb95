"""Dates as numbers: days since 1970-01-01 00:00 UTC, in whole seconds, and the parts of a date.

A date stands for its midnight. A time without a zone is taken as UTC, one with a zone is converted to it; fractions of a
second are dropped. Days are a float64 whose error stays below 20 microseconds until the year 9999, so that the whole second
is found again by rounding, and every part below is exact."""

from __future__ import annotations

import datetime

import numpy as np

from dpgram.errors import SchemaError

Array = np.ndarray

DAY = 86_400  # seconds
EPOCH = datetime.datetime(1970, 1, 1)

# Each part, the cycle within which it never falls, and its range over a whole cycle. Weekdays are ISO's: Monday is 1.
PARTS: dict[str, tuple[str, tuple[int, int]]] = {
    "year": ("", (1, 9999)),
    "quarter": ("year", (1, 4)),
    "month": ("year", (1, 12)),
    "day_of_year": ("year", (1, 366)),
    "day": ("month", (1, 31)),
    "weekday": ("week", (1, 7)),
    "hour": ("day", (0, 23)),
}


def iso_text(value: object, what: str) -> str:
    """A declared date or time as ISO 8601 text in UTC: ``2013-01-31``, or ``2013-01-31T18:00:00`` where it is not midnight."""
    moment = _moment(value)
    if moment is None:
        raise SchemaError(f"{what} is {value!r} and must be a date or a time, such as 2013-01-31 or 2013-01-31T18:00:00.")
    if moment.microsecond:
        raise SchemaError(f"{what} is {value!r} and must be in whole seconds: cells are cut to the second.")
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat()


def _moment(value: object) -> datetime.datetime | None:
    """The declared moment in UTC, without a zone; None where the value is none."""
    if isinstance(value, np.datetime64):
        value = str(value)
    try:
        if isinstance(value, str):
            value = datetime.datetime.fromisoformat(value)
        elif isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime.datetime):
            return None
        return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def days_of(text: str) -> float:
    """The number of a date that ``iso_text`` wrote."""
    apart = datetime.datetime.fromisoformat(text) - EPOCH
    return apart.days + apart.seconds / DAY


def days_of_seconds(seconds: Array) -> Array:
    """Whole seconds since 1970 (int64) as days: one division and one sum, so every source and machine gets the same bits."""
    whole = seconds // DAY
    return whole + (seconds - whole * DAY) / DAY


def date_part(days: Array, part: str) -> Array:
    """The part of each date as a number; NaN where the date is. The dates lie in the years 1 to 9999."""
    missing = np.isnan(days)
    seconds = _whole_seconds(np.where(missing, 0.0, days))
    whole = seconds // DAY
    dates = whole.astype("datetime64[D]")
    match part:
        case "year":
            found = _count(dates, "Y") + 1970
        case "quarter":
            found = _count(dates, "M") % 12 // 3 + 1
        case "month":
            found = _count(dates, "M") % 12 + 1
        case "day_of_year":
            found = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1
        case "day":
            found = (dates - dates.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1
        case "weekday":
            found = (whole + 3) % 7 + 1  # 1970-01-01 was a Thursday
        case _:
            found = (seconds - whole * DAY) // 3600
    return np.where(missing, np.nan, found)


def part_range(part: str, lower: float, upper: float) -> tuple[int, int]:
    """The smallest and largest value of ``part`` between two dates, given as days."""
    cycle, whole_cycle = PARTS[part]
    ends = np.array([lower, upper])
    first, last = _cycle_number(ends, cycle)
    if first != last:
        return whole_cycle
    low, high = date_part(ends, part)
    return int(low), int(high)


def _cycle_number(days: Array, cycle: str) -> Array:
    whole = _whole_seconds(days) // DAY
    match cycle:
        case "year" | "month":
            return _count(whole.astype("datetime64[D]"), "Y" if cycle == "year" else "M")
        case "week":
            return (whole + 3) // 7
        case "day":
            return whole
        case _:
            return np.zeros(len(days))  # years never start again


def _whole_seconds(days: Array) -> Array:
    return np.rint(days * DAY).astype(np.int64)


def _count(dates: Array, unit: str) -> Array:
    """Whole years or months since 1970."""
    return dates.astype(f"datetime64[{unit}]").astype(np.int64)
