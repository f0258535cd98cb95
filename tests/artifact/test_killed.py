"""Writers that are killed, run out of room or get in each other's way: the file is the old release or a new one, never a part."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import dpgram
from dpgram.artifact import atomic
from dpgram.artifact.atomic import write_whole
from tests.processes import open_files

ROOT = Path(__file__).parents[2]


def kill_loop(what: str, by: str, folder: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.artifact.kill_loop", what, by, str(folder)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("what", "by"), [("random", "save"), ("random", "command"), ("two", "save"), ("two", "command"), ("lines", "save")]
)
def test_a_killed_writer_leaves_the_old_release_or_a_new_one(what, by, tmp_path):
    """60 kills at random instants, of one writer or of two at once, and one kill at every line that writes.

    A later write then removes the drafts that were left."""
    done = kill_loop(what, by, tmp_path)
    assert done.returncode == 0, done.stderr
    kills, new, left = map(int, re.findall(r"(\d+) (?:kills|after|with)", done.stdout))
    assert kills >= 60
    assert new > 0
    if by == "save":  # most of its time is writing, so that some kills fall into it
        assert left > 0


@pytest.mark.parametrize("by", ["save", "command"])
def test_a_full_disk_leaves_the_old_release_and_nothing_else(by, tmp_path):
    done = kill_loop("full", by, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", ["random", "full"])
def test_the_loop_sees_a_torn_file(what, tmp_path):
    """A writer that writes into the file itself is found out: the tests above can fail."""
    done = kill_loop(what, "parts", tmp_path)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr


def test_threads_that_write_one_file_do_not_share_a_draft(small_release, tmp_path):
    path = tmp_path / "r.json"
    releases = [replace(small_release, gram=small_release.gram + k) for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            list(pool.map(lambda release: release.save(path, overwrite=True), releases))
            assert dpgram.load(path) in releases
    assert os.listdir(tmp_path) == ["r.json"]


def test_what_was_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    left, held = tmp_path / f".r.json.{'0' * 16}.part", tmp_path / f".r.json.{'1' * 16}.part"
    others = [
        tmp_path / name
        for name in (".r.json.part", ".r.json.notes.part", f".s.json.{'0' * 16}.part", f"r.json.{'0' * 16}.part")
    ]
    for path in (left, held, *others):
        path.write_text("half")
    folder, link = tmp_path / f".r.json.{'2' * 16}.part", tmp_path / f".r.json.{'3' * 16}.part"
    folder.mkdir()
    link.symlink_to(others[0])
    os.mkfifo(tmp_path / f".r.json.{'4' * 16}.part")  # opening it would wait for ever
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_whole(tmp_path / "r.json", b"whole")
        assert not left.exists()
        assert all(path.exists() for path in (held, folder, link, *others))
    write_whole(tmp_path / "r.json", b"whole")
    assert not held.exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_name_reaches_the_disk_after_the_content(small_release, tmp_path, monkeypatch, overwrite):
    """Content, name, folder: in another order a power failure could leave a name without its content, or no name."""
    order, sync, moves = [], os.fsync, {"link": os.link, "replace": os.replace}

    def fsync(place):
        order.append("folder" if Path(f"/proc/self/fd/{place}").resolve() == tmp_path.resolve() else "content")
        sync(place)

    def moved(move, *names):
        order.append("name")
        move(*names)

    monkeypatch.setattr("os.fsync", fsync)
    for name, move in moves.items():
        monkeypatch.setattr(os, name, partial(moved, move))
    small_release.save(tmp_path / "r.json", overwrite=overwrite)
    assert order == ["content", "name", "folder"]


def test_a_folder_that_cannot_be_synced_is_no_failure(small_release, tmp_path, monkeypatch):
    sync = os.fsync

    def fsync(place):
        if Path(f"/proc/self/fd/{place}").resolve() == tmp_path.resolve():
            raise OSError(22, "Invalid argument")  # as some network file systems answer
        sync(place)

    monkeypatch.setattr("os.fsync", fsync)
    small_release.save(tmp_path / "r.json")
    assert dpgram.load(tmp_path / "r.json") == small_release


@pytest.mark.parametrize("windows", [False, True])
def test_where_there_are_no_locks_a_draft_is_closed_before_it_is_moved(windows, tmp_path, monkeypatch):
    """Windows has no such locks, and moves no file that somebody has open; elsewhere the lock is held to the end."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not list the open files of a process")
    held = []
    replace = os.replace

    def moved(draft, path):
        held.append(str(draft) in open_files(os.getpid()))
        replace(draft, path)

    monkeypatch.setattr(atomic.os, "replace", moved)
    if windows:
        monkeypatch.setattr(atomic, "fcntl", None)
    atomic.write_whole(tmp_path / "release.json", b"whole")
    assert held == [not windows]
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("release.json", b"whole")]
