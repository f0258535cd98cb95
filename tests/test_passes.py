"""A mechanism of several rounds: the same rows in every pass, or an error that says what to do, and nothing about the rows."""

from __future__ import annotations

import gzip
import os
import warnings
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import dpgram
from dpgram.engines.base import WholeProgress
from dpgram.engines.open import open_pass
from dpgram.errors import LargeDeltaWarning, OneShotError, OutputError, TableError
from dpgram.mechanisms.conversation import GramQuestion, Mechanism
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sources.arrow import ArrowStream
from dpgram.sources.base import Source
from dpgram.sources.csv import CsvFile
from dpgram.sources.frames import PolarsLazyFrame
from dpgram.sources.open import open_source
from dpgram.sources.query import Query
from tests import rounds
from tests.conftest import small_schema, small_table
from tests.ledger.kill_release import watched

SCHEMA, TABLE = small_schema(), small_table(3000)
ADDED = TABLE.slice(0, 7)
DRAWN = {"epsilon": 2.0, "delta": 1e-6, "insecure_seed": 3, "threads": 1}


def released(table, mechanism, schema=SCHEMA, **more):
    return dpgram.release(table, schema, mechanism=mechanism, **{**DRAWN, **more})


class Between:
    """A progress that calls ``act`` when pass ``number`` begins."""

    def __init__(self, act, number=2):
        self.act, self.number, self.seen, self.begun = act, number, [], []

    def __call__(self, fraction):
        self.seen.append(fraction)

    def begin(self, number, of):
        self.begun.append((number, of))
        if number == self.number:
            self.act()


def counted_reader(read):
    def batches():
        for batch in TABLE.to_batches(max_chunksize=500):
            read.append(batch.num_rows)
            yield batch

    return pa.RecordBatchReader.from_batches(TABLE.schema, batches())


# What can be read again


def sources(folder):
    pa.parquet.write_table(TABLE, folder / "t.parquet")
    pa.feather.write_feather(TABLE, folder / "t.arrow")
    TABLE.to_pandas().to_csv(folder / "t.csv", index=False)
    (folder / "many").mkdir()
    for part in "ab":
        pa.parquet.write_table(TABLE, folder / "many" / f"{part}.parquet")
    database = duckdb.connect()
    database.register("t", TABLE)
    yes = [
        (folder / "t.parquet", {}),
        (folder / "t.arrow", {}),
        (folder / "t.csv", {}),
        (folder / "many", {}),
        (TABLE, {}),
        (TABLE.to_batches()[0], {}),
        (TABLE.to_pandas(), {}),
        (pl.from_arrow(TABLE), {}),
        (pl.from_arrow(TABLE).lazy(), {}),
        ({name: TABLE[name].to_numpy() for name in TABLE.column_names}, {}),
        (database, {"query": "select * from t"}),
        ("duckdb:", {"query": f"select * from '{folder}/t.parquet'"}),
    ]
    no = [(TABLE.to_reader(), {}), (counted_reader([]), {}), (database.sql("select * from t"), {})]
    return [(*each, True) for each in yes] + [(*each, False) for each in no]


def test_every_source_says_whether_it_can_be_read_again_and_that_is_true(tmp_path):
    for table, more, expected in sources(tmp_path):
        found = open_pass(table, SCHEMA, threads=1, **more)
        assert found.rereadable is expected
        if expected:
            assert open_source(table, **more).rereadable
            with found.one_state():
                first, second = (found.gram(1.0).in_scaled_units() for _ in range(2))
            np.testing.assert_array_equal(first, second)
    matrix = open_source(np.ones((3, 2)), columns=["x", "y"])
    assert matrix.rereadable


def test_a_source_that_does_not_say_so_cannot_be_read_again():
    class Silent(Source):
        rows_of, where, untyped, typed_by_format, columns = "table", "a test", frozenset(), True, TABLE.schema

    assert not dpgram.engines.local.LocalPass(Silent(), SCHEMA).rereadable


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_a_mechanism_of_several_rounds_is_carried_to_its_end(in_rounds, arithmetic):
    made = released(TABLE, in_rounds, insecure_seed=None, arithmetic=arithmetic)
    assert made.mechanism == in_rounds
    assert made.rows == TABLE.num_rows


