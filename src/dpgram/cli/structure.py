"""dpgram partial and dpgram graph"""

from __future__ import annotations

from pathlib import Path

from dpgram.analysis.structure import graph, partial_correlations
from dpgram.artifact.files import load
from dpgram.cli.options import Columns, Flag, ReleaseFile, listed_names
from dpgram.cli.output import print_json, print_text
from dpgram.report.figures import check_figure_path, save_drawing, save_figure


def partial_command(
    release: ReleaseFile,
    /,
    *,
    columns: Columns = None,
    pairs: int | None = None,
    confidence: float = 0.95,
    design_effect: float | None = None,
    plot: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
) -> None:
    """Print partial correlations from RELEASE. This costs no budget.

    Args:
        pairs: How many pairs to print. By default the 20 that stand furthest from zero.
        confidence: Confidence level of the intervals.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case.
        plot: Draw the partial correlations as a heat map to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists.
        json: Print JSON instead of tables, with all pairs."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    made = load(release)
    found = partial_correlations(made, listed_names(made.schema, columns), confidence=confidence, design_effect=design_effect)
    words = found.summary(pairs)
    if json:
        print_json(found.to_dict())
    else:
        print_text(words)
    if plot is not None:
        save_figure(plot, found.plot, rows=max(len(found.names), 12), overwrite=overwrite)


def graph_command(
    release: ReleaseFile,
    /,
    *,
    columns: Columns = None,
    penalty: float | None = None,
    edges: int | None = None,
    confidence: float = 0.95,
    design_effect: float | None = None,
    plot: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
) -> None:
    """Print the graph of partial correlations from RELEASE, by the graphical lasso. This costs no budget.

    Args:
        penalty: The penalty, like alpha in scikit-learn. By default it follows from the size of the noise and of sampling.
        edges: How many edges to print. By default the 20 strongest.
        confidence: Confidence level of the intervals.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case.
        plot: Draw the graph to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists.
        json: Print JSON instead of tables, with all edges."""
    check_figure_path(plot, overwrite=overwrite, given=(release,))
    made = load(release)
    columns_used = listed_names(made.schema, columns)
    found = graph(made, columns_used, penalty=penalty, confidence=confidence, design_effect=design_effect)
    words = found.summary(edges)
    if json:
        print_json(found.to_dict())
    else:
        print_text(words)
    if plot is not None:
        save_drawing(plot, lambda figure: found.plot(figure.subplots()), (8, 8), overwrite=overwrite)
