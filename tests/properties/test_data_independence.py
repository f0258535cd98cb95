"""Everything but the published matrix is the same on neighbouring tables: errors, warnings, words, progress, files and their sizes.

A table and the same table with one row replaced are released, and whatever a bystander can see beside the matrix is compared. What is
known to differ stands at the end, as tests too. Time and memory are not looked at (docs/limits.md)."""

from __future__ import annotations

import datetime as dt
import io
import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.engines import summing
from dpgram.errors import ColumnTypeError, DpgramError, LargeDeltaWarning, UnreadableTableError
from dpgram.mechanisms.registry import AUTO, MECHANISMS

ROWS, PLACE, NAMES = 200, 17, ("x", "y", "c", "b", "d")
DAY = dt.date(2013, 7, 2)
CANARY = "CANARY-SMITH"
SCHEMA = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("x", -5, 5),
        dpgram.Numeric("y", -10, 30),
        dpgram.Categorical("c", ["a", "b"], other=True),
        dpgram.Boolean("b"),
        dpgram.Date("d", "2013-01-01", "2014-01-01"),
    ],
    row_bound=1.5,
)
SCHEMA_FILE = """
unit = "person"
row_bound = 1.5
[[columns]]
name = "x"
kind = "numeric"
lower = -5
upper = 5
[[columns]]
name = "y"
kind = "numeric"
lower = -10
upper = 30
[[columns]]
name = "c"
kind = "categorical"
categories = ["a", "b"]
other = true
[[columns]]
name = "b"
kind = "boolean"
[[columns]]
name = "d"
kind = "date"
lower = "2013-01-01"
upper = "2014-01-01"
"""

# What one row may become, in a typed source and in any.
TYPED = {
    "zeros": (0.0, 10.0, "a", False, DAY),
    "full norm": (5.0, 30.0, "b", True, dt.date(2014, 1, 1)),
    "out of bounds": (1e9, -1e9, "b", True, dt.date(1900, 1, 1)),
    "not a number": (np.nan, np.nan, "a", False, DAY),
    "infinite": (np.inf, -np.inf, "a", False, DAY),
    "missing": (None, None, None, None, None),
    "undeclared": (1.0, 1.0, CANARY, True, DAY),
    "giant": (1.7e308, -1.7e308, "b" * 100_000, True, dt.date(9999, 12, 31)),
    "tiny": (5e-324, -0.0, "", False, dt.date(1, 1, 1)),
}
UNTYPED = {
    "malformed": (CANARY, "--1", "\x00", "perhaps", "2013-02-30"),
    "giant text": ("9" * 400, "-1e999", "a" * 300_000, "1e400", "9" * 40),
    "not text": (b"\xff\xfe", b"\xed\xa0\x80", b"\xff", b"\xc3", b"\xfe"),
}


def columns_of(row: tuple | None, *, added: bool = False) -> dict[str, list]:
    """The table as lists, one row of it replaced, or one ``added``."""
    rng = np.random.default_rng(0)
    rows = [
        (float(x), float(y), str(c), bool(b), DAY + dt.timedelta(int(day)))
        for x, y, c, b, day in zip(
            rng.normal(size=ROWS), rng.normal(5, 3, ROWS), rng.choice(["a", "b", "z"], ROWS), rng.random(ROWS) < 0.5,
            rng.integers(0, 100, ROWS), strict=True,
        )
    ]  # fmt: skip
    if row is not None:
        rows[PLACE : PLACE + (not added)] = [row]
    return {name: [r[i] for r in rows] for i, name in enumerate(NAMES)}


def as_arrow(columns: dict[str, list]) -> pa.Table:
    types = (pa.float64(), pa.float64(), pa.string(), pa.bool_(), pa.date32())
    return pa.table({name: pa.array(columns[name], kind) for name, kind in zip(NAMES, types, strict=True)})


def as_csv(columns: dict[str, list]) -> bytes:
    def cell(value: object) -> bytes:
        return value if isinstance(value, bytes) else b"" if value is None else str(value).encode()

    return (
        b"\n".join([",".join(NAMES).encode(), *(b",".join(map(cell, row)) for row in zip(*columns.values(), strict=True))])
        + b"\n"
    )


