"""The pass on this machine: threads change nothing but the time, and every end is a clean one."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines import local, summing
from dpgram.engines.base import check_unchanged
from dpgram.engines.local import LocalPass
from dpgram.errors import MechanismError, OptionError, TableError, UnreadableTableError
from dpgram.rows.units import UnitIndex
from dpgram.sources.base import Piece, Source, batch_rows
from dpgram.sources.open import open_source
from dpgram.terms.bins import Bins

SCHEMA = dpgram.Schema(
    unit="row",
    row_bound=1.4,
    columns=[dpgram.Numeric("x", -2, 2), dpgram.Numeric("y", -1, 3), dpgram.Categorical("c", ["a", "b"], other=True)],
)
ROWS = 150_000


def make_table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    return pa.table({"x": x, "y": pa.array(x * 2, mask=rng.random(rows) < 0.1), "c": rng.choice(["a", "b", "z"], rows)})


TABLE = make_table()


def sums(total):
    return total.high.tolist(), total.low.tolist(), total.rows


def gram_of(table, threads, **options):
    return LocalPass(open_source(table, **options), SCHEMA, threads=threads).gram(1.4)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One table as one row group, as many, and as a folder of files."""
    folder = tmp_path_factory.mktemp("tables")
    pq.write_table(TABLE, folder / "one.parquet", row_group_size=ROWS)
    pq.write_table(TABLE, folder / "many.parquet", row_group_size=1000)  # more groups than parts
    (folder / "lake").mkdir()
    for i in range(5):
        pq.write_table(TABLE.slice(i * 30_000, 30_000), folder / "lake" / f"part-{i}.parquet", row_group_size=7000)
    return folder


@pytest.mark.parametrize("form", ["one.parquet", "many.parquet", "lake", "stream", "frame"])
def test_threads_and_kernels_give_the_same_bits(files, form, monkeypatch):
    def table():
        return {"stream": TABLE, "frame": TABLE.to_pandas()}.get(form, files / form)

    expected = sums(gram_of(TABLE, 1))
    assert expected[2] == ROWS
    for threads in (1, 2, 5):
        assert sums(gram_of(table(), threads)) == expected
    monkeypatch.setattr(summing, "kernel", lambda: None)
    for threads in (1, 3):
        assert sums(gram_of(table(), threads)) == expected


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", ">f8"])
def test_arrays_are_read_where_they_lie(dtype, order):
    values = np.array(np.random.default_rng(2).normal(0, 2, (70_000, 3)), dtype=dtype, order=order)
    schema = dpgram.Schema(unit="row", row_bound=1.1, columns=[dpgram.Numeric(n, -3, 3) for n in "abc"])
    direct = LocalPass(open_source(values, columns=list("abc")), schema, threads=2).gram(1.1)
    arrow = pa.table({n: values[:, i].astype("f8") for i, n in enumerate("abc")})
    assert sums(direct) == sums(LocalPass(open_source(arrow), schema, threads=1).gram(1.1))


def test_parquet_has_parts_for_threads(files):
    many = open_source(files / "many.parquet").parts(["x"])
    assert 1 < len(many) <= 64
    assert sum(piece.batch.num_rows for part in many for piece in part()) == ROWS
    assert len(open_source(files / "one.parquet").parts(["x"])) == 1
    assert len(open_source(files / "lake").parts(["x"])) == 5 * 5


def test_wide_tables_come_in_shorter_batches():
    assert batch_rows(3) == 65_536
    assert batch_rows(1000) == 2048
    assert batch_rows(10**6) == 1024


class Reader(Source):
    """A source of endless pieces that a test stops in its own way."""

    rows_of = "table"
    where, untyped, typed_by_format = "the table of a test", frozenset(), True
    columns = TABLE.schema

    def __init__(self, stop):
        self._stop, self.read = stop, 0

    def pieces(self, names):
        while True:
            self.read += 1
            self._stop(self.read)
            yield Piece(TABLE.slice(0, 5000).combine_chunks().to_batches()[0], None)


