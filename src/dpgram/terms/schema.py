"""What is declared about a table, and the encoded columns that follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Real
from pathlib import Path

from dpgram.errors import SchemaError
from dpgram.terms import schema_file
from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import Boolean, Categorical, Column, Numeric

INTERCEPT = "(intercept)"
SMALLEST_ROW_BOUND = 2.0**-10  # rows live on a grid of step 2**-20; a smaller bound would leave them too few points
MOST_ENCODED_COLUMNS = 4096  # sums of squares of grid points stay below 2**53, hence exact in float64


@dataclass(frozen=True)
class EncodedColumn:
    """One column of the Gram matrix. A cell x in its own units is ``centre + half * z`` with z in [-1, 1]."""

    name: str
    column: str | None  # the declared column it comes from; None for the intercept
    centre: float = 0.0
    half: float = 1.0


@dataclass(frozen=True)
class Schema:
    """What is declared about the table. All of it is public and is copied into the release.

    ``unit`` says in words what one row is. That a person, say, has one row only is assumed, not enforced.
    ``row_bound`` is the largest Euclidean norm of an encoded row; longer rows are shrunk to it. Left out, it is the
    largest norm that the columns allow, so that no row is shrunk.

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

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise SchemaError('unit is blank: say in words what one row is, such as unit = "visit".')
        if isinstance(self.columns, Numeric | Categorical | Boolean | str) or not isinstance(self.columns, Iterable):
            raise SchemaError("columns must be a list of Numeric, Categorical and Boolean columns.")
        columns = tuple(self.columns)
        for column in columns:
            if not isinstance(column, Numeric | Categorical | Boolean):
                raise SchemaError(f"columns holds a {type(column).__name__}; each must be Numeric, Categorical or Boolean.")
        if not columns:
            raise SchemaError("the schema declares no columns, and at least one is needed: add a [[columns]] entry.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "neighbours", _neighbours(self.neighbours))
        if not isinstance(self.intercept, bool):
            raise SchemaError(f"intercept is {self.intercept!r} and must be true or false.")
        self._check_names()
        self._check_row_bound()

    def _check_names(self) -> None:
        for names, what in ((self.names, "column"), (self.encoded_names, "encoded column")):
            seen: set[str] = set()
            for name in names:
                if name in seen:
                    raise SchemaError(f"{what} {name!r} is declared twice: every name must stand once.")
                seen.add(name)
        if len(self.encoded_names) > MOST_ENCODED_COLUMNS:
            raise SchemaError(
                f"the schema makes {len(self.encoded_names)} encoded columns, and at most {MOST_ENCODED_COLUMNS} are "
                f"possible: declare fewer columns or categories."
            )

    def _check_row_bound(self) -> None:
        bound = self.row_bound
        if bound is None:
            return
        if isinstance(bound, bool) or not isinstance(bound, Real):
            raise SchemaError(f"row_bound is {bound!r} and must be a number, or left out.")
        if not (math.isfinite(bound) and bound >= SMALLEST_ROW_BOUND):
            raise SchemaError(
                f"row_bound is {float(bound):g} and must be a finite number of at least {SMALLEST_ROW_BOUND:g}, in scaled "
                f"units (every column spans [-1, 1]): leave it out for the largest norm the columns allow."
            )
        object.__setattr__(self, "row_bound", float(bound))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def encoded(self) -> tuple[EncodedColumn, ...]:
        """The columns of the Gram matrix, in order."""
        first = (EncodedColumn(INTERCEPT, None),) if self.intercept else ()
        return first + tuple(e for column in self.columns for e in self._encode(column))

    def _encode(self, column: Column) -> tuple[EncodedColumn, ...]:
        match column:
            case Numeric(name, lower, upper):
                if self.intercept:
                    return (EncodedColumn(name, name, centre=lower / 2 + upper / 2, half=upper / 2 - lower / 2),)
                # Without an intercept column a shift could not be undone, so the column is scaled about zero.
                return (EncodedColumn(name, name, half=max(abs(lower), abs(upper))),)
            case Categorical(name):
                return tuple(EncodedColumn(f"{name}[{level}]", name) for level in column.levels[1:])
            case Boolean(name):
                return (EncodedColumn(name, name),)

    @property
    def encoded_names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.encoded)

    @property
    def effective_row_bound(self) -> float:
        """The bound in force: ``row_bound``, or the largest norm the columns allow where that is smaller."""
        most = _sqrt_up(len(self.columns) + self.intercept)  # each column adds at most 1 to the squared norm
        return most if self.row_bound is None else min(self.row_bound, most)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """The schema in a TOML file."""
        return cls.from_dict(schema_file.read(Path(path)))

    @classmethod
    def from_dict(cls, fields: object) -> Schema:
        """The schema in plain dicts and lists, as TOML and JSON give them; unknown keys are errors."""
        top, columns = schema_file.checked_fields(fields)
        return cls(columns=tuple(columns), **top)

    def to_dict(self) -> dict:
        """Plain dicts and lists that ``from_dict`` reads back as an equal schema."""
        return schema_file.plain_fields(self)


def _neighbours(value: object) -> Neighbours:
    try:
        return Neighbours(value)
    except ValueError:
        pass
    raise SchemaError(f'neighbours is {value!r} and must be "replace" or "add-remove".')


def _sqrt_up(square: int) -> float:
    """The smallest float whose square is at least ``square``."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)
