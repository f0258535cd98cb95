"""What is declared about one column: its kind, its bounds or categories, and what stands in for a missing cell.

Everything here is public: it comes from knowledge of the domain, never from the rows, and is copied into the release."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from dpgram.errors import SchemaError
from dpgram.terms.dates import days_of, iso_text

OTHER, MISSING = "other", "missing"  # names of the two levels that are not declared categories
EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class Numeric:
    """A number, clamped to [lower, upper]. ``missing`` is "midpoint" (of the bounds) or a constant within them."""

    name: str
    lower: float
    upper: float
    missing: float | str = "midpoint"
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        check_name(self.name)
        lower, upper = _bound(self.name, "lower", self.lower), _bound(self.name, "upper", self.upper)
        if lower >= upper:
            raise SchemaError(f"column {self.name!r}: lower is {lower:g} and upper is {upper:g}; lower must be the smaller.")
        half, largest = upper / 2 - lower / 2, max(abs(lower), abs(upper))
        if half < 1e-300 or half < 1e-9 * largest or largest > 1e300:
            raise SchemaError(
                f"column {self.name!r}: bounds [{lower!r}, {upper!r}] are too close together, too small or too large for "
                f"double precision: shift or rescale the column before it gets here."
            )
        missing = self.missing
        if not (isinstance(missing, str) and missing == "midpoint"):
            if isinstance(missing, bool) or not isinstance(missing, Real):
                raise SchemaError(f'column {self.name!r}: missing is {missing!r} and must be "midpoint" or a number.')
            missing = float(missing)
            if not lower <= missing <= upper:
                raise SchemaError(f"column {self.name!r}: missing is {missing:g} and must lie within [{lower:g}, {upper:g}].")
        set_fields(self, lower=lower, upper=upper, missing=missing)

    @property
    def fill(self) -> float:
        """The number that stands for a missing cell."""
        return self.lower / 2 + self.upper / 2 if isinstance(self.missing, str) else self.missing


@dataclass(frozen=True)
class Categorical:
    """One of the declared categories; the first is the reference, every other level gets an indicator column.

    Categories are all strings, matched as text, or all integers, matched as numbers. A value that is not declared goes
    to the level "other" when ``other``, else it is a missing cell. A missing cell counts as the reference, or gets a
    level of its own when ``missing`` is "level"."""

    name: str
    categories: tuple[str, ...] | tuple[int, ...]
    other: bool = False
    missing: str = "reference"
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.categories, str) or not isinstance(self.categories, Iterable):
            raise SchemaError(f"column {self.name!r}: categories must be a list, such as ['UA', 'AA'].")
        categories = tuple(_plain_category(c) for c in self.categories)
        if not categories:
            raise SchemaError(f"column {self.name!r}: categories are blank: list the values it can take, reference first.")
        as_text = all(isinstance(c, str) for c in categories)
        as_numbers = all(isinstance(c, int) and not isinstance(c, bool) for c in categories)
        integers = [c for c in categories if isinstance(c, int)]
        if not (as_text or as_numbers):
            raise SchemaError(f"column {self.name!r}: categories must be all strings or all integers.")
        if "" in categories:
            raise SchemaError(f"column {self.name!r}: the empty text cannot be a category, because an empty cell is missing.")
        if any(abs(c) > EXACT_INTEGERS for c in integers):
            raise SchemaError(f"column {self.name!r}: integer categories must lie within 2**53; declare them as strings.")
        if len(set(categories)) < len(categories):
            raise SchemaError(f"column {self.name!r}: a category is listed twice; each must stand once.")
        if not isinstance(self.other, bool):
            raise SchemaError(f"column {self.name!r}: other is {self.other!r} and must be true or false.")
        if self.missing not in ("reference", "level"):
            raise SchemaError(f'column {self.name!r}: missing is {self.missing!r} and must be "reference" or "level".')
        for level, used in ((OTHER, self.other), (MISSING, self.missing == "level")):
            if used and level in categories:
                raise SchemaError(f"column {self.name!r}: {level!r} is a declared category and also the {level} level's name.")
        set_fields(self, categories=categories)
        if len(self.levels) < 2:
            raise SchemaError(
                f"column {self.name!r}: one category alone carries no information: declare a second, or other = true."
            )

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels by name, the reference first."""
        declared = tuple(str(c) for c in self.categories)
        return declared + (OTHER,) * self.other + (MISSING,) * (self.missing == "level")

    @property
    def matches_numbers(self) -> bool:
        return isinstance(self.categories[0], int)


