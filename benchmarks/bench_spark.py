"""Spark's pass against its own count over the same columns, and against the local engine: ``python -m benchmarks.bench_spark``.

Every way reads the same Parquet files of float64 columns, in one run. Start-up is left out: each way runs twice before it is
timed, and the best of ``--repeats`` counts, by the clock and by the processors' own time, which a busy machine disturbs less.
``make bench-spark`` prints a table; with ``--json`` it is JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpgram
from benchmarks.timing import machine
from dpgram.engines.open import open_pass

SEED = 7


def write_table(folder: Path, rows: int, columns: int, files: int) -> None:
    """Normal numbers, as Spark writes Parquet by default but without dictionaries, which cannot help here; and ids of three rows or so."""
    rng = np.random.default_rng(SEED)
    each = rows // files
    for i in range(files):
        cells = {f"x{j}": rng.normal(size=each) for j in range(columns)} | {"id": rng.integers(0, rows // 3 + 1, each)}
        pq.write_table(pa.table(cells), folder / f"{i}.parquet", compression="snappy", use_dictionary=False)


def start(workers: int, cluster: bool):
    """A session with ``workers`` cores: threads of one process, or with ``cluster`` processes of their own."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.files.maxPartitionBytes": "64m",
        "spark.sql.files.openCostInBytes": "64m",  # a partition for every file
    }
    builder = SparkSession.builder.master(f"local-cluster[{workers},1,2048]" if cluster else f"local[{workers}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def ways(frame, schema: dpgram.Schema) -> dict[str, Callable[[], object]]:
    """What is timed. All but the first bring every column to where it is counted."""
    from pyspark.sql import functions

    def counting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        rows = sum(batch.num_rows for batch in batches)
        yield pyarrow.record_batch({"rows": pyarrow.array([rows], pyarrow.int64())})

    numbers = frame.select(*schema.names)
    named = {f"n{i}": functions.count(functions.col(name)) for i, name in enumerate(schema.names)}
    bound = schema.effective_row_bound
    return {
        "count(*), which reads no column": frame.count,
        "count of every column": lambda: frame.agg(*(c.alias(n) for n, c in named.items())).collect(),
        "every row to the noop sink": lambda: numbers.write.format("noop").mode("overwrite").save(),
        "mapInArrow that counts": lambda: numbers.mapInArrow(counting, "rows long").collect(),
        "dpgram": lambda: open_pass(frame, schema).gram(bound),
        "dpgram, ids, few units with too many rows": partial(summed_by_unit, frame, schema, 10),
        "dpgram, ids, many units with too many rows": partial(summed_by_unit, frame, schema, 2),
        **{f"release, {name}": partial(release, frame, schema, name) for name in ("gaussian-noise", "whitened-noise")},
    }


def summed_by_unit(frame, schema: dpgram.Schema, most: int) -> object:
    """The count of each unit's rows, and a sum in which units of more than ``most`` rows count partly."""
    units = open_pass(frame, replace(schema, unit_id="id", rows_per_unit=most))
    with units.one_state():
        units.count_units()
        return units.gram(schema.effective_row_bound)


def release(frame, schema: dpgram.Schema, mechanism: str) -> object:
    """A whole release: one job, or, of whitened-noise, a count, a job for the rows that steer, and one for the last round."""
    return dpgram.release(frame, schema, epsilon=1.0, delta=1e-8, mechanism=mechanism)


def cpu_seconds() -> float:
    """Processor time of this process and all that it started: Spark's JVM, its executors and their Python workers. Linux."""
    parents, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:15]))  # its own, and its ended children's
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(spent[process] for process in ours if process in spent) / os.sysconf("SC_CLK_TCK")


def timed(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """Seconds by the clock and by the processors, the least of all repeats after two to warm up."""
    call(), call()
    clock, cpu = [], []
    for _ in range(repeats):
        begun, spent = time.perf_counter(), cpu_seconds()
        call()
        clock.append(time.perf_counter() - begun)
        cpu.append(cpu_seconds() - spent)
    return {"seconds": min(clock), "cpu": min(cpu)}


def bench(rows: int, columns: int, workers: list[int], repeats: int, cluster: bool) -> dict:
    files = 2 * max(workers)
    rows -= rows % files
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(f"x{j}", -4, 4) for j in range(columns)])
    timings: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder, rows, columns, files)
        local = timed(lambda: open_pass(folder, schema).gram(schema.effective_row_bound), repeats)
        for number in workers:
            session = start(number, cluster)
            frame = session.read.parquet(name)  # with ids, which only some ways read
            timings[str(number)] = {}
            for way, call in ways(frame, schema).items():
                timings[str(number)][way] = timed(call, repeats)
                print(f"{number} workers, {way}: {timings[str(number)][way]}", file=sys.stderr, flush=True)
            session.stop()
    return {
        "rows": rows,
        "columns": columns,
        "partitions": files,
        "executors": "processes" if cluster else "threads of one process",
        "local": local,
        "workers": timings,
        "over_count": {k: _ratios(v, "count of every column") for k, v in timings.items()},
        "over_arrow_count": {k: _ratios(v, "mapInArrow that counts") for k, v in timings.items()},
        "over_local": {k: {unit: v["dpgram"][unit] / local[unit] for unit in local} for k, v in timings.items()},
        "rows_per_cpu_second": {k: rows / v["dpgram"]["cpu"] for k, v in timings.items()},
        "machine": machine() | {"load": os.getloadavg()[0]},
    }


def _ratios(timings: dict[str, dict[str, float]], way: str) -> dict[str, float]:
    return {unit: timings["dpgram"][unit] / timings[way][unit] for unit in timings[way]}


def as_table(result: dict) -> str:
    """Markdown, with the ratio of dpgram to each way."""
    workers = list(result["workers"])
    local = result["local"]
    lines = [
        f"{result['rows']:,} rows by {result['columns']} float64 columns, {result['partitions']} partitions, executors as "
        f"{result['executors']}, load {result['machine']['load']:.1f} on {result['machine']['cores']} cores; the local engine: "
        f"{local['seconds']:.2f} s, {local['cpu']:.2f} s of processor time.",
        "",
        "| way | " + " | ".join(f"{w} worker{'s' * (w != '1')}: s | CPU s | dpgram over it (s, CPU s)" for w in workers) + " |",
        "|---|" + "---|---|---|" * len(workers),
    ]
    for way in result["workers"][workers[0]]:
        cells = []
        for w in workers:
            its, over = result["workers"][w][way], _ratios(result["workers"][w], way)
            cells.append(f"{its['seconds']:.2f} | {its['cpu']:.2f} | {over['seconds']:.2f}, {over['cpu']:.2f}")
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_spark", description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--columns", type=int, default=22)
    options.add_argument("--workers", default="1,2,4", help="numbers of cores to try, such as 1,2")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--cluster", action="store_true", help="executors as processes of their own, which start slowly")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    result = bench(given.rows, given.columns, [int(w) for w in given.workers.split(",")], given.repeats, given.cluster)
    print(json.dumps(result) if given.json else as_table(result))


if __name__ == "__main__":
    main()
