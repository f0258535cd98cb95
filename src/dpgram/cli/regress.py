"""dpgram regress"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpgram.artifact.files import load
from dpgram.artifact.release import GramRelease
from dpgram.cli.output import print_json, print_table
from dpgram.regression import fit as regression
from dpgram.report.fits import fit_caption, fit_data, fit_rows


def regress(
    release: Path,
    /,
    *,
    target: str,
    features: str | None = None,
    estimator: str = "log-det",
    intercept: bool | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Fit a linear regression from RELEASE. Costs no budget: fit as many as you like.

    Parameters
    ----------
    release
        A release file.
    target
        The column to explain.
    features
        Columns to explain it by, separated by commas; all other columns when left out.
    estimator
        log-det (always has an answer) or plain (solves with the matrix as it is).
    intercept
        Fit with or without an intercept; with one where the release has it.
    json
        Print JSON.
    """
    made = load(release)
    fit = regression.regress(made, target, _names(made, features), estimator=estimator, intercept=intercept)
    if json:
        print_json(fit_data(made, fit))
        return
    rows = fit_rows(made, fit)
    print_table(f"Regression of {fit.target}", ["", "coefficient", "noise sd"], rows, caption=fit_caption(made, fit))


def _names(release: GramRelease, features: str | None) -> list[str] | None:
    """The names in a comma-separated list. A known name that itself holds commas is found whole."""
    if features is None:
        return None
    known = {*release.columns, *release.schema.all_names}
    names: list[str] = []
    parts = features.split(",") if features else []
    while parts:
        joined = [",".join(parts[:k]) for k in range(len(parts), 0, -1)]
        found = next((name for name in joined if name in known or name.strip() in known), parts[0])
        names.append(found if found in known else found.strip())
        parts = parts[found.count(",") + 1 :]
    return names
