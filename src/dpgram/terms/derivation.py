"""What a derived column is: computed from declared ones, row by row, with bounds that follow from theirs.

Derived columns are declared before the release, like everything else. They are computed from the parents' clamped cells, so
that nothing about them is read from the data, and a derived cell is missing when a parent's cell is. ``encoding/derive.py``
computes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dpgram.terms.columns import Column, Date, Declaration, Numeric

Columns = Mapping[str, Column]  # the declared columns by name


@dataclass(frozen=True)
class Made:
    """What a derived column becomes under a schema, in its own units.

    ``names`` are its encoded columns. Where they are several, at most one is not zero in any row, and none is shifted, so
    that together they add no more to the squared norm of a row than one column does."""

    names: tuple[str, ...]
    lower: float  # bounds of every one of them
    upper: float
    fill: tuple[float, ...]  # what stands in each for a missing cell
    is_number: bool  # False: zero says "not this level" and must stay zero when the column is scaled


@dataclass(frozen=True)
class Derived(Declaration):
    """What every kind of derived column offers. ``columns`` holds the declared columns, never the derived ones."""

    called: ClassVar[str] = "derived column"

    def parents(self, columns: Columns) -> tuple[Column, ...]:
        """The declared columns it is computed from, or a SchemaError where there is no such column of a fitting kind."""
        raise NotImplementedError

    def made(self, columns: Columns) -> Made:
        """What it becomes, or a SchemaError that says why it cannot."""
        raise NotImplementedError

    def declared(self, columns: Columns, name: object) -> Column:
        if not isinstance(name, str) or name not in columns:
            raise self.error(f"{name!r} is no declared column: it can be made from those under [[columns]] only.")
        return columns[name]

    def number_made(self, lower: float, upper: float, missing: float | str | None) -> Made:
        """A column of numbers, under the same rules as a declared one."""
        if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
            raise self.error(
                f"its bounds follow from its parents' and are [{lower:g}, {upper:g}], which double precision does not hold: rescale "
                f"the parents."
            )
        column = Numeric(self.name, lower, upper, "midpoint" if missing is None else missing)
        return Made((self.name,), column.lower, column.upper, (column.fill,), is_number=True)


@dataclass(frozen=True)
class OfNumber(Derived):
    """Computed from one number or date, ``of``."""

    of: str

    def parents(self, columns: Columns) -> tuple[Numeric | Date]:
        column = self.declared(columns, self.of)
        if not isinstance(column, Numeric | Date):
            raise self.error(f"{self.of!r} is {column.kind}, and a number or a date is needed.")
        return (column,)
