"""What each released column means, and which combination of released columns has the meaning that a formula asks for.

A release holds columns under names that their custodian chose. A formula says what it wants to be computed. Both are polynomials of a row's
values, so the answer is linear algebra: a combination of the released columns that equals what is wanted in every row, or none."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpgram.regression.algebra import (
    ABSENT,
    COLUMN,
    LEVEL,
    LOG,
    LOG1P,
    NUMBER,
    ONE,
    PART,
    STEP,
    TRUTH,
    Atom,
    Monomial,
    Polynomial,
    exact,
)
from dpgram.terms.columns import DROP_ROW, INDICATOR, Boolean, Categorical, Column, Columns, Date, Numeric, bounds
from dpgram.terms.dates import part_of_days, part_range
from dpgram.terms.derived import DatePart, Derived, Interval, Log, Log1p, Power, Product
from dpgram.terms.elementary import log, log1p, power
from dpgram.terms.schema import EncodedColumn, Schema

Weights = dict[int, Fraction]  # of released columns in their own units, by place


def number(name: str) -> Polynomial:
    """A numeric or date column."""
    return Polynomial.of(Atom(NUMBER, name))


def level(category: Categorical, place: int) -> Polynomial:
    """The indicator of a level. The reference is where none of the others is."""
    if place:
        return Polynomial.of(Atom(LEVEL, category.name, place))
    return ONE - Polynomial.total(level(category, other) for other in range(1, len(category.levels)))


def step(column: Numeric | Date, threshold: float) -> Polynomial:
    """The indicator of ``x >= threshold``, for x within the column's bounds."""
    lower, upper = bounds(column)
    if threshold <= lower:
        return ONE
    return Polynomial.of(Atom(STEP, column.name, float(threshold))) if threshold <= upper else Polynomial({})


def part_is(column: Date, part: str, value: int) -> Polynomial:
    """The indicator of one value of a part of a date. The smallest value is where none of the others is."""
    low, high = part_range(part, *bounds(column))
    if not low <= value <= high:
        return Polynomial({})
    if value > low:
        return Polynomial.of(Atom(PART, column.name, (part, value)))
    return ONE - Polynomial.total(part_is(column, part, other) for other in range(low + 1, high + 1))


def part_number(column: Date, part: str) -> Polynomial:
    """A part of a date as a number: a sum of its values, each times its indicator."""
    low, high = part_range(part, *bounds(column))
    above = (Polynomial.of(Atom(PART, column.name, (part, v))).times(v - low) for v in range(low + 1, high + 1))
    return Polynomial.total([Polynomial.constant(low), *above])


class Released:
    """The columns of a release by their meaning."""

    def __init__(self, schema: Schema):
        self.schema = schema
        self.meanings: list[Polynomial] = []  # of the encoded columns
        self.differing: dict[str, tuple[Polynomial, str]] = {}  # those that nearly have a meaning, by name, and what they lack
        if schema.intercept:
            self.meanings.append(ONE)
        for column in schema.columns:
            self.meanings += _declared(column)
        for derived in schema.derived:
            self.meanings += self._derived(derived)
        self._pivots: dict[Monomial, tuple[Polynomial, Weights]] = {}
        for place in sorted(range(len(self.meanings)), key=lambda j: len(self.meanings[j].weights) > 1):
            self._add(place)

    def _derived(self, derived: Derived) -> Iterable[Polynomial]:
        """The meanings of a derived column's encoded columns.

        Where a parent's cell is missing and its row counts, the derived cell is a constant. The meaning is right only if the parent, filled
        in as declared, gives the same; or where the parent marks its missing cells, so that the difference is a column too."""
        schema = self.schema
        encoded = [schema.encoded[j] for j in schema.places[derived.name]]
        for place, meaning in enumerate(_computed(derived, schema.by_name)):
            e = encoded[place]
            opaque = Polynomial.of(Atom(COLUMN, e.name))
            if meaning is None:
                yield opaque
                continue
            fill = _within(e, schema.made[derived.name].fill[place])
            for parent in derived.parents(schema.by_name):
                if parent.missing == DROP_ROW or (isinstance(parent, Categorical) and parent.missing == "level"):
                    continue  # its cell is there in every row that counts
                if isinstance(derived, Product):
                    alike = fill == 0 and self._factor_where_missing(derived, parent) == 0
                else:
                    filled = _values(derived, schema.by_name, self._filled(parent))[place]
                    alike = fill == _within(e, filled)
                    if not alike and parent.missing == INDICATOR:
                        meaning += Polynomial.of(Atom(ABSENT, parent.name)).times(exact(fill) - exact(filled))
                        alike = True
                if not alike:
                    self.differing[e.name] = meaning, parent.name
                    meaning = opaque
                    break
            yield meaning

    def _filled(self, parent: Column) -> float:
        """What stands for a missing cell of a number or a date."""
        assert isinstance(parent, Numeric | Date)
        encoded = self.schema.encoded[self.schema.places[parent.name][0]]
        return encoded.centre if parent.missing == INDICATOR else _within(encoded, parent.fill)

    def _factor_where_missing(self, derived: Product, parent: Column) -> float:
        """The value of the factor that ``parent`` is, where its cell is missing."""
        match parent:
            case Categorical():
                return float(any(column is parent and 0 in places for column, places in derived.factors(self.schema.by_name)))
            case Boolean():
                return parent.fill
            case _:
                return self._filled(parent)

    def _add(self, place: int) -> None:
        """Gaussian elimination, one released column at a time."""
        left, weights = self._reduced(self.meanings[place], {place: Fraction(1)}, sign=-1)
        if left.weights:
            pivot = max(left.weights, key=lambda monomial: sum(power for _, power in monomial))
            scale = 1 / left.weights[pivot]
            self._pivots[pivot] = left.times(scale), {j: w * scale for j, w in weights.items()}

    def _reduced(self, wanted: Polynomial, weights: Weights, sign: int) -> tuple[Polynomial, Weights]:
        """``wanted`` less released columns until none of their pivots is left, and ``weights`` plus ``sign`` times what was used.

        A pivot's row was reduced by the rows before it, so that each step leads to later rows only, and to an end."""
        left, todo = dict(wanted.weights), list(wanted.weights)
        while todo:
            monomial = todo.pop()
            times = left.get(monomial)
            if not times or monomial not in self._pivots:
                continue
            row, own = self._pivots[monomial]
            for other, weight in row.weights.items():
                left[other] = left.get(other, Fraction(0)) - times * weight
                todo.append(other)
            for place, weight in own.items():
                weights[place] = weights.get(place, Fraction(0)) + sign * times * weight
        return Polynomial(left), {place: weight for place, weight in weights.items() if weight}

    def combination(self, wanted: Polynomial) -> tuple[Weights, Polynomial]:
        """Weights of the released columns, in their own units, and what no released column has."""
        left, weights = self._reduced(wanted, {}, sign=1)
        return weights, left


