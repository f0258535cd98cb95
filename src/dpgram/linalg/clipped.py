"""How many rows there are, as far as matrices of clipped rows show it.

A row of squared length s > 1 has the weight w_0 < 1 in the first matrix of a round, and w_k in that of a scale R_k, with w_0 + R_k w_k = 1
(``linalg.scales``). The intercept is one in every row, so its own entry of the first matrix is the sum of all w_0: the number of rows less
what the clipping took. At the scale R_k it took D_k, which is R_k times the sum of all w_k. Two things tell D_k:

- The intercept's own entry of the outer matrix. It has no bias, but its noise is multiplied by R_k.
- The trace of the outer matrix, the sum of all s w_k. It has far less noise, and tells D_k as far as the lengths of long rows are known.
  At the first scale s is between 1 and 3.2. D_1 is there about three times the trace if rows are normal, since few are then much longer
  than 1, and twice the trace if tails are long, which the next trace shows. Further out D_k is 2.5 to 3.5 times the trace.

The two are combined by their precision. Rows that are not white can have any length; of them the first is enough."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpgram.linalg.rounds import share_kept
from dpgram.linalg.shrinkage import positive_moments

Array = np.ndarray

DECLINE = 0.2  # of the mean square from one scale to the next, in their units: what is expected before anything is seen
SMALLEST = 1e-9  # of the noise: what a size is at least
FEWER = 0.1  # as ``DECLINE``, for a count: with more, noise alone would add rows where few are clipped
SHORT_TAILS, LONG_TAILS = np.array([3.0, 0.4]), np.array([2.05, 0.25])  # D_1 over the trace, and its standard deviation
LONGER = 0.06  # the next trace over the first, for tails about in between
FURTHER_OUT = np.array([2.95, 0.4])  # D_k over the trace, at the other scales
FIRST = np.geomspace(0.001, 0.12, 6)  # the mean square of the first outer matrix over that of the first one, in their units
DECLINES = np.array(
    [0.01, 0.05, 0.12, 0.25, 0.45]
)  # of the mean square from one scale to the next: tails from short to very long
FURTHER = 0.8  # the chance that rows which reach a scale reach the next one too
ROUGH = 1.0  # relative standard deviation of what a power law says


def outer_sizes(gram: Array, outer: Array, sd: float, decline: float = DECLINE) -> tuple[Array, Array]:
    """The mean square of each outer matrix given its trace, and its standard deviation, where the noise in an entry has that of ``sd`` off
    the diagonal. It is positive, and expected to be a fraction of that of the scale before it."""
    dim = len(gram)
    before = max(float(np.trace(gram)) / dim, SMALLEST * sd)
    spread = math.sqrt(2 / dim) * sd
    sizes, unsure = [], []
    for matrix in outer:
        mean = float(np.trace(matrix)) / dim - spread**2 / (decline * before)
        first, second = (float(moment[0]) for moment in positive_moments(np.array([mean]), np.array([spread])))
        before = max(first, SMALLEST * sd)
        sizes.append(before)
        unsure.append(math.sqrt(max(second - first**2, 0.0)))
    return np.array(sizes), np.array(unsure)


def usual_sizes(gram: Array, outer: Array, sd: float) -> Array:
    """The mean square of each outer matrix, were rows' lengths to follow a power law that ends at one of the scales.

    Where it begins, how fast it declines and where it ends are averaged over their posterior given all traces. ``outer_sizes`` looks from
    each scale to the next alone, and expects the same decline of every table: of its estimates these are the cautious ones."""
    dim, many = len(gram), len(outer)
    traces, noise = np.trace(outer, axis1=1, axis2=2) / dim, 2 / dim * sd**2
    first, decline, end = np.meshgrid(
        FIRST * max(float(np.trace(gram)) / dim, sd / 2), DECLINES, np.arange(1, many + 1), indexing="ij"
    )
    place = np.arange(many)[:, None, None, None]
    sizes = np.where(place < end, first * decline**place, 0.0)
    spread = noise + (ROUGH * sizes) ** 2
    likely = -0.5 * np.sum((traces[:, None, None, None] - sizes) ** 2 / spread + np.log(spread), axis=0)
    likely += np.where(end < many, math.log(1 - FURTHER), 0.0) + (end - 1) * math.log(FURTHER)
    chance = np.exp(likely - likely.max())
    return with_seen(np.sum(sizes * chance, axis=(1, 2, 3)) / chance.sum(), traces, noise)


def with_seen(sizes: Array, seen: Array, noise: float) -> Array:
    """Sizes that a power law says, with what was ``seen`` of them through noise of this variance: that alone, where noise is far below what
    the law leaves open."""
    spread = (ROUGH * sizes) ** 2
    return np.maximum(sizes + spread / np.maximum(spread + noise, np.finfo(float).tiny) * (seen - sizes), 0.0)


def rows_before_clipping(seen: Any, *, white: bool) -> tuple[float, float]:
    """The number of rows, each by its share, before a round clipped them, and its standard deviation.

    ``seen`` is a round over all rows (``linalg.rounds.Shrunk``) with the intercept as first column; ``white`` says whether rounds came
    before it, by which its map makes rows white. Where no outer matrix is published, rows are taken to be normal, and what the clipping
    took of the count to be known to within as much again."""
    dim, sd = len(seen.gram), seen.sd_off_diagonal
    ones = np.linalg.solve(seen.through.T, np.eye(dim)[0])
    square = float(ones @ ones)
    count, noise = float(ones @ seen.gram @ ones), math.sqrt(2) * sd * square
    if not seen.outer:
        kept = share_kept(dim, float(np.trace(seen.gram)) / max(count, 1.0))
        return count / kept, math.hypot(noise / kept, (1 / kept - 1) * max(count, 0.0))
    outer, scales = np.stack(seen.outer), np.array(seen.scales[1:])
    seen_directly, noises = scales * (ones @ outer @ ones), scales * noise
    if not white:
        return count + float(np.sum(seen_directly)), math.hypot(noise, *noises)
    sizes, spread = outer_sizes(seen.gram, outer, sd, FEWER)
    per_trace, unsure = _per_trace(sizes, spread)
    by_trace, spreads = dim * per_trace * sizes, dim * np.hypot(per_trace * spread, unsure * sizes)
    part = spreads**2 / (spreads**2 + noises**2)
    shared = (
        2 * part * (1 - part) * scales * per_trace * 2 * sd**2 * square
    )  # a trace has the noise of the intercept's own entry in it
    variance = float(np.sum((part * noises) ** 2 + ((1 - part) * spreads) ** 2 + shared))
    return count + float(np.sum(by_trace + part * (seen_directly - by_trace))), math.hypot(noise, math.sqrt(variance))


def _per_trace(sizes: Array, spread: Array) -> tuple[Array, Array]:
    """D_k over the trace at each scale, and its standard deviation."""
    found = np.tile(FURTHER_OUT, (len(sizes), 1))
    longer = max(float(sizes[1] - spread[1]), 0.0) / float(sizes[0]) if len(sizes) > 1 else 0.0  # as far as it is seen
    found[0] = LONG_TAILS + (SHORT_TAILS - LONG_TAILS) * math.exp(-longer / LONGER)
    return found[:, 0], found[:, 1]
