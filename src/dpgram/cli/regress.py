"""dpgram regress"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpgram.analysis.compare import compare as side_by_side
from dpgram.analysis.contrasts import contrasts_data
from dpgram.analysis.fit import Fit
from dpgram.analysis.regress import Fits
from dpgram.analysis.regress import regress as fit_models
from dpgram.artifact.files import load
from dpgram.cli.app import note
from dpgram.cli.options import Flag, IgnoreSignature, Json, ReleaseFile, Repeated, TableFormat, listed_names
from dpgram.cli.output import check_table_format, print_json, print_table_as, print_text, working_bar
from dpgram.errors import ModelError
from dpgram.report.contrasts import contrast_summary
from dpgram.report.figures import check_figure_path, draw_comparison, save_figure
from dpgram.report.signed import signature_words


def regress(
    release: ReleaseFile,
    /,
    *,
    target: Repeated = None,
    formula: Repeated = None,
    features: str | None = None,
    estimator: str = "shrunk",
    intervals: str = "auto",
    confidence: float = 0.95,
    penalty: float | None = None,
    l1_ratio: float | None = None,
    design_effect: float | None = None,
    intercept: Annotated[bool | None, Parameter(negative="--no-intercept")] = None,
    test: Repeated = None,
    compare: Flag = False,
    plot: Path | None = None,
    overwrite: Flag = False,
    format: TableFormat = "text",
    ignore_signature: IgnoreSignature = False,
    json: Json = False,
) -> None:
    """Fit linear regressions from RELEASE. This costs no budget.

    Args:
        target: The column to explain. May be repeated, for several regressions.
        formula: A formula instead of target and features, such as "arr_delay ~ dep_delay + carrier". May be repeated.
        features: The columns that explain the target, separated by commas. By default all others.
        estimator: How the coefficients for prediction are computed: shrunk, debiased, log-det, plain, ridge, lasso or elastic-net. The
            table shows them in its last column. Standard errors and intervals are always about the debiased coefficients.
        intervals: Method of the intervals: auto, wald, fieller or bootstrap. auto uses Wald intervals, and Fieller intervals for weakly
            identified coefficients.
        confidence: Confidence level of the intervals.
        penalty: Penalty for ridge, lasso and elastic-net, like alpha in scikit-learn. By default it follows from the size of the noise.
        l1_ratio: Mix of the two penalties for elastic-net, as in scikit-learn. By default 0.5.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case: rows per unit, times a
            factor for the weights. Use 1 if the errors of a unit's rows are independent.
        intercept: Fit with or without an intercept. By default with one if the release has one.
        test: Restrictions to test, such as "a - b = 0" or "a = 0.5, b = c". Without "=", zero is tested. Each is printed with its estimate
            and interval, and several also with the test of all together. The name of a category stands for all its levels. May be repeated.
        compare: Print all models side by side in one table, as latex and markdown always are.
        plot: Draw the coefficients with their intervals to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    check_table_format(format)
    if bool(target) == bool(formula):
        raise ModelError("give either --target (with --features) or --formula.")
    made = load(release, check_signature=not ignore_signature)
    with working_bar("fitting") as bar:
        fitted = fit_models(
            made,
            formula or target or [],
            listed_names(made.schema, features),
            estimator=estimator,
            intervals=intervals,
            confidence=confidence,
            intercept=intercept,
            penalty=penalty,
            l1_ratio=l1_ratio,
            design_effect=design_effect,
            progress=bar,
        )
    fits = Fits([fitted]) if isinstance(fitted, Fit) else fitted
    models = side_by_side(fits)
    tested = [contrasts_data(fit, asked) for fit in fits for asked in test or ()]
    if json:
        data = fits[0].to_dict() if len(fits) == 1 and not compare else models.to_dict()
        print_json({**data, "tests": tested} if tested else data)
    elif compare or format != "text":
        print_table_as(models.summary(), format)
    else:
        print_text("\n\n".join(str(fit.summary()) for fit in fits))
    for one in tested if not json else ():
        print_text("")
        print_table_as(contrast_summary(one), format)
    note(f"{release}: {signature_words(made)}")
    if plot is not None:
        rows = len(models.names) * (1 if len(fits) == 1 else 1 + len(fits) // 3)
        draw = fits[0].plot if len(fits) == 1 else lambda ax: draw_comparison(models.to_dict(), ax)
        save_figure(plot, draw, rows=rows, overwrite=overwrite)
