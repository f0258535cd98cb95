"""One regression end to end, against what a user would pick instead: time and peak memory, from memory and from Parquet.

``python -m benchmarks.bench_end_to_end [--rows N] [--columns D] [--json]``. Every way runs in a process of its own. Time is the best of a
few runs and begins after imports; memory is the operating system's peak less what was resident before the work, so an array given in
memory is not counted, and one read from Parquet is. ``--save`` writes benchmarks/results/end_to_end.json and the table of docs/peers.md."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.peers import adassp
from benchmarks.peers.diffprivlib_regression import available, linear_regression
from benchmarks.peers.questions import Regression
from benchmarks.peers.shares import gaussian_share
from dpgram.accounting.wishart import calibrate_floor
from dpgram.terms.budget import Budget, Neighbours
from experiments.markers import fill_page

Array = np.ndarray

ROWS, COLUMNS, RUNS = 1_000_000, 22, 3
BUDGET = Budget(1.0, 1e-6)
REACH = 4.0  # every column is declared within +-4
BLOCK = 4096
MOST_SKETCHED = 1_000_000  # rows; the literal sketch of more is extrapolated
RESULTS, PAGE = Path("benchmarks/results/end_to_end.json"), Path("docs/peers.md")


@dataclass(frozen=True)
class Line:
    """What one way took; ``note`` says what the numbers are not, or why there are none."""

    way: str
    source: str
    seconds: float | None = None
    cpu_seconds: float | None = None  # of all threads; steadier than the clock where the machine is shared
    peak_mb: float | None = None
    note: str = ""


def names(columns: int) -> list[str]:
    """The last one is the label."""
    return [*(f"x{j}" for j in range(1, columns)), "y"]


def make_table(rows: int, columns: int, folder: Path) -> None:
    """The same normal features and linear label as an array and as a Parquet file of row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    table = rng.standard_normal((rows, columns))
    table[:, -1] = (table[:, :-1] @ rng.uniform(-1, 1, columns - 1) + 0.5 * table[:, -1]) / np.sqrt(columns)
    np.clip(table, -REACH, REACH, out=table)
    np.save(folder / "table.npy", table)
    pq.write_table(pa.table(dict(zip(names(columns), table.T, strict=True))), folder / "table.parquet", row_group_size=1 << 17)


def from_parquet(file: Path) -> Array:
    """The whole file as one array, as a user of scikit-learn reads it."""
    import pyarrow.parquet as pq

    return np.column_stack([column.to_numpy() for column in pq.read_table(file).columns])


def as_array(table: Any) -> Array:
    return from_parquet(table) if isinstance(table, Path) else table


def with_sklearn(table: Any) -> Array:
    from sklearn.linear_model import LinearRegression

    rows = as_array(table)
    return LinearRegression().fit(rows[:, :-1], rows[:, -1]).coef_


def with_diffprivlib(table: Any) -> Array:
    rows = as_array(table)
    model = linear_regression()(epsilon=BUDGET.epsilon, bounds_X=(-REACH, REACH), bounds_y=(-REACH, REACH))
    return model.fit(rows[:, :-1], rows[:, -1]).coef_


def scaled(rows: Array, bound: float) -> Array:
    """Intercept and columns within [-1, 1], each row shrunk to ``bound``."""
    made = np.empty((len(rows), rows.shape[1] + 1))
    made[:, 0] = 1.0
    np.divide(rows, REACH, out=made[:, 1:])
    np.clip(made, -1.0, 1.0, out=made)
    made *= np.minimum(1.0, bound / np.sqrt(np.einsum("ij,ij->i", made, made)))[:, None]
    return made


def with_adassp(table: Any) -> Array:
    made = scaled(as_array(table), np.sqrt(1 + as_columns(table)))
    size = made.shape[1] - 1
    x = made[:, :-1].T
    one = Regression("y", (), tuple("x" * size), x, made[:, -1], float(np.sqrt(size)), np.ones(size))
    return adassp.fit(one, gaussian_share(BUDGET, 1), BUDGET.delta, np.random.default_rng())


def as_columns(table: Any) -> int:
    import pyarrow.parquet as pq

    return pq.ParquetFile(table).metadata.num_columns if isinstance(table, Path) else table.shape[1]


def blocks(table: Any) -> Any:
    """A few thousand rows at a time."""
    if isinstance(table, Path):
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(table).iter_batches(batch_size=BLOCK):
            yield np.column_stack([column.to_numpy() for column in batch.columns])
    else:
        for start in range(0, len(table), BLOCK):
            yield table[start : start + BLOCK]


def with_literal_sketch(table: Any) -> Array:
    """The paper's Algorithm 1 as printed: R [A; w I] for an r by (n + d) Gaussian R, over blocks of rows; w by the exact calibration."""
    d = as_columns(table) + 1
    r = 2 * d
    bound = np.sqrt(d)
    w = bound * np.sqrt(calibrate_floor(BUDGET, r, Neighbours.REPLACE, d))
    rng = np.random.default_rng()
    sketch = w * rng.standard_normal((r, d))
    for block in blocks(table):
        sketch += rng.standard_normal((r, len(block))) @ scaled(block, bound)
    return np.linalg.lstsq(sketch[:, :-1], sketch[:, -1])[0]


