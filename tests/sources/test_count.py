"""How many rows a table has, before they are summed: told where the source can tell, else counted; never asked where it is protected."""

from __future__ import annotations

import bz2

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import dpgram
from dpgram.engines.open import open_pass
from dpgram.errors import BudgetSpentError, EmptyTableError, MissingColumnError, TableError, UnreadableTableError
from dpgram.mechanisms import registry
from dpgram.planning import choose
from dpgram.sources.csv import CsvFile
from dpgram.sources.open import open_source
from tests.conftest import small_schema, small_table

SCHEMA, ROWS = small_schema(), 3001
TABLE = small_table(ROWS)
DRAWN = {"epsilon": 1.0, "delta": 1e-6, "insecure_seed": 3}


def tables(folder):
    """Every kind of table, with the arguments it needs, and whether the source tells its number of rows."""
    pa.parquet.write_table(TABLE, folder / "t.parquet", row_group_size=700)
    pa.feather.write_feather(TABLE, folder / "t.arrow", chunksize=500)
    TABLE.to_pandas().to_csv(folder / "t.csv", index=False)
    (folder / "t.csv.bz2").write_bytes(bz2.compress((folder / "t.csv").read_bytes()))
    for part in ("parquet", "csv"):
        (folder / part).mkdir()
        for name in "ab":
            (folder / part / f"{name}.{part}").write_bytes((folder / f"t.{part}").read_bytes())
    database = duckdb.connect()
    database.register("t", TABLE)
    told = [
        (folder / "t.parquet", {}, ROWS),
        (folder / "t.arrow", {}, ROWS),
        (folder / "parquet", {}, 2 * ROWS),
        (TABLE, {}, ROWS),
        (TABLE.to_pandas(), {}, ROWS),
        (pl.from_arrow(TABLE), {}, ROWS),
        (pl.from_arrow(TABLE).lazy().filter(pl.col("b")), {}, int(np.sum(TABLE["b"].to_numpy()))),
        ({name: TABLE[name].to_numpy() for name in TABLE.column_names}, {}, ROWS),
        (TABLE.to_pandas().to_records(index=False), {}, ROWS),
        (database, {"query": "select * from t where x > 0"}, int(np.sum(TABLE["x"].to_numpy() > 0))),
        ("duckdb:", {"query": f"select *, x as more from '{folder}/t.parquet' limit 77 -- the end"}, 77),
    ]
    counted = [(folder / "t.csv", {}, ROWS), (folder / "t.csv.bz2", {}, ROWS), (folder / "csv", {}, 2 * ROWS)]
    return [(*each, True) for each in told] + [(*each, False) for each in counted]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_count_is_that_of_the_pass(tmp_path, threads):
    for table, more, rows, told in tables(tmp_path):
        found = open_pass(table, SCHEMA, threads=threads, **more)
        with found.one_state():
            assert found.count() == found.gram(1.0).rows == rows
        assert (open_source(table, **more).count(SCHEMA.names) is not None) == told


def test_a_matrix_and_an_empty_table_are_counted():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
    assert open_pass(np.ones((9, 2)), schema, columns=["x", "y"]).count() == 9
    assert open_pass(small_table(0), SCHEMA).count() == 0


@pytest.mark.package("torch")
def test_tensors_tell_how_many_rows_they_have():
    import torch

    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
    for table, more in (
        ({"x": torch.ones(7)}, {}),
        (torch.ones(7, 1), {"columns": ["x"]}),
        ({"x": torch.ones(7)}, {"device": "cpu"}),
    ):
        assert open_pass(table, schema, **more).count() == 7
    assert open_pass(small_table(7), SCHEMA, device="cpu").count() == 7


@pytest.mark.parametrize(
    "text",
    [
        "x,y,c,b\n1,2,a,true\n\n3,4,b,false\n",  # a blank line
        'x,y,c,b\n1,2,"a\nb",true\n3,4,b,false\n',  # a line break in a cell
        "x,y,c,b\r\n1,2,a\r\n3,4,b,false,9",  # too few fields, too many, no last line break
        'x,y,c,b\n1,2,a,true\n"3,4,b,false\n5,6,a,true\n',  # a quote that is never closed
        "x,y,c,b\n",
        "x,y,c,b\n\xff\xfe,2,a,true\n,,,\n",
    ],
)
def test_a_csv_has_as_many_rows_as_the_pass_finds(tmp_path, text):
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    found = open_pass(tmp_path / "t.csv", SCHEMA)
    assert found.count() == found.gram(1.0).rows


