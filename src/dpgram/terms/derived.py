"""Columns computed from one declared column: powers, log1p, indicators of an interval, parts of a date.

All of it is made of sums, products, quotients and comparisons, which are correctly rounded: every machine gets the same
bits. ``derivation.py`` says what derived columns have in common, and ``products.py`` holds the products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from dpgram.errors import SchemaError
from dpgram.terms.columns import Categorical, Date, Numeric, bounds, check_name, set_fields
from dpgram.terms.dates import PARTS, date_part, days_of, iso_text, part_range
from dpgram.terms.derivation import Array, Cells, Columns, Made, declared, number_column, number_made
from dpgram.terms.elementary import log1p, power
from dpgram.terms.products import Product

LARGEST_EXPONENT = 9


@dataclass(frozen=True)
class Power:
    """A number or a date to a whole power, by repeated multiplication. ``missing``: "midpoint" of its bounds, or a number."""

    name: str
    of: str
    exponent: int = 2
    missing: float | str = "midpoint"
    kind: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        check_name(self.name)
        exponent = self.exponent
        if isinstance(exponent, bool) or not isinstance(exponent, Integral) or not 2 <= exponent <= LARGEST_EXPONENT:
            raise SchemaError(
                f"derived column {self.name!r}: exponent is {exponent!r} and must be a whole number from 2 to {LARGEST_EXPONENT}."
            )
        set_fields(self, exponent=int(exponent))

    def parents(self, columns: Columns) -> tuple[Numeric | Date]:
        return (number_column(self, columns, self.of),)

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        ends = bounds(parent)
        with np.errstate(over="ignore"):  # ``number_made`` refuses what is not finite
            powers = power(np.array(ends), self.exponent).tolist()
        through_zero = self.exponent % 2 == 0 and ends[0] < 0 < ends[1]
        return number_made(self, 0.0 if through_zero else min(powers), max(powers), self.missing)

    def compute(self, columns: Columns, cells: Cells) -> Array:
        return power(cells[self.of], self.exponent)[None]


@dataclass(frozen=True)
class Log1p:
    """log(1 + x) of a number or a date whose lower bound is above -1. ``missing``: "midpoint" of its bounds, or a number."""

    name: str
    of: str
    missing: float | str = "midpoint"
    kind: ClassVar[str] = "log1p"

    def __post_init__(self) -> None:
        check_name(self.name)

    def parents(self, columns: Columns) -> tuple[Numeric | Date]:
        return (number_column(self, columns, self.of),)

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        lower, upper = bounds(parent)
        if lower <= -1:
            raise SchemaError(
                f"derived column {self.name!r}: the lower bound of {self.of!r} is {lower:g} and must be above -1."
            )
        low, high = log1p(np.array([lower, upper])).tolist()
        return number_made(self, low, high, self.missing)

    def compute(self, columns: Columns, cells: Cells) -> Array:
        return log1p(cells[self.of])[None]


@dataclass(frozen=True)
class Interval:
    """1 where lower <= x < upper, else 0, of a number or a date x; one bound may be left out. ``missing``: false, or true.

    The lower end is in, the upper is not. Bounds of a date are ISO 8601 text, dates or datetimes, kept as text."""

    name: str
    of: str
    lower: float | str | None = None
    upper: float | str | None = None
    missing: bool = False
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        check_name(self.name)
        set_fields(self, lower=self._end("lower"), upper=self._end("upper"))
        if self.lower is None and self.upper is None:
            raise SchemaError(f"derived column {self.name!r}: lower and upper are both left out, and one of them is needed.")
        if not isinstance(self.missing, bool):
            raise SchemaError(f"derived column {self.name!r}: missing is {self.missing!r} and must be true or false.")

    def _end(self, which: str) -> float | str | None:
        value = getattr(self, which)
        if value is None:
            return None
        if isinstance(value, Real) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise SchemaError(f"derived column {self.name!r}: {which} is {value!r} and must be finite, or left out.")
            return float(value)
        if value == "":
            raise SchemaError(f"derived column {self.name!r}: {which} is blank: fill it in, or leave it out.")
        return iso_text(value, f"derived column {self.name!r}: {which}")

    def parents(self, columns: Columns) -> tuple[Numeric | Date]:
        return (number_column(self, columns, self.of),)

    def _ends(self, columns: Columns) -> tuple[float, float]:
        (parent,) = self.parents(columns)
        for which, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None and isinstance(end, str) != isinstance(parent, Date):
                needed = "a date" if isinstance(parent, Date) else "a number"
                raise SchemaError(f"derived column {self.name!r}: {which} is {end!r}, and {parent.name!r} is {needed}.")
        low, high = (days_of(end) if isinstance(end, str) else end for end in (self.lower, self.upper))
        return -math.inf if low is None else low, math.inf if high is None else high

    def made(self, columns: Columns) -> Made:
        (parent,), (low, high) = self.parents(columns), self._ends(columns)
        lower, upper = bounds(parent)
        if low >= high:
            raise SchemaError(
                f"derived column {self.name!r}: lower is {self.lower} and upper is {self.upper}; lower must be less."
            )
        if low > upper or high <= lower or (low <= lower and high > upper):
            raise SchemaError(
                f"derived column {self.name!r}: it is the same for every value of {self.of!r} within its bounds "
                f"[{parent.lower}, {parent.upper}]: choose an interval that holds some of them and not all."
            )
        return Made((self.name,), 0.0, 1.0, (float(self.missing),), is_number=False)

    def compute(self, columns: Columns, cells: Cells) -> Array:
        low, high = self._ends(columns)
        x = cells[self.of]
        return np.where(np.isnan(x), np.nan, (low <= x) & (x < high))[None]


@dataclass(frozen=True)
class DatePart:
    """A part of a date, in UTC: year, quarter, month, day_of_year, day, weekday (Monday is 1, Sunday 7) or hour.

    A number whose bounds are those of a whole cycle (month 1 to 12), or narrower where the parent's bounds lie in one cycle.
    With ``levels``, an indicator for every value but the first, named like ``name[2]``. ``missing``: for numbers "midpoint"
    (the default) or a number; for levels "reference" (the default) or "level", a level of its own."""

    name: str
    of: str
    part: str
    levels: bool = False
    missing: float | str | None = None
    kind: ClassVar[str] = "date-part"

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.part, str) or self.part not in PARTS:
            raise SchemaError(f"derived column {self.name!r}: part is {self.part!r} and must be one of {', '.join(PARTS)}.")
        if not isinstance(self.levels, bool):
            raise SchemaError(f"derived column {self.name!r}: levels is {self.levels!r} and must be true or false.")

    def parents(self, columns: Columns) -> tuple[Date]:
        parent = declared(self, columns, self.of)
        if not isinstance(parent, Date):
            raise SchemaError(f"derived column {self.name!r}: {self.of!r} is {parent.kind}, and a date is needed.")
        return (parent,)

    def _range(self, columns: Columns) -> tuple[int, int]:
        (parent,) = self.parents(columns)
        return part_range(self.part, parent.first, parent.last)

    def made(self, columns: Columns) -> Made:
        low, high = self._range(columns)
        if low == high:
            raise SchemaError(
                f"derived column {self.name!r}: the {self.part} is {low} for every date within the bounds of {self.of!r}: leave it out."
            )
        if not self.levels:
            return number_made(self, low, high, self.missing)
        missing = "reference" if self.missing is None else self.missing
        column = Categorical(self.name, tuple(range(low, high + 1)), missing=missing)  # type: ignore[arg-type]
        names = tuple(f"{self.name}[{level}]" for level in column.levels[1:])
        own_level = (0.0,) * (len(names) - 1) + (float(missing == "level"),)
        return Made(names, 0.0, 1.0, own_level, is_number=False)

    def compute(self, columns: Columns, cells: Cells) -> Array:
        values = date_part(cells[self.of], self.part)
        if not self.levels:
            return values[None]
        low, high = self._range(columns)
        wanted = [*range(low + 1, high + 1), *([math.inf] if self.missing == "level" else [])]  # no date has the part inf
        return np.where(np.isnan(values), np.nan, values == np.array(wanted)[:, None])


DERIVED_KINDS = (Product, Power, Log1p, Interval, DatePart)
