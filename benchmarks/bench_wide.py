"""Whitened releases of many columns: how large their file is, how long loading it takes, what exact arithmetic adds, and what a regression
takes from one of 2,000 columns."""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import dpgram
from benchmarks.timing import note, options, print_table, show

ROWS, EPSILON, DELTA = 20_000, 10.0, 1e-6
LOADS = 15  # of each, in turn


def table(columns: int) -> tuple[dict[str, np.ndarray], dpgram.Schema]:
    """Correlated columns with heavy tails, in bounds far outside them: as many scales as there can be."""
    rng = np.random.default_rng(columns)
    cells = rng.standard_t(5, (ROWS, columns - 1))
    cells[:, 1:] += cells[:, :1]
    names = [f"x{k}" for k in range(columns - 1)]
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -20, 20) for name in names])
    return dict(zip(names, cells.T, strict=True)), schema


def processor_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def bench(columns: int, repeats: int) -> dict:
    """One release in each arithmetic, in turn, and its file."""
    note(f"{columns} columns")
    rows, schema = table(columns)
    made, seconds = {}, {"exact": np.inf, "float": np.inf}
    for _ in range(repeats):
        for arithmetic in seconds:
            ask = partial(
                dpgram.release, rows, schema, epsilon=EPSILON, delta=DELTA, mechanism="whitened-noise", arithmetic=arithmetic
            )
            seconds[arithmetic] = min(seconds[arithmetic], processor_seconds(lambda ask=ask: made.update(release=ask())))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.json")
        made["release"].save(path)
        turns = {"load": partial(dpgram.load, path), "json": lambda: json.loads(path.read_bytes())}
        taken = [{name: processor_seconds(run) for name, run in turns.items()} for _ in range(LOADS)]
        load, plain = (min(each[name] for each in taken) for name in turns)
        size = path.stat().st_size / 1e6
    return {
        "columns": columns,
        "rounds": int(made["release"].parameters["rounds"]),
        "file_mb": size,
        "load_over_json": load / plain,
        "exact_seconds": seconds["exact"],
        "exact_over_float": seconds["exact"] / seconds["float"],
    }


def bench_fits(columns: int, features: list[int]) -> dict:
    """The first regression from a release, which looks at all of its columns, and later ones, each with its summary."""
    note(f"regressions from {columns} columns")
    rows, schema = table(columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.json")
        dpgram.release(
            rows,
            schema,
            epsilon=EPSILON,
            delta=DELTA,
            mechanism="whitened-noise",
            arithmetic="float",
            out=path,
            insecure_seed=1,
        )
        names = list(rows)
        dpgram.regress(dpgram.load(path), names[0], names[1:2]).summary()  # imports what it needs
        release = dpgram.load(path)
    square = np.asarray(release.gram)
    start = time.perf_counter()
    np.linalg.inv(square)
    inverse = time.perf_counter() - start
    fits = []
    for place, count in enumerate([features[0], *features]):
        tracemalloc.start()
        start = time.perf_counter()
        str(dpgram.regress(release, names[0], names[1 : count + 1]).summary())
        seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        fits.append(
            {"features": f"{count}{', first' if place == 0 else ''}", "seconds": seconds, "over": seconds / inverse, "mb": peak}
        )
    return {"columns": columns, "fits": fits}


def print_result(result: dict) -> None:
    heads = ["columns", "rounds", "file, MB", "load / json.load", "exact, s", "exact / float"]
    print_table(heads, [list(row.values()) for row in result["releases"]])
    print(f"\nRegressions with summary from a release of {result['wide']['columns']:,} columns\n")
    print_table(
        ["features", "s", "over the inverse of its matrix", "peak MB"], [list(row.values()) for row in result["wide"]["fits"]]
    )


def main() -> None:
    given = options(__doc__)
    given.add_argument("--columns", type=int, nargs="+", default=[22, 100, 300])
    given.add_argument("--repeats", type=int, default=3)
    given.add_argument("--wide", type=int, default=2000)
    given.add_argument("--features", type=int, nargs="+", default=[100, 400, 500])
    asked = given.parse_args()
    releases = [bench(columns, asked.repeats) for columns in asked.columns]
    show({"releases": releases, "wide": bench_fits(asked.wide, asked.features)}, asked.json, print_result)


if __name__ == "__main__":
    main()
