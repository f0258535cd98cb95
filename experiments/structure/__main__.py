"""Runs the study of structure and writes its table into docs/structure.md: ``python -m experiments.structure``
(``make structure-study``), some minutes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from rich.progress import track

from experiments.markers import fill_page
from experiments.real.study import read, write
from experiments.structure.study import ROWS, Measured, measured
from experiments.yes_no.page import markdown
from experiments.yes_no.study import EPSILONS, MECHANISMS

ROOT = Path(__file__).parents[2]
RESULTS, PAGE = ROOT / "experiments/structure/results.csv", ROOT / "docs/structure.md"


def main() -> None:
    cells = list(product(ROWS, MECHANISMS, EPSILONS))
    write(RESULTS, Measured, [measured(*cell) for cell in track(cells, description="structure")])
    fill_page(PAGE, {"coverage of partial correlations": table(read(RESULTS, Measured))})


def table(lines: Sequence[Measured]) -> str:
    head = ["rows", "mechanism", "epsilon", "coverage", "identified", "coverage of identified", "median width", "false edges"]
    rows = []
    for line in lines:
        inner = "" if math.isnan(line.of_identified) else f"{line.of_identified:.1%}"
        facts = [f"{line.rows:,}", line.mechanism, f"{line.epsilon:g}", f"{line.coverage:.1%}", f"{line.identified:.0%}"]
        rows.append([*facts, inner, f"{line.width:.3f}", f"{line.false_edges:.1%}"])
    return markdown(head, rows)


if __name__ == "__main__":
    main()
