"""From files to the exact sum, over merely decoding the same batches with the same threads; and the memory that a release takes."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import dpgram
from benchmarks.timing import best_times, machine, note, options, peak_memory, print_table, show
from dpgram.engines import local
from dpgram.engines.local import LocalPass
from dpgram.engines.summing import Summing
from dpgram.sources.base import Source, batch_rows
from dpgram.sources.open import open_source
from dpgram.sources.parquet import READ_BUFFER

GROUP_ROWS = 2**17
DATABASE_ROWS = 2**20  # at 22 columns they are kept in memory as a whole, by default
WORDS = {"city": 12, "kind": 6, "code": 30}  # columns of text, and how many values they have


def make_table(rows: int, width: int, seed: int = 0) -> pa.Table:
    """Numbers that compress a little, as real ones do: rounded to four decimals, some of them repeated."""
    rng = np.random.default_rng(seed)
    return pa.table({f"x{i}": np.round(rng.normal(size=rows), 4) for i in range(width)})


def make_mixed(rows: int, seed: int = 0) -> pa.Table:
    """Numbers, text of few values, dates and truth values, some of each missing."""
    rng = np.random.default_rng(seed)

    def holes(cells: np.ndarray, share: float = 0.05) -> pa.Array:
        return pa.array(cells, mask=rng.random(rows) < share)

    words = {name: np.array([f"{name} {i}" for i in range(count)], dtype=object) for name, count in WORDS.items()}
    return pa.table(
        {
            **{f"x{i}": np.round(rng.normal(size=rows), 4) for i in range(4)},
            **{f"n{i}": holes(np.round(rng.normal(size=rows), 4), 0.1) for i in range(4)},
            "count": holes(rng.integers(0, 50, rows)),
            **{name: holes(values[rng.integers(0, len(values), rows)]) for name, values in words.items()},
            "yes": holes(rng.random(rows) < 0.3),
            "no": rng.random(rows) < 0.3,
            "day": holes((18_000 + rng.integers(0, 700, rows)).astype("datetime64[D]")),
            "time": (1_600_000_000 * 10**6 + rng.integers(0, 10**13, rows)).astype("datetime64[us]"),
        }
    )


def mixed_schema() -> dpgram.Schema:
    return dpgram.Schema(
        unit="row",
        row_bound=4,
        columns=[
            *(dpgram.Numeric(f"{letter}{i}", -4, 4) for letter in "xn" for i in range(4)),
            dpgram.Numeric("count", 0, 50),
            *(dpgram.Categorical(name, [f"{name} {i}" for i in range(6)], other=True) for name in WORDS),
            dpgram.Boolean("yes"),
            dpgram.Boolean("no"),
            dpgram.Date("day", "2019-01-01", "2022-01-01"),
            dpgram.Date("time", "2020-01-01", "2021-01-01"),
        ],
    )


def bench_mixed(rows: int, seconds: float, folder: Path) -> dict:
    """A Parquet file of text, dates and missing cells, in processor time of one thread: from the file to the sum, over decoding the same
    batches, and over what Arrow takes by itself, which decodes text as text."""
    path, schema = folder / "mixed.parquet", mixed_schema()
    pq.write_table(make_mixed(rows), path, row_group_size=GROUP_ROWS)

    def whole() -> None:
        LocalPass(open_source(path), schema, threads=1).gram(4.0)

    def decode() -> None:
        with decoding_only():
            whole()

    def arrow() -> None:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BUFFER) as file:
            for _ in file.iter_batches(batch_size=batch_rows(len(schema.names)), columns=list(schema.names), use_threads=False):
                pass

    best = best_times({"decode": decode, "arrow": arrow, "sum": whole}, seconds=seconds, clock=time.process_time)
    return {"rows": rows, "encoded": len(schema.encoded), **{f"{name}_s": taken for name, taken in best.items()}}


def write_tables(folder: Path, rows: int, width: int, csv_rows: int) -> dict[str, Path]:
    """The table in every format; text with fewer rows, because it is slower to read."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {"Parquet": folder / "table.parquet", "Arrow": folder / "table.arrow", "CSV": folder / "table.csv"}
    with pq.ParquetWriter(paths["Parquet"], make_table(1, width).schema) as parquet:
        for start in range(0, rows, 2**20):
            parquet.write_table(make_table(min(2**20, rows - start), width, start), row_group_size=GROUP_ROWS)
    pyarrow.feather.write_feather(make_table(min(rows, 2**21), width), paths["Arrow"], compression="lz4", chunksize=GROUP_ROWS)
    pyarrow.csv.write_csv(make_table(csv_rows, width), paths["CSV"])
    return paths


