"""What is declared about one column: its kind, its bounds or categories, and what stands in for a missing cell.

Everything here is public: it comes from knowledge of the domain, never from the rows, and is copied into the release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from dpgram.errors import SchemaError
from dpgram.terms.dates import days_of, iso_text

OTHER, MISSING = "other", "missing"  # names of the two levels that are not declared categories
DROP_ROW, INDICATOR, MIDPOINT = "drop-row", "indicator", "midpoint"  # what can become of a missing cell, besides a value
EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class Made:
    """What a declared or derived column becomes under a schema, in its own units.

    ``names`` are its encoded columns. Where they are several, at most one is not zero in any row, and none is shifted, so
    that together they add no more to the squared norm of a row than one column does."""

    names: tuple[str, ...]
    lower: float  # bounds of every one of them
    upper: float
    fill: tuple[float, ...]  # what stands in each for a missing cell
    is_number: bool  # False: zero says "not this level" and must stay zero when the column is scaled


@dataclass(frozen=True)
class Declaration:
    """What every declared or derived column has: a name, a kind, and errors that mention it."""

    name: str
    kind: ClassVar[str]
    called: ClassVar[str] = "column"
    unsaid: ClassVar[object] = DROP_ROW  # what ``missing`` is where neither column nor schema says anything

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"the name of a column is {self.name!r} and must be a non-empty string.")

    def made(self, columns: Columns) -> Made:
        """Return the encoded columns, bounds and fill values of this column. Mostly for internal use.

        Parameters
        ----------
        columns : mapping of str to column
            The declared columns by name.

        Returns
        -------
        Made
            Names, bounds and fill values of the encoded columns.

        Raises
        ------
        SchemaError
            If the column cannot be computed from the declared columns.
        """
        raise NotImplementedError

    def _error(self, problem: str) -> SchemaError:
        return SchemaError(f"{self.called} {self.name!r}: {problem}")

    def _bound(self, which: str) -> Any:
        """The field ``which``, or an error where it is blank."""
        value = getattr(self, which)
        if value is None or (isinstance(value, str) and not value):
            raise self._error(
                f"{which} is blank. Fill in a bound that you know from the domain. Do not look it up in the data."
            )
        return value

    def _check_truth(self, which: str) -> None:
        if not isinstance(value := getattr(self, which), bool):
            raise self._error(f"{which} is {value!r} and must be true or false.")


@dataclass(frozen=True)
class Numeric(Declaration):
    """A numeric column with public bounds.

    Values outside the bounds are moved to the nearest bound. Take the bounds from what you know of the domain, never from the data.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    lower, upper : float
        Smallest and largest value that the column can take.
    missing : {"drop-row", "indicator", "midpoint"} or float, optional
        What becomes of a missing cell. With "drop-row", the default, its row does not count at all. With "indicator" the cell counts as the
        middle of the bounds, and a column of its own, named like ``age[missing]``, is 1 in these rows. With "midpoint" or a number within
        the bounds that value replaces it.

    Raises
    ------
    SchemaError
        If a bound is blank, not finite or not a number, if ``lower`` is not below ``upper``, or if ``missing`` is outside the bounds.

    Examples
    --------
    >>> from dpgram import Numeric
    >>> Numeric("age", 0, 120).fill
    60.0
    """

    lower: float
    upper: float
    missing: float | str | None = None
    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        super().__post_init__()
        lower, upper = self._number("lower"), self._number("upper")
        if lower >= upper:
            raise self._error(f"lower is {lower:g} and upper is {upper:g}, but lower must be smaller than upper.")
        half, largest = upper / 2 - lower / 2, max(abs(lower), abs(upper))
        if half < 1e-300 or half < 1e-9 * largest or largest > 1e300:
            raise self._error(
                f"bounds [{lower!r}, {upper!r}] are too close together, too small or too large for double precision. "
                f"Shift or rescale the column in the table first."
            )
        missing = self.missing
        if not (missing is None or (isinstance(missing, str) and missing in (DROP_ROW, INDICATOR, MIDPOINT))):
            if isinstance(missing, bool) or not isinstance(missing, Real):
                raise self._error(f'missing is {missing!r} and must be "drop-row", "indicator", "midpoint" or a number.')
            missing = float(missing)
            if not lower <= missing <= upper:
                raise self._error(f"missing is {missing:g} and must lie within [{lower:g}, {upper:g}].")
        set_fields(self, lower=lower, upper=upper, missing=missing)

    def _number(self, which: str) -> float:
        value = self._bound(which)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise self._error(f"{which} is {value!r} and must be a number.")
        try:
            number = float(value)
        except OverflowError:  # a whole number that no float holds
            number = math.inf
        if not math.isfinite(number):
            raise self._error(f"{which} is {number!r} and must be finite.")
        return number

    def made(self, columns: Columns) -> Made:
        return Made((self.name,), self.lower, self.upper, (self.fill,), is_number=True)

    @property
    def fill(self) -> float:
        """The number that replaces a missing cell, unless its row is dropped."""
        return self.missing if isinstance(self.missing, float) else self.lower / 2 + self.upper / 2


@dataclass(frozen=True)
class Categorical(Declaration):
    """A categorical column with a public list of categories.

    The first category is the reference. Every other level gets an indicator column, which is 1 in the rows of that level.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    categories : sequence of str or sequence of int
        The values that the column can take, reference first. Strings are compared as text, integers as numbers.
    other : bool
        Whether a value that is not listed goes to a level named "other". If False, it counts as a missing cell.
    missing : {"reference", "level", "drop-row"}
        What becomes of a missing cell. It counts as the reference, which is the default, or as a level of its own named "missing". With
        "drop-row" its row does not count at all.

    Raises
    ------
    SchemaError
        If the list is blank, mixes types or repeats a category, or if there are fewer than two levels.

    Examples
    --------
    >>> from dpgram import Categorical
    >>> Categorical("carrier", ["UA", "AA"], other=True).levels
    ('UA', 'AA', 'other')
    """

    categories: tuple[str, ...] | tuple[int, ...]
    other: bool = False
    missing: str | None = None
    kind: ClassVar[str] = "categorical"
    unsaid: ClassVar[object] = "reference"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.categories, str) or not isinstance(self.categories, Iterable):
            raise self._error("categories must be a list, such as ['UA', 'AA'].")
        categories = tuple(_plain_category(c) for c in self.categories)
        if not categories:
            raise self._error("categories is blank. List the values that the column can take, reference first.")
        types = {type(c) for c in categories}
        if types not in ({str}, {int}):
            raise self._error("categories must be all strings or all integers.")
        if "" in categories:
            raise self._error("the empty text cannot be a category, because an empty cell counts as missing.")
        if types == {int} and any(abs(c) > EXACT_INTEGERS for c in categories):
            raise self._error("integer categories must lie between -2**53 and 2**53. Declare larger ones as strings.")
        if len(set(categories)) < len(categories):
            raise self._error("a category is listed twice. List each one once.")
        self._check_truth("other")
        if self.missing not in (None, "reference", "level", DROP_ROW):
            raise self._error(f'missing is {self.missing!r} and must be "reference", "level" or "drop-row".')
        for level, used in ((OTHER, self.other), (MISSING, self.missing == "level")):
            if used and level in categories:
                raise self._error(
                    f"{level!r} is a declared category, but its own {level!r} level needs that name. Rename the category."
                )
        set_fields(self, categories=categories)
        if len(self.levels) < 2:
            raise self._error(
                "there is only one category, which carries no information. Declare a second one, or set other = true."
            )

    def made(self, columns: Columns) -> Made:
        names = tuple(f"{self.name}[{level}]" for level in self.levels[1:])
        return Made(names, 0.0, 1.0, (0.0,) * (len(names) - 1) + (float(self.missing == "level"),), is_number=False)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of all levels, the reference first."""
        declared = tuple(str(c) for c in self.categories)
        return declared + (OTHER,) * self.other + (MISSING,) * (self.missing == "level")

    @property
    def matches_numbers(self) -> bool:
        """Whether cells are compared with the categories as numbers. If False, they are compared as text."""
        return isinstance(self.categories[0], int)


