"""The tables of docs/errors.md, written between markers from the study's numbers."""

from __future__ import annotations

import math
from pathlib import Path

from experiments.errors.estimators import ESTIMATORS
from experiments.errors.study import Cell, read
from experiments.markers import fill_page

PAGE, RESULTS = Path("docs/errors.md"), Path("experiments/errors/results.csv")
MOST_OVER_BEST, MOST_OVER_PLAIN = 1.25, 1.08


def update(page: Path, results: Path) -> None:
    """Put the tables made from ``results`` between their markers in ``page``."""
    fill_page(page, tables(read(results)))


def tables(cells: list[Cell]) -> dict[str, str]:
    by_ratio = sorted((c for c in cells if c.mechanism == "gaussian-noise"), key=lambda c: -c.ratio_to_best)
    small = sorted((c for c in by_ratio if c.noise_is_small), key=lambda c: -c.ratio_to_plain)
    return {
        "summary": _summary(cells, small),
        "worst": _table(by_ratio[:12]),
        "small noise": _table(small[:8]),
        "paper": _table([c for c in cells if c.part == "paper"]),
        "mechanisms": _table([c for c in cells if c.part == "mechanisms"]),
        "grid": _table([c for c in cells if c.part == "grid"]),
    }


def _summary(cells: list[Cell], small: list[Cell]) -> str:
    own = [c for c in cells if c.mechanism == "gaussian-noise"]
    lines = ["| estimator | largest ratio to the best | mean ratio (geometric) | best in |", "|---|---|---|---|"]
    for name in ESTIMATORS:
        ratios = [c.means[name] / min(c.means.values()) for c in own]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"| {name} | {max(ratios):.3g} | {mean:.3f} | {sum(r == 1 for r in ratios)} of {len(own)} |")
    over = sum(c.ratio_to_best > MOST_OVER_BEST for c in own)
    said = (
        f"\nThe error of `shrunk` is above {MOST_OVER_BEST} times the best in {over} of {len(own)} cells with Gaussian noise."
    )
    if small:
        most = max(c.ratio_to_plain for c in small)
        said += f" In {len(small)} of these cells the noise adds less than the sampling of rows. There `shrunk` has at most {most:.3f} "
        said += "times the error of `plain`."
    return "\n".join(lines) + "\n" + said + "\n"


def _table(cells: list[Cell]) -> str:
    head = ["setting", "d", "rows", "epsilon", "mechanism", "non-private", *ESTIMATORS, "shrunk / best", "shrunk / plain"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for c in cells:
        best = min(c.means, key=lambda name: c.means[name])
        numbers = [(_bold if name == best else str)(f"{c.means[name]:.3g}") if name in c.means else "-" for name in ESTIMATORS]
        plain = f"{c.ratio_to_plain:.3f}" if c.noise_is_small else "-"
        first = [c.setting, str(c.columns), f"2^{math.log2(c.rows):.0f}", f"{c.epsilon:g}", c.mechanism, f"{c.non_private:.3g}"]
        lines.append(f"| {' | '.join([*first, *numbers, f'{c.ratio_to_best:.2f}', plain])} |")
    return "\n".join(lines) + "\n"


def _bold(text: str) -> str:
    return f"**{text}**"
