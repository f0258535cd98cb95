"""The study's tables, in Markdown."""

from __future__ import annotations

import math
from pathlib import Path

from experiments.whitened.study import Line, read

PAGE, RESULTS = Path("experiments/whitened/tables.md"), Path("experiments/whitened/results.csv")


def update(page: Path, results: Path) -> None:
    page.write_text(text(read(results)), encoding="utf-8")


def text(lines: list[Line]) -> str:
    parts = ["# The whitened release, measured\n\nWritten by `python -m experiments.whitened`. REPLACE."]
    for held_out, said in ((False, "constants were chosen on these"), (True, "held out")):
        own = [x for x in lines if x.held_out == held_out]
        parts.append(f"## Simulated, {said}\n\nMean l2 error of coefficients, delta e^-9.\n\n" + _simulated(own))
        parts.append(
            f"## Real, {said}\n\nTest R^2, delta 1e-6; the last two columns are errors over those of least squares.\n\n"
            + _real(own)
        )
    return "\n\n".join(parts) + "\n"


def _simulated(lines: list[Line]) -> str:
    rows = [
        "| setting | d | rows | epsilon | data sets | without privacy | single | whitened | whitened, log-det |",
        "|" + "---|" * 9,
    ]
    for x in lines:
        if x.part == "simulated":
            best = min(x.single_shrunk, x.single_log_det)
            numbers = " | ".join(f"{v:.3g}" for v in (x.without, best, x.whitened_shrunk, x.whitened_log_det))
            rows.append(f"| {x.setting} | {x.columns} | 2^{math.log2(x.rows):.0f} | {x.epsilon:g} | {x.runs} | {numbers} |")
    return "\n".join(rows)


def _real(lines: list[Line]) -> str:
    head = [
        "table",
        "d",
        "rows",
        "epsilon",
        "without privacy",
        "single",
        "whitened",
        "whitened, log-det",
        "error, single",
        "error, whitened",
    ]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for x in lines:
        if x.part == "real":
            r2 = " | ".join(
                f"{v:.3f}" for v in (x.without, max(x.single_shrunk, x.single_log_det), x.whitened_shrunk, x.whitened_log_det)
            )
            errors = f"{x.single_error:.3g} | {x.whitened_error:.3g}"
            rows.append(f"| {x.setting} | {x.columns} | {x.rows} | {x.epsilon:g} | {r2} | {errors} |")
    return "\n".join(rows)
