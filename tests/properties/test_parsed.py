"""What is kept of a batch: the encoder, the kernel and the counts make the same bits of it as of the batch itself."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.encoding import parsed as module
from dpgram.encoding.encode import Encoder
from dpgram.encoding.parsed import parsed
from dpgram.engines.summing import summing_for
from dpgram.rows.bin_counts import BinCounts
from dpgram.terms.bins import Bins
from tests.fuzz.target import DERIVED, PLAIN, SCHEMAS, integers
from tests.fuzz.test_cells import BYTES

NAMES = "xnckbd"
WORDS = st.sampled_from(
    [b"", b"NA", b"1", b"2.5", b"0.1", b"-3", b"3", b"a", b"b", b"c", b"true", b"No", b"2013-05-01", b"2013-05-01T13:14:15", b"0001-01-01"]
)  # fmt: skip
CELLS = st.none() | WORDS | BYTES
LEARNT = {"x": (-1.0, 2.0), "n": (10.0, 20.0)}
BINS = Bins({"x": (-1.0, 0.0, 0.1, 3.0), "n": (1.0, 2.5)})


def same(batch: pa.RecordBatch, schema, untyped=frozenset(NAMES)) -> bool:
    """Whether all that is ever made of a batch is the same, also after scales were learnt; and nothing is left to parse."""
    kept = parsed(schema, batch)
    assert parsed(schema, kept).schema == kept.schema
    for declared in (schema, replace(schema, learnt=LEARNT)):
        encoded = [Encoder(declared, untyped=untyped).encode(each) for each in (batch, kept)]
        sums = [summing_for(declared, 1.5, untyped=untyped) for _ in range(2)]
        counts = [BinCounts(declared, BINS, untyped=untyped) for _ in range(2)]
        for number, each in enumerate((batch, kept)):
            sums[number].add(each)
            counts[number].add(each)
        if encoded[0].tobytes() != encoded[1].tobytes():
            return False
        if any((integers(one.total()) != integers(two.total())).any() for one, two in (sums, counts)):
            return False
    return True


@settings(max_examples=150)
@given(
    rows=st.lists(st.lists(CELLS, min_size=6, max_size=6), max_size=40),
    schema=st.sampled_from(SCHEMAS),
    kind=st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()]),
    start=st.integers(0, 3),
)
def test_text(rows, schema, kind, start):
    columns = [pa.array([row[i] for row in rows], kind) for i in range(6)]
    assert same(pa.RecordBatch.from_arrays(columns, names=list(NAMES)).slice(start), schema)


def typed(**changes) -> pa.RecordBatch:
    """Columns as a database declares them."""
    moment = datetime.datetime(2013, 5, 1, 13, 14, 15)
    columns = {
        "x": pa.array([1.5, None, float("nan"), 1e300]),
        "n": pa.array([Decimal("0.10"), None, Decimal("2.50"), Decimal("-1.25")]),
        "c": pa.array(["a", None, "z", "b"]),
        "k": pa.array([1, None, 7, 3], pa.int16()),
        "b": pa.array([True, None, False, True]),
        "d": pa.array([moment, None, moment, datetime.datetime(1900, 1, 1)], pa.timestamp("us")),
    }
    return pa.record_batch({**columns, **changes})


@pytest.mark.parametrize("schema", SCHEMAS, ids=["plain", "derived"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"c": pa.array(["a", None, "z", "b"]).dictionary_encode(), "b": pa.array([1, 0, None, 2], pa.int64())},
        {"b": pa.array([Decimal(1), None, Decimal(0), Decimal(2)]), "x": pa.array([2**53 + 1, 1, None, 0], pa.int64())},
        {"d": pa.array([1, None, 2, 10**7], pa.date32()), "c": pa.array(["a", None, "z", "b"], pa.string_view())},
        {"x": pa.nulls(4), "c": pa.nulls(4), "d": pa.nulls(4), "k": pa.array([1.0, None, 2.5, 3.0])},
    ],
)
def test_types_of_a_database(schema, changes):
    assert same(typed(**changes), schema, untyped=frozenset())


def test_narrow_numbers_and_codes():
    """Half the room where that loses nothing; a byte for each of a few levels."""
    rows = 1000
    columns = {"x": [b"0.1"] * rows, "n": [b"%d" % i for i in range(rows)], "c": [b"a", b"b"] * (rows // 2), "k": [b"1"] * rows}
    columns |= {"b": [b"yes", None] * (rows // 2), "d": [b"2013-05-01"] * rows}
    kept = parsed(PLAIN, pa.record_batch({name: pa.array(cells, pa.binary()) for name, cells in columns.items()}))
    assert [str(kind) for kind in kept.schema.types[:2]] == ["double", "float"]
    assert kept.schema.field("c").type.index_type == pa.int8()
    assert [str(kind) for kind in kept.schema.types[4:]] == ["int8", "timestamp[s]"]
    many = pa.record_batch(
        {**dict(zip(kept.schema.names, kept.columns, strict=True)), "c": pa.array([str(i) for i in range(rows)])}
    )
    assert parsed(PLAIN, many).schema.field("c").type.index_type == pa.int16()


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("as_numbers", lambda before: lambda cells: np.nan_to_num(before(cells))),
        ("as_truth", lambda before: lambda cells: np.nan_to_num(before(cells))),
        ("as_days", lambda before: lambda cells: np.floor(before(cells))),
        ("_numbers", lambda before: lambda values: pa.array(values.astype(np.float32))),
        ("_coded", lambda before: lambda cells: before(cells).fill_null(cells.dictionary[0])),
    ],
)
def test_planted_mistakes_are_found(monkeypatch, name, mistake):
    """Missing cells that become numbers, days without their hours, numbers that are rounded, missing words that become others."""
    rows = [[b"0.1", b"1.1", b"b", b"3", b"1", b"2013-05-01T13:14:15"], [None] * 6]
    batch = pa.RecordBatch.from_arrays([pa.array(cells, pa.binary()) for cells in zip(*rows, strict=True)], names=list(NAMES))
    assert same(batch, DERIVED)
    monkeypatch.setattr(module, name, mistake(getattr(module, name)))
    assert not same(batch, DERIVED)
