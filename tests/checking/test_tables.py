"""Whatever holds the rows, a check finds the same; and it reads them a batch at a time."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.checking.tally import ColumnTally
from dpgram.checking.units import UnitTally
from dpgram.errors import TableError
from dpgram.sources import base
from tests.conftest import small_schema, small_table

ROWS = 3000
RNG = np.random.default_rng(4)
X = RNG.uniform(0, 10, ROWS).round(3)
TABLE = pa.table(
    {
        "x": X,
        "twice": 2 * X,
        "amount": ["1,500" if k % 10 == 0 else str(k) for k in range(ROWS)],
        "city": ["Paris" if k % 7 == 0 else "paris" if k % 2 else "rome" for k in range(ROWS)],
        "id": [k // 2 for k in range(ROWS)],
        "w": [float(k % 5) for k in range(ROWS)],
        "other": [1] * ROWS,
    }
)
SCHEMA = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("x", 0, 10),
        dpgram.Numeric("twice", 0, 20),
        dpgram.Numeric("amount", 0, 2000),
        dpgram.Categorical("city", ["paris", "rome"]),
    ],
    unit_id="id",
    rows_per_unit=1,
    weight="w",
    largest_weight=3.0,
)
TYPED = {("amount", "wrong-kind")}  # text where the source declares a type: a release would refuse it


def named(found):
    return {(each.column, each.code): each.share for each in found.findings}


EXPECTED = {
    ("amount", "clamped-upper"): len([k for k in range(2001, ROWS) if k % 10]) / ROWS,
    ("amount", "thousands-separators"): 0.1,
    ("city", "case"): len(range(0, ROWS, 7)) / ROWS,
    (None, "dropped-rows"): 0.1,
    ("twice", "collinear"): None,
    ("id", "rows-per-unit"): 1.0,
    ("w", "weight-above"): 0.2,
}


def as_csv(folder):
    TABLE.to_pandas().to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_gzip(folder):
    TABLE.to_pandas().to_csv(folder / "t.csv.gz", index=False)
    return str(folder / "t.csv.gz")


def as_parquet(folder):
    pq.write_table(TABLE, folder / "t.parquet", row_group_size=500)
    return folder / "t.parquet"


def as_folder(folder):
    (folder / "parts").mkdir()
    for k in range(3):
        pq.write_table(TABLE.slice(1000 * k, 1000), folder / "parts" / f"{k}.parquet")
    return folder / "parts"


def as_arrow_file(folder):
    with pa.OSFile(str(folder / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return folder / "t.arrow"


def as_duckdb(folder):
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("given", TABLE)
        connection.execute("create table people as select * from given")
    return folder / "t.duckdb"


TABLES = {
    "csv": as_csv,
    "gzip": as_gzip,
    "parquet": as_parquet,
    "folder": as_folder,
    "arrow file": as_arrow_file,
    "arrow": lambda _: TABLE,
    "stream": lambda _: TABLE.to_reader(max_chunksize=700),
    "pandas": lambda _: TABLE.to_pandas(),
    "categories": lambda _: TABLE.to_pandas().astype({"city": "category"}),
    "polars": lambda _: pl.from_arrow(TABLE),
    "lazy": lambda _: pl.from_arrow(TABLE).lazy(),
    "dict": lambda _: TABLE.to_pydict(),
    "dictionary": lambda _: TABLE.set_column(3, "city", TABLE["city"].dictionary_encode()),
    "views": lambda _: TABLE.set_column(3, "city", TABLE["city"].cast(pa.string_view())),
    "structured": lambda _: TABLE.to_pandas().astype({"amount": "U8", "city": "U8"}).to_records(index=False).view(np.ndarray),
}


@pytest.mark.parametrize("form", TABLES)
def test_the_same_is_found_whatever_holds_the_rows(form, tmp_path):
    found = dpgram.check(TABLES[form](tmp_path), SCHEMA)
    assert found.table_rows == ROWS
    assert found.unused == ("other",)
    assert {key: share for key, share in named(found).items() if key not in TYPED} == pytest.approx(EXPECTED)


def test_a_query_to_duckdb(tmp_path):
    found = dpgram.check(as_duckdb(tmp_path), SCHEMA, query="select * from people where x < 5")
    assert found.table_rows == (X < 5).sum()
    assert ("twice", "collinear") in named(found)


def test_a_postgresql_table(postgresql):
    table = small_table(rows=500)
    with postgresql.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("checked", table, mode="replace")
        connection.commit()
        found = dpgram.check(connection, small_schema(), query="select * from checked")
    assert found.to_dict()["columns"] == dpgram.check(table, small_schema()).to_dict()["columns"]


def test_a_matrix_with_names():
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("a", 0, 10), dpgram.Numeric("b", 0, 20)])
    found = dpgram.check(np.stack([X, 2 * X], axis=1), schema, columns=["a", "b"])
    assert named(found) == {("b", "collinear"): None}


def test_a_spark_table_is_refused_with_what_to_do():
    with pytest.raises(TableError, match=r"sample.*Parquet"):
        dpgram.check("spark:sales.visits", SCHEMA)


def test_a_type_that_no_kind_takes_is_told():
    table = pa.table({"x": [[1, 2]] * 9, "y": [1.5 * k for k in range(9)]})
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 9), dpgram.Numeric("y", 0, 20)])
    assert named(dpgram.check(table, schema)) == {("x", "wrong-kind"): None}


def test_columns_that_are_there_twice():
    table = pa.Table.from_arrays([pa.array([1.0] * 9), pa.array([2.0] * 9)], names=["x", "x"])
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 9)])
    found = dpgram.check(table, schema)
    assert named(found) == {("x", "twice"): None}
    assert found.table_rows is None


def test_a_file_without_a_header_does_not_show_its_first_row(tmp_path):
    (tmp_path / "t.csv").write_text("Smithson,Londonshire\nJones,Wales\n")
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 9)])
    found = dpgram.check(tmp_path / "t.csv", schema)
    assert {"absent", "no-header"} == {each.code for each in found.findings}
    assert "Smithson" not in str(found) + str(found.to_dict())
    (tmp_path / "n.csv").write_text("x,Smithson,77.5\n1,Jones,66\n")
    found = dpgram.check(tmp_path / "n.csv", schema)
    assert "no-header" in {each.code for each in found.findings}
    assert "Smithson" not in str(found) + str(found.to_dict())


def test_a_table_that_cannot_be_read_is_an_error_without_cells(tmp_path):
    with pytest.raises(TableError):
        dpgram.check(tmp_path / "none.csv", SCHEMA)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 SECRET PAR1")
    with pytest.raises(TableError) as error:
        dpgram.check(tmp_path / "broken.parquet", SCHEMA)
    assert "SECRET" not in str(error.value)


def test_a_failure_in_a_batch_is_withheld(monkeypatch):
    def failing(self, given):
        raise ValueError("could not convert 'SECRET'")

    monkeypatch.setattr("dpgram.checking.tally.ColumnTally.add", failing)
    with pytest.raises(TableError) as error:
        dpgram.check(TABLE, SCHEMA)
    assert "SECRET" not in str(error.value)
    assert error.value.__cause__ is error.value.__context__ is None


def test_progress_goes_from_nothing_to_all(tmp_path):
    seen = []
    dpgram.check(as_csv(tmp_path), SCHEMA, progress=seen.append)
    assert seen == [k / 100 for k in range(1, 101)]


def test_progress_is_shown_between_batches(tmp_path, monkeypatch):
    events = []
    add = UnitTally.add
    monkeypatch.setattr(UnitTally, "add", lambda self, given: events.append("batch") or add(self, given))
    dpgram.check(as_parquet(tmp_path), SCHEMA, progress=lambda fraction: events.append("progress"))
    assert events.index("progress") < len(events) - 1 - events[::-1].index("batch")


def test_rows_are_read_a_batch_at_a_time(tmp_path, monkeypatch):
    """No batch is larger than a source gives at a time, and none is kept."""
    sizes = []
    whole = base.spans
    monkeypatch.setattr("dpgram.sources.frames.spans", lambda rows, step: whole(rows, 100))
    add = ColumnTally.add
    monkeypatch.setattr(ColumnTally, "add", lambda self, given: sizes.append(len(given)) or add(self, given))
    found = dpgram.check(TABLE.to_pandas(), SCHEMA)
    assert set(sizes) == {100}
    assert {key: share for key, share in named(found).items() if key not in TYPED} == pytest.approx(EXPECTED)


def test_pandas_missing_values():
    frame = pd.DataFrame(
        {"x": pd.array([1, None, 3] * 20, dtype="Int64"), "b": pd.array([True, None, False] * 20, dtype="boolean")}
    )
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 9), dpgram.Boolean("b")])
    assert [each.missing for each in dpgram.check(frame, schema).columns] == pytest.approx([1 / 3, 1 / 3])
