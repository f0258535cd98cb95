"""The study's tables in docs/coverage.md: written between markers, so that the words around them stay."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from experiments.coverage.measure import Row
from experiments.coverage.rounds import MECHANISM
from experiments.coverage.study import read
from experiments.coverage.tables import RARE
from experiments.markers import fill_page

PAGE, RESULTS = Path("docs/coverage.md"), Path("experiments/coverage/results.csv")
PAPER_SETTINGS = ("single", "multi")
LOWEST, HIGHEST, HIGHEST_BOOTSTRAP = 0.935, 0.975, 0.985


def update(page: Path, results: Path) -> None:
    """Put the tables made from ``results`` between their markers in ``page``."""
    fill_page(page, tables(read(results)))


RARE_SETTINGS = tuple(table.name for table in RARE)


def tables(rows: list[Row]) -> dict[str, str]:
    rare = [r for r in rows if r.setting in RARE_SETTINGS]
    rows = [r for r in rows if r.setting not in RARE_SETTINGS]
    whitened = [r for r in rows if r.mechanism == MECHANISM]
    rows = [r for r in rows if r.mechanism != MECHANISM]
    paper = [r for r in rows if r.setting in PAPER_SETTINGS and r.method == "auto"]
    again = [r for r in rows if r.setting in PAPER_SETTINGS and r.method == "bootstrap"]
    other = [r for r in rows if r.setting not in PAPER_SETTINGS]
    groups = {
        "the paper's settings, seven mechanisms": paper,
        "the paper's settings, bootstrap": again,
        "`whitened-noise`": whitened,
        "broken assumptions, other designs": other,
    }
    return {
        "in short": _in_short(groups),
        "paper": _table(paper),
        "bootstrap": _table(again),
        "other settings": _table(other, epsilon=True),
        "whitened": _table(whitened, epsilon=True),
        "rare levels": _table_of_rare(rare),
        "outside": _outside([*paper, *again]),
        "outside, whitened": _outside(whitened, epsilon=True),
    }


def outside(row: Row) -> bool:
    """Whether the coverage of a cell's bounded intervals lies outside its bounds, by more than two standard errors.

    Cells where fewer than one coefficient in fifty is identified are left out: a handful of intervals say nothing."""
    highest = HIGHEST_BOOTSTRAP if row.method == "bootstrap" else HIGHEST
    if not identifies(row):
        return False
    margin = 2 * row.coverage_identified_se
    return not LOWEST - margin <= row.coverage_identified <= highest + margin


def identifies(row: Row) -> bool:
    return row.not_identified <= 0.98


def _in_short(groups: dict[str, list[Row]]) -> str:
    """One line per group: how far apart its cells are, and what an interval that ignores the noise would cover."""
    lines = [
        "| datasets from known distributions | cells | of them with identified coefficients | coverage, lowest cell | median | highest |"
    ]
    lines[0] += " ignoring the noise, median |"
    lines.append("|" + "---|" * 7)
    for name, rows in groups.items():
        known = [r for r in rows if identifies(r)]
        if not known:
            continue
        shares = [r.coverage_identified for r in known]
        spread = [_percent(share) for share in (min(shares), median(shares), max(shares), median(r.naive for r in known))]
        lines.append(f"| {name} | {len(rows)} | {len(known)} | {' | '.join(spread)} |")
    return "\n".join(lines) + "\n"


def _outside(rows: list[Row], *, epsilon: bool = False) -> str:
    failed = [r for r in rows if outside(r)]
    known = sum(map(identifies, rows))
    above = sum(r.coverage_identified > HIGHEST for r in failed)
    counted = f"Coefficients are identified in {known} of {len(rows)} cells."
    if failed:
        counted += (
            f" In {len(failed)} of these, coverage lies outside the range by more than two standard errors: {above} above it, "
        )
        counted += f"{len(failed) - above} below.\n"
    else:
        counted += " In none of these does coverage lie outside the range by more than two standard errors.\n"
    return counted + ("\n" + _table(failed, epsilon=epsilon) if failed else "")


def _table(rows: Iterable[Row], *, epsilon: bool = False) -> str:
    head = ["setting", "rows", *(["epsilon"] if epsilon else []), "mechanism", "releases", "coverage", "not identified"]
    head += ["coverage where identified", "worst coefficient", "ignoring the noise", "median width", "median error"]
    head += ["l2 error, shrunk / debiased", "variance coverage", "R² coverage"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for r in rows:
        cells = [_setting(r), _rows(r.rows), *([f"{r.epsilon:g}"] if epsilon else []), r.mechanism, str(r.releases)]
        cells += [_percent(r.coverage, r.coverage_se), _percent(r.not_identified)]
        cells += [_percent(r.coverage_identified, r.coverage_identified_se), _percent(r.worst_coefficient), _percent(r.naive)]
        cells += [_number(r.median_width), _number(r.median_error)]
        cells += [f"{_number(r.error_shrunk)} / {_number(r.error_debiased)}"]
        cells += [_percent(r.variance_coverage), _percent(r.r_squared_coverage)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _table_of_rare(rows: list[Row]) -> str:
    """A line for each release of a table with rare levels: what of the other coefficients is identified, and how often intervals hold."""
    head = [
        "setting",
        "mechanism",
        "epsilon",
        "others: identified",
        "coverage",
        "median width",
        "rare levels: identified",
        "coverage",
    ]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for others in (r for r in rows if r.others == 0):
        key = (others.setting, others.mechanism, others.epsilon)
        rare = next(r for r in rows if r.others == 1 and (r.setting, r.mechanism, r.epsilon) == key)
        cells = [others.setting, others.mechanism, f"{others.epsilon:g}"]
        cells += [_percent(1 - others.not_identified), _percent(others.coverage_identified, others.coverage_identified_se)]
        cells += [_number(others.median_width), _percent(1 - rare.not_identified)]
        cells += [_percent(rare.coverage_identified, rare.coverage_identified_se)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _setting(row: Row) -> str:
    return f"multi, m = {row.others}" if row.setting == "multi" else row.setting


def _rows(rows: int) -> str:
    power = math.log2(rows)
    return f"2^{power:.0f}" if power.is_integer() else f"{rows:,}"


def _percent(share: float, error: float | None = None) -> str:
    if math.isnan(share):
        return "-"
    return f"{100 * share:.1f}" + ("" if error is None else f" ± {100 * error:.1f}")


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"
