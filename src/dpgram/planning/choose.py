"""What mechanism "auto" means: the one that a forecast under default assumptions expects to be best. A function of public facts alone."""

from __future__ import annotations

from collections.abc import Mapping

from dpgram.errors import MechanismError, ModelError, PlanError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT_CURVE, Mechanism
from dpgram.planning.assumed import Assumptions, assumed_rows, default_target
from dpgram.planning.expected import FEWEST, default_copies
from dpgram.planning.forecast import check_rows, forecast, listed
from dpgram.planning.ground import Ground, ground_of
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema

DEFAULT, WIDEST = "gaussian-noise", 400  # what "auto" takes where there is no forecast, and columns beyond which it makes none
ONCE = "The table can be read once only, so mechanisms of several rounds were left out."


def check_hint(schema: Schema, rows: int | None, options: Mapping[str, object]) -> None:
    """Raise where "auto" cannot choose with what it is given; needs no table."""
    if options:
        raise MechanismError(f"mechanism 'auto' takes no options, and {', '.join(options)} is given: name the mechanism.")
    if rows is not None:
        check_rows(rows)
    elif schema.neighbours is Neighbours.ADD_REMOVE:
        raise MechanismError(
            "mechanism 'auto' needs table_rows under neighbours = \"add-remove\", where the table's own number of rows is "
            "protected: give a public guess, or name the mechanism."
        )


def choose(
    schema: Schema, rows: int | None, budget: Budget, calibration: str = EXACT_CURVE, *, rereadable: bool = True
) -> tuple[Mechanism, str]:
    """The mechanism that "auto" takes for a public number of ``rows``, and why, for the label. Costs nothing: nothing private is asked.

    One of several rounds is not looked at where the table can be read only once. Additive Gaussian noise, which is never larger than the
    others' at equal privacy, where there is nothing to forecast: no regression, or a stream whose number of rows (None) nobody gave."""
    ground = _assumed_ground(schema)
    once = "" if rereadable else f" {ONCE}"
    if ground is None:
        why = f"the schema has no regression to look at, or more than {WIDEST} encoded columns"
    elif rows is None:
        why = f"how many rows a stream has is not known before it is read, and table_rows was not given.{once}"
    else:
        names = [name for name in listed(None) if rereadable or not registry.find(name).several]
        copies = min(FEWEST, default_copies(ground))
        made = forecast(ground, budget, rows, mechanisms=names, calibration=calibration, copies=copies)
        if made.best:
            typical = made.of(made.best).typical
            assert typical is not None
            return registry.find(made.best), (
                f"auto, by a forecast for {rows:,} rows under default assumptions (no data read): expected error {typical.error:.3g} for "
                f"the coefficient of {typical.name} on {made.target}. {made.verdict}{once}"
            )
        why = made.verdict
    return registry.find(DEFAULT), f"auto, without a forecast: {why}"


def _assumed_ground(schema: Schema) -> Ground | None:
    """Assumed rows and the regression that "auto" looks at; None where a schema has nothing to regress on, or is very wide."""
    if len(schema.encoded) > WIDEST:
        return None
    target = default_target(schema)
    try:
        return ground_of(schema, assumed_rows(schema, Assumptions(), target), target)
    except (ModelError, PlanError):
        return None
