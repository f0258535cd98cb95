"""What a forecast assumes about a table that nobody has looked at: stated numbers, and rows drawn from them.

Rows come from a Gaussian copula. The features' latent normals share one factor; the target's latent is the normalised sum of the
features', and noise. A latent normal becomes a cell by what the schema declares: a number lies about the middle of its bounds, a
truth value is true in half of the rows, every category is as frequent as any other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
from scipy.special import ndtr

from dpgram.errors import PlanError
from dpgram.evidence.design_effect import LEAST, MOST
from dpgram.terms.columns import INDICATOR, MISSING, OTHER, Boolean, Categorical, Column, Date, Numeric, bounds
from dpgram.terms.dates import DAY, days_of_seconds
from dpgram.terms.schema import INTERCEPT, Schema

Array = np.ndarray
ROWS = 16_384  # of an assumed table: their moments are within a few per cent of the law's
MISSING_SHARE = 0.1  # of the cells of a column whose missing ones have an indicator; all other cells are there


@dataclass(frozen=True)
class Assumptions:
    """Public guesses about the rows, which a plan uses instead of data.

    Take them from experience or from published tables, never from the private table.

    Parameters
    ----------
    spread : float
        Standard deviation of a column, divided by half the width of its bounds.
    correlation : float
        Correlation of any two features.
    signal : float
        Share of the target's variance that the features explain.
    spreads : mapping of str to float
        The spread of single columns, by name.
    counted : float
        How much a row counts on average, 1 if in full. Rows with a missing cell may count as nothing, rows with a weight as the weight
        divided by ``largest_weight``, and rows of a unit that has more than ``rows_per_unit`` of them as less than one.
    design_effect : float, optional
        By what the variance from the sampling of rows is multiplied, because rows of one unit resemble each other. By default
        ``rows_per_unit``, the worst case. It is 1 if all rows are independent.

    Raises
    ------
    PlanError
        If a number is out of range. Spreads and ``counted`` are above 0 and at most 1, ``design_effect`` is positive, and 1e9 at most. The
        others are at least 0 and below 1.

    Examples
    --------
    >>> from dpgram import Assumptions
    >>> Assumptions(signal=0.3, spreads={"income": 0.1}).to_dict()
    {'spread': 0.25, 'spreads': {'income': 0.1}, 'correlation': 0.2, 'signal': 0.3}
    """

    spread: float = 0.25
    correlation: float = 0.2
    signal: float = 0.5
    spreads: Mapping[str, float] = field(default_factory=dict)
    counted: float = 1.0
    design_effect: float | None = None

    def __post_init__(self) -> None:
        for name, value in [("spread", self.spread), *((f"spread of {column!r}", v) for column, v in self.spreads.items())]:
            if not 0 < _number(name, value) <= 1:
                needed = "be above 0 and at most 1. It is the standard deviation divided by half the width of the bounds"
                raise PlanError(f"the {name} is {value:g} and must {needed}.")
        for name, value in (("correlation", self.correlation), ("signal", self.signal)):
            if not 0 <= _number(name, value) < 1:
                raise PlanError(f"the {name} is {value:g} and must be at least 0 and below 1.")
        if not 0 < _number("counted share", self.counted) <= 1:
            raise PlanError(
                f"the counted share is {self.counted:g} and must be above 0 and at most 1. It is 1 if all rows count in full."
            )
        if self.design_effect is not None and not LEAST <= _number("design effect", self.design_effect) <= MOST:
            raise PlanError(
                f"the design effect is {self.design_effect:g} and must be a positive number from {LEAST:g} to {MOST:,.0f}. It is 1 if "
                f"all rows are independent."
            )

    def to_dict(self) -> dict:
        """Return the assumptions as plain data.

        Returns
        -------
        dict
            The numbers by name. ``spreads``, ``counted`` and ``design_effect`` are left out if they were not given.
        """
        told: dict = {"spread": self.spread}
        if self.spreads:
            told["spreads"] = dict(self.spreads)
        told |= {"correlation": self.correlation, "signal": self.signal}
        if self.counted != 1:
            told["counted"] = self.counted
        return told if self.design_effect is None else {**told, "design_effect": self.design_effect}

    @property
    def in_words(self) -> str:
        """The assumptions in one sentence."""
        own = "".join(f", {value:g} for {name}" for name, value in self.spreads.items())
        counted = f"; a row counts as {self.counted:.0%} of one on average" if self.counted != 1 else ""
        alike = f"; the design effect is {self.design_effect:g}" if self.design_effect is not None else ""
        return (
            f"columns are centred in their bounds, with a standard deviation of {self.spread:g} times half the width of the bounds{own}; "
            f"any two features have correlation {self.correlation:g}; the features explain {self.signal:.0%} of the target's variance; "
            f"all categories are equally frequent{counted}{alike}"
        )


def assumed_in_words(schema: Schema, assumptions: Assumptions) -> str:
    """What is assumed of a table under this schema, in one sentence."""
    marked = any(column.missing == INDICATOR for column in schema.columns)
    in_full = assumptions.counted == 1 and (schema.unit_id is not None or schema.weight is not None)
    return (
        assumptions.in_words
        + ("; every row counts in full, whatever its unit and weight" if in_full else "")
        + (f"; {MISSING_SHARE:.0%} of the cells are missing where they have an indicator" if marked else "")
    )


def default_target(schema: Schema) -> str:
    """What a forecast explains when nobody names a target: the first number or date, or else the first encoded column.

    Columns whose missing cells are filled and marked are no targets; their marks are."""
    for column in schema.columns:
        if isinstance(column, Numeric | Date) and column.missing != INDICATOR:
            return column.name
    marked = {column.name for column in schema.columns if isinstance(column, Numeric | Date)}
    return next(name for name in schema.encoded_names if name != INTERCEPT and name not in marked)


def assumed_table(
    schema: Schema, assumptions: Assumptions, target: str, *, rows: int = ROWS, seed: int = 0
) -> dict[str, Array]:
    """A table of the declared columns in their own units, drawn under ``assumptions``; ``target`` is the column to explain."""
    drawn = _assumed_numbers(schema, assumptions, target, rows, seed)
    return {column.name: _cells(column, drawn[column.name]) for column in schema.columns}


def assumed_rows(schema: Schema, assumptions: Assumptions, target: str) -> Array:
    """(rows, encoded columns): a table drawn under ``assumptions``, encoded as a release's rows are."""
    from dpgram.encoding.encode import encoded_numbers  # brings Arrow along, which reading a plan does not need

    return encoded_numbers(schema, _assumed_numbers(schema, assumptions, target, ROWS, seed=0))


