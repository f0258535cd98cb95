"""Databases as tables: DuckDB and a real PostgreSQL server, their types, their queries, and what they say when they fail."""

from __future__ import annotations

import datetime
import shutil
import signal
import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi

import dpgram
from dpgram.errors import ColumnTypeError, MissingColumnError, QueryError, TableError, UnreadableTableError
from dpgram.sources.open import open_source
from dpgram.sources.query import one_statement
from tests.conftest import small_schema, small_table
from tests.processes import open_files
from tests.servers import PASSWORD, make_server

SCHEMA = small_schema()
TABLE = small_table(rows=5000)
DRAWN = {"epsilon": 1, "delta": 1e-6, "insecure_seed": 7, "mechanism": "gaussian-noise"}


def release(table, schema=SCHEMA, **more):
    return dpgram.release(table, schema, **DRAWN, **more)


def cells(source, *names):
    """All cells of the columns, by name, as Python objects."""
    batches = [piece.batch for piece in source.pieces(names)]
    return {name: [cell for batch in batches for cell in batch.column(name).to_pylist()] for name in names}


@pytest.fixture(scope="module")
def people(postgresql):
    """The server, with the small table in it."""
    with postgresql.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("people", TABLE, mode="replace")
    return postgresql


@pytest.fixture
def file(tmp_path):
    """A DuckDB file with the small table in it."""
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.register("given", TABLE)
        connection.execute("create table people as select * from given")
    return tmp_path / "people.duckdb"


@pytest.fixture
def ask(people, file):
    """Two databases that know the same table: ask(name)(query) is a source."""
    tables = {"postgresql": people.uri, "duckdb": file}
    return lambda name: lambda query: open_source(tables[name], query=query)


both = pytest.mark.parametrize("name", ["postgresql", "duckdb"])


# --- what can be a table, and what comes back


def test_every_door_gives_the_same_release(people, file, tmp_path):
    expected, query = release(TABLE).gram, "select * from people"
    shutil.copy(file, tmp_path / "people.db")
    with duckdb.connect(file, read_only=True) as ours, people.connect() as theirs:
        doors = [
            (people.uri, query),
            (people.uri.replace("postgresql://", "postgres://"), query),
            (theirs, query),
            (file, query),
            (str(file), None),
            (tmp_path / "people.db", query),  # known by how the file begins
            (f"duckdb:{file}", query),
            (ours, query),
        ]
        for table, asked in doors:
            made = release(table, query=asked)
            assert np.array_equal(made.gram, expected)
            assert made.rows_of == ("table" if asked is None else "result")


