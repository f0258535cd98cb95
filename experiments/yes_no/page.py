"""The tables of the study, between markers of docs/yes-no.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from experiments.markers import fill_page
from experiments.yes_no.classes import ErrorCoverage
from experiments.yes_no.study import EPSILONS, Compared, Coverage

PAGE = "docs/yes-no.md"


def update(root: Path, tables: Sequence[Compared], coverages: Sequence[Coverage], classes: Sequence[ErrorCoverage]) -> None:
    filled = {
        "logit beside maximum likelihood": compared_table(tables),
        "coverage of logit": coverage_table(coverages),
        "coverage of error rates": classes_table(classes),
    }
    fill_page(root / PAGE, filled)


def compared_table(lines: Sequence[Compared]) -> str:
    head = ["table", "rows", "share of ones", "distance", "largest skewness", "slope over Logit's", "difference without noise"]
    head += [*(f"epsilon {epsilon:g}" for epsilon in EPSILONS), "robust over classical s.e."]
    rows = []
    for line in lines:
        ratios = "" if math.isnan(line.lowest_ratio) else f"{line.lowest_ratio:.2f} to {line.highest_ratio:.2f}"
        noisy = ["no logit" if math.isnan(value) else f"{value:.3f}" for value in line.apart_noisy]
        facts = [f"{line.rows:,}", f"{line.share:.3f}", f"{line.distance:.2f}", f"{line.skewness:.1f}"]
        robust = f"{line.lowest_robust:.2f} to {line.highest_robust:.2f}"
        rows.append([line.table, *facts, ratios, f"{line.apart:.3f}", *noisy, robust])
    return markdown(head, rows)


def coverage_table(lines: Sequence[Coverage]) -> str:
    head = [
        "share of ones",
        "mechanism",
        "epsilon",
        "slopes",
        "intercept",
        "identified",
        "median width",
        "linear probability model",
        "no logit",
    ]
    rows = []
    for line in lines:
        facts = [f"{line.share:g}", line.mechanism, f"{line.epsilon:g}", f"{line.slopes:.1%}", f"{line.intercept:.1%}"]
        rows.append([*facts, f"{line.identified:.0%}", _width(line.width), f"{line.linear:.1%}", f"{line.refused:.0%}"])
    return markdown(head, rows)


def classes_table(lines: Sequence[ErrorCoverage]) -> str:
    head = ["shares of classes", "mechanism", "epsilon", "true error rate", "error rate", "distances", "median width"]
    rows = [
        [
            ", ".join(f"{share:g}" for share in line.shares),
            line.mechanism,
            f"{line.epsilon:g}",
            f"{line.truth:.4f}",
            f"{line.error:.1%}",
            f"{line.distances:.1%}",
            f"{line.width:.4f}",
        ]
        for line in lines
    ]
    return markdown(head, rows)


def _width(value: float) -> str:
    return "unbounded" if math.isinf(value) else f"{value:.1f}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
