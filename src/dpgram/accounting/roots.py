"""Inverting a monotone curve from the private side, in few evaluations.

A privacy curve costs about a millisecond, and bisection to twelve digits asks it forty times. Seen through the inverse of the
normal distribution function, delta is nearly a straight line in the logarithm of every parameter, so interpolation comes to
within rounding of the answer in four or five steps. What is returned was itself asked and met the aim, and a point within
``precision`` of it was asked and failed: interpolation only chooses where to ask."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpgram.linalg.special import ndtri

Curve = Callable[[float], float]

PATIENCE = 12  # evaluations after which every third one halves the bracket, so that the search ends whatever the curve
LEAP = math.log(64.0)  # the farthest a single step goes, in ln x


def largest(
    curve: Curve,
    aim: float,
    start: float,
    *,
    slope: float = 3.0,
    precision: float = 1e-12,
    lowest: float = 1e-300,
    ceiling: float = 1e300,
    height: Curve = ndtri,
) -> float:
    """The largest x > 0 with ``curve(x) <= aim``, from below: within ``precision``, relative. The curve rises with x.

    ``height`` makes the curve nearly straight in ln x, and ``slope`` is about how fast ``height(curve(x))`` rises there.
    Returns ``ceiling`` when that still meets the aim, and 0.0 when nothing above ``lowest`` does."""
    target = float(height(aim))
    good, bad, x, asked = 0.0, math.inf, start, 0
    seen: list[tuple[float, float]] = []  # (height above the target, x), the latest last
    while True:
        value, asked = curve(x), asked + 1
        good, bad = (x, bad) if value <= aim else (good, x)
        if good >= ceiling:
            return ceiling
        if bad <= lowest:
            return 0.0
        if bad - good <= precision * good:
            return good
        above = float(height(value)) - target
        if math.isfinite(above):
            seen = [*seen[-2:], (above, x)]
        halve = asked > PATIENCE and asked % 3 == 0
        x = _next(good, bad, x, [] if halve else seen, slope, precision)
        if not good < x < bad:
            return good  # no float lies between


def smallest(
    curve: Curve, aim: float, start: float, *, slope: float = 3.0, precision: float = 1e-12, most: float = 1e300
) -> float:
    """The smallest x > 0 with ``curve(x) <= aim``, from above; infinite when nothing up to ``most`` has. The curve falls with x."""
    largest_inverse = largest(lambda x: curve(1 / x), aim, 1 / start, slope=slope, precision=precision, lowest=1 / most)
    return math.nextafter(1 / largest_inverse, math.inf) if largest_inverse else math.inf


def epsilon_for(delta_at: Curve, delta: float) -> float:
    """The smallest epsilon >= 0 with ``delta_at(epsilon) <= delta``, from above."""
    if delta_at(0.0) <= delta:
        return 0.0
    return smallest(delta_at, delta, 1.0)


def _next(good: float, bad: float, last: float, seen: list[tuple[float, float]], slope: float, precision: float) -> float:
    """Where to ask next: at the interpolated root, or, when the last point is as close as that, just beyond it."""
    one_sided = good * 4 if good else bad / 4
    fallback = math.sqrt(good) * math.sqrt(bad) if good and math.isfinite(bad) else one_sided
    step = _step(seen, slope)
    if step is None:
        return fallback
    step = min(max(step, -LEAP), LEAP)
    origin = seen[-1][1]
    if origin == last and abs(step) < precision / 2:
        return last * (1 + (0.75 if last == good else -0.75) * precision)
    x = origin * math.exp(step)
    return x if good < x < bad else fallback


def _step(seen: list[tuple[float, float]], slope: float) -> float | None:
    """From the latest point to the root, in ln x: inverse interpolation through what was seen; None where it says nothing."""
    if not seen:
        return None
    (h0, x0), rest = seen[-1], seen[:-1]
    if not rest:
        return -h0 / slope
    h1, x1 = rest[-1]
    if h1 == h0:
        return None
    first = math.log(x1 / x0) / (h1 - h0)  # divided differences of ln x as a function of the height
    if first <= 0:
        return None  # the curve does not rise here: rounding
    step = -h0 * first
    if len(rest) == 2:
        h2, x2 = rest[0]
        if h2 not in (h0, h1):
            second = (math.log(x2 / x1) / (h2 - h1) - first) / (h2 - h0)
            bent = step + h0 * h1 * second
            step = bent if bent * step > 0 else step
    return step
