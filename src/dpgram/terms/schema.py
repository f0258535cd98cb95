"""What is declared about a table, and the encoded columns that follow from it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path

from dpgram.errors import SchemaError
from dpgram.terms import schema_file
from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import (
    COLUMN_KINDS,
    DROP_ROW,
    INDICATOR,
    MISSING,
    Column,
    Columns,
    Date,
    Declaration,
    Made,
    Numeric,
    bounds,
    set_fields,
)
from dpgram.terms.derived import DERIVED_KINDS, Derived

INTERCEPT = "(intercept)"
SMALLEST_ROW_BOUND = 2.0**-10  # rows live on a grid of step 2**-20; a smaller bound would leave them too few points
REACH = 64.0  # half ranges of a learnt interval, from its middle, up to which numbers are told apart
NARROWEST = 1e-9  # of a learnt interval: half its width over its largest number
MOST_TEXT = (
    1_000_000  # characters of all names and texts together: they are published, and everybody who opens a release reads them
)
MOST_ENCODED_COLUMNS = 4096  # sums of squares of grid points stay below 2**53, hence exact in float64
MOST_ROWS_PER_UNIT = 10**6
SMALLEST_WEIGHT = 1e-100  # and one over it the largest: products with it are floats
LONGEST_PROVENANCE = 500  # characters


@dataclass(frozen=True)
class EncodedColumn:
    """One column of the Gram matrix. A cell x in its own units is ``centre + half * z`` with z in [-1, 1]."""

    name: str
    column: str | None  # the declared or derived column it belongs to; None for the intercept
    centre: float = 0.0
    half: float = 1.0
    parents: tuple[str, ...] = ()  # of a derived column: the declared columns it is computed from
    stretch: float = 1.0  # ``half`` over the half range in which its numbers mostly lie, where that was learnt
    absent: bool = False  # whether it is one where the declared column's cell is missing, else zero

    @property
    def sources(self) -> frozenset[str]:
        """The declared columns whose cells decide its cells."""
        return frozenset(self.parents or ([] if self.column is None else [self.column]))


@dataclass(frozen=True)
class Schema:
    """What the custodian declares about a table: its columns, their bounds, and whom a release protects.

    The schema is published with the release, so keep secrets out of it. Take everything in it from the domain, never from the data.

    Parameters
    ----------
    unit : str
        Whom a release protects, in words, such as "person" or "visit". Without a ``unit_id`` that is one row. If a person then has several
        rows, the person is protected less.
    columns : sequence of Numeric, Categorical, Boolean or Date
        The columns to read from the table. Other columns of the table are ignored.
    neighbours : Neighbours or str
        Which tables the guarantee makes hard to tell apart. "replace" makes the number of rows public, "add-remove" protects it.
    row_bound : float, optional
        Largest Euclidean norm of an encoded row, in scaled units. Longer rows are clipped to it. By default it is the largest norm that
        the columns allow, so no row is clipped.
    intercept : bool
        Whether the Gram matrix has a column of ones.
    derived : sequence of Product, Power, Log, Log1p, Interval or DatePart
        Columns computed from the declared ones. They follow them in the Gram matrix.
    learnt : mapping of str to (float, float)
        Intervals that contain most values of a column. A release with the mechanism whitened-noise fills it in, under noise. Leave it out.
    unit_id : str, optional
        The column of the table that says whose row it is. A release then protects all rows of a unit together. The column is never
        released. Rows without an id do not count.
    rows_per_unit : int, optional
        How many rows of a unit count in full, at least 1. It is needed with a ``unit_id``. If a unit has more, they all count, each
        with less weight, as much as so many rows together.
    weight : str, optional
        The column of the table that holds the rows' weights. A row counts in proportion to its weight. A row without a weight does
        not count.
    largest_weight : float, optional
        The largest weight that a row can have. It is needed with a ``weight``. Larger ones count as this, negative ones as zero. Noise is
        added as if every row could have it, so keep it small.
    missing : "drop-row", optional
        What becomes of missing cells in all columns that say nothing of their own.
    provenance : str, optional
        Where the declared bounds come from, in words, and whether the rows were looked at. It is published.

    Raises
    ------
    SchemaError
        If something is missing, out of range or declared twice. The message names the column.

    Examples
    --------
    >>> from dpgram import Categorical, Numeric, Schema
    >>> schema = Schema(unit="visit", columns=[Numeric("age", 0, 120), Categorical("sex", ["f", "m"])])
    >>> schema.encoded_names
    ('(intercept)', 'age', 'sex[m]')

    Every declared column adds at most 1 to the squared norm of a row, and so does the intercept:

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
    unit_id: str | None = None
    rows_per_unit: int | None = None
    weight: str | None = None
    largest_weight: float | None = None
    missing: InitVar[str | None] = None
    provenance: str = ""

    def __post_init__(self, missing: str | None) -> None:
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise SchemaError('unit is blank. Say in words what one row is, such as unit = "visit".')
        columns = _all_of("columns", self.columns, COLUMN_KINDS)
        if not columns:
            raise SchemaError("the schema declares no columns, but at least one is needed. Add a [[columns]] entry.")
        if missing not in (None, DROP_ROW):
            raise SchemaError(f'missing is {missing!r} and must be "drop-row" for a whole schema, or be said for each column.')
        columns = tuple(
            replace(c, missing=c.unsaid if missing is None else missing) if c.missing is None else c for c in columns
        )
        derived = _all_of("derived", self.derived, DERIVED_KINDS)
        set_fields(self, columns=columns, derived=derived, neighbours=Neighbours.named(self.neighbours, SchemaError))
        if not isinstance(self.intercept, bool):
            raise SchemaError(f"intercept is {self.intercept!r} and must be true or false.")
        self._check_indicators()
        self._check_learnt()
        self._check_names()
        self._check_row_bound()
        self._check_units()
        self._check_weight()
        if not isinstance(self.provenance, str) or len(self.provenance) > LONGEST_PROVENANCE:
            raise SchemaError(f"provenance must be a text of at most {LONGEST_PROVENANCE} characters.")

    def _check_learnt(self) -> None:
        if not isinstance(self.learnt, Mapping):
            raise SchemaError("learnt must be a table with one entry per column: the two ends of an interval.")
        checked: dict[str, tuple[float, float]] = {}
        for name, interval in self.learnt.items():
            column = self.by_name.get(name)
            if not isinstance(column, Numeric | Date):
                raise SchemaError(f"learnt names {name!r}, which is not a numeric or date column of this schema.")
            ends = tuple(interval) if isinstance(interval, Iterable) and not isinstance(interval, str) else ()
            if len(ends) != 2 or not all(isinstance(end, Real) and not isinstance(end, bool) for end in ends):
                raise SchemaError(f"the learnt interval of column {name!r} must be two numbers, the smaller one first.")
            lower, upper = bounds(column)
            if not (lower <= ends[0] < ends[1] <= upper and is_wide_enough(*map(float, ends))):
                raise SchemaError(
                    f"the learnt interval of column {name!r} must lie within the column's bounds, and must not be too narrow."
                )
            checked[name] = float(ends[0]), float(ends[1])
        set_fields(self, learnt=checked)

    def _check_names(self) -> None:
        for names, what in ((self.all_names, "column"), (self.encoded_names, "encoded column")):
            for name, times in Counter(names).items():
                if times > 1:
                    raise SchemaError(f"{what} {name!r} is declared twice. Use every name once.")
        if len(self.encoded_names) > MOST_ENCODED_COLUMNS:
            raise SchemaError(
                f"the schema makes {len(self.encoded_names)} encoded columns, but at most {MOST_ENCODED_COLUMNS} are "
                f"possible. Declare fewer columns or categories."
            )

        texts = (self.unit, self.provenance, *self.all_names, *self.encoded_names)
        if (long := sum(len(text) for text in texts if isinstance(text, str))) > MOST_TEXT:
            raise SchemaError(
                f"the names and texts of the schema have {long:,} characters, but at most {MOST_TEXT:,} are possible. Shorten them."
            )

    def _check_row_bound(self) -> None:
        row_bound = self.row_bound
        if row_bound is None:
            return
        if isinstance(row_bound, bool) or not isinstance(row_bound, Real):
            raise SchemaError(f"row_bound is {row_bound!r} and must be a number, or left out.")
        if not (math.isfinite(row_bound) and row_bound >= SMALLEST_ROW_BOUND):
            raise SchemaError(
                f"row_bound is {float(row_bound):g} and must be a finite number of at least {SMALLEST_ROW_BOUND:g}. It is "
                f"in scaled units, where every column spans [-1, 1]. Leave it out to clip no row."
            )
        set_fields(self, row_bound=float(row_bound))

    def _check_indicators(self) -> None:
        """Without an intercept zero is not the middle of a column, so value and indicator together could be longer than one."""
        for column in self.columns if not self.intercept else ():
            if column.missing == INDICATOR:
                raise SchemaError(f'column {column.name!r}: missing = "indicator" needs intercept = true.')

    def _check_units(self) -> None:
        if self.unit_id is None and self.rows_per_unit is None:
            return
        if not isinstance(self.unit_id, str) or not self.unit_id:
            raise SchemaError("unit_id is blank, but rows_per_unit is given. Name the column that says whose row it is.")
        many = self.rows_per_unit
        if isinstance(many, bool) or not isinstance(many, Integral) or not 1 <= many <= MOST_ROWS_PER_UNIT:
            given = "blank" if many is None else repr(many)
            raise SchemaError(
                f"rows_per_unit is {given} and must be a whole number from 1 to {MOST_ROWS_PER_UNIT:,}: how many rows of a unit count "
                f"in full. Take it from the domain, not from the data."
            )
        set_fields(self, rows_per_unit=int(many))

    def _check_weight(self) -> None:
        if self.weight is None and self.largest_weight is None:
            return
        if not isinstance(self.weight, str) or not self.weight:
            raise SchemaError("weight is blank, but largest_weight is given. Name the column that holds the weights.")
        largest = self.largest_weight
        if isinstance(largest, bool) or not isinstance(largest, Real) or not SMALLEST_WEIGHT <= largest <= 1 / SMALLEST_WEIGHT:
            given = "blank" if largest is None else repr(largest)
            raise SchemaError(
                f"largest_weight is {given} and must be a positive number: the largest weight that a row can have. Take it from the "
                f"design of the survey, not from the data."
            )
        set_fields(self, largest_weight=float(largest))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the declared columns."""
        return tuple(column.name for column in self.columns)

    @property
    def read_names(self) -> tuple[str, ...]:
        """Names of the columns to read from the table: the declared ones, then those of ids and weights, each once."""
        return tuple(dict.fromkeys([*self.names, *(name for name in (self.unit_id, self.weight) if name is not None)]))

    @property
    def most_rows(self) -> int:
        """How many rows of the largest weight one unit can count as, at most."""
        return self.rows_per_unit or 1

    @property
    def drops_rows(self) -> bool:
        """Whether a row with a missing cell in some column does not count."""
        return any(column.missing == DROP_ROW for column in self.columns)

    @property
    def counts_partly(self) -> bool:
        """Whether a row can count as less than one, so that the number of rows says less than the Gram matrix does."""
        return self.drops_rows or self.unit_id is not None or self.weight is not None

    @property
    def all_names(self) -> tuple[str, ...]:
        """Names of the declared columns, then of the derived ones. A regression can use all of them."""
        return self.names + tuple(derived.name for derived in self.derived)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The declared columns, by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def made(self) -> dict[str, Made]:
        """Encoded columns, bounds and fill values of each declared or derived column, by name."""
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
        encoded = tuple(EncodedColumn(name, one.name, centre, half, parents, stretch) for name in made.names)
        absent = not isinstance(one, Derived) and one.missing == INDICATOR  # type: ignore[attr-defined]
        return (*encoded, EncodedColumn(f"{one.name}[{MISSING}]", one.name, absent=True)) if absent else encoded

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
        """Names of the columns of the Gram matrix, in order."""
        return tuple(e.name for e in self.encoded)

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Positions in the Gram matrix by name. A declared or derived column has one position for each of its encoded columns."""
        places: dict[str, tuple[int, ...]] = {}
        for place, e in enumerate(self.encoded):
            if e.column is not None:
                places[e.column] = (*places.get(e.column, ()), place)
        return {**{e.name: (place,) for place, e in enumerate(self.encoded)}, **places}

    @cached_property
    def half_ranges(self) -> tuple[float, ...]:
        """Half the range of every encoded column in scaled units. It is 1 for a number, 0.5 for an indicator, and 0 for the intercept."""
        numbers = {name for name, made in self.made.items() if made.is_number}
        return tuple(0.0 if e.column is None else 1.0 if e.column in numbers and not e.absent else 0.5 for e in self.encoded)

    @cached_property
    def stretches(self) -> tuple[float, ...]:
        """Half range of every encoded column, divided by half of its learnt interval. It is 1 where nothing was learnt."""
        return tuple(e.stretch for e in self.encoded)

    @property
    def looked_at(self) -> dict[str, tuple[float, float]]:
        """Declared bounds of the numeric and date columns that have no learnt interval yet, by name."""
        return {c.name: bounds(c) for c in self.columns if isinstance(c, Numeric | Date) and c.name not in self.learnt}

    @property
    def largest_norm(self) -> float:
        """Largest Euclidean norm that an encoded row can have under this schema."""
        # Each column adds at most 1 to the squared norm: a number lies in [-1, 1], and of several indicators, of several
        # products with an indicator, or of a number and the indicator of its absence, at most one is not zero.
        return _sqrt_up(len(self.columns) + len(self.derived) + self.intercept)

    @property
    def effective_row_bound(self) -> float:
        """The row bound in use, which is the smaller of ``row_bound`` and ``largest_norm``."""
        return self.largest_norm if self.row_bound is None else min(self.row_bound, self.largest_norm)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file.

        Parameters
        ----------
        path : str or Path
            The file. ``dpgram.draft_schema`` writes one to fill in.

        Returns
        -------
        Schema
            The schema in the file.

        Raises
        ------
        SchemaError
            If the file cannot be read, is not valid TOML, or has an unknown key.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dpgram import Schema
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "visits.toml"
        ...     _ = path.write_text('unit = "visit"\\n[[columns]]\\nname = "age"\\nkind = "numeric"\\nlower = 0\\nupper = 120\\n')
        ...     Schema.load(path).names
        ('age',)
        """
        return cls.from_dict(schema_file.read(Path(path)))

    @classmethod
    def from_dict(cls, fields: object) -> Schema:
        """Build a schema from plain dicts and lists, as TOML and JSON give them.

        Parameters
        ----------
        fields : dict
            The fields of the schema. Each column is a dict with its ``kind`` and its own fields.

        Returns
        -------
        Schema
            The schema.

        Raises
        ------
        SchemaError
            If a field is missing, unknown or out of range.

        Examples
        --------
        >>> from dpgram import Schema
        >>> Schema.from_dict({"unit": "visit", "columns": [{"name": "smoker", "kind": "boolean"}]}).names
        ('smoker',)
        """
        return cls(**schema_file.checked_fields(fields))

    def to_dict(self) -> dict:
        """Return the schema as plain dicts and lists.

        Returns
        -------
        dict
            Fields that ``from_dict`` reads back as an equal schema.

        Examples
        --------
        >>> from dpgram import Boolean, Schema
        >>> schema = Schema(unit="visit", columns=[Boolean("smoker")])
        >>> Schema.from_dict(schema.to_dict()) == schema
        True
        """
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
            raise SchemaError(
                f"{what} contains a {type(one).__name__}, but each entry must be {', '.join(names[:-1])} or {names[-1]}."
            )
    return declared


def _sqrt_up(square: int) -> float:
    """The smallest float whose square is at least ``square``."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)