@contextmanager
def decoding_only():
    """Within it a pass reads and decodes, and adds nothing."""

    class Nothing(Summing):
        def add(self, batch) -> None:
            pass

    before = local.summing_for
    local.summing_for = Nothing  # type: ignore[misc]
    try:
        yield
    finally:
        local.summing_for = before  # type: ignore[misc]


def bench_source(open_it, width: int, rows: int, threads: int, seconds: float) -> dict:
    schema = dpgram.Schema(unit="row", row_bound=4, columns=[dpgram.Numeric(f"x{i}", -4, 4) for i in range(width)])

    def whole() -> None:
        source: Source = open_it()
        LocalPass(source, schema, threads=threads).gram(4.0)

    def decode() -> None:
        with decoding_only():
            whole()

    best = best_times({"decode": decode, "sum": whole}, seconds=seconds)
    return {
        "rows": rows,
        "threads": threads,
        "decode_s": best["decode"],
        "sum_s": best["sum"],
        "over_decode": best["sum"] / best["decode"],
        "million_rows_per_s": rows / best["sum"] / 1e6,
    }


def bench_rounds(
    data: str, width: int, rows: int, seconds: float, clock: Callable[[], float], query: str | None = None
) -> dict:
    """A whole release of several rounds over one of a single pass, rows kept as they are by default."""
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(f"x{i}", -4, 4) for i in range(width)])

    def release(mechanism: str) -> None:
        dpgram.release(data, schema, epsilon=1, delta=1e-9, mechanism=mechanism, query=query, threads=1)

    contestants = {"one": lambda: release("gaussian-noise"), "whitened": lambda: release("whitened-noise")}
    best = best_times(contestants, seconds=seconds, clock=clock)
    return {"rows": rows, "one_s": best["one"], "whitened_s": best["whitened"], "over_one": best["whitened"] / best["one"]}


def release_memory(path: Path, width: int, folder: Path) -> dict:
    """``dpgram release`` as a command: its time and its largest size."""
    schema = folder / "schema.toml"
    columns = "".join(f'[[columns]]\nname = "x{i}"\nkind = "numeric"\nlower = -4\nupper = 4\n' for i in range(width))
    schema.write_text(f'unit = "row"\nneighbours = "replace"\nrow_bound = 4.0\n{columns}')
    command = ["-m", "dpgram", "release", str(path), "--schema", str(schema), "--epsilon", "1", "--delta", "1e-9"]
    command += ["--out", str(folder / "out.json"), "--overwrite", "--mechanism"]
    measured = {}
    for mechanism in ("gaussian-noise", "whitened-noise"):
        seconds, megabytes = peak_memory([sys.executable, *command, mechanism])
        measured[mechanism] = {"seconds": seconds, "peak_mb": megabytes}
    return measured


def bench(rows: int, width: int, csv_rows: int, seconds: float, folder: Path, postgres: str | None = None) -> dict:
    note(f"writing {rows} rows by {width} columns")
    paths = write_tables(folder, rows, width, csv_rows)
    counts = {"Parquet": rows, "Arrow": min(rows, 2**21), "CSV": csv_rows}
    timings = {}
    for name, path in paths.items():
        for threads in (1, 2):
            note(f"{name}, {threads} threads")
            timings[f"{name}, {threads} thread{'s' * (threads > 1)}"] = bench_source(
                lambda path=path: open_source(path), width, counts[name], threads, seconds
            )
    note("Parquet and CSV, several rounds")
    several = {
        name: bench_rounds(str(paths[name]), width, counts[name], seconds, time.process_time) for name in ("Parquet", "CSV")
    }
    databases, asked = bench_databases(paths["Parquet"], width, seconds, folder, postgres)
    timings, several = timings | databases, several | asked
    note("Parquet with text, dates and missing cells")
    mixed = bench_mixed(min(rows, 2**20), seconds, folder)
    memory = release_memory(paths["Parquet"], width, folder)
    shutil.rmtree(folder)
    return {
        "machine": machine(),
        "columns": width,
        "sources": timings,
        "several_rounds": several,
        "mixed": mixed,
        "release_parquet": {"rows": rows, **memory},
    }


