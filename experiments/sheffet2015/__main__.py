"""``python -m experiments.sheffet2015``: tables, releases, regressions, figures and the page, from nothing."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import astuple
from pathlib import Path

from experiments.markers import fill_page
from experiments.sheffet2015.claims import Book, claims
from experiments.sheffet2015.figures import draw_all
from experiments.sheffet2015.lasso import EXPONENTS, Zeros, draw_zeros, read_zeros, write_zeros, zeros_of
from experiments.sheffet2015.page import parts
from experiments.sheffet2015.run import make_grams, progress, read_results, run_techniques, write_results
from experiments.sheffet2015.settings import MULTIPLE, REPETITIONS, Cell, cells
from experiments.sheffet2015.techniques import Result
from experiments.sheffet2015.whitened import NAME, NOT_PRIVATE, make_releases

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "paper.md"
FIGURES = HERE.parents[1] / "docs" / "images" / "sheffet2015"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.sheffet2015", description=__doc__)
    parser.add_argument("--largest", type=int, default=27, help="run tables of up to 2^LARGEST rows (27: all of them)")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--device", default="cpu", help="where tables are made: cpu, or cuda with PyTorch")
    parser.add_argument(
        "--tables",
        type=Path,
        default=Path("build/sheffet2015"),
        help="folder of Gram matrices and whitened releases; those there are used again",
    )
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for results and figures; left out, the committed ones are replaced"
    )
    parser.add_argument("--tables-only", action="store_true", help="make the Gram matrices and whitened releases and stop")
    parser.add_argument(
        "--whitened", action="store_true", help="the line of the whitened release alone; the committed results have the others"
    )
    parser.add_argument("--workers", type=int, default=1, help="whitened releases at a time")
    given = parser.parse_args()
    if given.largest < min(EXPONENTS):
        parser.error(
            f"--largest {given.largest} is too small: figure 7 needs tables of 2^{min(EXPONENTS)} rows. Pass at least {min(EXPONENTS)}."
        )
    run(
        given.largest,
        given.repetitions,
        given.device,
        given.tables,
        given.out,
        given.tables_only,
        only_whitened=given.whitened,
        workers=given.workers,
    )


def run(
    largest: int,
    repetitions: int,
    device: str,
    tables: Path,
    out: Path | None,
    tables_only: bool = False,
    *,
    long: bool = True,
    only_whitened: bool = False,
    workers: int = 1,
) -> None:
    """Everything, into the repository's own pages (``out`` None) or into a folder."""
    wanted = cells(largest, repetitions)
    made = {} if only_whitened else make_grams(wanted, tables, device)
    made |= make_releases(wanted, tables, device, workers)
    note(f"{len(wanted)} tables in {tables}; {made}")
    if tables_only:
        return
    begun = time.perf_counter()
    errors = run_techniques(wanted, tables, only_whitened=only_whitened)
    if only_whitened:
        errors, zeros = with_committed(errors, wanted)
    else:
        zeros = run_lasso([(MULTIPLE, k, r) for k in EXPONENTS if k <= largest for r in range(repetitions)], tables)
    seconds = time.perf_counter() - begun
    results, images = (HERE, FIGURES) if out is None else (out, out / "figures")
    results.mkdir(parents=True, exist_ok=True)
    write_results(errors, results / "results.csv")
    write_zeros(zeros, results / "zeros.csv")
    written = [*draw_all(errors, images, long=long), *draw_zeros(zeros, images / "figure-7")]
    said = claims(errors, zeros) if largest >= 20 else []
    if out is None:
        fill_page(PAGE, parts(Book(errors), said))
    facts = {"largest": largest, "repetitions": repetitions, **made}
    if only_whitened:
        facts = json.loads((HERE / "run.json").read_text(encoding="utf-8")) | facts
    else:
        facts["releases_and_regressions_seconds"] = round(seconds, 1)
        cores = f"{os.cpu_count()} cores ({platform.machine()})"
        facts["releases_and_regressions_on"] = f"{cores}, Python {platform.python_version()}"
    (results / "run.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for claim in said:
        print(
            f"[{claim.holds:6}] {claim.figure}: {claim.says}\n         printed: {claim.printed}\n         exact:   {claim.exact}"
        )
    note(f"{len(errors)} errors and {len(written)} files of figures in {seconds:.0f} s, under {results} and {images}")


def run_lasso(chosen: list[Cell], tables: Path) -> list[Zeros]:
    zeros = []
    with progress() as bar:
        task = bar.add_task("lasso", total=len(chosen))
        for cell in chosen:
            zeros += zeros_of(cell, tables)
            bar.advance(task)
    return zeros


def with_committed(errors: list[Result], wanted: list[Cell]) -> tuple[list[Result], list[Zeros]]:
    """Errors of whitened releases in their place among the committed ones of the same tables, and the committed zeros."""
    tables = {(setting.name, exponent, repetition) for setting, exponent, repetition in wanted}
    others = [r for r in read_results(HERE / "results.csv") if r.technique not in (NAME, NOT_PRIVATE)]
    kept = [r for r in others if (r.setting, r.exponent, r.repetition) in tables]
    zeros = [z for z in read_zeros(HERE / "zeros.csv") if (MULTIPLE.name, z.exponent, z.repetition) in tables]
    return sorted([*errors, *kept], key=astuple), zeros


def note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
