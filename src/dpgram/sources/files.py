"""Paths as tables: one file, a folder of them, or a glob, all of one format."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dpgram.errors import TableError
from dpgram.sources.arrow import ArrowFile
from dpgram.sources.base import Part, Piece, Source, check_columns
from dpgram.sources.csv import OPENERS, CsvFile
from dpgram.sources.folders import check_alike, with_folders
from dpgram.sources.parquet import ParquetFile

FORMATS: dict[str, Callable[[Path], Source]] = {
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".arrow": ArrowFile,
    ".feather": ArrowFile,
}
KNOWN = "a name that ends in .parquet, .csv, .tsv (also .gz, .bz2, .xz), .arrow or .feather"


def open_path(path: str | os.PathLike[str]) -> Source:
    """The file, or all files of the folder or glob as one table."""
    files = [_open_file(file) for file in _expand(os.fspath(path))]
    return files[0] if len(files) == 1 else ManyFiles(os.fspath(path), files)


def _expand(path: str) -> list[Path]:
    place = Path(path).expanduser()
    if place.is_file():
        return [place]
    if place.is_dir():
        files = sorted(f for f in place.rglob("*") if f.is_file() and not _is_hidden(f.relative_to(place)))
        if not files:
            raise TableError(f"folder {path} contains no table. It needs files with {KNOWN}.")
    elif glob.has_magic(path):
        files = sorted(Path(f) for f in glob.glob(str(place), recursive=True) if os.path.isfile(f))
        if not files:
            raise TableError(
                f"no file matches {path}. Check the pattern, and put it in quotes so that the shell does not change it."
            )
    elif place.is_fifo() or place.is_char_device():
        raise TableError(
            f"{path} is a pipe or a device, but dpgram must open it more than once. Write the table to a file first."
        )
    else:
        raise TableError(f"{path} is not a file, folder or glob that can be read. Check the path.")
    if len({_format(f) for f in files}) > 1:
        raise TableError(
            f"{path} contains files of several formats, but only one is allowed. Choose one with a glob, such as *.parquet."
        )
    seen: set[Path] = set()
    for file in files:
        if (same := _unpacked_name(file.resolve())) in seen:  # its rows would count twice
            raise TableError(
                f"{path} contains {file.name} twice, as a link or as a compressed copy. Remove one, or use a glob."
            )
        seen.add(same)
    return files


def _is_hidden(path: Path) -> bool:
    """Whether a file is a writer's own (_SUCCESS, _metadata, .crc): readers of data lakes pass over these."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _unpacked_name(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in OPENERS else path


def _format(path: Path) -> Callable[[Path], Source] | None:
    unpacked = _unpacked_name(path)
    opener = FORMATS.get(unpacked.suffix.lower())
    return opener if unpacked == path or opener is CsvFile else None  # of packed files only CSV is read


def _open_file(path: Path) -> Source:
    opener = _format(path)
    if opener is None:
        raise TableError(f"{path}: the file format is not known. A table needs {KNOWN}.")
    if not os.access(path, os.R_OK):
        raise TableError(f"{path} cannot be read: permission denied.")
    return with_folders(opener(path), path)


class ManyFiles(Source):
    """Files of one format, one after the other. Each must have the declared columns.

    They were looked for when it was made: one that is added later is not seen, one that is gone is an error."""

    rereadable = True

    def __init__(self, where: str, files: Sequence[Source]):
        self._files = files
        self.where = f"the table of {len(files)} files at {where}"
        self.columns, self.untyped = files[0].columns, files[0].untyped
        self.typed_by_format, self.costly = files[0].typed_by_format, files[0].costly

    def count(self, names: Sequence[str]) -> int | None:
        """The number of rows of all files, where each can tell its own."""
        told = [file.count(names) for file in self._checked(names)]
        return None if None in told else sum(told)  # type: ignore[arg-type]

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for i, file in enumerate(self._checked(names)):
            for batch, fraction in file.pieces(names):
                yield Piece(batch, (i + (fraction or 0.0)) / len(self._files))

    def parts(self, names: Sequence[str]) -> list[Part]:
        return [part for file in self._checked(names) for part in file.parts(names)]

    def _checked(self, names: Sequence[str]) -> Sequence[Source]:
        """The files, all of which have the columns ``names``."""
        for file in self._files:
            check_columns(file, names)
        check_alike(self.where, self._files, names)
        return self._files
