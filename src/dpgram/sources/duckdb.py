"""DuckDB: a database file, a query over files (``duckdb:``) or an open connection, as record batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpgram.errors import MissingExtraError, QueryError, TableError, UnreadableTableError
from dpgram.sources.base import BATCH_ROWS, quietly
from dpgram.sources.query import Query, one_statement

SUFFIXES = (".duckdb", ".ddb")
MAGIC = (8, b"DUCK")  # where every DuckDB file says what it is
LEAST_MEMORY, MEMORY_PER_THREAD = 256, 128  # MiB of DuckDB's own cache; by itself it takes most of the machine's memory
MEBIBYTES = {"bytes": 2**-20, "KiB": 2**-10, "MiB": 1, "GiB": 2**10, "TiB": 2**20}  # of DuckDB's units

# What DuckDB's exceptions mean when they come before any row is read. Its own words may quote a line of a file it looked into.
REFUSALS = {
    "ParserException": ("the query is not valid SQL", "check it in DuckDB's own shell"),
    "CatalogException": ("the query uses a table, a view or a function that DuckDB does not know", "check the spelling"),
    "BinderException": (
        "the query uses a column that does not exist, or compares types that do not match",
        "check its columns",
    ),
    "IOException": ("the query reads a file that cannot be opened", "check the path"),
    "HTTPException": ("the query reads an address that cannot be reached", "check the address"),
    "PermissionException": ("the query does something that is not allowed here", "use a plain select"),
    "OutOfMemoryException": ("DuckDB ran out of memory", "pass an open connection with a memory_limit of your own"),
    "ResourceInUseException": (
        "the connection has a result that was not fully read",
        "read it, or pass connection.cursor()",
    ),
    "InterruptException": ("the query was interrupted", "run it again"),
}
OTHER = ("DuckDB refused the query", "check it in DuckDB's own shell")
UNREAD = (
    "DuckDB stopped in the middle of its answer. A cast or a computation may fail in some row (use try_cast to get null instead), "
    "or memory or disk may be full"
)
TABLES = (
    "select schema_name, table_name, true from duckdb_tables() "
    "union all select schema_name, view_name, false from duckdb_views() where not internal"
)
ENDLESS = re.compile(r"DATE|TIMESTAMP")  # types that know infinity, which Arrow does not
HUGE = ("HUGEINT", "UHUGEINT")  # their range is beyond that of Arrow's decimals


def is_duckdb_file(path: Path) -> bool:
    """Whether the path is meant as a DuckDB database, by its name or by how the file begins."""
    if path.suffix.lower() in SUFFIXES:
        return not path.is_dir()
    try:
        if not path.is_file():  # to open a pipe would wait for its writer
            return False
        with path.open("rb") as file:
            return file.read(MAGIC[0] + len(MAGIC[1]))[MAGIC[0] :] == MAGIC[1]
    except OSError:
        return False


def open_file(path: Path, query: str | None) -> DuckDBQuery:
    """The query's result, or the table of a database that holds just one."""
    if not path.is_file():
        raise TableError(f"{path} is not a file that can be read. Check the path.")
    return _over_own_connection(f"the DuckDB database {path}", str(path), query)


def open_memory(query: str | None) -> DuckDBQuery:
    """The result of a query over files, asked of an empty database."""
    if query is None:
        raise TableError("duckdb: is an empty database, so it needs a query, such as select * from 'people/*.parquet'.")
    return _over_own_connection("DuckDB", ":memory:", query)


def _over_own_connection(where: str, path: str, query: str | None) -> DuckDBQuery:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError(package="duckdb", extra="sql", purpose="reading a DuckDB database") from None
    try:
        connection = quietly(where, duckdb.connect, path, read_only=path != ":memory:")
    except UnreadableTableError:
        connection = None
    if connection is None:
        raise QueryError(
            where=where,
            problem="it is not a DuckDB database, has a newer version, or is open for writing elsewhere",
            do="close the program that writes to it. In the same process, pass the open connection instead of the path",
        )
    quietly(where, _settle, connection)
    if query is None:
        return DuckDBQuery(connection, _only_table(where, connection), where=where)
    return DuckDBQuery(connection, one_statement(query), where=f"the result of the query to {where}", rows_of="result")


