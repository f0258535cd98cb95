"""Spark sums to the bits of the local engine, whatever dies on the way: a real cluster of two executors, classic and Connect."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import os
import signal
import sys
import threading
import time
import types
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines import spark as engine
from dpgram.engines.open import open_pass
from dpgram.engines.persisted import is_plain, persisted
from dpgram.engines.spark import SparkPass
from dpgram.errors import ColumnTypeError, EmptyTableError, MechanismError, MissingColumnError, TableError, UnreadableTableError
from dpgram.mechanisms import whitening
from dpgram.mechanisms.ranges import next_bins
from dpgram.rows.coins import Coins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import first_scales
from tests.sources.test_canaries import CANARY, everything_said

pytestmark = [
    pytest.mark.xdist_group("spark"),  # one cluster for all of them
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

SCHEMA = dpgram.Schema(
    unit="person",
    row_bound=1.6,
    columns=[
        dpgram.Numeric("x", -2, 2, missing="midpoint"),
        dpgram.Numeric("money", 0, 50, missing=7),
        dpgram.Numeric("single", -1, 1, missing="midpoint"),
        dpgram.Categorical("c", ["a", "b", "ü"], other=True, missing="level"),
        dpgram.Categorical("k", [0, 1, 2], other=True),
        dpgram.Boolean("b"),
        dpgram.Date("day", "2013-01-01", "2014-06-01", missing="midpoint"),
        dpgram.Date("when", "2013-01-01", "2014-06-01", missing="midpoint"),
        dpgram.Date("local", "2013-01-01", "2014-06-01", missing="midpoint"),
    ],
    derived=[
        dpgram.Product("xm", of=("x", "money")),
        dpgram.Product("xc", of=("x", "c")),
        dpgram.Log1p("lm", of="money"),
        dpgram.DatePart("weekday", of="when", part="weekday", levels=True, missing="level"),
    ],
)
FILES = 5


def make_table(rows: int = 6000) -> pa.Table:
    rng = np.random.default_rng(5)
    seconds = rng.integers(1_350_000_000, 1_410_000_000, rows)
    missing = rng.random(rows) < 0.1
    return pa.table(
        {
            "unused": pa.array([[1.0]] * rows),
            "x": pa.array(rng.normal(size=rows), mask=missing),
            "money": pa.array([decimal.Decimal(int(v)) / 100 for v in rng.integers(-500, 8000, rows)], pa.decimal128(20, 2)),
            "single": pa.array(rng.normal(size=rows).astype(np.float32)),
            "c": pa.array(rng.choice(["a", "b", "ü", "z", ""], rows), mask=np.roll(missing, 1)),
            "k": pa.array(rng.integers(0, 5, rows).astype(np.int16)),
            "b": pa.array(rng.random(rows) < 0.3, mask=np.roll(missing, 2)),
            "day": pa.array(seconds // 86400, pa.int32()).cast(pa.date32()),
            "when": pa.array(seconds * 10**6 + 999_999, pa.timestamp("us", "UTC"), mask=np.roll(missing, 3)),
            "local": pa.array(seconds * 10**6, pa.timestamp("us")),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table in five Parquet files, one of them empty."""
    place, table = tmp_path_factory.mktemp("spark") / "table", make_table()
    place.mkdir()
    edges = [0, 1500, 1500, 3000, 4500, len(table)]
    for i in range(FILES):
        pq.write_table(table.slice(edges[i], edges[i + 1] - edges[i]), place / f"{i}.parquet")
    return place


@pytest.fixture(scope="module")
def expected(folder):
    return release(folder)


def release(table, schema=SCHEMA, **changes):
    given = {"epsilon": 1, "delta": 1e-6, "insecure_seed": 11, "mechanism": "gaussian-noise", **changes}
    return dpgram.release(table, schema, **given).gram


def test_the_bits_of_the_local_engine(spark, folder, expected, monkeypatch):
    """And no row takes the way by which any other frame is read."""
    from pyspark.sql.dataframe import DataFrame

    monkeypatch.setattr(DataFrame, "__arrow_c_stream__", None)
    frame = spark.read.parquet(str(folder))
    assert np.array_equal(release(frame), expected)
    seen = []
    assert np.array_equal(release(frame.repartition(7), progress=seen.append), expected)
    assert seen == [i / 100 for i in range(1, 101)]