def test_a_query_over_files(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(TABLE, tmp_path / "t.parquet")
    made = release("duckdb:", query=f"select * from '{tmp_path}/*.parquet' where x > 0")
    assert np.array_equal(made.gram, release(TABLE.filter(pa.compute.field("x") > 0)).gram)


@both
@pytest.mark.parametrize(
    "query",
    [
        "select * from people;",
        "  \n select * from people -- all of them; really",
        "select * from people; -- all /* of them",
        "with p as (select * from people) select b, c, x, y, 'a;b' as \"se;mi\" from p /* nested /* ; */ ; */ ;;",
        'select y, x, c, b, 1 as "Quo""te", 2 as "quo""te" from people order by x',
        "select p.* from people p where true",
    ],
)
def test_queries_in_many_shapes(ask, name, query):
    source = ask(name)(query)
    assert {"x", "y", "c", "b"} <= set(source.columns.names)
    found = cells(source, "c", "x")
    assert sorted(zip(found["x"], found["c"], strict=True)) == sorted(
        zip(TABLE["x"].to_pylist(), TABLE["c"].to_pylist(), strict=True)
    )


@both
def test_only_declared_columns_are_asked_for_and_a_source_can_be_read_again(ask, name):
    """The column that fails when it is computed is not declared, so it is never computed."""
    source = ask(name)("select x, y, c, b, cast(c as integer) as trap from people")
    first, second = (cells(source, "y", "c") for _ in range(2))
    assert first == second
    assert sorted(first["c"]) == sorted(TABLE["c"].to_pylist())
    with pytest.raises(UnreadableTableError):
        cells(source, "trap")
    assert sorted(cells(source, "y")["y"]) == sorted(first["y"])  # and the failure broke nothing


@both
def test_names_and_types_are_known_before_any_row_is_read(ask, name):
    asked = time.monotonic()
    source = ask(name)("select sum(a.x * b.x * c.x) as s, count(*) as n from people a, people b, people c")
    assert time.monotonic() - asked < 5  # 10^11 rows would take longer
    assert source.columns.names == ["s", "n"]


def test_a_draft(people, file):
    query = "select x, c, b, date '2020-01-01' as d, interval '1 day' as i from people"
    for table in (people.uri, file):
        draft = dpgram.draft_schema(table, query=query)
        for kind in ("numeric", "categorical", "boolean", "date"):
            assert f'kind = "{kind}"' in draft
        assert "is not supported" in draft


# --- types


def test_types_of_postgresql(postgresql):
    postgresql.run("drop table if exists kinds", "drop type if exists mood", "create type mood as enum ('sad', 'glad')")
    postgresql.run(
        "create table kinds (i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, n2 numeric(10,2), t text, v varchar(9), "
        "ch char(5), b bool, d date, ts timestamp, tz timestamptz, by bytea, mood mood, u uuid, j jsonb, m money, o oid)",
        "insert into kinds values (1, 2, 3, 0.5, 0.1, 0.1, 1.50, 'ü', 'v', 'c', true, '2020-02-03', '2020-02-03 04:05:06', "
        "'2020-02-03 04:05:06+02', '\\x6162', 'glad', '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', 12.34, 4000000000)",
        "insert into kinds select",
        "insert into kinds (n, n2, f8, d, ts, tz, t) values ('NaN', 'NaN', 'NaN', 'infinity', 'infinity', '-infinity', '')",
        "insert into kinds (n, f8, d, ts, tz) values ('Infinity', '-Infinity', '-infinity', '294276-01-01', '294276-01-01')",
        "insert into kinds (n) values (1e400), (-1e-400), (123456789012345678901234567890.123456789)",
    )
    source = open_source(postgresql.uri, query="select * from kinds")
    found = cells(source, *source.columns.names)
    utc = datetime.UTC
    first = {name: column[0] for name, column in found.items()}
    assert (first["i2"], first["i4"], first["i8"], first["f4"], first["f8"]) == (1, 2, 3, 0.5, 0.1)
    assert (first["n"], first["n2"], first["m"], first["o"]) == (0.1, 1.5, 12.34, 4_000_000_000)
    assert (first["t"], first["v"], first["ch"], first["by"], first["mood"]) == ("ü", "v", "c", b"ab", "glad")
    assert (first["u"], first["j"]) == ("00000000-0000-0000-0000-000000000001", '{"a": 1}')
    assert (first["d"], first["b"]) == (datetime.date(2020, 2, 3), True)
    assert first["ts"] == datetime.datetime(2020, 2, 3, 4, 5, 6)
    assert first["tz"] == datetime.datetime(2020, 2, 3, 2, 5, 6, tzinfo=utc)
    assert all(column[1] is None for column in found.values())
    assert [found["d"][i] for i in (2, 3)] == [None, None]
    assert [found["ts"][2], found["tz"][2]] == [None, None]
    assert found["ts"][3].year == found["tz"][3].year == 9999  # far off, not wrapped around
    assert found["n"][2:] == [None, None, float("inf"), -0.0, 123456789012345678901234567890.123456789]
    assert source.columns.field("n").type == pa.float64()


def test_types_of_duckdb():
    query = (
        "select * from (values (1::hugeint, 2::uhugeint, 0.10::decimal(9, 2), 'a'::enum('a', 'b'), 'infinity'::date, "
        "'infinity'::timestamp, '-infinity'::timestamptz, timestamp_s '2020-01-01', true, 'x'::blob), "
        "(170141183460469231731687303715884105727::hugeint, 340282366920938463463374607431768211455::uhugeint, null, null, "
        "'2020-01-01', '2020-01-01', null, null, null, null)) v(h, u, n, e, d, ts, tz, s, b, bytes)"
    )
    source = open_source("duckdb:", query=query)
    found = cells(source, *source.columns.names)
    assert found["h"] == [1.0, 2.0**127]
    assert found["u"] == [2.0, 2.0**128]
    assert found["d"] == [None, datetime.date(2020, 1, 1)]
    assert found["ts"] == [None, datetime.datetime(2020, 1, 1)]
    assert found["tz"] == [None, None]
    assert found["e"] == ["a", None]
    assert found["bytes"] == [b"x", None]


@both
def test_a_type_that_does_not_fit_is_an_error(ask, name, people, file):
    table = people.uri if name == "postgresql" else file
    with pytest.raises(ColumnTypeError, match="column 'x' is declared numeric, but the table holds string"):
        release(table, query="select c as x, y, c, b from people")
    with pytest.raises(ColumnTypeError, match="column 'x' is declared numeric, but the table holds month_day_nano_interval"):
        release(table, query="select interval '1 day' as x, y, c, b from people")
    with pytest.raises(MissingColumnError, match="the result of the query to .* has no column of that name. It has x, y, b"):
        release(table, query="select x, y, b from people")
    with pytest.raises(TableError, match="several columns named 'x'"):
        release(table, query="select x, x, y, b, c from people")


# --- one select, and nothing else


@pytest.mark.parametrize(
    ("query", "statement"),
    [
        ("select 1", "select 1"),
        ("select 1 ; ", "select 1 "),
        ("select ';' ; -- ;", "select ';' "),
        ("select E'\\';' ;", "select E'\\';' "),
        ("select $a$;$a$, $$;$$ /* ; /* ; */ ; */;", "select $a$;$a$, $$;$$ /* ; /* ; */ ; */"),
        ('select 1 as ";";', 'select 1 as ";"'),
    ],
)
def test_where_a_statement_ends(query, statement):
    assert one_statement(query) == statement


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select 1; select 2", "several statements"),
        ("select 1; /* x */ drop table people", "several statements"),
        ("", "the query is empty"),
        (" -- nothing\n /* at all */ ;", "the query is empty"),
        (b"select 1", "query is a bytes and must be SQL text"),
        ("select 1\0", "null character"),
    ],
)
def test_what_is_not_one_statement(query, message):
    with pytest.raises(TableError, match=message):
        one_statement(query)


