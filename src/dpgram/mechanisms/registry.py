"""Every mechanism by name. A new one is a file of its own and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpgram.accounting.compose import Cost
from dpgram.errors import MechanismError, UnknownMechanismError
from dpgram.mechanisms import (
    gaussian_noise,
    gaussian_sketch,
    gaussian_sketch_adaptive,
    inverse_wishart,
    inverse_wishart_adaptive,
    noisy_inverse,
    whitened_noise,
    wishart_noise,
)
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER, Mechanism, Parameters, Task
from dpgram.mechanisms.proven import proven
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema

AUTO = "auto"  # no mechanism: asks for a choice of one (planning/choose.py)
TABLE_ROWS = "table_rows"  # a public guess of the number of rows: an option of mechanisms whose rules follow it

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        gaussian_noise.MECHANISM,
        gaussian_sketch.MECHANISM,
        gaussian_sketch_adaptive.MECHANISM,
        wishart_noise.MECHANISM,
        inverse_wishart.MECHANISM,
        inverse_wishart_adaptive.MECHANISM,
        noisy_inverse.MECHANISM,
        whitened_noise.MECHANISM,
    )
}  # fmt: skip


def task(
    mechanism: Mechanism,
    budget: Budget,
    neighbours: Neighbours,
    dim: int,
    row_bound: float,
    calibration: str = EXACT_CURVE,
    options: Mapping[str, float | str | None] | None = None,
    intercept: bool = False,
    half_ranges: tuple[float, ...] = (),
    rows_per_unit: int | None = None,
) -> Task:
    """A task for ``mechanism``, with its options checked; options that are None were not given. Without ``rows_per_unit`` a unit is
    one row."""
    if calibration not in (EXACT_CURVE, PAPER):
        raise MechanismError(f"calibration is {calibration!r} and must be 'exact' or 'paper'.")
    if rows_per_unit is not None:
        check_units(mechanism, calibration)
    given = {name: value for name, value in (options or {}).items() if value is not None}
    for name, value in given.items():
        if name not in mechanism.options:
            known = f"Its options are {', '.join(mechanism.options)}." if mechanism.options else "It has no options."
            raise MechanismError(f"{mechanism.name} has no option {name!r}. {known}")
        mechanism.options[name].checked(value)
    return Task(
        budget,
        neighbours,
        dim,
        row_bound,
        calibration,
        given,
        rows_per_unit=rows_per_unit or 1,
        intercept=intercept,
        half_ranges=half_ranges,
    )


@proven("units.md#theorem-5")
def check_units(mechanism: Mechanism, calibration: str) -> None:
    """Raise where a mechanism's noise would not protect all rows of a unit together."""
    if not mechanism.takes_units:
        raise MechanismError(
            f"{mechanism.name} protects single rows, but a unit_id asks for the protection of all rows of a unit together: use "
            f"gaussian-noise or whitened-noise."
        )
    if calibration == PAPER:
        raise MechanismError(
            "the printed formulas are for one row per unit, and units of several rows are asked for: use calibration='exact'."
        )


def cost_of(
    name: str, budget: Budget, neighbours: Neighbours, dim: int, row_bound: float, calibration: str, parameters: Parameters
) -> Cost:
    """What is known of the privacy curve of a release that was made, from what it says of itself."""
    mechanism = find(name)
    return mechanism.cost(task(mechanism, budget, neighbours, dim, row_bound, calibration), parameters)


def schema_task(
    mechanism: Mechanism,
    budget: Budget,
    schema: Schema,
    calibration: str = EXACT_CURVE,
    options: Mapping[str, float | str | None] | None = None,
) -> Task:
    """The task of a release under ``schema``."""
    made = task(
        mechanism,
        budget,
        schema.neighbours,
        len(schema.encoded),
        schema.effective_row_bound,
        calibration,
        options,
        intercept=schema.intercept,
        half_ranges=schema.half_ranges,
        rows_per_unit=schema.rows_per_unit,
    )
    return replace(made, schema=schema, counts_partly=schema.counts_partly)


def find(name: str) -> Mechanism:
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UnknownMechanismError(name=name, known=MECHANISMS)
    return MECHANISMS[name]
