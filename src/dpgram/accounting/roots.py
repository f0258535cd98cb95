"""Inverting a monotone curve from the private side."""

from __future__ import annotations

import math
from collections.abc import Callable


def largest(meets: Callable[[float], bool], start: float, *, precision: float = 1e-12, ceiling: float = 1e300) -> float:
    """The largest x > 0 that ``meets``, from below: within ``precision``, relative. ``meets`` holds up to some x and then fails.

    Searched by doubling from ``start`` and then by bisection of logarithms. Returns ``ceiling`` when that still meets, and
    0.0 when nothing does."""
    good, bad = start, start
    while meets(bad):
        good, bad = bad, bad * 4
        if good >= ceiling:
            return ceiling
    while not meets(good):
        bad, good = good, good / 4
        if good < 1e-300:
            return 0.0
    while bad - good > precision * good:
        middle = math.sqrt(good) * math.sqrt(bad)
        if not good < middle < bad:
            break
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good


def smallest(meets: Callable[[float], bool], start: float, *, precision: float = 1e-12) -> float:
    """The smallest x > 0 that ``meets``, from above. ``meets`` fails up to some x and then holds."""
    found = largest(lambda x: meets(1 / x), 1 / start, precision=precision)
    return math.nextafter(1 / found, math.inf) if found else math.inf


def epsilon_for(delta_at: Callable[[float], float], delta: float) -> float:
    """The smallest epsilon >= 0 with ``delta_at(epsilon) <= delta``, from above."""
    if delta_at(0.0) <= delta:
        return 0.0
    return smallest(lambda epsilon: delta_at(epsilon) <= delta, 1.0)