def test_a_csv_that_duckdb_reads_with_gaps_is_counted_as_it_is_summed(tmp_path):
    """Of a file that is read with ignore_errors, DuckDB loses a row only if it has to look at the cell that fails."""
    (tmp_path / "t.csv").write_text("x,y,c,b\n0.1,2,a,true\nsecret,2,a,true\n0.3,secret,a,true\n0.4,2,b,false\n")
    types = "{'x': 'DOUBLE', 'y': 'DOUBLE', 'c': 'VARCHAR', 'b': 'BOOLEAN'}"
    query = f"select * from read_csv('{tmp_path}/t.csv', columns = {types}, header = true, ignore_errors = true)"
    found = open_pass("duckdb:", SCHEMA, query=query)
    assert found.count() == found.gram(1.0).rows == 2


def test_files_without_a_declared_column_are_not_counted(tmp_path):
    pa.feather.write_feather(TABLE, tmp_path / "a.arrow")
    pa.feather.write_feather(TABLE.drop_columns(["x"]), tmp_path / "b.arrow")
    with pytest.raises(MissingColumnError, match="'x'"):
        dpgram.release(tmp_path, SCHEMA, mechanism="auto", **DRAWN)


def test_a_stream_of_which_nobody_knows_the_end_tells_nothing_and_is_not_read():
    read = []

    def batches():
        for batch in TABLE.to_batches(max_chunksize=500):
            read.append(batch.num_rows)
            yield batch

    source = open_source(pa.RecordBatchReader.from_batches(TABLE.schema, batches()))
    assert source.count(SCHEMA.names) is None
    assert read == []


# What the choice makes of it


def test_a_counting_pass_reads_one_column_and_encodes_nothing(tmp_path, monkeypatch):
    TABLE.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    asked, pieces = [], CsvFile.pieces
    monkeypatch.setattr(CsvFile, "pieces", lambda self, names: asked.append(list(names)) or pieces(self, names))
    monkeypatch.setattr(choose, "choose", lambda *_, **__: (registry.find("gaussian-noise"), "for a test"))
    dpgram.release(tmp_path / "t.csv", SCHEMA, mechanism="auto", cache=False, **DRAWN)
    assert asked == [["x"], ["x", "y", "c", "b"]]
    asked.clear()
    dpgram.release(tmp_path / "t.csv", SCHEMA, mechanism="auto", **DRAWN)  # counted while it is read for good
    assert asked == [["x", "y", "c", "b"]]


def test_where_the_number_of_rows_is_protected_nobody_asks_for_it(tmp_path, monkeypatch):
    """Every pass and every source that could tell: none is asked under add-remove, with or without a mechanism of several rounds."""
    from dpgram.engines import local
    from dpgram.sources import arrow, parquet

    def asked(*_):
        raise AssertionError("the number of rows was asked for")

    for owner in (local.LocalPass, arrow.ArrowStream, arrow.ArrowFile, parquet.ParquetFile):
        monkeypatch.setattr(owner, "count", asked)
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")
    schema = small_schema(neighbours="add-remove")
    for table in (TABLE, tmp_path / "t.parquet", TABLE.to_reader()):
        for name in ("gaussian-noise", "whitened-noise"):
            if name == "whitened-noise" and isinstance(table, pa.RecordBatchReader):
                continue
            monkeypatch.setattr(choose, "choose", lambda *_, name=name, **__: (registry.find(name), "for a test"))
            made = dpgram.release(table, schema, mechanism="auto", table_rows=5000, **DRAWN)
            assert (made.mechanism, made.rows) == (name, None)
    with pytest.raises(AssertionError, match="was asked for"):  # the watch would see it
        dpgram.release(TABLE, SCHEMA, mechanism="auto", **DRAWN)


@pytest.mark.parametrize("name", ["gaussian-noise", "whitened-noise"])
def test_another_number_than_was_counted_is_an_error_that_has_no_count(name, tmp_path, monkeypatch):
    """The query finds other rows between the count and the first pass. Nothing is drawn."""
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")

    def chosen(*_, **__):
        pa.parquet.write_table(small_table(ROWS + 7), tmp_path / "t.parquet")
        return registry.find(name), "for a test"

    monkeypatch.setattr(choose, "choose", chosen)
    query = f"select * from '{tmp_path}/t.parquet'"
    with pytest.raises(TableError, match="was changed between two passes") as caught:
        dpgram.release("duckdb:", SCHEMA, query=query, mechanism="auto", cache=False, **DRAWN)
    assert "300" not in str(caught.value)
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")
    kept = dpgram.release("duckdb:", SCHEMA, query=query, mechanism="auto", **DRAWN)
    assert kept.rows == ROWS  # what was counted is what was kept


