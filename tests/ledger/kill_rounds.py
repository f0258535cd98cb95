"""Kills releases of several rounds: `python -m tests.ledger.kill_rounds WHERE FOLDER` kills one at every line of the curator
and of its custody, or at every fourth that is run of the ledger, of which no state lasts for less.

It prints, for each, how many rounds had begun to draw, and how many the ledger knew of. It runs by itself because it forks."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import dpgram
from dpgram import curator, custody
from dpgram.ledger import file
from dpgram.mechanisms.registry import MECHANISMS
from tests import rounds
from tests.artifact.kill_loop import ended, forked, killer
from tests.conftest import small_schema, small_table
from tests.ledger.kill_release import watched

BUDGET = {"epsilon": 2.0, "delta": 1e-6}


class Draws:
    """Which rounds have drawn, in a file that outlives the process: one letter for each round's first draw."""

    def __init__(self, path: Path):
        self._path, self._round, self._noted = path, 0, 0

    def begin(self, number: int, of: int | None) -> None:
        self._round = number

    def __call__(self, fraction: float) -> None:
        pass

    def drawn(self) -> None:
        if self._noted < self._round:
            self._noted = self._round
            with self._path.open("a") as notes:
                notes.write("d")
                notes.flush()
                os.fsync(notes.fileno())

    def read(self) -> int:
        return len(self._path.read_text()) if self._path.exists() else 0


def kill(where: tuple[str, ...], step: int, folder: Path) -> None:
    table, schema = small_table(50), small_schema()
    MECHANISMS[rounds.NAME] = rounds.MECHANISM
    options = {**BUDGET, "mechanism": rounds.NAME, "threads": 1, "arithmetic": "float"}
    empty = dpgram.FileLedger.create(folder / "empty.sqlite", epsilon=9, delta=1e-5, unit="person", dataset="visits").path
    dpgram.release(table, schema, **options)  # imports what the children need
    line, code = 1 - step, -signal.SIGKILL
    while code == -signal.SIGKILL:
        line += step
        draws = Draws(folder / f"draws-{line}")
        ledger = dpgram.FileLedger(shutil.copy(empty, folder / f"{line}.sqlite"))

        def release(line: int = line, draws: Draws = draws, ledger: dpgram.FileLedger = ledger) -> None:
            with watched(draws.drawn):
                sys.settrace(killer(line, *where))
                dpgram.release(table, schema, ledger=ledger, progress=draws, **options)
                sys.settrace(None)

        code = ended(forked(release))
        entries = ledger.account().entries
        known = entries[0].drawn.number if entries else -1
        print(draws.read(), known, "made" if entries and entries[0].committed else "")
    assert code == 0


if __name__ == "__main__":
    files = {"curator": ((curator.__file__, custody.__file__), 1), "ledger": ((file.__file__,), 4)}
    kill(*files[sys.argv[1]], Path(sys.argv[2]))