def _settle(connection: Any) -> None:
    """A connection of ours keeps little in memory, and never takes a Python variable for a table."""
    connection.execute(
        "set preserve_insertion_order = false; set python_enable_replacements = false; set enable_progress_bar = false"
    )
    ((threads, limit),) = connection.execute("select current_setting('threads'), current_setting('memory_limit')").fetchall()
    wanted = max(LEAST_MEMORY, MEMORY_PER_THREAD * int(threads))
    number, unit = limit.split()
    if float(number) * MEBIBYTES[unit] > wanted:
        connection.execute(f"set memory_limit = '{wanted}MiB'")


def _only_table(where: str, connection: Any) -> str:
    """A query for the one table there is."""
    tables = quietly(where, lambda: connection.execute(TABLES).fetchall())
    if len(tables) == 1 and tables[0][2]:
        return "select * from {}.{}".format(*(quoted(name) for name in tables[0][:2]))
    names = sorted(name if schema == "main" else f"{schema}.{name}" for schema, name, _ in tables)
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    raise TableError(f"{where} contains {shown or 'no table'}. Pass query= (--query) to say which rows to read.")


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


class DuckDBQuery(Query):
    """The result of a query to DuckDB."""

    def __init__(self, connection: Any, query: str, *, where: str, rows_of: str = "table"):
        self.where, self.rows_of = where, rows_of
        self._connection, self._query = connection, query
        self._check_statement()
        relation = self._asked(lambda: connection.sql(query))
        self._kinds = [str(kind) for kind in relation.types]
        self._expressions = [_expression(f"c{place}", kind) for place, kind in enumerate(self._kinds)]
        empty = self._asked(lambda: connection.sql(f"{self._sql(self._expressions)} limit 0").to_arrow_table())
        self.columns = pa.schema(list(zip(relation.columns, empty.schema.types, strict=True)))

    def _in_full(self, place: int) -> str | None:
        return f"c{place}::varchar" if self._kinds[place] in HUGE else None

    def _check_statement(self) -> None:
        kinds = [str(statement.type) for statement in self._asked(lambda: self._connection.extract_statements(self._query))]
        if [kind.rpartition(".")[2] for kind in kinds] != ["SELECT"]:
            raise QueryError(where=self.where, problem="the query is not one select", do="a release only reads rows")

    def _refusal(self, error: Exception) -> tuple[str, str]:
        return REFUSALS.get(type(error).__name__, OTHER)

    def _cancel(self) -> None:
        self._connection.interrupt()

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """One transaction, which sees one state of the database; of files that the query reads it sees what they hold by then.

        On a connection that is in a transaction already, that one does it."""
        begun = False
        if not self._in_transaction():  # to begin another there would undo the user's own
            with suppress(Exception):
                self._connection.begin()
                begun = True
        try:
            yield
        finally:
            if begun:
                with suppress(Exception):  # after a failure DuckDB may have ended it
                    self._connection.rollback()

    def _in_transaction(self) -> bool:
        """Whether a transaction is open: by itself every query has one of its own, with a number of its own. If in doubt, it is."""
        try:
            one, two = (self._connection.sql("select txid_current()").fetchall() for _ in range(2))
        except Exception:
            return True
        return one == two

    def _batches(self, names: list[str], sql: str) -> Iterator[pa.RecordBatch]:
        try:
            # Not execute(), which holds the whole result in memory.
            for batch in self._connection.sql(sql).to_arrow_reader(BATCH_ROWS):
                yield batch.rename_columns(names)
            return
        except Exception as error:
            failure = type(error).__name__
        raise UnreadableTableError(where=self.where, failure=failure, do=UNREAD)


def _expression(column: str, kind: str) -> str:
    """The column in SQL."""
    if ENDLESS.match(kind):
        return f"case when isfinite({column}) then {column} end"
    return f"{column}::double" if kind in HUGE else column
