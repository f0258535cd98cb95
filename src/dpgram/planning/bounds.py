"""Choosing the row bound: a smaller one needs less noise, and shrinks more rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from dpgram.mechanisms import registry
from dpgram.planning.expected import How, expect
from dpgram.planning.ground import Ground
from dpgram.terms.budget import Budget
from dpgram.terms.schema import SMALLEST_ROW_BOUND

CLOSE = 1.10  # a bound whose error is within 10 % of the smallest is good enough
SHARES = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0)  # of rows that are shrunk


@dataclass(frozen=True)
class BoundTrade:
    """What one row bound would do to a typical coefficient, in its own units."""

    row_bound: float
    shrunk: float  # the share of assumed rows that are longer
    shrinking_error: float
    noise_error: float
    error: float  # both, and the sampling of rows
    own: bool = False  # whether it is the schema's
    recommended: bool = False


def bound_hardly_matters(mechanism: str) -> str:
    """Why no trade is shown for ``mechanism``, in words; empty where there is one.

    One of several rounds shrinks rows to a length that it chooses itself, after it has whitened them: the schema's bound sets where its
    first round starts from, and errors are the same for all bounds but absurd ones."""
    if not registry.find(mechanism).several:
        return ""
    return (
        f"No row bounds are compared, because the schema's row_bound hardly changes the errors of {mechanism}. This mechanism whitens the "
        f"rows and then clips them to a length of its own choice. To compare row bounds, plan for a mechanism that reads the table once, "
        f"such as gaussian-noise."
    )


def row_bounds(ground: Ground, mechanism: str, budget: Budget, rows: int, **how: Unpack[How]) -> tuple[BoundTrade, ...]:
    """The trade for some eight bounds, largest first. The largest that is about as good as the best is recommended.

    The largest, because shrinking is a regression with weights, which is harmless where a linear model holds; assumed rows obey one, and
    real ones may not."""
    own = ground.schema.effective_row_bound
    norms = ground.norms()
    shown = (float(f"{np.quantile(norms, 1 - share):.4g}") for share in SHARES)
    tried = {own, ground.schema.largest_norm, *(b for b in shown if SMALLEST_ROW_BOUND <= b < ground.schema.largest_norm)}
    trades = []
    for row_bound in sorted(tried, reverse=True):
        at = expect(ground.with_bound(row_bound), registry.find(mechanism), budget, rows, **how).typical
        if at is not None:
            shrunk = float(np.mean(norms > row_bound * (1 + 1e-12)))
            trades.append(BoundTrade(row_bound, shrunk, at.shrinking_error, at.noise_error, at.error, own=row_bound == own))
    limit = CLOSE * min((trade.error for trade in trades), default=0.0)
    good = [trade for trade in trades if trade.error <= limit]
    best = next((trade for trade in good if trade.own), good[0] if good else None)
    return tuple(replace(trade, recommended=trade is best) for trade in trades)