def test_the_bits_of_the_local_engine_through_a_map(spark, folder):
    dim = len(SCHEMA.encoded)
    through = PublicMap.near(np.random.default_rng(dim).normal(size=(dim, dim)) / 4)
    ours, local = (open_pass(table, SCHEMA).gram(1.0, through) for table in (spark.read.parquet(str(folder)), folder))
    assert np.array_equal(ours.high, local.high)
    assert np.array_equal(ours.low, local.low)
    assert (ours.rows, ours.through) == (local.rows, through.digest)
    with pytest.raises(MechanismError, match=f"of 2 columns cannot map rows of {dim}"):
        open_pass(spark.read.parquet(str(folder)), SCHEMA).gram(1.0, PublicMap.near(np.eye(2)))


def test_the_bits_of_the_local_engine_at_several_scales(spark, folder):
    dim, scales = len(SCHEMA.encoded), first_scales(4)
    through = PublicMap.near(np.random.default_rng(dim).normal(size=(dim, dim)) / 4)
    ours, local = (open_pass(table, SCHEMA).gram(1.0, through, scales) for table in (spark.read.parquet(str(folder)), folder))
    assert local.low.any(axis=(1, 2)).sum() > 1  # some are long
    assert np.array_equal(ours.high, local.high)
    assert np.array_equal(ours.low, local.low)
    assert (ours.rows, ours.through) == (local.rows, local.through)


def test_the_counts_in_bins_of_the_local_engine_and_learnt_scales(spark, folder):
    bins = next_bins([], SCHEMA.looked_at)
    ours, local = (open_pass(table, SCHEMA) for table in (spark.read.parquet(str(folder)), folder))
    counts, expected = ours.counts(bins), local.counts(bins)
    assert np.array_equal(counts.high, expected.high)
    assert counts.rows == expected.rows > 0
    name, (lower, upper) = next(iter(SCHEMA.looked_at.items()))
    learnt = replace(SCHEMA, learnt={name: (lower, lower + (upper - lower) / 100)})
    again, expected = (one.under(learnt).gram(1.0) for one in (ours, local))
    assert np.array_equal(again.high, expected.high)
    assert np.array_equal(again.low, expected.low)


def test_rows_that_are_kept_on_the_driver_have_the_bits_of_the_table(spark, folder):
    local, there = open_pass(folder, SCHEMA), open_pass(spark.read.parquet(str(folder)), SCHEMA)
    through = PublicMap.near(np.random.default_rng(6).normal(size=(len(SCHEMA.encoded),) * 2))
    kept, rows = there.kept(None)
    assert rows == 6000
    for one, other in ((kept.gram(1.6), local.gram(1.6)), (kept.gram(1.0, through), local.gram(1.0, through))):
        assert np.array_equal(one.in_whole_numbers()[0], other.in_whole_numbers()[0])
    some, rows = there.kept(Coins(bytes(32), 0.25))
    assert rows == 6000
    assert abs(some.gram(1.6).rows - 1500) < 6 * 6000**0.5 / 2


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_whitened_release_takes_two_jobs_over_the_rows_and_repeats_itself(classic, folder, monkeypatch, neighbours):
    """A count of rows besides, where their number is public; with a sample that is the whole table, the bits of the local engine."""
    schema = dataclasses.replace(SCHEMA, neighbours=neighbours)
    frame = classic.read.parquet(str(folder))
    given = {"mechanism": "whitened-noise", "epsilon": 5, "table_rows": 6000}
    jobs: list[str] = []
    for name in ("count", "kept", "gram", "counts"):
        right = getattr(SparkPass, name)
        monkeypatch.setattr(SparkPass, name, lambda self, *given, n=name, r=right: jobs.append(n) or r(self, *given))
    counting = ["count"] * (neighbours == "replace")
    assert np.array_equal(release(frame, schema, **given), release(folder, schema, **given))
    assert jobs == [*counting, "kept"]
    jobs.clear()
    monkeypatch.setattr(whitening, "FEWEST_STEERING", 100)
    monkeypatch.setattr(whitening, "ENOUGH", 5.0)
    first = release(frame, schema, **given)
    assert jobs == [*counting, "kept", "gram"]
    assert np.array_equal(first, release(frame, schema, **given))


