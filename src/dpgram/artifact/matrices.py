"""A matrix as a release file holds it: rows of numbers; where columns are many, whole numbers in a power of two of their row.

Noise is published on a grid and maps are fixed-point, so eight digits say such a number exactly; a decimal fraction takes seventeen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from dpgram.terms.noise import MANY_COLUMNS

Array = np.ndarray

DIGITS = 53  # binary, of a float
MOST_EXPONENT = 1100  # beyond it no float lies


class Packed(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Row i of the matrix is rows[i] times 2^exponents[i]. Rows of a symmetric matrix end at the diagonal."""

    exponents: list[int]
    rows: list[list[float]]


InFile = list[list[float]] | Packed
"""Either form; a file of few columns has the first."""


def stored(matrix: Array) -> Any:
    """The matrix as a file holds it: packed where columns are many."""
    return packed(matrix) if len(matrix) > MANY_COLUMNS else matrix.tolist()


def packed(matrix: Array) -> dict[str, list]:
    """The fields of ``Packed`` for this matrix. Every number comes back as it is, but for the sign of a zero."""
    symmetric = np.array_equal(matrix, matrix.T)
    rows = [row[: place + 1] if symmetric else row for place, row in enumerate(matrix)]
    exponents = [_common_exponent(row) for row in rows]
    return {"exponents": [e or 0 for e in exponents], "rows": [_in_units(*each) for each in zip(rows, exponents, strict=True)]}


def _in_units(row: Array, exponent: int | None) -> list[float] | list[int]:
    """The row as whole numbers of 2^exponent; as it is where there is none."""
    return row.tolist() if exponent is None else np.ldexp(row, -exponent).astype(np.int64).tolist()


def _common_exponent(row: Array) -> int | None:
    """The largest e for which every number is a multiple of 2^e; None where a multiple has more digits than a float."""
    fractions, exponents = np.frexp(row[row != 0])
    if not len(fractions):
        return 0
    digits = np.ldexp(fractions, DIGITS).astype(np.int64)
    last = np.frexp((digits & -digits).astype(float))[1] - 1  # the place of the last digit that is one
    lowest = int((exponents - DIGITS + last).min())
    return lowest if int(exponents.max()) - lowest <= DIGITS else None


def unpacked(read: InFile, dim: int) -> Array:
    """The matrix of ``dim`` columns that a file holds. Raises ValueError, with what was found and what is needed, where it holds none."""
    exponents, rows = (read.exponents, read.rows) if isinstance(read, Packed) else (None, read)
    widths = [len(row) for row in rows]
    lower = exponents is not None and widths == list(range(1, dim + 1)) and dim > 1
    if not lower and widths != [dim] * dim:
        shape = f"{len(rows)} rows of {'/'.join(str(w) for w in sorted(set(widths))) or 'no'} numbers"
        raise ValueError(f"has {shape}, but {dim} columns need a matrix of {dim} by {dim}")
    matrix = np.zeros((dim, dim))
    matrix[np.tri(dim, dtype=bool) if lower else ...] = _flat(rows) if lower else _flat(rows).reshape(dim, dim)
    if exponents is not None:
        with np.errstate(over="ignore"):  # seen below
            matrix = np.ldexp(matrix, _checked(exponents, dim)[:, None])
    if not np.isfinite(matrix).all():
        raise ValueError("contains a number that is not finite")
    return matrix + np.tril(matrix, -1).T if lower else matrix


def _flat(rows: Sequence[Sequence[float]]) -> Array:
    return np.fromiter(chain.from_iterable(rows), float)


def _checked(exponents: list[int], dim: int) -> Array:
    if len(exponents) != dim or not all(-MOST_EXPONENT <= exponent <= MOST_EXPONENT for exponent in exponents):
        raise ValueError(
            f"has {len(exponents)} exponents, but needs {dim} between -{MOST_EXPONENT} and {MOST_EXPONENT}, one for each row"
        )
    return np.array(exponents, dtype=np.int32)
