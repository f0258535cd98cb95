"""Rows that are read once and kept until a release is made: those of tables that cannot be read again, or only at a price.

What is kept are the declared columns, their texts read already, so that later passes find the same bits without reading them again."""

from __future__ import annotations

import logging
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from dpgram.errors import OptionError, OutputError, TableError
from dpgram.sources.base import Batch, Part, Piece, Source, check_columns
from dpgram.sources.store import Fresh, Store

LOG = logging.getLogger("dpgram")
Parse = Callable[[Batch], pa.RecordBatch]


class Keep(NamedTuple):
    """Where rows are kept: up to ``memory`` bytes in memory, the others in a file in ``folder``. ``asked``: somebody chose so."""

    folder: Path
    memory: int
    asked: bool

    @classmethod
    def of(cls, cache: object, memory: float) -> Keep | None:
        """What ``cache`` and ``memory`` (in MB) of a release mean. None where nothing may be kept."""
        limit = memory_bytes(memory)
        return None if cache is False else cls(cache_folder(cache), limit, asked=cache is not None)


def memory_bytes(memory: object) -> int:
    """A limit in MB in bytes."""
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not 0 <= memory * 1e6 < math.inf:
        raise OptionError(f"memory is {memory!r} and must be a number of megabytes, 0 or more, such as 256.")
    return int(memory * 1e6)


def cache_folder(cache: object) -> Path:
    """The folder that ``cache`` means: None and True are the system's own for temporary files."""
    if cache is None or cache is True:
        return Path(tempfile.gettempdir())
    if not isinstance(cache, str | os.PathLike):
        raise TableError(
            f"cache is a {type(cache).__name__} and must be a folder, True for the system's temporary folder, or False to keep no rows."
        )
    folder = Path(cache).expanduser()
    if not folder.is_dir():
        raise OutputError(
            f"{folder} is not a folder. Give cache= (--cache) a folder that exists, on a disk with room for the declared columns."
        )
    return folder


class Cached(Source):
    """Another source, whose rows are kept from the first pass on, while ``one_state`` lasts. Outside of it nothing is kept.

    ``parse`` is what is kept of a batch: its declared columns, ``names``. The first pass is over them too."""

    rereadable = True

    def __init__(self, source: Source, names: Sequence[str], parse: Parse, keep: Keep):
        self._source, self._names, self._parse, self._keep = source, list(names), parse, keep
        self._store: Store | None = None
        self.where, self.columns, self.untyped = source.where, source.columns, source.untyped
        self.typed_by_format, self.rows_of = source.typed_by_format, source.rows_of

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """Begins to keep rows, and forgets them at its end."""
        folder, memory = self._keep.folder, self._keep.memory
        with self._source.one_state(), closing(Store(self.where, folder, memory)) as self._store:
            LOG.info(
                "%s is read once, and its declared columns are kept until the release is made. Up to %g MB are kept in memory. The "
                "rest goes to an encrypted file without a name in %s. Use --no-cache (cache=False) to read it again for every round.",
                *(self.where, memory / 1e6, folder),
            )
            try:
                yield
            finally:
                self._store = None

    def count(self, names: Sequence[str]) -> int | None:
        """The number of rows that are kept. Before, they are counted by a pass that keeps them: a database is not asked twice."""
        if self._store is None:
            return self._source.count(names)
        return self._store.rows() if self._store.begun else None

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        check_columns(self, names)
        if self._store is None:
            yield from self._source.pieces(names)
            return
        for part in self.parts(names):
            for batch, fraction in part():
                yield Piece(self.kept(batch).select(list(names)), fraction)  # type: ignore[union-attr]

    def parts(self, names: Sequence[str]) -> list[Part]:
        """The rows that are kept; in the first pass those of the source, with all declared columns, whichever are asked for."""
        if self._store is None:
            return self._source.parts(names)
        check_columns(self, self._names)
        return self._store.parts() if self._store.begun else [partial(self._store.fresh, self._source.pieces(self._names))]

    def kept(self, batch: Batch) -> Batch:
        if self._store is None or not isinstance(batch, Fresh):
            return batch
        return self._store.keep(batch, self._parse)
