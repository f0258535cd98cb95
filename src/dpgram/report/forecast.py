"""A plan for people: its tables as (header, rows), its words, and a figure of errors against epsilon and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpgram.planning.curves import Curve
from dpgram.planning.expected import Coefficient
from dpgram.planning.plan import Plan
from dpgram.report.figures import COLOURS, as_words, save_drawing
from dpgram.terms.budget import Neighbours

Rows = list[tuple[str, ...]]
MECHANISM_HEADER = ("mechanism", "noise sd", "error", "privacy error", "95 % interval", "detectable effect")
COEFFICIENT_HEADER = ("coefficient", "assumed", "error", "privacy error", "not private", "95 % interval", "detectable effect")
BOUND_HEADER = ("row bound", "rows clipped", "clipping error", "noise error", "total error", "")
UNKNOWN = "not identified"


def mechanism_rows(plan: Plan) -> Rows:
    """A line for every mechanism that can be used, the best first, and one for no privacy at all."""
    rows: Rows = []
    several = sum(expected.typical is not None for expected in plan.forecast.mechanisms) > 1
    for expected in plan.forecast.mechanisms:
        if expected.typical is not None:
            name = f"{expected.mechanism} (best)" if several and expected.mechanism == plan.best else expected.mechanism
            rows.append((name, _number(expected.noise_sd), *_four(expected.typical)))
    floor = plan.sampling_error
    sd = floor / 0.67449  # of a normal variate, from its median absolute error
    return [*rows, ("(no privacy)", "0", _number(floor), "0", _number(2 * 1.959964 * sd), _number((1.959964 + 0.841621) * sd))]


def refusals(plan: Plan) -> list[str]:
    """Mechanisms without a forecast, and why."""
    return [f"{e.mechanism}: {e.refused}" for e in plan.forecast.mechanisms if e.typical is None]


def coefficient_rows(plan: Plan) -> Rows:
    """A line for every coefficient, by the best mechanism."""
    listed = plan.forecast.of(plan.best).coefficients if plan.best else ()
    return [(c.name, _number(c.size), *_four(c)[:2], _number(c.sampling_error), *_four(c)[2:]) for c in listed]


def bound_rows(plan: Plan) -> Rows:
    rows: Rows = []
    for trade in plan.bounds:
        marks = ", ".join(word for word, holds in (("the schema's", trade.own), ("recommended", trade.recommended)) if holds)
        numbers = (_number(trade.shrinking_error), _number(trade.noise_error), _number(trade.error))
        rows.append((_number(trade.row_bound), f"{trade.shrunk:.1%}", *numbers, marks))
    return rows


def title(plan: Plan) -> str:
    made = plan.forecast
    return f"A release of {made.rows:,} rows at epsilon {made.budget.epsilon:g}, delta {made.budget.delta:g}: what to expect"


def captions(plan: Plan) -> dict[str, str]:
    """What stands below each table."""
    made, schema = plan.forecast, plan.ground.schema
    names = plan.ground.design.names
    typical = names[plan.ground.typical]
    numbers = len(plan.ground.places)
    protected = schema.neighbours is Neighbours.ADD_REMOVE or schema.unit_id is not None
    hint = " (your public guess; the table's own number is protected)" if protected else ""
    if schema.unit_id is not None:
        hint += f". All rows of one {schema.unit} together count as at most {schema.most_rows:,}, and the noise is that of so many rows"
    left = f" Left out, because constant in the sample: {', '.join(plan.ground.left_out)}." if plan.ground.left_out else ""
    return {
        "mechanisms": (
            f"All numbers are for a typical coefficient of the regression of {made.target}, which has {len(names)} coefficients: the "
            f"median of {numbers}, in the units of {typical}. error: median absolute error. privacy error: the part due to noise and "
            f"clipping. 95 % interval: its width. detectable effect: found by a 95 % test in 80 % of releases. noise sd: in "
            f"scaled units, in the weakest directions.\nRows: {made.rows:,}{hint}. Assumed, not read from data: {plan.assumed}.{left}"
        ),
        "coefficients": f"With {plan.best}, in the units of each coefficient. assumed: its size. not private: its error without noise.",
        "bounds": (
            f"Errors with {plan.best} for other row bounds. A smaller row bound needs less noise, but clips more rows. The schema's own "
            f"bound is recommended if its error is within 10 % of the best, otherwise the largest bound of which this is true. If the "
            f"relation is not linear, clipping does more harm than shown."
        ),
    }


def _four(c: Coefficient) -> tuple[str, str, str, str]:
    return _number(c.error), _number(c.privacy_error), _number(c.width), _number(c.detectable)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else UNKNOWN


def draw_curves(curves: Sequence[Curve], target: str, typical: str, axes: Sequence[Any]) -> None:
    """Errors of a typical coefficient against epsilon and against the number of rows, with what sampling alone leaves."""
    words = {"epsilon": "epsilon", "rows": "rows of the table"}
    for curve, ax in zip(curves, axes, strict=True):
        for place, (name, errors) in enumerate(curve.errors.items()):
            if known := _finite(curve.at, errors):
                ax.plot(*known, "o-", ms=3, lw=1.3, color=COLOURS[place % len(COLOURS)], label=name)
        if floor := _finite(curve.at, curve.sampling):
            ax.plot(*floor, ":", color="0.35", lw=1.6, label="no privacy")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(words[curve.quantity])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(as_words(f"expected error, coefficient of {typical}"))
    axes[0].set_title(as_words(f"Regression of {target}"), fontsize=10, loc="left")
    axes[-1].legend(frameon=False, fontsize=8)


def _finite(at: Sequence[float], values: Sequence[float]) -> list[tuple[float, ...]]:
    """The points that a logarithmic axis can show: all their x, and all their y; nothing where there are none."""
    return list(zip(*((x, y) for x, y in zip(at, values, strict=True) if math.isfinite(y) and y > 0), strict=True))


def save_curves(path: Path, curves: Sequence[Curve], target: str, typical: str, *, overwrite: bool = False) -> None:
    """Write the figure, whole or not at all."""
    grid = {"ncols": len(curves), "sharey": True, "squeeze": False}
    save_drawing(
        path, lambda figure: draw_curves(curves, target, typical, figure.subplots(**grid)[0]), (9.5, 4.2), overwrite=overwrite
    )
