"""From whatever a user passes as a ledger to the ledger."""

from __future__ import annotations

import os
from pathlib import Path

from dpgram.errors import LedgerError, OutputError
from dpgram.ledger.base import Ledger
from dpgram.ledger.file import SIDE_FILES, FileLedger


def open_ledger(ledger: object) -> Ledger | None:
    """The ledger, or that in the file of this path, which is there and hangs together."""
    if isinstance(ledger, str | Path):
        file_ledger = FileLedger(ledger)
        file_ledger.account()
        return file_ledger
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    raise LedgerError(f"ledger is a {type(ledger).__name__} and must be a ledger, such as dpgram.SessionLedger(1.0, 1e-6).")


def check_apart(ledger: Ledger | None, out: Path) -> None:
    """Raise if ``out`` is the ledger's file, or one that SQLite keeps beside it."""
    if not isinstance(ledger, FileLedger):
        return
    out_file, own = (Path(os.path.realpath(path)) for path in (out, ledger.path))  # of links in a circle too
    if out_file.parent == own.parent and out_file.name in {own.name + ending for ending in ("", *SIDE_FILES)}:
        raise OutputError(f"{out} is the ledger itself. Choose another place for the release.")
