"""dpgram logit"""

from __future__ import annotations

from pathlib import Path

from dpgram.analysis.logit import logit as fit_logit
from dpgram.artifact.files import load
from dpgram.cli.options import Flag, Json, ReleaseFile, listed_names
from dpgram.cli.output import print_json, print_text
from dpgram.errors import ModelError
from dpgram.report.figures import check_figure_path, save_figure


def logit(
    release: ReleaseFile,
    /,
    *,
    target: str | None = None,
    formula: str | None = None,
    features: str | None = None,
    confidence: float = 0.95,
    design_effect: float | None = None,
    plot: Path | None = None,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Fit a logit of a yes-or-no target from RELEASE, by the discriminant route. This costs no budget.

    Args:
        target: The column to explain. It must be 0 or 1: a Boolean column, or a level such as carrier[AA].
        formula: A formula instead of target and features, such as "late ~ dep_delay + carrier".
        features: The columns that explain the target, separated by commas. By default all others.
        confidence: Confidence level of the intervals.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case.
        plot: Draw the coefficients with their intervals to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    if (target is None) == (formula is None):
        raise ModelError("give either --target (with --features) or --formula.")
    made = load(release)
    asked = formula if target is None else target
    assert asked is not None
    fit = fit_logit(made, asked, listed_names(made.schema, features), confidence=confidence, design_effect=design_effect)
    if json:
        print_json(fit.to_dict())
    else:
        print_text(fit)
    if plot is not None:
        save_figure(plot, fit.plot, rows=len(fit.names), overwrite=overwrite)
