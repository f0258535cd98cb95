"""What ids and weights cost: the passes over a Parquet file in which units have ids, over the one pass without; and the memory beside it.

Ids are strewn over the file at random, about three rows a unit, of which three count in full. So some units have more rows, which count as
less than one. Every way reads the same file, in one run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import dpgram
from benchmarks.bench_files import GROUP_ROWS, make_table
from benchmarks.timing import best_times, machine, note, options, own_peak_memory, peak_memory, print_table, show
from dpgram.engines.local import LocalPass
from dpgram.sources.open import open_source

ROWS_PER_UNIT = 3
LIMIT = 1.6  # times the pass without ids, with whole numbers as ids
WAYS = {
    "no ids": {},
    "weights": {"weight": "w", "largest_weight": 4.0},
    "whole numbers as ids": {"unit_id": "id", "rows_per_unit": ROWS_PER_UNIT},
    "whole numbers as text": {"unit_id": "name", "rows_per_unit": ROWS_PER_UNIT},
    "texts of 10 characters": {"unit_id": "code", "rows_per_unit": ROWS_PER_UNIT},
    "UUIDs as text": {"unit_id": "uuid", "rows_per_unit": ROWS_PER_UNIT},
    "whole numbers as ids, and weights": {
        "unit_id": "id",
        "rows_per_unit": ROWS_PER_UNIT,
        "weight": "w",
        "largest_weight": 4.0,
    },
}


def without_ids(way: str) -> str:
    """The pass that a way is compared with: that of the same weights, or of none."""
    return "weights" if "weight" in WAYS[way] and "unit_id" in WAYS[way] else "no ids"


def write_table(path: Path, rows: int, width: int) -> None:
    """Columns of numbers, ids four times, as numbers and as texts, and weights."""
    rng, writer = np.random.default_rng(1), None
    for start in range(0, rows, 2**20):
        some = min(2**20, rows - start)
        ids = rng.integers(0, max(1, rows // ROWS_PER_UNIT), some)
        part = make_table(some, width, start)
        name = pa.array(ids).cast(pa.string())
        code = pc.binary_join_element_wise("P", pc.utf8_lpad(name, 9, "0"), "")
        for column, cells in {"id": ids, "name": name, "code": code, "uuid": uuids(ids), "w": rng.random(some) * 4}.items():
            part = part.append_column(column, pa.array(cells))
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part, row_group_size=GROUP_ROWS)
    assert writer is not None
    writer.close()


def uuids(ids: np.ndarray) -> pa.Array:
    """A text of 36 characters for each id, as different from those of other ids as random ones are."""
    numbers = ids.astype(np.uint64)[:, None] * np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[numbers.astype(">u8").view(np.uint8)[:, :, None] >> [4, 0] & 15]
    texts = np.insert(digits.reshape(len(ids), 32), [8, 12, 16, 20], ord("-"), axis=1)
    return pa.array(np.ascontiguousarray(texts).view("S36")[:, 0]).cast(pa.string())


def run_way(way: str, path: Path, width: int, threads: int) -> None:
    """All passes from the opened file to the exact sum."""
    columns = [dpgram.Numeric(f"x{i}", -4, 4) for i in range(width)]
    schema = dpgram.Schema(unit="person", row_bound=4, columns=columns, **WAYS[way])
    made = LocalPass(open_source(path), schema, threads=threads)
    if schema.unit_id is not None:
        made.count_units()
    made.gram(4.0)


def bench(rows: int, width: int, seconds: float, folder: Path) -> dict:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "units.parquet"
    note(f"writing {rows} rows by {width} columns, with ids and weights")
    write_table(path, rows, width)
    times = {}
    for threads in (1, 2):
        note(f"{threads} threads")
        contestants = {way: lambda way=way: run_way(way, path, width, threads) for way in WAYS}  # noqa: B023
        times[threads] = best_times(contestants, seconds=seconds)
    one = [sys.executable, "-m", "benchmarks.bench_units", "--columns", str(width), "--folder", str(folder), "--one"]
    memory = {way: peak_memory([*one, way])[1] for way in WAYS}
    path.unlink()
    return {
        "machine": machine(),
        "rows": rows,
        "columns": width,
        "units": rows // ROWS_PER_UNIT,
        "ways": {
            way: {
                **{f"over_none_{threads}": times[threads][way] / times[threads][without_ids(way)] for threads in times},
                "seconds_2": times[2][way],
                "peak_mb": memory[way],
                "mb_beside": memory[way] - memory["no ids"],
            }
            for way in WAYS
        },
    }


def table(result: dict) -> None:
    print(f"{result['rows']:,} rows by {result['columns']} columns in Parquet, about {ROWS_PER_UNIT} rows a unit")
    print_table(
        ["rows count by", "1 thread, over none", "2 threads, over none", "s, 2 threads", "peak MB", "MB beside the pass"],
        [
            [name, way["over_none_1"], way["over_none_2"], way["seconds_2"], way["peak_mb"], way["mb_beside"]]
            for name, way in result["ways"].items()
        ],
    )
    ids = [way for name, way in result["ways"].items() if name.startswith("whole numbers as ids")]
    worst = max(way[f"over_none_{threads}"] for way in ids for threads in (1, 2))
    print(f"Whole numbers as ids: at most {worst:.2f} times the pass without, where at most {LIMIT} is wanted.")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=22)
    parser.add_argument("--seconds", type=float, default=2.0, help="per contestant")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench/units"), help="for the file, which is removed at the end"
    )
    parser.add_argument("--one", choices=WAYS, help="one way alone, over a file that is there, to see what memory it takes")
    given = parser.parse_args()
    if given.one is not None:
        run_way(given.one, given.folder / "units.parquet", given.columns, threads=2)
        note(f"{own_peak_memory():.0f} MB")
        return
    show(bench(given.rows, given.columns, given.seconds, given.folder), given.json, table)


if __name__ == "__main__":
    main()