def csv_file(columns, folder):
    (folder / "t.csv").write_bytes(as_csv(columns))
    return folder / "t.csv"


def parquet_file(columns, folder):
    pq.write_table(as_arrow(columns), folder / "t.parquet", row_group_size=50)
    return folder / "t.parquet"


def arrow_file(columns, folder):
    with pa.ipc.new_file(str(folder / "t.arrow"), as_arrow(columns).schema) as writer:
        writer.write_table(as_arrow(columns), max_chunksize=64)
    return folder / "t.arrow"


def duckdb_file(columns, folder):
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("given", as_arrow(columns))
        connection.execute("create table t as select * from given")
    return folder / "t.duckdb"


def numpy_columns(columns, folder):
    found = as_arrow(columns)
    plain = {name: found[name].to_numpy() for name in "xy"}
    return {**plain, "c": np.array(columns["c"], object), "b": np.array(columns["b"], object), "d": found["d"].to_numpy()}


FILES = {"csv": csv_file, "parquet": parquet_file, "arrow": arrow_file, "duckdb": duckdb_file}
SOURCES = {
    **FILES,
    "lists": lambda columns, folder: columns,
    "numpy": numpy_columns,
    "table": lambda columns, folder: as_arrow(columns),
    "pandas": lambda columns, folder: pd.DataFrame(columns, dtype=object),
    "polars": lambda columns, folder: pl.DataFrame(as_arrow(columns)),
    "lazy": lambda columns, folder: pl.DataFrame(as_arrow(columns)).lazy(),
}
ANY_CELL = ("csv", "lists", "pandas")  # sources whose cells have no type
CASES = [(source, name) for source in SOURCES for name in (*TYPED, *(UNTYPED if source in ANY_CELL else ()))]


class Observed(NamedTuple):
    """All that a bystander sees of a release, but for the matrix."""

    error: tuple[str, str] | None
    warned: list[tuple[str, str]]
    printed: tuple[str, str]
    logged: list[tuple[str, str]]
    progress: list[float]
    files: list[str]
    published: dict


def observe(table: object, folder: Path, capfd, caplog, *, schema: dpgram.Schema = SCHEMA, **options) -> Observed:
    """Release ``table`` into ``folder``, and look."""
    caplog.clear()
    capfd.readouterr()
    error, progress, before = None, [], set(os.listdir(folder))
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            given = {
                "epsilon": 1,
                "delta": 0.02,
                "mechanism": "gaussian-noise",
                "insecure_seed": 1,
                "progress": progress.append,
            }
            made = dpgram.release(table, schema, **{**given, **options})
            made.save(folder / "release.json", overwrite=True)
        except DpgramError as raised:
            error = (type(raised).__name__, str(raised))
    published = {} if error else json.loads((folder / "release.json").read_text())
    published.pop("gram", None)
    return Observed(
        error=error,
        warned=[(w.category.__name__, str(w.message)) for w in warned],
        printed=capfd.readouterr(),
        logged=[(record.name, record.getMessage()) for record in caplog.records],
        progress=progress,
        files=sorted(set(os.listdir(folder)) - before),
        published=published,
    )


def made_in(folder: Path, source: str, row: tuple | None, *, added: bool = False) -> object:
    folder.mkdir()
    return SOURCES[source](columns_of(row, added=added), folder)


def at_one_place(observed: Observed, folder: Path) -> Observed:
    """The same with the folder's name taken out of the words: the two tables lie in different ones."""
    error = observed.error and (observed.error[0], observed.error[1].replace(str(folder), "FOLDER"))
    return observed._replace(error=error)


