"""Small tables in every file format, made by code: where the fuzzers begin, and what the replay reads first."""

from __future__ import annotations

import datetime as dt
import gzip
import io
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.target import CANARY, NUMBER

ROWS = 6


def table(**changes: pa.Array) -> pa.Table:
    """A small table with every declared column; ``changes`` replaces some."""
    day = dt.date(2013, 5, 1)
    columns = {
        "x": pa.array([0.5, -2.0, None, 1e300, NUMBER, float("nan")], pa.float64()),
        "n": pa.array([1, 2, None, 4, 5, 2**31 - 1], pa.int32()),
        "c": pa.array(["a", "b", CANARY, None, "", "b"], pa.string()),
        "k": pa.array([1, 2, 3, 4, None, 1], pa.int64()),
        "b": pa.array([True, False, None, True, True, False]),
        "d": pa.array([day, None, day, dt.date(1, 1, 1), dt.date(9999, 12, 31), day], pa.date32()),
        **changes,
    }
    return pa.table(columns)


def tables() -> Iterator[tuple[str, pa.Table]]:
    """Tables of many types, by name."""
    yield "plain", table()
    yield "dictionary", table(c=table()["c"].dictionary_encode(), k=table()["k"].dictionary_encode())
    yield "large", table(c=table()["c"].cast(pa.large_string()), d=table()["d"].cast(pa.timestamp("us", "UTC")))
    yield "half", table(x=pa.array(np.arange(ROWS), pa.float16()), k=table()["k"].cast(pa.uint8()), b=table()["k"])
    yield "decimal", table(x=pa.array([Decimal("1.25"), None] * 3, pa.decimal128(20, 3)), d=table()["d"].cast(pa.date64()))
    yield "nothing", table(x=pa.nulls(ROWS), n=pa.nulls(ROWS), c=pa.nulls(ROWS, pa.string()))
    yield "bytes", table(c=pa.array([b"a", b"\xff\xfe", b"b", None, b"", b"\x00"], pa.binary()))
    yield "nested", table(x=pa.array([[1.0], [], None, [2.0, 3.0], [4.0], [5.0]]))
    yield "wider", table().append_column("s", pa.array([{"u": 1, "v": [CANARY]}] * ROWS)).append_column("z", pa.nulls(ROWS))
    yield "empty", table().slice(0, 0)


def csv_files() -> Iterator[tuple[str, bytes]]:
    plain = f"x,n,c,k,b,d\n1,2,a,1,true,2013-05-01\n{NUMBER},-1,{CANARY},2,no,2013-05-01T12:00:00Z\n,,,,,\n1e309,nan,b,3.0,0,never\n"
    yield "plain.csv", plain.encode()
    yield "quoted.csv", plain.replace("a,1", '"a\n""b",1').replace("never", '"never').encode()
    yield "ragged.csv", (plain + "1\n1,2,3,4,5,6,7,8\n\n\r\n\r1,2").encode()
    yield "marked.csv", b"\xef\xbb\xbf" + plain.encode() + b"\xef\xbb\xbf1,2,a,1,1,2013-01-01\n"
    yield "latin.csv", plain.replace(CANARY, "caf\xe9").encode("latin-1")
    yield "wide.csv", plain.encode("utf-16")
    yield "nul.csv", plain.replace("1,2", "1\x002,\x00").encode()
    yield "tabs.tsv", plain.replace(",", "\t").encode()
    yield "packed.csv.gz", gzip.compress(plain.encode(), mtime=0)


def parquet_files() -> Iterator[tuple[str, bytes]]:
    for name, made in tables():
        sink = io.BytesIO()
        pq.write_table(made, sink, compression="none", row_group_size=4)
        yield f"{name}.parquet", sink.getvalue()
    for compression in ("snappy", "zstd", "gzip"):
        sink = io.BytesIO()
        pq.write_table(table(), sink, compression=compression, use_dictionary=False, data_page_version="2.0")
        yield f"{compression}.parquet", sink.getvalue()
    sink = io.BytesIO()
    encodings = {"x": "BYTE_STREAM_SPLIT", "n": "DELTA_BINARY_PACKED", "c": "DELTA_BYTE_ARRAY", "k": "PLAIN", "b": "RLE"}
    pq.write_table(table(), sink, use_dictionary=False, column_encoding=encodings, compression="none", store_schema=False)
    yield "encodings.parquet", sink.getvalue()
    sink = io.BytesIO()
    stamped = table(
        d=table()["d"].fill_null(dt.date(2013, 1, 1)).slice(0, 3).cast(pa.timestamp("s")).take(pa.array([0, 1, 2] * 2))
    )
    pq.write_table(stamped, sink, use_deprecated_int96_timestamps=True, write_page_checksum=True, write_page_index=True)
    yield "int96.parquet", sink.getvalue()


def arrow_files() -> Iterator[tuple[str, bytes]]:
    views = table(c=table()["c"].cast(pa.string_view()))
    for name, made in (*tables(), ("views", views)):
        yield f"{name}.arrow", ipc_file(made)
    for compression in ("lz4", "zstd"):
        yield f"{compression}.arrow", ipc_file(table(), pa.ipc.IpcWriteOptions(compression=compression))


def ipc_file(made: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """The table as an Arrow IPC file of two batches."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, made.schema, options=options) as writer:
        writer.write_table(made, max_chunksize=4)
    return sink.getvalue()


FORMATS = {"csv": csv_files, "parquet": parquet_files, "arrow": arrow_files}
