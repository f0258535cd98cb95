"""Rows that are kept: the same cells in the same order, nobody else's to read, and nothing left of them."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow as pa
import pytest

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.errors import OptionError, OutputError, TableError
from dpgram.mechanisms.whitening import KEPT_MEGABYTES
from dpgram.sources import store
from dpgram.sources.base import Piece, Source
from dpgram.sources.cache import Cached, Keep, memory_bytes
from dpgram.sources.open import open_source
from dpgram.sources.store import Store, open_cache
from tests.artifact.kill_loop import ended, forked
from tests.conftest import small_schema, small_table
from tests.processes import open_files

ROOT = Path(__file__).parents[2]
TABLE = small_table(3000)
NAMES = TABLE.column_names
SECRET = "4711"
PLACES = {"memory": 10**9, "both": 20_000, "file": 0}  # bytes that may be held in memory


class Batches(Source):
    """A source of the given batches, once."""

    where, rows_of, typed_by_format = "the table of a test", "result", True

    def __init__(self, *batches):
        self._batches, self.columns = iter(batches), batches[0].schema

    def pieces(self, names):
        for batch in self._batches:
            yield Piece(batch, None)


def as_it_is(batch):
    names = batch.schema.names
    return pa.RecordBatch.from_arrays([pa.array(batch.column(name)) for name in names], names=names)


def kept(source, folder, memory=0, names=None, parse=as_it_is):
    return Cached(source, names or source.columns.names, parse, Keep(folder, memory, asked=True))


def small_batches():
    return Batches(*TABLE.to_batches(max_chunksize=100))


def cells(source, names):
    found = [piece.batch for piece in source.pieces(names)]
    return [(batch.schema.types, [batch.column(name).to_pylist() for name in names]) for batch in found]


def own_files():
    """Status of the regular files that this process has open and that have no name."""
    found = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            status = os.fstat(int(entry.name))
        except OSError:  # the scan's own
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
            found.append((status.st_ino, status))
    return dict(found)


def mixed_batches():
    """Batches that differ in type, dictionaries that differ, columns without rows, missing cells."""
    one = pa.record_batch(
        {"t": pa.array([b"a", None], pa.binary()), "n": [1, 2], "c": pa.array(["x", "y"]).dictionary_encode()}
    )
    two = pa.record_batch(
        {"t": pa.array([b"b"], pa.large_binary()), "n": [None], "c": pa.array(["z"]).dictionary_encode()},
        one.schema.set(0, pa.field("t", pa.large_binary())),
    )
    three = pa.record_batch(
        {"t": pa.array([b"c"], pa.binary()), "n": [4], "c": pa.array(["w"]).dictionary_encode()}, one.schema
    )
    return [one, three, two, one.slice(0, 0), one.slice(1), two]


def check_every_pass(folder, memory):
    """Each pass sees the cells and types of the first, all of them, in the order of the table."""
    batches = mixed_batches()
    cached = kept(Batches(*batches), folder, memory)
    with cached.one_state():
        passes = [cells(cached, ["t", "n", "c"]) for _ in range(3)]
    expected = [(b.schema.types, [b.column(name).to_pylist() for name in ("t", "n", "c")]) for b in batches]
    assert passes == [expected] * 3


@pytest.mark.parametrize("memory", [10**9, 2000, 0])
def test_every_pass_sees_the_cells_and_types_of_the_first(tmp_path, memory):
    check_every_pass(tmp_path, memory)


def without_last(pieces):
    return lambda self, run: list(pieces(self, run))[:-1]


def turned_round(whole):
    return lambda self: whole(self)[::-1]


def without_nulls(stream):
    def filled(batch):
        columns = [column.fill_null(0) if pa.types.is_integer(column.type) else column for column in batch.columns]
        return stream(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    return filled


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        (Store, "_pieces", without_last),
        (Store, "_whole", turned_round),
        (store, "_stream", without_nulls),
        (
            Store,
            "_encrypted",
            lambda encrypted: lambda self, data, at: encrypted(self, data, 0 if len(self._batches) < 6 else at),
        ),
    ],
)
def test_the_check_above_finds_planted_mistakes(tmp_path, monkeypatch, owner, name, mistake):
    monkeypatch.setattr(owner, name, mistake(getattr(owner, name)))
    with pytest.raises((AssertionError, TableError)):
        check_every_pass(tmp_path, 0)


@pytest.mark.parametrize("memory", PLACES.values(), ids=PLACES)
def test_threads_do_not_change_the_order(tmp_path, memory):
    """Batches take longer or shorter to be parsed, so that they end in another order than they began."""

    def slowly(batch):
        time.sleep(random.Random(batch.num_rows).random() / 100)
        return as_it_is(batch)

    sizes = [1 + (37 * i) % 100 for i in range(40)]
    starts = [sum(sizes[:i]) for i in range(40)]
    batches = [TABLE.slice(start, size).to_batches()[0] for start, size in zip(starts, sizes, strict=True)]
    cached = kept(Batches(*batches), tmp_path, memory, parse=slowly)
    first = LocalPass(cached, small_schema(), threads=4)
    with cached.one_state():
        gram = first.gram(1.0)
        assert [rows[1][0] for rows in cells(cached, NAMES)] == [b.column("x").to_pylist() for b in batches]
        assert first.count() == sum(sizes)
        assert (first.gram(1.0).in_scaled_units() == gram.in_scaled_units()).all()


def test_a_batch_that_was_read_and_not_kept_is_noticed(tmp_path):
    """An engine that forgets one must not make a smaller table."""
    cached = kept(small_batches(), tmp_path)
    with cached.one_state():
        (part,) = cached.parts(NAMES)
        for number, piece in enumerate(part()):
            if number != 29:
                cached.kept(piece.batch)
        with pytest.raises(TableError, match="was not fully read"):
            cached.parts(NAMES)


def test_arrays_and_matrices_are_kept_too(tmp_path):
    for table, more in (
        ({"x": TABLE["x"].to_numpy()}, {}),
        (TABLE.select(["x", "y"]).to_pandas().to_numpy(), {"columns": ["x", "y"]}),
    ):
        cached = kept(open_source(table, **more), tmp_path)
        with cached.one_state():
            read = [pa.concat_arrays([pa.array(p.batch.column("x")) for p in cached.pieces(["x"])]) for _ in range(2)]
        assert read[0].equals(read[1])
        assert len(read[0]) == TABLE.num_rows


def test_a_table_without_rows_is_one(tmp_path):
    cached = kept(open_source(TABLE.slice(0, 0).to_reader()), tmp_path)
    with cached.one_state():
        assert [list(cached.pieces(NAMES)) for _ in range(2)] == [[], []]
        assert cached.count(NAMES) == 0


def test_two_readers_do_not_disturb_each_other(tmp_path):
    cached = kept(small_batches(), tmp_path)
    with cached.one_state():
        expected = cells(cached, NAMES)
        pairs = list(zip(cached.pieces(NAMES), cached.pieces(NAMES), strict=True))
    assert all(one.batch.equals(two.batch) for one, two in pairs)
    assert len(pairs) == len(expected)


# In memory up to the limit, and in a file beyond it


@pytest.mark.parametrize("place", PLACES)
def test_the_limit_is_met_and_the_rest_is_in_the_file(tmp_path, place):
    before = own_files()
    cached = kept(small_batches(), tmp_path, PLACES[place])
    with cached.one_state():
        list(cached.pieces(NAMES))
        held = sum(batch.size for batch in cached._store._batches.values() if batch.held is not None)
        written = [status.st_size for number, status in own_files().items() if number not in before]
        everything = sum(batch.size for batch in cached._store._batches.values())
    assert held <= PLACES[place]
    assert held + sum(written) == everything
    assert (held > 0, bool(written)) == {"memory": (True, False), "both": (True, True), "file": (False, True)}[place]


def test_a_slice_does_not_hold_what_it_was_cut_from(tmp_path):
    """Batches of one large one, of which the limit counts nothing twice."""
    (large,) = TABLE.combine_chunks().to_batches()
    cached = kept(Batches(*[large.slice(start, 100) for start in range(0, 3000, 100)]), tmp_path, 10**9)
    with cached.one_state():
        list(cached.pieces(NAMES))
        assert sum(batch.held.get_total_buffer_size() for batch in cached._store._batches.values()) < 1.5 * large.nbytes


def test_a_limit_that_makes_no_sense_is_refused_before_anything_is_read():
    assert memory_bytes(KEPT_MEGABYTES) == 256_000_000
    for memory in (-1, float("nan"), float("inf"), 1e303, "1 GB", None, True):
        with pytest.raises(OptionError, match="memory is .* and must be a number of megabytes, 0 or more"):
            dpgram.release("nowhere.csv", small_schema(), epsilon=1, delta=1e-6, memory=memory)


@pytest.mark.parametrize("how", ["without a name", "unlinked at once"])
def test_the_file_has_no_name_and_is_the_users_alone(tmp_path, monkeypatch, how):
    if how == "unlinked at once":
        monkeypatch.delattr(os, "O_TMPFILE")
    before = own_files()
    mask = os.umask(0)
    try:
        cached = kept(small_batches(), tmp_path)
        with cached.one_state():
            for _ in cached.pieces(NAMES):
                assert not list(tmp_path.iterdir())
            ((_, status),) = [found for found in own_files().items() if found[0] not in before]
            assert stat.S_IMODE(status.st_mode) == 0o600
            assert status.st_size > 3000 * 16
    finally:
        os.umask(mask)
    assert own_files().keys() == before.keys()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("encrypted", [True, False])
def test_no_cell_is_on_the_disk_in_the_clear(tmp_path, monkeypatch, encrypted):
    """The bytes themselves, as whoever reads freed blocks would see them. Equal batches look different."""
    if not encrypted:
        monkeypatch.setattr(Store, "_encrypted", lambda self, data, at: memoryview(data))
    batch = pa.record_batch({"x": [f"{SECRET}{SECRET}{i}" for i in range(100)]})
    cached = kept(Batches(*[batch] * 5), tmp_path)
    with cached.one_state():
        list(cached.pieces(["x"]))
        written = os.pread(cached._store._descriptor, 10**6, 0)
    assert (SECRET.encode() in written) is not encrypted
    size = len(written) // 5
    assert (len({written[i * size : (i + 1) * size] for i in range(5)}) == 5) is encrypted


def test_every_cache_has_a_secret_key_of_its_own(tmp_path, monkeypatch):
    """Equal rows look different in two caches, as whoever knew one key would need another for the next."""
    drawn, fresh = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: drawn.append(fresh(size)) or drawn[-1])
    batch, written = pa.record_batch({"x": [SECRET] * 100}), []
    for _ in range(2):
        cached = kept(Batches(batch), tmp_path)
        with cached.one_state():
            list(cached.pieces(["x"]))
            assert cached._store._key in drawn
            written.append(os.pread(cached._store._descriptor, 10**6, 0))
    assert len(written[0]) == len(written[1]) > 100
    assert written[0] != written[1]


def test_it_is_gone_after_an_error_too(tmp_path, in_rounds):
    before = own_files()

    def stop(fraction):
        raise KeyboardInterrupt

    more = {"mechanism": in_rounds, "cache": tmp_path, "memory": 0, "progress": stop}
    with pytest.raises(KeyboardInterrupt):
        dpgram.release(TABLE.to_reader(), small_schema(), epsilon=1, delta=1e-6, **more)
    assert own_files().keys() == before.keys()


@pytest.mark.parametrize("how", ["without a name", "unlinked at once"])
def test_kill_9_leaves_nothing(tmp_path, how):
    """The child says when rows are in the cache, in its second pass, and is killed there."""
    code = f"""
    import os, sys, time
    import dpgram
    from dpgram.mechanisms.registry import MECHANISMS
    from tests import rounds
    from tests.conftest import small_schema, small_table
    {"" if how == "without a name" else "del os.O_TMPFILE"}
    MECHANISMS[rounds.NAME] = rounds.MECHANISM
    class Bar:
        def __call__(self, fraction): pass
        def begin(self, number, of):
            if number == 2:
                print("second pass", flush=True)
                time.sleep(600)
    dpgram.release(small_table(3000).to_reader(), small_schema(), epsilon=1, delta=1e-6, mechanism=rounds.NAME,
                   cache=sys.argv[1], memory=0, progress=Bar())
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "second pass\n"
            assert sum(name.startswith(str(tmp_path)) and name.endswith("(deleted)") for name in open_files(child.pid)) == 1
            assert not list(tmp_path.iterdir())
        finally:
            child.kill()
    assert child.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


