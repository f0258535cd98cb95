"""From whatever a user passes as a table to a source."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from dpgram.errors import TableError
from dpgram.sources.arrays import from_mapping, from_matrix, from_structured
from dpgram.sources.arrow import ArrowStream
from dpgram.sources.base import Source
from dpgram.sources.files import open_path
from dpgram.sources.frames import PandasFrame, PolarsLazyFrame
from dpgram.sources.sql import open_database


def open_source(table: object, *, columns: Sequence[str] | None = None, query: str | None = None) -> Source:
    """The source behind ``table``; ``columns`` names the columns of a plain two-dimensional array, and nothing else.

    ``query`` is asked of a database, and of nothing else."""
    if (database := open_database(table, query)) is not None:
        return database
    if columns is not None:
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise TableError("columns= must be a list of names, one for each column of the array.")
        if not isinstance(table, np.ndarray) or table.dtype.names:
            raise TableError("columns= names the columns of a plain NumPy array; this table has names of its own.")
        return from_matrix(table, list(columns))
    if isinstance(table, str | os.PathLike):
        return open_path(table)
    if isinstance(table, np.ndarray):
        if table.dtype.names:
            return from_structured(table)
        raise TableError("a NumPy array needs named columns: pass columns=[...], a structured array or a dict of arrays.")
    if isinstance(table, Mapping):
        return from_mapping(table)
    # A frame can only have come from a library that is already imported, so nothing is imported here.
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if any(library and isinstance(table, library.Series) for library in (pandas, polars)):
        raise TableError("a Series is one column, not a table: pass a frame, or a dict such as {'age': series}.")
    if pandas and isinstance(table, pandas.DataFrame):
        return PandasFrame(table)
    if polars and isinstance(table, polars.LazyFrame):
        return PolarsLazyFrame(table)
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        return ArrowStream(table)
    raise TableError(
        f"a {type(table).__name__} is not a table: pass a path, a dataframe, anything with __arrow_c_stream__, a NumPy "
        f"structured array or a dict of arrays."
    )
