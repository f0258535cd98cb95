"""What is declared about one column: its kind, its bounds or categories, and what stands in for a missing cell.

Everything here is public: it comes from knowledge of the domain, never from the rows, and is copied into the release."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from dpgram.errors import SchemaError

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
        _check_name(self.name)
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
        _set(self, lower=lower, upper=upper, missing=missing)

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
        _check_name(self.name)
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
        _set(self, categories=categories)
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
        _check_name(self.name)
        if not isinstance(self.missing, bool):
            raise SchemaError(f"column {self.name!r}: missing is {self.missing!r} and must be true or false.")


Column = Numeric | Categorical | Boolean


def _plain_category(category: object) -> Any:
    """NumPy's integers and strings as Python's."""
    if isinstance(category, Integral) and not isinstance(category, bool):
        return int(category)
    return str(category) if isinstance(category, str) else category


def _check_name(name: object) -> None:
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


def _set(frozen: object, **fields: object) -> None:
    """Store normalised fields on a frozen dataclass, from its own ``__post_init__``."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