# What cannot be kept


def secret_source():
    return Batches(*pa.table({"x": [f"{SECRET}{i}" for i in range(3000)]}).to_batches(max_chunksize=100))


@pytest.mark.parametrize("room", [0, 10, 1000, 20_000])
def test_a_full_disk_is_an_error_without_values(tmp_path, room):
    """A real limit on the size of files, in a process of its own; it reports by what it leaves."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        cached = kept(secret_source(), tmp_path)
        with cached.one_state(), pytest.raises(OutputError, match="cannot be written: File too large. It needs room") as caught:
            list(cached.pieces(["x"]))
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is caught.value.__cause__ is None

    assert ended(forked(limited)) == 0
    assert not list(tmp_path.iterdir())


def test_no_space_left_ends_a_release_before_anything_is_drawn(tmp_path, monkeypatch, in_rounds):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    ledger = dpgram.SessionLedger(9, 1e-5)
    more = {"mechanism": in_rounds, "ledger": ledger, "cache": tmp_path, "memory": 0, "out": tmp_path / "r.json"}
    words = r"cannot be written: No space left on device\. .*cache= \(--cache\), or allow more memory with memory= \(--memory\)"
    with pytest.raises(OutputError, match=words) as caught:
        dpgram.release(TABLE.to_reader(), small_schema(), epsilon=1, delta=1e-6, **more)
    assert "It drew no round" in caught.value.__notes__[0]
    assert not list(tmp_path.iterdir())


def test_what_was_not_read_to_its_end_is_no_table(tmp_path):
    cached = kept(small_batches(), tmp_path)
    with cached.one_state():
        pieces = cached.pieces(NAMES)
        next(pieces)
        pieces.close()
        with pytest.raises(TableError, match="was not fully read"):
            list(cached.pieces(NAMES))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refused(*args, **more):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OutputError, match="the cache cannot be created in .*: Permission denied. Choose another folder"):
        open_cache(tmp_path)


def test_spark_keeps_its_own(in_rounds, tmp_path):
    with pytest.raises(TableError, match="Spark can keep a frame itself"):
        dpgram.release("spark:visits", small_schema(), epsilon=1, delta=1e-6, mechanism=in_rounds, cache=tmp_path)
