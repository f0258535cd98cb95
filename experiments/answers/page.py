"""The table of the study, between markers of docs/coverage.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from experiments.answers.study import KINDS, Line
from experiments.markers import fill_page

PAGE = "docs/coverage.md"


def update(root: Path, lines: Sequence[Line]) -> None:
    fill_page(root / PAGE, {"every answer": table(lines)})


def table(lines: Sequence[Line]) -> str:
    head = ["table", "mechanism", "epsilon", *KINDS, "bounded", "lowest"]
    rows = [
        [
            line.table,
            line.mechanism,
            f"{line.epsilon:g}",
            *(_share(getattr(line, kind)) for kind in KINDS),
            _share(line.bounded),
            f"{_share(line.lowest)} ({line.worst})" if line.worst else "-",
        ]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f}"
