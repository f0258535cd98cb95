"""dpgram regress"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpgram.analysis.compare import compare as side_by_side
from dpgram.analysis.fit import Fit
from dpgram.analysis.regress import Fits
from dpgram.analysis.regress import regress as fit_models
from dpgram.artifact.files import load
from dpgram.cli.options import Json, ReleaseFile, Repeated, listed_names
from dpgram.cli.output import print_json, working_bar
from dpgram.errors import ModelError
from dpgram.report.figures import check_figure_path, draw_comparison, save_figure


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
    intercept: Annotated[bool | None, Parameter(negative="--no-intercept")] = None,
    compare: bool = False,
    plot: Path | None = None,
    json: Json = False,
) -> None:
    """Fit linear regressions from RELEASE. Costs no budget: fit as many as you like.

    Args:
        target: The column to explain; may be given several times.
        formula: Instead of target and features, as in "arr_delay ~ dep_delay + carrier"; may be given several times.
        features: Columns to explain it by, separated by commas; all other columns when left out.
        estimator: What predictions use: shrunk, debiased, log-det, plain, ridge, lasso or elastic-net. Intervals are about the
            debiased coefficients, whatever is chosen here.
        intervals: auto (Wald, and Fieller where identification is weak), wald, fieller or bootstrap.
        confidence: Of the intervals.
        penalty: For ridge, lasso and elastic-net, as scikit-learn's alpha; from the size of the noise when left out.
        l1_ratio: For elastic-net.
        intercept: Fit with or without an intercept; with one where the release has it.
        compare: Print all models side by side.
        plot: Also draw coefficients with intervals to this file (.png, .svg or .pdf)."""
    check_figure_path(plot)
    if bool(target) == bool(formula):
        raise ModelError("give --target (with --features) or --formula, one of the two.")
    made = load(release)
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
            progress=bar,
        )
    fits = Fits([fitted]) if isinstance(fitted, Fit) else fitted
    models = side_by_side(fits)
    if json:
        print_json(fits[0].to_dict() if len(fits) == 1 and not compare else models.to_dict())
    elif compare:
        print(models)
    else:
        print("\n\n".join(str(fit.summary()) for fit in fits))
    if plot is not None:
        rows = len(models.names) * (1 if len(fits) == 1 else 1 + len(fits) // 3)
        save_figure(plot, fits[0].plot if len(fits) == 1 else lambda ax: draw_comparison(models.to_dict(), ax), rows=rows)