def counted(frame, tmp_path):
    """The frame by way of a Python function, and how many times a partition of it was computed."""
    log = tmp_path / "computed"
    log.touch()

    def through(batches):
        with open(log, "a") as file:
            file.write("x")
        yield from batches

    return frame.mapInArrow(through, frame.schema), log


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_more_than_a_scan_is_computed_once_and_let_go_of(spark, classic, folder, tmp_path, monkeypatch, fails):
    monkeypatch.setattr(whitening, "FEWEST_STEERING", 100)
    monkeypatch.setattr(whitening, "ENOUGH", 5.0)
    frame, log = counted(spark.read.parquet(str(folder)).drop("unused"), tmp_path)
    parts = len(list(folder.glob("*.parquet")))
    given = {"mechanism": "whitened-noise", "epsilon": 5}
    if fails:
        monkeypatch.setattr(SparkPass, "gram", lambda self, *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release(frame, **given)
    else:
        release(frame, **given)
    assert len(log.read_text()) == parts
    assert not frame.storageLevel.useMemory
    assert classic.sparkContext._jsc.getPersistentRDDs().size() == 0


def test_a_plain_scan_is_not_persisted_and_what_the_user_keeps_stays(spark, folder):
    scan = spark.read.parquet(str(folder))
    assert is_plain(scan)
    assert is_plain(scan.where("k > 1").select("x", "k"))
    for long in (scan.groupBy("k").count(), scan.orderBy("x"), scan.join(scan.select("k").distinct(), "k")):
        assert not is_plain(long)
    own = scan.groupBy("k").count().persist()
    own.count()
    try:
        assert is_plain(own)
        with persisted(own) as same:
            assert same is own
        assert own.storageLevel.useMemory
    finally:
        own.unpersist()


def test_spark_counts_the_rows_that_it_sums(spark, folder):
    frame = spark.read.parquet(str(folder))
    for each, rows in ((frame, 6000), (frame.where("x > 0"), None), (frame.limit(0), 0)):
        found = open_pass(each, SCHEMA)
        assert found.count() == found.gram(1.0).rows
        assert rows is None or found.count() == rows


def test_spark_counts_malformed_rows_as_it_sums_them(spark, tmp_path):
    """A reader that drops them looks only at the columns that it has to."""
    (tmp_path / "t.csv").write_text("x,y\n0.1,2\nsecret,2\n0.3,secret\n0.4,2\n")
    frame = spark.read.schema("x double, y double").options(header="true", mode="DROPMALFORMED").csv(str(tmp_path / "t.csv"))
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", 0, 3), dpgram.Numeric("x", 0, 1)])
    found = open_pass(frame, schema)
    assert found.count() == found.gram(1.0).rows == 2


def test_tables_views_and_queries(classic, folder, expected):
    frame = classic.read.parquet(str(folder))
    classic.sql("create database if not exists sales")
    frame.write.saveAsTable("sales.visits", mode="overwrite")
    frame.createOrReplaceTempView("seen")
    asked = {"table": ("spark:sales.visits", None), "view": ("spark:seen", None), "query": ("spark:", "select * from seen")}
    for kind, (table, query) in asked.items():
        assert np.array_equal(release(table, query=query), expected)
        assert open_pass(table, SCHEMA, query=query).rows_of == ("table" if kind == "table" else "result")
    assert open_pass(frame, SCHEMA).rows_of == "result"
    with pytest.raises(UnreadableTableError, match="the Spark table sales.nobody .*TABLE_OR_VIEW_NOT_FOUND.*show tables"):
        release("spark:sales.nobody")
    with pytest.raises(UnreadableTableError, match="the answer to the Spark query .*PARSE_SYNTAX_ERROR"):
        release("spark:", query="selec 1")
    with pytest.raises(TableError, match="Pass one of the two"):
        release("spark:")
    with pytest.raises(TableError, match="Pass one of the two"):
        release("spark:seen", query="select 1")


def test_a_pandas_on_spark_frame_is_a_spark_frame(classic, folder, expected, monkeypatch):
    """In the place of the real one, which does not work with every pandas."""

    class Frame:
        def to_spark(self):
            return classic.read.parquet(str(folder))

    monkeypatch.setitem(sys.modules, "pyspark.pandas.frame", types.SimpleNamespace(DataFrame=Frame))
    assert np.array_equal(release(Frame()), expected)


def test_a_missing_table_over_connect(connect):
    with pytest.raises(UnreadableTableError, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        engine.SparkPass(engine.SparkTable(connect.table("nobody")), SCHEMA)
    assert caught.value.__context__ is None


def test_few_rows_and_none(spark):
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(f"x{i}", -1, 1) for i in range(8)])
    for rows in (1, 3):  # fewer than columns, and most partitions empty
        table = pa.table({f"x{i}": np.linspace(-1, 1, rows) / (i + 1) for i in range(8)})
        frame = spark.createDataFrame(table).repartition(6)
        assert np.array_equal(release(frame, schema, delta=1e-9), release(table, schema, delta=1e-9))
    nobody = spark.createDataFrame(table).where("x0 > 5")
    with pytest.raises(EmptyTableError):
        release(nobody, schema)
    lenient = dpgram.Schema(unit="p", columns=schema.columns, neighbours="add-remove")
    assert np.array_equal(release(nobody, lenient), release(table.slice(0, 0), lenient))
    never = spark.sql(f"select {', '.join(f'1.0 x{i}' for i in range(8))} where false")  # Spark reads no partition at all
    assert np.array_equal(release(never, lenient), release(table.slice(0, 0), lenient))


