"""The demo's figure: private against non-private coefficients, with the noise shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpgram.report.figures import COLOURS, save_drawing

Array = np.ndarray

PUBLIC = "New York flights of 2013, public data: only therefore may the non-private fit be shown"


@dataclass(frozen=True)
class Panel:
    """One regression, both ways."""

    target: str
    names: tuple[str, ...]
    private: Array
    noise_sd: Array
    non_private: Array


def save_panels(panels: Sequence[Panel], path: Path, *, title: str) -> None:
    """Write the figure. Every coefficient is drawn to a scale of its own, so that one axis serves all."""
    save_drawing(path, lambda figure: _draw(figure, panels, title), (12, 0.9 + 0.34 * max(len(p.names) for p in panels) + 0.9))


def _draw(figure: Any, panels: Sequence[Panel], title: str) -> None:
    for axis, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _draw_panel(axis, panel)
    figure.suptitle(f"{title}\n{PUBLIC}", fontsize=11)
    figure.axes[len(panels) // 2].set_xlabel("coefficient / the larger of its non-private size and 2 sd of its noise")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)


def _draw_panel(axis: Any, panel: Panel) -> None:
    height = np.arange(len(panel.names))[::-1]
    size = np.maximum(np.abs(panel.non_private), 2 * panel.noise_sd)
    axis.axvline(0, color="0.6", lw=0.8)
    axis.errorbar(
        panel.private / size,
        height,
        xerr=1.96 * panel.noise_sd / size,
        fmt="o",
        color=COLOURS[0],
        ms=5,
        capsize=2.5,
        lw=1.2,
        label="private, with 1.96 sd of the privacy noise",
    )
    axis.plot(panel.non_private / size, height, "|", color=COLOURS[1], ms=15, mew=2.5, label="non-private least squares")
    axis.set_yticks(height, panel.names)
    reach = 1.05 * np.max((np.abs(panel.private) + 1.96 * panel.noise_sd) / size)
    axis.set_xlim(-max(2.2, reach), max(2.2, reach))
    axis.set_title(f"regression of {panel.target}", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
