"""dpgram plan"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from dpgram.cli.app import note
from dpgram.cli.options import Calibration, Delta, Flag, Json, OptionTexts, Several, given_options, listed_names, with_flags
from dpgram.cli.output import print_json, print_table
from dpgram.errors import PlanError
from dpgram.mechanisms.registry import TABLE_ROWS
from dpgram.planning.answers import Width
from dpgram.planning.assumed import Assumptions
from dpgram.planning.curves import Quantity, curve
from dpgram.planning.plan import Plan, check_sample, make_plan
from dpgram.report import forecast as words
from dpgram.report.figures import check_figure_path
from dpgram.terms.schema import Schema


@with_flags
def plan(
    *,
    schema: Path,
    delta: Delta,
    epsilon: float | None = None,
    table_rows: int | None = None,
    target: str | None = None,
    features: str | None = None,
    mechanism: Several = (),
    calibration: Calibration = "exact",
    spread: Several = (),
    correlation: float | None = None,
    signal: float | None = None,
    counted: float | None = None,
    design_effect: float | None = None,
    sample: str | None = None,
    sample_is_public: Flag = False,
    target_width: Several = (),
    solve: Quantity = "epsilon",
    option: OptionTexts = (),
    json: Json = False,
    plot: Path | None = None,
    overwrite: Flag = False,
    **options: Any,
) -> None:
    """Forecast what a release would give, from public facts alone. No table is read and nothing is spent.

    Args:
        schema: TOML file that declares the columns. 'dpgram schema draft' writes one to fill in.
        epsilon: Epsilon of the privacy budget. Leave it out to find it with --target-width.
        table_rows: Number of rows. Use the table's own number if it is public. Make a public guess if it is protected (add-remove).
        target: The column to explain. By default the first numeric or date column.
        features: The columns that explain it, separated by commas. By default all others.
        mechanism: Forecast only this mechanism. May be repeated. By default all, except noisy-inverse without --rho.
        spread: An assumption: the standard deviation of a column, divided by half the width of its bounds. NAME=VALUE sets it for one
            column. May be repeated. By default 0.25.
        correlation: An assumption: the correlation of any two features. By default 0.2.
        signal: An assumption: the share of the target's variance that the features explain. By default 0.5.
        counted: An assumption: how much a row counts on average, because of weights, missing cells and units of many rows. By default 1.
        design_effect: An assumption: by what the sampling variance is multiplied, because rows of one unit resemble each other. By
            default rows_per_unit of the schema, the worst case. Use 1 if all rows are independent.
        sample: A public table with the same columns, to use instead of assumptions. Needs --sample-is-public.
        sample_is_public: Confirm that the sample is public. Without it the sample is not read.
        target_width: Find the smallest epsilon or number of rows for which a typical 95 % interval is this narrow. NAME=VALUE asks for one
            coefficient, such as age=0.1. May be repeated.
        solve: What --target-width finds.
        plot: Draw the errors against epsilon and against the number of rows to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists."""
    check_figure_path(plot, overwrite=overwrite, given=(schema,))
    given = given_options(option, {**options, TABLE_ROWS: table_rows})
    declared = Schema.load(schema)
    table_rows = given.pop(TABLE_ROWS, None)
    assumptions, sample_rows = (
        given_assumptions(spread, correlation=correlation, signal=signal, counted=counted, design_effect=design_effect),
        None,
    )
    if sample is not None:
        from dpgram import curator  # slow to import: all that reads tables comes with it

        check_sample(sample_is_public, assumptions)
        sample_rows = curator.counting_rows(sample, declared)
    made = make_plan(
        declared,
        epsilon=epsilon,
        delta=delta,
        rows=table_rows,
        target=target,
        features=listed_names(declared, features),
        mechanisms=mechanism or None,
        calibration=calibration,
        assumptions=assumptions,
        sample=sample_rows,
        target_width=given_width(target_width),
        solve=solve,
        options=given,
    )
    curves = [
        curve(
            made.ground,
            quantity,
            made.forecast.budget,
            made.forecast.rows,
            mechanisms=mechanism or None,
            calibration=calibration,
            options=given,
        )
        for quantity in (get_args(Quantity) if plot is not None else ())
    ]
    if json:
        print_json({**made.to_dict(), **({"curves": [one.to_dict() for one in curves]} if curves else {})})
    else:
        print_plan(made)
    if plot is not None:
        words.save_curves(
            plot, curves, made.forecast.target, made.ground.design.names[made.ground.typical], overwrite=overwrite
        )
        note(f"wrote {plot}")


def print_plan(made: Plan, *, coefficients: bool = True) -> None:
    """The tables of a plan, and its words."""
    said = words.captions(made)
    reasons = "".join(f"\nNo forecast for {reason}" for reason in words.refusals(made))
    print_table(words.title(made), words.MECHANISM_HEADER, words.mechanism_rows(made), caption=said["mechanisms"] + reasons)
    if coefficients and made.best:
        print_table("Each coefficient", words.COEFFICIENT_HEADER, words.coefficient_rows(made), caption=said["coefficients"])
    if made.bounds:
        print_table("Choosing row_bound", words.BOUND_HEADER, words.bound_rows(made), caption=said["bounds"])
    elif made.no_bounds:
        note(made.no_bounds)
    if made.answer is not None:
        note(made.answer.in_words)
    note(made.forecast.why)
    if made.unidentified is not None:
        note(made.unidentified.in_words)


def given_assumptions(spread: Sequence[str], **numbers: float | None) -> Assumptions | None:
    """The assumptions that were given, the others by default; None where none was."""
    given: dict = {name: value for name, value in numbers.items() if value is not None}
    spreads: dict[str, float] = {}
    for name, number in _named_numbers("--spread", spread):
        if name is None:
            given["spread"] = number
        else:
            spreads[name] = number
    return Assumptions(**given, spreads=spreads) if given or spreads else None


def given_width(texts: Sequence[str]) -> Width | None:
    """The wanted width of a typical interval, or those of single coefficients by name; None where none was given."""
    numbers = list(_named_numbers("--target-width", texts))
    widths = {name: number for name, number in numbers if name is not None}
    if not widths and len(numbers) == 1:
        return numbers[0][1]
    if len(widths) < len(numbers):
        raise PlanError("--target-width is given more than once. Give one number, or NAME=VALUE for each coefficient.")
    return widths or None


def _named_numbers(option: str, texts: Sequence[str]) -> Iterator[tuple[str | None, float]]:
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            yield (name if equals else None), float(value)
        except ValueError:
            raise PlanError(f"{option} is {text!r} and must be a number, or NAME=VALUE, such as income=0.1.") from None
