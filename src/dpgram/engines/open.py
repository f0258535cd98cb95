"""From whatever a user passes as a table to the engine that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dpgram.encoding.parsed import parsed
from dpgram.engines.base import Pass, Progress
from dpgram.engines.local import LocalPass
from dpgram.engines.spark import SparkPass, find_table, is_spark
from dpgram.engines.torch import DevicePass, holds_tensors, open_tensors
from dpgram.errors import TableError
from dpgram.sources.base import Source
from dpgram.sources.cache import Cached, Keep
from dpgram.sources.open import open_source
from dpgram.terms.schema import Schema


def open_pass(
    table: object,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    query: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    keep: Keep | None = None,
    memory: float = 0.0,
    progress: Progress | None = None,
) -> Pass:
    """The pass over ``table``. ``query`` is asked of a database, ``device`` is where PyTorch sums, ``threads`` how many sum here. Rows that
    several rounds read may take so many MB of ``memory``, and so may the ids of units. If the table cannot be read again, or only at a
    price, its rows are kept as ``keep`` says while ``one_state`` lasts."""
    if is_spark(table):
        if keep is not None and keep.asked:
            raise TableError(
                "cache= would copy the rows to this machine, but Spark can keep a frame itself (persist). Leave cache= out."
            )
        if columns is not None or device is not None or threads is not None:
            raise TableError(
                "columns= is for arrays, device= for PyTorch and threads= for this machine. Leave them out for a Spark table."
            )
        return SparkPass(find_table(table, query), schema, progress, memory)
    if device is not None and threads is not None:
        raise TableError("threads= is for sums on this machine's cores and device= for sums by PyTorch. Pass one of the two.")
    if holds_tensors(table):
        if query is not None:
            raise TableError("query= is for a database, but this table consists of PyTorch tensors. Leave it out.")
        source, device = open_tensors(table, columns, device)
    else:
        source = open_source(table, columns=columns, query=query)
    if schema.unit_id is not None:
        source.tell_apart(schema.unit_id)
    if keep is None and schema.unit_id is not None and source.rows_of == "result" and source.rereadable:
        raise TableError(
            f"the rows of units are counted before they are summed, and {source.where} may have other rows when it is computed again. "
            f"Leave out cache=False (--no-cache), so that rows are kept while the release is made. Or save it to a file first."
        )
    if keep is not None and (source.costly or not source.rereadable):
        source = Cached(source, schema.read_names, partial(parsed, schema), keep)
    if device is not None:
        return DevicePass(source, schema, device, progress, memory=memory)
    return LocalPass(source, schema, progress=progress, threads=threads, memory=memory)


def open_header(table: object, *, query: str | None = None) -> Source:
    """Names and types of ``table``, for which no row is read."""
    return find_table(table, query) if is_spark(table) else open_source(table, query=query)
