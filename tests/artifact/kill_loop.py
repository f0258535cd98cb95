"""Kills writers: `python -m tests.artifact.kill_loop WHAT BY FOLDER`. Exit code 0 if every file that was left is whole.

Runs by itself because it forks: a writer then is alive within milliseconds, and many can be killed. It looks at ``release.json`` after
every kill: absent (if it was at the start), the old release, or one of those that the writers write, to the byte."""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import dpgram
from dpgram.artifact import atomic
from dpgram.cli.app import run

KILLS, RELEASES, COLUMNS = 60, 4, 60
WRITES = 3  # a writer lives for at most as long as this many writes take
SCHEMA = """
unit = "person"
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
"""
Writer = Callable[[Path, int], None]  # writes release number k to a path


def by_save() -> Writer:
    """Writers of a release of some 70 kB."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(f"x{i}", -1, 1) for i in range(COLUMNS)])
    cells = {name: np.zeros(9) for name in schema.names}
    made = dpgram.release(cells, schema, epsilon=1, delta=1e-3, mechanism="gaussian-noise", insecure_seed=1)
    releases = [replace(made, gram=np.round(made.gram, 6) + k) for k in range(RELEASES)]
    return lambda path, k: releases[k].save(path, overwrite=True)


def by_parts(folder: Path) -> Writer:
    """Writers as they must not be: into the file itself, a part at a time."""
    contents = written(by_save(), folder)

    def write(path: Path, k: int) -> None:
        with path.open("wb", buffering=0) as file:
            for start in range(0, len(contents[k]), 100):
                file.write(contents[k][start : start + 100])

    return write


def by_command(folder: Path) -> Writer:
    """Writers through the command line, from a table on disk to the file."""
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "table.csv").write_text("x,y\n" + "1,2\n-3,4\n" * 20)
    words = f"release {folder}/table.csv --schema {folder}/schema.toml --epsilon 1 --delta 1e-6"
    words += " --mechanism gaussian-noise --threads 1 --overwrite --out"

    def write(path: Path, k: int) -> None:
        if run([*words.split(), str(path), "--insecure-seed", str(k)]) != 0:
            os._exit(1)

    write(folder / "warm.json", 0)  # imports what is needed, once for all children
    return write


def forked(work: Callable[[], object]) -> int:
    """A child process that does ``work`` and ends."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def written(write: Writer, folder: Path) -> list[bytes]:
    """Every release as it is when nobody is killed."""
    paths = [folder / f"allowed-{k}.json" for k in range(RELEASES)]
    for k, path in enumerate(paths):
        assert ended(forked(lambda k=k, path=path: write(path, k))) == 0
    return [path.read_bytes() for path in paths]


def drafts(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.endswith(".part")]


def look(path: Path, allowed: list[bytes], *, may_be_absent: bool = False) -> None:
    """Raise unless the file is whole."""
    if not path.exists():
        assert may_be_absent, "the old release is gone"
        return
    assert path.read_bytes() in allowed, "a file that nobody wrote"
    dpgram.load(path)


def random_kills(write: Writer, folder: Path, writers: int = 1) -> str:
    """Writers in endless loops, killed at random instants."""
    allowed, path, rng = written(write, folder), folder / "release.json", random.Random(1)
    began = time.monotonic()
    ended(forked(lambda: [write(path, k % RELEASES) for k in range(WRITES)]))
    longest = time.monotonic() - began
    left = changed = 0
    for kill in range(KILLS):
        start = None if kill % 3 == 0 else allowed[0]
        path.unlink(missing_ok=True)
        if start is not None:
            path.write_bytes(start)

        def endless(first: int) -> None:
            for k in range(first, 10**9):
                write(path, k % RELEASES)

        children = [forked(lambda first=w + 1: endless(first)) for w in range(writers)]
        time.sleep(longest * rng.random())
        for child in children:
            os.kill(child, signal.SIGKILL)
        assert all(ended(child) == -signal.SIGKILL for child in children), "a writer failed before it was killed"
        look(path, allowed, may_be_absent=start is None)
        changed += path.exists() and path.read_bytes() != start
        left += bool(drafts(folder))
    assert ended(forked(lambda: write(path, 2))) == 0
    assert path.read_bytes() == allowed[2]
    assert drafts(folder) == [], "a later write has not removed what killed writers left"
    return f"{KILLS} kills, {changed} after a new release, {left} with a draft left"


def every_line(write: Writer, folder: Path) -> str:
    """One writer for every line of the code that writes, killed when it gets there; first alone, then beside a draft left by another."""
    allowed, path, left_by_another = written(write, folder), folder / "release.json", folder / f".release.json.{16 * '0'}.part"
    line = left = new = 0
    for beside in (False, True):
        first, code = line, -signal.SIGKILL
        while code == -signal.SIGKILL:
            line += 1
            for name in drafts(folder):
                (folder / name).unlink()
            if beside:
                left_by_another.write_bytes(allowed[3][:1000])
            path.write_bytes(allowed[0])
            code = ended(forked(lambda n=line - first: (sys.settrace(killer(n, atomic.__file__)), write(path, 1))))
            look(path, allowed[:2])
            new += path.read_bytes() == allowed[1]
            left += any(name != left_by_another.name for name in drafts(folder))
        assert code == 0
        assert path.read_bytes() == allowed[1]
        assert drafts(folder) == []
    return f"{line - 2} kills, {new - 2} after a new release, {left} with a draft left"


def killer(line: int, *where: str):
    """A tracer that kills its process at the ``line``-th line that is run of the files ``where``."""
    count = 0

    def trace(frame, event, _arg):
        nonlocal count
        if frame.f_code.co_filename not in where:
            return None
        count += event == "line"
        if count == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def full_disk(write: Writer, folder: Path) -> str:
    """Writers whose files may not grow beyond a part of the release."""
    allowed, path = written(write, folder), folder / "release.json"
    for part in (0, 1, 100, len(allowed[1]) // 2, len(allowed[1]) - 1):
        path.write_bytes(allowed[0])

        def limited(part: int = part) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (part, part))
            write(path, 1)

        assert ended(forked(limited)) == 1
        assert path.read_bytes() == allowed[0]
        assert drafts(folder) == []
    return "every write failed and left the old release"


if __name__ == "__main__":
    what, by, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    writer = {"save": by_save, "command": lambda: by_command(folder), "parts": lambda: by_parts(folder)}[by]()
    found = {
        "random": lambda: random_kills(writer, folder),
        "two": lambda: random_kills(writer, folder, writers=2),
        "lines": lambda: every_line(writer, folder),
        "full": lambda: full_disk(writer, folder),
    }[what]
    print(found())
