"""Runs the study of controls and the replication, and writes their tables into docs/controls.md and docs/replication.md:
``python -m experiments.controls`` (``make controls-study``), a quarter of an hour on one core. ``--replicate`` is the replication alone."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from rich.progress import track

from experiments.controls import page, replication
from experiments.controls.study import EPSILONS, MECHANISMS, RELEASES, Coverage, coverage
from experiments.controls.tables import made_up, wages
from experiments.real.study import read, write

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments/controls/coverage.csv"
HELD = ROOT / "experiments/controls/held.csv"
PUBLISHED = ROOT / "experiments/controls/replication.csv"


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m experiments.controls", description=__doc__)
    options.add_argument("--replicate", action="store_true", help="the replication alone")
    options.add_argument("--releases", type=int, default=RELEASES)
    given = options.parse_args()
    if not given.replicate:
        cells = list(product((wages(), made_up()), MECHANISMS, EPSILONS))
        lines = [line for cell in track(cells, description="controls") for line in coverage(*cell, releases=given.releases)]
        write(RESULTS, Coverage, lines)
    write(PUBLISHED, replication.Line, list(replication.lines()))
    write(HELD, replication.Held, list(replication.held()))
    page.update(ROOT, read(RESULTS, Coverage), read(PUBLISHED, replication.Line), read(HELD, replication.Held))


if __name__ == "__main__":
    main()
