"""The root of a function by Brent's method, step for step as ``scipy.optimize.brentq`` takes it, to the same bits.

Importing ``scipy.optimize`` takes a quarter of the processor time of a plan, and half of that of a small release; nothing else of it is
used here."""

from __future__ import annotations

import math
from collections.abc import Callable

NEAR, NEAR_RELATIVE = 1e-12, 4 * 2.0**-52  # how close to the root the answer is
MOST_STEPS = 100


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where ``function``, whose signs differ at ``low`` and ``high``, is zero (Brent 1973, chapter 4).

    >>> root(lambda x: x**2 - 2, 0.0, 2.0)
    1.4142135623731364
    """
    before, at = low, high
    f_before, f_at = function(before), function(at)
    if f_before == 0 or f_at == 0:
        return before if f_before == 0 else at
    opposite = f_opposite = step_before = step = 0.0
    for _ in range(MOST_STEPS):
        if f_before != 0 and f_at != 0 and (f_before < 0) != (f_at < 0):
            opposite, f_opposite = before, f_before
            step_before = step = at - before
        if abs(f_opposite) < abs(f_at):
            before, at, opposite = at, opposite, at
            f_before, f_at, f_opposite = f_at, f_opposite, f_at
        near = (NEAR + NEAR_RELATIVE * abs(at)) / 2
        half = (opposite - at) / 2
        if f_at == 0 or abs(half) < near:
            return at
        tried = math.inf
        if abs(step_before) > near and abs(f_at) < abs(f_before):
            if before == opposite:
                tried = -f_at * (at - before) / (f_at - f_before)  # a secant
            else:
                slope_before, slope_opposite = (f_before - f_at) / (before - at), (f_opposite - f_at) / (opposite - at)
                tried = -f_at * (f_opposite * slope_opposite - f_before * slope_before)
                tried /= slope_opposite * slope_before * (f_opposite - f_before)
        if 2 * abs(tried) < min(abs(step_before), 3 * abs(half) - near):
            step_before, step = step, tried
        else:
            step_before = step = half
        before, f_before = at, f_at
        at += step if abs(step) > near else math.copysign(near, half)
        f_at = function(at)
    return at
