"""All that a plan says, in one frozen result, and as plain data; and how it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dpgram.errors import PlanError
from dpgram.mechanisms.conversation import EXACT_CURVE
from dpgram.planning.answers import Answer, Unidentified, Width, smallest, unidentified
from dpgram.planning.assumed import Assumptions, assumed_in_words, assumed_rows, default_target
from dpgram.planning.bounds import BoundTrade, bound_hardly_matters, row_bounds
from dpgram.planning.curves import Quantity, plain_data
from dpgram.planning.expected import How
from dpgram.planning.forecast import Forecast, forecast
from dpgram.planning.ground import NORMAL_MEDIAN, Ground, alike_in_words, ground_of
from dpgram.terms.budget import Budget, warn_of_delta
from dpgram.terms.schema import Schema

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Plan:
    """What a release is expected to give. ``dpgram.plan`` returns it.

    A plan comes from public facts and assumptions, or from a public sample. No private row was read and no budget was spent.

    Attributes
    ----------
    forecast : Forecast
        Expected errors, intervals and detectable effects of every mechanism.
    ground : Ground
        The assumed rows and the regression that the forecast looks at.
    assumed : str
        The assumptions in words.
    assumptions : dict or None
        The assumptions as numbers. None if a public sample was used.
    bounds : tuple of BoundTrade
        Expected errors for several row bounds. Empty if the best mechanism hardly depends on the row bound.
    no_bounds : str
        Why no row bounds are compared, in words.
    answer : Answer or None
        The smallest epsilon or number of rows, if ``target_width`` was given.
    unidentified : Unidentified or None
        How much epsilon or how many rows would be enough, if most coefficients will not be identified.

    Examples
    --------
    >>> from dpgram import Numeric, Schema, plan
    >>> schema = Schema(unit="person", columns=[Numeric("income", 0, 100), Numeric("age", 0, 100)])
    >>> made = plan(schema, epsilon=1.0, delta=1e-6, table_rows=10_000, mechanisms=["gaussian-noise"])
    >>> made.best
    'gaussian-noise'
    """

    forecast: Forecast
    ground: Ground
    assumed: str
    assumptions: dict | None
    bounds: tuple[BoundTrade, ...] = ()
    no_bounds: str = ""
    answer: Answer | None = None
    unidentified: Unidentified | None = None

    @property
    def best(self) -> str:
        """Name of the mechanism with the smallest expected error. Empty if none can be used."""
        return self.forecast.best

    @property
    def sampling_error(self) -> float:
        """Expected error of a typical coefficient without any privacy noise."""
        return NORMAL_MEDIAN * self.ground.in_typical_units(self.ground.sampling_sd(self.forecast.rows))

    @property
    def recommended_row_bound(self) -> float | None:
        """The recommended row bound. None if no row bounds are compared."""
        return next((trade.row_bound for trade in self.bounds if trade.recommended), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON.

        Returns
        -------
        dict
            Everything that the plan says. Infinite numbers, which mean "not identified", are None.
        """
        made, schema = self.forecast, self.ground.schema
        return plain_data(
            {
                "epsilon": made.budget.epsilon,
                "delta": made.budget.delta,
                "neighbours": schema.neighbours.value,
                "table_rows": made.rows,
                "assumed": self.assumed,
                "assumptions": self.assumptions,
                "sample_is_public": self.assumptions is None,
                "target": made.target,
                "features": self.ground.design.names,
                "left_out": self.ground.left_out,
                "typical": self.ground.design.names[self.ground.typical],
                "row_bound": made.row_bound,
                "sampling_error": self.sampling_error,
                "best": made.best,
                "why": made.why,
                "mechanisms": [
                    {"name": e.mechanism, "refused": e.refused}
                    if e.typical is None
                    else {
                        "name": e.mechanism,
                        "noise_sd": e.noise_sd,
                        "passes": e.passes,
                        "rounds": e.rounds,
                        "typical": asdict(e.typical),
                        "coefficients": [asdict(c) for c in e.coefficients],
                    }
                    for e in made.mechanisms
                ],
                "row_bounds": [asdict(trade) for trade in self.bounds],
                "recommended_row_bound": self.recommended_row_bound,
                "no_row_bounds": self.no_bounds or None,
                "answer": None if self.answer is None else asdict(self.answer),
                "unidentified": None if self.unidentified is None else asdict(self.unidentified),
            }
        )


@threadpool_limits.wrap(limits=1, user_api="blas")  # matrices are small: more threads would only wait for each other
def make_plan(
    schema: Schema,
    *,
    epsilon: float | None,
    delta: float,
    rows: int | None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    mechanisms: Sequence[str] | None = None,
    calibration: str = EXACT_CURVE,
    assumptions: Assumptions | None = None,
    sample: Array | None = None,
    target_width: Width | None = None,
    solve: Quantity = "epsilon",
    options: Mapping[str, float | str] | None = None,
) -> Plan:
    """The forecast of every mechanism for a table of ``rows`` rows, and the trade of row bounds for the best, where it depends on one.

    ``sample`` are the rows of a public table in scaled units; without one, rows are made from ``assumptions``."""
    named = default_target(schema) if target is None else target
    if sample is None:
        guess = Assumptions() if assumptions is None else assumptions
        stands_for, words, data = assumed_rows(schema, guess, named), assumed_in_words(schema, guess), guess.to_dict()
    else:
        words = f"the moments of a sample of {len(sample):,} rows, which the custodian says is public"
        stands_for, data = sample, None
    ground = ground_of(schema, stands_for, named, features)
    if assumptions is not None:
        ground = replace(ground, counted=assumptions.counted, given_design_effect=assumptions.design_effect)
    words += alike_in_words(ground)
    answer = None
    how: How = {"calibration": calibration, "options": options}
    if target_width is not None:
        answer = smallest(ground, solve, target_width, delta, epsilon=epsilon, rows=rows, mechanisms=mechanisms, **how)
        if answer.value is not None:
            epsilon, rows = (answer.value, rows) if solve == "epsilon" else (epsilon, int(answer.value))
    if epsilon is None or rows is None:
        missing = "epsilon" if epsilon is None else "table_rows"
        unanswered = f"{answer.in_words} " if answer else ""
        raise PlanError(f"{unanswered}{missing} is not given, but a forecast needs it.")
    budget = Budget(epsilon, delta)
    made = forecast(ground, budget, rows, mechanisms=mechanisms, **how)
    why_not = bound_hardly_matters(made.best) if made.best else ""
    trade = row_bounds(ground, made.best, budget, rows, **how) if made.best and not why_not else ()
    hidden = unidentified(made, ground, mechanisms=mechanisms, **how)
    units = -(-rows // schema.most_rows)  # as a plan takes them: all of their rows count in full
    warn_of_delta(
        budget, units, "rows" if schema.unit_id is None else "units", stacklevel=5
    )  # at the caller of ``dpgram.plan``
    return Plan(made, ground, words, data, trade, why_not, answer, hidden)


def check_sample(public: bool, assumptions: Assumptions | None) -> None:
    """Raise unless a sample may be read: before it is."""
    if not public:
        raise PlanError(
            "a sample is given, but nobody says that it is public. A plan costs no budget, so it must not read private rows. Use a "
            "published table or made-up rows, and pass sample_is_public=True (--sample-is-public). Or leave the sample out."
        )
    if assumptions is not None:
        raise PlanError(
            "both a sample and assumptions are given, but the sample would replace the assumptions. Give one of the two."
        )
