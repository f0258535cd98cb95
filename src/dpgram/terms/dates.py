"""Dates as they are declared: ISO 8601 text in UTC, the number of days it stands for, and which parts dates between two bounds have.

A date stands for its midnight. A time without a zone is taken as UTC, one with a zone is converted to it. The number is days since
1970-01-01 00:00 UTC, in whole seconds: a float64 whose error stays below 20 microseconds until the year 9999, so that the whole second
is found again by rounding."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from operator import attrgetter

import numpy as np

from dpgram.errors import SchemaError

Moment = datetime.datetime

DAY = 86_400  # seconds
EPOCH = Moment(1970, 1, 1)

# Each part of a moment, the cycle within which it never falls, and its range over a whole cycle. Weekdays are ISO's: Monday is 1.
PARTS: dict[str, tuple[Callable[[Moment], int], Callable[[Moment], object], tuple[int, int]]] = {
    "year": (attrgetter("year"), lambda m: "years never start again", (1, 9999)),
    "quarter": (lambda m: (m.month + 2) // 3, attrgetter("year"), (1, 4)),
    "month": (attrgetter("month"), attrgetter("year"), (1, 12)),
    "day_of_year": (lambda m: m.timetuple().tm_yday, attrgetter("year"), (1, 366)),
    "day": (attrgetter("day"), attrgetter("year", "month"), (1, 31)),
    "weekday": (Moment.isoweekday, lambda m: (m.toordinal() - 1) // 7, (1, 7)),  # day 1 of the calendar was a Monday
    "hour": (attrgetter("hour"), Moment.toordinal, (0, 23)),
}


def iso_text(value: object, what: str) -> str:
    """A declared date or time as ISO 8601 text in UTC: ``2013-01-31``, or ``2013-01-31T18:00:00`` where it is not midnight."""
    moment = _moment(value)
    if moment is None:
        raise SchemaError(f"{what} is {value!r} and must be a date or a time, such as 2013-01-31 or 2013-01-31T18:00:00.")
    if moment.microsecond:
        raise SchemaError(f"{what} is {value!r} and must be in whole seconds, because cells are cut to the second.")
    return moment.date().isoformat() if moment.time() == datetime.time() else moment.isoformat()


def _moment(value: object) -> Moment | None:
    """The declared moment in UTC, without a zone; None where the value is none."""
    if isinstance(value, np.datetime64):
        value = str(value)
    try:
        if isinstance(value, str):
            value = Moment.fromisoformat(value)
        elif isinstance(value, datetime.date) and not isinstance(value, Moment):
            value = Moment(value.year, value.month, value.day)
        if not isinstance(value, Moment):
            return None
        return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def days_of(text: str) -> float:
    """The number of a date that ``iso_text`` wrote."""
    apart = Moment.fromisoformat(text) - EPOCH
    return apart.days + apart.seconds / DAY


def days_of_seconds(seconds: np.ndarray) -> np.ndarray:
    """Whole seconds since 1970 (int64) as days: one division and one sum, so every source and machine gets the same bits."""
    whole = seconds // DAY
    return whole + (seconds - whole * DAY) / DAY


def iso_of_days(days: float) -> str:
    """A date, given as days, as ``iso_text`` writes it."""
    return iso_text(_moment_of_days(days), "the date")


def part_of_days(part: str, days: float) -> int:
    """The value of ``part`` of a date, given as days."""
    return PARTS[part][0](_moment_of_days(days))


def _moment_of_days(days: float) -> Moment:
    return EPOCH + datetime.timedelta(seconds=round(days * DAY))


def part_range(part: str, lower: float, upper: float) -> tuple[int, int]:
    """The smallest and largest value of ``part`` between two dates, given as days."""
    part_of, cycle, whole_cycle = PARTS[part]
    first, last = map(_moment_of_days, (lower, upper))
    return (part_of(first), part_of(last)) if cycle(first) == cycle(last) else whole_cycle
