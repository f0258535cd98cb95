"""Runs the study and writes its table: ``python -m experiments.coverage`` (``make coverage``).

An interrupted run goes on where it stopped: Grams and finished cells lie in build/coverage."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.coverage.study import batches, run_all, write
from experiments.coverage.table import PAGE, RESULTS, update

ROOT = Path(__file__).parents[2]


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m experiments.coverage", description=__doc__)
    options.add_argument("--releases", type=int, default=400, help="data sets, each released once, per cell")
    options.add_argument("--resampled", type=int, default=100, help="releases per cell of the bootstrap")
    options.add_argument("--folder", type=Path, default=ROOT / "build" / "coverage", help="where work in progress is kept")
    options.add_argument("--only", default="", help="a setting whose name starts so; nothing is then written to docs/")
    given = options.parse_args()
    chosen = [b for b in batches(given.releases, given.resampled) if b.setting.name.startswith(given.only)]
    bar = Progress(TextColumn("{task.description:60}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with bar:
        steps = bar.add_task("coverage", total=len(chosen))
        rows = run_all(
            chosen,
            given.folder / "results.csv",
            given.folder / "grams",
            lambda batch: bar.update(steps, advance=1, description=" ".join(batch.key)),
        )
    if not given.only:
        write(ROOT / RESULTS, rows)
        update(ROOT / PAGE, ROOT / RESULTS)


main()