@pytest.mark.parametrize("last", ["y", "X"])  # all different to Spark, and two the same
def test_names_that_mean_something_to_spark(last, classic):
    names = ["a.b", "tick`s", "x", "with space", "*", last]
    table = pa.table({name: np.linspace(-1, 1, 50) ** (i + 1) for i, name in enumerate(names)})
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in reversed(names)])
    classic.conf.set("spark.sql.caseSensitive", "true")  # only to make the frame
    frame = classic.createDataFrame(table)
    classic.conf.unset("spark.sql.caseSensitive")
    assert np.array_equal(release(frame, schema, delta=1e-9), release(table, schema, delta=1e-9))


def test_a_view_that_has_changed_gives_no_other_column(spark):
    """Connect looks at the view again when it runs: the column in that place may be one that nobody declared."""
    table = pa.table({"x": np.linspace(-0.1, 0.1, 50), "secret": np.linspace(0.8, 1, 50)})
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -1, 1)])
    spark.createDataFrame(table).createOrReplaceTempView("both")
    spark.sql("select x, secret from both").createOrReplaceTempView("changing")
    frame = spark.table("changing")
    assert frame.columns == ["x", "secret"]
    spark.sql("select secret, x from both").createOrReplaceTempView("changing")
    assert np.array_equal(release(frame, schema, delta=1e-9), release(table, schema, delta=1e-9))


def test_names_and_types_are_checked_before_a_row_is_read(spark):
    frame = spark.sql("select array(1.0) x, 'a' c, 1 n, cast(null as void) v, interval 1 day t")
    for column, error, words in (
        (dpgram.Numeric("x", 0, 1), ColumnTypeError, r"array<decimal\(2,1\)>"),
        (dpgram.Numeric("t", 0, 1), ColumnTypeError, "interval day"),
        (dpgram.Numeric("c", 0, 1), ColumnTypeError, "the table holds string"),
        (dpgram.Date("n", "2013-01-01", "2014-01-01"), ColumnTypeError, "the table holds int32"),
        (dpgram.Numeric("z", 0, 1), MissingColumnError, "It has x, c, n, v, t"),
    ):
        with pytest.raises(error, match=words):
            open_pass(frame, dpgram.Schema(unit="p", columns=[column]))
    draft = dpgram.draft_schema(frame)
    assert 'name = "c"\nkind = "categorical"' in draft
    assert "array<decimal(2,1)>" in draft
    twice = spark.sql("select 1 a, 2 a")
    with pytest.raises(TableError, match="several columns named 'a'"):
        open_pass(twice, dpgram.Schema(unit="p", columns=[dpgram.Numeric("a", 0, 1)]))
    stream = spark.readStream.format("rate").load()
    with pytest.raises(TableError, match="is a stream"):
        open_pass(stream, dpgram.Schema(unit="p", columns=[dpgram.Numeric("value", 0, 1)]))
    nothing = dpgram.Schema(unit="p", columns=[dpgram.Numeric("v", 0, 1), dpgram.Numeric("n", 0, 1)])
    assert np.array_equal(
        release(frame, nothing, delta=0.5), release(pa.table({"v": pa.nulls(1), "n": [1]}), nothing, delta=0.5)
    )
    for wrong in ({"columns": ["x"]}, {"device": "cpu"}, {"query": "select 1"}):
        with pytest.raises(TableError):
            open_pass(frame, nothing, **wrong)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("session.timeZone", "Pacific/Kiritimati"),
        ("execution.arrow.useLargeVarTypes", "true"),
        ("execution.arrow.maxRecordsPerBatch", "-1"),
        ("adaptive.enabled", "false"),
    ],
)
def test_settings_do_not_change_the_bits(setting, value, connect, folder, expected):
    before = connect.conf.get(f"spark.sql.{setting}")
    connect.conf.set(f"spark.sql.{setting}", value)
    try:
        assert np.array_equal(release(connect.read.parquet(str(folder))), expected)
    finally:
        connect.conf.set(f"spark.sql.{setting}", before)


