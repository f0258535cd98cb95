"""Reads tables that lie, one after the other, in a process of its own, so that one that ends the process is known by name.

`python -m tests.fuzz.replay WHICH FOLDER` prints the name of each input before it is read. WHICH is `inputs` (the seeds, and every
input that ever failed), `sweep` (small files in which every word is overwritten in turn) or `memory` (Arrow's arrays whose buffers lie)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.fuzz import seeds
from tests.fuzz.target import PLAIN, SCHEMAS, check_table

INPUTS = Path(__file__).parent / "inputs"
SWEPT = ("plain.arrow", "dictionary.arrow", "views.arrow", "encodings.parquet", "empty.parquet")
WORD = b"\xff\xff\xff\x7f\xff\xff\xff\xff"  # the largest length there is, and minus one
Case = tuple[str, Callable[[], object]]


def inputs(folder: Path) -> Iterator[Case]:
    saved = ((path.name, path.read_bytes()) for path in sorted(INPUTS.iterdir()))
    for name, content in (*(made for files in seeds.FORMATS.values() for made in files()), *saved):
        yield _file(name, folder / name, content)


def sweep(folder: Path) -> Iterator[Case]:
    found = {name: content for files in seeds.FORMATS.values() for name, content in files() if name in SWEPT}
    for name, content in found.items():
        for place in range(0, len(content) - len(WORD), len(WORD)):
            changed = content[:place] + WORD + content[place + len(WORD) :]
            yield _file(f"{name}, overwritten at {place}", folder / name, changed)


def _file(name: str, path: Path, content: bytes) -> Case:
    path.write_bytes(content)
    return name, lambda: str(path)


def memory(_folder: Path) -> Iterator[Case]:
    for name, lie in lies().items():
        columns = {**{other: seeds.table()[other].combine_chunks()[:5] for other in "xnkbd"}, "c": lie}
        yield f"table: {name}", lambda columns=columns: pa.table(columns)
        yield f"reader: {name}", lambda columns=columns: pa.table(columns).to_reader()
        yield f"dict: {name}", lambda columns=columns: columns
        yield f"slice: {name}", lambda columns=columns: pa.table(columns).slice(1, 3)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns))
        sent = sink.getvalue()
        yield f"stream: {name}", lambda sent=sent: pa.ipc.open_stream(sent)


def lies() -> dict[str, pa.Array]:
    """Columns of text whose offsets or indices point far outside, or backwards."""
    few, many = pa.array(["a", "b"]), pa.array(list("abcdefgh"))
    found: dict[str, pa.Array] = {
        "offset": _text(pa.string(), "i4", 2, 2**31 - 1),
        "offset backwards": _text(pa.string(), "i4", 3, -(2**31)),
        "large offset": _text(pa.large_string(), "i8", 3, 2**40),
        "bytes": _text(pa.binary(), "i4", 1, 2**30),
    }
    for index in (2, 10**8, -1, -(10**8)):
        places = pa.array([0, 1, index, 0, 0], pa.int32())
        found[f"index {index}"] = pa.DictionaryArray.from_arrays(places, few, safe=False)
        found[f"index {index} of many"] = pa.DictionaryArray.from_arrays(places, many, safe=False)
        masked = pa.array([0, 1, index, 0, 0], pa.int32(), mask=np.array([False, False, True, False, False]))
        found[f"index {index} under a null"] = pa.DictionaryArray.from_arrays(masked, few, safe=False)
    found["offset in a dictionary"] = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 0, 0]), _text(pa.string(), "i4", 2, 2**31 - 1), safe=False
    )
    return found


def _text(kind: pa.DataType, width: str, place: int, offset: int) -> pa.Array:
    offsets = np.arange(0, 24, 4, dtype=width)
    offsets[place] = offset
    return pa.Array.from_buffers(kind, 5, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"abcd" * 5)])


if __name__ == "__main__":
    which, folder, counts = sys.argv[1], Path(sys.argv[2]), {"summed": 0, "refused": 0}
    for name, make in {"inputs": inputs, "sweep": sweep, "memory": memory}[which](folder):
        print(name, flush=True)
        for schema in SCHEMAS if which == "inputs" else (PLAIN,):
            total = check_table(make, schema, where=str(folder), alone=which == "inputs")
            counts["refused" if total is None else "summed"] += 1
    print("{summed} summed, {refused} refused".format(**counts))
