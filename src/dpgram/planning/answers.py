"""The smallest epsilon, or number of rows, that is good enough: for intervals of a wanted width, or for any interval at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np
from scipy.special import ndtri

from dpgram.accounting.gaussian import calibrate_mu
from dpgram.accounting.roots import largest
from dpgram.errors import PlanError
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import Mechanism
from dpgram.planning.curves import LARGEST, SMALLEST_EPSILON, Quantity, at_value
from dpgram.planning.expected import CONFIDENCE, FEWEST, Expected, How, default_copies, expect
from dpgram.planning.forecast import Forecast, listed
from dpgram.planning.ground import Ground
from dpgram.terms.budget import Budget

Array = np.ndarray
Width = float | Mapping[str, float]
"""How wide a 95 % interval may be: a typical one, or those of coefficients by name."""

START = {"epsilon": 1.0, "rows": 1e5}  # of a search
PRECISION, COARSE = (
    0.01,
    0.03,
)  # relative, of what a search finds; the latter by a mechanism that is slow to draw, whose chance is larger
ROUGHLY = 1.15  # within this factor, an epsilon that identifies anything is found
MORE = 1.3  # by this factor, more rows are tried until they do
BETTER = 1.05  # a mechanism that needs less by a smaller factor than this is not looked at
LARGEST_USUAL_EPSILON = 20.0  # a larger one is no advice


@dataclass(frozen=True)
class Answer:
    """The smallest epsilon, or number of rows, that gives intervals of ``widths``; None where none does."""

    quantity: str
    widths: dict[str, float]  # by coefficient
    value: float | None
    mechanism: str | None
    in_words: str


@dataclass(frozen=True)
class Unidentified:
    """What is said where most coefficients will not be identified: an epsilon that would do for the same rows, and a number of rows at the
    same epsilon, neither much more than is needed. None where nothing up to epsilon 20, or up to 10^10 rows, does."""

    epsilon: float | None
    rows: int | None
    in_words: str


def smallest(
    ground: Ground,
    quantity: Quantity,
    width: Width,
    delta: float,
    *,
    epsilon: float | None = None,
    rows: int | None = None,
    mechanisms: Sequence[str] | None = None,
    **how: Unpack[How],
) -> Answer:
    """The smallest epsilon at the given number of rows, or the fewest rows at the given epsilon, with intervals of ``width``."""
    if quantity not in LARGEST:
        raise PlanError(f"solve is {quantity!r} and must be epsilon or rows.")
    wanted = _wanted(ground, width)
    by_name = {_shown(ground, name): most for name, most in wanted.items()}
    told = ", ".join(f"{most:g} for {name}" for name, most in by_name.items())
    if quantity == "epsilon":
        if rows is None:
            raise PlanError("table_rows is not given, but it is needed to find the smallest epsilon.")
        not_private = 2 * float(-ndtri((1 - CONFIDENCE) / 2)) * ground.sampling_sd(rows)
        for name, most in wanted.items():
            if (floor := _of(ground, name, not_private)) >= most:
                too_wide = (
                    f"the interval of {_shown(ground, name)} is {floor:.4g} wide even without privacy, but {most:g} is wanted"
                )
                words = f"No epsilon is large enough: with {rows:,} rows, {too_wide}. More rows are needed."
                return Answer(quantity, by_name, None, None, words)
    elif epsilon is None:
        raise PlanError("epsilon is not given, but it is needed to find the smallest number of rows.")

    def excess(expected: Expected) -> float:
        """How wide the intervals are, over how wide they may be."""
        widths = np.array([c.width for c in expected.coefficients])
        return max(_of(ground, name, widths) / most for name, most in wanted.items())

    start, most = Budget(epsilon or 1.0, delta), LARGEST[quantity]
    found, chosen = _least(ground, quantity, excess, start, rows or 1, mechanisms, most, **how)
    if found is None:
        return Answer(
            quantity, by_name, None, None, f"Nothing up to {_amount(quantity, most)} gives intervals as narrow as {told}."
        )
    given = f"epsilon {epsilon:g}" if quantity == "rows" else f"{rows:,} rows"
    words = (
        f"At {given} and delta {delta:g}, {_amount(quantity, found)} is the smallest that is enough, with {chosen}. The width of 95 % "
        f"intervals is then at most {told}."
    )
    return Answer(quantity, by_name, found, chosen, words)


def unidentified(
    made: Forecast, ground: Ground, *, mechanisms: Sequence[str] | None = None, **how: Unpack[How]
) -> Unidentified | None:
    """What a plan says where the best mechanism does not identify the typical coefficient; None where it does."""
    best = made.of(made.best) if made.best else None
    if best is None or best.identified:
        return None
    how["copies"] = FEWEST
    names = listed(mechanisms, how.get("options"))

    def identified(name: str, quantity: Quantity, value: float) -> bool:
        return expect(ground, registry.find(name), *at_value(quantity, value, made.budget, made.rows), **how).identified

    epsilon, rows, limit = None, None, LARGEST_USUAL_EPSILON
    for name in names if made.rows > len(ground.truth) else ():  # else there are too few, with or without noise
        if made.budget.epsilon < limit and identified(name, "epsilon", limit):
            epsilon = _halved(partial(identified, name, "epsilon"), made.budget.epsilon, limit)
            limit, names = _round_up(epsilon / BETTER), [name]
    largest_tried = LARGEST_USUAL_EPSILON if epsilon is None else epsilon
    # As many times the rows do the same to noise as as many times mu: where that is not enough, more are tried.
    growth = calibrate_mu(Budget(max(largest_tried, made.budget.epsilon), made.budget.delta)) / calibrate_mu(made.budget)
    count = max(made.rows * growth, len(ground.truth) + 2.0)
    while rows is None and count <= LARGEST["rows"]:
        rows = _round_up(count) if any(identified(name, "rows", _round_up(count)) for name in names) else None
        count *= MORE
    these, here = f"{made.rows:,} rows", f"epsilon {made.budget.epsilon:g}"
    some = any(math.isfinite(c.width) for c in best.coefficients)
    said = [
        f"{'Most coefficients will not' if some else 'No coefficient will'} be identified at {here} with {these}. The noise alone "
        f"could produce everything that the release would show about them, so their intervals are unbounded.",
        f"With {these}, no budget up to epsilon {LARGEST_USUAL_EPSILON:g} is enough."
        if epsilon is None
        else f"With {these}, epsilon {epsilon:g} is enough for a typical coefficient.",
        f"At {here}, no number up to {_amount('rows', LARGEST['rows'])} is enough."
        if rows is None
        else f"At {here}, {_amount('rows', rows)} are enough.",
    ]
    return Unidentified(epsilon, None if rows is None else int(rows), " ".join(said))


Excess = Callable[[Expected], float]
"""At most one where a forecast is good enough; infinite where it is not known by how much it is not."""


def _least(
    ground: Ground,
    quantity: Quantity,
    excess: Excess,
    budget: Budget,
    rows: int,
    mechanisms: Sequence[str] | None,
    most: float,
    **how: Unpack[How],
) -> tuple[float | None, str]:
    """The smallest epsilon, or number of rows, up to ``most`` that is good enough, rounded up, and by which mechanism."""
    lowest = SMALLEST_EPSILON if quantity == "epsilon" else float(len(ground.truth) + 2)

    def rounded(value: float, limit: float) -> float:
        within = min(max(value, lowest), limit)
        return float(math.ceil(within)) if quantity == "rows" else _round_up(within)

    def search(mechanism: Mechanism, start: float, limit: float, told: How) -> float | None:
        def curve(inverse: float) -> float:
            return excess(expect(ground, mechanism, *at_value(quantity, rounded(1 / inverse, limit), budget, rows), **told))

        ends = {"lowest": 1 / limit, "ceiling": 1 / lowest}
        precision = PRECISION if mechanism.batched else COARSE
        inverse = largest(curve, 1.0, 1 / start, slope=1.0, precision=precision, height=math.log, **ends)
        return rounded(1 / inverse, limit) if inverse else None

    found, chosen, copies = None, "", how.get("copies") or default_copies(ground)
    for name in listed(mechanisms, how.get("options")):
        mechanism, limit = registry.find(name), most if found is None else found / BETTER
        if limit < lowest:
            break
        start: float | None = START[quantity] if found is None else limit
        if start is not None and not mechanism.batched and copies > 2 * FEWEST:  # slow to draw: fewer say where to start
            start = search(mechanism, start, limit, {**how, "copies": FEWEST})
        if start is not None and (least := search(mechanism, start, limit, how)) is not None:
            found, chosen = least, name
    return found, chosen


def _halved(good: Callable[[float], bool], low: float, high: float) -> float:
    """Roughly the smallest value that is good, where ``high`` is and ``low`` is not; it was tried itself."""
    while high > ROUGHLY * low:
        middle = _round_up(math.sqrt(low * high))
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _wanted(ground: Ground, width: Width) -> dict[str | None, float]:
    """How wide intervals may be, by coefficient; None stands for the typical one."""
    wanted: dict[str | None, float] = dict(width.items()) if isinstance(width, Mapping) else {None: width}
    if not wanted:
        raise PlanError("the target width names no coefficient. Name one, or give one number for a typical coefficient.")
    for name, most in wanted.items():
        if name is not None and name not in ground.design.names:
            known = ", ".join(ground.design.names)
            raise PlanError(f"a target width is given for {name!r}, but the coefficients of this regression are: {known}.")
        if isinstance(most, bool) or not (isinstance(most, float | int) and math.isfinite(most) and most > 0):
            units = f"in the units of the coefficient of {_shown(ground, name)}"
            raise PlanError(f"the target width is {most!r} and must be a positive number, {units}.")
    return wanted


def _shown(ground: Ground, name: str | None) -> str:
    return ground.design.names[ground.typical] if name is None else name


def _of(ground: Ground, name: str | None, values: Array) -> float:
    """What (p,) ``values`` say of one coefficient, or of the typical one."""
    if not len(values):
        return math.inf  # the mechanism was refused
    return ground.in_typical_units(values) if name is None else float(values[ground.design.names.index(name)])


def _amount(quantity: Quantity, value: float) -> str:
    return f"{value:,.0f} rows" if quantity == "rows" else f"epsilon {value:g}"


def _round_up(value: float) -> float:
    """To three digits, upwards."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / step - 1e-9) * step:.3g}")
