"""How a forecast changes with epsilon and with the number of rows, and the smallest of either that is good enough.

The same normal numbers stand behind every point, so that curves are smooth and a search by halving finds their crossing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, Unpack

import numpy as np
from scipy.special import ndtri

from dpgram.errors import PlanError
from dpgram.mechanisms import registry
from dpgram.planning.expected import CONFIDENCE, FEWEST, How, expect
from dpgram.planning.forecast import listed
from dpgram.planning.ground import NORMAL_MEDIAN, Ground
from dpgram.terms.budget import Budget

POINTS, SPAN = 9, 30.0
LARGEST = {"epsilon": 100.0, "rows": 1e10}
SMALLEST_EPSILON = 1e-3
WITHIN = 1.01  # of a search's answer
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


@dataclass(frozen=True)
class Answer:
    """The smallest epsilon, or number of rows, that gives intervals of ``width``; None where none does."""

    quantity: str
    width: float
    value: float | None
    mechanism: str | None
    in_words: str


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
        name: tuple(expect(ground, registry.find(name), *_at(quantity, x, budget, rows), **how).error for x in at)
        for name in listed(mechanisms, how.get("options"))
    }
    counts = at if quantity == "rows" else [rows] * len(at)
    sampling = tuple(NORMAL_MEDIAN * ground.in_typical_units(ground.sampling_sd(count)) for count in counts)
    return Curve(quantity, tuple(at), errors, sampling)


def smallest(
    ground: Ground,
    quantity: Quantity,
    width: float,
    delta: float,
    *,
    epsilon: float | None = None,
    rows: int | None = None,
    mechanisms: Sequence[str] | None = None,
    **how: Unpack[How],
) -> Answer:
    """The smallest epsilon at the given number of rows, or the fewest rows at the given epsilon, with typical intervals of ``width``."""
    if quantity not in LARGEST:
        raise PlanError(f"solve is {quantity!r} and must be epsilon or rows.")
    if not (isinstance(width, float | int) and math.isfinite(width) and width > 0):
        raise PlanError(
            f"the target width is {width!r} and must be a positive number, in the units of the typical coefficient."
        )
    top = LARGEST[quantity]
    bottom = SMALLEST_EPSILON if quantity == "epsilon" else float(len(ground.truth) + 2)
    name = ground.design.names[ground.typical]
    if quantity == "epsilon":
        if rows is None:
            raise PlanError("table_rows is not given, and it is needed to find the smallest epsilon.")
        floor = 2 * float(-ndtri((1 - CONFIDENCE) / 2)) * ground.in_typical_units(ground.sampling_sd(rows))
        if floor >= width:
            words = (
                f"with {rows:,} rows the interval of {name} is {floor:.4g} wide without any privacy, above the wanted {width:g}"
            )
            return Answer(quantity, width, None, None, f"No epsilon gets there: {words}. More rows are needed.")
    elif epsilon is None:
        raise PlanError("epsilon is not given, and it is needed to find the smallest number of rows.")
    start = Budget(epsilon or 1.0, delta)

    def narrow(mechanism: str, value: float) -> bool:
        typical = expect(ground, registry.find(mechanism), *_at(quantity, value, start, rows or 1), **how).typical
        return typical is not None and typical.width <= width

    best = math.inf
    chosen = ""
    for mechanism in listed(mechanisms, how.get("options")):
        limit = min(top, best / 1.05)  # a mechanism that is hardly better is not looked at
        if narrow(mechanism, limit):
            best = _crossing(partial(narrow, mechanism), bottom, limit)
            chosen = mechanism
    if not chosen:
        most = f"{top:,.0f} rows" if quantity == "rows" else f"epsilon {top:g}"
        return Answer(quantity, width, None, None, f"Nothing up to {most} gives an interval of {name} as narrow as {width:g}.")
    value = float(math.ceil(best)) if quantity == "rows" else _round_up(best)
    what = f"{value:,.0f} rows" if quantity == "rows" else f"epsilon {value:g}"
    given = f"epsilon {epsilon:g}" if quantity == "rows" else f"{rows:,} rows"
    words = f"The smallest at {given} and delta {delta:g} is {what}, by {chosen}: 95 % intervals of {name} are then at most {width:g} wide."
    return Answer(quantity, width, value, chosen, words)


def _at(quantity: str, value: float, budget: Budget, rows: int) -> tuple[Budget, int]:
    """The budget and the number of rows, with ``value`` for one of them."""
    return (Budget(value, budget.delta), rows) if quantity == "epsilon" else (budget, math.ceil(value))


def _crossing(good: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest value that is good, from above, where ``high`` is and goodness grows; by halving in logs."""
    if good(low):
        return low
    while high > WITHIN * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _round_up(value: float) -> float:
    """To three digits, upwards."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / step - 1e-9) * step:.3g}")


def plain_data(value: Any) -> Any:
    """``value`` for JSON: tuples as lists, and None for numbers that are infinite or unknown."""
    if isinstance(value, dict):
        return {key: plain_data(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
