"""dpgram calibrate"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from dpgram.cli.options import given_options
from dpgram.cli.output import print_json, print_table
from dpgram.errors import MechanismError, SchemaError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT, PAPER, Task
from dpgram.mechanisms.registry import TABLE_ROWS
from dpgram.terms.budget import Budget, Neighbours


def calibrate(
    name: str,
    /,
    *,
    epsilon: float,
    delta: float,
    dim: int,
    row_bound: float,
    neighbours: str = "replace",
    calibration: str = EXACT,
    sketch_rows: float | None = None,
    degrees_of_freedom: float | None = None,
    table_rows: int | None = None,
    scale: float | None = None,
    rho: float | None = None,
    first_stage: str | None = None,
    intercept: bool = True,
    option: tuple[str, ...] = (),
    compare: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Print the parameters of mechanism NAME for a budget.

    Parameters
    ----------
    name
        The mechanism.
    epsilon
        Privacy budget.
    delta
        Privacy budget.
    dim
        Number of encoded columns d, the intercept included.
    row_bound
        Largest norm B of a row.
    neighbours
        replace or add-remove.
    calibration
        exact, or paper for the printed formulas of Sheffet 2015.
    sketch_rows
        gaussian-sketch, gaussian-sketch-adaptive: rows of the sketch.
    degrees_of_freedom
        wishart-noise, inverse-wishart, inverse-wishart-adaptive: degrees of freedom.
    table_rows
        inverse-wishart, whitened-noise: number of rows, public under replace; a public guess for whitened-noise under add-remove.
    scale
        wishart-noise: scale C of the noise.
    rho
        noisy-inverse: the public claim about the smallest eigenvalue.
    first_stage
        Adaptive mechanisms: laplace or gauss.
    intercept
        whitened-noise: whether the first column is one in every row.
    option
        Any other option of the mechanism, as NAME=VALUE; may be repeated.
    compare
        Show paper against exact, side by side.
    json
        Print JSON.
    """
    mechanism = registry.find(name)
    options = given_options(
        option, sketch_rows=sketch_rows, degrees_of_freedom=degrees_of_freedom, scale=scale, rho=rho, first_stage=first_stage
    )
    if table_rows is not None and TABLE_ROWS in mechanism.options:  # checked there; others are told the table's own
        options, table_rows = {**options, TABLE_ROWS: table_rows}, None
    task = asked_task(name, Budget(epsilon, delta), neighbours, dim, row_bound, calibration, options)
    task = replace(task, rows=table_rows, intercept=intercept)
    columns = [PAPER, EXACT] if compare else [calibration]
    found = {column: _parameters(mechanism.calibrate, replace(task, calibration=column), lenient=compare) for column in columns}
    if json:
        print_json(found if compare else found[calibration])
        return
    refusals = [f"{column}: {values.pop('refused')}" for column, values in found.items() if "refused" in values]
    keys = list(dict.fromkeys(key for values in found.values() for key in values))
    rows = [(key, *(_text(found[column].get(key)) for column in columns)) for key in keys]
    caption = ". ".join([mechanism.summary, *refusals])
    print_table(f"{name}, d = {dim}, B = {row_bound:g}, {neighbours}", ["", *columns], rows, caption=caption)


def _parameters(calibrate_: object, task: Task, *, lenient: bool) -> dict:
    """Budget and parameters; beside another column, a refusal is told in its place."""
    budget = {"epsilon": task.budget.epsilon, "delta": task.budget.delta}
    try:
        return {**budget, **calibrate_(task)}  # type: ignore[operator]
    except MechanismError as error:
        if not lenient:
            raise
        return {**budget, "refused": str(error)}


def _text(value: object) -> str:
    return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)


def asked_task(
    name: str, budget: Budget, neighbours: str, dim: int, row_bound: float, calibration: str, options: Mapping[str, float | str]
) -> Task:
    """The task that a command line describes."""
    relation, columns, bound = _named_neighbours(neighbours), _checked_dim(dim), _checked_bound(row_bound)
    return registry.task(registry.find(name), budget, relation, columns, bound, calibration, options)


def _named_neighbours(text: str) -> Neighbours:
    if text not in (n.value for n in Neighbours):
        raise SchemaError(f"neighbours is {text!r} and must be replace or add-remove.")
    return Neighbours(text)


def _checked_dim(dim: int) -> int:
    if dim < 1:
        raise MechanismError(f"dim is {dim} and must be at least 1.")
    return dim


def _checked_bound(bound: float) -> float:
    if not (math.isfinite(bound) and bound > 0):
        raise MechanismError(f"row_bound is {bound:g} and must be positive and finite.")
    return bound
