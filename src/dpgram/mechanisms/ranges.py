"""The public rules of looks at columns: which bins to count in, what to spend, and what noisy counts say of a column's scale.

Everything here is a function of what was declared, of the number of rows where it is public, and of what earlier looks published; that is
all that privacy asks of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpgram.terms.bins import Bins
from dpgram.terms.schema import NARROWEST, is_wide_enough

Array = np.ndarray
Intervals = Mapping[str, tuple[float, float]]

MOST_LOOKS = 3
FINEST = 32  # the first look's bins grow by factors of two, from 2^-32 of the width of the declared bounds
CLOSER = 32  # equal bins of a look that comes closer
FEW_BINS = 3  # in which numbers lie: their spread is not known yet
WANTED = 0.01  # the noise of a count over the number of rows, where the budget allows
LEAST_SHARE, MOST_SHARE = 0.01, 0.03  # of mu^2, of the first look; later ones may take half as much
BLURRED = 0.08  # noise of a count over the number of rows, from which a look would tell nothing
SURE, LIKELY = 4.5, 2.5  # standard deviations: of what stands alone, and of what continues what is sure
WINDOWS = (1, 2, 4, 8, 16)  # bins that are looked at together
TAIL = 0.005  # of the numbers found, on either side, that do not count
LEAST_FOUND = 0.5  # of the rows
SPIKE = 2.0**-28  # of the width of the bounds: numbers so close together are one value, which has no scale
MARGIN = 6.0  # the learnt interval over the one that was seen
FITS = 16.0  # bounds that are so many times too wide, or less, are left as they are


@dataclass(frozen=True)
class Look:
    """One look: noisy counts in bins."""

    bins: Bins
    counts: Mapping[str, Array]  # by column
    sd: float  # of each count


def share(columns: int, rows: float | None, mu: float, *, moved: float, place: int) -> float:
    """The share of mu^2 for look number ``place``, from 0, at so many columns; none where it would tell nothing.

    ``moved`` is the square of what a unit can change of one column's counts."""
    most = MOST_SHARE if place == 0 else MOST_SHARE / 2
    if rows is None:
        return LEAST_SHARE
    wanted = moved * columns / (mu * WANTED * max(rows, 1.0)) ** 2
    taken = min(max(wanted, LEAST_SHARE), most)
    blur = math.sqrt(moved * columns / taken) / mu
    return taken if blur <= BLURRED * rows else 0.0


def next_bins(seen: Sequence[Look], declared: Intervals) -> Bins | None:
    """The bins of the next look; None where there is nothing left to look at. Columns are those whose spread is not known yet."""
    if not seen:
        return Bins({name: _logarithmic(*ends) for name, ends in declared.items()}) if declared else None
    if len(seen) == MOST_LOOKS:
        return None
    last, closer = seen[-1], {}
    for name, edges in last.bins.inner.items():
        place = _place(last.counts[name], last.sd)
        if place is None or place[1] - place[0] >= (FEW_BINS if len(seen) == 1 else 2 * FEW_BINS):
            continue
        low, high = _ends(edges, place, declared[name])
        if len(seen) == 1 and any(low <= base <= high for base in _bases(*declared[name])):
            continue  # bins are fine there
        closer[name] = _closer(edges, low, high, declared[name])
    return Bins(closer) if closer else None


def intervals(seen: Sequence[Look], declared: Intervals, rows: float | None) -> dict[str, tuple[float, float]]:
    """Where the numbers of columns mostly lie, with a margin; of those alone whose bounds are much too wide."""
    found: dict[str, tuple[float, float]] = {}
    for look in seen:
        for name, edges in look.bins.inner.items():
            place = _place(look.counts[name], look.sd, rows)
            if place is not None:
                found[name] = _ends(edges, place, declared[name])
    learnt = {}
    for name, (low, high) in found.items():
        lower, upper = declared[name]
        if not SPIKE * (upper - lower) < high - low < (upper - lower) / FITS:
            continue
        margin = max((MARGIN - 1) / 2 * (high - low), NARROWEST * max(abs(low), abs(high)))
        ends = max(lower, low - margin), min(upper, high + margin)
        if is_wide_enough(*ends):
            learnt[name] = ends
    return learnt


def _bases(lower: float, upper: float) -> list[float]:
    """From where numbers are likely to be counted: the bounds, their middle, and zero."""
    return [lower, lower / 2 + upper / 2, upper] + [0.0] * (lower < 0 < upper)


@lru_cache(maxsize=1024)  # many releases of one table are made up for a plan
def _logarithmic(lower: float, upper: float) -> tuple[float, ...]:
    """Inner edges around each base, at distances that double."""
    distances = (upper / 2 - lower / 2) * 2.0 ** -np.arange(FINEST)
    edges = {base + sign * distance for base in _bases(lower, upper) for sign in (-1, 0, 1) for distance in distances}
    return tuple(sorted(float(edge) for edge in edges if lower < edge < upper))


def _closer(edges: Sequence[float], low: float, high: float, declared: tuple[float, float]) -> tuple[float, ...]:
    """Equal bins about [low, high], and beyond them those of the look before."""
    first, last = max(declared[0], low - (high - low) / 2), min(declared[1], high + (high - low) / 2)
    fine = np.linspace(first, last, CLOSER + 1).tolist()
    return tuple(sorted({e for e in (*fine, *(e for e in edges if not first <= e <= last)) if declared[0] < e < declared[1]}))


def _ends(edges: Sequence[float], place: tuple[int, int], declared: tuple[float, float]) -> tuple[float, float]:
    """The interval that the bins from ``place[0]`` to ``place[1]`` cover."""
    whole = (declared[0], *edges, declared[1])
    return whole[place[0]], whole[place[1] + 1]


def _place(counts: Array, sd: float, rows: float | None = None) -> tuple[int, int] | None:
    """The first and last bin that hold what counts of rows in noise of ``sd``; None where too few are found to tell."""
    mass = _found(counts, sd)
    if mass.sum() <= 0 or (rows is not None and mass.sum() < LEAST_FOUND * rows):
        return None
    below = np.cumsum(mass) / mass.sum()
    first, last = int(np.searchsorted(below, TAIL, side="right")), int(np.searchsorted(below, 1 - TAIL, side="left"))
    while step := _continued(counts[last + 1 :], sd):
        last += step
    while step := _continued(counts[:first][::-1], sd):
        first -= step
    return first, last


def _found(counts: Array, sd: float) -> Array:
    """The counts without noise, as far as can be told: those of windows that stand out, the shortest and strongest first."""
    alone = counts / sd >= SURE
    mass, free = np.where(alone, counts, 0.0), ~alone
    for width in WINDOWS[1:]:
        if width > len(counts):
            break
        sums = np.convolve(counts, np.ones(width), "valid")
        whole = np.convolve(free, np.ones(width), "valid") > width - 0.5
        standing_out = np.where(whole, sums / (sd * math.sqrt(width)), -math.inf)
        while standing_out[at := int(np.argmax(standing_out))] >= SURE:
            mass[at : at + width], free[at : at + width] = sums[at] / width, False
            standing_out[max(at - width + 1, 0) : at + width] = -math.inf  # windows that share a bin with this one
    return mass


def _continued(beyond: Array, sd: float) -> int:
    """By how many bins what was found goes on, 0 where it ends: one to four that together are likely to hold rows."""
    sums = np.cumsum(beyond[:4]) / (sd * np.sqrt(np.arange(1, len(beyond[:4]) + 1)))
    return int(np.argmax(sums > LIKELY)) + 1 if (sums > LIKELY).any() else 0