def bench_databases(parquet: Path, width: int, seconds: float, folder: Path, postgres: str | None) -> tuple[dict, dict]:
    """DuckDB over a file of its own, and PostgreSQL where there is a server to ask: one pass, and releases of several rounds.

    DuckDB works in this process, whose processor time is compared. PostgreSQL does not: there it is time by the clock."""
    import duckdb

    rows = min(DATABASE_ROWS, pq.read_metadata(parquet).num_rows)
    file = folder / "table.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"create table t as select * from '{parquet}' limit {rows}")
    note("DuckDB")
    timings = {
        "DuckDB, 2 threads": bench_source(lambda: open_source(str(file), query="select * from t"), width, rows, 2, seconds),
    }
    several = {"DuckDB": bench_rounds(str(file), width, rows, seconds, time.process_time, "select * from t")}
    if postgres is None:
        note("PostgreSQL is left out: pass --postgres postgresql://... of a server that may be written to")
        return timings, several
    import adbc_driver_postgresql.dbapi

    with adbc_driver_postgresql.dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("drop table if exists dpgram_bench")
        cursor.adbc_ingest("dpgram_bench", make_table(rows, width))
        connection.commit()
    note("PostgreSQL")
    timings["PostgreSQL, 2 threads"] = bench_source(
        lambda: open_source(postgres, query="select * from dpgram_bench"), width, rows, 2, seconds
    )
    several["PostgreSQL (clock)"] = bench_rounds(
        postgres, width, rows, seconds, time.perf_counter, "select * from dpgram_bench"
    )
    return timings, several


def table(result: dict) -> None:
    print(f"{result['columns']} float64 columns; {result['machine']['kernel']}")
    print_table(
        ["source", "rows", "decode s", "sum s", "sum / decode", "Mrows/s"],
        [
            [name, s["rows"], s["decode_s"], s["sum_s"], s["over_decode"], s["million_rows_per_s"]]
            for name, s in result["sources"].items()
        ],
    )
    print("Whole releases, with the default limit on rows in memory: processor time, by the clock where it says so")
    print_table(
        ["source", "rows", "gaussian-noise s", "whitened-noise s", "whitened / one pass"],
        [[name, s["rows"], s["one_s"], s["whitened_s"], s["over_one"]] for name, s in result["several_rounds"].items()],
    )
    mixed, memory = result["mixed"], result["release_parquet"]
    print(
        f"Parquet with text, dates and missing cells, {mixed['rows']:,} rows by {mixed['encoded']} encoded columns, processor time of one "
        f"thread: {mixed['sum_s']:.2f} s, {mixed['sum_s'] / mixed['decode_s']:.2f} times decoding the same batches, "
        f"{mixed['sum_s'] / mixed['arrow_s']:.2f} times Arrow's own decoding, with text as text\n"
    )
    for mechanism in ("gaussian-noise", "whitened-noise"):
        one = memory[mechanism]
        print(
            f"dpgram release of {memory['rows']:,} rows of Parquet by {mechanism}: {one['seconds']:.1f} s in all, at most "
            f"{one['peak_mb']:.0f} MB"
        )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=22)
    parser.add_argument("--csv-rows", type=int, default=500_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="per contestant")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench/files"), help="for the files, which are removed at the end"
    )
    parser.add_argument(
        "--postgres", help="URI of a PostgreSQL server, such as postgresql://localhost/test, to which a table is written"
    )
    given = parser.parse_args()
    show(bench(given.rows, given.columns, given.csv_rows, given.seconds, given.folder, given.postgres), given.json, table)


if __name__ == "__main__":
    main()