@both
@pytest.mark.parametrize(
    "query",
    [
        "drop table people",
        "insert into people select * from people",
        "insert into people select * from people returning *",
        "delete from people returning *",
        "create table mine as select * from people",
        "explain select * from people",
        "select 1) as a; drop table people; --",
        "copy people to '/tmp/people.csv'",
    ],
)
def test_nothing_but_a_select(ask, name, query):
    with pytest.raises(TableError, match="not one select|not valid SQL|write|several statements"):
        ask(name)(query)
    assert len(cells(ask(name)("select x from people"), "x")["x"]) == len(TABLE)


def test_a_function_that_writes_is_refused_by_the_read_only_session(people):
    people.run(
        "create or replace function sneak() returns float8 language sql as 'delete from people where true returning 1.0::float8'"
    )
    with pytest.raises(TableError):
        release(people.uri, query="select sneak() as x, y, c, b from people")
    assert len(cells(open_source(people.uri, query="select x from people"), "x")["x"]) == len(TABLE)


def test_several_questions_see_one_state_of_the_database(people):
    """A mechanism that asks twice must be told of one table."""
    people.run("drop table if exists growing", "create table growing as select 1.0::float8 as x")
    source = open_source(people.uri, query="select x from growing")
    before = cells(source, "x")
    people.run("insert into growing values (2.0)")
    assert cells(source, "x") == before
    assert cells(open_source(people.uri, query="select x from growing"), "x") == {"x": [1.0, 2.0]}


