"""One release through the real door, and all that anybody could see of it.

The engine, the source of randomness and the ledger are the real ones. They are watched: each is wrapped by something that writes down what
it is asked. What was published can be kept, and put in the place of what another table would publish."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dpgram import curator
from dpgram.artifact.files import content_of
from dpgram.artifact.release import GramRelease
from dpgram.engines.open import open_pass
from dpgram.ledger.file import FileLedger
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.schema import Schema

Array = np.ndarray

SEED = 5
PLENTY = 1e9, 0.9  # of a ledger's budget


@dataclass
class Seen:
    """What is seen of one release."""

    events: list[tuple[str, str]] = field(default_factory=list)  # in their order: questions, draws, notes, words, progress
    publications: list[Array] = field(default_factory=list)  # as this table made them, before another's took their place
    release: GramRelease | None = None
    file: bytes = b""

    def note(self, what: str, *told: object) -> None:
        self.events.append((what, " ".join(_plain(each) for each in told)))


def _plain(value: object) -> str:
    """A short text that two values have in common only where they are the same."""
    if isinstance(value, np.ndarray):
        return f"{value.shape}:{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]}"
    matrix = getattr(value, "matrix", None)
    return _plain(matrix) if isinstance(matrix, np.ndarray) else repr(value)


class WatchedPass:
    """A pass over a table: what it is asked is written down, what it answers is not."""

    def __init__(self, inner: Any, seen: Seen):
        self._inner, self._seen = inner, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @contextlib.contextmanager
    def one_state(self) -> Iterator[None]:
        self._seen.note("the table is held")
        with self._inner.one_state():
            yield

    def gram(self, row_bound: float, through: Any = None, scales: Any = (1.0,)) -> Any:
        self._seen.note("a sum is asked for", row_bound, through, tuple(scales))
        return self._inner.gram(row_bound, through, scales)

    def counts(self, bins: Any) -> Any:
        self._seen.note("counts are asked for", bins)
        return self._inner.counts(bins)

    def kept(self, coins: Any) -> tuple[WatchedPass, int]:
        self._seen.note("rows are kept", None if coins is None else coins.share)
        made, rows = self._inner.kept(coins)
        return WatchedPass(made, self._seen), rows

    def under(self, schema: Schema) -> WatchedPass:
        self._seen.note("columns are scaled", sorted(schema.learnt.items()))
        return WatchedPass(self._inner.under(schema), self._seen)

    def count(self) -> int:
        self._seen.note("rows are counted")
        return self._inner.count()

    def count_units(self) -> int:
        self._seen.note("units are counted")
        return self._inner.count_units()


class WatchedSource:
    """A source of randomness from a seed, so that two releases draw the same. Publications are kept, or replaced by ``instead``."""

    def __init__(self, seen: Seen, instead: list[Any] | None):
        self._inner, self._seen, self._instead = SeededSource(SEED), seen, instead
        self.published: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def publish(self, matrix: Array, step: float) -> Array:
        return self._replaced(self._inner.publish(matrix, step), step)

    def publish_below(self, number: Any, step: float) -> Any:
        return self._replaced(self._inner.publish_below(number, step), step)

    def _replaced(self, made: Any, step: float) -> Any:
        place = len(self.published)
        self._seen.publications.append(np.array(made))
        if self._instead is not None and place < len(self._instead):
            made = self._instead[place]
        self.published.append(made)
        self._seen.note("a publication", np.array(made), step)
        return made


class WatchedLedger(FileLedger):
    """A ledger in a file: what it is told is written down."""

    def __init__(self, path: Path, seen: Seen):
        super().__init__(path)
        self._seen = seen

    def reserve(self, budget: Any, neighbours: Any, what: str, **more: Any) -> Any:
        self._seen.note("a reservation", budget, neighbours, what, sorted(more.items(), key=lambda item: item[0]))
        return super().reserve(budget, neighbours, what, **more)

    def note_round(self, reservation: Any, drawn: Any) -> None:
        self._seen.note("a round is noted", reservation.number, drawn)
        super().note_round(reservation, drawn)

    def commit(self, reservation: Any, *, sha256: str | None = None) -> None:
        self._seen.note("a release is recorded", reservation.number, sha256 is not None)
        super().commit(reservation, sha256=sha256)


def release(
    table: object, schema: Schema, folder: Path, how: dict[str, Any], instead: list[Any] | None = None
) -> tuple[Seen, list[Any]]:
    """Release ``table``, and look. Returns what was seen, and what was published."""
    seen = Seen()
    source = WatchedSource(seen, instead)
    for old in (folder / "ledger.sqlite", folder / "release.json"):
        old.unlink(missing_ok=True)
    epsilon, delta = PLENTY
    FileLedger.create(
        folder / "ledger.sqlite",
        epsilon=epsilon,
        delta=delta,
        unit=schema.unit,
        dataset="made up",
        neighbours=schema.neighbours,
    )
    ledger = WatchedLedger(folder / "ledger.sqlite", seen)
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(curator, "open_pass", lambda *given, **more: WatchedPass(open_pass(*given, **more), seen)),
        mock.patch.object(curator, "source_for", return_value=source),
        _log_lines(seen),
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        try:
            seen.release = curator.release(
                table,
                schema,
                ledger=ledger,
                out=folder / "release.json",
                progress=lambda share: seen.note("progress", share),
                **how,
            )
        except Exception as error:  # a mechanism that is given another's publications may fail in any way, and that is seen too
            seen.note("an error", type(error).__name__, str(error), getattr(error, "__notes__", ""))
    for each in warned:
        seen.note("a warning", each.category.__name__, str(each.message))
    seen.note("words on standard output", out.getvalue())
    seen.note("words on standard error", err.getvalue())
    seen.note("files", sorted(path.name for path in folder.iterdir() if path.stem != "table"))
    for entry in ledger.account().entries:
        done = entry.committed is not None
        seen.note("a line of the ledger", entry.budget, entry.what, entry.cost, done, entry.drawn, entry.protected)
    if seen.release is not None:
        seen.file = content_of(seen.release).replace(str(seen.release.ledger_entry).encode(), b"")
        seen.note("the file", len(seen.file), hashlib.sha256(seen.file).hexdigest())
    return seen, source.published


@contextlib.contextmanager
def _log_lines(seen: Seen) -> Iterator[None]:
    """Lines of every level: the command line shows more of them than Python does by itself."""
    own = logging.getLogger("dpgram")
    level = own.level
    own.setLevel(logging.DEBUG)
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: seen.note("a line of a log", record.name, record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        own.setLevel(level)
