"""The tables of the study, between markers of docs/instruments.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from experiments.instruments.replication import EXACT, REFERENCE, Line
from experiments.instruments.study import Coverage
from experiments.markers import fill_page

PAGE = "docs/instruments.md"


def update(root: Path, coverages: Sequence[Coverage], replicated: Sequence[Line]) -> None:
    fill_page(root / PAGE, tables(coverages, replicated))


def tables(coverages: Sequence[Coverage], replicated: Sequence[Line]) -> dict[str, str]:
    return {
        "coverage with instruments": coverage_table([line for line in coverages if not line.rare]),
        "coverage with a rare level": coverage_table([line for line in coverages if line.rare]),
        "published table": replication_table(replicated),
    }


def coverage_table(lines: Sequence[Coverage]) -> str:
    """A row for each cell."""
    head = [
        "mechanism",
        "epsilon",
        "instruments",
        "F",
        "Wald alone",
        "**default**",
        "others",
        "Anderson-Rubin",
        "no end",
        "rejected",
    ]
    rows = [
        [
            line.mechanism,
            f"{line.epsilon:g}",
            f"{line.instruments}, {line.strength}",
            f"{line.f:,.0f}" if line.f >= 100 else f"{line.f:.1f}",
            *(f"{share:.1%}" for share in (line.wald, line.auto, line.exogenous)),
            f"{line.by_test:.0%}",
            f"{line.unbounded:.0%}",
            "" if math.isnan(line.rejected) else f"{line.rejected:.1%}",
        ]
        for line in lines
    ]
    return _markdown(head, rows, words=3)


def replication_table(lines: Sequence[Line]) -> str:
    """A row for each number of the published table, a column for each release."""
    releases = list(dict.fromkeys(line.epsilon for line in lines))
    by = {(line.words, line.epsilon): line for line in lines}
    head = ["", "published", *(name if name in (REFERENCE, EXACT) else f"epsilon {name}" for name in releases)]
    rows = [
        [words, by[words, releases[0]].printed, *(_number(by[words, name]) for name in releases)]
        for words in dict.fromkeys(line.words for line in lines)
    ]
    return _markdown(head, rows, words=1)


def _number(line: Line) -> str:
    if math.isnan(line.se):
        return f"{line.value:,.0f}"
    return f"{line.value:.3f} ({line.se:.3f})"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