# --- what is said when it fails before any row is read


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec x from people", r"not valid SQL, or is not a select \(SQLSTATE 42601, at character 1 of the query\)"),
        ("select x from peple", r"uses a table or a view that does not exist \(SQLSTATE 42P01, at character 15"),
        ("select z from people", r"uses a column that does not exist \(SQLSTATE 42703"),
        ("select nonsense(x) from people", r"function or an operator that does not exist for these types \(SQLSTATE 42883"),
        ("select c + 1 from people", "SQLSTATE 42883"),
        ("select x from people where x > $1", "SQLSTATE|refused"),
        ("select 'CANARY-SMITH'::int as x from people", r"a constant of the query cannot be computed \(SQLSTATE 22P02"),
        ("select 1/0 as x from people", r"SQLSTATE 22012"),
        (None, "PostgreSQL needs a query"),
    ],
)
def test_refused_queries_to_postgresql(people, query, message):
    with pytest.raises(TableError, match=message) as caught:
        open_source(people.uri, query=query)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_the_right_to_read_is_checked_before_anything_is_spent(people):
    people.run("drop role if exists nobody_here", "create role nobody_here login password 'other'")
    ledger = dpgram.SessionLedger(10, 1e-3)
    uri = people.uri.replace("postgres:" + PASSWORD, "nobody_here:other")
    with pytest.raises(QueryError, match=r"is not allowed to read a table of the query \(SQLSTATE 42501\)"):
        release(uri, query="select * from people", ledger=ledger)
    assert ledger.spent == (0, 0)


def test_refused_connections(people):
    uri = people.uri
    for wrong, message in [
        (uri.replace(PASSWORD, "WRONG-PASSWORD"), "does not accept this user with this password"),
        (uri.replace(f":{PASSWORD}", ""), "does not accept this user with this password"),
        (uri.replace(f":{people.port}/", ":1/"), "nothing answers at this host and port"),
        (uri.removesuffix("postgres") + "nowhere", "has no such database"),
        (uri.replace("127.0.0.1", "nowhere.invalid"), "the host is not known"),
        (f"postgresql://postgres:{PASSWORD}@bad host/x", "Check the URI"),
        (f"postgresql:/postgres:{PASSWORD}@127.0.0.1", "Check the URI|password"),
        (uri + "?nonsense=" + PASSWORD, "Check the URI"),
        (uri + "x" * 5000, "has no such database|check the URI"),
    ]:
        with pytest.raises(QueryError, match=message) as caught:
            open_source(wrong, query="select 1 as x")
        assert PASSWORD not in str(caught.value)
        assert "WRONG" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("FATAL:  the database system is shutting down", "the server is stopping"),
        ("FATAL:  the database system is starting up", "the server is starting"),
        ("FATAL:  terminating connection due to administrator command", "stopped while a connection was made"),
        ("This probably means the server terminated abnormally", "stopped while a connection was made"),
    ],
)
def test_a_server_that_stops_while_it_is_asked_is_no_wrong_uri(said, message, monkeypatch):
    monkeypatch.setattr(dbapi, "connect", Mock(side_effect=dbapi.OperationalError(said, status_code=10)))
    with pytest.raises(QueryError, match=message):
        open_source("postgresql://somebody@somewhere/x", query="select 1 as x")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec x from people", "not valid SQL"),
        ("select x from peple", "uses a table, a view or a function that DuckDB does not know"),
        ("select z from people", "uses a column that does not exist"),
        ("select * from 'nowhere.parquet'", "reads a file that cannot be opened"),
        ("pivot people on c", "not one select"),  # its columns would be somebody's cells
    ],
)
def test_refused_queries_to_duckdb(file, query, message):
    with pytest.raises(QueryError, match=message) as caught:
        open_source(file, query=query)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_duckdb_file_without_a_query(file, tmp_path):
    with duckdb.connect(file) as connection:
        connection.execute(
            "create schema more; create table more.visits (v integer); create view young as select * from people"
        )
    with pytest.raises(TableError, match=r"contains more.visits, people, young. Pass query="):
        release(file)
    duckdb.connect(tmp_path / "empty.ddb").close()
    with pytest.raises(TableError, match="contains no table"):
        release(tmp_path / "empty.ddb")
    (tmp_path / "broken.duckdb").write_text("CANARY-SMITH " * 1000)
    with pytest.raises(TableError, match="it is not a DuckDB database") as caught:
        release(tmp_path / "broken.duckdb")
    assert "CANARY" not in str(caught.value)
    with pytest.raises(TableError, match="is not a file that can be read"):
        release(tmp_path / "nowhere.duckdb")
    with pytest.raises(TableError, match="duckdb: is an empty database, so it needs a query"):
        release("duckdb:")
    with duckdb.connect() as connection, pytest.raises(TableError, match="a DuckDB connection needs a query"):
        release(connection)


