"""Columns that are computed from declared ones: products, powers, log1p, indicators of an interval, parts of a date.

They are declared before the release, like everything else, and computed row by row from the parents' clamped cells
(``encoding/derive.py``): nothing about them is read from the data, and a derived cell is missing when a parent's cell is. Each kind says
what it is computed from, and which columns and bounds follow. Bounds are computed by the same sums, products and quotients as cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from dpgram.errors import SchemaError
from dpgram.terms.columns import Categorical, Column, Columns, Date, Declaration, Made, Numeric, bounds, set_fields
from dpgram.terms.dates import PARTS, days_of, iso_text, part_range
from dpgram.terms.elementary import log1p, power

LARGEST_EXPONENT = 9
MOST_LEVELS = 4096  # as many as a schema can have encoded columns


@dataclass(frozen=True)
class Derived(Declaration):
    """What every kind of derived column offers. ``columns`` holds the declared columns, never the derived ones."""

    called: ClassVar[str] = "derived column"

    def parents(self, columns: Columns) -> tuple[Column, ...]:
        """The declared columns it is computed from, or a SchemaError where there is no such column of a fitting kind."""
        raise NotImplementedError

    def _declared(self, columns: Columns, name: object) -> Column:
        if not isinstance(name, str) or name not in columns:
            raise self._error(f"{name!r} is no declared column: it can be made from those under [[columns]] only.")
        return columns[name]

    def _number_made(self, lower: float, upper: float, missing: float | str | None) -> Made:
        """A column of numbers, under the same rules as a declared one."""
        if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
            raise self._error(
                f"its bounds follow from its parents' and are [{lower:g}, {upper:g}], which double precision does not hold: rescale "
                f"the parents."
            )
        return Numeric(self.name, lower, upper, "midpoint" if missing is None else missing).made({})


@dataclass(frozen=True)
class OfNumber(Derived):
    """Computed from one number or date, ``of``."""

    of: str

    def parents(self, columns: Columns) -> tuple[Numeric | Date]:
        column = self._declared(columns, self.of)
        if not isinstance(column, Numeric | Date):
            raise self._error(f"{self.of!r} is {column.kind}, and a number or a date is needed.")
        return (column,)


@dataclass(frozen=True)
class Product(Derived):
    """The product of two declared columns: numbers, dates, truth values, single levels (``carrier[AA]``) or categories.

    A category stands for its levels but the first: one column each, named like ``name[AA]``, for two categories one per
    pair, ``name[AA:JFK]``. ``missing`` is for a product of two numbers: "midpoint" of its bounds (the default) or a number
    within them. Where a factor is a level or a truth value, a missing cell becomes 0."""

    of: tuple[str, str]
    missing: float | str | None = None
    kind: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        super().__post_init__()
        names = () if isinstance(self.of, str) or not isinstance(self.of, Iterable) else tuple(self.of)
        if len(names) != 2 or not all(isinstance(n, str) for n in names):
            raise self._error(f"of is {self.of!r} and must name two columns, such as ['age', 'sex'].")
        set_fields(self, of=names)

    def parents(self, columns: Columns) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.factors(columns))

    def factors(self, columns: Columns) -> list[tuple[Column, tuple[int, ...]]]:
        """Each factor's column, and the places of the levels it stands for: none of a number or a truth value."""
        factors = [self._column_and_places(columns, text) for text in self.of]
        if factors[0][0] == factors[1][0]:
            instead = "use a power" if isinstance(factors[0][0], Numeric | Date) else "it would say nothing new"
            raise self._error(f"both factors come from column {factors[0][0].name!r}: {instead}.")
        return factors

    def _column_and_places(self, columns: Columns, text: str) -> tuple[Column, tuple[int, ...]]:
        categories = [c for c in columns.values() if isinstance(c, Categorical)] if text not in columns else []
        for column in categories:
            for place, level in enumerate(column.levels):
                if text == f"{column.name}[{level}]":
                    return column, (place,)
        whole = self._declared(columns, text)
        return whole, tuple(range(1, len(whole.levels))) if isinstance(whole, Categorical) else ()

    def made(self, columns: Columns) -> Made:
        factors = self.factors(columns)
        first, second = (column.made(columns) for column, _ in factors)
        corners = [a * b for a in (first.lower, first.upper) for b in (second.lower, second.upper)]
        lower, upper = min(corners), max(corners)  # rounding is monotone: products of cells, rounded, lie within
        if first.is_number and second.is_number:
            return self._number_made(lower, upper, self.missing)
        if self.missing is not None:
            raise self._error(
                f"missing is {self.missing!r} and must be left out, because a factor is a level or "
                f"a truth value: a missing cell becomes 0."
            )
        levels = [
            c.levels[1:] for (c, _), text in zip(factors, self.of, strict=True) if isinstance(c, Categorical) and text == c.name
        ]
        if math.prod(len(some) for some in levels) > MOST_LEVELS:
            raise SchemaError(f"derived column {self.name!r} would make more than {MOST_LEVELS} columns: use single levels.")
        named = tuple(f"{self.name}[{':'.join(some)}]" if some else self.name for some in itertools.product(*levels))
        return Made(named, lower, upper, (0.0,) * len(named), is_number=False)


