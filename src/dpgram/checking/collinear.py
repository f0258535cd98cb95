"""Exact collinearities: encoded columns that follow from others, by the exact Gram of the rows.

Encoded cells lie on a grid of step h, rounded towards zero. If a column was a sum of others with factors c before that, what is left of it
afterwards is at most h (1 + sum |c|) in each row. So a column counts as collinear if no more than that is left of it, by its root mean
square over the rows."""

from __future__ import annotations

import numpy as np

from dpgram.rows.clip import GRID
from dpgram.rows.gram_sum import GramSum

Array = np.ndarray
SMALLEST_PART = 1e-3  # of a column's own spread: what another contributes to it at least, to be named
SMALLEST_SPREAD = 64.0  # grid steps: below it, as with bounds that are far too wide, columns look alike because of the grid


def collinear(gram: GramSum, intercept: bool) -> list[tuple[int, ...]]:
    """Places of encoded columns that depend on each other, in order: the last of each follows from the others, and the intercept.

    With no more rows than columns every column would follow from others: nothing is told then. Columns that hardly vary are left out."""
    whole = gram.in_scaled_units()
    places = [place for place in range(len(whole)) if whole[place, place] > 0]
    if not places or gram.rows <= len(places):
        return []
    size = np.sqrt(np.diag(whole)[places])
    rest = whole[np.ix_(places, places)] / np.outer(size, size)  # what is left of the columns after those that were taken
    factors = np.eye(len(places))  # row j: what is left of column j, as a sum of columns
    step = np.sqrt(gram.rows) / GRID
    taken: list[int] = []
    spread = np.ones(len(places))
    found = []
    for j in range(len(places)):
        left = np.sqrt(max(rest[j, j], 0.0)) * size[j]
        if spread[j] * size[j] < SMALLEST_SPREAD * step:
            continue
        parts = np.delete(factors[j] * size[j] / size, j)
        if left <= step * (1 + np.abs(parts).sum()):
            named = [i for i in taken if abs(factors[j, i]) * spread[i] > SMALLEST_PART * spread[j]]
            found.append((*(places[i] for i in named), places[j]))
            continue
        slope = rest[j + 1 :, j] / rest[j, j]
        rest[j + 1 :, j + 1 :] -= np.outer(slope, rest[j, j + 1 :])
        factors[j + 1 :] -= np.outer(slope, factors[j])
        if intercept and j == 0:
            spread = np.sqrt(np.maximum(np.diag(rest), 0.0))  # around the mean
        else:
            taken.append(j)
    return found
