"""One release of the bundled flights, three regressions from it, compared with least squares on the rows themselves.

The comparison is possible only because the table is public. The non-private fit lives here, on purpose: the library has
none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpgram import curator
from dpgram.analysis.fit import Fit
from dpgram.artifact.atomic import write_whole
from dpgram.artifact.release import GramRelease
from dpgram.demo.figure import Panel, save_panels
from dpgram.encoding.encode import own_units
from dpgram.errors import OutputError
from dpgram.regression.design import design as design_of
from dpgram.report.figures import check_matplotlib
from dpgram.report.page.write import write_report
from dpgram.terms.schema import Schema

Array = np.ndarray

HERE = Path(__file__).parent
TABLE, SCHEMA = HERE / "flights.parquet", HERE / "flights.toml"
EPSILON, DELTA = 1.0, 1e-7
MODELS = (
    ("arr_delay", ("dep_delay", "visib", "wind_speed", "carrier")),
    ("air_time", ("distance", "wind_speed", "month", "origin")),
    ("dep_delay", ("hour", "temp", "visib", "carrier")),
)


@dataclass(frozen=True)
class DemoResult:
    release: GramRelease
    panels: Sequence[Panel]
    written: Sequence[tuple[Path, str]]


def run(out: Path, *, epsilon: float = EPSILON, delta: float = DELTA) -> DemoResult:
    """Make the release, fit the models both ways, write the files."""
    check_matplotlib("the demo's figure")
    _make_folder(out)
    schema = Schema.load(SCHEMA)
    release = curator.release(TABLE, schema, epsilon=epsilon, delta=delta, mechanism="auto")
    rows = bounded_columns(schema)
    panels = [compare(release, rows, target, features) for target, features in MODELS]
    release.save(out / "release.json")
    for source in (TABLE, SCHEMA):
        write_whole(out / source.name, source.read_bytes())
    title = f"Three regressions from one private release of {release.rows:,} flights (epsilon {epsilon:g}, delta {delta:g})"
    save_panels(panels, out / "coefficients.png", title=title)
    write_report(release, out / "report.html", title="Flights from New York in 2013", overwrite=True)
    return DemoResult(
        release=release,
        panels=panels,
        written=[
            (out / "release.json", "the release; everything an analyst needs"),
            (out / "coefficients.png", "private against non-private coefficients, with the noise shown"),
            (out / TABLE.name, "the table, to try the other commands on"),
            (out / SCHEMA.name, "its schema"),
            (out / "report.html", "the privacy label and models to explore, in one page: open it in a browser"),
        ],
    )


def compare(release: GramRelease, rows: dict[str, Array], target: str, features: Sequence[str]) -> Panel:
    """One regression from the release, and the same one from the rows."""
    fit = Fit(release, design_of(release.schema, target, features, None))
    design = np.column_stack([rows[name] for name in fit.names])
    return Panel(
        target=target,
        names=fit.names,
        private=np.array(list(fit.params.values())),
        noise_sd=np.array(list(fit.bse_privacy.values())),
        non_private=np.linalg.lstsq(design, rows[target], rcond=None)[0],
    )


def bounded_columns(schema: Schema) -> dict[str, Array]:
    """The table as the schema sees it, in its own units: clamped, filled, indicators for categories. NOT PRIVATE."""
    return dict(zip(schema.encoded_names, own_units(schema, curator.encoded_rows(TABLE, schema)).T, strict=True))


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {out}: {error.strerror}. Choose another place with --out.") from None
