"""From whatever a user passes as a table to a source.

Databases are DuckDB files, ``duckdb:``, ``postgresql://`` and open connections, each with its query. A message never repeats what was
passed: a URI can hold a password."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpgram.errors import TableError
from dpgram.sources import duckdb, postgresql
from dpgram.sources.arrays import from_mapping, from_matrix, from_structured
from dpgram.sources.arrow import ArrowStream
from dpgram.sources.base import Source
from dpgram.sources.files import open_path
from dpgram.sources.frames import PandasFrame, PolarsLazyFrame
from dpgram.sources.query import one_statement

POSTGRESQL = re.compile(r"postgres(ql)?:", flags=re.IGNORECASE)
DUCKDB = "duckdb:"
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
USER_AND_SECRET = re.compile(r":[^/]*@")  # user:password@host, with whatever before it
SECRET = re.compile(r"password\s*=", flags=re.IGNORECASE)
KNOWN = "a DuckDB file, duckdb: (a query over files), a postgresql:// URI, or an open connection of DuckDB or ADBC"


def open_source(table: object, *, columns: Sequence[str] | None = None, query: str | None = None) -> Source:
    """The source behind ``table``; ``columns`` names the columns of a plain two-dimensional array, and nothing else.

    ``query`` is asked of a database, and of nothing else."""
    if (database := open_database(table, query)) is not None:
        return database
    if columns is not None:
        if not isinstance(table, np.ndarray) or table.dtype.names:
            raise TableError(
                "columns= names the columns of a plain NumPy array, but this table has names already. Leave it out."
            )
        return from_matrix(table, columns)
    if isinstance(table, str | os.PathLike):
        return open_path(table)
    if isinstance(table, np.ndarray):
        if table.dtype.names:
            return from_structured(table)
        raise TableError("a NumPy array needs column names. Pass columns=[...], a structured array or a dict of arrays.")
    if isinstance(table, Mapping):
        return from_mapping(table)
    # A frame can only have come from a library that is already imported, so nothing is imported here.
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if any(library and isinstance(table, library.Series) for library in (pandas, polars)):
        raise TableError("a Series is one column, not a table. Pass a frame, or a dict such as {'age': series}.")
    if pandas and isinstance(table, pandas.DataFrame):
        return PandasFrame(table)
    if polars and isinstance(table, polars.LazyFrame):
        return PolarsLazyFrame(table)
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        return ArrowStream(table)
    raise TableError(
        f"a {type(table).__name__} is not a table. Pass a path, a dataframe, anything with __arrow_c_stream__, a NumPy "
        f"structured array or a dict of arrays."
    )


def open_database(table: object, query: str | None) -> Source | None:
    """The source, if ``table`` is a database; None if it is something else and there is no query."""
    source = _open_text(os.fspath(table), query) if isinstance(table, str | os.PathLike) else _open_object(table, query)
    if source is None and query is not None:
        raise TableError(
            f"a query needs a database, but this table is not one. Pass {KNOWN}. To query a Parquet or CSV file, use DuckDB: "
            f"pass duckdb: as the table and select ... from 'file.parquet' as the query."
        )
    return source


def _open_text(text: str, query: str | None) -> Source | None:
    if POSTGRESQL.match(text):
        return postgresql.open_uri(text, query)
    if text.lower() == DUCKDB:
        return duckdb.open_memory(query)
    if text.lower().startswith(DUCKDB) and not URI.search(text):
        return duckdb.open_file(Path(text[len(DUCKDB) :]).expanduser(), query)
    if scheme := URI.match(text):
        raise TableError(f"a URI that begins with {scheme.group()} is not supported. For a database, pass {KNOWN}.")
    if URI.search(text) or (USER_AND_SECRET.search(text) and not Path(text).expanduser().exists()):
        raise TableError(
            "the table looks like a URI with text before it or without ://. It is not repeated here, because it can contain a "
            "password. Begin the URI with postgresql://, without quotes or spaces."
        )
    if SECRET.search(text):
        raise TableError(
            "the table is given as keywords with a password, but a URI is needed, such as postgresql://user@host/database."
        )
    path = Path(text).expanduser()
    return duckdb.open_file(path, query) if duckdb.is_duckdb_file(path) else None


def _open_object(table: object, query: str | None) -> Source | None:
    # A connection can only have come from a library that is already imported, so nothing is imported here.
    library = sys.modules.get("duckdb")
    if library and isinstance(table, library.DuckDBPyConnection):
        if query is None:
            raise TableError("a DuckDB connection needs a query that selects the rows. Pass query=.")
        where = "the result of the query to DuckDB"
        return duckdb.DuckDBQuery(table, one_statement(query), where=where, rows_of="result")
    adbc = sys.modules.get("adbc_driver_manager.dbapi")
    if adbc and isinstance(table, adbc.Connection):
        if table.adbc_get_info().get("vendor_name") != "PostgreSQL":
            raise TableError(
                "only ADBC connections to PostgreSQL are supported. For another database, execute the query yourself and pass "
                "cursor.fetch_record_batch()."
            )
        return postgresql.PostgreSQLQuery(table, postgresql.needed(query), own=False)
    if hasattr(table, "cursor") and hasattr(table, "commit"):
        raise TableError(f"a {type(table).__module__} connection is not supported. Pass {KNOWN}.")
    return None
