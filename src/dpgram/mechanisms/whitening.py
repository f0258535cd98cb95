"""The public rules of the whitened release: how many rounds, how the budget is split, where rows are clipped, how a round is made ready.

Everything here is a function of public numbers and of what earlier rounds published; that is all that privacy asks of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpgram.linalg.rounds import Look, in_own_columns, most_likely
from dpgram.terms.noise import Round

Array = np.ndarray

NOISY = 0.4  # d^1.5 / (n mu) above which looking twice does not pay
ROUNDS = 8
FIRST_CLIP = 0.01  # of the squared row bound: the first round only steers, and rows of one length tell directions best
OLD_ROUNDS = 3  # the oldest rounds are left out of the estimate
STEERING = 0.25  # strength of the prior that lifts small eigenvalues between rounds
STEADY = 1e-4  # where the search for a steering matrix may end, relative to the matrix: far below its noise
LEAST_KEPT = 0.02


@dataclass(frozen=True)
class Rules:
    """What is fixed before any noise is drawn: each round's share of mu^2."""

    mu: float
    shares: tuple[float, ...]

    def clip(self, place: int, dim: int, rows: float) -> float:
        """Where round ``place`` clips a whitened row's square, in units of its expectation, which is the number of columns."""
        mu = self.mu * math.sqrt(self.shares[place])
        if place < len(self.shares) - 1:
            return min(max(0.2 * rows * mu / dim**1.5, 1.0), 8.0)
        return max(1.0, 0.5 * math.sqrt(rows) * mu / dim)


def rules(dim: int, rows: float | None, mu: float) -> Rules:
    """The rules for about so many rows, or for nobody knows how many, and a total shift of ``mu``."""
    if rows is None:
        return Rules(mu, (0.06,) * (ROUNDS - 1) + (1 - 0.06 * (ROUNDS - 1),))
    noisy = dim**1.5 / (rows * mu)
    if noisy > NOISY:
        return Rules(mu, (1.0,))
    early = min(max((noisy / 0.3) ** 2, 0.02), 1 / ROUNDS)
    return Rules(mu, (early,) * (ROUNDS - 1) + (1 - (ROUNDS - 1) * early,))


def first_map(dim: int, row_bound: float) -> Array:
    """A multiple of the identity: rows longer than a share of the bound are clipped."""
    return np.eye(dim) / (math.sqrt(FIRST_CLIP) * row_bound)


def next_map(seen: Sequence[Round], plan: Rules, rows: float | None, row_bound: float, intercept: bool) -> Array:
    """The map that whitens rows by all that was published, and brings those of the clipped length to one."""
    known = rows if rows is not None else counted(seen[-1].through, seen[-1].gram)
    estimate = in_own_columns(
        most_likely(looks(seen), strength=STEERING, still=STEADY), seen[-1].through, rows=known if intercept else None
    )
    whitening = np.linalg.inv(np.linalg.cholesky(estimate / known))
    dim = len(estimate)
    longest = float(np.linalg.norm(whitening, 2)) ** 2 * row_bound**2
    return whitening / math.sqrt(min(plan.clip(len(seen), dim, known) * dim, longest))


def looks(seen: Sequence[Round]) -> list[Look]:
    """The rounds that count, in the form in which they are put together."""
    return [(r.through, r.gram / r.kept, r.sd_off_diagonal / r.kept) for r in seen[min(len(seen) // 2, OLD_ROUNDS) :]]


def counted(through: Array, gram: Array) -> float:
    """The number of rows, those that were shrunk counting less, by the intercept's own entry; never below one."""
    first = np.linalg.solve(through, np.linalg.solve(through, gram).T)[0, 0]
    return max(float(first), 1.0)


def kept(through: Array, gram: Array, rows: float | None, intercept: bool) -> float:
    """The average share of a row's square that the shrinking left, by the intercept's entry; one where nobody can tell."""
    if rows is None or not intercept:
        return 1.0
    return min(max(counted(through, gram) / rows, LEAST_KEPT), 1.0)


def unwhitened(last: Round) -> Array:
    """The last round's matrix in the table's own columns."""
    half = np.linalg.solve(last.through, last.gram)
    whole = np.linalg.solve(last.through, half.T)
    return (whole + whole.T) / (2 * last.kept)


def choices(seen: Sequence[Round]) -> dict[str, float]:
    """What was chosen between rounds, for the label: the longest that a row can be before it is shrunk is 1 / ``stretch``."""
    found = {}
    for place, each in enumerate(seen, 1):
        found[f"round_{place}_stretch"] = float(np.linalg.norm(each.through, 2))
        found[f"round_{place}_kept"] = each.kept
    return found
