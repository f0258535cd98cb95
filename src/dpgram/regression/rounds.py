"""What a release in whitened rounds says, as one look at the table: a map, a matrix of mapped rows, and the sd of its noise.

Intervals read the last round alone, whose noise is exactly Gaussian. Estimates read all rounds that tell of the same rows, pooled."""

from __future__ import annotations

import numpy as np

from dpgram.linalg.rounds import Look, pooled, unshrunk
from dpgram.terms.noise import Round, WhitenedGaussian

Array = np.ndarray

MOST_DROPPED = 3
WIDER = 2.0


def last_look(noise: WhitenedGaussian, rows: float | None) -> Look:
    """The last round, with what shrinking took put back; ``rows`` where their number is known."""
    return _look(noise, noise.last, rows)


def pooled_look(noise: WhitenedGaussian, rows: float | None) -> Look:
    """All rounds that count, as one.

    The oldest only steered the maps: they are noisy, and their rows were shrunk before they were white. Rounds that shrank rows at less
    than half the length of the last one are left out too, because they tell of other weights. A round's rows are the longer after its
    map, the harder they are shrunk to norm one."""
    oldest = min(len(noise.rounds) // 2, MOST_DROPPED)
    like_the_last = [r for r in noise.rounds[oldest:-1] if _squares(r) <= WIDER * _squares(noise.last)]
    return pooled([_look(noise, r, rows) for r in (*like_the_last, noise.last)])


def unmapped(through: Array) -> Array:
    """T^-T of a map T: combinations of columns, in the coordinates of mapped rows."""
    return np.linalg.solve(through.T, np.eye(len(through)))


def _look(noise: WhitenedGaussian, of: Round, rows: float | None) -> Look:
    if of is noise.rounds[0]:  # its rows are not white: only their scale is known
        return of.through, of.gram / of.kept, of.sd_off_diagonal / of.kept
    gram, factor = unshrunk(of.gram, of.kept, rows)
    return of.through, gram, factor * of.sd_off_diagonal


def _squares(of: Round) -> float:
    """The sum of squares of mapped rows, before they were shrunk."""
    return float(np.trace(of.gram)) / of.kept
