"""The pass over the rows on this machine: read, encode, clip, add, a batch at a time, by several threads."""

from __future__ import annotations

import copy
import math
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial, reduce
from typing import Self

import numpy as np

from dpgram.encoding.encode import Encoder
from dpgram.engines.base import Progress, Steps, check_unchanged
from dpgram.engines.kept import KeptRows
from dpgram.engines.summing import one_blas_thread, summing_for
from dpgram.errors import OptionError
from dpgram.rows.bin_counts import BinCounts
from dpgram.rows.coins import Coins
from dpgram.rows.decoded import Decoding
from dpgram.rows.gram_sum import GramSum
from dpgram.rows.shares import Shares
from dpgram.rows.units import UnitIndex
from dpgram.sources.base import Batch, Part, Piece, Source, check_columns, quietly
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

Array = np.ndarray
Adder = Callable[[Batch], None]  # what one thread does with the batches that it is given
Keeper = Callable[[Batch, Array | None], None]  # likewise, where some of their rows, by place, are all it is to keep
Job = tuple[int, int, Part | Piece]  # the number of a part, and the part to read and add, or a piece of it from a row on

INDEX_MEGABYTES = 1000.0  # that counting the rows of units may take, unless it may take more
THREADS = "DPGRAM_THREADS"  # the environment variable that says how many threads a pass may use


class LocalPass:
    """Sums the Gram of a source's rows under a schema.

    ``threads`` are as many as this process has cores, unless given here or in the environment; the sum does not depend on them.
    ``memory`` is in MB, for rows that are kept and for ids, which may take 1,000 in any case; zero is no limit for rows."""

    def __init__(
        self,
        source: Source,
        schema: Schema,
        *,
        progress: Progress | None = None,
        threads: int | None = None,
        memory: float = 0.0,
    ):
        check_columns(source, schema.read_names)
        self._source, self._schema, self._progress = source, schema, progress
        self.rows_of, self.where = source.rows_of, source.where
        self.rereadable, self.one_state = source.rereadable, source.one_state
        self._threads = checked_threads(threads)
        self._encoder = Encoder(schema, untyped=source.untyped)
        self._encoder.check_types(source.columns)
        self._units: UnitIndex | None = None  # once their rows are counted: only then can a schema with units be summed
        self._whole = True  # whether a pass reads all rows that were counted
        self._index_bytes = int(max(memory, INDEX_MEGABYTES) * 1e6)
        self._room = memory * 1e6 or math.inf  # for rows that are kept
        self._counted: int | None = None  # rows, when units were counted

    def count_units(self) -> int:
        """As ``Pass`` says. One pass over the column of ids."""
        name = self._schema.unit_id
        assert name is not None
        index = UnitIndex(self._index_bytes)
        adders = [lambda batch: index.add(batch.column(name))] * self._threads
        self._counted = self._read([name], adders, None)
        units = index.units  # or an error: sums are then refused
        self._units = index
        return units

    @contextmanager
    def _sharing(self) -> Iterator[Shares]:
        """What rows count as, in one pass. At its end an error if the ids are not those that were counted."""
        name = self._schema.unit_id
        if self._units is None or name is None:
            yield Shares(self._schema)
            return
        reading = self._units.reading()
        yield Shares(self._schema, lambda batch: reading.counts(batch.column(name)))
        if self._whole:
            reading.check()

    def gram(self, row_bound: float, through: PublicMap | None = None, scales: Scales = ONE_CLIP) -> GramSum:
        """As ``Pass`` says. Memory does not grow with the number of rows."""
        untyped = self._source.untyped
        with self._sharing() as shares, one_blas_thread(len(self._schema.encoded)):
            summings = [
                summing_for(self._schema, row_bound, through, scales, untyped=untyped, shares=shares)
                for _ in range(self._threads)
            ]
            self._read(self._schema.read_names, [summing.add for summing in summings], self._progress)
        return reduce(GramSum.merge, (summing.total() for summing in summings))

    def counts(self, bins: Bins) -> GramSum:
        """As ``Pass`` says."""
        untyped = self._source.untyped
        with self._sharing() as shares:
            counts = [BinCounts(self._schema, bins, untyped=untyped, shares=shares) for _ in range(self._threads)]
            self._read(self._schema.read_names, [each.add for each in counts], self._progress)
        return reduce(GramSum.merge, (each.total() for each in counts))

    def kept(self, coins: Coins | None) -> tuple[LocalPass, int]:
        """As ``Pass`` says."""
        names, untyped = self._schema.names, self._source.untyped
        room = self._room if coins is None and self.rereadable else math.inf  # a sample cannot be had again
        too_many = threading.Event()

        def keep(decoding: Decoding, batch: Batch, *chosen: Array) -> None:
            if not too_many.is_set():
                decoding.add(batch, *chosen)
                if sum(each.nbytes for each in decodings) > room:
                    too_many.set()  # nothing more is kept

        with ExitStack() as passing:
            shares = passing.enter_context(self._sharing())
            decodings = [Decoding(self._schema, untyped=untyped, shares=shares) for _ in range(self._threads)]
            rows = self._read(self._schema.read_names, [partial(keep, each) for each in decodings], self._progress, coins)
            if too_many.is_set():
                passing.pop_all()  # the ids of the rest were not looked at
                return self, rows
        return self._over(KeptRows(self.where, names, [batch for each in decodings for batch in each.batches()])), rows

    def under(self, schema: Schema) -> Self:
        """As ``Pass`` says."""
        other = copy.copy(self)
        other._schema, other._encoder = schema, Encoder(schema, untyped=self._source.untyped)
        return other

    def _over(self, source: Source) -> Self:
        """The same pass over rows that lie elsewhere."""
        other = copy.copy(self)
        other._source, other._whole = source, False
        return other.under(self._schema)

    def count(self) -> int:
        """The number of rows: told by the source, else by a pass over one column that looks at no cell. It shows no progress."""
        told = self._source.count(self._schema.read_names)
        if told is not None:
            return told
        return self._read(self._schema.names[:1], [lambda batch: None] * self._threads, None)

    def _read(
        self, names: Sequence[str], adders: Sequence[Adder | Keeper], progress: Progress | None, coins: Coins | None = None
    ) -> int:
        """Give every batch of the table to one of the ``adders``, one for each thread, with the places that ``coins`` choose, where there
        are any. Returns the number of rows."""
        parts = self._source.parts(names)
        team = _Team(self.where, [partial(self._add, add) for add in adders], len(parts), Steps(progress), coins)
        team.run(_jobs(parts, self._threads))
        if not isinstance(self._source, KeptRows):
            check_unchanged(self.where, self._counted, team.rows)
        return team.rows

    def _add(self, add: Adder | Keeper, batch: Batch, *chosen: Array) -> None:
        add(self._source.kept(batch), *chosen)

    def encoded(self) -> Array:
        """The rows themselves in scaled units, one below the other, as they are before the clip; NaN where one does not count.
        Unprotected."""
        pieces = self._source.pieces(self._schema.names)
        blocks = [quietly(self._source.where, self._counting, batch).T for batch, _ in pieces]
        return np.concatenate([np.empty((0, len(self._schema.encoded))), *blocks])

    def _counting(self, batch: Batch) -> Array:
        encoded, counting = self._encoder.encode_counted(batch)
        if counting is not None:
            encoded[:, ~counting] = np.nan
        return encoded


