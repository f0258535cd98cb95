"""Accuracy of one Gram against peers at equal (epsilon, delta), for k regressions from one table: ``make bench-peers``.

Writes benchmarks/results/peers.csv, docs/images/peers.png and the tables of docs/peers.md. ``--quick`` writes to build/peers, and takes
seconds."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.peers import page
from benchmarks.peers.figure import draw
from benchmarks.peers.registry import METHODS
from benchmarks.peers.study import FULL, QUICK, Cell, merged, read, run, write

RESULTS, FIGURE, PAGE = Path("benchmarks/results/peers.csv"), Path("docs/images/peers.png"), Path("docs/peers.md")


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_peers", description=__doc__)
    options.add_argument("--quick", action="store_true", help="small tables, two values of k, one epsilon")
    options.add_argument(
        "--method", action="append", choices=[m.name for m in METHODS], help="run only this, and put it among the results"
    )
    options.add_argument("--out", type=Path, help="folder for results and figure; the page is then left alone")
    options.add_argument("--from-results", action="store_true", help="no new run: figure and page from the results in place")
    given = options.parse_args(arguments)
    folder = given.out or (Path("build/peers") if given.quick else None)
    results, figure = (folder / RESULTS.name, folder / FIGURE.name) if folder else (RESULTS, FIGURE)
    if given.from_results:
        cells = read(results)
    else:
        for missing in filter(None, (method.available() for method in METHODS)):
            print(f"LEFT OUT: {missing}", file=sys.stderr)
        results.parent.mkdir(parents=True, exist_ok=True)
        cells = measured(given.quick, results, given.method or [])
    figure.parent.mkdir(parents=True, exist_ok=True)
    draw(cells, figure)
    if folder is None:
        page.update(PAGE, cells)
    print(page.summary(cells))
    return 0


def measured(quick: bool, results: Path, only: list[str]) -> list[Cell]:
    """Runs everything, and writes what there is so far after every method; with ``only`` some, beside what ``results`` hold."""
    start = time.perf_counter()
    cells = list[Cell]()
    before = read(results) if only else []
    order = [method.name for method in METHODS]

    def say(what: str) -> None:
        if not only:
            write(results, cells)
        print(f"{time.perf_counter() - start:6.0f} s  {what}", file=sys.stderr, flush=True)

    chosen = [m for m in METHODS if m.available() is None and (not only or m.name in only)]
    for cell in run(QUICK if quick else FULL, chosen, say):
        cells.append(cell)
    cells = merged(before, cells, order)
    write(results, cells)
    return read(results)  # as the file has them, rounded once: the page is made of that


if __name__ == "__main__":
    sys.exit(main())
