"""dpgram cov and dpgram pca"""

from __future__ import annotations

from pathlib import Path

from dpgram.analysis.matrices import Covariance, PrincipalComponents, covariance, pca
from dpgram.artifact.files import load
from dpgram.cli.options import Columns, ReleaseFile, listed_names
from dpgram.cli.output import print_json
from dpgram.report.figures import check_figure_path, save_figure


def cov_command(
    release: ReleaseFile,
    /,
    *,
    columns: Columns = None,
    kind: str = "covariance",
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Print means, covariances and correlations from RELEASE. Costs no budget.

    Args:
        kind: covariance, correlation or partial (correlation given all the other columns).
        plot: Also draw the correlations to this file (.png, .svg or .pdf).
        json: Print JSON, with all three matrices and standard errors."""
    check_figure_path(plot)
    made = load(release)
    moments = covariance(made, listed_names(made.schema, columns))
    _print(moments, moments.summary(kind), json=json)
    if plot is not None:
        drawn = "partial" if kind == "partial" else "correlation"
        save_figure(plot, lambda ax: moments.plot(drawn, ax), rows=max(len(moments.names), 12))


def pca_command(
    release: ReleaseFile,
    /,
    *,
    columns: Columns = None,
    components: int | None = None,
    standardise: bool = False,
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Print principal components from RELEASE. Costs no budget.

    Args:
        components: How many to print; up to six when left out.
        standardise: Of the correlations, so that columns in large units do not rule.
        plot: Also draw the shares of the variance to this file (.png, .svg or .pdf).
        json: Print JSON, with all components."""
    check_figure_path(plot)
    made = load(release)
    result = pca(made, listed_names(made.schema, columns), standardise=standardise)
    _print(result, result.summary(components), json=json)
    if plot is not None:
        save_figure(plot, result.plot, rows=12)


def _print(result: Covariance | PrincipalComponents, words: object, *, json: bool) -> None:
    if json:
        print_json(result.to_dict())
    else:
        print(words)
