"""Runs the study of every answer and writes its table into docs/coverage.md: ``python -m experiments.answers`` (``make answers-study``),
some minutes."""

from __future__ import annotations

from pathlib import Path

from rich.progress import track

from experiments.answers import page
from experiments.answers.study import Line, cells, measured
from experiments.real.study import read, write

ROOT = Path(__file__).parents[2]
COVERAGE = ROOT / "experiments/answers/coverage.csv"


def main() -> None:
    write(COVERAGE, Line, [measured(*cell) for cell in track(cells(), description="tables")])
    page.update(ROOT, read(COVERAGE, Line))


if __name__ == "__main__":
    main()
