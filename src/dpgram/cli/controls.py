"""dpgram controls"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpgram.analysis.controls import controls
from dpgram.artifact.files import load
from dpgram.cli.options import Flag, Json, ReleaseFile, Repeated, TableFormat, listed_names
from dpgram.cli.output import check_table_format, print_json, print_table_as
from dpgram.errors import ModelError
from dpgram.report.figures import check_figure_path, save_figure


def controls_command(
    release: ReleaseFile,
    /,
    *,
    target: str,
    coefficient: str,
    add: Repeated = None,
    features: str | None = None,
    intervals: str = "auto",
    confidence: float = 0.95,
    design_effect: float | None = None,
    intercept: Annotated[bool | None, Parameter(negative="--no-intercept")] = None,
    compare: Flag = False,
    plot: Path | None = None,
    overwrite: Flag = False,
    format: TableFormat = "text",
    json: Json = False,
) -> None:
    """Show how one coefficient moves as groups of controls enter a regression from RELEASE. This costs no budget.

    Args:
        target: The column to explain.
        coefficient: The feature whose coefficient is followed. Of a categorical column, name one level.
        add: A group of controls, separated by commas. Repeat it for further groups, in the order in which they enter.
        features: Features that are in every regression, separated by commas. By default none.
        intervals: Method of the intervals of the coefficients: auto, wald, fieller or bootstrap.
        confidence: Confidence level of the intervals.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case.
        intercept: Fit with or without an intercept. By default with one if the release has one.
        compare: Print all regressions side by side, with all their coefficients, instead.
        plot: Draw the coefficient at each step to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    check_table_format(format)
    if not add:
        raise ModelError("there is no group of controls. Name at least one, such as --add age,sex.")
    made = load(release)
    result = controls(
        made,
        target,
        coefficient,
        [listed_names(made.schema, group) or [] for group in add],
        features=listed_names(made.schema, features) or [],
        intervals=intervals,
        confidence=confidence,
        intercept=intercept,
        design_effect=design_effect,
    )
    shown = result.compare() if compare else result
    if json:
        print_json(shown.to_dict())
    else:
        print_table_as(shown.summary(), format)
    if plot is not None:
        save_figure(plot, result.plot, rows=len(result.steps) + 2, overwrite=overwrite)
