"""Runs the study of forecasts and writes its table: ``python -m experiments.forecast`` (``make forecast-study``), some ten minutes.

Names of mechanisms after it run these alone; the others' numbers stay as they are."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.progress import track

from dpgram.mechanisms import registry
from experiments.forecast.study import everything, in_order, read, write
from experiments.forecast.table import PAGE, RESULTS, update

ROOT = Path(__file__).parents[2]


def main() -> None:
    names = sys.argv[1:] or list(registry.MECHANISMS)
    cells = list(track(everything(mechanisms=names), description="forecasts", total=None))
    if sys.argv[1:]:
        cells = in_order([*(cell for cell in read(ROOT / RESULTS) if cell.mechanism not in names), *cells])
    write(ROOT / RESULTS, cells)
    update(ROOT / PAGE, ROOT / RESULTS)


main()
