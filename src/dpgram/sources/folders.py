"""Columns whose cells stand in the names of folders, as Hive and Spark write them: year=2020/month=3/part-0.parquet.

What such a column holds is text, as a cell of a CSV file is: the schema alone says what it is read as. So no file and no row decides its
type. A column that a file holds itself is read from the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from dpgram.errors import TableError
from dpgram.sources.base import Part, Piece, Source, record_batch

MISSING = "__HIVE_DEFAULT_PARTITION__"  # how Hive and Spark write a missing cell


def folder_cells(path: Path) -> list[tuple[str, str | None]]:
    """The column and its cell for each folder of the path that is called name=cell, from the outermost on."""
    pairs = (folder.partition("=") for folder in path.parts[:-1])
    return [(unquote(name), None if cell == MISSING else unquote(cell)) for name, equals, cell in pairs if name and equals]


def with_folders(file: Source, path: Path) -> Source:
    """The file with the columns that its folders name and that it does not hold itself."""
    cells = [(name, cell) for name, cell in folder_cells(path) if name not in file.columns.names]
    return InFolders(file, cells) if cells else file


class InFolders(Source):
    """A file, and columns of which all its rows have the same cell. A column that two folders name is there twice, which is an error
    where it is declared."""

    def __init__(self, file: Source, cells: Sequence[tuple[str, str | None]]):
        self._file = file
        self._cells = {name: None if cell is None else cell.encode("utf-8", "surrogateescape") for name, cell in cells}
        self.where, self.rereadable, self.costly = file.where, file.rereadable, file.costly
        self.typed_by_format = file.typed_by_format
        self.columns = pa.schema([*file.columns, *(pa.field(name, pa.binary()) for name, _ in cells)])
        self.untyped = file.untyped | self._cells.keys()

    def names(self, column: str) -> bool:
        """Whether a folder names the column."""
        return column in self._cells

    def count(self, names: Sequence[str]) -> int | None:
        return self._file.count(self._own(names))

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        return self._completed(names, self._file.pieces(self._own(names)))

    def parts(self, names: Sequence[str]) -> list[Part]:
        return [partial(self._opened, names, part) for part in self._file.parts(self._own(names))]

    def _opened(self, names: Sequence[str], part: Part) -> Iterator[Piece]:
        return self._completed(names, part())

    def _own(self, names: Sequence[str]) -> list[str]:
        """The columns to read from the file: one at least, which tells how many rows there are."""
        return [name for name in names if name not in self._cells] or self._file.columns.names[:1]

    def _completed(self, names: Sequence[str], pieces: Iterator[Piece]) -> Iterator[Piece]:
        for batch, fraction in pieces:
            rows = batch.num_rows
            arrays = [_repeated(self._cells[name], rows) if name in self._cells else batch.column(name) for name in names]
            yield Piece(record_batch(self.where, names, arrays), fraction)


def _repeated(cell: bytes | None, rows: int) -> pa.Array:
    """The cell in every row, kept once."""
    if cell is None:
        return pa.nulls(rows, pa.binary())
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([cell], pa.binary()))


def check_alike(where: str, files: Sequence[Source], names: Sequence[str]) -> None:
    """Raise unless folders name the same of the columns ``names`` for all files: else one column would be read in two ways."""
    named = [{name for name in names if isinstance(file, InFolders) and file.names(name)} for file in files]
    if apart := {name for some in named for name in some if not all(name in each for each in named)}:
        raise TableError(
            f"{where}: the column {min(apart)!r} stands in the names of some folders, and in the files of others. It must be the same "
            f"for all files. Choose files with a glob."
        )
