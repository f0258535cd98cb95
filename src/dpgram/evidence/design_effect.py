"""The design effect: by what the sampling variance is multiplied where rows have weights or share a unit.

Row r of unit u counts with a share s_r = v_r c_u: v_r is its weight over the largest, and c_u = min(1, m / n_u) for a unit of n_u rows.
With errors e_r and A the sum of s_r x_r x_r', coefficients vary by A^-1 V A^-1, where V is the sum over units of
(sum_r s_r x_r e_r)(...)'. By Cauchy and Schwarz a unit adds at most n_u c_u <= m times the sum of s_r v_r x_r x_r' e_r^2, whatever its
errors have in common. If weights are unrelated to x and e, all units together add at most m q sigma^2 A, with

    q = sum_r s_r v_r / sum_r s_r,

the mean of v over rows as they count. So m q is the worst case. It is reached where the rows of a unit are all alike.

Weights that have to do with x are the other worst case: those of a group that is hard to reach are larger, and the variance of its
coefficient follows from its own q. So where a declared group surely has much larger weights, q is that of this group."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from dpgram.errors import ModelError
from dpgram.terms.columns import Boolean, Categorical, Column, Numeric
from dpgram.terms.derived import DatePart, Derived, Interval, Product
from dpgram.terms.schema import Schema

if TYPE_CHECKING:
    from dpgram.evidence.evidence import Evidence

Array = np.ndarray

MUCH = 1.1  # times the q of all rows: intervals that are 5 % too narrow for a group are let be
LEAST, MOST = 1e-9, 1e9  # of a design effect that is given
SURELY = 3.0  # standard deviations of the noise


def worst_design_effect(evidence: Evidence) -> float:
    """m q: the largest design effect that units and weights of this release can have."""
    return evidence.schema.most_rows * _mean_weight(evidence)


def _mean_weight(evidence: Evidence) -> float:
    """q. The release says it if the weights are a declared column too; it is then a mean, and one standard error is added. Else it is 1."""
    schema = evidence.schema
    column = schema.by_name.get(schema.weight or "")
    largest = schema.largest_weight
    if largest is None or not schema.intercept or not isinstance(column, Numeric):
        return 1.0
    if column.upper < largest:  # its larger cells are clamped, so that its mean is too small
        return 1.0
    place = schema.places[column.name][0]
    mean, sd = _mean_within(evidence, place, np.eye(len(evidence.gram))[0])
    q = every = (mean + sd) / largest
    for group in _groups(evidence):
        mean, sd = _mean_within(evidence, place, group)
        if (mean - SURELY * sd) / largest > MUCH * every:
            q = max(q, mean / largest)
    smallest = max(column.lower / largest, 1 / max(evidence.rows, 1.0))  # no fewer rows than one have counted
    return float(min(max(q, smallest), 1.0))


def _mean_within(evidence: Evidence, place: int, group: Array) -> tuple[float, float]:
    """The mean weight in the rows for which the combination ``group`` of columns is 1, not 0, and the standard deviation of its noise."""
    encoded, gram, unit = evidence.schema.encoded[place], evidence.whole, np.eye(len(evidence.gram))
    count = max(float(group @ gram[:, 0]), 1.0)
    middle = group @ gram[:, place] / count
    products, excess, forms = evidence.noise_law(np.stack([group, unit[place] - middle * unit[0]]))
    variance = products[0, 0] * products[1, 1] + products[0, 1] ** 2 + excess * np.sum(forms[0] ** 2 * forms[1] ** 2)
    return encoded.centre + encoded.half * middle, encoded.half * math.sqrt(max(variance, 0.0)) / count


def _groups(evidence: Evidence) -> Iterator[Array]:
    """Combinations of columns that are 1 in the rows of a group, and 0 in the others.

    Groups are the rows of a level, a truth value or an interval, those with a missing cell where a column tells them, those of two
    categories at once where a product does, and in each case all other rows."""
    schema, unit = evidence.schema, np.eye(len(evidence.gram))
    for place, encoded in enumerate(schema.encoded):
        if encoded.absent:
            yield from (unit[place], unit[0] - unit[place])
    for one in (*schema.columns, *schema.derived):
        if _tells_groups(one, schema):
            own = unit[list(schema.places[one.name])]
            yield from (*own, unit[0] - own.sum(axis=0))
            if isinstance(one, Product):
                yield from _beside(one, own, schema, unit)


def _tells_groups(one: Column | Derived, schema: Schema) -> bool:
    """Whether all columns that this one makes are 0 or 1."""
    if isinstance(one, Product):
        return all(isinstance(column, Categorical | Boolean) for column in one.parents(schema.by_name))
    return isinstance(one, Categorical | Boolean | Interval) or (isinstance(one, DatePart) and one.levels)


def _beside(one: Product, own: Array, schema: Schema, unit: Array) -> Iterator[Array]:
    """The rows that are in a group of one factor, but in none of the other's."""
    first, second = (_indicators(column, places, schema, unit) for column, places in one.factors(schema.by_name))
    both = own.reshape(len(first), len(second), -1)
    yield from (*(first - both.sum(axis=1)), *(second - both.sum(axis=0)))


def _indicators(column: Column, places: tuple[int, ...], schema: Schema, unit: Array) -> Array:
    """(levels, d) the rows of these levels of a category, or of a truth value."""
    own = unit[list(schema.places[column.name])]
    return np.stack([own[place - 1] if place else unit[0] - own.sum(axis=0) for place in places]) if places else own


def check_design_effect(given: object, rows: float | None) -> float:
    """The design effect that an analyst gave. It is as large as the number of ``rows``, where that is public, if all of them are alike."""
    most, why = (rows, ", the number of rows") if rows is not None and rows < MOST else (MOST, "")
    if isinstance(given, bool) or not isinstance(given, Real) or not LEAST <= float(given) <= most:
        raise ModelError(
            f"design_effect is {given!r} and must be a positive number from {LEAST:g} to {most:,.0f}{why}, such as 1 for independent rows. "
            f"Leave it out to use the worst case that the units and weights of the release allow."
        )
    return float(given)