def working() -> int:
    return sum(thread.daemon and thread.is_alive() for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_interrupt_stops_every_thread(threads):
    before = working()

    def stop(count):
        if count == 5:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        LocalPass(Reader(stop), SCHEMA, threads=threads).gram(1.4)
    time.sleep(0.05)
    assert working() == before


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_worker_that_fails_stops_the_pass_without_a_word_about_cells(threads, monkeypatch):
    before = working()

    def broken(self, batch):
        raise ValueError("somebody's cell: 4711")

    monkeypatch.setattr(summing.Summing, "add", broken)
    with pytest.raises(UnreadableTableError) as caught:
        LocalPass(Reader(lambda count: None), SCHEMA, threads=threads).gram(1.4)
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert working() == before


def test_a_reader_that_fails_stops_the_workers():
    before = working()

    def stop(count):
        if count == 5:
            raise UnreadableTableError(where="a test", failure="OSError")

    with pytest.raises(UnreadableTableError):
        LocalPass(Reader(stop), SCHEMA, threads=2).gram(1.4)
    assert working() == before


@pytest.mark.parametrize("form", ["one.parquet", "many.parquet", "lake"])
@pytest.mark.parametrize("threads", [1, 2])
def test_progress_is_a_hundred_steps_whatever_the_table(files, form, threads):
    seen = []
    LocalPass(open_source(files / form), SCHEMA, threads=threads, progress=seen.append).gram(1.4)
    assert seen == [k / 100 for k in range(1, 101)]


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two"])
def test_threads_are_a_whole_number(threads):
    with pytest.raises(OptionError, match="whole number, 1 or more"):
        LocalPass(open_source(TABLE), SCHEMA, threads=threads)


def test_the_environment_may_say_how_many_threads(monkeypatch):
    monkeypatch.setenv("DPGRAM_THREADS", "none")
    with pytest.raises(OptionError, match="DPGRAM_THREADS"):
        LocalPass(open_source(TABLE), SCHEMA)
    monkeypatch.setenv("DPGRAM_THREADS", "3")
    assert sums(LocalPass(open_source(TABLE), SCHEMA).gram(1.4)) == sums(gram_of(TABLE, 1))


def test_units_that_could_not_be_counted_are_not_summed(monkeypatch):
    """Numbers of rows that are too small would let a unit count for more than it may."""

    def fails(self):
        raise MemoryError

    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1)], unit_id="who", rows_per_unit=1)
    made = LocalPass(open_source({"x": [0.5] * 4, "who": [1, 1, 1, 2]}), schema, threads=1)
    with monkeypatch.context() as full:
        full.setattr(UnitIndex, "_finish", fails)
        with pytest.raises(MemoryError):
            made.count_units()
    with pytest.raises(MechanismError, match="were not counted"):
        made.gram(1.0)


def test_counting_units_takes_no_more_memory_than_it_may(monkeypatch):
    monkeypatch.setattr(local, "INDEX_MEGABYTES", 12.0)
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1)], unit_id="who", rows_per_unit=1)
    table = {"x": np.zeros(10**6), "who": np.arange(10**6)}
    with pytest.raises(TableError, match="more than 12 MB"):
        LocalPass(open_source(table), schema, threads=2).count_units()
    assert LocalPass(open_source(table), schema, threads=2, memory=1000.0).count_units() == 10**6


def test_a_table_that_was_changed_is_told_without_its_number_of_rows():
    """Where units have ids, that number is protected."""
    check_unchanged("the table", 103, 103)
    check_unchanged("the table", None, 104)
    with pytest.raises(TableError) as caught:
        check_unchanged("the table", 103, 104)
    assert (
        str(caught.value) == "the table was changed since the rows of units were counted. Run again when nothing writes to it."
    )


@pytest.mark.parametrize("asked", ["sum", "counts", "kept"])
def test_a_table_whose_ids_change_after_they_were_counted_is_refused(asked):
    """Rows of one unit that get the ids of others would count in full."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)], unit_id="who", rows_per_unit=1)
    table = {"x": np.linspace(0, 1, 60), "who": np.repeat(np.arange(20), 3)}
    engine = LocalPass(open_source(table), schema, threads=2)
    assert engine.count_units() == 20
    ask = {
        "sum": lambda: engine.gram(1.0),
        "counts": lambda: engine.counts(Bins({"x": (0.25, 0.5)})),
        "kept": lambda: engine.kept(None),
    }[asked]
    ask()
    table["who"][0] = 1  # one row moves from one unit to another
    with pytest.raises(TableError, match="was changed since the rows of units were counted"):
        ask()
