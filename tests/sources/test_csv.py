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
        (b"x;y\n1;2\n", MissingColumnError, "column 'x' is declared in the schema but CSV file .* has no column"),
        (b"x,y,x\n1,2,3\n", DpgramError, "several columns named 'x'"),
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
