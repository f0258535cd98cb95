"""Figures: coefficients with intervals, models side by side, matrices, components. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from dpgram.artifact.atomic import check_writable, write_whole
from dpgram.errors import MissingExtraError, OutputError
from dpgram.report.summary import WHOLE_LINE, coefficient_rows

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # told apart by colour-blind readers
FORMATS = (".png", ".svg", ".pdf")


def check_matplotlib(purpose: str = "a figure") -> None:
    """Raise if no figure could be drawn, before anything else is done."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(package="matplotlib", extra="plot", purpose=purpose)


def check_figure_path(path: Path | None, *, overwrite: bool = False, given: Sequence[Path] = ()) -> None:
    """Raise if no figure could or should be written there, before anything else is done; None is for no figure.

    ``given`` are the files that the figure is made of."""
    if path is None:
        return
    check_matplotlib()
    if path.suffix.lower() not in FORMATS:
        raise OutputError(f"{path} has the ending {path.suffix!r}, but a figure needs one of {', '.join(FORMATS)}.")
    for each in given:
        if path.exists() and each.exists() and path.samefile(each):
            raise OutputError(f"{path} is {each} itself, which is read. Choose another place for the figure.")
    target = Path(os.path.realpath(path))  # of links in a circle too
    if target.is_file() and target.suffix.lower() not in FORMATS:
        raise OutputError(f"{path} is a link to {target}, which is no figure. Choose another place for the figure.")
    check_writable(path, overwrite=overwrite)


def save_figure(path: Path, draw: Callable[[Any], Any], *, rows: int, overwrite: bool = False) -> None:
    """Write the figure that ``draw`` puts on an axis, whole or not at all."""
    save_drawing(path, lambda figure: draw(figure.subplots()), (8, 1.6 + 0.32 * rows), overwrite=overwrite)


def save_drawing(path: Path, draw: Callable[[Any], Any], size: tuple[float, float], *, overwrite: bool = False) -> None:
    """Write what ``draw`` puts on a figure of this size in inches, whole or not at all."""
    check_figure_path(path, overwrite=overwrite)
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", dpi=130)
    draw(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix.lower()[1:])
    write_whole(path, buffer.getvalue(), overwrite=overwrite)


def draw_coefficients(fit: dict, ax: Any = None) -> Any:
    """Debiased coefficients with intervals, and the chosen estimator's beside them. The intercept is left out: its scale is another."""
    return _intervals(
        ax, [(fit["target"], fit)], f"Regression of {fit['target']}{mark(fit['private'])}", second=fit["estimator"]
    )


def draw_logit(fit: dict, ax: Any = None) -> Any:
    """Coefficients of a logit with intervals. The intercept is left out."""
    ax = _intervals(ax, [(fit["target"], fit)], f"Logit of {fit['target']}{mark(fit['private'])}")
    ax.set_xlabel("change of the log odds, for one unit of the feature")
    return ax


def draw_comparison(comparison: dict, ax: Any = None) -> Any:
    models = comparison["models"]
    private = all(fit["private"] for fit in models.values())
    return _intervals(ax, list(models.items()), f"Coefficients side by side{mark(private)}")


def _intervals(ax: Any, models: Sequence[tuple[str, dict]], title: str, second: str | None = None) -> Any:
    ax = new_axis(ax)
    listed = [coefficient_rows(fit) for _, fit in models]
    shown = [[c for c in rows if c["name"] != "(intercept)"] or rows for rows in listed]
    names = list(dict.fromkeys(c["name"] for one in shown for c in one))
    height = {name: len(names) - 1 - k for k, name in enumerate(names)}
    edges = _edges([c for one in shown for c in one])
    ax.axvline(0, color="0.6", lw=0.8)
    for k, ((name, _), coefficients) in enumerate(zip(models, shown, strict=True)):
        offset = 0.0 if len(models) == 1 else 0.5 * (0.5 - k / max(len(models) - 1, 1))
        known = [c for c in coefficients if _has_bar(c)]
        y = [height[c["name"]] + offset for c in known]
        x = [c["coefficient"] for c in known]
        reach = [[c["coefficient"] - c["lower"] for c in known], [c["upper"] - c["coefficient"] for c in known]]
        colour = COLOURS[k % len(COLOURS)]
        text = "debiased, with confidence interval" if len(models) == 1 else as_words(name)
        ax.errorbar(x, y, xerr=reach, fmt="o", ms=4.5, lw=1.3, capsize=2.5, color=colour, label=text)
        for c in coefficients:
            if "set" in c and not _has_bar(c):
                _draw_set(ax, c, height[c["name"]] + offset, edges, colour)
            elif not c["identified"]:
                ax.text(0.5, height[c["name"]] + offset, WHOLE_LINE, transform=ax.get_yaxis_transform(),
                        ha="center", va="center", fontsize=8, style="italic", color=colour)  # fmt: skip
        if second not in (None, "debiased"):
            ax.plot([c[second] for c in known], y, "|", ms=13, mew=2.2, color=COLOURS[1], label=f"{second}, for prediction")
    ax.set_yticks(list(height.values()), [as_words(name) for name in height])
    ax.set_ylim(-0.7, len(names) - 0.3)
    _label(ax, title, "coefficient, in own units")
    if len(models) > 1 or second not in (None, "debiased"):
        ax.legend(frameon=False, fontsize=8)
    return ax