def test_a_pipe_is_refused_with_what_to_do(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    for path in (tmp_path / "t.csv", "/dev/null"):
        with pytest.raises(TableError, match="is a pipe or a device.*Write the table to a file first"):
            open_source(path)


# What cannot


def test_a_stream_that_must_not_be_kept_is_refused_before_anything_is_read_reserved_or_drawn(in_rounds, tmp_path):
    read, drawn, ledger = [], [], dpgram.SessionLedger(5, 1e-5)
    with (
        watched(lambda: drawn.append(1)),
        pytest.raises(
            OneShotError, match=r"can be read only once, but test-rounds .*cache=False.*--no-cache.*such as gaussian-noise"
        ),
    ):
        dpgram.release(counted_reader(read), SCHEMA, epsilon=1, delta=1e-6, mechanism=in_rounds, ledger=ledger, cache=False)
    assert read == drawn == list(ledger.entries) == []
    dpgram.release(
        counted_reader(read), SCHEMA, epsilon=1, delta=1e-6, ledger=ledger, cache=False
    )  # one pass is enough for others
    assert sum(read) == TABLE.num_rows


def costly(folder, read):
    """Tables that are read once, though a mechanism has several rounds, each made anew when it is asked for."""
    database = duckdb.connect()
    database.register("t", TABLE)
    TABLE.to_pandas().to_csv(folder / "t.csv", index=False)
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    one_shot = duckdb.connect()

    def over_a_reader():
        one_shot.register("r", counted_reader(read))
        return one_shot

    return [
        (lambda: counted_reader(read), {}),
        (lambda: database.sql("select * from t"), {}),
        (lambda: pl.from_arrow(TABLE).lazy(), {}),
        (lambda: database, {"query": "select * from t"}),
        (over_a_reader, {"query": "select * from r"}),
        (lambda: folder / "t.csv", {}),
        (lambda: folder / "t.csv.gz", {}),
    ]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kept", [{}, {"memory": 0}, {"memory": 0.02}], ids=["memory", "file", "both"])
def test_rows_that_are_kept_give_the_same_bits(in_rounds, tmp_path, threads, kept):
    """Also where a view of DuckDB is over a reader that can be read once, of which DuckDB does not tell."""
    expected, read = released(TABLE, in_rounds), []
    (tmp_path / "kept").mkdir()
    tables = costly(tmp_path, read)
    for table, more in tables:
        made = released(table(), in_rounds, cache=tmp_path / "kept", threads=threads, **kept, **more)
        np.testing.assert_array_equal(made.gram, expected.gram)
    assert sum(read) == 2 * TABLE.num_rows
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("mechanism", ["whitened-noise", "auto"])
def test_one_shot_readers_csv_and_queries_are_read_once_by_default(tmp_path, mechanism):
    read, reads = [], []
    expected = released(TABLE, mechanism)
    assert expected.mechanism == "whitened-noise"
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((CsvFile, "pieces"), (Query, "_fetched"), (PolarsLazyFrame, "pieces"), (ArrowStream, "pieces")):
            before = getattr(owner, name)
            patch.setattr(owner, name, lambda self, *args, before=before: reads.append(1) or before(self, *args))
        for number, (table, more) in enumerate(costly(tmp_path, read), 1):
            np.testing.assert_array_equal(released(table(), mechanism, **more).gram, expected.gram)
            assert len(reads) == number


def test_rows_are_kept_only_where_it_is_of_use(in_rounds, tmp_path, monkeypatch, caplog):
    """Not of what is read fast, not for one pass, not where it is forbidden. Where they are, it is said in one line, without a count."""
    caplog.set_level("INFO", "dpgram")
    sources(tmp_path)
    for table in (TABLE, tmp_path / "t.parquet", tmp_path / "t.arrow", tmp_path / "many", TABLE.to_pandas()):
        for cache in (None, True, False):
            released(table, in_rounds, cache=cache)
    released(tmp_path / "t.csv", in_rounds, cache=False)
    released(TABLE.to_reader(), "gaussian-noise", cache=True)
    released(tmp_path / "t.csv", "gaussian-noise")
    assert caplog.messages == []
    released(tmp_path / "t.csv", in_rounds)
    (line,) = caplog.messages
    assert "is read once, and its declared columns are kept until the release is made. Up to 256 MB are kept in memory" in line
    assert "--no-cache (cache=False)" in line
    assert "\n" not in line
    assert "3000" not in line


def test_a_cache_that_cannot_be_is_refused_before_anything_is_read(in_rounds, tmp_path):
    read = []
    with pytest.raises(OutputError, match="is not a folder. Give cache="):
        released(counted_reader(read), in_rounds, cache=tmp_path / "none")
    with pytest.raises(TableError, match="cache is a int and must be a folder, True .*, or False"):
        released(counted_reader(read), in_rounds, cache=3)
    assert read == []


# Tables that change


def write(path):
    more = pa.concat_tables([TABLE, ADDED])
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(more, path)
        case ".arrow":
            pa.feather.write_feather(more, path)
        case ".csv":
            more.to_pandas().to_csv(path, index=False)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.csv"])
def test_a_file_that_changes_between_passes_is_an_error(in_rounds, tmp_path, name, neighbours):
    sources(tmp_path)
    change = Between(lambda: write(tmp_path / name))
    with pytest.raises(TableError, match="was changed while it was being read") as caught:
        released(tmp_path / name, in_rounds, small_schema(neighbours=neighbours), progress=change, cache=False)
    assert not any(str(count) in str(caught.value).replace(str(tmp_path), "") for count in (3000, 3007, 7))


def test_another_number_of_rows_is_an_error_where_it_is_public_and_the_message_has_no_count(in_rounds, tmp_path):
    sources(tmp_path)
    query = {"query": f"select * from '{tmp_path}/t.parquet'"}
    change = Between(lambda: write(tmp_path / "t.parquet"))
    with pytest.raises(TableError, match="was changed between two passes.*--no-cache") as caught:
        released("duckdb:", in_rounds, progress=change, cache=False, **query)
    assert "300" not in str(caught.value)
    made = released("duckdb:", in_rounds, small_schema(neighbours="add-remove"), progress=change, cache=False, **query)
    assert made.rows is None


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_change_after_rows_were_kept_is_no_change(in_rounds, tmp_path, name):
    sources(tmp_path)
    change = Between(lambda: write(tmp_path / name))
    table, more = (tmp_path / name, {}) if name == "t.csv" else ("duckdb:", {"query": f"select * from '{tmp_path}/t.parquet'"})
    made = released(table, in_rounds, progress=change, **more)
    np.testing.assert_array_equal(made.gram, released(TABLE, in_rounds).gram)
    assert released(table, in_rounds, **more).rows == TABLE.num_rows + ADDED.num_rows


def test_all_passes_over_a_duckdb_connection_see_one_state(in_rounds):
    database = duckdb.connect()
    database.register("given", TABLE)
    database.execute("create table t as select * from given")
    other = database.cursor()
    for begun in (False, True):
        if begun:
            database.begin()
        act = Between(lambda: other.execute("insert into t select * from t limit 5"))
        before = other.sql("select count(*) from t").fetchall()[0][0]
        made = released(database, in_rounds, query="select * from t", progress=act, cache=False)
        assert made.rows == before
        assert other.sql("select count(*) from t").fetchall()[0][0] == before + 5
        assert database.sql("select count(*) from t").fetchall()[0][0] == (before if begun else before + 5)  # as it was left
    database.rollback()


def test_all_passes_over_postgresql_see_one_state(in_rounds, postgresql):
    with postgresql.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("visits", TABLE, mode="replace")
    act = Between(lambda: postgresql.run("insert into visits select * from visits limit 5"))
    query = {"query": "select * from visits"}
    assert released(postgresql.uri, in_rounds, progress=act, cache=False, **query).rows == TABLE.num_rows
    assert released(postgresql.uri, in_rounds, cache=False, **query).rows == TABLE.num_rows + 5
    kept, again = released(postgresql.uri, in_rounds, **query), released(postgresql.uri, in_rounds, cache=False, **query)
    np.testing.assert_array_equal(kept.gram, again.gram)


# Progress, warnings, interrupts


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("rounds", [1, 3, 7, 30])
def test_progress_runs_once_from_0_to_1_over_all_passes(in_rounds, rounds, late):
    bar = Between(lambda: None)
    released(TABLE, in_rounds, progress=bar, rounds=rounds, late=late)
    assert bar.seen == [step / 100 for step in range(1, 101)]
    of = [None if late and number == 1 else rounds for number in range(1, rounds + 1)]
    expected = list(enumerate(of, 1))
    assert bar.begun == ([] if expected == [(1, 1)] else expected)
    plain = []
    released(TABLE, "gaussian-noise", progress=plain.append)
    assert plain == bar.seen


def test_passes_share_what_is_left():
    seen = []
    whole = WholeProgress(seen.append)
    whole.begin(1, None)
    whole(1.0)
    assert seen[-1] == 0.12
    for number in (2, 3):
        whole.begin(number, 3)
        whole(0.5)
    assert seen[-1] == 0.78
    whole.begin(4, 3)  # one more than was said
    whole(1.0)
    assert seen[-1] == 1.0
    whole.end()
    assert seen == [step / 100 for step in range(1, 101)]


def test_a_large_delta_is_warned_of_once(in_rounds):
    with pytest.warns(LargeDeltaWarning) as caught:
        released(TABLE, in_rounds, delta=1e-3)
    assert [warning.filename for warning in caught] == [__file__]


def test_an_interrupt_between_rounds_names_what_stays_reserved(in_rounds, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    ledger = dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=9, delta=1e-5, unit="person", dataset="visits")
    with pytest.raises(KeyboardInterrupt) as caught:
        released(TABLE, in_rounds, ledger=ledger, out=tmp_path / "r.json", progress=Between(interrupt, 3))
    (note,) = caught.value.__notes__
    assert note.startswith(
        "Line 2 of the ledger stays reserved and counts as spent. It drew 2 of 3 rounds. Use `dpgram ledger settle 2 --ledger /"
    )
    session = dpgram.SessionLedger(9, 1e-5)
    with pytest.raises(KeyboardInterrupt) as caught:
        released(TABLE, in_rounds, ledger=session, progress=Between(interrupt, 1))
    assert "It drew no round. Use ledger.settle(1) to give back" in caught.value.__notes__[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.sqlite"]


def test_no_settling_is_offered_where_the_mechanism_itself_failed_after_it_drew(monkeypatch):
    """Its end may follow from what it drew, and then the rounds drawn cost more than they count for once settled."""

    def fails(after):
        def start(task, rng):
            conversation = rounds.start(task, rng)
            said = next(conversation)
            for _ in range(after):
                said = conversation.send((yield said))
            raise np.linalg.LinAlgError("Singular matrix")

        return start

    for after, offered in ((1, True), (2, False), (4, False)):  # before the first round is drawn; after one; after two
        monkeypatch.setitem(MECHANISMS, rounds.NAME, replace(rounds.MECHANISM, start=fails(after)))
        with pytest.raises(np.linalg.LinAlgError) as caught:
            released(TABLE, rounds.NAME, ledger=dpgram.SessionLedger(9, 1e-5))
        (note,) = caught.value.__notes__
        assert ("to give back" in note) == offered
        assert ("Leave the line as it is" in note) != offered


def test_a_mechanism_that_asks_twice_without_a_word_is_stopped(monkeypatch):
    def start(task, rng):
        yield GramQuestion(task.row_bound)
        yield GramQuestion(task.row_bound)

    honest = MECHANISMS["gaussian-noise"]
    monkeypatch.setitem(MECHANISMS, "sly", Mechanism("sly", "", "", honest.calibrate, start))
    with warnings.catch_warnings(), pytest.raises(dpgram.DpgramError, match="asks several times without declaring it"):
        released(TABLE, "sly")
