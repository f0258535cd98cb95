"""Products of two declared columns, whole categories included: what an analyst calls interactions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpgram.errors import SchemaError
from dpgram.terms.columns import Categorical, Column, Date, Numeric, bounds, check_name, set_fields
from dpgram.terms.derivation import Array, Cells, Columns, Made, declared, number_made

MOST_LEVELS = 4096  # as many as a schema can have encoded columns


@dataclass(frozen=True)
class Product:
    """The product of two declared columns: numbers, dates, truth values, single levels (``carrier[AA]``) or categories.

    A category stands for its levels but the first: one column each, named like ``name[AA]``, for two categories one per
    pair, ``name[AA:JFK]``. ``missing`` is for a product of two numbers: "midpoint" of its bounds (the default) or a number
    within them. Where a factor is a level or a truth value, a missing cell becomes 0."""

    name: str
    of: tuple[str, str]
    missing: float | str | None = None
    kind: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        check_name(self.name)
        names = () if isinstance(self.of, str) or not isinstance(self.of, Iterable) else tuple(self.of)
        if len(names) != 2 or not all(isinstance(n, str) for n in names):
            raise SchemaError(
                f"derived column {self.name!r}: of is {self.of!r} and must name two columns, such as ['age', 'sex']."
            )
        set_fields(self, of=names)

    def parents(self, columns: Columns) -> tuple[Column, ...]:
        return tuple(column for column, _ in self._factors(columns))

    def _factors(self, columns: Columns) -> list[tuple[Column, str | None]]:
        """Each factor's column, and the level where only one is meant."""
        factors = [_column_or_level(self, columns, text) for text in self.of]
        if factors[0][0] == factors[1][0]:
            instead = "use a power" if isinstance(factors[0][0], Numeric | Date) else "it would say nothing new"
            raise SchemaError(f"derived column {self.name!r}: both factors come from column {factors[0][0].name!r}: {instead}.")
        return factors

    def made(self, columns: Columns) -> Made:
        factors = self._factors(columns)
        corners = [a * b for a in _ends(factors[0][0]) for b in _ends(factors[1][0])]
        lower, upper = min(corners), max(corners)  # rounding is monotone: products of cells, rounded, lie within
        if all(isinstance(column, Numeric | Date) for column, _ in factors):
            return number_made(self, lower, upper, self.missing)
        if self.missing is not None:
            raise SchemaError(
                f"derived column {self.name!r}: missing is {self.missing!r} and must be left out, because a factor is a level or "
                f"a truth value: a missing cell becomes 0."
            )
        levels = [c.levels[1:] for c, level in factors if isinstance(c, Categorical) and level is None]
        if math.prod(len(some) for some in levels) > MOST_LEVELS:
            raise SchemaError(f"derived column {self.name!r} would make more than {MOST_LEVELS} columns: use single levels.")
        names = [""]
        for some in levels:
            names = [f"{before}:{level}" if before else level for before in names for level in some]
        named = tuple(f"{self.name}[{levels}]" if levels else self.name for levels in names)
        return Made(named, lower, upper, (0.0,) * len(named), is_number=False)

    def compute(self, columns: Columns, cells: Cells) -> Array:
        first, second = (_factor_values(column, level, cells[column.name]) for column, level in self._factors(columns))
        pairs = first[:, None] * second[None, :]  # NaN times zero is NaN: what is missing stays so
        return pairs.reshape(len(first) * len(second), first.shape[1])


def _column_or_level(derived: Product, columns: Columns, text: str) -> tuple[Column, str | None]:
    if text not in columns:
        for column in columns.values():
            if isinstance(column, Categorical):
                for level in column.levels:
                    if text == f"{column.name}[{level}]":
                        return column, level
    return declared(derived, columns, text), None


def _ends(column: Column) -> tuple[float, float]:
    """The bounds of a factor: those of a number, or 0 and 1."""
    return bounds(column) if isinstance(column, Numeric | Date) else (0.0, 1.0)


def _factor_values(column: Column, level: str | None, cells: Array) -> Array:
    """(1, rows) of a number, a truth value or a level's indicator; (levels but the first, rows) of a category."""
    if not isinstance(column, Categorical):
        return cells[None]
    places = np.arange(1, len(column.levels)) if level is None else np.array([column.levels.index(level)])
    return np.where(np.isnan(cells), np.nan, cells == places[:, None])
