"""What a worker of a cluster does: the exact sum of one part of the table, and exact sums of such sums.

A sum goes between machines as pieces of its upper triangle, or of several. Each piece is added up over all parts in one place, so the work
of adding is spread over the workers and what reaches the driver is one triangle, however many parts the table has."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from dpgram.engines.summing import summing_for
from dpgram.errors import TableError
from dpgram.rows.bin_counts import BinCounts
from dpgram.rows.coins import Coins
from dpgram.rows.decoded import DecodedBatch, Decoding
from dpgram.rows.gram_sum import GramSum, stacked
from dpgram.rows.shares import Shares
from dpgram.rows.units import UnitIndex
from dpgram.sources.base import quiet_iterator, quietly, record_batch
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

Array = np.ndarray

PIECE_ENTRIES = 1024  # 16 KiB in two limbs: ten thousand of them, Spark's batch, are 160 MB
LIMB = np.dtype("<i8")
WHERE = "a part of the table"
ROWS_OF_UNIT, MARK_OF_UNIT = (
    "rows of the unit\0",
    "mark of the unit\0",
)  # names of extra columns of a part: how many, and a hash of the id
INDEX_BYTES = 2**30  # far more than the ids of one batch take
LIMBS = {"high": pa.binary(), "low": pa.binary()}
NUMBERS = {"mark": pa.int64(), "rows": pa.int64(), "ids": pa.int64()}
PARTIAL = pa.schema({"piece": pa.int32(), "part": pa.int32(), **NUMBERS, **LIMBS})  # of one part
KEPT = pa.schema({"rows": pa.int64(), "ids": pa.int64(), "cells": pa.binary()})
SUM = pa.schema({"piece": pa.int32(), "parts": pa.int32(), **NUMBERS, **LIMBS})
UNITS = ("unit", "rows", "units", "total", "ids")


def count_pieces(dim: int, scales: int = 1) -> int:
    """Pieces of the upper triangles of so many ``dim`` by ``dim`` matrices."""
    return -(-scales * (dim * (dim + 1) // 2) // PIECE_ENTRIES)


def sum_part(
    batches: Iterator[pa.RecordBatch],
    declared: dict,
    names: Sequence[str],
    row_bound: float,
    part: int | None = None,
    through: bytes | None = None,
    scales: Scales = ONE_CLIP,
) -> Iterator[pa.RecordBatch]:
    """The sum over ``batches``, whose columns are ``names`` in that order, in pieces. An empty part has a sum too: zero.

    ``through`` is a public map in bytes. Where units have ids, one of the columns is ``ROWS_OF_UNIT``."""
    public, schema = None if through is None else PublicMap.from_bytes(through), Schema.from_dict(declared)
    summing, ids = summing_for(schema, row_bound, public, scales, shares=_shares(schema, names)), 0
    for batch in _named(batches, names):
        quietly(WHERE, summing.add, batch)
        ids += _marks(batch)
    yield to_pieces(summing.total(), _number_of_this_part() if part is None else part, ids)


def count_part(
    batches: Iterator[pa.RecordBatch],
    declared: dict,
    names: Sequence[str],
    inner: dict[str, tuple[float, ...]],
    part: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """How many of the rows in ``batches`` lie in each bin, in pieces; ``inner`` are the bins' edges by column."""
    schema = Schema.from_dict(declared)
    counts, ids = BinCounts(schema, Bins(inner), shares=_shares(schema, names)), 0
    for batch in _named(batches, names):
        quietly(WHERE, counts.add, batch)
        ids += _marks(batch)
    yield to_pieces(counts.total(), _number_of_this_part() if part is None else part, ids)


