"""The cache of a table that can be read once: the same cells, nobody else's to read, and nothing left of it."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest

import dpgram
from dpgram.errors import OutputError, TableError
from dpgram.sources import cache
from dpgram.sources.base import Piece, Source
from dpgram.sources.cache import Cached
from dpgram.sources.open import open_source
from tests.artifact.kill_loop import ended, forked
from tests.conftest import small_schema, small_table

ROOT = Path(__file__).parents[2]
TABLE = small_table(3000)
NAMES = TABLE.column_names
SECRET = "4711"


class Batches(Source):
    """A source of the given batches, once."""

    where, rows_of, typed_by_format = "the table of a test", "result", True

    def __init__(self, *batches, untyped=()):
        self._batches, self.columns, self.untyped = iter(batches), batches[0].schema, frozenset(untyped)

    def pieces(self, names):
        for batch in self._batches:
            yield Piece(batch, None)


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


def test_every_pass_sees_the_cells_and_types_of_the_first(tmp_path):
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
    batches = [one, three, two, one.slice(0, 0), one]
    cached = Cached(Batches(*batches), tmp_path)
    with cached.one_state():
        first, second, third = (cells(cached, ["t", "n", "c"]) for _ in range(3))
    assert first == second == third
    assert [found[1] for found in first] == [[batch.column(name).to_pylist() for name in ("t", "n", "c")] for batch in batches]


def test_arrays_and_matrices_are_kept_too(tmp_path):
    for table, more in (
        ({"x": TABLE["x"].to_numpy()}, {}),
        (TABLE.select(["x", "y"]).to_pandas().to_numpy(), {"columns": ["x", "y"]}),
    ):
        cached = Cached(open_source(table, **more), tmp_path)
        with cached.one_state():
            read = [pa.concat_arrays([pa.array(p.batch.column("x")) for p in cached.pieces(["x"])]) for _ in range(2)]
        assert read[0].equals(read[1])
        assert len(read[0]) == TABLE.num_rows


def test_a_table_without_rows_is_one(tmp_path):
    cached = Cached(open_source(TABLE.slice(0, 0).to_reader()), tmp_path)
    with cached.one_state():
        assert [list(cached.pieces(NAMES)) for _ in range(2)] == [[], []]


def test_two_readers_do_not_disturb_each_other(tmp_path):
    cached = Cached(Batches(*TABLE.to_batches(max_chunksize=100)), tmp_path)
    with cached.one_state():
        expected = cells(cached, NAMES)
        pairs = list(zip(cached.pieces(NAMES), cached.pieces(NAMES), strict=True))
    assert all(one.batch.equals(two.batch) for one, two in pairs)
    assert len(pairs) == len(expected)


@pytest.mark.parametrize("how", ["without a name", "unlinked at once"])
def test_the_file_has_no_name_and_is_the_users_alone(tmp_path, monkeypatch, how):
    if how == "unlinked at once":
        monkeypatch.delattr(os, "O_TMPFILE")
    before = own_files()
    mask = os.umask(0)
    try:
        cached = Cached(Batches(*TABLE.to_batches(max_chunksize=100)), tmp_path)
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


def test_it_is_gone_after_an_error_too(tmp_path, in_rounds):
    before = own_files()

    def stop(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dpgram.release(
            TABLE.to_reader(), small_schema(), epsilon=1, delta=1e-6, mechanism=in_rounds, cache=tmp_path, progress=stop
        )
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
                   cache=sys.argv[1], progress=Bar())
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "second pass\n"
        links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{child.pid}/fd")]
        assert sum(link.startswith(str(tmp_path)) and link.endswith("(deleted)") for link in links) == 1
        assert not list(tmp_path.iterdir())
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def secret_source():
    return Batches(*pa.table({"x": [f"{SECRET}{i}" for i in range(3000)]}).to_batches(max_chunksize=100))


@pytest.mark.parametrize("room", [0, 10, 1000, 20_000])
def test_a_full_disk_is_an_error_without_values(tmp_path, room):
    """A real limit on the size of files, in a process of its own; it reports by what it leaves."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        cached = Cached(secret_source(), tmp_path)
        with cached.one_state(), pytest.raises(OutputError, match="cannot be written: File too large. It needs room") as caught:
            list(cached.pieces(["x"]))
        assert SECRET not in str(caught.value)
        assert caught.value.__context__ is caught.value.__cause__ is None

    assert ended(forked(limited)) == 0
    assert not list(tmp_path.iterdir())


def test_no_space_left_is_said_in_words(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    cached = Cached(secret_source(), tmp_path)
    with (
        cached.one_state(),
        pytest.raises(OutputError, match=r"cannot be written: No space left on device\. .*cache= \(--cache\)"),
    ):
        list(cached.pieces(["x"]))


def test_what_was_not_read_to_its_end_is_no_table(tmp_path):
    cached = Cached(Batches(*TABLE.to_batches(max_chunksize=100)), tmp_path)
    with cached.one_state():
        pieces = cached.pieces(NAMES)
        next(pieces)
        pieces.close()
        with pytest.raises(TableError, match="was not read to its end"):
            list(cached.pieces(NAMES))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refused(*args, **more):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OutputError, match="no cache can be made in .*: Permission denied. Choose another folder"):
        cache.open_cache(tmp_path)


def test_spark_keeps_its_own(in_rounds, tmp_path):
    with pytest.raises(TableError, match="cached by Spark itself"):
        dpgram.release("spark:visits", small_schema(), epsilon=1, delta=1e-6, mechanism=in_rounds, cache=tmp_path)
