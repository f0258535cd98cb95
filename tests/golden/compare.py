"""Two sets of goldens compared: what moved, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-9
FLOOR = 1e-12  # the size of what is zero, or smaller than this
SIZES = {  # of what has a natural size, however small it happens to be
    **dict.fromkeys(("p_value", "pValue", "r_squared", "r_squared_interval", "rSquared", "rSquaredInterval"), 1.0),
    **dict.fromkeys(("correlation", "partial_correlation", "loadings", "shares"), 1.0),
    **dict.fromkeys(("z", "chi_square", "statistic"), 1.0),  # in standard errors
    "shift": 1.0,  # on a diagonal of sums of squares, of which one row gives about one
    "delta_at_epsilon": 1e-4,  # small differences of large numbers: 1e-13 is asked for
}


@dataclass(frozen=True)
class Difference:
    """A number, name or shape that is not what it was. ``off`` is relative to the size of the thing, infinite where it is no number."""

    where: str
    was: Any
    now: Any
    off: float = math.inf

    def __str__(self) -> str:
        by = "" if math.isinf(self.off) else f", off by {abs(self.now - self.was):.3g}, which is {self.off:.3g} of its size"
        return f"{self.where}: was {self.was!r}, is {self.now!r}{by}"


def differences(was: Any, now: Any, tolerance: float = TOLERANCE) -> list[Difference]:
    """Everything in ``now`` that differs from ``was`` by more than ``tolerance`` of its size; 0 asks for equal bits."""
    return [one for one in _walk(was, now, "", FLOOR) if one.off > tolerance]


def largest(was: Any, now: Any) -> Difference | None:
    """The number that moved most, relative to its size."""
    return max(_walk(was, now, "", FLOOR), key=lambda one: one.off, default=None)


def in_words(found: list[Difference], most: int = 12) -> str:
    """The differences, the largest first."""
    listed = sorted(found, key=lambda one: -one.off)
    rest = [f"... and {len(found) - most} more"] if len(found) > most else []
    return "\n".join([f"{len(found)} moved:", *map(str, listed[:most]), *rest])


def count(value: Any) -> int:
    """How many numbers there are."""
    if isinstance(value, dict | list):
        return sum(map(count, value.values() if isinstance(value, dict) else value))
    return int(_is_number(value))


def _walk(was: Any, now: Any, where: str, size: float) -> Iterator[Difference]:
    """Whatever is not equal, to the bit. ``size`` is that of the thing which a number belongs to."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in was.keys() ^ now.keys():
            yield Difference(f"{where}/{name}", *("there" if name in one else "not there" for one in (was, now)))
        own = max(size, abs(was["se"])) if _is_number(was.get("se")) else size  # a coefficient, and what lies about it
        for name in was.keys() & now.keys():
            yield from _walk(was[name], now[name], f"{where}/{name}", SIZES.get(name, own))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        own = max([size, *(abs(one) for one in was if _is_number(one))])
        for place, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _walk(one, other, f"{where}[{place}]", own)
    elif _is_number(was) and _is_number(now):
        if was != now or math.copysign(1, was) != math.copysign(1, now):
            yield Difference(where, was, now, abs(now - was) / max(abs(was), size))
    elif was != now:
        yield Difference(where, was, now)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