def keep_part(
    batches: Iterator[pa.RecordBatch],
    declared: dict,
    names: Sequence[str],
    key: bytes,
    share: float,
    part: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows in ``batches`` that coins choose, or all of them, decoded, as rows of ``KEPT``; the first says how many all are."""
    schema = Schema.from_dict(declared)
    decoding = Decoding(schema, shares=_shares(schema, names))
    coins = None if share == 1.0 else Coins(key, share)
    place, rows, ids = _number_of_this_part() if part is None else part, 0, 0
    for batch in _named(batches, names):
        chosen = None if coins is None else coins.chosen(place, rows, batch.num_rows)
        quietly(WHERE, decoding.add, batch, chosen)
        rows, ids = rows + batch.num_rows, ids + _marks(batch)
    cells = [each.to_bytes() for each in decoding.batches()]
    yield _batch([[rows, *(0 for _ in cells)], [wrapped(ids), *(0 for _ in cells)], [b"", *cells]], KEPT)


def from_kept(kept: Sequence[tuple[int, int, bytes]], schema: Schema) -> tuple[list[DecodedBatch], int, int]:
    """The rows that all parts kept, how many rows they have, and the sum of the ids' marks."""
    batches = [DecodedBatch.from_bytes(bytes(cells), schema) for _, _, cells in kept if cells]
    return batches, sum(rows for rows, _, _ in kept), wrapped(sum(ids for _, ids, _ in kept))


def long_part(batches: Iterator[pa.RecordBatch], id_type: pa.DataType, most: int) -> Iterator[pa.RecordBatch]:
    """Of ids, each once, with their numbers of rows and their marks: those with more than ``most`` rows, and those that are no ids, whose
    rows count as none. A last line says how many units there are, how many rows, and what the marks of all rows add up to."""
    units = total = ids = 0
    for batch in quiet_iterator(WHERE, iter(batches)):
        cells, rows, marks = quietly(WHERE, batch.column(0).cast, id_type), *(np.asarray(batch.column(i)) for i in (1, 2))
        known = quietly(WHERE, _are_ids, cells)
        units, total, ids = units + int(known.sum()), total + int(rows.sum()), ids + int((rows * marks).sum())
        listed = pa.array((rows > most) | ~known)
        found = cells.filter(listed)
        none = pa.nulls(len(found), pa.int64())
        yield _units(found, pa.array(np.where(known, rows, 0)).filter(listed), none, none, none)
    yield _units(pa.nulls(1, id_type), pa.nulls(1, pa.int64()), *(pa.array([each]) for each in (units, total, wrapped(ids))))


def _are_ids(cells: pa.Array) -> Array:
    """Which of the cells are ids, as units are counted everywhere."""
    index = UnitIndex(INDEX_BYTES)
    index.add(cells)
    return index.counts(cells) > 0


def _units(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=list(UNITS))


def _shares(schema: Schema, names: Sequence[str]) -> Shares:
    """What rows of a part count as: a column says how many rows the unit has, if it was counted."""
    return Shares(schema, (lambda batch: np.asarray(batch.column(ROWS_OF_UNIT))) if ROWS_OF_UNIT in names else None)


def _named(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return (record_batch(WHERE, names, batch.columns) for batch in quiet_iterator(WHERE, iter(batches)))


def _marks(batch: pa.RecordBatch) -> int:
    """The sum of the ids' marks. Where a table's ids have changed since they were counted, it is another one."""
    return int(np.asarray(batch.column(MARK_OF_UNIT)).sum()) if MARK_OF_UNIT in batch.schema.names else 0


def wrapped(number: int) -> int:
    """The number of 64 bits that it is, but for a multiple of 2^64."""
    return (number + 2**63) % 2**64 - 2**63


def _number_of_this_part() -> int:
    """Which of Spark's partitions this task computes: the same in every attempt at it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def to_pieces(total: GramSum, part: int, ids: int = 0) -> pa.RecordBatch:
    """The sum of one part as rows of ``PARTIAL``.

    ``mark`` is a hash of the whole sum. A part that is computed again has the same one, as sums are exact, unless its rows
    have changed. ``ids`` is the sum of the ids' marks."""
    upper = np.triu_indices(total.high.shape[-1])
    high, low = (limb[..., *upper].ravel().astype(LIMB) for limb in (total.high, total.low))
    starts = range(0, len(high), PIECE_ENTRIES)
    cut = [[limb[start : start + PIECE_ENTRIES].tobytes() for start in starts] for limb in (high, low)]
    mark = int.from_bytes(blake2b(high.tobytes() + low.tobytes(), digest_size=4).digest())  # 2^31 of them are less than 2^63
    columns = [range(len(starts)), *([same] * len(starts) for same in (part, mark, total.rows, wrapped(ids))), *cut]
    return _batch(columns, PARTIAL)


def add_pieces(batches: Iterable[pa.RecordBatch], row_bound: float) -> Iterator[pa.RecordBatch]:
    """Every piece that occurs, added up over the parts, as rows of ``SUM``.

    ``parts`` says how many parts went into it, and is -1 unless they were the parts 0, 1, 2, ... each once; ``mark`` is the
    sum of theirs."""
    sums: dict[int, GramSum] = {}
    parts: dict[int, array[int]] = {}  # four bytes each: pieces times parts can be many millions
    marks: Counter[int] = Counter()
    id_marks: Counter[int] = Counter()
    for batch in batches:
        for piece, part, mark, rows, ids, high, low in zip(
            *(batch.column(name).to_pylist() for name in PARTIAL.names), strict=True
        ):
            term = GramSum(np.frombuffer(high, LIMB), np.frombuffer(low, LIMB), rows, row_bound)
            sums[piece] = sums[piece].merge(term) if piece in sums else term
            parts.setdefault(piece, array("i")).append(part)
            marks[piece] += mark
            id_marks[piece] += ids
    counts = [len(numbers) if sorted(numbers) == list(range(len(numbers))) else -1 for numbers in parts.values()]
    limbs = [[getattr(total, limb).astype(LIMB).tobytes() for total in sums.values()] for limb in LIMBS]
    rows = [total.rows for total in sums.values()]
    yield _batch(
        [sums, counts, [marks[piece] for piece in sums], rows, [wrapped(id_marks[piece]) for piece in sums], *limbs], SUM
    )


def from_pieces(
    pieces: Sequence[tuple[int, int, int, int, int, bytes, bytes]],
    dim: int,
    row_bound: float,
    through: str = "",
    scales: int = 1,
) -> GramSum:
    """The whole sum from all rows of ``SUM``; of none at all it is zero: a table known to be empty has no part.

    ``through`` is the digest of the map that the rows went through."""
    if not pieces:
        return GramSum.zero(dim, row_bound, through, scales)
    numbers, parts, marks, rows, ids, highs, lows = zip(*sorted(pieces), strict=True)
    one = len({*zip(parts, marks, rows, ids, strict=True)}) == 1
    if numbers != tuple(range(count_pieces(dim, scales))) or not one or parts[0] < 1:
        raise TableError(
            "some part of the table was summed twice or not at all, so nothing was released. Try again. If it happens again, write "
            "the table to storage first, and release that."
        )
    high, low = (_symmetric(b"".join(bytes(piece) for piece in limb), dim, scales) for limb in (highs, lows))
    return GramSum(high, low, int(rows[0]), row_bound, through)


def ids_of(pieces: Sequence[tuple]) -> int:
    """The sum of the ids' marks over the whole table, from rows of ``SUM``."""
    return pieces[0][SUM.get_field_index("ids")] if pieces else 0


def _symmetric(triangles: bytes, dim: int, scales: int) -> Array:
    full = np.zeros((scales, dim, dim), dtype=np.int64)
    full[:, *np.triu_indices(dim)] = np.frombuffer(triangles, LIMB).reshape(scales, -1)
    return stacked([*(full + np.triu(full, 1).mT)])


def _batch(columns: Sequence[Iterable], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
