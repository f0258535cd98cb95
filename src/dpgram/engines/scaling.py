"""What cells become on a device, column by column: the declared numbers as arrays, laid out as kernels read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpgram.rows.clip import GRID
from dpgram.terms.columns import DROP_ROW, INDICATOR, Boolean, Numeric
from dpgram.terms.schema import Schema

Array = np.ndarray

SAFE_HALVES = (2.0**-400, 2.0**400)  # far from overflow and underflow, where a fast division is exact


@dataclass(frozen=True)
class Scaling:
    """What is declared about each encoded column, as arrays: what a cell becomes.

    A column whose place is -1 has no cells: its bounds meet in the one value that it has."""

    lower: Array
    upper: Array
    fill: Array
    centre: Array
    half: Array
    truth: Array  # of a Boolean column, whose cells are 0, 1 or missing
    places: tuple[int, ...]  # which column of the cells it is
    dropping: tuple[int, ...] = ()  # columns of the cells where a row with a missing one does not count
    dropping_truth: tuple[int, ...] = ()  # those of them that hold truth values

    @classmethod
    def of_schema(cls, schema: Schema, places: dict[str, int]) -> Scaling | None:
        """That of a schema of numbers and truth values alone; None if it holds anything else, or a column for missing cells."""
        if schema.derived or not all(isinstance(c, Numeric | Boolean) and c.missing != INDICATOR for c in schema.columns):
            return None
        declared: list[tuple] = [(1.0, 1.0, 1.0, 0.0, 1.0, False, -1)] if schema.intercept else []
        for encoded, column in zip(schema.encoded[len(declared) :], schema.columns, strict=True):
            made, (centre, half) = schema.made[column.name], (encoded.centre, encoded.half)
            lower, upper = max(made.lower, _end(centre, half, -math.inf)), min(made.upper, _end(centre, half, math.inf))
            (fill,) = made.fill
            scale = (lower, upper, min(max(fill, lower), upper), centre, half)
            declared.append((*scale, isinstance(column, Boolean), places[column.name]))
        dropping = [column for column in schema.columns if column.missing == DROP_ROW]
        truth = [column for column in dropping if isinstance(column, Boolean)]
        return cls._of(declared, *(tuple(places[column.name] for column in some) for some in (dropping, truth)))

    @classmethod
    def of_encoded(cls, dim: int) -> Scaling:
        """That of cells which are encoded already."""
        return cls._of([(-1.0, 1.0, 0.0, 0.0, 1.0, False, place) for place in range(dim)])

    @classmethod
    def _of(cls, rows: Sequence[tuple], *dropping: tuple[int, ...]) -> Scaling:
        lower, upper, fill, centre, half, truth, places = (np.array(field) for field in zip(*rows, strict=True))
        return cls(lower, upper, fill, centre, half, truth, tuple(places.tolist()), *dropping)

    @property
    def dim(self) -> int:
        return len(self.places)

    @property
    def padded(self) -> int:
        """The next multiple of 8 encoded columns."""
        return -(-self.dim // 8) * 8

    @cached_property
    def divides_fast(self) -> bool:
        return bool(np.all((self.half >= SAFE_HALVES[0]) & (self.half <= SAFE_HALVES[1])))

    @cached_property
    def within_grid(self) -> bool:
        """Whether the bounds reach less than one grid point beyond [-1, 1]; scaling is monotone, so every cell does then."""
        ends = np.array([(bound - self.centre) / self.half * GRID for bound in (self.lower, self.upper)])
        return bool(np.all(np.abs(ends) < GRID + 1))

    @cached_property
    def fields(self) -> Array:
        """What kernels read of each column, (fields, padded columns): bounds, fill, centre, step, its reciprocal, truth."""
        step = self.half / GRID if self.divides_fast else self.half
        fields = np.zeros((8, self.padded))
        fields[4:6] = 1.0  # columns of padding divide by one
        fields[:, : self.dim] = [self.lower, self.upper, self.fill, self.centre, step, *_reciprocal(step), self.truth]
        return fields

    @cached_property
    def declared(self) -> Array:
        """Places and fields as 64-bit words, for one copy to the device."""
        places = np.full(self.padded, -1, dtype=np.int64)
        places[: self.dim] = self.places
        return np.concatenate([places, self.fields.reshape(-1).view(np.int64)])


def _end(centre: float, half: float, towards: float) -> float:
    """The first number, from the centre, that is encoded as one or beyond: where bounds reach further, as those of a column whose scale was
    learnt may, a cell that is clamped to it has the grid point of all further ones."""
    end = centre + math.copysign(half, towards)
    while abs(end - centre) / half < 1:
        end = math.nextafter(end, towards)
    return end


def _reciprocal(step: Array) -> tuple[Array, Array]:
    """1 / step to about 106 bits, as the sum of two numbers; the first is the correctly rounded reciprocal."""
    part, power = np.frexp(step)  # within [1/2, 1), so that nothing overflows
    inverse = 1 / part
    (a, b), (c, d) = _halves(part), _halves(inverse)
    product = part * inverse
    error = b * d - (((product - a * c) - b * c) - a * d)  # Dekker: part * inverse is product + error, exactly
    rest = ((1 - product) - error) / part  # the remainder of a division is exact
    return np.ldexp(inverse, -power), np.ldexp(rest, -power)


def _halves(values: Array) -> tuple[Array, Array]:
    """Two numbers of at most 26 bits that add up to each of ``values`` (Veltkamp)."""
    wide = (2**27 + 1) * values
    upper = wide - (wide - values)
    return upper, values - upper
