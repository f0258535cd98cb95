"""Text that a Parquet file keeps as dictionaries is read as such, and sums have the bits that they have of plain text."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.sources.open import open_source
from dpgram.sources.parquet import LARGE_DICTIONARY

WORDS = ["ab", "cd", "", "ef", None, "somebody's own words"]
SCHEMA = dpgram.Schema(
    unit="row",
    columns=[
        dpgram.Categorical("c", ["ab", "cd", "ef"], other=True, missing="level"),
        dpgram.Categorical("d", ["ef", "ab"]),
        dpgram.Numeric("x", -1, 1, missing="midpoint"),
    ],
)


def table(rows: int = 5000) -> pa.Table:
    rng = np.random.default_rng(0)
    text = {name: [WORDS[place] for place in rng.integers(0, len(WORDS), rows)] for name in "cd"}
    return pa.table({**text, "x": rng.normal(size=rows)})


def types_read(path, names=SCHEMA.names) -> list[pa.DataType]:
    return [field.type for field in next(iter(open_source(path).pieces(names))).batch.schema]


def test_dictionaries_stay_dictionaries_and_plain_text_plain(tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet", use_dictionary=["c", "x"])
    assert types_read(tmp_path / "t.parquet") == [pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.float64()]
    assert open_source(tmp_path / "t.parquet").columns.field("c").type == pa.string()  # as it is declared


@pytest.mark.parametrize(("values", "kept"), [(3, True), (2000, True), (30_000, False), (200_000, False)])
def test_a_dictionary_of_nearly_as_many_values_as_rows_is_read_as_plain_text(values, kept, tmp_path):
    """As ids are, whose dictionary is larger than what refers to it, or is left off when it is full."""
    cells = [f"somebody number {k}" for k in np.random.default_rng(0).integers(0, values, 120_000)]
    pq.write_table(pa.table({"c": cells}), tmp_path / "t.parquet", row_group_size=60_000)
    (read,) = types_read(tmp_path / "t.parquet", ["c"])
    assert pa.types.is_dictionary(read) == kept


def test_a_dictionary_that_was_given_up_is_no_small_one(tmp_path):
    """UUIDs, say: the dictionary is full after a fifth of the rows, and the larger part of the column is texts that were written out."""
    cells = pa.array(
        [str(UUID(bytes=each.tobytes())) for each in np.random.default_rng(0).integers(0, 256, (131_072, 16), np.uint8)]
    )
    pq.write_table(pa.table({"c": cells}), tmp_path / "t.parquet")
    chunk = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0).column(0)
    assert LARGE_DICTIONARY * (chunk.data_page_offset - chunk.dictionary_page_offset) < chunk.total_compressed_size
    assert types_read(tmp_path / "t.parquet", ["c"]) == [pa.string()]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"row_group_size": 700}, {"dictionary_pagesize_limit": 1}, {"use_dictionary": ["d"]}, {"data_page_size": 64}],
    ids=lambda options: "-".join(options),
)
@pytest.mark.parametrize("kernel", ["", "numpy"])
def test_sums_have_the_bits_of_plain_text(tmp_path, options, kind, kernel, monkeypatch):
    """Row groups with a dictionary each, pages that fall back to plain text where a dictionary is full, and columns of both kinds."""
    if kernel:
        monkeypatch.setattr("dpgram.engines.summing.kernel", lambda: None)
    expected = LocalPass(open_source(table()), SCHEMA).gram(1.5)
    given = table().set_column(0, "c", table()["c"].cast(kind)).set_column(1, "d", table()["d"].cast(kind))
    pq.write_table(given, tmp_path / "t.parquet", **options)
    found = LocalPass(open_source(tmp_path / "t.parquet"), SCHEMA, threads=2).gram(1.5)
    np.testing.assert_array_equal(found.low, expected.low)
    np.testing.assert_array_equal(found.high, expected.high)


def test_a_file_without_rows(tmp_path):
    pq.write_table(table(0), tmp_path / "t.parquet")
    assert LocalPass(open_source(tmp_path / "t.parquet"), SCHEMA).gram(1.5).rows == 0
