"""The tables of the study, between markers of docs/combine.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.combine.study import Line
from experiments.markers import fill_page

PAGE = "docs/combine.md"
HEAD = (
    "releases",
    "mechanism",
    "epsilon",
    "coverage",
    "not identified",
    "error",
    "error of one release",
    "width over one release",
)


def update(root: Path, lines: Sequence[Line]) -> None:
    fill_page(root / PAGE, tables(lines))


def tables(lines: Sequence[Line]) -> dict[str, str]:
    return {
        f"coverage of {rows} rows": _markdown([line for line in lines if line.rows == rows]) for rows in ("disjoint", "same")
    }


def _markdown(lines: Sequence[Line]) -> str:
    rows = [
        (
            line.name,
            line.mechanisms,
            f"{line.epsilon:g}",
            f"{line.coverage:.1%}",
            f"{line.unidentified:.0%}",
            f"{line.error:.2g}",
            f"{line.error_of_one:.2g}",
            f"{line.width:.2f}",
        )
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (HEAD, ("---", "---", *("---:",) * 6), *rows))
