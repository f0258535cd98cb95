"""Runs the full audit and writes its table: ``python -m experiments.audits`` (``make audit``). Stopped, it goes on where it was."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.progress import track

from experiments.audits.study import everything, read, run
from experiments.audits.table import FIGURE, PAGE, RESULTS, draw, update

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description="Every mechanism and calibration against its worst neighbours.")
    parser.add_argument("--draws", type=int, default=2_000_000, help="releases of each table")
    parser.add_argument("--results", type=Path, default=ROOT / RESULTS, help="where results are kept")
    asked = parser.parse_args()
    for _ in track(run(asked.results, asked.draws), description="audits", total=len(everything())):
        pass
    update(ROOT / PAGE, asked.results, asked.draws)
    draw(ROOT / FIGURE, asked.results, asked.draws)
    return 1 if any(each["broken"] for results in read(asked.results).values() for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
