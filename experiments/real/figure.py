"""Coverage table by table in one picture: docs/images/real.png, drawn with the page's tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from experiments.real.coverage import CONFIDENCE, ONE_CLIP, PLAIN, Row
from experiments.real.page import SHOWN, covered
from experiments.real.tables import held_out

PICTURE = Path("docs/images/real.png")
BEFORE, AFTER = "#D55E00", "#0072B2"  # of Okabe and Ito


def draw(lines: Sequence[Row], file: Path) -> None:
    """One line per table, the worst on top: a ring for one clip, a dot for what ``whitened-noise`` is now."""
    shown = [line for line in lines if line.epsilon == SHOWN and line.method != PLAIN]
    methods = sorted({line.method for line in shown}, key=lambda method: method != ONE_CLIP)
    names = list(dict.fromkeys(line.table for line in shown))
    shares = {m: {n: covered([x for x in shown if x.table == n and x.method == m]) for n in names} for m in methods}
    names = sorted(
        (n for n in names if not math.isnan(shares[methods[0]][n])), key=shares[methods[0]].__getitem__, reverse=True
    )
    figure = Figure(figsize=(7, 1.2 + 0.17 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(CONFIDENCE, color="0.6", linewidth=1)
    for method in methods:
        ring = method == ONE_CLIP
        face, edge = ("none", BEFORE) if ring else (AFTER, AFTER)
        values = [shares[method][name] for name in names]
        axes.scatter(values, range(len(names)), s=22, facecolors=face, edgecolors=edge, label=method, zorder=2 if ring else 3)
    axes.set_yticks(range(len(names)), [name + (" *" if held_out(name) else "") for name in names], fontsize=7)
    axes.set_ylim(-1, len(names))
    axes.set_xlabel(
        f"share of {CONFIDENCE:.0%} intervals that hold the table's own coefficient (epsilon {SHOWN:g}; * held out)"
    )
    axes.grid(axis="y", color="0.93")
    axes.legend(loc="lower left", frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
