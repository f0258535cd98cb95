"""Runs the study of panels and writes its tables into docs/units.md: ``python -m experiments.units`` (``make units-study``), some minutes.

Panels that are held out are left alone unless ``--held-out`` asks for them, and then for them alone."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from rich.progress import track

from experiments.real.study import read, write
from experiments.units import page
from experiments.units.panels import LISTED, held_out, load
from experiments.units.study import EPSILONS, MOST, Coverage, Error, coverage, errors

ROOT = Path(__file__).parents[2]
RESULTS = {Error: ROOT / "experiments/units/errors.csv", Coverage: ROOT / "experiments/units/coverage.csv"}


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m experiments.units", description=__doc__)
    options.add_argument("--held-out", action="store_true", help="the panels that were held out: once, at the end")
    given = options.parse_args()
    names = [name for name in LISTED if held_out(name) == given.held_out]
    for name in track(names, description="panels"):
        panel, cells = load(name), list(product(MOST, EPSILONS))
        keep(Error, name, [errors(panel, most, epsilon) for most, epsilon in cells])
        keep(Coverage, name, [coverage(panel, most, epsilon) for most, epsilon in cells])
    page.update(ROOT, *(read(file, kind) for kind, file in RESULTS.items()))


def keep(kind: type, name: str, lines: list) -> None:
    """Write the lines of one panel among those of the others."""
    file = RESULTS[kind]
    others = [line for line in (read(file, kind) if file.exists() else []) if line.panel != name]
    write(file, kind, sorted([*others, *lines], key=lambda line: list(LISTED).index(line.panel)))


if __name__ == "__main__":
    main()
