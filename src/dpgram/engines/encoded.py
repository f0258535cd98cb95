"""The rows of a table as numbers, for its custodian's own use: unprotected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpgram.engines.local import LocalPass
from dpgram.sources.open import open_source
from dpgram.terms.schema import Schema

Array = np.ndarray


def encoded_rows(table: object, schema: Schema) -> Array:
    """The rows of ``table`` in scaled units, (rows, encoded columns): clamped and filled as a release does it, but NOT protected.

    For the custodian's own use of a fitted model on rows, such as ``predict`` of an estimator. A row that does not count for a missing cell
    is NaN. Ids and weights are not looked at."""
    plain = replace(schema, unit_id=None, rows_per_unit=None, weight=None, largest_weight=None)
    return LocalPass(open_source(table), plain).encoded()


def counting_rows(table: object, schema: Schema) -> Array:
    """Those rows of ``encoded_rows`` that count."""
    rows = encoded_rows(table, schema)
    return rows[~np.isnan(rows[:, 0])]
