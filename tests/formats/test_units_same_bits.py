"""A panel with ids, weights and missing cells gives the same release, to the bit, from every source, with any number of threads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.errors import ColumnTypeError, OneShotError, TableError
from tests.panels import PANEL, SCHEMAS, mechanism, with_type


def released(table, ids: str = "person", method: str = "gaussian-noise", **changes):
    made = dpgram.release(table, SCHEMAS[ids], delta=1e-6, insecure_seed=11, **{**mechanism(method), **changes})
    return made.gram.tobytes(), made.units, made.rows


@cache
def expected(ids: str = "person", method: str = "gaussian-noise"):
    found = released(PANEL, ids, method, threads=1)
    assert found[1:] == (PANEL[ids].nunique(), None)
    return found


IN_MEMORY = {
    "pandas objects": lambda f: f.astype(object).where(f.notna(), None),
    "pandas categories": lambda f: f.astype({"c": "category", "person": "category", "number": "category"}),
    "pandas arrow types": lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
    "pandas numbers with NaN": lambda f: f.astype({"number": "float64"}),
    "polars": pl.from_pandas,
    "polars categories": lambda f: pl.from_pandas(f).with_columns(pl.col("person").cast(pl.Categorical)),
    "polars many chunks": lambda f: pl.concat([pl.from_pandas(f[i : i + 77]) for i in range(0, len(f), 77)], rechunk=False),
    "polars lazy": lambda f: pl.from_pandas(f).lazy(),
    "arrow": pa.Table.from_pandas,
    "arrow reader": lambda f: pa.Table.from_pandas(f).to_reader(max_chunksize=101),
    "arrow text views": lambda f: with_type(pa.Table.from_pandas(f), "person", pa.string_view()),
    "arrow bytes": lambda f: with_type(pa.Table.from_pandas(f), "person", pa.binary()),
    "arrow narrow ids": lambda f: with_type(pa.Table.from_pandas(f), "number", pa.uint16()),
    "arrow decimal ids": lambda f: with_type(pa.Table.from_pandas(f), "number", pa.decimal128(30, 0)),
    "arrow ids as text": lambda f: with_type(pa.Table.from_pandas(f), "number", pa.large_string()),
    "arrow dictionary": lambda f: pa.Table.from_pandas(f).set_column(
        0, "person", pa.Table.from_pandas(f)["person"].dictionary_encode()
    ),
    "duckdb": lambda f: duckdb.connect().from_arrow(pa.Table.from_pandas(f)),
    "dict of lists": lambda f: {n: [None if pd.isna(v) else v for v in f[n].astype(object)] for n in f.columns},
    "shuffled": lambda f: f.sample(frac=1, random_state=3),
}


@pytest.mark.parametrize("ids", SCHEMAS)
@pytest.mark.parametrize("form", IN_MEMORY)
def test_in_memory(form, ids):
    assert released(IN_MEMORY[form](PANEL), ids, threads=4) == expected(ids)


FILES = {
    "csv": lambda p: PANEL.to_csv(p / "t.csv", index=False),
    "csv all quoted": lambda p: PANEL.to_csv(p / "t.csv", index=False, quoting=1),
    "csv numbers with a point": lambda p: PANEL.astype({"number": "float64"}).to_csv(p / "t.csv", index=False),
    "csv some numbers with a point": lambda p: (p / "t.csv").write_text(
        PANEL[::2].to_csv(index=False) + PANEL[1::2].astype({"number": "float64"}).to_csv(index=False, header=False)
    ),
    "parquet": lambda p: PANEL.to_parquet(p / "t.parquet"),
    "parquet small groups": lambda p: PANEL.to_parquet(p / "t.parquet", row_group_size=33),
    "feather": lambda p: pyarrow.feather.write_feather(pa.Table.from_pandas(PANEL), str(p / "t.feather"), chunksize=99),
}


@pytest.mark.parametrize("method", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("ids", SCHEMAS)
@pytest.mark.parametrize("form", FILES)
def test_files(form, ids, method, tmp_path):
    """Rows of a unit lie in any group of rows, and in any thread's."""
    FILES[form](tmp_path)
    path = next(tmp_path.iterdir())
    assert released(path, ids, method, threads=1) == released(path, ids, method, threads=4) == expected(ids, method)