def _assumed_numbers(schema: Schema, assumptions: Assumptions, target: str, rows: int, seed: int) -> dict[str, Array]:
    """The table's cells as numbers: days for dates, places among the levels, 0.0 and 1.0 for truth values."""
    for name in assumptions.spreads:
        if not isinstance(schema.by_name.get(name), Numeric | Date):
            numbers = ", ".join(c.name for c in schema.columns if isinstance(c, Numeric | Date)) or "none"
            raise PlanError(f"a spread is given for {name!r}, but the numeric and date columns of the schema are: {numbers}.")
    rng = np.random.default_rng(seed)
    # The declared columns whose cells decide the target; none where the name is unknown, which the design says better.
    explained = sorted(frozenset().union(*(e.sources for e in schema.encoded if target in (e.name, e.column))))
    names = [name for name in schema.names if name not in explained]
    common = rng.standard_normal(rows)
    latent = {
        name: math.sqrt(assumptions.correlation) * common + math.sqrt(1 - assumptions.correlation) * rng.standard_normal(rows)
        for name in names
    }
    sum_variance = len(names) * (1 + (len(names) - 1) * assumptions.correlation)
    signal = sum(latent.values(), np.zeros(rows)) / math.sqrt(max(sum_variance, 1.0))
    share = assumptions.signal if names else 0.0
    for name in explained:
        latent[name] = math.sqrt(share) * signal + math.sqrt(1 - share) * rng.standard_normal(rows)
    drawn = {c.name: _numbers(c, latent[c.name], assumptions.spreads.get(c.name, assumptions.spread)) for c in schema.columns}
    for place, column in enumerate(schema.columns):
        if column.missing == INDICATOR:  # whose own encoded column would be constant else
            drawn[column.name][np.random.default_rng([seed, place]).random(rows) < MISSING_SHARE] = np.nan
    return drawn


def _numbers(column: Column, latent: Array, spread: float) -> Array:
    match column:
        case Numeric() | Date():
            lower, upper = bounds(column)
            middle, half = lower / 2 + upper / 2, upper / 2 - lower / 2
            values = np.clip(middle + half * np.clip(spread * latent, -1.0, 1.0), lower, upper)
            return values if isinstance(column, Numeric) else days_of_seconds(np.rint(values * DAY).astype(np.int64))
        case Boolean():
            return (latent > 0).astype(np.float64)
        case Categorical():
            return np.minimum(np.floor(ndtr(latent) * len(column.levels)), len(column.levels) - 1)


def _cells(column: Column, numbers: Array) -> Array:
    """The numbers as cells of a table that could be released."""
    match column:
        case Numeric():
            return numbers
        case Date():
            seconds = np.where(np.isnan(numbers), 0.0, np.rint(numbers * DAY)).astype("datetime64[s]")
            return np.where(np.isnan(numbers), np.datetime64("NaT"), seconds)
        case Boolean():
            return numbers == 1.0
        case Categorical():
            return np.array(_level_cells(column), dtype=object)[numbers.astype(int)]


def _level_cells(column: Categorical) -> list[object]:
    """A cell for every level, the reference first: one that is not declared for "other", none for "missing"."""
    undeclared: object = max(int(c) for c in column.categories) + 1 if column.matches_numbers else OTHER
    last = {OTHER: undeclared, MISSING: None}
    return [*column.categories, *(last[level] for level in column.levels[len(column.categories) :])]


def _number(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(float(value)):
        return float(value)
    raise PlanError(f"the {name} is {value!r} and must be a finite number.")
