"""Runs the study and writes its tables: ``python -m experiments.whitened`` (``make whitened-study``), a quarter of an hour on one core."""

from __future__ import annotations

from pathlib import Path

from rich.progress import track

from experiments.whitened.study import LINES, everything, write
from experiments.whitened.table import RESULTS, update

ROOT = Path(__file__).parents[2]


def main() -> None:
    write(ROOT / RESULTS, list(track(everything(), description="whitened", total=LINES)))
    update(ROOT)


main()
