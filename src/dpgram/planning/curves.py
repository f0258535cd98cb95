"""How a forecast changes with epsilon and with the number of rows, and the smallest of either that is good enough.

The same normal numbers stand behind every point, so that curves are smooth and a search by halving finds their crossing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri

from dpgram.errors import PlanError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT_CURVE
from dpgram.planning.expected import CONFIDENCE, FEWEST, Coefficient, expect
from dpgram.planning.forecast import listed
from dpgram.planning.ground import NORMAL_MEDIAN, Ground
from dpgram.terms.budget import Budget

POINTS = 9
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
        errors = {name: [_plain(value) for value in line] for name, line in self.errors.items()}
        return {
            "quantity": self.quantity,
            "at": list(self.at),
            "errors": errors,
            "sampling": [_plain(v) for v in self.sampling],
        }


@dataclass(frozen=True)
class Answer:
    """The smallest epsilon, or number of rows, that gives intervals of ``width``; None where none does."""

    quantity: str
    width: float
    value: float | None
    mechanism: str | None
    in_words: str


def curve(
    found: Ground,
    quantity: Quantity,
    budget: Budget,
    rows: int,
    *,
    mechanisms: Sequence[str] | None = None,
    calibration: str = EXACT_CURVE,
    options: Mapping[str, float | str] | None = None,
    span: float = 30.0,
    points: int = POINTS,
    copies: int | None = FEWEST,
) -> Curve:
    """Errors from 1/span of the given epsilon (or rows) to span times as much."""
    centre = budget.epsilon if quantity == "epsilon" else float(rows)
    least = SMALLEST_EPSILON if quantity == "epsilon" else float(len(found.truth) + 1)
    ends = max(centre / span, least), max(min(centre * span, LARGEST[quantity]), 2 * least)
    at = [float(f"{value:.3g}") if quantity == "epsilon" else float(math.ceil(value)) for value in np.geomspace(*ends, points)]
    errors: dict[str, tuple[float, ...]] = {}
    for name in listed(mechanisms, dict(options or {})):
        line = [
            typical.error
            if (typical := _typical(found, name, quantity, x, budget, rows, calibration, options, copies))
            else math.inf
            for x in at
        ]
        errors[name] = tuple(line)
    counts = at if quantity == "rows" else [rows] * len(at)
    sampling = tuple(NORMAL_MEDIAN * found.in_typical_units(found.sampling_sd(count)) for count in counts)
    return Curve(quantity, tuple(at), errors, sampling)


def smallest(
    found: Ground,
    quantity: Quantity,
    width: float,
    delta: float,
    *,
    epsilon: float | None = None,
    rows: int | None = None,
    mechanisms: Sequence[str] | None = None,
    calibration: str = EXACT_CURVE,
    options: Mapping[str, float | str] | None = None,
    copies: int | None = None,
) -> Answer:
    """The smallest epsilon at the given number of rows, or the fewest rows at the given epsilon, with typical intervals of ``width``."""
    if quantity not in LARGEST:
        raise PlanError(f"solve is {quantity!r} and must be epsilon or rows.")
    if not (isinstance(width, float | int) and math.isfinite(width) and width > 0):
        raise PlanError(
            f"the target width is {width!r} and must be a positive number, in the units of the typical coefficient."
        )
    top = LARGEST[quantity]
    bottom = SMALLEST_EPSILON if quantity == "epsilon" else float(len(found.truth) + 2)
    name = found.plan.names[found.typical]
    if quantity == "epsilon":
        if rows is None:
            raise PlanError("table_rows is not given, and it is needed to find the smallest epsilon.")
        floor = 2 * float(-ndtri((1 - CONFIDENCE) / 2)) * found.in_typical_units(found.sampling_sd(rows))
        if floor >= width:
            words = (
                f"with {rows:,} rows the interval of {name} is {floor:.4g} wide without any privacy, above the wanted {width:g}"
            )
            return Answer(quantity, width, None, None, f"No epsilon gets there: {words}. More rows are needed.")
    elif epsilon is None:
        raise PlanError("epsilon is not given, and it is needed to find the smallest number of rows.")
    start = Budget(epsilon or 1.0, delta)

    def reaches(mechanism: str) -> Callable[[float], bool]:
        def wide_enough(value: float) -> bool:
            typical = _typical(found, mechanism, quantity, value, start, rows or 1, calibration, options, copies)
            return typical is not None and typical.width <= width

        return wide_enough

    best: float | None = None
    chosen: str | None = None
    for mechanism in listed(mechanisms, dict(options or {})):
        good = reaches(mechanism)
        if not good(top if best is None else best / 1.05):  # a mechanism that is hardly better is not looked at
            continue
        best, chosen = _crossing(good, bottom, top if best is None else best / 1.05), mechanism
    if best is None or chosen is None:
        limit = f"{top:,.0f} rows" if quantity == "rows" else f"epsilon {top:g}"
        return Answer(quantity, width, None, None, f"Nothing up to {limit} gives an interval of {name} as narrow as {width:g}.")
    found_value = float(math.ceil(best)) if quantity == "rows" else _round_up(best)
    what = f"{found_value:,.0f} rows" if quantity == "rows" else f"epsilon {found_value:g}"
    given = f"epsilon {epsilon:g}" if quantity == "rows" else f"{rows:,} rows"
    words = f"The smallest at {given} and delta {delta:g} is {what}, by {chosen}: 95 % intervals of {name} are then at most {width:g} wide."
    return Answer(quantity, width, found_value, chosen, words)


def _typical(
    found: Ground,
    mechanism: str,
    quantity: str,
    value: float,
    budget: Budget,
    rows: int,
    calibration: str,
    options: Mapping[str, float | str] | None,
    copies: int | None,
) -> Coefficient | None:
    at = Budget(value, budget.delta) if quantity == "epsilon" else budget
    count = math.ceil(value) if quantity == "rows" else rows
    return expect(found, registry.find(mechanism), at, count, calibration, options, copies).typical


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


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
