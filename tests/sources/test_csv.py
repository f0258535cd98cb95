"""CSV files as people make them: ragged, quoted, badly encoded. Nothing in a row can raise."""

import gzip

import numpy as np
import pytest

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.errors import DpgramError, MissingColumnError, TableError, UnreadableTableError
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
    ],
)  # fmt: skip
def test_rows(tmp_path, content, rows):
    assert gram(tmp_path, content) == (expected(rows) if rows else (0, [[0.0] * 3] * 3))


def test_a_cell_of_ten_megabytes_is_a_cell(tmp_path):
    assert gram(tmp_path, b'x,y\n"' + b"1" * 10_000_000 + b'",2\n3,4\n') == expected([(None, 2), (3, 4)])


def test_the_field_limit_of_others_is_restored(tmp_path):
    import csv

    before = csv.field_size_limit()
    gram(tmp_path, b'x,y\n"1",2\n')
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"x,caf\xe9\n1,2\n", TableError, "first line is not UTF-8"),
        (b"", TableError, "first line is blank"),
        (b"\nx,y\n", TableError, "first line is blank"),
        (b"x;y\n1;2\n", TableError, "holds no comma, but semicolons"),
        (b"a,b\n1,2\n", MissingColumnError, "column 'x' is declared in the schema but CSV file .* has no column"),
        (b"x,y,x\n1,2,3\n", DpgramError, "several columns named 'x'"),
        (b'x,"y\n",z\n1,2,3\n', TableError, "a quote in its first line is not closed"),
        (b"x," + b"y" * 200_000 + b"\n1,2\n", MissingColumnError, "column 'y' is declared"),
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
    with pytest.raises(TableError, match="may be somebody's row") as caught:
        dpgram.draft_schema(path)
    assert "SMITH" not in str(caught.value)
    path.write_text("name,,age,\nJONES,1,2,3\n")
    draft = dpgram.draft_schema(path)
    assert draft.count("[[columns]]") == 2
    assert "JONES" not in draft
