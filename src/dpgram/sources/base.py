"""What every source offers, and the gate that keeps cell values out of error messages.

The libraries underneath like to quote cells in their exceptions ("could not convert string 'Smith' to double"). So every
call that may touch a cell goes through ``quietly``, which keeps the exception's class name and drops everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dpgram.errors import DpgramError, DuplicateColumnError, MissingColumnError, TableError, UnreadableTableError

T = TypeVar("T")
BATCH_ROWS = 65_536
BATCH_CELLS = 1 << 21  # cells in a batch: 16 MiB of numbers, so that a wide table has fewer rows in flight
# Types with the same buffers, in which every cell is sound.
MEANINGLESS = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
    pa.date64(): pa.int64(),
}


class ArrayBatch:
    """Columns of some rows by name, NumPy's where they hold plain numbers, so that nothing is copied, else Arrow's."""

    def __init__(self, columns: Mapping[str, np.ndarray | pa.Array], schema: pa.Schema, num_rows: int):
        self._columns, self.schema, self.num_rows = columns, schema, num_rows

    def column(self, name: str) -> np.ndarray | pa.Array:
        return self._columns[name]

    def slice(self, start: int, rows: int) -> ArrayBatch:
        part = {name: cells[start : start + rows] for name, cells in self._columns.items()}
        return ArrayBatch(part, self.schema, max(0, min(rows, self.num_rows - start)))


class MatrixBatch:
    """Some rows of a two-dimensional array of numbers; its columns are views."""

    def __init__(self, matrix: np.ndarray, schema: pa.Schema):
        self.matrix, self.schema, self.num_rows = matrix, schema, len(matrix)

    def column(self, name: str) -> np.ndarray:
        return self.matrix[:, self.schema.get_field_index(name)]

    def slice(self, start: int, rows: int) -> MatrixBatch:
        return MatrixBatch(self.matrix[start : start + rows], self.schema)


Batch: TypeAlias = pa.RecordBatch | ArrayBatch | MatrixBatch


class Piece(NamedTuple):
    """Some rows, and the fraction of the source that has been read, where that is known."""

    batch: Batch
    fraction: float | None


B = TypeVar("B", pa.RecordBatch, ArrayBatch, MatrixBatch)
Part = Callable[[], Iterator[Piece]]  # opens a part of a table, whose fractions are of the part


class Source:
    """A table that can be read, and what holds of one that says nothing else.

    ``columns`` are the names and types that the format declares, known before any row is read. Columns in ``untyped``
    have no declared type (CSV, object columns): their cells arrive as bytes, to be cast one by one under the schema.

    Where a table changes between two passes, each pass is over a table of its own. Nobody is protected less by it, since every round
    has noise of its own, but the rounds do not fit each other: so a change that can be noticed is an error."""

    where: str
    columns: pa.Schema
    untyped: frozenset[str] = frozenset()
    typed_by_format: bool = True  # False for CSV: nothing about kinds is declared
    rows_of: str = "table"  # what one row is a row of: "table", or "result" of a query, a lazy frame or a stream
    rereadable: bool = False  # whether ``pieces`` can be asked for again, with the same rows
    costly: bool = False  # whether that takes so long that rows are better kept: text is read again, a database asked again

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """The rows, with just the columns ``names``, in that order."""
        raise NotImplementedError

    def parts(self, names: Sequence[str]) -> list[Part]:
        """Parts of the table that several threads may read at a time, each its own."""
        return [lambda: self.pieces(names)]

    def kept(self, batch: Batch) -> Batch:
        """What is to be added of a batch of ``parts``, asked in the thread that adds it. A source that keeps rows does so here."""
        return batch

    def count(self, names: Sequence[str]) -> int | None:
        """How many rows ``pieces`` would give, where the source can tell without them; else None. Asked only where it is public."""
        return None

    def tell_apart(self, name: str) -> None:
        """From now on the cells of this column are as different as they are in the source: none is rounded on the way. It then may be
        an untyped column of texts. For ids: two that became one would protect each other's rows less."""

    def one_state(self) -> AbstractContextManager[Any]:
        """Within it every pass sees one state of the table, as far as the source can see to that."""
        return nullcontext()


def spans(rows: int, step: int) -> Iterator[tuple[slice, float]]:
    """Stretches of at most ``step`` rows, and the fraction that has been read after each."""
    for start in range(0, rows, step):
        stop = min(rows, start + step)
        yield slice(start, stop), stop / rows