def test_a_query_needs_a_database(tmp_path):
    import sqlite3

    TABLE.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    for table in (tmp_path / "t.csv", TABLE, TABLE.to_pandas(), {"x": [1]}):
        with pytest.raises(TableError, match="a query needs a database, but this table is not one. .* duckdb: "):
            release(table, query="select 1")
    with pytest.raises(TableError, match="a sqlite3 connection is not supported"):
        release(sqlite3.connect(":memory:"), query="select 1")
    for secret in ("mysql://me:SECRET@host/db", "host=here password=SECRET dbname=db"):
        with pytest.raises(TableError, match="mysql:// is not supported|URI is needed") as caught:
            release(secret, query="select 1")
        assert "SECRET" not in str(caught.value)


def test_a_library_that_is_not_installed_is_named(monkeypatch, file):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(dpgram.DpgramError, match=r"duckdb, which is not installed. Run  pip install 'dpgram\[sql\]'"):
        release(file)
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(dpgram.DpgramError, match=r"adbc-driver-postgresql, which is not installed"):
        release("postgresql://host/db", query="select 1")


# --- what a row is


def test_the_label_says_what_a_row_is(people, file, tmp_path):
    from dpgram.report.facts import label_data, label_groups

    query = "select x, y, c, b from people where c <> 'QUERY-TEXT'"
    for table in (people.uri, file):
        made = release(table, query=query)
        made.save(tmp_path / "r.json", overwrite=True)
        again = dpgram.load(tmp_path / "r.json")
        assert again == made
        assert again.rows_of == label_data(again)["rows_of"] == "result"
        text = str(label_groups(again))
        assert "one row of the result of a query, lazy frame or stream: person" in text
        assert "A join can multiply rows" in text
        for kept in ("QUERY-TEXT", PASSWORD, "select"):
            assert kept not in (tmp_path / "r.json").read_text()
    release(TABLE).save(tmp_path / "t.json")
    assert "rows_of" not in (tmp_path / "t.json").read_text()  # an older dpgram reads it
    assert dpgram.load(tmp_path / "t.json").rows_of == "table"


def test_what_each_source_is_a_row_of(file):
    import polars as pl

    frame = pl.from_arrow(TABLE)
    for table, rows_of in [
        (TABLE, "table"),
        (TABLE.to_batches()[0], "table"),
        (TABLE.to_pandas(), "table"),
        (frame, "table"),
        (frame.lazy(), "result"),
        (TABLE.to_reader(), "result"),
        (duckdb.sql("select 1 as x"), "result"),
    ]:
        assert open_source(table).rows_of == rows_of


# --- failures in the middle


SMALL = """
unit = "p"
neighbours = "add-remove"
[[columns]]
name = "x"
kind = "numeric"
lower = 0
upper = 1
"""


def started_release(table, query, folder):
    """The command line at work, in a process of its own."""
    (folder / "s.toml").write_text(SMALL)
    words = [table, "--query", query, "--schema", "s.toml", "--epsilon", "1", "--delta", "1e-6", "--out", "r.json"]
    return subprocess.Popen(
        [sys.executable, "-m", "dpgram", "release", *map(str, words)], stderr=subprocess.PIPE, text=True, cwd=folder
    )


