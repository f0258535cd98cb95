"""dpgram margins"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dpgram.analysis.fit import Fit
from dpgram.analysis.regress import regress
from dpgram.artifact.files import load
from dpgram.cli.options import Json, ReleaseFile, Repeated, TableFormat, listed_names, split_by_commas
from dpgram.cli.output import check_table_format, print_json, print_table_as
from dpgram.errors import ModelError
from dpgram.report.figures import check_figure_path, save_figure
from dpgram.terms.columns import Boolean, Categorical, Column, Numeric
from dpgram.terms.schema import Schema

TRUTH = {**dict.fromkeys(("true", "t", "yes", "y", "1"), True), **dict.fromkeys(("false", "f", "no", "n", "0"), False)}


def margins(
    release: ReleaseFile,
    /,
    *,
    column: str,
    target: str | None = None,
    formula: str | None = None,
    features: str | None = None,
    at: Repeated = None,
    intervals: str = "auto",
    confidence: float = 0.95,
    design_effect: float | None = None,
    intercept: Annotated[bool | None, Parameter(negative="--no-intercept")] = None,
    plot: Path | None = None,
    format: TableFormat = "text",
    json: Json = False,
) -> None:
    """Print marginal effects of a column in a regression from RELEASE. This costs no budget.

    Args:
        column: The declared column whose effect is computed.
        target: The column to explain.
        formula: A formula instead of target and features, such as "cost ~ age*smoker + I(age**2)".
        features: The columns that explain the target, separated by commas. By default all others.
        at: Values of a column at which the effect is computed, such as age=30,50. Repeat it for further columns: there is one effect for
            each combination. Columns that are left out are at their means.
        intervals: Method of the intervals: auto, wald, fieller or bootstrap.
        confidence: Confidence level of the intervals.
        design_effect: Factor by which units and weights increase the sampling variance. By default the worst case.
        intercept: Fit with or without an intercept. By default with one if the release has one.
        plot: Draw the effects with their intervals to this file (.png, .svg or .pdf)."""
    check_figure_path(plot)
    check_table_format(format)
    if (target is None) == (formula is None):
        raise ModelError("give either --target (with --features) or --formula.")
    made = load(release)
    asked = formula if target is None else target
    assert asked is not None
    fit = regress(
        made,
        asked,
        listed_names(made.schema, features),
        intervals=intervals,
        confidence=confidence,
        intercept=intercept,
        design_effect=design_effect,
    )
    one = fit if isinstance(fit, Fit) else fit[0]
    if not isinstance(fit, Fit) and len(fit) > 1:
        raise ModelError(
            "marginal effects are those of one target, but the formula has several. Write one formula for each target."
        )
    found = one.marginal_effects(column, at=given_values(made.schema, at or ()))
    if json:
        print_json(found.to_dict())
    else:
        print_table_as(found.summary(), format)
    if plot is not None:
        save_figure(plot, found.plot, rows=len(found.effects))


def given_values(schema: Schema, texts: Sequence[str]) -> dict[str, list[Any]]:
    """The values of columns, from texts such as "age=30,50"."""
    given: dict[str, list[Any]] = {}
    for text in texts:
        whole = max((name for name in schema.names if text.startswith(f"{name}=")), key=len, default=None)
        name, equals, values = (whole, "=", text[len(whole) + 1 :]) if whole is not None else text.partition("=")
        if not (name and equals and values):
            raise ModelError(f"--at is {text!r} and must be COLUMN=VALUES, such as age=30,50.")
        if name in given:
            raise ModelError(f"--at names {name!r} twice. Write its values once, separated by commas.")
        column = schema.by_name.get(name)
        known = column.levels if isinstance(column, Categorical) else ()
        given[name] = [_value(column, value) for value in split_by_commas(values, known)]
    return given


def _value(column: Column | None, text: str) -> Any:
    """A value as the column's kind writes it; the text itself where it is none, which the library refuses in its own words."""
    if isinstance(column, Boolean):
        return TRUTH.get(text.lower(), text)
    if isinstance(column, Numeric):
        try:
            return float(text)
        except ValueError:
            return text
    return text
