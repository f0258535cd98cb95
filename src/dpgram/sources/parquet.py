"""One Parquet file, read in batches; only the declared columns are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpgram.encoding.types import is_text
from dpgram.errors import UnreadableTableError
from dpgram.sources.base import OneFile, Part, Piece, batch_rows, declared_columns, explained, quiet_iterator, quietly

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MOST_PARTS = 64  # of one file: runs of row groups, each of which a thread opens and reads by itself
READ_BUFFER = 1 << 20  # pages are streamed through this, so that a huge row group does not sit in memory
LARGE_DICTIONARY = 4  # times its size, a column is at least as large where its values are few
SMALL_DICTIONARY = 4096  # bytes of one that is worth while whatever the column's size
WIDEST_PLACE = 4  # bytes of a place in a dictionary; cells that take more are written out
TRUNCATED = "it is not a Parquet file, or it is truncated. Copy or export it again"


class ParquetFile(OneFile):
    """A Parquet file."""

    form = "Parquet"

    def __init__(self, path: Path):
        super().__init__(path)
        self._check_unchanged()  # from now on: the metadata would cut another file in the wrong places
        with self._open() as file:
            self.columns = declared_columns(self.where, lambda: file.schema_arrow)
            self._metadata = file.metadata

    def _open(self, metadata: pq.FileMetaData | None = None, as_dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        import pyarrow.parquet as pq  # slow to import, and most tables are something else

        opening = partial(
            pq.ParquetFile,
            self._path,
            metadata=metadata,
            pre_buffer=False,
            buffer_size=READ_BUFFER,
            read_dictionary=list(as_dictionaries),
        )
        return explained(self.where, opening, lambda error: {"failure": type(error).__name__, "do": TRUNCATED})

    def count(self, names: Sequence[str]) -> int:
        """The number of rows by the file's footer, which every pass is held to."""
        return self._rows(range(self._metadata.num_row_groups))

    def _rows(self, groups: range) -> int:
        return sum(self._metadata.row_group(group).num_rows for group in groups)

    def _dictionaries(self, names: Sequence[str]) -> list[str]:
        """Columns of text that the file keeps as small dictionaries, by its first row group. They stay dictionaries: no cell's text is
        copied, and each value is looked at once. Others, such as ids, of which nearly every one is new, take twice as long that way.

        What the footer says of a column is looked at only after a row of it was read: Arrow refuses a damaged footer when it reads, but
        ends the process when it is merely asked."""
        text = [name for name in names if is_text(self.columns.field(name).type)]
        if not text or not self._metadata.num_row_groups:
            return []
        with self._open(self._metadata) as file:
            self._check_unchanged()
            next(file.iter_batches(batch_size=1, row_groups=[0], columns=text, use_threads=False), None)
        leaves, group = self._metadata.schema, self._metadata.row_group(0)
        places = {leaves.column(place).path: place for place in range(len(leaves))}
        return [name for name in text if name in places and _has_small_dictionary(group.column(places[name]))]

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        dictionaries = quietly(self.where, self._dictionaries, names)
        return self._read(names, dictionaries, range(self._metadata.num_row_groups), use_threads=True)

    def parts(self, names: Sequence[str]) -> list[Part]:
        """Runs of row groups. A file of one row group is one part, whose columns Arrow's own threads decode."""
        groups = self._metadata.num_row_groups
        step = -(-groups // MOST_PARTS) or 1
        runs = [range(first, min(groups, first + step)) for first in range(0, groups, step)]
        dictionaries = quietly(self.where, self._dictionaries, names)
        return [partial(self._read, names, dictionaries, run, use_threads=len(runs) == 1) for run in runs]

    def _read(self, names: Sequence[str], dictionaries: list[str], groups: range, *, use_threads: bool) -> Iterator[Piece]:
        rows = self._rows(groups)
        done = 0
        with self._open(self._metadata, dictionaries) as file:
            self._check_unchanged()
            batches = file.iter_batches(
                batch_size=batch_rows(len(names)), row_groups=list(groups), columns=list(names), use_threads=use_threads
            )
            for batch in quiet_iterator(self.where, batches):
                done += batch.num_rows
                yield Piece(batch.select(list(names)), min(1.0, done / max(1, rows)))
        self._check_unchanged()
        if done != rows:  # Arrow ends early, without a word, where a column of a damaged file says that it holds less
            raise UnreadableTableError(where=self.where, failure="fewer rows than it declares", do=TRUNCATED)


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether a column's values are few beside its rows: its dictionary lies before its pages, and is the smaller part by far.

    Writers give a dictionary up when it becomes too large, and write the other cells out. The pages are then larger than places in a
    dictionary could be."""
    if not chunk.has_dictionary_page or chunk.dictionary_page_offset is None:
        return False
    values = chunk.data_page_offset - chunk.dictionary_page_offset
    if chunk.total_compressed_size - values > WIDEST_PLACE * chunk.num_values:
        return False
    return values * LARGE_DICTIONARY <= chunk.total_compressed_size or values <= SMALL_DICTIONARY
