"""Runs the study of forecasts and writes its table: ``python -m experiments.forecast`` (``make forecast-study``), some minutes."""

from __future__ import annotations

from pathlib import Path

from rich.progress import track

from experiments.forecast.study import everything, write
from experiments.forecast.table import PAGE, RESULTS, update

ROOT = Path(__file__).parents[2]


def main() -> None:
    cells = list(track(everything(), description="forecasts", total=None))
    write(ROOT / RESULTS, cells)
    update(ROOT / PAGE, ROOT / RESULTS)


main()