def test_counting_and_summing_see_one_state_of_a_database(monkeypatch):
    database = duckdb.connect()
    database.register("given", TABLE)
    database.execute("create table t as select * from given")
    other = database.cursor()

    def chosen(*_, **__):
        other.execute("insert into t select * from t limit 5")
        return registry.find("gaussian-noise"), "for a test"

    monkeypatch.setattr(choose, "choose", chosen)
    assert dpgram.release(database, SCHEMA, query="select * from t", mechanism="auto", cache=False, **DRAWN).rows == ROWS


def test_postgresql_counts_within_the_transaction_that_is_summed(postgresql, monkeypatch):
    with postgresql.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("counted", TABLE, mode="replace")
    query = "select *, numeric '1.5' as more from counted -- the end"
    found = open_pass(postgresql.uri, SCHEMA, query=query)
    assert found.count() == found.gram(1.0).rows == ROWS

    def chosen(*_, **__):
        postgresql.run("insert into counted select * from counted limit 5")
        return registry.find("gaussian-noise"), "for a test"

    monkeypatch.setattr(choose, "choose", chosen)
    assert dpgram.release(postgresql.uri, SCHEMA, query=query, mechanism="auto", cache=False, **DRAWN).rows == ROWS


def test_an_empty_table_is_found_before_anything_is_reserved(tmp_path):
    ledger = dpgram.SessionLedger(2.0, 1e-5)
    (tmp_path / "t.csv").write_text("x,y,c,b\n")
    for table in (small_table(0), tmp_path / "t.csv"):
        with pytest.raises(EmptyTableError):
            dpgram.release(table, SCHEMA, mechanism="auto", ledger=ledger, epsilon=1.0, delta=1e-6)
    assert list(ledger.entries) == []


@pytest.mark.parametrize("cache", [None, False])
def test_a_query_that_fails_while_its_rows_are_counted_is_paid_for(tmp_path, cache):
    """That it fails may follow from a row: asked again and again, it would be a way to read the table. A full ledger tells nothing."""
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")
    ledger = dpgram.SessionLedger(2.0, 2e-6)

    def asked(condition):
        query = (
            f"select * from '{tmp_path}/t.parquet' where case when {condition} then error('x is ' || x) is null else true end"
        )
        given = {"mechanism": "auto", "ledger": ledger, "epsilon": 1.0, "delta": 1e-6, "cache": cache}
        dpgram.release("duckdb:", SCHEMA, query=query, **given)

    for left in (1.0, 0.0):
        with pytest.raises(UnreadableTableError):
            asked("x > 0")
        assert ledger.left[0] == left
    told = []
    for condition in ("x > 0", "x > 1e9"):
        with pytest.raises(BudgetSpentError) as caught:
            asked(condition)
        told.append((str(caught.value), caught.value.__context__, caught.value.__cause__))
    assert told[0] == told[1] == (told[0][0], None, None)


def test_a_file_that_cannot_be_counted_costs_nothing(tmp_path):
    """No cell makes a file fail."""
    ledger = dpgram.SessionLedger(2.0, 2e-6)
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(b"x,y,c,b\n" + b"1,2,a,true\n" * 100)[:-9])
    with pytest.raises(UnreadableTableError):
        dpgram.release(tmp_path / "t.csv.bz2", SCHEMA, mechanism="auto", ledger=ledger, epsilon=1.0, delta=1e-6)
    assert list(ledger.entries) == []


def test_a_stream_without_a_hint_that_is_not_kept_gets_the_default_and_its_label_says_what_to_give(tmp_path):
    made = dpgram.release(TABLE.to_reader(), SCHEMA, mechanism="auto", cache=False, **DRAWN)
    named = dpgram.release(TABLE, SCHEMA, mechanism="gaussian-noise", **DRAWN)
    assert made.mechanism == "gaussian-noise"
    assert made.choice.startswith(
        "auto, without a forecast: the number of rows of a stream is not known before it is read, and table_rows"
    )
    np.testing.assert_array_equal(made.gram, named.gram)
    kept = dpgram.release(TABLE.to_reader(), SCHEMA, mechanism="auto", cache=tmp_path, **DRAWN)
    assert kept.choice == dpgram.release(TABLE, SCHEMA, mechanism="auto", **DRAWN).choice
    assert not list(tmp_path.iterdir())
