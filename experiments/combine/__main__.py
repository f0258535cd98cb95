"""Runs the study of combined releases and writes its tables into docs/combine.md: ``python -m experiments.combine``, some minutes.

Or ``make combine-study``."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from rich.progress import track

from experiments.combine import page
from experiments.combine.study import CASES, EPSILONS, Line, measure
from experiments.coverage.releases import calibrated_once
from experiments.real.study import read, write

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments/combine/coverage.csv"


def main() -> None:
    cells, lines = list(product(CASES, EPSILONS)), []
    with calibrated_once():
        for case, epsilon in track(cells, description="cases"):
            lines.append(measure(case, epsilon))
            write(RESULTS, Line, lines)
    page.update(ROOT, read(RESULTS, Line))


if __name__ == "__main__":
    main()