def dying(frame, place, how):
    """The frame, read through a function that kills its worker or its executor, once, after the first rows of some partition."""
    marker = str(place / how)

    def read(batches):
        import os
        import signal

        for batch in batches:
            yield batch.slice(0, 10)
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                victim = os.getpid()
                if how == "executor":
                    daemon = os.getppid()
                    with open(f"/proc/{daemon}/stat") as file:
                        victim = int(file.read().rpartition(")")[2].split()[1])
                os.kill(victim, signal.SIGKILL)
            yield batch.slice(10)

    return frame.mapInArrow(read, frame.schema)


@pytest.mark.parametrize("how", ["worker", "executor"])
def test_a_death_in_the_middle_counts_no_row_twice(how, classic, folder, expected, tmp_path):
    """The death of an executor also takes what it had kept for the next stage: the shuffle before it is done again in part."""
    frame = classic.read.parquet(str(folder)).drop("unused")
    frame = frame.repartition(4) if how == "executor" else frame
    assert np.array_equal(release(dying(frame, tmp_path, how)), expected)
    assert (tmp_path / how).exists()


def failing_function(spark):
    def fail(batches):
        for _ in batches:
            raise ValueError("bad cell CANARY-SMITH")
        yield from ()

    return spark.range(20).selectExpr("cast(id as double) x").mapInArrow(fail, "x double")


def failing_cast(spark):
    return spark.sql(f"select cast(t as double) x from values ('1'), ('{CANARY}') v(t)").repartition(2)


