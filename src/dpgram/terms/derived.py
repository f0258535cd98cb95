"""Columns that are computed from declared ones: products, powers, logarithms, indicators of an interval, parts of a date.

They are declared before the release, like everything else, and computed row by row from the parents' clamped cells
(``encoding/derive.py``): nothing about them is read from the data, and a derived cell is missing when a parent's cell is. Each kind says
what it is computed from, and which columns and bounds follow. Bounds are computed by the same sums, products and quotients as cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from keyword import iskeyword
from numbers import Integral, Real
from typing import ClassVar

import numpy as np

from dpgram.errors import SchemaError
from dpgram.terms.columns import MIDPOINT, Categorical, Column, Columns, Date, Declaration, Made, Numeric, bounds, set_fields
from dpgram.terms.dates import PARTS, days_of, iso_text, part_range
from dpgram.terms.elementary import log, log1p, power

LARGEST_EXPONENT = 9
MOST_LEVELS = 4096  # as many as a schema can have encoded columns


@dataclass(frozen=True)
class Derived(Declaration):
    """What every kind of derived column offers. ``columns`` holds the declared columns, never the derived ones."""

    called: ClassVar[str] = "derived column"

    @property
    def expression(self) -> str:
        """What the column computes, as a formula writes it, such as ``I(age**2)``."""
        raise NotImplementedError

    def parents(self, columns: Columns) -> tuple[Column, ...]:
        """Return the declared columns that this one is computed from. Mostly for internal use.

        Parameters
        ----------
        columns : mapping of str to column
            The declared columns by name.

        Returns
        -------
        tuple of columns
            The declared columns.

        Raises
        ------
        SchemaError
            If a column does not exist or has an unsuitable kind.
        """
        raise NotImplementedError

    def _declared(self, columns: Columns, name: object) -> Column:
        if not isinstance(name, str) or name not in columns:
            raise self._error(
                f"{name!r} is not a declared column. A derived column can use only the columns under [[columns]]."
            )
        return columns[name]

    def _number_made(self, lower: float, upper: float, missing: float | str | None) -> Made:
        """A column of numbers, under the same rules as a declared one."""
        if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
            raise self._error(
                f"its bounds follow from those of the columns it uses. They are [{lower:g}, {upper:g}], which double precision "
                f"cannot hold. Rescale those columns."
            )
        if isinstance(missing, str) and missing != MIDPOINT:
            raise self._error(f'missing is {missing!r} and must be "midpoint" or a number.')
        return Numeric(self.name, lower, upper, MIDPOINT if missing is None else missing).made({})


@dataclass(frozen=True)
class OfNumber(Derived):
    """Computed from one number or date, ``of``."""

    of: str

    def parents(self, columns: Columns) -> tuple[Numeric | Date]:
        column = self._declared(columns, self.of)
        if not isinstance(column, Numeric | Date):
            raise self._error(f"{self.of!r} is {column.kind}, but a numeric or date column is needed.")
        return (column,)


@dataclass(frozen=True)
class Product(Derived):
    """A derived column: the product of two declared columns. Use it for interactions.

    Each factor is a numeric, date, boolean or categorical column, or one level of a category such as ``carrier[AA]``.
    A categorical factor makes one column for every level except the reference, named like ``name[AA]``.
    Two categorical factors make one column for every pair of levels, named like ``name[AA:JFK]``.

    Parameters
    ----------
    name : str
        Name of the new column.
    of : pair of str
        The two factors.
    missing : float or "midpoint", optional
        The value if a factor is missing, for a product of two numbers only. It is "midpoint" of the bounds by default, or a number
        within them. Products with a level or a truth value become 0.

    Raises
    ------
    SchemaError
        If ``of`` does not name two columns. The schema also raises it if the columns do not suit.

    Examples
    --------
    >>> from dpgram import Categorical, Numeric, Product, Schema
    >>> columns = [Numeric("age", 0, 120), Categorical("sex", ["f", "m"])]
    >>> schema = Schema(unit="visit", columns=columns, derived=[Product("age_by_sex", ["age", "sex"])])
    >>> schema.encoded_names
    ('(intercept)', 'age', 'sex[m]', 'age_by_sex[m]')
    """

    of: tuple[str, str]
    missing: float | str | None = None
    kind: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        super().__post_init__()
        names = () if isinstance(self.of, str) or not isinstance(self.of, Iterable) else tuple(self.of)
        if len(names) != 2 or not all(isinstance(n, str) for n in names):
            raise self._error(f"of is {self.of!r} and must name two columns, such as ['age', 'sex'].")
        set_fields(self, of=names)

    @property
    def expression(self) -> str:
        return ":".join(map(formula_name, self.of))

    def parents(self, columns: Columns) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.factors(columns))

    def factors(self, columns: Columns) -> list[tuple[Column, tuple[int, ...]]]:
        """Return each factor's column, and the positions of the levels that it uses. Mostly for internal use.

        Parameters
        ----------
        columns : mapping of str to column
            The declared columns by name.

        Returns
        -------
        list of (column, positions)
            Positions are empty for a number or a truth value.

        Raises
        ------
        SchemaError
            If a factor does not exist, or if both come from one column.
        """
        factors = [self._column_and_places(columns, text) for text in self.of]
        if factors[0][0] == factors[1][0]:
            instead = (
                "Use a power instead" if isinstance(factors[0][0], Numeric | Date) else "Such a product adds no information"
            )
            raise self._error(f"both factors come from column {factors[0][0].name!r}. {instead}.")
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
                f"missing is {self.missing!r}, but a factor is a level or a truth value, where a missing cell always becomes 0. "
                f"Leave missing out."
            )
        levels = [
            c.levels[1:] for (c, _), text in zip(factors, self.of, strict=True) if isinstance(c, Categorical) and text == c.name
        ]
        if math.prod(len(some) for some in levels) > MOST_LEVELS:
            raise SchemaError(f"derived column {self.name!r} would make more than {MOST_LEVELS} columns. Use single levels.")
        named = tuple(f"{self.name}[{':'.join(some)}]" if some else self.name for some in itertools.product(*levels))
        return Made(named, lower, upper, (0.0,) * len(named), is_number=False)


@dataclass(frozen=True)
class Power(OfNumber):
    """A derived column: a whole power of a numeric or date column.

    Parameters
    ----------
    name : str
        Name of the new column.
    of : str
        The numeric or date column.
    exponent : int
        The power, from 2 to 9.
    missing : float or "midpoint"
        The value if the cell of ``of`` is missing: the midpoint of the new column's bounds, or a number within them.

    Raises
    ------
    SchemaError
        If the exponent is out of range. The schema also raises it if the column does not suit.

    Examples
    --------
    >>> from dpgram import Numeric, Power, Schema
    >>> schema = Schema(unit="visit", columns=[Numeric("age", 0, 120)], derived=[Power("age_squared", "age")])
    >>> schema.encoded_names
    ('(intercept)', 'age', 'age_squared')
    """

    exponent: int = 2
    missing: float | str = "midpoint"
    kind: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        super().__post_init__()
        exponent = self.exponent
        if isinstance(exponent, bool) or not isinstance(exponent, Integral) or not 2 <= exponent <= LARGEST_EXPONENT:
            raise self._error(f"exponent is {exponent!r} and must be a whole number from 2 to {LARGEST_EXPONENT}.")
        set_fields(self, exponent=int(exponent))

    @property
    def expression(self) -> str:
        return f"I({formula_name(self.of)}**{self.exponent})"

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        ends = bounds(parent)
        powers = [power(end, self.exponent) for end in ends]  # ``_number_made`` refuses what is not finite
        through_zero = self.exponent % 2 == 0 and ends[0] < 0 < ends[1]
        return self._number_made(0.0 if through_zero else min(powers), max(powers), self.missing)


@dataclass(frozen=True)
class Log1p(OfNumber):
    """A derived column: log(1 + x) of a numeric or date column x whose lower bound is above -1.

    Parameters
    ----------
    name : str
        Name of the new column.
    of : str
        The numeric or date column.
    missing : float or "midpoint"
        The value if the cell of ``of`` is missing: the midpoint of the new column's bounds, or a number within them.

    Raises
    ------
    SchemaError
        The schema raises it if the column does not suit.

    Examples
    --------
    >>> from dpgram import Log1p, Numeric, Schema
    >>> schema = Schema(unit="person", columns=[Numeric("income", 0, 1e6)], derived=[Log1p("log_income", "income")])
    >>> schema.encoded_names
    ('(intercept)', 'income', 'log_income')
    """

    missing: float | str = "midpoint"
    kind: ClassVar[str] = "log1p"

    @property
    def expression(self) -> str:
        return f"log1p({formula_name(self.of)})"

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        lower, upper = bounds(parent)
        if lower <= -1:
            raise self._error(f"the lower bound of {self.of!r} is {lower:g}, but log(1 + x) needs one above -1.")
        low, high = log1p(np.array([lower, upper])).tolist()
        return self._number_made(low, high, self.missing)


@dataclass(frozen=True)
class Log(OfNumber):
    """A derived column: the natural logarithm of a numeric or date column x whose lower bound is above 0.

    Cells below the lower bound count as the lower bound, as everywhere. If x can be 0, use ``Log1p``.

    Parameters
    ----------
    name : str
        Name of the new column.
    of : str
        The numeric or date column.
    missing : float or "midpoint"
        The value if the cell of ``of`` is missing: the midpoint of the new column's bounds, or a number within them.

    Raises
    ------
    SchemaError
        The schema raises it if the column does not suit.

    Examples
    --------
    >>> from dpgram import Log, Numeric, Schema
    >>> schema = Schema(unit="person", columns=[Numeric("income", 100, 1e6)], derived=[Log("log_income", "income")])
    >>> schema.encoded_names
    ('(intercept)', 'income', 'log_income')
    """

    missing: float | str = "midpoint"
    kind: ClassVar[str] = "log"

    @property
    def expression(self) -> str:
        return f"log({formula_name(self.of)})"

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        lower, upper = bounds(parent)
        if lower <= 0:
            raise self._error(f"the lower bound of {self.of!r} is {lower:g}, but log(x) needs one above 0.")
        low, high = log(np.array([lower, upper])).tolist()
        return self._number_made(low, high, self.missing)


@dataclass(frozen=True)
class Interval(OfNumber):
    """A derived column: 1 in rows where lower <= x < upper, else 0, for a numeric or date column x.

    Parameters
    ----------
    name : str
        Name of the new column.
    of : str
        The numeric or date column x.
    lower, upper : float, str, datetime.date or datetime.datetime, optional
        Ends of the interval. The lower end belongs to it and the upper end does not. One of the two may be left out.
        For a date column they are dates, or ISO 8601 text.
    missing : bool
        The value if the cell of ``of`` is missing.

    Raises
    ------
    SchemaError
        If both ends are left out, or if an end is neither a number nor a date. The schema also raises it if the column does not suit.

    Examples
    --------
    >>> from dpgram import Interval, Numeric, Schema
    >>> child = Interval("child", "age", upper=18)
    >>> Schema(unit="person", columns=[Numeric("age", 0, 120)], derived=[child]).encoded_names
    ('(intercept)', 'age', 'child')
    """

    lower: float | str | None = None
    upper: float | str | None = None
    missing: bool = False
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, lower=self._end("lower"), upper=self._end("upper"))
        if self.lower is None and self.upper is None:
            raise self._error("lower and upper are both left out, but at least one is needed.")
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
            raise self._error(f"{which} is blank. Fill it in, or leave it out.")
        return iso_text(value, f"derived column {self.name!r}: {which}")

    @property
    def expression(self) -> str:
        x, low, high = formula_name(self.of), self.lower, self.upper
        if low is None or high is None:
            return f"I({x} < {_written(high)})" if low is None else f"I({x} >= {_written(low)})"
        return f"I(({x} >= {_written(low)}) & ({x} < {_written(high)}))"

    def ends(self, columns: Columns) -> tuple[float, float]:
        """Return the ends as numbers, infinite if left out. Mostly for internal use.

        Parameters
        ----------
        columns : mapping of str to column
            The declared columns by name.

        Returns
        -------
        tuple of float
            The lower and the upper end. Those of a date are in days since 1970-01-01.

        Raises
        ------
        SchemaError
            If an end is a number and the column holds dates, or the other way round.
        """
        (parent,) = self.parents(columns)
        for which, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None and isinstance(end, str) != isinstance(parent, Date):
                needed = "a date" if isinstance(parent, Date) else "a number"
                raise self._error(
                    f"{which} is {end!r} and must be {needed}, because {parent.name!r} is a {parent.kind} column."
                )
        low, high = (days_of(end) if isinstance(end, str) else end for end in (self.lower, self.upper))
        return -math.inf if low is None else low, math.inf if high is None else high

    def made(self, columns: Columns) -> Made:
        (parent,) = self.parents(columns)
        low, high = self.ends(columns)
        lower, upper = bounds(parent)
        if low >= high:
            raise self._error(f"lower is {self.lower} and upper is {self.upper}, but lower must be smaller than upper.")
        if low > upper or high <= lower or (low <= lower and high > upper):
            raise self._error(
                f"every value of {self.of!r} within its bounds [{parent.lower}, {parent.upper}] gives the same result. "
                f"Choose an interval that contains some of these values and not all."
            )
        return Made((self.name,), 0.0, 1.0, (float(self.missing),), is_number=False)


@dataclass(frozen=True)
class DatePart(OfNumber):
    """A derived column: one part of a date, in UTC, such as the month or the hour.

    Bounds are those of a whole cycle, such as 1 to 12 for a month. They are narrower if the bounds of the date lie within one cycle.

    Parameters
    ----------
    name : str
        Name of the new column.
    of : str
        The date column.
    part : {"year", "quarter", "month", "day_of_year", "day", "weekday", "hour"}
        The part of the date. Weekdays go from 1 (Monday) to 7 (Sunday).
    levels : bool
        If False, the part is a number. If True, every value except the first gets an indicator column, named like ``name[2]``.
    missing : float or str, optional
        What a missing date becomes. For numbers it is "midpoint" of the bounds, the default, or a number.
        For levels it is "reference", the default, or "level" for a level of its own.

    Raises
    ------
    SchemaError
        If there is no such part, or if ``levels`` is not True or False. The schema also raises it if the column does not suit.

    Examples
    --------
    >>> from dpgram import Date, DatePart, Schema
    >>> quarter = DatePart("quarter", "when", "quarter", levels=True)
    >>> Schema(unit="visit", columns=[Date("when", "2013-01-01", "2014-01-01")], derived=[quarter]).encoded_names
    ('(intercept)', 'when', 'quarter[2]', 'quarter[3]', 'quarter[4]')
    """

    part: str
    levels: bool = False
    missing: float | str | None = None
    kind: ClassVar[str] = "date-part"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.part, str) or self.part not in PARTS:
            raise self._error(f"part is {self.part!r} and must be one of {', '.join(PARTS)}.")
        self._check_truth("levels")

    @property
    def expression(self) -> str:
        in_week = self.part == "weekday"  # which pandas calls otherwise, and counts from 0
        part = f"{formula_name(self.of)}.dt.{'day_of_week' if in_week else self.part}"
        if self.levels:
            return f"C({part})"
        return f"I({part} + 1)" if in_week else f"I({part})"

    def parents(self, columns: Columns) -> tuple[Date]:
        parent = self._declared(columns, self.of)
        if not isinstance(parent, Date):
            raise self._error(f"{self.of!r} is {parent.kind}, but a date column is needed.")
        return (parent,)

    def _range(self, columns: Columns) -> tuple[int, int]:
        (parent,) = self.parents(columns)
        return part_range(self.part, *bounds(parent))

    def wanted(self, columns: Columns) -> list[float]:
        """Return the value that each indicator column stands for. Mostly for internal use.

        Parameters
        ----------
        columns : mapping of str to column
            The declared columns by name.

        Returns
        -------
        list of float
            The values. Infinity stands for a missing date, because no date has it.
        """
        low, high = self._range(columns)
        return [*range(low + 1, high + 1), *([math.inf] if self.missing == "level" else [])]

    def made(self, columns: Columns) -> Made:
        low, high = self._range(columns)
        if low == high:
            raise self._error(
                f"the {self.part} is {low} for every date within the bounds of {self.of!r}. Leave this column out."
            )
        if not self.levels:
            return self._number_made(low, high, self.missing)
        missing = "reference" if self.missing is None else self.missing
        if missing not in ("reference", "level"):
            raise self._error(f'missing is {missing!r} and must be "reference" or "level".')
        return Categorical(self.name, tuple(range(low, high + 1)), missing=missing).made(columns)


def formula_name(name: str) -> str:
    """A column's name as a formula writes it."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"


def _written(end: float | str | None) -> str:
    """An end of an interval as a formula writes it."""
    return repr(int(end)) if isinstance(end, float) and end.is_integer() else repr(end)


DERIVED_KINDS = (Product, Power, Log, Log1p, Interval, DatePart)