@pytest.mark.parametrize("source", SOURCES)
def test_a_row_changes_nothing_that_can_be_seen_beside_the_matrix(source, tmp_path, capfd, caplog):
    expected = observe(made_in(tmp_path / "base", source, None), tmp_path / "base", capfd, caplog)
    assert expected.error is None
    assert [name for name, _ in expected.warned] == [LargeDeltaWarning.__name__]  # so that there is a warning to compare
    assert expected.files == ["release.json"]
    assert expected.progress == [k / 100 for k in range(1, 101)]
    for name in [case for found, case in CASES if found == source]:
        folder, row = tmp_path / name, {**TYPED, **UNTYPED}[name]
        found = at_one_place(observe(made_in(folder, source, row), folder, capfd, caplog), folder)
        assert found == expected, name


@pytest.mark.parametrize("source", SOURCES)
def test_one_row_more_is_not_seen_where_the_number_of_rows_is_protected(source, tmp_path, capfd, caplog):
    schema = dpgram.Schema(unit="person", neighbours="add-remove", columns=SCHEMA.columns, row_bound=1.5)
    seen = []
    for name in (None, "full norm", "missing"):
        folder = tmp_path / str(name)
        table = made_in(folder, source, None if name is None else TYPED[name], added=True)
        seen.append(observe(table, folder, capfd, caplog, schema=schema))
    assert seen[0].error is None
    assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
@pytest.mark.parametrize("mechanism", [*sorted(MECHANISMS), AUTO])
def test_no_mechanism_lets_a_row_be_seen_beside_what_it_publishes(mechanism, arithmetic, tmp_path, capfd, caplog):
    """Parameters are left out here: adaptive mechanisms publish some that carry noise, as the matrix does."""
    options = {"mechanism": mechanism, "arithmetic": arithmetic, **({"rho": 0.1} if mechanism == "noisy-inverse" else {})}
    seen = []
    for name in (None, "zeros", "full norm", "missing", "giant"):
        folder = tmp_path / str(name)
        row = None if name is None else TYPED[name]
        observed = observe(made_in(folder, "table", row), folder, capfd, caplog, **options)
        keys = sorted(observed.published), sorted(observed.published.get("mechanism", {}).get("parameters", {}))
        seen.append((observed._replace(published={}), keys))
    assert all(one == seen[0] for one in seen)


def test_a_leak_would_be_seen(tmp_path, capfd, caplog, monkeypatch):
    """An encoder that warns of missing cells is planted: the comparison can fail."""
    clip = summing.clip

    def talkative(encoded, bound, factors):
        if (np.abs(encoded[1:]) == 1).any(axis=1).all():
            warnings.warn("a row lies on all of its bounds", RuntimeWarning, stacklevel=1)
        return clip(encoded, bound, factors)

    monkeypatch.setattr(summing, "clip", talkative)
    monkeypatch.setattr(summing, "kernel", lambda: None)
    seen = [
        observe(made_in(tmp_path / name, "table", TYPED[name]), tmp_path / name, capfd, caplog)
        for name in ("zeros", "full norm")
    ]
    assert seen[0] != seen[1]


COMMAND = (
    "release {table} --schema schema.toml --epsilon 1 --delta 0.02 --mechanism gaussian-noise "
    "--out release.json --insecure-seed 1 --json"
)


@pytest.mark.parametrize("source", FILES)
def test_the_command_line_says_the_same(source, tmp_path, capfd, monkeypatch):
    seen = {}
    for name in (None, *(case for found, case in CASES if found == source)):
        folder = tmp_path / str(name)
        table = made_in(folder, source, None if name is None else {**TYPED, **UNTYPED}[name])
        (folder / "schema.toml").write_text(SCHEMA_FILE)
        monkeypatch.chdir(folder)
        code = run(COMMAND.format(table=table.name).split())
        seen[name] = (code, *capfd.readouterr(), sorted(os.listdir(folder)))
    assert seen[None][0] == 0
    assert "warning: delta is 0.02" in seen[None][2]
    assert all(one == seen[None] for one in seen.values())


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_a_process_of_its_own_says_the_same(source, tmp_path):
    seen = {}
    for name in (None, "missing", "malformed" if source == "csv" else "giant"):
        folder = tmp_path / str(name)
        table = made_in(folder, source, None if name is None else {**TYPED, **UNTYPED}[name])
        (folder / "schema.toml").write_text(SCHEMA_FILE)
        command = [sys.executable, "-m", "dpgram", *COMMAND.format(table=table.name).split()]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        seen[name] = (done.returncode, done.stdout, done.stderr, sorted(os.listdir(folder)))
    assert seen[None][0] == 0
    assert all(one == seen[None] for one in seen.values())


