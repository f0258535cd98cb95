"""Reading a table more than once: whether it can be, that all passes see one state of it, and that a file has not changed.

Where a table changes between two passes, each pass is over a table of its own. Nobody is protected less by it, since every round has noise
of its own, but the rounds do not fit each other: so a change that can be noticed is an error."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from dpgram.errors import TableError
from dpgram.sources.base import Source, quietly

Identity = tuple[int, ...]


def rereadable(source: Source) -> bool:
    """Whether the source can be read again with the same rows; one that does not say so cannot."""
    return bool(getattr(source, "rereadable", False))


def one_state(source: Source) -> AbstractContextManager[Any]:
    """Within it every pass over the source sees one state of the table, as far as the source can see to that."""
    one_state = getattr(source, "one_state", None)
    return nullcontext() if one_state is None else one_state()


def identity(where: str, path: Path) -> Identity:
    """What changes when a file is replaced or written to."""
    stat = quietly(where, path.stat)
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def changed(where: str) -> TableError:
    """The error for a file that is not what it was."""
    return TableError(f"{where} was changed while it was in use: run it again when nothing writes to it.")


class Unchanged:
    """A file that must be the same in every pass: the first pass says what it is."""

    def __init__(self, where: str, path: Path):
        self._where, self._path = where, path
        self._first: Identity | None = None

    def check(self) -> None:
        """Raise if the file is not the one that was there at the first check."""
        now = identity(self._where, self._path)
        if self._first is None:
            self._first = now
        if now != self._first:
            raise changed(self._where)