def checked_threads(threads: int | None = None) -> int:
    """How many threads a pass uses: as many as given here or in the environment, else one for each core of this process."""
    given: object = os.environ.get(THREADS, "") if threads is None else threads
    if given == "":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        threads = int(str(given))
    except ValueError:
        threads = 0
    if threads < 1:
        raise OptionError(f"threads ({THREADS} in the environment) is {given!r} and must be a whole number, 1 or more.")
    return threads


class _Team:
    """Threads that add batches, each to its own sum or count, and show how far the parts are read, all counted alike.

    The first failure, or an interrupt, stops them all, and comes out of ``run``."""

    def __init__(self, where: str, adders: Sequence[Adder | Keeper], parts: int, steps: Steps, coins: Coins | None = None):
        self._where, self._adders, self._steps, self._coins = where, adders, steps, coins
        self.rows = 0  # that were read
        self._read = [0.0] * parts  # the fraction of each
        self._lock = threading.Lock()
        self._jobs: queue.Queue[Job | None] = queue.Queue(maxsize=len(adders))
        self._stop = threading.Event()
        self._failures: list[BaseException] = []

    def run(self, jobs: Generator[Job, None, None]) -> None:
        """Do all jobs. ``jobs`` itself is read in the calling thread, which does them too where there is one thread."""
        if len(self._adders) == 1:
            with closing(jobs):
                for job in jobs:
                    self._do(job, self._adders[0])
        else:
            self._share(jobs)
        self._steps.reach(1.0)

    def _share(self, jobs: Generator[Job, None, None]) -> None:
        threads = [threading.Thread(target=self._work, args=(add,), daemon=True) for add in self._adders]
        begun = []
        try:
            for thread in threads:
                thread.start()
                begun.append(thread)
            with closing(jobs):
                for job in jobs:
                    if self._stop.is_set():
                        break
                    self._jobs.put(job)
        except BaseException:
            self._stop.set()
            raise
        finally:
            for _ in begun:
                self._jobs.put(None)
            for thread in begun:
                thread.join()
        if self._failures:
            raise self._failures[0]

    def _work(self, add: Adder | Keeper) -> None:
        while (job := self._jobs.get()) is not None:  # after a failure too: the calling thread may be waiting for room
            try:
                self._do(job, add)
            except BaseException as error:
                self._failures.append(error)
                self._stop.set()

    def _do(self, job: Job, add: Adder | Keeper) -> None:
        part, first, work = job
        for batch, fraction in [work] if isinstance(work, Piece) else work():
            if self._stop.is_set():
                return
            chosen = () if self._coins is None else (self._coins.chosen(part, first, batch.num_rows),)
            quietly(self._where, add, batch, *chosen)
            first += batch.num_rows
            with self._lock:
                self.rows += batch.num_rows
                self._read[part] = max(self._read[part], fraction or 0.0)
                self._steps.reach(sum(self._read) / len(self._read))


def _jobs(parts: list[Part], threads: int) -> Generator[Job, None, None]:
    """Parts, where there is one for every thread; else pieces, read in the calling thread, as a user's own reader may need it."""
    for place, part in enumerate(parts):
        if 1 < threads <= len(parts):
            yield place, 0, part
            continue
        pieces, first = part(), 0
        try:
            for piece in pieces:
                yield place, first, piece
                first += piece.batch.num_rows
        finally:
            if isinstance(pieces, Generator):
                pieces.close()  # a query that was left off in the middle is cancelled at once
