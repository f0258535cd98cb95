"""What every engine offers: the exact sum over all rows of one table, as often as it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self, TypeVar

from dpgram.errors import TableError
from dpgram.rows.coins import Coins
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

T = TypeVar("T")
Progress = Callable[[float], None]


class Pass(Protocol):
    """A table and a schema, ready to be read.

    Making one checks names and types, which are public, and reads no row."""

    rows_of: str  # what one row is a row of: "table", or "result" of a query or a lazy frame
    where: str  # what the table is called in messages
    rereadable: bool  # whether ``gram`` can be asked for more than once

    def one_state(self) -> AbstractContextManager[Any]:
        """Within it every sum is over one state of the table, as far as the source can see to that."""
        ...

    def count(self) -> int:
        """The number of rows, as ``gram`` will count them: told by the source, else by a pass that looks at no cell.

        To be asked only where the number is public, and within ``one_state``."""
        ...

    def count_units(self) -> int:
        """The number of units, whose rows are counted: to be asked for once, before any sum, where the schema has ids, and within
        ``one_state``. The number is to be used only where it is public."""
        ...

    def gram(self, row_bound: float, through: PublicMap | None = None, scales: Scales = ONE_CLIP) -> GramSum:
        """The exact sum over all rows, each multiplied by ``through``, where it is given, and then shrunk to ``row_bound``; at several
        ``scales`` one for each of them."""
        ...

    def counts(self, bins: Bins) -> GramSum:
        """How many rows lie in each of the ``bins``, packed into a matrix."""
        ...

    def kept(self, coins: Coins | None) -> tuple[Pass, int]:
        """The rows that the coins choose, or all of them, as a table of its own that lies in memory; and the number of all rows, to be
        used only where it is public. The table is read once. Where all of them are more than memory may hold, it may be this table itself,
        to be read again: the sums are the same."""
        ...

    def under(self, schema: Schema) -> Self:
        """The same table under a schema that differs in its learnt scales alone."""
        ...


def check_unchanged(where: str, counted: T | None, found: T) -> None:
    """Raise unless a pass found as many rows as were counted with the units, if they were: more could break a unit's bound."""
    if counted is not None and counted != found:
        raise TableError(f"{where} was changed since the rows of units were counted. Run again when nothing writes to it.")


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


class WholeProgress:
    """The progress of one pass after another as that of all of them: from 0 to 1, in the same hundred steps.

    Used as the progress of a pass. How many passes there are is public, but may be known from the second on only."""

    FIRST = 1 / 8  # the share of a first pass of several, while nobody knows of how many

    def __init__(self, progress: Progress | None):
        self._steps = Steps(progress)
        self._tell = getattr(progress, "begin", None)  # a bar may also say which pass this is
        self._from, self._share = 0.0, 0.0

    def begin(self, number: int, of: int | None, left: float | None = None) -> None:
        """Pass ``number`` begins; the passes that are left, or as many as ``left`` says, share what is left."""
        self._from += self._share
        if left is None and of:
            left = max(1, of - number + 1)
        self._share = (1 - self._from) / left if left else (1 - self._from) * self.FIRST
        if self._tell is not None and of != 1:
            self._tell(number, of)

    def end(self) -> None:
        self._steps.reach(1.0)

    def __call__(self, fraction: float) -> None:
        self._steps.reach(self._from + self._share * fraction + 1e-9)  # 0.29 * 100 is a little less than 29
