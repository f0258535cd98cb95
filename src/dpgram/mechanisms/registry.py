"""Every mechanism by name. A new one is a file of its own and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER, Mechanism, Task
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
) -> Task:
    """A task for ``mechanism``, with its options checked; options that are None were not given."""
    if calibration not in (EXACT_CURVE, PAPER):
        raise MechanismError(f"calibration is {calibration!r} and must be 'exact' or 'paper'.")
    given = {name: value for name, value in (options or {}).items() if value is not None}
    for name, value in given.items():
        if name not in mechanism.options:
            known = f"Its options are {', '.join(mechanism.options)}." if mechanism.options else "It has no options."
            raise MechanismError(f"{mechanism.name} has no option {name!r}. {known}")
        mechanism.options[name].checked(value)
    return Task(budget, neighbours, dim, row_bound, calibration, given, intercept=intercept, half_ranges=half_ranges)


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
    )
    return replace(made, schema=schema)


def find(name: str) -> Mechanism:
    if not isinstance(name, str) or name not in MECHANISMS:
        raise UnknownMechanismError(name=name, known=MECHANISMS)
    return MECHANISMS[name]
