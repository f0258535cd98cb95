"""What each row counts as: a share of one, by its weight and by how many rows its unit has.

Statement: let a unit have n rows, of which m count in full, and let a row's weight be the part v of the largest weight. The factor f of
a row is one where v = 1 and n <= m, zero where id or weight is missing, and else less than sqrt(v min(1, m / n)), in floats too: quotient,
product, root and the last product each round up by at most 2^-53, and 1 - 2^-50 takes off more than all of them. So the shares f^2 of a
unit's rows add up to at most m. The factor depends on the rows of that unit alone.
Proof: proofs/units.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpgram.encoding.encode import Batch, cells_of
from dpgram.errors import MechanismError
from dpgram.rows.clip import JUST_BELOW_ONE
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema

Array = np.ndarray
FEW = 1024  # rows of a unit, as most have
RowsOfUnit = Callable[[Batch], Array]  # of each row of a batch: how many rows its unit has in the whole table; 0 without an id


class Shares:
    """Tells the factors of rows. Where units are declared, their rows must have been counted before: ``rows_of_unit`` says so."""

    def __init__(self, schema: Schema, rows_of_unit: RowsOfUnit | None = None):
        self._most = schema.rows_per_unit
        self._weight, self._largest = schema.weight, schema.largest_weight
        self._rows_of_unit = rows_of_unit if schema.unit_id is not None else None
        self._all = schema.unit_id is None and schema.weight is None
        self._counted = schema.unit_id is None or rows_of_unit is not None

    def of(self, batch: Batch) -> Array | None:
        """A factor in [0, 1] for each row; None where all are one. A batch that was decoded before knows its own."""
        if getattr(batch, "decoded", False):
            return batch.factors  # type: ignore[attr-defined]
        if self._all:
            return None
        if not self._counted:
            raise MechanismError("rows of units were not counted before they were summed: this is a bug, report it.")
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            if self._rows_of_unit is None:
                return _factors(self._by_weight(batch))
            rows = self._rows_of_unit(batch)
            if self._weight is None and rows.max(initial=0) < FEW:
                return _factors(self._by_unit(np.arange(FEW)))[rows]  # worked out once for each number
            return _factors(self._by_weight(batch) * self._by_unit(rows))

    def _by_weight(self, batch: Batch) -> Array | float:
        if self._weight is None or self._largest is None:
            return 1.0
        cells = cells_of(Numeric(self._weight, 0.0, 1.0), batch.column(self._weight))
        return np.clip(np.where(np.isnan(cells), 0.0, cells), 0.0, self._largest) / self._largest

    def _by_unit(self, rows: Array) -> Array:
        assert self._most is not None
        return np.where(rows > self._most, self._most / np.maximum(rows, 1), (rows > 0).astype(np.float64))


def _factors(share: Array | float) -> Array:
    return np.where(share < 1.0, np.sqrt(share) * JUST_BELOW_ONE, 1.0)


def in_grid_units(factors: Array, bits: int) -> Array:
    """The shares f^2 in units of 2^-bits, rounded down."""
    return np.floor(np.ldexp(factors * factors, bits)).astype(np.int64)