@dataclass(frozen=True)
class Boolean:
    """0 or 1, kept as it is. ``missing`` says what stands for a missing cell: false (the default) or true."""

    name: str
    missing: bool = False
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.missing, bool):
            raise SchemaError(f"column {self.name!r}: missing is {self.missing!r} and must be true or false.")


@dataclass(frozen=True)
class Date:
    """A date or a time, clamped to [lower, upper], as a number: days since 1970-01-01 00:00 UTC, in whole seconds.

    Bounds are ISO 8601 text, dates or datetimes, kept as text in UTC; a date stands for its midnight. ``missing`` is
    "midpoint" (of the bounds) or a date within them.

    >>> Date("when", "2013-01-01", "2014-01-01").first
    15706.0"""

    name: str
    lower: str
    upper: str
    missing: str = "midpoint"
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        check_name(self.name)
        lower, upper = (self._date(which, getattr(self, which)) for which in ("lower", "upper"))
        missing = self.missing if self.missing == "midpoint" else self._date("missing", self.missing)
        set_fields(self, lower=lower, upper=upper, missing=missing)
        if round((self.last - self.first) * 24 * 3600) < 3600:  # seconds
            raise SchemaError(
                f"column {self.name!r}: lower is {lower} and upper is {upper}; upper must be at least an hour later."
            )
        if not self.first <= self.fill <= self.last:
            raise SchemaError(f"column {self.name!r}: missing is {missing} and must lie within [{lower}, {upper}].")

    def _date(self, which: str, value: object) -> str:
        if value is None or value == "":
            raise SchemaError(
                f"column {self.name!r}: {which} is blank: declare the bound from what is known of the domain, not from the data."
            )
        return iso_text(value, f"column {self.name!r}: {which}")

    @property
    def first(self) -> float:
        """The lower bound as a number of days."""
        return days_of(self.lower)

    @property
    def last(self) -> float:
        """The upper bound as a number of days."""
        return days_of(self.upper)

    @property
    def fill(self) -> float:
        """The number of days that stands for a missing cell."""
        return self.first / 2 + self.last / 2 if self.missing == "midpoint" else days_of(self.missing)


Column = Numeric | Categorical | Boolean | Date
COLUMN_KINDS = (Numeric, Categorical, Boolean, Date)


def bounds(column: Numeric | Date) -> tuple[float, float]:
    """The declared bounds as numbers."""
    return (column.first, column.last) if isinstance(column, Date) else (column.lower, column.upper)


def _plain_category(category: object) -> Any:
    """NumPy's integers and strings as Python's."""
    if isinstance(category, Integral) and not isinstance(category, bool):
        return int(category)
    return str(category) if isinstance(category, str) else category


def check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"a column's name is {name!r} and must be a non-empty string.")


def _bound(column: str, which: str, value: object) -> float:
    if value is None or (isinstance(value, str) and not value):
        raise SchemaError(
            f"column {column!r}: {which} is blank: declare the bound from what is known of the domain, not from the data."
        )
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SchemaError(f"column {column!r}: {which} is {value!r} and must be a number.")
    number = float(value)
    if not math.isfinite(number):
        raise SchemaError(f"column {column!r}: {which} is {number!r} and must be finite.")
    return number


def set_fields(frozen: object, **fields: object) -> None:
    """Store normalised fields on a frozen dataclass, from its own ``__post_init__``."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