@pytest.mark.parametrize("make", [failing_function, failing_cast])
def test_what_fails_on_a_worker_is_told_without_cells(make, spark, capfd, monkeypatch):
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 10)])
    spark_said = []
    what_failed = engine._what_failed
    monkeypatch.setattr(engine, "_what_failed", lambda error: (spark_said.append(str(error)), what_failed(error))[1])
    with pytest.raises(UnreadableTableError, match="cannot be read") as caught:
        release(make(spark), schema)
    assert CANARY in spark_said[0]  # the canary sings without the gate
    assert CANARY not in everything_said(caught.value) + "".join(capfd.readouterr())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_our_own_worker_quotes_no_cell_even_to_spark(classic, monkeypatch):
    """What Spark writes to the logs of the cluster when our function fails there."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 10)])
    frame = classic.sql(f"select 1.0 x, '{CANARY}' c")
    monkeypatch.setattr(engine.SparkPass, "_declared", lambda self: frame)  # two columns where one is due
    spark_said = []
    what_failed = engine._what_failed
    monkeypatch.setattr(engine, "_what_failed", lambda error: (spark_said.append(str(error)), what_failed(error))[1])
    with pytest.raises(UnreadableTableError, match=r"cannot be read \(ValueError"):
        release(frame, schema)
    assert "details withheld" in spark_said[0]
    assert CANARY not in spark_said[0]


def test_an_interrupt_stops_the_job(spark, classic):
    """By its tag: the handler that Spark sets stops all jobs of a classic session, and is not there in every program."""

    def hang(batches):
        import time

        time.sleep(120)
        yield from batches

    frame = spark.range(10).selectExpr("cast(id as double) x").mapInArrow(hang, "x double")
    jobs = classic.sparkContext.statusTracker()

    def press():
        for _ in range(600):
            if jobs.getActiveJobsIds():
                break
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=press).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            release(frame, dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 10)]))
    finally:
        signal.signal(signal.SIGINT, handler)
    for _ in range(100):
        if not jobs.getActiveJobsIds():
            break
        time.sleep(0.1)
    assert not jobs.getActiveJobsIds()


class Interrupted:
    """A frame whose job the user interrupts, and the session that is to hear of it, which it may be unable to."""

    def __init__(self, gone=False):
        self.heard, self.sparkSession, self.gone = [], self, gone

    def getTags(self):
        return {"the user's"}

    def addTag(self, tag):
        self.heard.append(("add", tag))

    def removeTag(self, tag):
        self.heard.append(("remove", tag))

    def interruptTag(self, tag):
        self.heard.append(("interrupt", tag))
        if self.gone:
            raise RuntimeError("the session has stopped")

    def collect(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("gone", [False, True])
def test_an_interrupt_reaches_the_server_by_its_tag(gone, monkeypatch):
    """And the tag goes with the job; a session that is gone makes no other error of an interrupt."""
    frame = Interrupted(gone)
    monkeypatch.setattr(engine, "_is_connect", lambda session: True)
    with pytest.raises(KeyboardInterrupt):
        engine._collect(frame)
    (users, our, removed, interrupted) = frame.heard
    assert users == ("add", "the user's")
    assert removed == ("remove", our[1])
    assert interrupted == ("interrupt", our[1])


def test_an_interrupt_is_repeated_until_the_job_has_ended(monkeypatch):
    """Spark does not hear of a job that it has not begun yet."""
    answer, heard = Future(), []

    def interrupt(tag):
        heard.append(tag)
        if len(heard) == 3:
            answer.set_exception(RuntimeError("cancelled"))

    monkeypatch.setattr(engine, "STOP_PAUSE", 0.01)
    engine._stop(engine._Tags(heard.append, heard.append, interrupt), "ours", answer)
    assert heard == ["ours"] * 3


def test_a_session_that_ends_before_the_job_begins_is_an_error(monkeypatch):
    """It must not be waited for without end."""

    def broken(session, call):
        def run():
            raise AssertionError("no active context")

        return run

    monkeypatch.setattr(engine, "_is_connect", lambda session: True)
    monkeypatch.setattr(engine, "_with_settings", broken)
    with pytest.raises(AssertionError):
        engine._collect(Interrupted())


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(dpgram.DpgramError, match=r"pip install 'dpgram\[spark\]'"):
        release("spark:sales.visits")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ModuleNotFoundError: No module named 'pyarrow'", "the executors' Python has no pyarrow"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker", "PYTHON_VERSION_MISMATCH"),
        ("bigger than spark.driver.maxResultSize (1024.0 MiB)", "the answer is larger than spark.driver.maxResultSize"),
        ("a part of the table cannot be read (MemoryError; details withheld", "MemoryError"),
        ("a part of the table cannot be read (Smith; details withheld", "RuntimeError"),
        (f"The value '{CANARY}' cannot be cast", "RuntimeError"),
    ],
)
def test_failures_get_names_that_hold_no_cell(said, told):
    assert engine._what_failed(RuntimeError(said))[0] == told


def test_dates_before_the_epoch(classic):
    table = pa.table({"d": pa.array([datetime.date(1969, 12, 31), datetime.date(1582, 10, 15), None], pa.date32())})
    schema = dpgram.Schema(unit="p", columns=[dpgram.Date("d", "1500-01-01", "2000-01-01")])
    assert np.array_equal(release(classic.createDataFrame(table), schema, delta=1e-9), release(table, schema, delta=1e-9))


def test_a_cell_that_planning_looks_at_is_not_quoted(spark, tmp_path, capfd):
    """Spark evaluates casts of rows that stand in the query itself while it plans: the failure is ours, said once, and paid for."""
    frame = spark.sql(f"select cast(x as double) as x from values ('{CANARY}') t(x)")
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", -3, 3)])
    ledger = dpgram.FileLedger.create(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5, unit="row", dataset="rows")
    with pytest.raises(UnreadableTableError) as raised:
        dpgram.release(frame, schema, epsilon=1, delta=1e-6, mechanism="whitened-noise", ledger=ledger)
    said = capfd.readouterr()
    assert CANARY not in said.out + said.err + everything_said(raised.value)
    assert len(ledger.account().entries) == 1