@dataclass(frozen=True)
class Boolean(Declaration):
    """A column of truth values, encoded as 0 and 1.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    missing : bool or "drop-row"
        The value that replaces a missing cell, False by default. With "drop-row" its row does not count at all.

    Raises
    ------
    SchemaError
        If ``missing`` is something else.

    Examples
    --------
    >>> from dpgram import Boolean
    >>> Boolean("smoker", missing=True).fill
    1.0
    """

    missing: bool | str | None = None
    kind: ClassVar[str] = "boolean"
    unsaid: ClassVar[object] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.missing is None or isinstance(self.missing, bool) or self.missing == DROP_ROW):
            raise self._error(f'missing is {self.missing!r} and must be true, false or "drop-row".')

    def made(self, columns: Columns) -> Made:
        return Made((self.name,), 0.0, 1.0, (self.fill,), is_number=False)

    @property
    def fill(self) -> float:
        """The number that replaces a missing cell, unless its row is dropped."""
        return float(self.missing is True)


@dataclass(frozen=True)
class Date(Declaration):
    """A column of dates or times with public bounds.

    A date becomes a number: the days since 1970-01-01 00:00 UTC, to the second. A date without a time means its midnight.
    Dates outside the bounds are moved to the nearest bound.

    Parameters
    ----------
    name : str
        Name of the column in the table.
    lower, upper : str, datetime.date or datetime.datetime
        First and last date that the column can take. Text is in ISO 8601 form. Bounds are stored as text in UTC.
    missing : {"drop-row", "indicator", "midpoint"}, str, datetime.date or datetime.datetime, optional
        What becomes of a missing cell, as for ``Numeric``: "drop-row" by default, or a date within the bounds that replaces it.

    Raises
    ------
    SchemaError
        If a bound is blank or not a date, if the bounds are less than an hour apart, or if ``missing`` is outside them.

    Examples
    --------
    >>> from dpgram import Date
    >>> Date("when", "2013-01-01", "2014-01-01").first
    15706.0
    """

    lower: str
    upper: str
    missing: str | None = None
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        super().__post_init__()
        lower, upper = self._date("lower"), self._date("upper")
        missing = self.missing if self.missing in _NO_DATES else self._date("missing")
        set_fields(self, lower=lower, upper=upper, missing=missing)
        if round((self.last - self.first) * 24 * 3600) < 3600:  # seconds
            raise self._error(f"lower is {lower} and upper is {upper}, but upper must be at least an hour later than lower.")
        if not self.first <= self.fill <= self.last:
            raise self._error(f"missing is {missing} and must lie within [{lower}, {upper}].")

    def _date(self, which: str) -> str:
        return iso_text(self._bound(which), f"column {self.name!r}: {which}")

    def made(self, columns: Columns) -> Made:
        return Made((self.name,), self.first, self.last, (self.fill,), is_number=True)

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
        """The number of days that replaces a missing cell, unless its row is dropped."""
        given = None if self.missing in _NO_DATES else self.missing
        return self.first / 2 + self.last / 2 if given is None else days_of(given)


_NO_DATES = (None, DROP_ROW, INDICATOR, MIDPOINT)
Column = Numeric | Categorical | Boolean | Date
Columns = Mapping[str, Column]  # the declared columns by name
COLUMN_KINDS = (Numeric, Categorical, Boolean, Date)


def bounds(column: Numeric | Date) -> tuple[float, float]:
    """The declared bounds as numbers."""
    return (column.first, column.last) if isinstance(column, Date) else (column.lower, column.upper)


def _plain_category(category: object) -> Any:
    """NumPy's integers and strings as Python's."""
    if isinstance(category, Integral) and not isinstance(category, bool):
        return int(category)
    return str(category) if isinstance(category, str) else category


def set_fields(frozen: object, **fields: object) -> None:
    """Store normalised fields on a frozen dataclass, from its own ``__post_init__``."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)
