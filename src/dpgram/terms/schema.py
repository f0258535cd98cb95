"""What is declared about a table, and the encoded columns that follow from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from pathlib import Path

from dpgram.errors import SchemaError
from dpgram.terms import schema_file
from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import COLUMN_KINDS, Column, Columns, Date, Declaration, Made, Numeric, bounds, set_fields
from dpgram.terms.derived import DERIVED_KINDS, Derived

INTERCEPT = "(intercept)"
SMALLEST_ROW_BOUND = 2.0**-10  # rows live on a grid of step 2**-20; a smaller bound would leave them too few points
REACH = 64.0  # half ranges of a learnt interval, from its middle, up to which numbers are told apart
NARROWEST = 1e-9  # of a learnt interval: half its width over its largest number
MOST_ENCODED_COLUMNS = 4096  # sums of squares of grid points stay below 2**53, hence exact in float64


@dataclass(frozen=True)
class EncodedColumn:
    """One column of the Gram matrix. A cell x in its own units is ``centre + half * z`` with z in [-1, 1]."""

    name: str
    column: str | None  # the declared or derived column it belongs to; None for the intercept
    centre: float = 0.0
    half: float = 1.0
    parents: tuple[str, ...] = ()  # of a derived column: the declared columns it is computed from
    stretch: float = 1.0  # ``half`` over the half range in which its numbers mostly lie, where that was learnt

    @property
    def sources(self) -> frozenset[str]:
        """The declared columns whose cells decide its cells."""
        return frozenset(self.parents or ([] if self.column is None else [self.column]))


@dataclass(frozen=True)
class Schema:
    """What is declared about the table. All of it is public and is copied into the release.

    ``columns`` are read from the table; ``derived`` ones are computed from them, and stand after them in the Gram matrix.
    ``unit`` says in words what one row is. That a person, say, has one row only is assumed, not enforced.
    ``row_bound`` is the largest Euclidean norm of an encoded row; longer rows are clipped to it. Left out, it is the
    largest norm that the columns allow, so that no row is clipped.
    ``learnt`` is what a release found out, privately, about columns with wide bounds: the interval in which their numbers mostly lie.
    They are scaled by it; bounds stay what was declared.

    >>> from dpgram.terms.columns import Categorical, Numeric
    >>> schema = Schema(unit="visit", columns=[Numeric("age", 0, 120), Categorical("sex", ["f", "m"])])
    >>> schema.encoded_names
    ('(intercept)', 'age', 'sex[m]')
    >>> round(schema.effective_row_bound**2, 9)
    3.0
    """

    unit: str
    columns: tuple[Column, ...]
    neighbours: Neighbours = Neighbours.REPLACE
    row_bound: float | None = None
    intercept: bool = True
    derived: tuple[Derived, ...] = ()
    learnt: Mapping[str, tuple[float, float]] = field(
        default_factory=dict, hash=False
    )  # by column, in own units (days for a date)

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise SchemaError('unit is blank: say in words what one row is, such as unit = "visit".')
        columns = _all_of("columns", self.columns, COLUMN_KINDS)
        if not columns:
            raise SchemaError("the schema declares no columns, and at least one is needed: add a [[columns]] entry.")
        derived = _all_of("derived", self.derived, DERIVED_KINDS)
        set_fields(self, columns=columns, derived=derived, neighbours=Neighbours.named(self.neighbours, SchemaError))
        if not isinstance(self.intercept, bool):
            raise SchemaError(f"intercept is {self.intercept!r} and must be true or false.")
        self._check_learnt()
        self._check_names()
        self._check_row_bound()

    def _check_learnt(self) -> None:
        if not isinstance(self.learnt, Mapping):
            raise SchemaError("learnt must be a table of columns, each with the two ends of an interval.")
        checked: dict[str, tuple[float, float]] = {}
        for name, interval in self.learnt.items():
            column = self.by_name.get(name)
            if not isinstance(column, Numeric | Date):
                raise SchemaError(f"learnt names {name!r}, which is no numeric column and no date of this schema.")
            ends = tuple(interval) if isinstance(interval, Iterable) and not isinstance(interval, str) else ()
            if len(ends) != 2 or not all(isinstance(end, Real) and not isinstance(end, bool) for end in ends):
                raise SchemaError(f"learnt interval of column {name!r} must be two numbers, the smaller first.")
            lower, upper = bounds(column)
            if not (lower <= ends[0] < ends[1] <= upper and is_wide_enough(*map(float, ends))):
                raise SchemaError(f"learnt interval of column {name!r} must lie within its bounds, and not be too narrow.")
            checked[name] = float(ends[0]), float(ends[1])
        set_fields(self, learnt=checked)

    def _check_names(self) -> None:
        for names, what in ((self.all_names, "column"), (self.encoded_names, "encoded column")):
            for name, times in Counter(names).items():
                if times > 1:
                    raise SchemaError(f"{what} {name!r} is declared twice: every name must stand once.")
        if len(self.encoded_names) > MOST_ENCODED_COLUMNS:
            raise SchemaError(
                f"the schema makes {len(self.encoded_names)} encoded columns, and at most {MOST_ENCODED_COLUMNS} are "
                f"possible: declare fewer columns or categories."
            )

    def _check_row_bound(self) -> None:
        row_bound = self.row_bound
        if row_bound is None:
            return
        if isinstance(row_bound, bool) or not isinstance(row_bound, Real):
            raise SchemaError(f"row_bound is {row_bound!r} and must be a number, or left out.")
        if not (math.isfinite(row_bound) and row_bound >= SMALLEST_ROW_BOUND):
            raise SchemaError(
                f"row_bound is {float(row_bound):g} and must be a finite number of at least {SMALLEST_ROW_BOUND:g}, in scaled "
                f"units (every column spans [-1, 1]): leave it out for the largest norm the columns allow."
            )
        set_fields(self, row_bound=float(row_bound))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns to be read from the table."""
        return tuple(column.name for column in self.columns)

    @property
    def all_names(self) -> tuple[str, ...]:
        """Declared columns, then derived ones: what a regression can name."""
        return self.names + tuple(derived.name for derived in self.derived)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The declared columns, by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def made(self) -> dict[str, Made]:
        """What each declared or derived column becomes, by name."""
        return {one.name: one.made(self.by_name) for one in (*self.columns, *self.derived)}

    @cached_property
    def encoded(self) -> tuple[EncodedColumn, ...]:
        """The columns of the Gram matrix, in order."""
        first = (EncodedColumn(INTERCEPT, None),) if self.intercept else ()
        return first + tuple(e for one in (*self.columns, *self.derived) for e in self._encode(one))

    def _encode(self, one: Declaration) -> tuple[EncodedColumn, ...]:
        made = self.made[one.name]
        parents = tuple(column.name for column in one.parents(self.by_name)) if isinstance(one, Derived) else ()
        centre, half = self._scale(made)
        stretch = 1.0
        if any(name in self.learnt for name in parents or (one.name,)):
            centre, near = self._scale(self._learnt_bounds(one))
            far = max(abs(made.lower - centre), abs(made.upper - centre))  # no cell lies beyond it
            half = max(near, min(REACH * near, far))
            stretch = half / near
        return tuple(EncodedColumn(name, one.name, centre, half, parents, stretch) for name in made.names)

    def _scale(self, made: Made) -> tuple[float, float]:
        """The centre and half range of a column with these bounds."""
        lower, upper = made.lower, made.upper
        # Without an intercept column a shift could not be undone. And of several columns only one may differ from zero, so zero
        # must stay zero: shifted, each would add to the norm.
        shifted = made.is_number and self.intercept
        return (lower / 2 + upper / 2, upper / 2 - lower / 2) if shifted else (0.0, max(abs(lower), abs(upper)))

    def _learnt_bounds(self, one: Declaration) -> Made:
        """What ``one`` would be, had the learnt intervals been declared as bounds. A derived column follows from its parents'."""
        if one.name in self.learnt:
            lower, upper = self.learnt[one.name]
            return replace(self.made[one.name], lower=lower, upper=upper)
        try:
            narrow: Columns = {
                name: replace(column, lower=self.learnt[name][0], upper=self.learnt[name][1], missing="midpoint")
                if name in self.learnt and isinstance(column, Numeric)
                else column
                for name, column in self.by_name.items()
            }
            made = one.made(narrow)
        except SchemaError:  # what stands for a missing cell, or an interval of it, lies outside
            return self.made[one.name]
        return made if self._scale(made)[1] > 0 else self.made[one.name]

    @cached_property
    def encoded_names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.encoded)

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Where each name stands in the Gram matrix: an encoded column, or all those of a declared or derived one."""
        places: dict[str, tuple[int, ...]] = {}
        for place, e in enumerate(self.encoded):
            if e.column is not None:
                places[e.column] = (*places.get(e.column, ()), place)
        return {**places, **{e.name: (place,) for place, e in enumerate(self.encoded)}}

    @cached_property
    def half_ranges(self) -> tuple[float, ...]:
        """Half the range of every encoded column, in scaled units: 1 of a number, 0.5 of an indicator, 0 of the intercept."""
        return tuple(0.0 if e.column is None else 1.0 if self.made[e.column].is_number else 0.5 for e in self.encoded)

    @cached_property
    def stretches(self) -> tuple[float, ...]:
        """Of every encoded column: its half range over that in which its numbers mostly lie, 1 where nothing was learnt."""
        return tuple(e.stretch for e in self.encoded)

    @property
    def looked_at(self) -> dict[str, tuple[float, float]]:
        """The declared bounds of the columns whose scale can be learnt, and is not: numbers and dates."""
        return {c.name: bounds(c) for c in self.columns if isinstance(c, Numeric | Date) and c.name not in self.learnt}

    @property
    def largest_norm(self) -> float:
        """The largest Euclidean norm of an encoded row that the columns allow."""
        # Each column adds at most 1 to the squared norm: a number lies in [-1, 1], and of several indicators, or of several
        # products with an indicator, at most one is not zero.
        return _sqrt_up(len(self.columns) + len(self.derived) + self.intercept)

    @property
    def effective_row_bound(self) -> float:
        """The bound in force: ``row_bound``, or the largest norm the columns allow where that is smaller."""
        return self.largest_norm if self.row_bound is None else min(self.row_bound, self.largest_norm)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """The schema in a TOML file."""
        return cls.from_dict(schema_file.read(Path(path)))

    @classmethod
    def from_dict(cls, fields: object) -> Schema:
        """The schema in plain dicts and lists, as TOML and JSON give them; unknown keys are errors."""
        return cls(**schema_file.checked_fields(fields))

    def to_dict(self) -> dict:
        """Plain dicts and lists that ``from_dict`` reads back as an equal schema."""
        return schema_file.plain_fields(self)


def is_wide_enough(low: float, high: float) -> bool:
    """Whether numbers of a learnt interval can be told apart in float64."""
    half = high / 2 - low / 2
    return half > 0 and half >= NARROWEST * max(abs(low), abs(high))


def _all_of(what: str, given: object, kinds: tuple[type, ...]) -> tuple:
    """The declarations in a list, each of one of ``kinds``."""
    names = [kind.__name__ for kind in kinds]
    if isinstance(given, (*kinds, str)) or not isinstance(given, Iterable):
        raise SchemaError(f"{what} must be a list of {', '.join(names[:-1])} and {names[-1]} columns.")
    declared = tuple(given)
    for one in declared:
        if not isinstance(one, kinds):
            raise SchemaError(f"{what} holds a {type(one).__name__}; each must be {', '.join(names[:-1])} or {names[-1]}.")
    return declared


def _sqrt_up(square: int) -> float:
    """The smallest float whose square is at least ``square``."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)