def draw_controls(data: dict, ax: Any = None) -> Any:
    """The coefficient with its interval at each step, from top to bottom, and a line at its first value."""
    ax = new_axis(ax)
    steps = data["steps"]
    height = [len(steps) - 1 - k for k in range(len(steps))]
    ax.axvline(0, color="0.6", lw=0.8)
    ax.axvline(steps[0]["coefficient"], color="0.6", lw=0.8, ls="--")
    known = [(y, s) for y, s in zip(height, steps, strict=True) if s["lower"] is not None and s["upper"] is not None]
    values = [s["coefficient"] for _, s in known]
    reach = [[s["coefficient"] - s["lower"] for _, s in known], [s["upper"] - s["coefficient"] for _, s in known]]
    ax.errorbar(values, [y for y, _ in known], xerr=reach, fmt="o-", ms=4.5, lw=1.3, capsize=2.5, color=COLOURS[0])
    for y, s in zip(height, steps, strict=True):
        if s["lower"] is None or s["upper"] is None:
            ax.text(
                0.5, y, WHOLE_LINE, transform=ax.get_yaxis_transform(), ha="center", va="center", fontsize=8, style="italic"
            )
    names = [s["name"] if k == 0 else f"+ {s['name']}" for k, s in enumerate(steps)]
    ax.set_yticks(height, [as_words(name) for name in names])
    ax.set_ylim(-0.7, len(steps) - 0.3)
    title = f"Coefficient of {data['coefficient']}, target {data['target']}{mark(data['private'])}"
    _label(ax, title, f"coefficient, with {data['confidence']:.0%} confidence interval")
    return ax


def draw_margins(data: dict, ax: Any = None) -> Any:
    """Marginal effects with their intervals, from top to bottom."""
    rows = {
        ", ".join([e["name"], *(f"{name} = {value}" for name, value in e["at"].items())]): {
            "coefficient": e["effect"],
            "identified": e["lower"] is not None and e["upper"] is not None,
            "lower": e["lower"],
            "upper": e["upper"],
        }
        for e in data["effects"]
    }
    title = f"Marginal effects of {data['column']} on {data['target']}{mark(data['private'])}"
    ax = _intervals(ax, [(data["target"], {"coefficients": rows})], title)
    ax.set_xlabel(f"effect, with {data['confidence']:.0%} confidence interval")
    return ax


def draw_iv(fit: dict, ax: Any = None) -> Any:
    """Coefficients with their sets; what has no end goes to the edge of the picture. The intercept is left out: its scale is another."""
    return _intervals(ax, [(fit["target"], fit)], f"Regression of {fit['target']} with instruments{mark(fit['private'])}")


def _has_bar(c: dict) -> bool:
    """Whether a coefficient has an interval around it, with two ends."""
    return c["identified"] and ("set" not in c or (len(c["set"]) == 1 and c["lower"] <= c["coefficient"] <= c["upper"]))


def _edges(rows: Sequence[dict]) -> tuple[float, float]:
    """Where a picture ends whose sets need not end."""
    ends = [end for c in rows for piece in c.get("set", [(c["lower"], c["upper"])]) for end in piece]
    values = [0.0, *(end for end in ends if end is not None), *(c["coefficient"] for c in rows)]
    room = 0.1 * (max(values) - min(values)) or 1.0
    return min(values) - room, max(values) + room