@pytest.mark.system("postgresql")
def test_a_server_that_dies_in_the_middle_leaves_no_release(tmp_path):
    server = make_server()
    try:
        query = "select g::float8 as x from generate_series(1, 3000000) g where g < 2500000 or pg_sleep(1)::text = ''"
        source = open_source(server.uri, query=query)
        pieces = source.pieces(["x"])
        next(pieces)
        process = started_release(server.uri, query, tmp_path)
        wait_until(lambda: busy(server) == 2)
        server.stop()
        with pytest.raises(UnreadableTableError, match="The connection was lost before the last row") as caught:
            list(pieces)
        assert PASSWORD not in str(caught.value)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "The connection was lost before the last row" in said
        assert PASSWORD not in said
        assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]
    finally:
        shutil.rmtree(server.folder)


@both
def test_leaving_in_the_middle_cancels_the_query_and_breaks_nothing(ask, name, people):
    source = ask(name)("select a.x, b.y from people a, people b, people c")  # 10^11 rows
    for _ in range(2):
        pieces = source.pieces(["x"])
        next(pieces)
        pieces.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("dpgram-")]
    wait_until(lambda: name == "duckdb" or busy(people) == 0)  # a server may take a moment to see it


def wait_until(true) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise TimeoutError


def busy(server) -> int:
    """How many others are being sent rows: who is still being let in, or asks for types alone, is not counted."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where state = 'active' and backend_type = 'client backend' "
            "and pid <> pg_backend_pid() and query ilike 'copy (%' and query not like '%limit 0%'"
        )
        return cursor.fetchone()[0]


@both
def test_an_interrupt_stops_the_query(name, people, file):
    """A query that would run for hours before its first row: Ctrl-C ends it at once, with nothing left behind."""
    folder = file.parent
    query = "select sum(a.x * b.x * c.x + d.y) as x from people a, people b, people c, people d"
    process = started_release(people.uri if name == "postgresql" else file, query, folder)
    before = {path.name for path in folder.iterdir()}
    wait_until(lambda: busy(people) == 1 if name == "postgresql" else str(file) in open_files(process.pid))
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    *kept, last = said.splitlines()
    assert last == "interrupted: no incomplete file was left behind."
    assert all("is read once, and" in line for line in kept)  # the query had begun
    assert {path.name for path in folder.iterdir()} == before
    wait_until(lambda: name == "duckdb" or busy(people) == 0)  # a server may take a moment to see it


# --- the command line


def test_the_command_line(people, file, tmp_path, capfd):
    from dpgram.cli.app import run

    schema = tmp_path / "s.toml"
    schema.write_text(SMALL)
    for place, table in enumerate((people.uri, str(file))):
        words = [table, "--query", "select x, c from people where c <> 'CANARY'"]
        assert run(["schema", "draft", *words]) == 0
        assert 'name = "x"' in capfd.readouterr().out
        out = tmp_path / f"r{place}.json"
        assert run(["release", *words, "--schema", str(schema), "--epsilon", "1", "--delta", "1e-6", "--out", str(out)]) == 0
        assert run(["inspect", str(out)]) == 0
        said = "".join(capfd.readouterr())
        assert "one row of the result" in said
        assert "CANARY" not in said + out.read_text()
        assert PASSWORD not in said + out.read_text()
    long = people.uri + "?application_name=" + "x" * 5000
    assert (
        run(["release", long, "--schema", str(schema), "--epsilon", "1", "--delta", "1e-6", "--out", str(tmp_path / "l.json")])
        == 2
    )
    assert "needs a query" in capfd.readouterr().err


def test_the_bar_shows_no_fraction_where_none_is_known(monkeypatch):
    import io

    from dpgram.cli import output

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for fractions, shown in (((), False), ((0.25,), True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with output.working_bar("reading") as progress:
            for fraction in fractions:
                progress(fraction)
        assert ("25%" in terminal.getvalue()) == shown
        assert ("%" in terminal.getvalue()) == shown
        assert "reading" in terminal.getvalue()
