"""Runs the study of instruments and writes its tables into docs/instruments.md: ``python -m experiments.instruments``
(``make instruments-study``), about a quarter of an hour. ``--replication`` makes the published table alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.progress import track

from experiments.instruments import page
from experiments.instruments.replication import Line, replicate
from experiments.instruments.study import RELEASES, Coverage, cells, coverage, rare_cells
from experiments.real.study import read, write

ROOT = Path(__file__).parents[2]
COVERAGE, REPLICATION = (ROOT / f"experiments/instruments/{name}.csv" for name in ("coverage", "replication"))


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m experiments.instruments", description=__doc__)
    options.add_argument("--replication", action="store_true", help="the published table alone")
    options.add_argument("--releases", type=int, default=RELEASES, help="releases for each line of the table of coverage")
    given = options.parse_args()
    write(REPLICATION, Line, replicate())
    if not given.replication:
        wanted = [*cells(), *rare_cells()]
        write(COVERAGE, Coverage, [coverage(cell, given.releases) for cell in track(wanted, description="coverage")])
    page.update(ROOT, read(COVERAGE, Coverage), read(REPLICATION, Line))


if __name__ == "__main__":
    main()
