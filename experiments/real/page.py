"""The tables of the studies of public tables, for docs/: written between markers, so that the words around them stay.

A table's coverage is the share of its bounded intervals, over all targets, releases and coefficients, that hold the truth; means,
worst and shares are over tables, each counting as one. Ratios are geometric means, over a table's coefficients that both
methods bound in half of the releases, and then over tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from experiments.markers import fill_page
from experiments.real import bounds, coverage
from experiments.real.coverage import ONE_CLIP
from experiments.real.study import read
from experiments.real.tables import held_out

PAGES = {"coverage": Path("docs/coverage.md"), "bounds": Path("docs/whitened.md")}
RESULTS = {"coverage": Path("experiments/real/coverage.csv"), "bounds": Path("experiments/real/bounds.csv")}
LOW = 0.90  # a table whose intervals hold less often is called low
FEWEST = 0.02  # share of intervals that are bounded below which a table's coverage says nothing
FEW_ROWS = 0.02  # d^1.5 / (n mu) from which a table counts as small for its budget
SHOWN = 1.0  # epsilon of the list of tables
GROUPS = {False: "development", True: "held out"}  # by whether a table is held out


def update(root: Path, study: str) -> None:
    """Renew the study's tables in its page."""
    kind = {"coverage": coverage.Row, "bounds": bounds.Row}[study]
    fill_page(root / PAGES[study], tables(study, read(root / RESULTS[study], kind)))


def tables(study: str, lines: Sequence) -> dict[str, str]:
    """The page's tables by name."""
    if study == "bounds":
        return {"loose bounds": loose(lines)}
    return {"public tables, in short": in_short(lines), "public tables": overall(lines), "each public table": each(lines)}


def summary(study: str, lines: Sequence) -> str:
    """All tables as one text."""
    return "\n".join(tables(study, lines).values())


def in_short(lines: Sequence[coverage.Row]) -> str:
    """The columns that most people ask for, at one epsilon, of the two mechanisms that users can choose."""
    head = [f"public tables, epsilon {SHOWN:g}", "mechanism", "identified", "mean coverage", f"tables below {LOW:.0%}"]
    head += ["length over that without privacy"]
    out = []
    for kept, words in GROUPS.items():
        group = [line for line in lines if held_out(line.table) == kept and line.epsilon == SHOWN]
        for method in dict.fromkeys(line.method for line in group if line.method != ONE_CLIP):
            name, _, _, identified, covers, _, low, _, _, length, *_ = _overall(words, SHOWN, method, group)
            out.append([name, f"`{method}`", identified, covers, low, length])
    return _table(head, out)


def overall(lines: Sequence[coverage.Row]) -> str:
    """One line per epsilon and method, of tables that estimators were developed on and of those that were held out."""
    head = [
        "tables",
        "epsilon",
        "method",
        "identified",
        "mean coverage",
        "5 % of coefficients below",
        f"tables below {LOW:.0%}",
    ]
    head += ["worst table", "error", "length", "error over one clip's", "length over one clip's"]
    out = []
    for kept, words in GROUPS.items():
        for epsilon in sorted({line.epsilon for line in lines}):
            group = [line for line in lines if held_out(line.table) == kept and line.epsilon == epsilon]
            for method in dict.fromkeys(line.method for line in group):
                out.append(_overall(words, epsilon, method, group))
    return _table(head, out)


def _overall(words: str, epsilon: float, method: str, group: Sequence[coverage.Row]) -> list[str]:
    mine = [line for line in group if line.method == method]
    names = list(dict.fromkeys(line.table for line in mine))
    covers = {name: share for name in names if not math.isnan(share := covered(_of(mine, name)))}
    cells = [
        f"{words} ({len(names)})",
        f"{epsilon:g}",
        method,
        _percent(_mean(np.concatenate([line.bounded for line in mine]))),
    ]
    worst = min(covers, key=covers.__getitem__, default="")
    cells += [_percent(_mean(list(covers.values()))), _percent(_quantile(0.05, _known(mine, "covered")))]
    cells += [
        _percent(_mean([share < LOW for share in covers.values()])),
        f"{_percent(covers[worst])} ({worst})" if worst else "-",
    ]
    cells += [_number(_quantile(0.5, _known(mine, what))) for what in ("error", "length")]
    return cells + [_number(_geometric(ratio(_of(group, n), method, what) for n in names)) for what in ("error", "length")]


