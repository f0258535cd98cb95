"""From whatever a user passes as a table to the engine that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpgram.engines.base import Pass, Progress
from dpgram.engines.local import LocalPass
from dpgram.engines.spark import find_frame, is_spark, open_spark
from dpgram.errors import TableError
from dpgram.sources.open import open_source
from dpgram.terms.schema import Schema


def open_pass(
    table: object,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    query: str | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Pass:
    """The pass over ``table``. ``query`` is asked of a database, ``device`` is where PyTorch sums."""
    if is_spark(table):
        if columns is not None or device is not None:
            raise TableError("columns= names the columns of an array, and device= is for PyTorch: a Spark table takes neither.")
        return open_spark(table, schema, query=query, progress=progress)
    if query is not None:
        raise TableError("query= needs a database.")
    if device is not None:
        raise TableError("device= needs PyTorch.")
    return LocalPass(open_source(table, columns=columns), schema, progress=progress)


def open_header(table: object) -> Any:
    """Names and types of ``table``, as a source has them; no row of a Spark table is read for it."""
    return find_frame(table)[0] if is_spark(table) else open_source(table)
