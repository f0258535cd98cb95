"""dpgram iv"""

from __future__ import annotations

from pathlib import Path

from dpgram.analysis.iv import iv as fit_iv
from dpgram.artifact.files import load
from dpgram.cli.options import Json, ReleaseFile
from dpgram.cli.output import print_json, print_text
from dpgram.report.figures import check_figure_path, save_figure


def iv(
    release: ReleaseFile,
    /,
    *,
    formula: str,
    estimator: str = "2sls",
    intervals: str = "auto",
    confidence: float = 0.95,
    design_effect: float | None = None,
    plot: Path | None = None,
    json: Json = False,
) -> None:
    """Fit a regression with instrumental variables from RELEASE. This costs no budget.

    Args:
        formula: The regression, such as "lwage ~ exper + [educ ~ distance]". In square brackets stand the endogenous regressors, a ~, and
            their instruments. Outside stand the target and the exogenous regressors.
        estimator: How the coefficients are computed: 2sls for two-stage least squares, or liml.
        intervals: Method of the confidence sets: auto, wald or anderson-rubin. auto uses Wald intervals where the instruments are strong,
            and Anderson-Rubin sets everywhere else.
        confidence: Confidence level of the confidence sets.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case: rows per unit, times a
            factor for the weights. Use 1 if the errors of a unit's rows are independent.
        plot: Draw the coefficients with their confidence sets to this file (.png, .svg or .pdf)."""
    check_figure_path(plot)
    fit = fit_iv(
        load(release),
        formula,
        estimator=estimator,
        intervals=intervals,
        confidence=confidence,
        design_effect=design_effect,
    )
    if json:
        print_json(fit.to_dict())
    else:
        print_text(fit)
    if plot is not None:
        save_figure(plot, fit.plot, rows=len(fit.names))