def with_dpgram(table: Any) -> Array:
    import dpgram

    columns = names(as_columns(table))
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -REACH, REACH) for name in columns])
    given: dict[str, Any] = {} if isinstance(table, Path) else {"columns": columns}
    release = dpgram.release(table, schema, epsilon=BUDGET.epsilon, delta=BUDGET.delta, mechanism="gaussian-noise", **given)
    return dpgram.regress(release, "y").coefficients


WAYS: dict[str, Callable[[Any], Array]] = {
    "scikit-learn, not private": with_sklearn,
    "diffprivlib": with_diffprivlib,
    "AdaSSP": with_adassp,
    "literal sketch R A": with_literal_sketch,
    "dpgram": with_dpgram,
}
SOURCES = {"memory": "table.npy", "parquet": "table.parquet"}


def resident(which: str) -> float:
    """VmRSS or VmHWM in megabytes; elsewhere than on Linux, the peak so far."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split(f"{which}:")[1].split()[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def one_run(way: str, source: str, folder: Path, runs: int) -> dict[str, float]:
    """Seconds and megabytes of one way; called in a process of its own."""
    import dpgram

    for module in ("pyarrow.parquet", "sklearn.linear_model"):
        import_module(module)
    for name in dpgram.__all__:  # public names are imported when first used: use them now
        getattr(dpgram, name)
    if way == "diffprivlib":
        linear_regression()
    file = folder / SOURCES[source]
    table = np.load(file) if source == "memory" else file
    before = resident("VmRSS")
    seconds = []
    cpu = []
    for _ in range(runs):
        start, busy = time.perf_counter(), time.process_time()
        WAYS[way](table)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    return {"seconds": min(seconds), "cpu_seconds": min(cpu), "peak_mb": resident("VmHWM") - before}


def measure(way: str, source: str, folder: Path, runs: int) -> Line:
    if way == "diffprivlib" and available():
        return Line(way, source, note=str(available()))
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.bench_end_to_end",
        "--child",
        way,
        source,
        str(folder),
        str(runs),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return Line(way, source, note=f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return Line(way, source, **json.loads(done.stdout))


def bench(rows: int, columns: int, runs: int) -> dict[str, Any]:
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        folder, smaller = Path(scratch) / "all", Path(scratch) / "some"
        folder.mkdir(), smaller.mkdir()
        make_table(rows, columns, folder)
        fewer = rows > MOST_SKETCHED
        if fewer:
            make_table(MOST_SKETCHED, columns, smaller)
        for source in SOURCES:
            for way in WAYS:
                print(f"{way}, {source}", file=sys.stderr, flush=True)
                shorter = fewer and way.startswith("literal")
                line = measure(way, source, smaller if shorter else folder, runs)
                if shorter and line.seconds is not None and line.cpu_seconds is not None:
                    times, note = rows / MOST_SKETCHED, f"extrapolated from {MOST_SKETCHED:,} rows"
                    line = replace(line, seconds=line.seconds * times, cpu_seconds=line.cpu_seconds * times, note=note)
                lines.append(line)
    return {"rows": rows, "columns": columns, "runs": runs, "lines": [asdict(line) for line in lines], "machine": machine()}


def machine() -> dict[str, Any]:
    return timing.machine() | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set")}


def table_of(result: dict[str, Any]) -> str:
    base = {line["source"]: line["cpu_seconds"] for line in result["lines"] if line["way"].startswith("scikit-learn")}
    text = [
        "| from | way | seconds | CPU seconds | CPU over scikit-learn | peak memory, MB | |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in result["lines"]:
        if line["seconds"] is None:
            text.append(f"| {line['source']} | {line['way']} | - | - | - | - | {line['note']} |")
        else:
            times = f"{line['cpu_seconds'] / base[line['source']]:.2f}" if base.get(line["source"]) else "-"
            numbers = f"{line['seconds']:.2f} | {line['cpu_seconds']:.2f} | {times} | {line['peak_mb']:.0f}"
            text.append(f"| {line['source']} | {line['way']} | {numbers} | {line['note']} |")
    facts = result["machine"]
    text.append("")
    text.append(
        f"{result['rows']:,} rows of {result['columns']} float64 columns, best of {result['runs']}; {facts['processor']}, "
        f"{facts['cores']} cores, OMP_NUM_THREADS {facts['OMP_NUM_THREADS']}, NumPy {facts['numpy']}, Python {facts['python']}."
    )
    return "\n".join(text) + "\n"


def save(result: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    fill_page(PAGE, {"end to end": table_of(result)})


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_end_to_end", description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--columns", type=int, default=COLUMNS, help="the label included")
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--quick", action="store_true", help="20,000 rows, one run")
    options.add_argument("--json", action="store_true", help="print JSON in place of a table")
    options.add_argument("--save", action="store_true", help="write the results and the table of docs/peers.md")
    options.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    if given.child:
        way, source, folder, runs = given.child
        print(json.dumps(one_run(way, source, Path(folder), int(runs))))
        return 0
    result = bench(*((20_000, given.columns, 1) if given.quick else (given.rows, given.columns, given.runs)))
    if given.save:
        save(result)
    print(json.dumps(result) if given.json else table_of(result))
    return 1 if any(line["note"].startswith("failed") for line in result["lines"]) else 0


if __name__ == "__main__":
    sys.exit(main())
