"""Runs the study of errors and writes its tables: ``python -m experiments.errors`` (``make errors``), ten to twenty minutes."""

from __future__ import annotations

from pathlib import Path

from rich.progress import track

from experiments.errors.study import CELLS, everything, write
from experiments.errors.table import PAGE, RESULTS, update

ROOT = Path(__file__).parents[2]


def main() -> None:
    cells = list(track(everything(), description="errors", total=CELLS))
    write(ROOT / RESULTS, cells)
    update(ROOT / PAGE, ROOT / RESULTS)


main()
