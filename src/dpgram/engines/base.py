"""What every engine offers: the exact sum over all rows of one table, as often as it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dpgram.gram.accumulator import GramSum
from dpgram.terms.public_map import PublicMap

Progress = Callable[[float], None]


class Pass(Protocol):
    """A table and a schema, ready to be read.

    Making one checks names and types, which are public, and reads no row."""

    rows_of: str  # what one row is a row of: "table", or "result" of a query or a lazy frame

    def gram(self, row_bound: float, through: PublicMap | None = None) -> GramSum:
        """The exact sum over all rows, each multiplied by ``through``, where it is given, and then shrunk to ``row_bound``."""
        ...


class Steps:
    """Calls ``progress`` with 0.01, 0.02, ... 1.00, each once and in order, whatever the table.

    Finer fractions, or their number, would give away the number of rows, which can be protected."""

    def __init__(self, progress: Progress | None):
        self._progress, self._done = progress, 0

    def reach(self, fraction: float) -> None:
        while self._done < int(100 * fraction):
            self._done += 1
            if self._progress is not None:
                self._progress(self._done / 100)
