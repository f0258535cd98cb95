"""Whose rows: how many rows each unit has, and ids that differ only in how they are written.

Of an id only a hash of 64 bits is kept: the sum of its bytes, each multiplied by a random number that belongs to its place. Two different
ids have the same hash with a probability of at most 2^-56, which is little enough for a look."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.checking.amounts import UNSEEN
from dpgram.checking.reasons import QUOTES, in_one_form, says_nothing
from dpgram.encoding.cells import as_text
from dpgram.encoding.encode import Cells
from dpgram.rows.units import id_bytes

Array = np.ndarray
MOST_IDS = 20_000_000  # that are kept in memory: 24 bytes each, and a few times as much while they are counted
FRACTION = r"^[+-]?[0-9]*\.[0-9]*[1-9][0-9]*(?:e[+-]?[0-9]+)?$|^[+-]?[0-9]+e-[0-9]+$"
MOST_WAITING = 1 << 22  # rows whose ids wait to be counted, unless there are more ids
MOST_CROWDED = 3  # ids that can stand for a missing one, such as 0, -1 and 9999
TIMES_MORE = 10  # rows than any other id has


@dataclass(frozen=True)
class UnitCounts:
    """What a table says of its units."""

    units: int
    above: int  # units with more rows than count in full
    alike: int  # units whose id differs from another's only in how it is written: see ``as_written_once``


class UnitTally:
    """Counts the rows of each id."""

    def __init__(self) -> None:
        self.without = 0  # rows without an id
        self.saying_nothing = 0  # rows whose id is a word for a missing one, or white space
        self.fractions = 0  # rows whose id is a number that is not whole
        self.overflown = False  # whether there were too many ids to keep
        self._factors = np.empty(0, np.uint64)  # of the bytes of an id, by place
        self._kept = np.empty((3, 0), np.uint64)  # of each id: its hash, that of how it could be written, its number of rows
        self._waiting: list[Array] = []  # likewise, of ids that may be there several times
        self._rows = 0  # that wait

    def add(self, given: Cells) -> Array:
        """Count the ids. Returns which rows have one. May raise with cells in the message: call it quietly."""
        every = id_bytes(given)
        there = np.asarray(every.is_valid())
        self.without += int((~there).sum())
        ids = every.drop_null()
        text = as_written_once(as_text(ids))
        self.saying_nothing += pc.sum(says_nothing(text)).as_py() or 0
        self.fractions += pc.sum(pc.match_substring_regex(text, FRACTION)).as_py() or 0
        if not self.overflown:
            plain = pc.coalesce(text.cast(pa.large_binary()), ids)  # what is no text is as it is
            self._waiting.append(np.array([self._hashes(ids), self._hashes(plain), np.ones(len(ids), np.uint64)]))
            self._rows += len(ids)
            if self._rows > max(MOST_WAITING, self._kept.shape[1]):
                self._count()
        return there

    def counts(self, most: int) -> UnitCounts | None:
        """All of them, where ``most`` rows of a unit count in full; None where there were too many ids to keep."""
        self._count()
        if self.overflown:
            return None
        _, plain, rows = self._kept
        times = np.unique(plain, return_counts=True)[1]
        return UnitCounts(len(rows), int((rows > most).sum()), int(times[times > 1].sum()))

    def crowded(self, most: int) -> tuple[int, int]:
        """How many ids, a few at most, have far more rows than any other and than count in full, and how many rows these are.

        Nothing where there were too many ids to keep."""
        self._count()
        if self.overflown:
            return 0, 0
        rows = np.sort(self._kept[2])[::-1][: MOST_CROWDED + 1].astype(np.int64)
        for ids in range(min(MOST_CROWDED, len(rows) - 1), 0, -1):
            if rows[ids - 1] > TIMES_MORE * max(most, rows[ids]):
                return ids, int(rows[:ids].sum())
        return 0, 0

    def _count(self) -> None:
        """Add up the rows of ids that wait."""
        together = np.concatenate([self._kept, *self._waiting], axis=1)
        together = together[:, np.argsort(together[0])]
        first = np.flatnonzero(np.diff(together[0], prepend=~together[0, :1]))
        rows = np.add.reduceat(together[2], first) if len(first) else together[2]
        self._kept = np.array([*together[:2, first], rows])
        self._waiting, self._rows = [], 0
        self.overflown = self.overflown or len(first) > MOST_IDS

    def _hashes(self, texts: pa.Array) -> Array:
        """One for each text; the same for the same bytes."""
        _, offsets, data = texts.buffers()
        ends = (
            np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
            if len(texts)
            else np.zeros(1, np.int64)
        )
        lengths = np.diff(ends)
        if (longest := lengths.max(initial=0)) > len(self._factors):
            more = np.frombuffer(secrets.token_bytes(8 * (longest - len(self._factors))), np.uint64)
            self._factors = np.concatenate([self._factors, more])
        cells = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.empty(0, np.uint8)
        place = np.arange(len(cells)) - np.repeat(ends[:-1] - ends[0], lengths)
        sums = np.cumsum((cells.astype(np.uint64) + np.uint64(1)) * self._factors[place], dtype=np.uint64)  # modulo 2^64
        return np.diff(np.concatenate([np.zeros(1, np.uint64), sums])[ends - ends[0]])


def as_written_once(ids: pa.Array) -> pa.Array:
    """The ids in one case and one Unicode form, with hyphens for all dashes, and without white space and quotation marks at the ends,
    characters that cannot be seen, leading zeros, a plus, and a point with zeros behind it.

    Ids that are then the same are likely to be one person's."""
    text = in_one_form(ids)
    if pc.all(pc.string_is_ascii(text)).as_py() is False:
        for pattern, kept in ((f"[{UNSEEN}]", ""), (r"[\p{Pd}−]", "-")):
            text = pc.replace_substring_regex(text, pattern, kept)
    text = pc.utf8_trim_whitespace(pc.utf8_trim(pc.utf8_trim_whitespace(text), characters=QUOTES))
    for pattern, kept in ((r"^([+-]?[0-9]+)\.0*$", r"\1"), (r"(?s)^\+?(-?)0*([^.].*)$", r"\1\2")):
        text = pc.replace_substring_regex(text, pattern, kept)
    return text
