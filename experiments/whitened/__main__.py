"""Runs the study and writes its tables: ``python -m experiments.whitened``, ten to twenty minutes on one core."""

from __future__ import annotations

from pathlib import Path

from rich.progress import track

from experiments.whitened.study import everything, write
from experiments.whitened.table import PAGE, RESULTS, update

ROOT = Path(__file__).parents[2]


def main() -> None:
    write(ROOT / RESULTS, list(track(everything(), description="whitened", total=170)))
    update(ROOT / PAGE, ROOT / RESULTS)


main()
