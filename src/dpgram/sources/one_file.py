"""One file as a table, which must be the same file in every pass."""

from __future__ import annotations

from pathlib import Path

from dpgram.errors import TableError
from dpgram.sources.base import Source, quietly


class OneFile(Source):
    """A file of some format. What it is, the first look says."""

    rereadable = True
    form: str

    def __init__(self, path: Path):
        self.where = f"{self.form} file {path}"
        self._path = path
        self._first: tuple[int, ...] | None = None

    def _check_unchanged(self) -> None:
        """Raise if the file was replaced or written to since the first check."""
        stat = quietly(self.where, self._path.stat)
        now = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if now != (self._first or now):
            raise self._changed()
        self._first = now

    def _changed(self) -> TableError:
        return TableError(f"{self.where} was changed while it was in use: run it again when nothing writes to it.")