def each(lines: Sequence[coverage.Row]) -> str:
    """One line per table, at one epsilon: how often intervals of every method hold."""
    chosen = [line for line in lines if line.epsilon == SHOWN]
    methods = list(dict.fromkeys(line.method for line in chosen))
    head = ["table", "rows", "columns", "targets", *(f"{method} covers" for method in methods)]
    head += [f"{what} of {method} over one clip's" for method in methods if method != ONE_CLIP for what in ("error", "length")]
    out = []
    for name in dict.fromkeys(line.table for line in chosen):
        mine = _of(chosen, name)
        by_method = {method: [line for line in mine if line.method == method] for method in methods}
        cells = [name + (" (held out)" if held_out(name) else ""), f"{mine[0].rows:,}", str(mine[0].columns)]
        cells += [str(len({line.target for line in mine})), *(_percent(covered(by_method[method])) for method in methods)]
        cells += [_number(ratio(mine, method, w)) for method in methods if method != ONE_CLIP for w in ("error", "length")]
        out.append(cells)
    return _table(head, out)


def covered(lines: Sequence[coverage.Row]) -> float:
    """The share of bounded intervals that hold the truth; nan where fewer than one in fifty is bounded.

    Those few are picked out by the noise that is in them, and say nothing about the method."""
    bounded, held = (np.concatenate([[], *(getattr(line, what) for line in lines)]) for what in ("bounded", "covered"))
    return float(bounded @ np.nan_to_num(held) / bounded.sum()) if _mean(bounded) >= FEWEST else math.nan


def ratio(lines: Sequence[coverage.Row], method: str, what: str) -> float:
    """Geometric mean of the ratio of ``what`` to that of one clip, over the coefficients of ``lines``, which are of one table."""
    logs: list[float] = []
    before = {line.target: line for line in lines if line.method == ONE_CLIP}
    for line in lines:
        if line.method == method and line.target in before:
            both = _often(line) & _often(before[line.target])
            logs += np.log(_each(line, what)[both] / _each(before[line.target], what)[both]).tolist()
    return math.exp(np.mean(logs)) if logs else math.nan


def loose(lines: Sequence[bounds.Row]) -> str:
    """The loss by width, of tables with enough rows for the budget and of the others, beside what bounds that fit lose."""
    widths = sorted({line.width for line in lines})
    head = ["tables", "regressions", "", *(f"{_width(width)} times" for width in widths)]
    groups: dict[str, Callable[[bounds.Row], bool]] = {
        "enough rows, development": lambda line: line.noisy < FEW_ROWS and not held_out(line.table),
        "enough rows, held out": lambda line: line.noisy < FEW_ROWS and held_out(line.table),
        "few rows, development": lambda line: line.noisy >= FEW_ROWS and not held_out(line.table),
        "few rows, held out": lambda line: line.noisy >= FEW_ROWS and held_out(line.table),
    }
    out = []
    for words, within in groups.items():
        losses = {(line.table, line.target, line.width): line.loss for line in lines if within(line)}
        asked = list(dict.fromkeys((table, target) for table, target, _ in losses))
        if not asked:
            continue
        cells = [f"{words} ({len({table for table, _ in asked})})", str(len(asked))]
        medians = [_number(np.median([losses[*one, width] for one in asked])) for width in widths]
        ratios = [_number(_geometric(_loss(losses[*one, w]) / _loss(losses[*one, widths[0]]) for one in asked)) for w in widths]
        out += [[*cells, "median loss", *medians], ["", "", "loss over that with fitting bounds", *ratios]]
    return _table(head, out)


def _loss(loss: float) -> float:
    return max(loss, 1e-9)


def _of(lines: Sequence[coverage.Row], name: str) -> list[coverage.Row]:
    return [line for line in lines if line.table == name]


def _each(line: coverage.Row, what: str) -> np.ndarray:
    return np.array(getattr(line, what))


def _often(line: coverage.Row) -> np.ndarray:
    """Coefficients that are bounded in half of the releases."""
    return _each(line, "bounded") >= 0.5


def _known(lines: Sequence[coverage.Row], what: str) -> np.ndarray:
    """``what`` of all coefficients that are bounded in half of the releases."""
    return np.concatenate([[], *(_each(line, what)[_often(line)] for line in lines)])


def _mean(values: Sequence[float] | np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _quantile(share: float, values: np.ndarray) -> float:
    return float(np.quantile(values, share)) if len(values) else math.nan


def _geometric(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.exp(np.mean(np.log(known))) if known else math.nan


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _width(width: float) -> str:
    return f"{width:,.0f}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"
