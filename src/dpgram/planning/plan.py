"""All that a plan says, in one frozen result, and as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpgram.mechanisms.conversation import EXACT
from dpgram.planning.bounds import BoundTrade, bound_hardly_matters, row_bounds
from dpgram.planning.curves import Answer
from dpgram.planning.forecast import Forecast, forecast
from dpgram.planning.ground import NORMAL_MEDIAN, Ground
from dpgram.terms.budget import Budget

SAMPLE_WORDS = "moments of a sample of {rows} rows, which the custodian says is public"


@dataclass(frozen=True, eq=False)
class Plan:
    """What a release would give, from public facts alone. Nothing was read but what was assumed, or a public sample."""

    forecast: Forecast
    ground: Ground
    assumed: str  # in words
    assumptions: dict | None  # None where a public sample stands in for them
    bounds: tuple[BoundTrade, ...] = ()
    no_bounds: str = ""  # why there is no trade of row bounds, in words
    answer: Answer | None = None

    @property
    def best(self) -> str:
        """The mechanism that is expected to be best."""
        return self.forecast.best

    @property
    def sampling_error(self) -> float:
        """The typical coefficient's error without any privacy."""
        return NORMAL_MEDIAN * self.ground.in_typical_units(self.ground.sampling_sd(self.forecast.rows))

    @property
    def recommended_row_bound(self) -> float | None:
        return next((trade.row_bound for trade in self.bounds if trade.recommended), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: numbers that are infinite, not identified, are None."""
        made, schema = self.forecast, self.ground.schema
        return _plain(
            {
                "epsilon": made.budget.epsilon,
                "delta": made.budget.delta,
                "neighbours": schema.neighbours.value,
                "table_rows": made.rows,
                "assumed": self.assumed,
                "assumptions": self.assumptions,
                "sample_is_public": self.assumptions is None,
                "target": made.target,
                "features": [name for name in self.ground.plan.names],
                "left_out": list(self.ground.left_out),
                "typical": self.ground.plan.names[self.ground.typical],
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
                        "typical": asdict(e.typical),
                        "coefficients": [asdict(c) for c in e.coefficients],
                    }
                    for e in made.mechanisms
                ],
                "row_bounds": [asdict(trade) for trade in self.bounds],
                "recommended_row_bound": self.recommended_row_bound,
                "no_row_bounds": self.no_bounds or None,
                "answer": None if self.answer is None else asdict(self.answer),
            }
        )


def make_plan(
    found: Ground,
    budget: Budget,
    rows: int,
    *,
    assumed: str,
    assumptions: dict | None,
    mechanisms: Sequence[str] | None = None,
    calibration: str = EXACT,
    options: Mapping[str, float | str] | None = None,
    bounds: bool = True,
    answer: Answer | None = None,
) -> Plan:
    """The forecast of every mechanism, and the trade of row bounds for the best of them, where it depends on one."""
    made = forecast(found, budget, rows, mechanisms=mechanisms, calibration=calibration, options=options)
    trade: tuple[BoundTrade, ...] = ()
    why_not = bound_hardly_matters(made.best) if bounds and made.best else ""
    if bounds and made.best and not why_not:
        trade = row_bounds(found, made.best, budget, rows, calibration=calibration, options=options)
    return Plan(made, found, assumed, assumptions, trade, why_not, answer)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
