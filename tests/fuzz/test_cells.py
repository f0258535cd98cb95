"""Cells of every kind through the whole path: whatever they hold, a sum of bounded rows, and the same one by both kernels."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpgram
from tests.fuzz import target
from tests.fuzz.target import DERIVED, PLAIN, SCHEMAS, check_table

ORDINARY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
NUMBERS = {"f2": np.uint16, "f4": np.uint32, "f8": np.uint64}
NUMBER_LIKE = st.text("0123456789+-.eE", max_size=12)
STRANGE = st.sampled_from(
    [
        "1e400", "-1e400", "1e-400", "+1", "-.5", "5.", ".", "e5", "1e", "1e+", "--1", "1_000", "1,5", "0x10", "0b1", "1f", "1d",
        "١٢", "１２", "nan", "NaN(0x1)", "-nan", "snan", "inf", "+Infinity", " 1", "1 ", "\u00a01", "1\t", "\t", " ", "1\x00", "\x001",
        "9" * 400, "0." + "0" * 400 + "1", "TRUE", "tRuE", "yes", "N", "0", "1.0", "2013-02-30", "2013-05-01", "2013-05-01T24:00:00",
        "2013-05-01 12:00+14:00", "0000-01-01", "9999-12-31T23:59:59.999999999-23:59", "-2013-05-01", "a", "b", "A", "a\u0301",
        "\ufeffa", "other", "missing",
    ]
)  # fmt: skip
BYTES = st.one_of(
    st.binary(max_size=12),
    NUMBER_LIKE.map(str.encode),
    STRANGE.map(str.encode),
    STRANGE.map(lambda text: text.encode("utf-16")),
    STRANGE.map(lambda text: b"\xef\xbb\xbf" + text.encode()),
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
ROWS = st.integers(1, 8)


def as_csv(cells: list[bytes]) -> bytes:
    """A row as it should be written: quoted, quotes doubled."""
    return b",".join(b'"' + cell.replace(b'"', b'""') + b'"' for cell in cells)


@ORDINARY
@given(
    rows=st.lists(st.lists(BYTES, min_size=6, max_size=6), min_size=1, max_size=8),
    schema=st.sampled_from(SCHEMAS),
    quoted=st.booleans(),
)
def test_text_cells_of_a_csv_file(tmp_path_factory, rows, schema, quoted):
    """Quoted, every cell arrives as it is; unquoted, the cells also make and break rows."""
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    lines = [as_csv(row) if quoted else b",".join(row) for row in rows]
    path.write_bytes(b"x,n,c,k,b,d\n" + b"\n".join(lines) + b"\n")
    total = check_table(lambda: str(path), schema, where=str(path))
    assert total is not None
    if quoted:
        assert total.rows == len(rows)


@ORDINARY
@given(rows=st.lists(st.lists(BYTES, min_size=6, max_size=6), min_size=1, max_size=8))
def test_the_same_cells_in_every_untyped_source_are_the_same_rows(tmp_path_factory, rows):
    """A CSV file, and bytes in memory, give one sum; a release does not depend on how its table was carried."""
    path = tmp_path_factory.getbasetemp() / "same.csv"
    path.write_bytes(b"x,n,c,k,b,d\n" + b"\n".join(as_csv(row) for row in rows) + b"\n")
    columns = {name: [row[i] for row in rows] for i, name in enumerate("xnckbd")}
    one = check_table(lambda: str(path), PLAIN, where=str(path))
    other = check_table(lambda: columns, PLAIN)
    assert (target.integers(one) == target.integers(other)).all()


@ORDINARY
@given(
    lines=st.lists(
        st.lists(BYTES | st.text(" ,\t\r\n\x0b\x0c\x1c\x85\u2028\x00", max_size=3).map(str.encode), max_size=7), max_size=6
    ),
    ends=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    extra=st.sampled_from([b'"1",2,a,1,1,2013-05-01', b"1", b"1,2,a,1,1,2013-05-01,7,8"]),
)
def test_no_line_of_a_csv_file_decides_how_others_are_read(tmp_path_factory, lines, ends, extra):
    """A quote, or a line with fewer or more fields, makes us read by other means. The other rows stay what they were."""
    path = tmp_path_factory.getbasetemp() / "lines.csv"
    content = b"".join(b",".join(cells).replace(b'"', b"") + ends for cells in lines)
    sums = []
    for body in (content, content + extra + ends, extra + ends):
        path.write_bytes(b"x,n,c,k,b,d" + ends + body)
        sums.append(check_table(lambda: str(path), PLAIN, where=str(path), alone=False))
    whole, both, alone = sums
    assert whole.rows + alone.rows == both.rows
    assert (target.integers(whole) + target.integers(alone) == target.integers(both)).all()


def floats(bits: int) -> st.SearchStrategy[int]:
    """Every bit pattern: NaNs with any payload, quiet and signalling, infinities, denormals, both zeros."""
    one = 1 << bits
    exponent = {16: 5, 32: 8, 64: 11}[bits]
    special = ((1 << exponent) - 1) << (bits - 1 - exponent)
    payload = st.integers(0, (1 << (bits - 1 - exponent)) - 1)
    return st.one_of(
        st.integers(0, one - 1),
        st.builds(lambda sign, load: (sign << (bits - 1)) | special | load, st.integers(0, 1), payload),
        st.builds(lambda sign, load: (sign << (bits - 1)) | load, st.integers(0, 1), payload),
    )


@pytest.mark.parametrize("kind", NUMBERS)
@ORDINARY
@given(data=st.data(), form=st.sampled_from(["arrow", "nulls", "numpy", "matrix", "strided"]))
def test_every_bit_pattern_of_a_float(kind, data, form):
    bits = 8 * np.dtype(kind).itemsize
    patterns = data.draw(st.lists(st.tuples(floats(bits), floats(bits)), min_size=1, max_size=12))
    cells = np.array(patterns, NUMBERS[kind]).view(kind)
    schema = dpgram.Schema(
        unit="p",
        columns=[dpgram.Numeric("x", -1e-3, 3, missing="midpoint"), dpgram.Numeric("y", -1e200, 1e200, missing="midpoint")],
        row_bound=1.2,
    )
    options: dict = {}
    match form:
        case "numpy":
            table: object = {"x": np.ascontiguousarray(cells[:, 0]), "y": np.ascontiguousarray(cells[:, 1])}
        case "strided":
            table = {"x": cells[:, 0], "y": cells[::1, 1]}
        case "matrix":
            table, options = cells, {"columns": ["x", "y"]}
        case _:
            masks = data.draw(st.lists(st.booleans(), min_size=len(cells), max_size=len(cells)))
            mask = np.array(masks) if form == "nulls" else None  # what lies under a null stays there
            table = pa.table({"x": pa.array(cells[:, 0], mask=mask), "y": pa.array(cells[:, 1])})
    total = check_table(lambda: table, schema, **options)
    assert total is not None
    assert total.rows == len(cells)


def test_signalling_patterns_stay_what_they_are():
    """The test above would show nothing if NumPy or Arrow made quiet NaNs of them on the way."""
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    assert pa.array(signalling).buffers()[1].to_pybytes()[:8] == struct.pack("<Q", 0x7FF0000000000001)


FIXED = {
    "x": [pa.int8(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.decimal32(9, 2), pa.decimal64(18, 3),
          pa.decimal128(38, 4), pa.decimal256(76, 10), pa.decimal128(10, -5)],
    "n": [pa.int16(), pa.uint32(), pa.float64(), pa.decimal128(20, 0)],
    "c": [pa.binary(7), pa.int32(), pa.float64(), pa.bool_(), pa.decimal128(5, 1)],
    "k": [pa.uint8(), pa.float32(), pa.int64(), pa.decimal64(10, 2)],
    "b": [pa.bool_(), pa.int64(), pa.float64(), pa.uint16()],
    "d": [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ms", "Europe/Paris"), pa.timestamp("us"), pa.timestamp("ns", "UTC")],
}  # fmt: skip


def raw_column(draw, kind: pa.DataType, rows: int) -> pa.Array:
    """A column whose buffers hold any bytes at all, under a validity bitmap of any bits."""
    width = -(-rows // 8) if pa.types.is_boolean(kind) else rows * kind.bit_width // 8
    values = draw(
        st.one_of(
            st.binary(min_size=width, max_size=width),
            st.sampled_from([b"\x00", b"\xff", b"\x7f", b"\x80"]).map(lambda b: b * width),
        )
    )
    bitmap = draw(st.none() | st.binary(min_size=-(-rows // 8), max_size=-(-rows // 8)))
    buffers = [None if bitmap is None else pa.py_buffer(bitmap), pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, rows, buffers)


@st.composite
def raw_tables(draw) -> pa.Table:
    rows = draw(ROWS)
    columns = {name: raw_column(draw, draw(st.sampled_from(kinds)), rows) for name, kinds in FIXED.items()}
    if draw(st.booleans()):  # a table that does not begin where its buffers do
        first = draw(st.integers(0, rows - 1))
        return pa.table(columns).slice(first)
    return pa.table(columns)


@settings(ORDINARY, max_examples=60)
@given(table=raw_tables(), schema=st.sampled_from(SCHEMAS))
def test_typed_columns_that_hold_any_bytes(table, schema):
    total = check_table(lambda: table, schema)
    assert total is not None, "what a cell holds is no reason to refuse a table"
    assert total.rows == table.num_rows


@settings(ORDINARY, max_examples=60)
@given(table=raw_tables(), form=st.sampled_from(["arrow", "parquet"]))
def test_the_same_from_a_file(tmp_path_factory, table, form):
    """Written by those who do not look into the cells, read by us: again no cell is a reason to refuse."""
    import pyarrow.parquet as pq

    path = tmp_path_factory.getbasetemp() / f"raw.{form}"
    if form == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        try:
            pq.write_table(table, path)
        except (pa.ArrowException, OSError):
            return  # the writer refuses some types and some decimals
    total = check_table(lambda: str(path), DERIVED, where=str(path))
    assert total is not None, "what a cell holds is no reason to refuse a table"
    assert total.rows == table.num_rows


NUMPY = {
    "x": ["f2", ">f2", "f4", ">f4", "f8", ">f8", "g", "i1", ">i2", "u8", "?", "S5", "U3", ">U3"],
    "c": ["S4", "U2", "?", "f4", ">f8", "i8"],
    "d": [
        *(f"M8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as")),
        ">M8[s]",
        ">M8[D]",
        "U10",
    ],
}


@settings(ORDINARY, max_examples=60)
@given(data=st.data(), rows=ROWS, masked=st.booleans(), structured=st.booleans())
def test_numpy_columns_that_hold_any_bytes(data, rows, masked, structured):
    """One row of them and no more decides what the row becomes; types that no kind takes are refused for every cell alike."""
    columns = {}
    for name, kinds in NUMPY.items():
        kind = np.dtype(data.draw(st.sampled_from(kinds)))
        size = rows * kind.itemsize
        content = data.draw(
            st.binary(min_size=size, max_size=size)
            | st.sampled_from([0x00, 0xFF, 0x7F, 0x80]).map(lambda b, n=size: bytes([b]) * n)
        )
        columns[name] = np.frombuffer(content, kind)
    schema = dpgram.Schema(unit="p", columns=[PLAIN.by_name[name] for name in NUMPY], row_bound=1.1)
    table: object = columns
    if structured:
        table = np.empty(rows, [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            table[name] = column  # type: ignore[index]
    elif masked:
        mask = data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
        table = {name: np.ma.MaskedArray(column, mask) for name, column in columns.items()}
    blank: object = {name: np.zeros(1, column.dtype) for name, column in columns.items()}
    total = check_table(lambda: table, schema)
    assert (total is None) == (check_table(lambda: blank, schema) is None), (
        "the type may be a reason to refuse, and a cell may not"
    )
    assert total is None or total.rows == rows
