"""dpgram iv"""

from __future__ import annotations

from pathlib import Path

from dpgram.analysis.compare import compare
from dpgram.analysis.contrasts import contrasts_data
from dpgram.analysis.iv import iv as fit_iv
from dpgram.artifact.files import load
from dpgram.cli.options import Flag, Json, ReleaseFile, Repeated, TableFormat
from dpgram.cli.output import check_table_format, print_json, print_table_as, print_text
from dpgram.report.contrasts import contrast_summary
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
    test: Repeated = None,
    plot: Path | None = None,
    overwrite: Flag = False,
    format: TableFormat = "text",
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
        test: Restrictions to test, such as "a - b = 0" or "a = 0.5, b = c". Without "=", zero is tested. Each is printed with its estimate
            and confidence set, and several also with the test of all together. The name of a category stands for all its levels. May be
            repeated.
        plot: Draw the coefficients with their confidence sets to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    check_table_format(format)
    fit = fit_iv(
        load(release),
        formula,
        estimator=estimator,
        intervals=intervals,
        confidence=confidence,
        design_effect=design_effect,
    )
    tested = [contrasts_data(fit, asked) for asked in test or ()]
    if json:
        print_json({**fit.to_dict(), "tests": tested} if tested else fit.to_dict())
    elif format != "text":
        print_table_as(compare({fit.target: fit}).summary(), format)
    else:
        print_text(fit)
    for one in tested if not json else ():
        print_text("")
        print_table_as(contrast_summary(one), format)
    if plot is not None:
        save_figure(plot, fit.plot, rows=len(fit.names), overwrite=overwrite)
