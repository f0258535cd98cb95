"""The tables of the study, between markers of docs/units.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from experiments.markers import fill_page
from experiments.units.panels import held_out
from experiments.units.study import MOST, Coverage, Error

PAGE = "docs/units.md"


def update(root: Path, errors: Sequence[Error], coverages: Sequence[Coverage]) -> None:
    fill_page(root / PAGE, {"errors of units": error_table(errors), "coverage of units": coverage_table(coverages)})


def error_table(lines: Sequence[Error]) -> str:
    """A row for each panel: keep / weigh for every m, without noise and with it."""
    kinds = sorted({line.epsilon for line in lines}, reverse=True)
    head = [f"m = {most}, {_budget(epsilon)}" for epsilon in kinds for most in MOST]
    by = {(line.panel, line.epsilon, line.most): line for line in lines}
    rows = []
    for name in dict.fromkeys(line.panel for line in lines):
        cells = [by[name, epsilon, most] for epsilon in kinds for most in MOST]
        shown = [f"{_digits(cell.keep)} / {_digits(cell.weigh)}" for cell in cells]
        rows.append([_name(name), f"{cells[0].units:,}", f"{cells[0].rows:,}", *shown])
    return _markdown(["panel", "units", "rows", *head], rows)


def coverage_table(lines: Sequence[Coverage]) -> str:
    """A row for each panel and m: coverage by both design effects, without noise and with it, and what the design effect is."""
    kinds = sorted({line.epsilon for line in lines}, reverse=True)
    head = [f"{words}, {_budget(epsilon)}" for epsilon in kinds for words in ("default", "design effect 1")]
    by = {(line.panel, line.epsilon, line.most): line for line in lines}
    rows = []
    for name in dict.fromkeys(line.panel for line in lines):
        for most in MOST:
            cells = [by[name, epsilon, most] for epsilon in kinds]
            shown = [f"{share:.1%}" for cell in cells for share in (cell.worst, cell.one)]
            rows.append([_name(name), str(most), f"{cells[0].observed:.2f}", *shown])
    return _markdown(["panel", "m", "observed design effect", *head], rows)


def _name(name: str) -> str:
    return f"{name} (held out)" if held_out(name) else name


def _budget(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.3g}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