@lru_cache(maxsize=4)
def released(schema: Schema) -> Released:
    """The columns of a release under ``schema``. The last few are kept, because models are often fitted one after another."""
    return Released(schema)


def _declared(column: Column) -> list[Polynomial]:
    match column:
        case Categorical():
            return [level(column, place) for place in range(1, len(column.levels))]
        case Boolean():
            return [Polynomial.of(Atom(TRUTH, column.name))]
        case _:
            absent = [Polynomial.of(Atom(ABSENT, column.name))] if column.missing == INDICATOR else []
            return [number(column.name), *absent]


def _computed(derived: Derived, columns: Columns) -> list[Polynomial | None]:
    """The encoded columns of a derived column, computed from cells that are there; None for the indicator of a missing one."""
    match derived:
        case Product():
            first, second = ([*_factor(column, places)] for column, places in derived.factors(columns))
            return [a * b for a in first for b in second]
        case Power():
            return [number(derived.of).power(derived.exponent)]
        case Log():
            return [Polynomial.of(Atom(LOG, derived.of))]
        case Log1p():
            return [Polynomial.of(Atom(LOG1P, derived.of))]
        case Interval():
            (parent,) = derived.parents(columns)
            low, high = derived.ends(columns)
            return [step(parent, low) - step(parent, high)]
        case DatePart():
            (date,) = derived.parents(columns)
            if not derived.levels:
                return [part_number(date, derived.part)]
            return [part_is(date, derived.part, int(v)) if np.isfinite(v) else None for v in derived.wanted(columns)]
    raise AssertionError("a schema has checked its derived columns")


def _factor(column: Column, places: Iterable[int]) -> Iterable[Polynomial]:
    return [level(column, place) for place in places] if isinstance(column, Categorical) else _declared(column)[:1]


def _values(derived: Derived, columns: Columns, x: float) -> list[float]:
    """The encoded columns of a derived column of one number or date, where that is ``x``."""
    match derived:
        case Power():
            return [float(power(x, derived.exponent))]
        case Log():
            return [float(log(np.array([x]))[0])]
        case Log1p():
            return [float(log1p(np.array([x]))[0])]
        case Interval():
            low, high = derived.ends(columns)
            return [float(low <= x < high)]
        case DatePart():
            value = part_of_days(derived.part, x)
            return [float(value == wanted) for wanted in derived.wanted(columns)] if derived.levels else [float(value)]
    raise AssertionError("a product has two parents")


def _within(encoded: EncodedColumn, value: float) -> float:
    """A value as the encoded column holds it: a learnt interval may be narrower than the bounds."""
    low, high = encoded.centre - encoded.half, encoded.centre + encoded.half
    return value if low <= value <= high else low if value < low else high
