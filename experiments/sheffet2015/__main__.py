"""``python -m experiments.sheffet2015``: tables, releases, regressions, figures and the page, from nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from experiments.sheffet2015.claims import Book, claims
from experiments.sheffet2015.figures import draw_all
from experiments.sheffet2015.lasso import EXPONENTS, draw_zeros, write_zeros, zeros_of
from experiments.sheffet2015.page import fill, parts
from experiments.sheffet2015.run import cells, make_grams, progress, run_techniques, write_results
from experiments.sheffet2015.settings import MULTIPLE, REPETITIONS

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "paper.md"
FIGURES = HERE.parents[1] / "docs" / "images" / "sheffet2015"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.sheffet2015", description=__doc__)
    parser.add_argument("--largest", type=int, default=27, help="run tables of up to 2^LARGEST rows (27: all of them)")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--device", default="cpu", help="where tables are made: cpu, or cuda with PyTorch")
    parser.add_argument(
        "--tables", type=Path, default=Path("build/sheffet2015"), help="folder of Gram matrices; those there are used again"
    )
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for results and figures; left out, the committed ones are replaced"
    )
    parser.add_argument("--tables-only", action="store_true", help="make the Gram matrices and stop")
    given = parser.parse_args()
    run(given.largest, given.repetitions, given.device, given.tables, given.out, given.tables_only)


def run(
    largest: int, repetitions: int, device: str, tables: Path, out: Path | None, tables_only: bool = False, *, long: bool = True
) -> None:
    """Everything, into the repository's own pages (``out`` None) or into a folder."""
    wanted = cells(largest, repetitions)
    made = make_grams(wanted, tables, device)
    note(f"{len(wanted)} Gram matrices in {tables}; {made}")
    if tables_only:
        return
    begun = time.perf_counter()
    found = run_techniques(wanted, tables)
    chosen = [(MULTIPLE, k, r) for k in EXPONENTS if k <= largest for r in range(repetitions)]
    zeros = []
    with progress() as bar:
        task = bar.add_task("lasso", total=len(chosen))
        for cell in chosen:
            zeros += zeros_of(cell, tables)
            bar.advance(task)
    seconds = time.perf_counter() - begun
    results, images = (HERE, FIGURES) if out is None else (out, out / "figures")
    results.mkdir(parents=True, exist_ok=True)
    write_results(found, results / "results.csv")
    write_zeros(zeros, results / "zeros.csv")
    written = [*draw_all(found, images, long=long), *draw_zeros(zeros, images / "figure-7")]
    said = claims(found, zeros) if largest >= 20 else []
    if out is None:
        fill(PAGE, parts(Book(found), said))
    facts = {
        "largest": largest,
        "repetitions": repetitions,
        **made,
        "releases_and_regressions_seconds": round(seconds, 1),
        "releases_and_regressions_on": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
    }
    (results / "run.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for claim in said:
        print(
            f"[{claim.holds:6}] {claim.figure}: {claim.says}\n         printed: {claim.printed}\n         exact:   {claim.exact}"
        )
    note(f"{len(found)} errors and {len(written)} files of figures in {seconds:.0f} s, under {results} and {images}")


def note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