def _draw_set(ax: Any, c: dict, y: float, edges: tuple[float, float], colour: str) -> None:
    """A confidence set that is no interval around the coefficient, whose point is hollow. What has no end goes to the edge of the picture
    with an arrow."""
    for low, high in c["set"]:
        ends = edges[0] if low is None else low, edges[1] if high is None else high
        ax.plot(ends, (y, y), color=colour, lw=1.3)
        for end, at, arrow in ((low, ends[0], "<"), (high, ends[1], ">")):
            ax.plot(at, y, arrow if end is None else "|", ms=7, color=colour, clip_on=False)
    ax.plot(c["coefficient"], y, "o", ms=5.5, mfc="white", color=colour)
    if not c["set"]:
        ax.annotate("empty set", (c["coefficient"], y), (7, 0), textcoords="offset points", va="center", fontsize=8, style="italic",
                    color=colour)  # fmt: skip
    ax.set_xlim(*edges)


def draw_matrix(names: Sequence[str], matrix: Sequence[Sequence[float]], title: str, ax: Any = None) -> Any:
    """A matrix of correlations as a heat map, with its numbers where they can be read."""
    ax = new_axis(ax)
    ax.figure.colorbar(ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1), ax=ax, shrink=0.8)
    ax.set_xticks(range(len(names)), [as_words(name) for name in names], rotation=90, fontsize=8)
    ax.set_yticks(range(len(names)), [as_words(name) for name in names], fontsize=8)
    if len(names) <= 15:
        for i, row in enumerate(matrix):
            for j, value in enumerate(row):
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color="w" if abs(value) > 0.6 else "k")
    ax.set_title(as_words(title), fontsize=10)
    return ax


def draw_shares(shares: Sequence[float], title: str, ax: Any = None) -> Any:
    """How much of the variance each component explains, and all up to it."""
    ax = new_axis(ax)
    places = range(1, len(shares) + 1)
    ax.bar(places, shares, color=COLOURS[0], label="each component")
    ax.plot(places, list(accumulate(shares)), "o-", color=COLOURS[1], ms=4, label="cumulative")
    _label(ax, title, "component", "share of the variance")
    ax.legend(frameon=False, fontsize=8)
    return ax


def mark(private: bool) -> str:
    """What the title of every figure says of noise that can be subtracted."""
    return "" if private else " (NOT PRIVATE)"


def _label(ax: Any, title: str, x: str, y: str = "") -> None:
    ax.set_title(as_words(title), fontsize=10)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)


def as_words(text: str) -> str:
    """Text as it is: matplotlib takes what stands between dollars for mathematics."""
    return text.replace("$", r"\$")


def new_axis(ax: Any) -> Any:
    if ax is not None:
        return ax
    check_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def draw_path(
    names: Sequence[str], penalties: Sequence[float], coefficients: Sequence[Sequence[float]], title: str, ax: Any
) -> Any:
    """Each slope against the penalty, on a logarithmic axis, labelled at its end."""
    ax = new_axis(ax)
    for k, name in enumerate(names):
        if name != "(intercept)":
            line = [row[k] for row in coefficients]
            ax.plot(penalties, line, lw=1.3, color=COLOURS[k % len(COLOURS)])
            ax.annotate(as_words(name), (penalties[-1], line[-1]), fontsize=7, va="center", ha="right")
    ax.set_xscale("log")
    _label(ax, title, "penalty (alpha)", "coefficient, in own units")
    return ax


def draw_trade_off(audits: Sequence[dict], ax: Any = None) -> Any:
    """What the tests of an audit miss, for each share of false alarms, beside what is proven that they must miss."""
    ax = new_axis(ax)
    for colour, audit in zip(COLOURS * len(audits), audits, strict=False):
        ax.plot(audit["false_alarms"], audit["misses"], "o", ms=3, color=colour, label=f"drawn: {audit['pair']}")
    ax.plot(audits[0]["false_alarms"], audits[0]["proven_misses"], color="black", lw=1, label="proven: no test can be below")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("false alarms")
    ax.set_ylabel("misses")
    ax.set_title(f"{audits[0]['mechanism']}: telling two neighbouring tables apart", loc="left")
    ax.legend(frameon=False)
    return ax
