"""X and y as named columns, and what is said of each row. Their cells are not looked at: an error that depends on one would reveal it.

scikit-learn's own checks quote arrays and count rows in their messages, and refuse NaN. So names and the number of columns,
which are public, are checked by scikit-learn; shapes are checked here, in words without numbers of rows; and cells are left to
the schema, under which one that makes no sense is a missing cell."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from dpgram.encoding.columns import object_array
from dpgram.errors import RowsShapeError, UnreadableTableError

Columns = dict[str, Any]


def feature_columns(estimator: Any, X: Any, *, reset: bool) -> Columns:
    """The columns of X by name; the frame's own names, or x0, x1, ... ``reset`` is True in ``fit``.

    The number and names of the columns are kept on the estimator, or compared with those that are."""
    if not _is_frame(X):
        X = _array("X", X)
        if X.ndim != 2:
            raise RowsShapeError(
                f"X has {X.ndim} dimensions, but it must have two, with one row per unit of privacy. Reshape your data: "
                f"X.reshape(-1, 1) if it has a single column, X.reshape(1, -1) if it is a single row."
            )
    if X.shape[1] == 0:  # in scikit-learn's words, but for the number of rows, which may be protected
        raise RowsShapeError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if _is_frame(X) and len(set(X.columns)) < X.shape[1]:
        raise RowsShapeError("X has several columns with the same name. Rename them.")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])]
    return {name: _column(X, j) for j, name in enumerate(names)}


def target_columns(y: Any, features: Columns) -> tuple[Columns, bool]:
    """The columns of y by name (y, or y0, y1, ...), and whether y is two-dimensional."""
    if y is None:
        raise RowsShapeError("this estimator requires y to be passed, but the target y is None.")
    series = _is_series(y)  # stays as it is: its declared type knows missing cells, NumPy's may not
    if not series and not _is_frame(y):
        y = _array("y", y)
    dimensions = 1 if series else len(y.shape)
    if dimensions not in (1, 2) or (dimensions == 2 and y.shape[1] == 0):
        raise RowsShapeError("y must have one dimension, or two with at least one column.")
    if len(y) != len(next(iter(features.values()))):
        raise RowsShapeError("X and y have different numbers of rows. Every row needs its target.")
    if dimensions == 1:
        return {free_name("y", features): y}, False
    return {free_name(f"y{j}", features): _column(y, j) for j in range(y.shape[1])}, True


@dataclass(frozen=True)
class PerRow:
    """What ``fit`` was told of each row besides its cells: whose it is, and its weight. None where it was told nothing."""

    groups: Any = None
    weights: Any = None

    @staticmethod
    def of(groups: Any, sample_weight: Any, features: Columns) -> PerRow:
        """Checked as far as that is public: one value for each row, in one dimension."""
        rows = len(next(iter(features.values())))
        return PerRow(_each_row("groups", groups, rows), _each_row("sample_weight", sample_weight, rows))


def _each_row(which: str, values: Any, rows: int) -> Any:
    if values is None:
        return None
    if not _is_series(values):
        values = np.full(rows, values) if isinstance(values, Real) else _array(which, values)
        if values.ndim != 1:
            raise RowsShapeError(f"{which} has {values.ndim} dimensions, but it must have one, with one value per row of X.")
    if len(values) != rows:
        raise RowsShapeError(f"{which} and X have different numbers of rows. Every row needs its own.")
    return values


def free_name(name: str, taken: Container[str]) -> str:
    """``name``, with underscores at its end while a column is called so."""
    while name in taken:
        name += "_"
    return name


def _is_frame(table: Any) -> bool:
    """Whether it is a frame of pandas or polars."""
    return hasattr(table, "columns") and (hasattr(table, "iloc") or hasattr(table, "get_columns"))


def _is_series(values: Any) -> bool:
    """Whether it is a single column of pandas, polars or Arrow."""
    if _is_frame(values) or isinstance(values, np.ndarray):
        return False
    arrow = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    return (hasattr(values, "iloc") and getattr(values, "ndim", 0) == 1) or (arrow and not hasattr(values, "column_names"))


def _column(table: Any, place: int) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[:, place]
    return table.get_columns()[place] if hasattr(table, "get_columns") else table[:, place]


def _array(which: str, values: Any) -> np.ndarray:
    """The values as an array; lists as objects, so that no cell decides the type of the others."""
    if sparse.issparse(values):
        raise TypeError(f"{which} is sparse, but dense data is required. Use {which}.toarray().")
    if hasattr(values, "column_names"):
        raise RowsShapeError(
            f"{which} is an Arrow table, but an array or a pandas or polars frame is needed. Use {which}.to_pandas()."
        )
    try:
        if isinstance(values, np.ma.MaskedArray):
            array: np.ndarray = values  # a masked cell is a missing one
        else:
            array = _listed(values) if isinstance(values, list | tuple) else np.asarray(values)
    except Exception as error:
        failure = type(error).__name__
    else:
        if array.dtype.kind == "c":
            raise RowsShapeError(f"{which} is an array of complex numbers. Complex data not supported.")
        return array
    raise UnreadableTableError(where=which, failure=failure, do="pass an array or a frame")


def _listed(values: list | tuple) -> np.ndarray:
    """Nested lists as an array of objects, cell by cell. The first row alone says how many columns there are.

    NumPy would look into all of them, and one row of another shape would change what every other row becomes. Here such a row is
    cut or filled with missing cells, and no other is touched."""
    if not len(values) or not _is_row(values[0]):
        return object_array(values)
    width = len(values[0])
    table = np.full((len(values), width), None, dtype=object)
    for place, row in enumerate(values):
        if _is_row(row):
            for column, cell in enumerate(list(row)[:width]):
                table[place, column] = cell
    return table


def _is_row(row: object) -> bool:
    return isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)
