"""CSV files as people make them: ragged, quoted, badly encoded. Nothing in a row can raise."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.errors import DpgramError, MissingColumnError, TableError, UnreadableTableError
from dpgram.sources import csv as csv_source
from dpgram.sources.csv import CsvFile
from dpgram.sources.open import open_source

SCHEMA = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 10, missing=10), dpgram.Numeric("y", 0, 10, missing=10)])


def gram(tmp_path, content: bytes, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    total = LocalPass(open_source(path), SCHEMA).gram(SCHEMA.effective_row_bound)
    return total.rows, total.in_scaled_units().round(5).tolist()


def expected(rows):
    """What these (x, y) rows give, None standing for a missing cell."""
    z = np.array([[1.0, *((10 if v is None else v) / 5 - 1 for v in row)] for row in rows])
    return len(rows), (z.T @ z).round(5).tolist()


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"x,y\n1,2\n3,4\n", [(1, 2), (3, 4)]),
        (b"x,y\n1,2\n3,4", [(1, 2), (3, 4)]),
        (b"y,z,x\n2,9,1\n4,9,3\n", [(1, 2), (3, 4)]),
        (b"x,y\n1\n3,4\n", [(1, None), (3, 4)]),
        (b"x,y\n1,2,99,99\n3,4\n", [(1, 2), (3, 4)]),
        (b"x,y\n1,2\n\n\r\n3,4\n\n", [(1, 2), (3, 4)]),
        (b'x,y\n"1","2"\n3,4\n', [(1, 2), (3, 4)]),
        (b'x,y\n"1\n",2\n3,"4,4"\n', [(1, 2), (3, None)]),
        (b"x,y\r1,2\r3,4\r", [(1, 2), (3, 4)]),
        (b"\xef\xbb\xbfx,y\n1,2\n", [(1, 2)]),
        (b"x,y\n\xff\xfe,2\n3,\xe9\n", [(None, 2), (3, None)]),
        (b'x,y\n\xff"\xfe,2\n3,"\xe9"\n', [(None, 2), (3, None)]),
        (b"x,y\n1\x002,2\n", [(None, 2)]),
        (b"x,y\nNaN,inf\n-1e400,two\n", [(None, None), (None, None)]),
        (b"x,y\n,\n", [(None, None)]),
        (b'x,y\n1,2\n"3,4\n', [(1, 2), (None, None)]),
        (b"x,y\n", []),
        (b"x,y\n\xef\xbb\xbf1,2\n3,4\n", [(None, 2), (3, 4)]),
        (b"x,y\n3,4\n\xef\xbb\xbf1,2\n", [(3, 4), (None, 2)]),
        (b"x,y\n\xef\xbb\xbf1,2\n3,4,5\n", [(None, 2), (3, 4)]),
        (b"x,y\n\xef\xbb\xbf1,2", [(None, 2)]),
        (b"x,y\nTrue,false\n", [(1, 0)]),
        (b"x,y\nNA,2\n3,null\n-,N/A\n1e0,NaN\n", [(None, 2), (3, None), (None, None), (1, None)]),  # cast at once
        (b"x,y\nNA,2\n3, null\n-,true\n 1,NaN\n", [(None, 2), (3, None), (None, 1), (1, None)]),  # looked at one by one
    ],
)  # fmt: skip
def test_rows(tmp_path, content, rows):
    assert gram(tmp_path, content) == (expected(rows) if rows else (0, [[0.0] * 3] * 3))


def test_a_cell_of_ten_megabytes_is_a_cell(tmp_path):
    assert gram(tmp_path, b'x,y\n"' + b"1" * 10_000_000 + b'",2\n3,4\n') == expected([(None, 2), (3, 4)])


def test_the_field_limit_of_others_is_restored(tmp_path):
    before = csv.field_size_limit()
    gram(tmp_path, b'x,y\n"1",2\n')
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"x,caf\xe9\n1,2\n", TableError, "the first line must contain the column names, but it is not UTF-8"),
        (b"", TableError, "first line is blank"),
        (b"\nx,y\n", TableError, "first line is blank"),
        (b"x;y\n1;2\n", TableError, "contains semicolons, tabs or bars, but no comma"),
        (b"a,b\n1,2\n", MissingColumnError, "the schema declares column 'x', but CSV file .* has no column"),
        (b"x,y,x\n1,2,3\n", DpgramError, "several columns named 'x'"),
        (b'x,"y\n",z\n1,2,3\n', TableError, "a quote in the first line is not closed"),
        (b"x," + b"y" * 200_000 + b"\n1,2\n", MissingColumnError, "the schema declares column 'y'"),
    ],
)
def test_the_header_is_strict(tmp_path, content, error, message):
    with pytest.raises(error, match=message):
        gram(tmp_path, content)


def test_without_a_header_the_first_row_is_not_quoted(tmp_path):
    with pytest.raises(MissingColumnError) as caught:
        gram(tmp_path, b"SMITH,31.25\nJONES,12.5\n")
    assert "SMITH" not in str(caught.value)
    assert "31.25" not in str(caught.value)


def test_a_damaged_archive_says_so_without_details(tmp_path):
    content = gzip.compress(b"x,y\n" + b"1,2\n" * 10000)
    with pytest.raises(UnreadableTableError, match="details withheld"):
        gram(tmp_path, content[: len(content) // 2], name="t.csv.gz")


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_blank_lines_are_rows_of_a_file_of_one_column(tmp_path, quote):
    path = tmp_path / "t.csv"
    path.write_bytes(b"x\n" + quote + b"1" + quote + b"\n\n3\n")
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 10)])
    assert LocalPass(open_source(path), schema).gram(schema.effective_row_bound).rows == 3


def test_tabs_whatever_the_case_of_the_name(tmp_path):
    assert gram(tmp_path, b"x\ty\n1\t2\n", name="T.TSV") == expected([(1, 2)])


def test_a_draft_never_repeats_a_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("SMITH,31.25\nJONES,12.5\n")
    with pytest.raises(TableError, match="may be a person's row") as caught:
        dpgram.draft_schema(path)
    assert "SMITH" not in str(caught.value)
    path.write_text("name,,age,\nJONES,1,2,3\n")
    draft = dpgram.draft_schema(path)
    assert draft.count("[[columns]]") == 2
    assert "JONES" not in draft


# Quotes: what Arrow splits is what Python's csv module finds

BITS = st.sampled_from(
    [b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"a", b" ", b'"a"', b'"b,\n"', b',"', b'",', b"\xff", b"\x00"]
)


def found_by_python(content: bytes, width: int) -> list[list[bytes | None]]:
    """The cells of all rows, None where there is none. Of one column a blank line is a row."""
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="surrogateescape", newline="")
    rows = [[cell.encode("utf-8", "surrogateescape") for cell in row] for row in csv.reader(text)]
    return [[(row[i] if i < len(row) else b"") or None for i in range(width)] for row in rows if row or width == 1]


def found_by_source(path) -> list[list[bytes | None]]:
    source = CsvFile(path)
    batches = [piece.batch for piece in source.pieces(source.columns.names)]
    return [[cell or None for cell in row.values()] for batch in batches for row in batch.to_pylist()]


@settings(max_examples=1000)
@given(st.lists(BITS, max_size=30).map(b"".join), st.integers(1, 3), st.integers(1, 40))
def test_cells_do_not_depend_on_quotes_or_on_where_blocks_end(tmp_path_factory, content, width, block):
    path = tmp_path_factory.getbasetemp() / "quotes.csv"
    path.write_bytes(b"x,y,z\n"[: 2 * width - 1] + b"\n" + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "BLOCK_BYTES", block)
        assert found_by_source(path) == found_by_python(content, width)


@pytest.mark.parametrize("text", ['"a, b"', '"two\nlines"', '"say ""yes"""', '""'])
def test_well_formed_quotes_are_left_to_arrow(tmp_path, monkeypatch, text):
    """Python's csv module takes twenty times as long."""
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + f"1,{text}\n" * 1000, newline="")
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 101)
    expected = found_by_python(path.read_bytes(), 2)[1:]
    monkeypatch.setattr(CsvFile, "_slow", lambda *_: pytest.fail("read row by row"))
    assert found_by_source(path) == expected


@pytest.mark.parametrize("text", ['5"', '"a"b', 'a"b"', '"a" '])
def test_other_quotes_are_not(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(f"x,y\n1,2\n3,{text}\n5,6\n")
    assert found_by_source(path) == found_by_python(path.read_bytes(), 2)[1:]
