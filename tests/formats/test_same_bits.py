"""One table in every format and every chunking gives the same release, to the bit."""

from __future__ import annotations

import bz2
import gzip
import lzma

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpgram

SCHEMA = dpgram.Schema(
    unit="person",
    row_bound=1.6,
    columns=[
        dpgram.Numeric("x", -2, 2, missing="midpoint"),
        dpgram.Numeric("n", 0, 50, missing=7),
        dpgram.Categorical("c", ["a", "b", "ü"], other=True, missing="level"),
        dpgram.Categorical("k", [0, 1, 2], other=True),
        dpgram.Boolean("b"),
        dpgram.Date("when", "2013-01-01", "2014-06-01", missing="midpoint"),
    ],
    derived=[
        dpgram.Product("xn", of=("x", "n")),
        dpgram.Product("xc", of=("x", "c")),
        dpgram.Product("kb", of=("k", "b")),
        dpgram.Power("x3", of="x", exponent=3),
        dpgram.Log1p("ln", of="n"),
        dpgram.Interval("spring", of="when", lower="2013-03-01", upper="2013-06-01"),
        dpgram.DatePart("hour", of="when", part="hour"),
        dpgram.DatePart("weekday", of="when", part="weekday", levels=True, missing="level"),
    ],
)


def make_frame(rows: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "unused": rng.normal(size=rows),
            "x": rng.normal(size=rows),
            "n": rng.integers(-5, 80, rows),
            "c": rng.choice(["a", "b", "ü", "other thing", 'quo"te', "com,ma", "line\nbreak"], rows),
            "k": rng.integers(0, 5, rows),
            "b": rng.random(rows) < 0.3,
            "when": np.datetime64("2012-10-01", "ms") + rng.integers(0, 6 * 10**10, rows).astype("timedelta64[ms]"),
        }
    )
    frame.loc[::17, "when"] = pd.NaT
    frame.loc[::11, "x"] = np.nan
    frame.loc[::13, "c"] = None
    return frame


FRAME = make_frame()


def release(table, **changes):
    return dpgram.release(table, SCHEMA, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=11, **changes).gram


@pytest.fixture(scope="module")
def expected():
    return release(FRAME)


def as_structured(frame: pd.DataFrame) -> np.ndarray:
    out = np.empty(len(frame), dtype=[("x", ">f8"), ("n", "i4"), ("c", "O"), ("k", "i8"), ("b", "?"), ("when", "M8[ns]")])
    for name in out.dtype.names:
        out[name] = frame[name].to_numpy()
    return out


def with_type(table: pa.Table, name: str, type_: pa.DataType) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(type_))


IN_MEMORY = {
    "pandas objects": lambda f: f.astype(object),
    "pandas categories": lambda f: f.astype({"c": "category", "k": "category"}),
    "pandas arrow types": lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
    "pandas nullable types": lambda f: f.convert_dtypes(),
    "polars": pl.from_pandas,
    "polars categories": lambda f: pl.from_pandas(f).with_columns(pl.col("c").cast(pl.Categorical)),
    "polars many chunks": lambda f: pl.concat([pl.from_pandas(f[i : i + 777]) for i in range(0, len(f), 777)], rechunk=False),
    "polars lazy": lambda f: pl.from_pandas(f).lazy(),
    "arrow": lambda f: pa.Table.from_pandas(f),
    "arrow batch": lambda f: pa.RecordBatch.from_pandas(f),
    "arrow reader": lambda f: pa.Table.from_pandas(f).to_reader(max_chunksize=101),
    "arrow decimals": lambda f: with_type(pa.Table.from_pandas(f), "n", pa.decimal128(25, 3)),
    "arrow microseconds": lambda f: with_type(pa.Table.from_pandas(f), "when", pa.timestamp("us")),
    "arrow time zone": lambda f: with_type(pa.Table.from_pandas(f), "when", pa.timestamp("ms", "UTC")),
    "arrow text views": lambda f: with_type(pa.Table.from_pandas(f), "c", pa.string_view()),
    "duckdb": lambda f: duckdb.connect().from_arrow(pa.Table.from_pandas(f)),
    "structured array": as_structured,
    "dict of arrays": lambda f: {name: f[name].to_numpy() for name in f.columns},
    "dict of lists": lambda f: {name: f[name].tolist() for name in f.columns},
}


@pytest.mark.parametrize("form", IN_MEMORY)
def test_in_memory(form, expected):
    assert np.array_equal(release(IN_MEMORY[form](FRAME)), expected)


def write_parts(folder, write, parts=7):
    folder.mkdir()
    edges = np.linspace(0, len(FRAME), parts + 1).astype(int)
    for i in range(parts):
        write(FRAME.iloc[edges[i] : edges[i + 1]], folder / f"part-{i}")
    (folder / "_SUCCESS").touch()


