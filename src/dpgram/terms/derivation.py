"""What a derived column is: computed from declared ones, row by row, with bounds that follow from theirs.

Derived columns are declared before the release, like everything else. They are computed from the parents' clamped cells, so
that nothing about them is read from the data, and a derived cell is missing when a parent's cell is. ``encoding/derive.py``
computes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpgram.terms.columns import Column, Columns, Date, Declaration, Made, Numeric


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
