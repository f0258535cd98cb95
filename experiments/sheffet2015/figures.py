"""The paper's figures, each with printed constants on the left and exact ones on the right, at the same guarantee.

Colours and markers are those that the captions of the paper describe; our default estimator is one line more, and the whitened release
another: it is not in the paper, so it has no printed constants. Markers and dashes differ too, so that a grey print can be read.
Figure 8 is ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from experiments.sheffet2015.settings import EPSILONS, FEATURES
from experiments.sheffet2015.techniques import CALIBRATIONS, EXACT_CURVE, NO_EPSILON, Result

matplotlib.rcParams["svg.hashsalt"] = "dpgram"  # the same figure gives the same file
BLACK, BLUE, RED, GREEN, MAGENTA, ORANGE = "black", "tab:blue", "tab:red", "tab:green", "magenta", "darkorange"
TEAL = "#009e73"  # of Okabe and Ito: apart from the others for every kind of colour vision
TITLES = {"paper": "printed constants", "exact": "exact constants, same guarantee"}
WHITENED_EXTRAS = (0, 1, 5, 10, 19)  # m in figure 8
SHOWN = (0.1, 0.5)  # the epsilons of the short version of figures 1 to 4


@dataclass(frozen=True)
class Line:
    technique: str
    label: str
    colour: str
    marker: str
    dashes: str = "-"
    width: float = 1.2


OURS = Line("dpgram", "dpgram: Gaussian noise, shrunk", ORANGE, "D", "--")
WHITENED = Line("whitened-noise", "dpgram: whitened release", TEAL, "*", "-", 2.0)
NOT_PRIVATE = Line("ols-unshrunk", "least squares, not private", "0.45", "", ":")
SIX = (
    Line("analyze-gauss", "Analyze Gauss", BLACK, "s"),
    Line("analyze-gauss-scaled", "Analyze Gauss, lifted", BLACK, "o", "--"),
    Line("algorithm-2", "Algorithm 2 (sketch)", BLUE, "s"),
    Line("algorithm-5", "Algorithm 5 (inverse Wishart)", BLUE, "o", "--"),
    Line("algorithm-3", "Algorithm 3 (additive Wishart)", MAGENTA, "s"),
    Line("algorithm-3-shifted", "Algorithm 3, shifted", MAGENTA, "o", "--"),
)
FIGURES = {
    1: (
        "Sketches: error of ridge regression by random projection",
        (
            Line("algorithm-2", "Algorithm 2", BLUE, "o"),
            Line("algorithm-1", "Algorithm 1, with as many rows", RED, "s", "--"),
            Line("sketch", "sketch, not private", BLACK, "^", ":"),
        ),
    ),
    2: (
        "Additive Wishart noise, raw and with its mean taken off",
        (
            Line("algorithm-3", "Algorithm 3", BLUE, "o"),
            Line("algorithm-3-shifted", "Algorithm 3, shifted", RED, "s", "--"),
            Line("ols", "least squares, not private", BLACK, "^", ":"),
        ),
    ),
    3: (
        "Draws of the inverse-Wishart posterior",
        (
            Line("posterior", "(i) posterior, not private", BLACK, "^", ":"),
            Line("algorithm-4", "(ii) Algorithm 4", BLUE, "o"),
            Line("algorithm-5-n", "(iii) Algorithm 5, n + d degrees", RED, "s", "--"),
            Line("algorithm-2", "(iv) Algorithm 2, 2d rows", GREEN, "v"),
            Line("algorithm-5", "(v) Algorithm 5, 2d degrees", MAGENTA, "P", "--"),
        ),
    ),
    4: ("Six techniques, one regression", SIX),
}

Table = dict[tuple[str, int, float, str, str, int], np.ndarray]


def table(results: Sequence[Result]) -> Table:
    """Errors of all repetitions by (setting, exponent, epsilon, calibration, technique, m)."""
    grouped: dict[tuple, list[float]] = defaultdict(list)
    for r in results:
        grouped[r.setting, r.exponent, r.epsilon, r.calibration, r.technique, r.extra].append(r.error)
    return {key: np.array(errors) for key, errors in grouped.items()}


def errors_of(
    data: Table, setting: str, epsilon: float, calibration: str, technique: str, extra: int = 0
) -> dict[int, np.ndarray]:
    """Errors by exponent, of one line; what is not private has no epsilon."""
    by_exponent = {}
    for (s, k, e, c, t, m), errors in data.items():
        if (s, t, m) == (setting, technique, extra) and (e, c) in ((epsilon, calibration), (NO_EPSILON, "")):
            by_exponent[k] = errors
    return dict(sorted(by_exponent.items()))


def draw_all(results: Sequence[Result], folder: Path, *, long: bool = True) -> list[Path]:
    """Write every figure, in a short version and, when ``long``, with all epsilons or more m too; returns the files."""
    data = table(results)
    written = []
    for number, (title, lines) in FIGURES.items():
        for name, epsilons in ((f"figure-{number}", SHOWN), (f"figure-{number}-all", EPSILONS))[: 1 + long]:
            panels = [(f"epsilon {epsilon:g}", "single", epsilon, 0) for epsilon in epsilons]
            more = (OURS, WHITENED) if number == 4 else (OURS,)
            written += _figure(data, folder / name, f"Figure {number}. {title}", panels, (*lines, *more))
    for number, what in ((5, "mean"), (6, "sd")):
        title = f"Six techniques, multiple regressions: {'mean' if what == 'mean' else 'standard deviation'} of the error"
        for name, extras in ((f"figure-{number}", (0, 1, 5)), (f"figure-{number}-all", (0, 1, 2, 5, 10, 15, 19)))[: 1 + long]:
            panels = [(f"m = {extra} extra features", "multiple", 0.1, extra) for extra in extras]
            written += _figure(data, folder / name, f"Figure {number}. {title}", panels, (*SIX, OURS, WHITENED), what)
    return [*written, *_whitened(data, folder / "figure-8")]


def _whitened(data: Table, path: Path) -> list[Path]:
    """Figure 8: the multiple regressions by the whitened release and all others, exact constants alone."""
    figure = Figure(figsize=(12.5, 7.6), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    lines = (*SIX, OURS, WHITENED, NOT_PRIVATE)
    for axis, extra in zip(axes.flat, WHITENED_EXTRAS, strict=False):
        for line in lines:
            _line(axis, errors_of(data, "multiple", 0.1, EXACT_CURVE, line.technique, extra), line, "mean")
        _dress(axis, f"m = {extra} extra feature{'s' * (extra != 1)}", lines)
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("l2 error, mean and sd")
    for axis in (axes[0, 2], *axes[1, :2]):
        axis.set_xlabel("rows n")
    axes[1, 2].axis("off")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    axes[1, 2].legend(handles, labels, loc="center", frameon=False, fontsize=10)
    figure.suptitle(
        f"Figure 8. Multiple regressions, from one release each: epsilon 0.1, delta = exp(-9), exact constants\n"
        f"{FEATURES} features, an intercept and m redundant ones; {_repetitions(data)}",
        fontsize=12,
    )
    return save(figure, path)


def _repetitions(data: Table) -> str:
    most = max(len(errors) for errors in data.values())
    return f"{most} repetition{'s' * (most != 1)}"


def _figure(
    data: Table, path: Path, title: str, panels: Sequence[tuple], lines: Sequence[Line], what: str = "mean"
) -> list[Path]:
    figure = Figure(figsize=(11, 1.3 + 3.1 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 2, sharex=True, sharey="row", squeeze=False)
    for row, (words, setting, epsilon, extra) in zip(axes, panels, strict=True):
        for axis, calibration in zip(row, CALIBRATIONS, strict=True):
            for line in lines:
                _line(axis, errors_of(data, setting, epsilon, calibration, line.technique, extra), line, what)
            _dress(axis, f"{words}: {TITLES[calibration]}", lines)
        row[0].set_ylabel("l2 error, mean and sd" if what == "mean" else "sd of the l2 error")
    for axis in axes[-1]:
        axis.set_xlabel("rows n")
    figure.suptitle(f"{title}\n{_repetitions(data)}, delta = exp(-9), {FEATURES} features and an intercept", fontsize=12)
    handles, labels = axes[
        0, 1
    ].get_legend_handles_labels()  # on the right, where there are lines without printed constants too
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4), frameon=False, fontsize=9)
    return save(figure, path)


def _line(axis: Any, by_exponent: dict[int, np.ndarray], line: Line, what: str) -> None:
    if not by_exponent:
        return
    x = [2.0**k for k in by_exponent]
    style = {"color": line.colour, "marker": line.marker, "ls": line.dashes, "lw": line.width, "label": line.label}
    style["ms"] = 8 if line.marker == "*" else 4.5
    hollow = {"mfc": "white"} if line.marker == "o" else {}
    if what == "sd":
        axis.plot(x, [np.std(e, ddof=1) for e in by_exponent.values()], **style, **hollow)
        return
    mean = np.array([np.mean(e) for e in by_exponent.values()])
    sd = np.array([np.std(e, ddof=1) for e in by_exponent.values()])
    axis.errorbar(x, mean, yerr=[np.minimum(sd, 0.9 * mean), sd], elinewidth=0.7, capsize=2, **style, **hollow)


def _dress(axis: Any, title: str, lines: Sequence[Line]) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_ylim(1e-4 if WHITENED in lines else 1e-3, 200)
    axis.axhline(np.sqrt((FEATURES + 1) / 3), color="0.75", lw=0.8, zorder=0)  # the length of the coefficients to be found
    ticks = [2.0**k for k in range(12, 28, 2)]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"$2^{{{round(np.log2(value))}}}$"))
    axis.set_title(title, fontsize=10)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> list[Path]:
    """As SVG, and as PNG too unless it is one of the long versions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for ending in (".svg",) if path.name.endswith("-all") else (".svg", ".png"):
        target = path.with_suffix(ending)
        # no date and no random ids: the same results give the same file
        figure.savefig(target, dpi=130, metadata={"Date": None} if ending == ".svg" else {"Software": None})
        written.append(target)
    return written
