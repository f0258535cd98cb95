"""Tests of linear restrictions on coefficients, and the p-values that belong to intervals.

A hypothesis is ``combinations @ coefficients = values``, one row for each restriction, in own units. It has one p-value, wherever it is
asked for: a table of coefficients, a joint test, a contrast. A single restriction is tested by the test whose interval ``intervals``
shows, so the interval at 1 - p just touches the value. Where a set has a gap its interval spans the gap, and so does the p-value: it is
that of the value farther out which the test rejects least.

Several restrictions are tested by Wald's statistic, or by the profile of ``Pivot.locally`` where one of their combinations is identified
doubtfully. Combinations about which the release says nothing take no part, and the degrees of freedom say how many do: the others are
tested as if only they had been asked for, which is a test of the same hypothesis. Where all of them are so, the exact profile tests them
together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dpgram.errors import ModelError
from dpgram.inference.bootstrap import Simulated
from dpgram.inference.intervals import AUTO, DOUBTFUL, FIELLER, judged, turned, uncertainty, valued
from dpgram.inference.pivot import Pivot, p_value, profile
from dpgram.regression.channel import Channel

Array = np.ndarray

DEPENDENT = 1e-9  # what a restriction adds to those before it, in its own size, is not less


@dataclass(frozen=True)
class Tested:
    """What a test of several restrictions together says."""

    statistic: float  # chi-square
    degrees: int  # its degrees of freedom: how many combinations were tested
    p_value: float


def statistics(seen: Channel, values: Array, combinations: Array | None = None, *, method: str = AUTO) -> Array:
    """Of single restrictions, each by itself, by the tests that the intervals of ``method`` come from: chi-square with one degree."""
    away, se = valued(combinations, seen.own(seen.estimate)) - values, uncertainty(seen, combinations).se
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(away == 0, 0.0, (away / se) ** 2)
    rows, wanted = turned(seen, combinations), values - valued(combinations, seen.base)
    if method == AUTO:
        weak, doubtful = judged(seen, combinations)
    else:
        weak, doubtful = np.full(len(rows), method == FIELLER), np.zeros(len(rows), dtype=bool)
    for which, pivot in ((weak, Pivot.exactly), (doubtful, Pivot.locally)):
        if which.any():
            of = pivot(seen)
            above = np.minimum(profile(of, rows[which, None, :], wanted[which, None]), of.far)
            between = (
                away[which] * (wanted[which] - rows[which] @ of.estimate) >= 0
            )  # the estimate and what the test rejects least
            found[which] = np.where(between, 0.0, above)
    return found


def p_values(
    seen: Channel, values: Array, combinations: Array | None = None, *, method: str = AUTO, simulated: Simulated | None = None
) -> Array:
    """Of single restrictions. ``simulated`` is what the bootstrap goes by."""
    found = statistics(seen, values, combinations, method=method)
    by_law = np.array([p_value(one, 1, seen.degrees) for one in found])
    return by_law if simulated is None else np.maximum(by_law, simulated.p_values(np.sqrt(found), combinations))


def jointly(
    seen: Channel, values: Array, combinations: Array, *, method: str = AUTO, simulated: Simulated | None = None
) -> Tested:
    """All restrictions together."""
    rows, wanted = combinations @ seen.to_own, values - combinations @ seen.base
    turn, triangle = apart(rows * np.sqrt(uncertainty(seen).spent))
    if len(rows) == 1:
        (one,) = statistics(seen, values, combinations, method=method)
        (own_p,) = p_values(seen, values, combinations, method=method, simulated=simulated)
        return Tested(float(one), 1, float(own_p))
    of = Pivot.exactly(seen) if method == FIELLER else None
    if method == AUTO:
        axes = _known(turn, seen.hidden)
        if axes.shape[1]:
            back = axes.T @ solve_triangular(triangle, np.column_stack([rows, wanted]), trans="T")
            rows, wanted = back[:, :-1], back[:, -1]
            if _known(turn @ axes, seen.gain_below(DOUBTFUL)).shape[1] < axes.shape[1]:
                of = Pivot.locally(seen)
        else:
            of = Pivot.exactly(seen)
    statistic = _wald(seen, rows, wanted) if of is None else float(profile(of, rows[None], wanted[None])[0])
    p = p_value(statistic, len(rows), seen.degrees)
    return Tested(statistic, len(rows), p if simulated is None else max(p, simulated.joint_p_value(statistic, combinations)))


def apart(rows: Array) -> tuple[Array, Array]:
    """Orthonormal columns (p, c) with the span of restrictions (c, p), and the triangle that leads back. An error where one of them adds
    nothing to those before it."""
    if len(rows) == 0:
        raise ModelError("a test needs at least one restriction. Name a coefficient, or write one such as 'a = b'.")
    turn, triangle = np.linalg.qr(rows.T)
    if not np.isfinite(turn).all():  # no table of people makes such a release
        raise ModelError(
            "the numbers of the release are so far apart in size that double precision tells nothing of this model."
        )
    own = np.zeros(len(rows))  # what each restriction adds to those before it
    own[: len(turn)] = np.abs(np.diag(triangle))
    if (repeated := own < DEPENDENT * np.linalg.norm(rows, axis=1)).any():
        place = int(np.argmax(repeated)) + 1
        raise ModelError(f"restriction {place} repeats or contradicts the ones before it. Leave it out.")
    return turn, triangle


def _known(turn: Array, hidden: Array) -> Array:
    """(c, k) the combinations of the orthonormal columns of ``turn`` (p, c) that owe at most half of their variance to what is hidden."""
    if not hidden.any():
        return np.eye(turn.shape[1])
    shares, axes = np.linalg.eigh(turn[hidden].T @ turn[hidden])
    return axes[:, shares <= 0.5]


def _wald(seen: Channel, rows: Array, wanted: Array) -> float:
    """How far the estimate is from the restrictions, in units of its covariance."""
    known = uncertainty(seen)
    along = rows @ np.where(seen.hidden, 0.0, seen.weight * seen.estimate / seen.divisor)
    leaning = np.linalg.solve(seen.to_own.T, rows.T).T @ known.leaning if seen.by_clipping > 0 else rows
    covariance = (rows * (known.by_noise + known.by_rows)) @ rows.T + (leaning * known.by_clipping) @ leaning.T
    covariance += seen.spread * np.outer(along, along)
    away = wanted - rows @ seen.estimate
    scale = np.sqrt(np.diag(covariance))
    return float(away / scale @ np.linalg.solve(covariance / np.outer(scale, scale), away / scale))