SEEDS, FARTHEST = (
    60,
    5,
)  # releases of each table; standard errors that means may lie apart (the seeds are fixed: no false alarms)


def sizes(row: tuple | None, arithmetic: str, first_seed: int, folder: Path, extra: int = 0) -> np.ndarray:
    """Sizes of releases of one table; ``extra`` plants a leak of as many bytes."""
    table, path = as_arrow(columns_of(row)), folder / "r.json"
    found = []
    for seed in range(first_seed, first_seed + SEEDS):
        given = {"mechanism": "gaussian-noise", "insecure_seed": seed, "arithmetic": arithmetic}
        dpgram.release(table, SCHEMA, epsilon=1, delta=1e-6, **given).save(path, overwrite=True)
        found.append(path.stat().st_size + extra)
    return np.array(found)


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_the_size_of_a_release_tells_no_more_than_the_digits_of_its_noise(arithmetic, tmp_path):
    """Numbers are written with as many digits as they need, so sizes vary with the noise, and alike on neighbouring tables."""

    def apart(one: np.ndarray, other: np.ndarray) -> float:
        return abs(one.mean() - other.mean()) / np.sqrt((one.var() + other.var()) / SEEDS)

    base = sizes(None, arithmetic, 0, tmp_path)
    for place, name in enumerate(("zeros", "full norm", "missing", "giant"), 1):
        found = sizes(TYPED[name], arithmetic, place * SEEDS, tmp_path)
        assert apart(base, found) < FARTHEST, name
        assert found.min() <= base.max()
        assert base.min() <= found.max()
    assert (
        apart(base, sizes(TYPED["zeros"], arithmetic, 9 * SEEDS, tmp_path, extra=12)) > FARTHEST
    )  # a field more would be seen


def test_known_a_query_that_fails_in_some_row_is_seen_to_fail():
    """docs/limits.md, "What a query did": a cast in a query is the custodian's, and try_cast is the remedy."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 10)])
    for last, fails in (("'2'", False), (f"'{CANARY}'", True)):
        for cast in ("cast", "try_cast"):
            table = duckdb.sql(f"select {cast}(t as double) x from (values ('1'), ({last})) v(t)")
            if fails and cast == "cast":
                with pytest.raises(UnreadableTableError) as caught:
                    dpgram.release(table, schema, epsilon=1, delta=1e-6)
                assert CANARY not in str(caught.value)
            else:
                dpgram.release(table, schema, epsilon=1, delta=1e-6)


def test_known_a_reader_that_infers_types_lets_a_row_decide():
    """docs/limits.md, "Types that depend on a cell": pandas calls a column of which the last date is gone a column of numbers."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Date("d", "2013-01-01", "2014-01-01"), dpgram.Numeric("x", 0, 1)])
    dpgram.release(pd.read_csv(io.StringIO("d,x\n2013-05-01,1\n,0\n")), schema, epsilon=1, delta=1e-6)
    inferred = pd.read_csv(io.StringIO("d,x\n,1\n,0\n"))
    with pytest.raises(ColumnTypeError):
        dpgram.release(inferred, schema, epsilon=1, delta=1e-6)


def test_known_a_quote_that_is_never_closed_swallows_the_rows_after_it(tmp_path, capfd, caplog):
    """docs/limits.md, "What a CSV row is": the number of rows changes with it; nothing else does."""
    seen = []
    for name, row in (("closed", TYPED["zeros"]), ("open", ("0", "0", '"a', "0", "2013-05-01"))):
        observed = observe(made_in(tmp_path / name, "csv", row), tmp_path / name, capfd, caplog, delta=1e-6)
        assert observed.published.pop("rows") == (ROWS if name == "closed" else PLACE + 1)
        seen.append(observed)
    assert seen[0] == seen[1]