@dataclass(frozen=True)
class Power(OfNumber):
    """A number or a date to a whole power, by repeated multiplication. ``missing``: "midpoint" of its bounds, or a number."""

    exponent: int = 2
    missing: float | str = "midpoint"
    kind: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        super().__post_init__()
        exponent = self.exponent
        if isinstance(exponent, bool) or not isinstance(exponent, Integral) or not 2 <= exponent <= LARGEST_EXPONENT:
            raise self._error(f"exponent is {exponent!r} and must be a whole number from 2 to {LARGEST_EXPONENT}.")
        set_fields(self, exponent=int(exponent))

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        ends = bounds(parent)
        powers = [power(end, self.exponent) for end in ends]  # ``_number_made`` refuses what is not finite
        through_zero = self.exponent % 2 == 0 and ends[0] < 0 < ends[1]
        return self._number_made(0.0 if through_zero else min(powers), max(powers), self.missing)


@dataclass(frozen=True)
class Log1p(OfNumber):
    """log(1 + x) of a number or a date whose lower bound is above -1. ``missing``: "midpoint" of its bounds, or a number."""

    missing: float | str = "midpoint"
    kind: ClassVar[str] = "log1p"

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        lower, upper = bounds(parent)
        if lower <= -1:
            raise self._error(f"the lower bound of {self.of!r} is {lower:g} and must be above -1.")
        low, high = log1p(np.array([lower, upper])).tolist()
        return self._number_made(low, high, self.missing)


@dataclass(frozen=True)
class Interval(OfNumber):
    """1 where lower <= x < upper, else 0, of a number or a date x; one bound may be left out. ``missing``: false, or true.

    The lower end is in, the upper is not. Bounds of a date are ISO 8601 text, dates or datetimes, kept as text."""

    lower: float | str | None = None
    upper: float | str | None = None
    missing: bool = False
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, lower=self._end("lower"), upper=self._end("upper"))
        if self.lower is None and self.upper is None:
            raise self._error("lower and upper are both left out, and one of them is needed.")
        self._check_truth("missing")

    def _end(self, which: str) -> float | str | None:
        value = getattr(self, which)
        if value is None:
            return None
        if isinstance(value, Real) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise self._error(f"{which} is {value!r} and must be finite, or left out.")
            return float(value)
        if value == "":
            raise self._error(f"{which} is blank: fill it in, or leave it out.")
        return iso_text(value, f"derived column {self.name!r}: {which}")

    def ends(self, columns: Columns) -> tuple[float, float]:
        """The interval's ends as numbers, infinite where one is left out."""
        (parent,) = self.parents(columns)
        for which, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None and isinstance(end, str) != isinstance(parent, Date):
                needed = "a date" if isinstance(parent, Date) else "a number"
                raise self._error(f"{which} is {end!r}, and {parent.name!r} is {needed}.")
        low, high = (days_of(end) if isinstance(end, str) else end for end in (self.lower, self.upper))
        return -math.inf if low is None else low, math.inf if high is None else high

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        low, high = self.ends(columns)
        lower, upper = bounds(parent)
        if low >= high:
            raise self._error(f"lower is {self.lower} and upper is {self.upper}; lower must be less.")
        if low > upper or high <= lower or (low <= lower and high > upper):
            raise self._error(
                f"it is the same for every value of {self.of!r} within its bounds "
                f"[{parent.lower}, {parent.upper}]: choose an interval that holds some of them and not all."
            )
        return Made((self.name,), 0.0, 1.0, (float(self.missing),), is_number=False)


@dataclass(frozen=True)
class DatePart(OfNumber):
    """A part of a date, in UTC: year, quarter, month, day_of_year, day, weekday (Monday is 1, Sunday 7) or hour.

    A number whose bounds are those of a whole cycle (month 1 to 12), or narrower where the parent's bounds lie in one cycle.
    With ``levels``, an indicator for every value but the first, named like ``name[2]``. ``missing``: for numbers "midpoint"
    (the default) or a number; for levels "reference" (the default) or "level", a level of its own."""

    part: str
    levels: bool = False
    missing: float | str | None = None
    kind: ClassVar[str] = "date-part"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.part, str) or self.part not in PARTS:
            raise self._error(f"part is {self.part!r} and must be one of {', '.join(PARTS)}.")
        self._check_truth("levels")

    def parents(self, columns: Columns) -> tuple[Date]:
        parent = self._declared(columns, self.of)
        if not isinstance(parent, Date):
            raise self._error(f"{self.of!r} is {parent.kind}, and a date is needed.")
        return (parent,)

    def _range(self, columns: Columns) -> tuple[int, int]:
        (parent,) = self.parents(columns)
        return part_range(self.part, *bounds(parent))

    def wanted(self, columns: Columns) -> list[float]:
        """The value that each indicator stands for, where they are levels; no date has the part infinity, which stands for "missing"."""
        low, high = self._range(columns)
        return [*range(low + 1, high + 1), *([math.inf] if self.missing == "level" else [])]

    def made(self, columns: Columns) -> Made:
        low, high = self._range(columns)
        if low == high:
            raise self._error(f"the {self.part} is {low} for every date within the bounds of {self.of!r}: leave it out.")
        if not self.levels:
            return self._number_made(low, high, self.missing)
        missing = "reference" if self.missing is None else self.missing
        return Categorical(self.name, tuple(range(low, high + 1)), missing=missing).made(columns)  # type: ignore[arg-type]


DERIVED_KINDS = (Product, Power, Log1p, Interval, DatePart)
