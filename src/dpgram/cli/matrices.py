"""dpgram cov and dpgram pca"""

from __future__ import annotations

from pathlib import Path

from dpgram.analysis.matrices import Covariance, PrincipalComponents, covariance, pca
from dpgram.artifact.files import load
from dpgram.cli.options import Columns, Flag, ReleaseFile, listed_names
from dpgram.cli.output import print_json, print_text
from dpgram.report.figures import check_figure_path, save_figure


def cov_command(
    release: ReleaseFile,
    /,
    *,
    columns: Columns = None,
    kind: str = "covariance",
    plot: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
) -> None:
    """Print means, covariances and correlations from RELEASE. This costs no budget.

    Args:
        kind: The matrix to print: covariance, correlation, or partial for the correlations given all the other columns.
        plot: Draw the correlations to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists.
        json: Print JSON instead of tables, with all three matrices and the standard errors."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    made = load(release)
    moments = covariance(made, listed_names(made.schema, columns))
    _print(moments, moments.summary(kind), json=json)
    if plot is not None:
        drawn = "partial" if kind == "partial" else "correlation"
        save_figure(plot, lambda ax: moments.plot(drawn, ax), rows=max(len(moments.names), 12), overwrite=overwrite)


def pca_command(
    release: ReleaseFile,
    /,
    *,
    columns: Columns = None,
    components: int | None = None,
    standardise: Flag = False,
    plot: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
) -> None:
    """Print principal components from RELEASE. This costs no budget.

    Args:
        components: How many components to print. By default six, or all if there are fewer.
        standardise: Use the correlations instead of the covariances. Do this if columns have different units.
        plot: Draw the share of the variance of each component to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists.
        json: Print JSON instead of tables, with all components."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    made = load(release)
    result = pca(made, listed_names(made.schema, columns), standardise=standardise)
    _print(result, result.summary(components), json=json)
    if plot is not None:
        save_figure(plot, result.plot, rows=12, overwrite=overwrite)


def _print(result: Covariance | PrincipalComponents, words: object, *, json: bool) -> None:
    if json:
        print_json(result.to_dict())
    else:
        print_text(words)
