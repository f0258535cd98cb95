"""Tables that change, are damaged or are read by several at a time: a whole sum or an error, never a part of one."""

from __future__ import annotations

import csv
import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines.open import open_pass
from dpgram.errors import TableError, UnreadableTableError
from dpgram.sources.csv import LONG_CELLS

SCHEMA = dpgram.Schema(unit="visit", columns=[dpgram.Numeric("a", 0, 10)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "later",
    [{"a": np.ones(2000)}, {"a": np.arange(1000)}, {"a": np.ones(1000), "b": np.ones(1000)}],
    ids=["longer", "type", "wider"],
)
def test_a_parquet_file_that_is_replaced_is_not_read_by_the_old_metadata(tmp_path, threads, later):
    file = tmp_path / "people.parquet"
    pq.write_table(pa.table({"a": np.ones(1000)}), file, row_group_size=100, use_dictionary=False, compression="none")
    opened = open_pass(file, SCHEMA, threads=threads)
    pq.write_table(pa.table(later), file, row_group_size=100, use_dictionary=False, compression="none")
    with pytest.raises(TableError, match="was changed"):
        opened.gram(1.0)


def test_a_parquet_file_that_is_replaced_while_it_is_read_gives_no_mixture(tmp_path):
    file, once = tmp_path / "people.parquet", []

    def replace(_fraction: float) -> None:
        if not once:
            once.append(pq.write_table(pa.table({"a": np.full(1000, 9.0)}), file, row_group_size=100))

    pq.write_table(pa.table({"a": np.ones(1000)}), file, row_group_size=100)
    with pytest.raises((TableError, UnreadableTableError)):
        open_pass(file, SCHEMA, threads=2, progress=replace).gram(1.0)


def test_other_files_that_are_replaced_are_refused_too(tmp_path):
    text = tmp_path / "people.csv"
    text.write_text("a,b\n1,2\n")
    opened = open_pass(text, SCHEMA)
    text.write_text("b,a\n2,1\n")
    with pytest.raises(TableError, match="was changed"):
        opened.gram(1.0)
    file = tmp_path / "people.arrow"
    for names in ("ab", "ba"):
        table = pa.table({name: np.ones(3) for name in names})
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        opened = open_pass(file, SCHEMA) if names == "ab" else opened
    with pytest.raises(UnreadableTableError):
        opened.gram(1.0)


def test_row_groups_without_rows(tmp_path):
    with pq.ParquetWriter(tmp_path / "people.parquet", pa.schema([("a", pa.float64())])) as writer:
        for rows in (0, 3, 0, 2):
            writer.write_table(pa.table({"a": np.ones(rows)}))
    for threads in (1, 2, 3):
        assert open_pass(tmp_path / "people.parquet", SCHEMA, threads=threads).gram(1.0).rows == 5


def test_a_table_in_memory_can_be_asked_twice_and_a_reader_cannot():
    table = pa.table({"a": [1.0, 2.0]})
    for again in (table, table.to_batches()[0]):
        opened = open_pass(again, SCHEMA)
        assert [opened.gram(1.0).rows, opened.gram(1.0).rows] == [2, 2]
    opened = open_pass(table.to_reader(), SCHEMA)
    opened.gram(1.0)
    with pytest.raises(TableError, match="was read already"):
        opened.gram(1.0)


def test_a_stream_whose_lengths_lie_is_refused():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("a", pa.float64())])) as writer:
        writer.write_batch(pa.record_batch({"a": np.ones(12_345)}))
    lying = sink.getvalue().replace(struct.pack("<q", 12_345), struct.pack("<q", 12_345_000))
    with pytest.raises(UnreadableTableError):
        open_pass(pa.ipc.open_stream(lying), SCHEMA).gram(1.0)


def test_the_limit_on_long_cells_is_lifted_while_any_file_is_read():
    before = csv.field_size_limit()
    with LONG_CELLS.allowed():
        second = LONG_CELLS.allowed()
        with second:
            pass
        assert csv.field_size_limit() == 2**31 - 1
    first, second = LONG_CELLS.allowed(), LONG_CELLS.allowed()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # the first file ends before the second
    assert csv.field_size_limit() == 2**31 - 1
    second.__exit__(None, None, None)
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    "table",
    [
        " postgresql://u:hunter2@h/db",
        "jdbc:postgresql://u:hunter2@h/db",
        '"postgresql://u:hunter2@h/db"',
        "u:hunter2@h/db",
        "postgresql//u:hunter2@h/db",
        "duckdb:postgres://u:hunter2@h/db",
    ],
)
@pytest.mark.parametrize("query", [None, "select 1 as a"])
def test_a_misspelt_uri_is_not_repeated(table, query):
    with pytest.raises(TableError) as caught:
        open_pass(table, SCHEMA, query=query)
    assert "hunter2" not in str(caught.value)
