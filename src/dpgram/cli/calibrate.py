"""dpgram calibrate"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any

from cyclopts import Parameter

from dpgram.cli.inspect import print_rounds
from dpgram.cli.options import Calibration, Flag, Json, OptionTexts, Relation, given_options, with_flags
from dpgram.cli.output import print_json, print_table
from dpgram.errors import MechanismError, SchemaError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER, Mechanism, Task
from dpgram.mechanisms.registry import TABLE_ROWS
from dpgram.report.facts import parameter_facts
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import MOST_ROWS_PER_UNIT


@with_flags
def calibrate(
    name: str,
    /,
    *,
    epsilon: float,
    delta: float,
    dim: int,
    row_bound: float,
    neighbours: Relation = "replace",
    calibration: Calibration = EXACT_CURVE,
    table_rows: int | None = None,
    rows_per_unit: int | None = None,
    intercept: Annotated[bool, Parameter(negative="--no-intercept")] = True,
    option: OptionTexts = (),
    compare: Flag = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Print the parameters of mechanism NAME for a budget.

    Args:
        name: The mechanism.
        epsilon: Epsilon of the privacy budget.
        delta: Delta of the privacy budget.
        dim: Number of encoded columns, including the intercept.
        row_bound: Largest norm of an encoded row, in scaled units.
        table_rows: Number of rows, for inverse-wishart and whitened-noise. Under add-remove it is a public guess.
        rows_per_unit: How many rows of a unit count in full, if all rows of a unit are protected together.
        intercept: Whether the first column is the intercept, for whitened-noise.
        compare: Show the calibrations paper and exact side by side."""
    mechanism = registry.find(name)
    given = given_options(option, options)
    if table_rows is not None and TABLE_ROWS in mechanism.options:  # checked there; others are told the table's own
        given, table_rows = {**given, TABLE_ROWS: table_rows}, None
    task = asked_task(mechanism, Budget(epsilon, delta), neighbours, dim, row_bound, calibration, given, rows_per_unit)
    task = replace(task, rows=table_rows, intercept=intercept)
    columns = [PAPER, EXACT_CURVE] if compare else [calibration]
    calibrated = {column: _parameters(mechanism, replace(task, calibration=column), lenient=compare) for column in columns}
    if json:
        print_json(calibrated if compare else calibrated[calibration])
        return
    refusals = [f"{column}: {values.pop('refused')}" for column, values in calibrated.items() if "refused" in values]
    listed = [fact for values in calibrated.values() for fact in parameter_facts(mechanism, values, made=False)]
    names = {fact.key[-1]: fact.name for fact in listed if fact.name}
    rows = [(text, *(_text(calibrated[column].get(key)) for column in columns)) for key, text in names.items()]
    caption = ". ".join([mechanism.summary, *refusals])
    print_table(f"{name}, d = {dim}, B = {row_bound:g}, {neighbours}", ["", *columns], rows, caption=caption)
    print_rounds(listed)


def _parameters(mechanism: Mechanism, task: Task, *, lenient: bool) -> dict:
    """Budget and parameters; beside another column, a refusal is told in its place."""
    budget = asdict(task.budget)
    try:
        return {**budget, **mechanism.calibrate(task)}
    except MechanismError as error:
        if not lenient:
            raise
        return {**budget, "refused": str(error)}


def _text(value: object) -> str:
    return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)


def asked_task(
    mechanism: Mechanism,
    budget: Budget,
    neighbours: str,
    dim: int,
    row_bound: float,
    calibration: str,
    options: Mapping[str, float | str],
    rows_per_unit: int | None = None,
) -> Task:
    """The task that a command line describes."""
    if neighbours not in (relation.value for relation in Neighbours):
        raise SchemaError(f"neighbours is {neighbours!r} and must be replace or add-remove.")
    if dim < 1:
        raise MechanismError(f"dim is {dim} and must be at least 1.")
    if not (math.isfinite(row_bound) and row_bound > 0):
        raise MechanismError(f"row_bound is {row_bound:g} and must be positive and finite.")
    if rows_per_unit is not None and not 1 <= rows_per_unit <= MOST_ROWS_PER_UNIT:
        raise MechanismError(f"rows_per_unit is {rows_per_unit} and must be from 1 to {MOST_ROWS_PER_UNIT:,}.")
    return registry.task(
        mechanism, budget, Neighbours(neighbours), dim, row_bound, calibration, options, rows_per_unit=rows_per_unit
    )
