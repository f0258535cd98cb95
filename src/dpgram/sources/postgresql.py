"""PostgreSQL through ADBC: the result of a query, streamed by COPY as record batches."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpgram.encoding.types import null_where
from dpgram.errors import MissingExtraError, QueryError, TableError, UnreadableTableError
from dpgram.sources.query import InThread, Query, awaited, one_statement

WHERE = "the result of the query to PostgreSQL"
# Every transaction of ours sees one state of the database, however often the query is asked, and cannot write to it.
SESSION = (
    "set session characteristics as transaction isolation level repeatable read, read only",
    "set client_encoding to 'UTF8'",
    "set client_min_messages to 'error'",  # libpq prints notices, and a function may put a cell into one
)

# What a failure means that comes before any row is read, by SQLSTATE or its first two characters, and what to do about it.
# The server's own words stay away: it cannot be excluded that they quote a cell.
REFUSALS = {
    "42601": ("the query is not valid SQL, or is not a select", "check it in psql"),
    "42P01": ("the query uses a table or a view that does not exist", "check the spelling, the schema and the database"),
    "42703": ("the query uses a column that does not exist", "check the spelling"),
    "42883": ("the query uses a function or an operator that does not exist for these types", "check it in psql"),
    "42501": ("the database user is not allowed to read a table of the query", "ask for the right to select from it"),
    "42P02": ("the query has a parameter such as $1, which has no value", "write the value into the query"),
    "25006": ("the query would write to the database", "a release only reads rows"),
    "57014": ("the query was cancelled", "run it again. The server's statement_timeout may be too short"),
    "42": ("the query does not suit the database", "check it in psql"),
    "22": ("a constant of the query cannot be computed", "check it in psql"),
    "28": ("the server does not accept this user", "check the user name and password"),
    "3D": ("the database does not exist", "check its name"),
    "53": ("the server has no connections, memory or disk left", "try again later"),
    "57": ("the server is starting, is stopping, or was told to stop the query", "try again later"),
    "08": ("the connection was lost", "check the server, and run it again"),
}
OTHER = ("the server refused the query", "check it in psql")
# The same for connections, which have no SQLSTATE: by a word of libpq's message, which itself may repeat parts of the URI.
UNCONNECTED = {
    "password": (
        "the server does not accept this user with this password",
        "check both. The password can be in ~/.pgpass or PGPASSWORD",
    ),
    "no pg_hba.conf entry": ("the server does not accept this user from here", "ask for an entry in its pg_hba.conf"),
    "terminat": ("the server stopped while a connection was made", "check that it runs, and try again"),
    "shutting down": ("the server is stopping", "try again later"),
    "starting up": ("the server is starting", "try again later"),
    "role ": ("the server does not know this user", "check the user name"),
    "database ": ("the server has no such database", "check its name"),
    "translate host name": ("the host is not known", "check its name"),
    "refused": ("nothing answers at this host and port", "check both, and that the server runs"),
    "No such file": ("there is no server at this socket", "check that it runs, or give its host name"),
    "timeout": ("the server does not answer", "check host, port and network"),
    "SSL": ("no encrypted connection could be made", "check sslmode and certificates"),
}
BAD_URI = (
    "no connection could be made",
    "check the URI. Its form is postgresql://user@host:port/database, with special characters as %XX",
)
LOST = "the connection was lost before the last row. Check the server, and run it again"
UNREAD = "the server stopped in the middle of its answer. A cast or a computation may fail in some row, or the server was told to stop"

# Columns whose own form would reach us bent, as expressions over {c}. ADBC wraps infinite and far-off times around, into
# anybody's bounds; money comes in cents, object numbers as signed; char(n) is padded.
FINITE = "case when isfinite({c}) then %s end"
EXPRESSIONS = {
    "date": FINITE % "{c}",
    "timestamp": FINITE % "least({c}, timestamp '9999-12-31 23:59:59')",
    "timestamptz": FINITE % "least({c}, timestamptz '9999-12-31 23:59:59+00')",
    "numeric": "{c}",
    "money": "{c}::numeric",
    "oid": "{c}::int8",
    "bpchar": "{c}::text",
}
IN_FULL = "nullif(trim_scale({c}), 'NaN')::text"  # a number's text without zeros at its end: 7.00 and 7 are equal
AS_TEXT = "{c}::text"  # enumerations, uuid, json and whatever else has no type in Arrow


def open_uri(uri: str, query: str | None) -> PostgreSQLQuery:
    """The query's result over a connection of our own, made with libpq's rules (environment and ~/.pgpass included)."""
    statement = needed(query)
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtraError(package="adbc-driver-postgresql", extra="sql", purpose="reading from PostgreSQL") from None
    try:
        connection = awaited(InThread(lambda: dbapi.connect(uri, autocommit=True)))
    except Exception as error:
        problem, do = next((words for sign, words in UNCONNECTED.items() if sign in str(error)), BAD_URI)
    else:
        return PostgreSQLQuery(connection, statement, own=True)
    raise QueryError(where=WHERE, problem=problem, do=do)


def needed(query: str | None) -> str:
    """The query as one statement, without which nobody knows which rows are meant."""
    if query is None:
        raise TableError("PostgreSQL needs a query that selects the rows. Pass query= (--query), such as select * from people.")
    return one_statement(query)


class PostgreSQLQuery(Query):
    """The result of a query to PostgreSQL. On a connection of ours all passes are in one transaction, which sees one state of the
    database; one that somebody else opened stays in its own."""

    where = WHERE
    rows_of = "result"

    def __init__(self, connection: Any, query: str, *, own: bool):
        self._connection, self._query, self._own = connection, query, own
        self._cursor: Any = None
        if own:
            weakref.finalize(self, connection.close)
            self._asked(self._begin)
        schema = self._asked(lambda: self._schema(query))
        self._expressions = [_expression(field).format(c=f"c{place}") for place, field in enumerate(schema)]
        everything = self._sql(self._expressions)
        self._asked(lambda: self._run(f"{everything} limit 0"))  # finds out what planning alone does not: the right to read
        fields = self._asked(lambda: self._schema(everything))
        self._rounded = [_type_name(field) == "numeric" for field in fields]
        types = [pa.float64() if rounded else field.type for field, rounded in zip(fields, self._rounded, strict=True)]
        self.columns = pa.schema(list(zip(schema.names, types, strict=True)))

    def _in_full(self, place: int) -> str | None:
        return IN_FULL.format(c=self._expressions[place]) if self._rounded[place] else None

    def _begin(self) -> None:
        for setting in SESSION:
            self._run(setting)
        self._connection.adbc_connection.set_autocommit(False)

    def _run(self, sql: str) -> None:
        with self._connection.cursor() as self._cursor:
            self._cursor.execute(sql)

    def _schema(self, sql: str) -> pa.Schema:
        with self._connection.cursor() as self._cursor:
            return self._cursor.adbc_execute_schema(sql)

    def _refusal(self, error: Exception) -> tuple[str, str]:
        state = getattr(error, "sqlstate", None) or ""
        problem, do = REFUSALS.get(state) or REFUSALS.get(state[:2]) or OTHER
        return problem + (f" (SQLSTATE {state}{_place(error)})" if state else ""), do

    def _batches(self, names: list[str], sql: str) -> Iterator[pa.RecordBatch]:
        done, failure = False, ""
        try:
            with self._connection.cursor() as self._cursor:
                self._cursor.execute(sql)
                for batch in self._cursor.fetch_record_batch():
                    fields = zip(batch.schema, batch.columns, strict=True)
                    columns = [_as_floats(cells) if _type_name(field) == "numeric" else cells for field, cells in fields]
                    yield pa.RecordBatch.from_arrays(columns, names=names)
            done = True
        except Exception as error:
            failure = type(error).__name__
        finally:
            alive = done or self._recovered()
        if not done:
            raise UnreadableTableError(where=self.where, failure=failure, do=UNREAD if alive else LOST)

    def _cancel(self) -> None:
        try:
            if self._cursor is not None:
                self._cursor.adbc_cancel()
        except Exception:  # there was nothing to cancel, or nobody to tell
            pass

    def _recovered(self) -> bool:
        """Whether the connection still lives. One of ours is made ready for another query."""
        try:
            if self._own:
                self._connection.adbc_connection.rollback()
                self._run("select 1")
            return True
        except Exception:
            return False


def _place(error: BaseException) -> str:
    """Where in the query the server stumbled, if it said so."""
    for name, value in getattr(error, "details", None) or ():
        if name in ("PG_DIAG_STATEMENT_POSITION", b"PG_DIAG_STATEMENT_POSITION") and value.isdigit():
            return f", at character {int(value)} of the query"
    return ""


def _type_name(field: pa.Field) -> str:
    return (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()


def _expression(field: pa.Field) -> str:
    """The column in SQL, with {c} where its name goes."""
    known = EXPRESSIONS.get(_type_name(field))
    return known or (AS_TEXT if isinstance(field.type, pa.BaseExtensionType) else "{c}")


def _as_floats(cells: pa.Array) -> pa.Array:
    """numeric, which arrives as text of any length, as the nearest float64; what is not finite as null."""
    text = cells.storage if isinstance(cells, pa.ExtensionArray) else cells
    return null_where(pc.is_in(text, pa.array(["nan", "inf", "-inf"])), text).cast(pa.float64())