FILES = {
    "csv": lambda p: FRAME.to_csv(p / "t.csv", index=False),
    "csv by polars": lambda p: pl.from_pandas(FRAME).write_csv(p / "t.csv"),
    "csv all quoted": lambda p: FRAME.to_csv(p / "t.csv", index=False, quoting=1),
    "csv with crlf": lambda p: FRAME.to_csv(p / "t.csv", index=False, lineterminator="\r\n"),
    "csv with byte order mark": lambda p: FRAME.to_csv(p / "t.csv", index=False, encoding="utf-8-sig"),
    "tsv": lambda p: FRAME.to_csv(p / "t.tsv", index=False, sep="\t"),
    "parquet": lambda p: FRAME.to_parquet(p / "t.parquet"),
    "parquet small groups": lambda p: FRAME.to_parquet(p / "t.parquet", row_group_size=333),
    "parquet dictionary": lambda p: pq.write_table(
        pa.Table.from_pandas(FRAME.astype({"c": "category"})), p / "t.pq", compression="zstd"
    ),
    "feather": lambda p: pyarrow.feather.write_feather(pa.Table.from_pandas(FRAME), str(p / "t.feather"), chunksize=999),
}


@pytest.mark.parametrize("form", FILES)
def test_files(form, expected, tmp_path):
    FILES[form](tmp_path)
    assert np.array_equal(release(next(tmp_path.iterdir())), expected)


def test_duckdb(expected, tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.register("given", pa.Table.from_pandas(FRAME))
        connection.execute("create table t as select * from given")
        connection.execute("alter table t alter n type decimal(20, 3); alter table t alter k type hugeint")
        connection.execute("create table nothing (x integer)")
    assert np.array_equal(release(tmp_path / "t.duckdb", query="select * from t"), expected)
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "t.parquet")
    assert np.array_equal(release("duckdb:", query=f"select * from '{tmp_path}/t.parquet'"), expected)


@pytest.mark.parametrize(
    "kinds", [{}, {"n": "numeric", "k": "numeric(9, 4)", "x": "numeric", "when": "timestamptz", "c": "bpchar"}]
)
def test_postgresql(expected, postgresql, kinds):
    """The driver's own types, and those that need help on the way."""
    with postgresql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set timezone to 'UTC'")
        cursor.adbc_ingest("bits", pa.Table.from_pandas(FRAME, preserve_index=False), mode="replace")
        for name, kind in kinds.items():
            cursor.execute(f'alter table bits alter "{name}" type {kind} using "{name}"::{kind}')
    assert np.array_equal(release(postgresql.uri, query='select * from bits order by "x"'), expected)


@pytest.mark.parametrize("opener", [gzip.open, bz2.open, lzma.open])
def test_compressed_csv(opener, expected, tmp_path):
    path = tmp_path / f"t.csv.{ {gzip.open: 'gz', bz2.open: 'bz2', lzma.open: 'xz'}[opener] }"
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        FRAME.to_csv(file, index=False)
    assert np.array_equal(release(path), expected)


@pytest.mark.parametrize("block", [64, 1000, 1 << 20])
def test_csv_blocks_of_any_size(block, tmp_path, monkeypatch):
    monkeypatch.setattr("dpgram.sources.csv.BLOCK_BYTES", block)
    some = FRAME[:1500]
    simple = some.replace({"c": {'quo"te': "q", "com,ma": "q", "line\nbreak": "q"}})  # no quotes: Arrow splits
    for frame in (simple, some):
        frame.to_csv(tmp_path / "t.csv", index=False)
        assert np.array_equal(release(tmp_path / "t.csv"), release(some))


def test_folders_and_globs(expected, tmp_path):
    write_parts(tmp_path / "csv", lambda part, path: part.to_csv(path.with_suffix(".csv"), index=False))
    write_parts(tmp_path / "parquet", lambda part, path: part.to_parquet(path.with_suffix(".parquet")))
    for table in (tmp_path / "csv", str(tmp_path / "csv" / "*.csv"), tmp_path / "parquet", str(tmp_path / "**" / "*.parquet")):
        assert np.array_equal(release(table), expected)


def test_row_order_does_not_matter(expected):
    assert np.array_equal(release(FRAME.sample(frac=1, random_state=3)), expected)


def test_lazy_scans_stream(expected, tmp_path):
    FRAME.to_parquet(tmp_path / "t.parquet")
    assert np.array_equal(release(pl.scan_parquet(tmp_path / "t.parquet")), expected)


def test_a_plain_matrix_with_names():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(500, 3))
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -3, 3, missing="midpoint") for name in "abc"])
    named = {name: matrix[:, i] for i, name in enumerate("abc")}
    one, other = (
        dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1, columns=columns).gram
        for table, columns in ((matrix, list("abc")), (named, None))
    )
    assert np.array_equal(one, other)
