"""Kills releases: `python -m tests.ledger.kill_release FOLDER` kills one at every line of the curator, and says what it had noted.

Runs by itself because it forks."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import dpgram
from dpgram import curator
from dpgram.ledger.base import Reservation
from dpgram.sampling.secure import SecureSource
from tests.artifact.kill_loop import ended, forked, killer
from tests.conftest import small_schema, small_table


class FileLedger:
    """A ledger that outlives its process: one line for each thing that happened."""

    def __init__(self, path: Path):
        self._path = path

    def _note(self, word: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{word}\n")
            file.flush()
            os.fsync(file.fileno())

    def reserve(self, budget, neighbours, what) -> Reservation:
        self._note("reserved")
        return Reservation(1, budget, what)

    def commit(self, reservation) -> None:
        self._note("committed")

    def drawn(self) -> None:
        self._note("drawn")

    def read(self) -> list[str]:
        return self._path.read_text().split() if self._path.exists() else []


def watched(note) -> type[SecureSource]:
    """The secure source, which calls ``note`` before every draw."""

    class Watched(SecureSource):
        def normal(self, scale, size):
            note()
            return super().normal(scale, size)

        def uniform(self, size):
            note()
            return super().uniform(size)

    return Watched


def kill_at_every_line(folder: Path) -> None:
    """Prints what stands in the ledger of each release, in one line each; the last was not killed."""
    table, schema = small_table(50), small_schema()
    dpgram.release(table, schema, epsilon=5, delta=1e-6, threads=1)  # imports what the children need
    line, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        line += 1
        ledger = FileLedger(folder / f"ledger-{line}")
        curator.SecureSource = watched(ledger.drawn)

        def release(line: int = line, ledger: FileLedger = ledger) -> None:
            sys.settrace(killer(line, curator.__file__))
            dpgram.release(table, schema, epsilon=5, delta=1e-6, threads=1, ledger=ledger)
            sys.settrace(None)

        code = ended(forked(release))
        print(*ledger.read())
    assert code == 0


if __name__ == "__main__":
    kill_at_every_line(Path(sys.argv[1]))
