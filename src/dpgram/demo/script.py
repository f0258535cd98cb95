"""One release of the bundled flights, three regressions from it, compared with least squares on the rows themselves.

The comparison is possible only because the table is public. The non-private fit lives here, on purpose: the library has
none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpgram import curator
from dpgram.analysis.fit import Fit
from dpgram.artifact.atomic import check_writable, write_whole
from dpgram.artifact.release import GramRelease
from dpgram.encoding.encode import own_units
from dpgram.errors import OutputError
from dpgram.regression.design import design as design_of
from dpgram.regression.fit import debiased
from dpgram.report.figures import COLOURS, check_matplotlib, save_drawing
from dpgram.report.page.write import write_report
from dpgram.terms.schema import Schema

Array = np.ndarray

HERE = Path(__file__).parent
TABLE, SCHEMA = HERE / "flights.parquet", HERE / "flights.toml"
WRITTEN = ("release.json", "coefficients.png", TABLE.name, SCHEMA.name, "report.html")
EPSILON, DELTA = 1.0, 1e-7
MODELS = (
    ("arr_delay", ("dep_delay", "visib", "wind_speed", "carrier")),
    ("air_time", ("distance", "wind_speed", "month", "origin")),
    ("dep_delay", ("hour", "temp", "visib", "carrier")),
)
PUBLIC = "New York flights of 2013. The non-private fit can be shown only because these data are public"


@dataclass(frozen=True)
class Panel:
    """One regression, both ways."""

    target: str
    names: tuple[str, ...]
    private: Array
    se: Array  # privacy noise, sampling and clipping together
    lower: Array  # ends of 95 % intervals
    upper: Array
    non_private: Array


@dataclass(frozen=True)
class DemoResult:
    release: GramRelease
    panels: Sequence[Panel]
    written: Sequence[tuple[Path, str]]


def run(out: Path, *, epsilon: float = EPSILON, delta: float = DELTA) -> DemoResult:
    """Make the release, fit the models both ways, write the files."""
    check_matplotlib("the demo's figure")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the folder {out} cannot be created: {error.strerror}. Choose another place with --out.") from None
    for name in WRITTEN:
        if (out / name).is_symlink():
            raise OutputError(
                f"{out / name} is a link, and the demo would replace what it points to. Choose another place with --out."
            )
        check_writable(out / name)
    schema = Schema.load(SCHEMA)
    release = curator.release(TABLE, schema, epsilon=epsilon, delta=delta)
    rows = bounded_columns(schema)
    panels = [compare(release, rows, target, features) for target, features in MODELS]
    release.save(out / "release.json", overwrite=True)
    for source in (TABLE, SCHEMA):
        write_whole(out / source.name, source.read_bytes())
    title = f"Three regressions from one private release of {release.rows:,} flights (epsilon {epsilon:g}, delta {delta:g})"
    size = (12, 1.8 + 0.34 * max(len(panel.names) for panel in panels))
    save_drawing(out / "coefficients.png", lambda figure: _draw(figure, panels, title), size, overwrite=True)
    write_report(release, out / "report.html", title="Flights from New York in 2013", overwrite=True)
    return DemoResult(
        release=release,
        panels=panels,
        written=[
            (out / "release.json", "the release, which is everything an analyst needs"),
            (out / "coefficients.png", "private against non-private coefficients, with 95 % intervals"),
            (out / TABLE.name, "the table, to try the other commands on"),
            (out / SCHEMA.name, "its schema"),
            (out / "report.html", "a page with the privacy label and models to explore; open it in a browser"),
        ],
    )


def compare(release: GramRelease, rows: dict[str, Array], target: str, features: Sequence[str]) -> Panel:
    """One regression from the release, and the same one from the rows."""
    fit = Fit(release, design_of(release.schema, target, features, None))
    design = np.column_stack([rows[name] for name in fit.names])
    lower, upper = fit.ends()
    return Panel(
        target=target,
        names=fit.names,
        private=debiased(fit.channel),
        se=fit.uncertainty.se,
        lower=lower,
        upper=upper,
        non_private=np.linalg.lstsq(design, rows[target], rcond=None)[0],
    )


def bounded_columns(schema: Schema) -> dict[str, Array]:
    """The table as the schema sees it, in its own units: clamped, filled, indicators for categories. NOT PRIVATE."""
    return dict(zip(schema.encoded_names, own_units(schema, curator.counting_rows(TABLE, schema)).T, strict=True))


def _draw(figure: Any, panels: Sequence[Panel], title: str) -> None:
    """Private against non-private coefficients. Each is drawn to a scale of its own, so that one axis serves all."""
    for axis, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _draw_panel(axis, panel)
    figure.suptitle(f"{title}\n{PUBLIC}", fontsize=11)
    figure.axes[len(panels) // 2].set_xlabel("coefficient / the larger of its non-private size and 2 standard errors")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)


def _draw_panel(axis: Any, panel: Panel) -> None:
    height = np.arange(len(panel.names))[::-1]
    size = np.maximum(np.abs(panel.non_private), 2 * panel.se)
    axis.axvline(0, color="0.6", lw=0.8)
    reach = np.array([panel.private - panel.lower, panel.upper - panel.private])
    dots = {"fmt": "o", "color": COLOURS[0], "ms": 5, "capsize": 2.5, "lw": 1.2}
    axis.errorbar(panel.private / size, height, xerr=reach / size, label="private, with its 95 % interval", **dots)
    axis.plot(panel.non_private / size, height, "|", color=COLOURS[1], ms=15, mew=2.5, label="non-private least squares")
    axis.set_yticks(height, panel.names)
    widest = max(2.2, 1.05 * np.max(np.maximum(np.abs(panel.lower), np.abs(panel.upper)) / size))
    axis.set_xlim(-widest, widest)
    axis.set_title(f"regression of {panel.target}", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
