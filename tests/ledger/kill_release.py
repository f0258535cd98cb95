"""Kills releases: `python -m tests.ledger.kill_release ARITHMETIC FOLDER` kills one at every line of the curator and of its
custody.

It prints what each had noted. It runs by itself because it forks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import dpgram
from dpgram import curator, custody
from dpgram.ledger.base import Reservation
from tests.artifact.kill_loop import ended, forked, killer
from tests.conftest import small_schema, small_table


class NotedLedger:
    """A ledger that outlives its process: one line for each thing that happened."""

    def __init__(self, path: Path):
        self._path, self._drawn = path, False

    def _note(self, word: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{word}\n")
            file.flush()
            os.fsync(file.fileno())

    def reserve(self, budget, neighbours, what, *, unit=None, cost=None) -> Reservation:
        self._note("reserved")
        return Reservation(1, budget, what)

    def commit(self, reservation) -> None:
        self._note("committed")

    def drawn(self) -> None:
        """Called for every draw; the first is noted."""
        if not self._drawn:
            self._drawn = True
            self._note("drawn")

    def read(self) -> list[str]:
        return self._path.read_text().split() if self._path.exists() else []


@contextmanager
def watched(note: Callable[[], None]) -> Iterator[None]:
    """Within it ``note`` is called before every draw: in both arithmetics all randomness comes from the operating system."""
    draw = os.urandom

    def noted(size: int) -> bytes:
        note()
        return draw(size)

    with mock.patch.object(os, "urandom", noted):
        yield


def kill_at_every_line(arithmetic: str, folder: Path) -> None:
    """Prints what stands in the ledger of each release, in one line each; the last was not killed."""
    table, schema = small_table(50), small_schema()
    given = {"epsilon": 5, "delta": 1e-6, "mechanism": "gaussian-noise", "threads": 1, "arithmetic": arithmetic}
    dpgram.release(table, schema, **given)  # imports what the children need
    line, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        line += 1
        ledger = NotedLedger(folder / f"ledger-{line}")

        def release(line: int = line, ledger: NotedLedger = ledger) -> None:
            with watched(ledger.drawn):
                sys.settrace(killer(line, curator.__file__, custody.__file__))
                dpgram.release(table, schema, ledger=ledger, **given)
                sys.settrace(None)

        code = ended(forked(release))
        print(*ledger.read())
    assert code == 0


if __name__ == "__main__":
    kill_at_every_line(sys.argv[1], Path(sys.argv[2]))
