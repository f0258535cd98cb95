"""How a forecast changes with epsilon and with the number of rows.

The same normal numbers stand behind every point, so that curves are smooth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Unpack

import numpy as np
from threadpoolctl import threadpool_limits

from dpgram.mechanisms import registry
from dpgram.planning.expected import FEWEST, How, expect
from dpgram.planning.forecast import listed
from dpgram.planning.ground import NORMAL_MEDIAN, Ground
from dpgram.terms.budget import Budget

POINTS, SPAN = 9, 30.0
LARGEST = {"epsilon": 100.0, "rows": 1e10}
SMALLEST_EPSILON = 1e-3
Quantity = Literal["epsilon", "rows"]


@dataclass(frozen=True)
class Curve:
    """Errors of a typical coefficient, in its own units, along epsilon or along the number of rows."""

    quantity: str
    at: tuple[float, ...]
    errors: dict[str, tuple[float, ...]]  # by mechanism; infinite where it cannot be used
    sampling: tuple[float, ...]  # not private

    def to_dict(self) -> dict:
        return plain_data(asdict(self))


@threadpool_limits.wrap(limits=1, user_api="blas")  # as for a plan
def curve(
    ground: Ground,
    quantity: Quantity,
    budget: Budget,
    rows: int,
    *,
    mechanisms: Sequence[str] | None = None,
    points: int = POINTS,
    **how: Unpack[How],
) -> Curve:
    """Errors from a thirtieth of the given epsilon (or rows) to thirty times as much."""
    how.setdefault("copies", FEWEST)
    centre = budget.epsilon if quantity == "epsilon" else float(rows)
    least = SMALLEST_EPSILON if quantity == "epsilon" else float(len(ground.truth) + 1)
    ends = max(centre / SPAN, least), max(min(centre * SPAN, LARGEST[quantity]), 2 * least)
    at = [float(f"{value:.3g}") if quantity == "epsilon" else float(math.ceil(value)) for value in np.geomspace(*ends, points)]
    errors = {
        name: tuple(expect(ground, registry.find(name), *at_value(quantity, x, budget, rows), **how).error for x in at)
        for name in listed(mechanisms, how.get("options"))
    }
    counts = at if quantity == "rows" else [rows] * len(at)
    sampling = tuple(NORMAL_MEDIAN * ground.in_typical_units(ground.sampling_sd(count)) for count in counts)
    return Curve(quantity, tuple(at), errors, sampling)


def at_value(quantity: str, value: float, budget: Budget, rows: int) -> tuple[Budget, int]:
    """The budget and the number of rows, with ``value`` for one of them."""
    return (Budget(value, budget.delta), rows) if quantity == "epsilon" else (budget, math.ceil(value))


def plain_data(value: Any) -> Any:
    """``value`` for JSON: tuples as lists, and None for numbers that are infinite or unknown."""
    if isinstance(value, dict):
        return {key: plain_data(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
