"""Runs the study of yes-or-no targets and writes its tables into docs/yes-no.md: ``python -m experiments.yes_no``
(``make yes-no-study``), some minutes."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from rich.progress import track

from experiments.real.study import read, write
from experiments.yes_no import classes, page
from experiments.yes_no.classes import ErrorCoverage, error_coverage
from experiments.yes_no.study import EPSILONS, MECHANISMS, SHARES, Compared, Coverage, compared, coverage
from experiments.yes_no.tables import LISTED, load

ROOT = Path(__file__).parents[2]
TABLES, COVERAGE = ROOT / "experiments/yes_no/tables.csv", ROOT / "experiments/yes_no/coverage.csv"
CLASSES = ROOT / "experiments/yes_no/classes.csv"


def main() -> None:
    write(TABLES, Compared, [compared(load(name)) for name in track(list(LISTED), description="tables")])
    cells = list(product(SHARES, MECHANISMS, EPSILONS))
    write(COVERAGE, Coverage, [coverage(*cell) for cell in track(cells, description="coverage")])
    cells = list(product(classes.SHARES, MECHANISMS, EPSILONS))
    write(CLASSES, ErrorCoverage, [error_coverage(*cell) for cell in track(cells, description="classes")])
    page.update(ROOT, read(TABLES, Compared), read(COVERAGE, Coverage), read(CLASSES, ErrorCoverage))


if __name__ == "__main__":
    main()
