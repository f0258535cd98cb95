"""Runs one of the two studies of public tables: ``python -m experiments.real coverage`` (``make real-study``) or ``... bounds``
(``make bounds-study``).

Tables that are done lie in build/real; an interrupted run goes on with the others. Tables that are held out are left alone
unless ``--held-out`` asks for them, and then for them alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.real import bounds, coverage, figure, page
from experiments.real.listed import LISTED
from experiments.real.study import read, run_all, write
from experiments.real.tables import held_out

ROOT = Path(__file__).parents[2]
STUDIES = {"coverage": (coverage, 50), "bounds": (bounds, 10)}


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m experiments.real", description=__doc__)
    options.add_argument("study", choices=STUDIES)
    options.add_argument("--releases", type=int, help="per table, method and epsilon (50; 10 for bounds)")
    options.add_argument("--held-out", action="store_true", help="the tables that were held out: once, at the end")
    options.add_argument("--tables", nargs="*", default=[], help="only these; nothing is then written to docs/")
    options.add_argument("--folder", type=Path, default=ROOT / "build" / "real", help="where tables that are done are kept")
    options.add_argument("--processes", type=int, help="one per core")
    given = options.parse_args()
    module, usual = STUDIES[given.study]
    names = [name for name in LISTED if held_out(name) == given.held_out and (not given.tables or name in given.tables)]
    if unknown := set(given.tables) - set(names):
        options.error(f"not among these tables: {', '.join(sorted(unknown))}")
    cells = [(name, variant) for name in names for variant in module.VARIANTS]
    bar = Progress(TextColumn("{task.description:34}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with bar:
            steps = bar.add_task(given.study, total=len(cells))
            lines = run_all(
                module.Row,
                module.measure,
                cells,
                given.releases or usual,
                given.folder / given.study,
                lambda cell: bar.update(steps, advance=1, description=cell),
                given.processes,
            )
    except KeyboardInterrupt:
        raise SystemExit("stopped; the same command goes on with the tables that are left.") from None
    if given.tables or given.releases:
        print(page.summary(given.study, lines))
        return
    results = ROOT / page.RESULTS[given.study]
    others = [line for line in (read(results, module.Row) if results.exists() else []) if line.table not in set(names)]
    everything = sorted([*others, *lines], key=lambda line: list(LISTED).index(line.table))
    write(results, module.Row, everything)
    page.update(ROOT, given.study)
    if module is coverage:
        figure.draw(everything, ROOT / figure.PICTURE)


if __name__ == "__main__":
    main()