@pytest.mark.parametrize("method", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("cut", [1, 7])
def test_folders(cut, method, tmp_path):
    """A unit's rows lie in several files."""
    for i in range(cut):
        PANEL.iloc[i::cut].to_parquet(tmp_path / f"{i}.parquet")
    assert released(tmp_path, "person", method, threads=4) == expected("person", method)


def test_folders_whose_files_have_ids_of_other_types(tmp_path):
    """Also of numbers above 2^53, where a float still holds them exactly."""
    big = PANEL.assign(number=PANEL["number"] * 10**15)
    for i, kind in enumerate(("Int64", "float64", "string")):
        big.iloc[i::3].astype({"number": kind}).to_parquet(tmp_path / f"{i}.parquet")
    assert released(tmp_path, "number") == released(big, "number") == expected("number")


@pytest.mark.parametrize("method", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("ids", SCHEMAS)
def test_duckdb(ids, method, tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.register("given", pa.Table.from_pandas(PANEL))
        connection.execute("create table t as select * from given; alter table t alter number type hugeint")
    assert released(tmp_path / "t.duckdb", ids, method, query="select * from t") == expected(ids, method)
    pq.write_table(pa.Table.from_pandas(PANEL), tmp_path / "t.parquet")
    assert released("duckdb:", ids, method, query=f"select * from '{tmp_path}/t.parquet'", threads=4) == expected(ids, method)


@pytest.mark.parametrize("kinds", [{}, {"number": "numeric", "w": "numeric", "x": "numeric", "person": "bpchar"}])
@pytest.mark.parametrize("ids", SCHEMAS)
def test_postgresql(postgresql, ids, kinds):
    with postgresql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set timezone to 'UTC'")
        cursor.adbc_ingest("panel", pa.Table.from_pandas(PANEL, preserve_index=False), mode="replace")
        for name, kind in kinds.items():
            cursor.execute(f'alter table panel alter "{name}" type {kind} using "{name}"::{kind}')
    assert released(postgresql.uri, ids, query='select * from panel order by "x"') == expected(ids)
    assert released(postgresql.uri, ids, "whitened-noise", query="select * from panel") == expected(ids, "whitened-noise")


FAR = 9 * 10**37 // 8  # numbers of 38 digits, of which a float tells the first 16


def far_units() -> dpgram.Schema:
    """Ids that are whole numbers too long for a float, and a declared column besides."""
    columns = [dpgram.Numeric("x", 0, 40), dpgram.Numeric("id", 0, 1e38)]
    return dpgram.Schema(unit="person", columns=columns, unit_id="id", rows_per_unit=10)


@pytest.mark.parametrize("kind", ["hugeint", "uhugeint"])
def test_long_numbers_of_duckdb_are_not_rounded_to_one_id(kind, tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute(
            f"create table t as select ({FAR}::hugeint + i % 4)::{kind} as id, i::double as x from range(40) r(i)"
        )
    made = dpgram.release(tmp_path / "t.duckdb", far_units(), epsilon=1e6, delta=1e-2, mechanism="gaussian-noise")
    assert made.units == 4
    assert made.gram[0, 2] == pytest.approx(40 * (FAR / 5e37 - 1), abs=0.1)  # as a number it is what it was


@pytest.mark.parametrize(("kind", "units"), [("numeric", 4), ("numeric(60, 2)", 4), ("money", 1)])
def test_long_numbers_of_postgresql_are_not_rounded_to_one_id(postgresql, kind, units):
    """Numbers that are equal are one id, however many zeros they are written with."""
    many = FAR if kind != "money" else 10**14
    step = "i % 4" if kind != "money" else "0"
    number = f"case when i < 20 then {many} + {step} else {many}.00 + {step} end"
    query = f"select ({number})::{kind} as id, i::float8 as x from generate_series(0, 39) as r(i)"
    made = dpgram.release(postgresql.uri, far_units(), query=query, epsilon=1e6, delta=1e-2, mechanism="gaussian-noise")
    assert made.units == units


def test_numbers_that_are_none_are_no_ids_in_postgresql(postgresql):
    number = "(case when i < 9 then 'NaN' when i < 20 then '7.0' else '7' end)::numeric"
    query = f"select {number} as id, 1.0 as x from generate_series(0, 39) as r(i)"
    made = dpgram.release(postgresql.uri, far_units(), query=query, epsilon=1e6, delta=1e-2, mechanism="gaussian-noise")
    assert made.units == 1


def test_what_can_be_read_once_is_kept_and_not_read_twice():
    """Also by a mechanism that sums once: the rows of units are counted before."""
    table, read = pa.Table.from_pandas(PANEL), []

    def batches():
        for batch in table.to_batches(max_chunksize=50):
            read.append(batch.num_rows)
            yield batch

    assert released(pa.RecordBatchReader.from_batches(table.schema, batches())) == expected()
    assert sum(read) == len(PANEL)


@pytest.mark.parametrize("method", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda f: pa.Table.from_pandas(f).to_reader(), OneShotError, r"read only once.*cache=False"),
        (lambda f: pl.from_pandas(f).lazy(), TableError, r"counted before they are summed.*cache=False \(--no-cache\)"),
    ],
)
def test_rows_that_could_differ_are_not_read_twice(make, error, words, method):
    ledger = dpgram.SessionLedger(10, 1e-3)
    with pytest.raises(error, match=words):
        released(make(PANEL), method=method, cache=False, ledger=ledger)
    assert not ledger.entries


def test_a_query_is_not_asked_twice(tmp_path):
    PANEL.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"counted before they are summed.*cache=False"):
        released("duckdb:", query=f"select * from '{tmp_path}/t.parquet'", cache=False)
    assert (
        released(tmp_path / "t.parquet", cache=False) == expected()
    )  # a file that nothing writes to is the same when it is read again


@pytest.mark.parametrize("name", ["unit_id", "weight"])
@pytest.mark.parametrize("type_", [pa.date32(), pa.timestamp("us"), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_types_that_are_no_ids_and_no_weights(name, type_):
    schema = replace(SCHEMAS["person"], **{name: "wrong"})
    table = pa.Table.from_pandas(PANEL).append_column("wrong", pa.nulls(len(PANEL), type_))
    with pytest.raises(ColumnTypeError, match=r"column 'wrong' is the (unit_id|weight), but the table holds"):
        dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise")


@pytest.mark.parametrize("type_", [pa.bool_(), pa.decimal128(30, 2)])
def test_types_that_are_no_ids(type_):
    table = with_type(pa.Table.from_pandas(PANEL), "number", type_)
    with pytest.raises(ColumnTypeError, match=r"column 'number' is the unit_id.*text or of whole numbers.*[Cc]onvert"):
        dpgram.release(table, SCHEMAS["number"], epsilon=1, delta=1e-6, mechanism="gaussian-noise")


def test_text_is_no_weight():
    table = with_type(pa.Table.from_pandas(PANEL), "w", pa.string())
    with pytest.raises(
        ColumnTypeError, match=r"column 'w' is the weight, but.*It needs a type of numbers. Convert it in the source.$"
    ):
        dpgram.release(table, SCHEMAS["number"], epsilon=1, delta=1e-6, mechanism="gaussian-noise")


@pytest.mark.parametrize("name", ["person", "w"])
def test_a_column_that_is_not_there(name):
    with pytest.raises(TableError, match=name):
        released(PANEL.drop(columns=[name]))