def batch_rows(columns: int) -> int:
    """How many rows to read at a time: a power of two."""
    return max(1024, min(BATCH_ROWS, 1 << (BATCH_CELLS // max(1, columns)).bit_length() - 1))


def quietly(where: str, call: Callable[..., T], *args: object, **kwargs: object) -> T:
    """``call(*args)``, where a failure becomes an UnreadableTableError that carries no message, cause or context."""
    return explained(where, partial(call, *args, **kwargs), lambda error: {"failure": type(error).__name__})


def explained(where: str, call: Callable[[], T], explain: Callable[[BaseException], dict[str, str]]) -> T:
    """``call()``, where a failure becomes an UnreadableTableError with the words of ``explain`` alone: ``failure``, and what to ``do``.

    The error is raised after the handler has ended: raised inside it, Python would hang the original on it."""
    words = None
    try:
        return call()
    except (DpgramError, SystemExit, GeneratorExit):
        raise
    except KeyboardInterrupt:
        pass
    except BaseException as error:  # polars' panics are no Exceptions
        words = explain(error)
    if words is None:
        raise KeyboardInterrupt
    raise UnreadableTableError(where=where, **words)


def quiet_iterator(where: str, iterator: Iterator[T]) -> Iterator[T]:
    """The items of ``iterator``, each fetched ``quietly``."""
    end = object()
    while (item := quietly(where, next, iterator, end)) is not end:
        yield item


def declared_columns(where: str, call: Callable[[], pa.Schema]) -> pa.Schema:
    """The names and types that ``call`` gives, all of which can be put into words: in a damaged file they may be no text."""
    schema = quietly(where, call)
    quietly(where, lambda: [(field.name, str(field.type)) for field in schema])
    return schema


def check_columns(source: Source, names: Sequence[str]) -> None:
    """Raise unless the source has every column in ``names`` exactly once."""
    present = Counter(source.columns.names)
    for name in names:
        if present[name] == 0:
            raise MissingColumnError(column=name, where=source.where, hint=_hint(source))
        if present[name] > 1:
            raise DuplicateColumnError(column=name, where=source.where)


def _hint(source: Source) -> str:
    """What to do about a missing column. A CSV's first line is not quoted: without a header it is somebody's row."""
    if not source.typed_by_format:
        return "the first line of the file must contain the column names, spelt as in the schema"
    shown = source.columns.names[:20]
    if not shown:
        return "it has no column with a text name"
    return f"it has {', '.join(shown)}{', ...' if len(source.columns.names) > 20 else ''}"


def check_header(source: Source) -> None:
    """Raise if the names of a format without types look like a row of data: a draft must not repeat somebody's cells."""
    if not source.typed_by_format and any(_is_number(name) for name in source.columns.names):
        raise TableError(
            f"{source.where}: a name in the first line is a number, so the line may be a person's row. Add a line of column "
            f"names. If a column's name really is a number, write the schema by hand."
        )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def record_batch(where: str, names: Sequence[str], arrays: Sequence[pa.Array]) -> pa.RecordBatch:
    """The arrays as one batch, made ``quietly``."""
    return quietly(where, pa.RecordBatch.from_arrays, list(arrays), names=list(names))


def slices(batch: B, rows: int = BATCH_ROWS) -> Iterator[B]:
    """The batch in pieces of at most ``rows`` rows; no copy."""
    if 0 < batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def declared_type(empty: Callable[[], pa.Array], dtype: object) -> pa.DataType:
    """The Arrow type of a column's empty slice; for a dtype that Arrow lacks, a type that no kind of column takes.

    The column may be one that the schema does not declare, so a strange dtype is no error here."""
    try:
        return empty().type
    except (pa.ArrowException, TypeError, ValueError):
        return pa.struct([pa.field(type(dtype).__name__, pa.null())])  # its full name may hold a value (sparse dtypes)


def check_buffers(cells: pa.Array | pa.ChunkedArray) -> None:
    """Raise if offsets, views or indices point outside: read as they are, they would end the process. May quote them: call it quietly.

    What a cell holds is not looked at. Text that is not UTF-8, a decimal of too many digits or a date in the middle of a day is no
    damage but somebody's cell."""
    for chunk in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        _without_meaning(chunk).validate(full=True)


def _without_meaning(cells: pa.Array) -> pa.Array:
    if isinstance(cells, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(cells.indices, _without_meaning(cells.dictionary), safe=False)
    if pt.is_decimal(cells.type):
        return cells.view(pa.binary(cells.type.byte_width))
    return cells.view(MEANINGLESS[cells.type]) if cells.type in MEANINGLESS else cells


class OneFile(Source):
    """A file of some format, which must be the same file in every pass. What it is, the first look says."""

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
        return TableError(f"{self.where} was changed while it was being read. Run again when nothing writes to it.")
