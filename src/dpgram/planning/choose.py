"""What mechanism "auto" means: the one that a forecast under default assumptions expects to be best. A function of public facts alone."""

from __future__ import annotations

from collections.abc import Mapping

from threadpoolctl import threadpool_limits

from dpgram.errors import MechanismError, ModelError, PlanError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT_CURVE, Mechanism
from dpgram.planning.assumed import Assumptions, assumed_rows, default_target
from dpgram.planning.expected import FEWEST, default_copies
from dpgram.planning.forecast import check_rows, forecast, listed
from dpgram.planning.ground import Ground, ground_of
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema

PLAIN, WIDEST = "gaussian-noise", 400  # what "auto" takes where there is no forecast, and columns beyond which it makes none
COUNTING = "whitened-noise"  # takes no number of rows where it is protected: its first round counts them, under noise
ONCE = "The table can be read only once, so mechanisms of several rounds were left out."


def check_hint(rows: int | None, options: Mapping[str, object]) -> None:
    """Raise where "auto" cannot choose with what it is given; needs no table."""
    for name in options:
        having = [mechanism for mechanism, each in registry.MECHANISMS.items() if name in each.options]
        raise MechanismError(
            f"the option {name} is given, but mechanism 'auto', the default, takes no options. "
            + (f"Name a mechanism that has it ({', '.join(having)})." if having else "No mechanism has this option.")
        )
    if rows is not None:
        check_rows(rows)


@threadpool_limits.wrap(limits=1, user_api="blas")  # as for a plan
def choose(
    schema: Schema, rows: int | None, budget: Budget, calibration: str = EXACT_CURVE, *, rereadable: bool = True
) -> tuple[Mechanism, str]:
    """The mechanism that "auto" takes for a public number of ``rows``, and why, for the label. Costs nothing: nothing private is asked.

    One of several rounds is not looked at where the table can be read only once. Additive Gaussian noise, which is never larger than the
    others' at equal privacy, where there is nothing to forecast: no regression, or a stream whose number of rows (None) nobody gave. Where
    that number is protected, and nobody gave one, the mechanism that counts them under noise."""
    ground, name = _assumed_ground(schema), PLAIN
    once = "" if rereadable else f" {ONCE}"
    if ground is None:
        why = f"the schema has no regression to look at, or more than {WIDEST} encoded columns"
    elif rows is None and (schema.neighbours is Neighbours.ADD_REMOVE or schema.unit_id is not None):
        name, why = _protected_rows(schema, budget, calibration, rereadable)
    elif rows is None:
        why = f"the number of rows of a stream is not known before it is read, and table_rows was not given.{once}"
    else:
        names = [name for name in listed(None, schema=schema) if rereadable or not registry.find(name).several]
        copies = min(FEWEST, default_copies(ground))
        made = forecast(ground, budget, rows, mechanisms=names, calibration=calibration, copies=copies)
        if made.best:
            typical = made.of(made.best).typical
            assert typical is not None
            return registry.find(made.best), (
                f"auto, by a quick forecast for {rows:,} rows under default assumptions, without reading data. The expected error of the "
                f"coefficient of {typical.name} on {made.target} is {typical.error:.3g}. {made.verdict}{once}"
            )
        why = made.verdict
    return registry.find(name), f"auto, without a forecast: {why}"


def _protected_rows(schema: Schema, budget: Budget, calibration: str, rereadable: bool) -> tuple[str, str]:
    """What is taken where the number of rows is protected and no public guess was given, and why."""
    protects = "with a unit_id" if schema.unit_id is not None else 'under neighbours = "add-remove"'
    protected = f"the number of rows is protected {protects}, and table_rows was not given"
    if not rereadable:
        return PLAIN, f"{protected}. {ONCE}"
    counting = registry.find(COUNTING)
    try:
        counting.calibrate(registry.schema_task(counting, budget, schema, calibration))
    except MechanismError as refused:  # for want of an intercept, by which rows are counted, or of a formula in the paper
        return PLAIN, f"{protected}, and {refused}"
    return COUNTING, f"{protected}. {COUNTING} was chosen, because its first round counts the rows, under noise."


def _assumed_ground(schema: Schema) -> Ground | None:
    """Assumed rows and the regression that "auto" looks at; None where a schema has nothing to regress on, or is very wide."""
    if len(schema.encoded) > WIDEST:
        return None
    target = default_target(schema)
    try:
        return ground_of(schema, assumed_rows(schema, Assumptions(), target), target)
    except (ModelError, PlanError):
        return None
