"""pandas frames and polars lazy frames. Every other dataframe comes as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from dpgram.encoding.columns import is_pandas_text, pandas_column
from dpgram.sources.base import (
    Piece,
    Source,
    batch_rows,
    check_buffers,
    declared_type,
    quiet_iterator,
    quietly,
    record_batch,
    spans,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class PandasFrame(Source):
    """A pandas DataFrame; its index is not a column.

    Object and string columns are untyped: pandas makes a column of numbers one of strings when a single cell does not
    parse, so their type depends on somebody's row and must not decide between a release and an error."""

    where = "the table (a pandas DataFrame)"
    rereadable = True

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame
        named = [(i, name) for i, name in enumerate(frame.columns) if isinstance(name, str)]
        self.untyped = frozenset(name for i, name in named if is_pandas_text(frame.dtypes.iloc[i]))
        self.columns = pa.schema([pa.field(name, self._type(i, name)) for i, name in named])
        self._places = {name: i for i, name in named}

    def _type(self, place: int, name: str) -> pa.DataType:
        if name in self.untyped:
            return pa.binary()
        return declared_type(lambda: pa.Array.from_pandas(self._frame.iloc[:0, place]), self._frame.dtypes.iloc[place])

    def count(self, names: Sequence[str]) -> int:
        return len(self._frame)

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for span, fraction in spans(len(self._frame), batch_rows(len(names))):
            arrays = [quietly(self.where, self._array, self._frame.iloc[span], name) for name in names]
            yield Piece(record_batch(self.where, names, arrays), fraction)

    def _array(self, part: pd.DataFrame, name: str) -> pa.Array:
        array = pandas_column(part.iloc[:, self._places[name]])
        check_buffers(array)
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class PolarsLazyFrame(Source):
    """A polars LazyFrame, run by polars' streaming engine, a batch at a time. One row is a row of its result."""

    where = "the table (a polars LazyFrame)"
    rows_of = "result"
    rereadable = True  # it is computed again, from what it reads by then
    costly = True

    def __init__(self, frame: pl.LazyFrame):
        self._frame = frame
        self.columns = quietly(self.where, lambda: frame.collect_schema().to_frame().to_arrow().schema)

    def count(self, names: Sequence[str]) -> int:
        """The number of rows of the result, which polars computes for it without its columns, where it can."""
        import polars as pl  # whose frame this is

        return quietly(self.where, lambda: self._frame.select(pl.len()).collect(engine="streaming").item())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        batches = quietly(self.where, lambda: self._frame.select(names).collect_batches(chunk_size=batch_rows(len(names))))
        for frame in quiet_iterator(self.where, iter(batches)):
            for batch in quietly(self.where, lambda f: f.to_arrow().to_batches(), frame):
                yield Piece(batch, None)
