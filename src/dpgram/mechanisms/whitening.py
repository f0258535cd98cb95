"""The public rules of the whitened release: how many rounds, how the budget is split, where rows are clipped, how a round is made ready.

Everything here is a function of public numbers and of what earlier rounds published; that is all that privacy asks of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpgram.linalg.clipped import rows_before_clipping
from dpgram.linalg.rounds import WIDEST, in_own_columns, looks, pooled, pooled_there, unmapped
from dpgram.linalg.symmetric import log_det_repair
from dpgram.mechanisms.conversation import Outcome, Task
from dpgram.mechanisms.options import Option
from dpgram.sampling.base import grid_step
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import MANY_COLUMNS, Pooled, Round, WhitenedGaussian
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import Scales, scales_up_to

Array = np.ndarray

HOPELESS = 0.6  # d^1.5 / (n mu), the relative noise of a whitened release, above which looking twice does not pay
NOISY = 0.1  # above it there are more rounds
ROUNDS, MORE_ROUNDS = 8, 12
FEW_COLUMNS = 16  # below so many a row's square spreads widely about its mean, and rounds feed on each other's clipping
FEWER_ROUNDS = ((0.01, 4), (0.03, 5))  # of few columns, for noise below so much
UNKNOWN_SHARE = 0.05  # of mu^2, for each round but the last, where nobody knows how many rows there are
FIRST_CLIP = 0.01  # of the squared row bound: the first round only steers, and rows of one length tell directions best
POOLING_STEPS = 12  # enough for an estimate that only steers
STEERING = 0.25  # strength of the prior that lifts small eigenvalues between rounds
LEAST_KEPT = 0.02
SURELY = 2.0  # standard deviations
BEYOND_DOUBT = 4.0  # of the largest of many noisy counts
ENOUGH = 40.0  # rows that steer, times mu_i / d^1.5
FEWEST_STEERING = 200_000  # of them
COINS = 2**16  # a sample is a multiple of one over this
CELL_BYTES = 8  # of a kept row, for each declared column
KEPT_MEGABYTES = 256.0  # of rows that a release may keep in memory, unless it is told otherwise
MEMORY = Option(
    "memory",
    float,
    "megabytes for the rows that all rounds except the last use; if they need more, each round reads the table",
    default=KEPT_MEGABYTES,
)
FAINTEST = 2.0**-36  # of the largest eigenvalue
INDICATOR_LEVERAGE, NUMBER_LEVERAGE = 1.0, 0.005  # of the clip: how far a row may stand out by one column alone


@dataclass(frozen=True)
class Rules:
    """What is fixed before any noise is drawn: each round's share of mu^2."""

    mu: float  # the shift that one row can make: where a unit has several, its part of the whole
    shares: tuple[float, ...]

    def clip(self, place: int, dim: int, rows: float) -> float:
        """Where round ``place`` clips a whitened row's square, whose expectation is the number of columns."""
        return dim * self._multiple(place, dim, rows) + max(0, FEW_COLUMNS - dim)

    def _multiple(self, place: int, dim: int, rows: float) -> float:
        """The clip of round ``place`` as a multiple of the number of columns, where they are many.

        Early rounds clip where their noise is a fifth of what they measure. In the last one a clip of x, the square root of n times mu / d,
        makes noise as large as what the sampling of rows leaves open. Rows are clipped well below that; further out, up to 3, while little
        is known; and no further than 6 until that is a fifth of x, where noise no longer matters and only clipped rows would."""
        mu = self.mu * math.sqrt(self.shares[place])
        if place < len(self.shares) - 1:
            return min(max(0.2 * rows * mu / dim**1.5, 0.5), 8.0)
        x = math.sqrt(rows) * mu / dim
        return max(1.0, min(0.65 * x, 3.0), min(0.5 * x, 6.0), 0.2 * x)

    def sample(self, dim: int, rows: float | None, room: float) -> float | None:
        """How much of the rows looks and early rounds sum over, which only make maps: a multiple of 2^-16, one where they are all needed.

        An early round that sums over n rows and clips at 8 d has noise of 8 d^1.5 / (n mu_i) of what it measures, where mu_i is its part
        of mu. It never clips further out. So from ``ENOUGH`` times d^1.5 / mu_i rows on, where that is a fifth, more rows make a map that
        is better than most tables need, however large they are. Memory may have ``room`` for as few as half of what is needed. None where
        it has less, where there is nothing to steer, or where nobody knows how many rows there are: then every round reads the table."""
        if rows is None or len(self.shares) == 1:
            return None
        needed = max(ENOUGH * dim**1.5 / (self.mu * math.sqrt(self.shares[0])), FEWEST_STEERING)
        wanted = min(needed, room, rows)
        return math.ceil(wanted / rows * COINS) / COINS if wanted >= min(needed / 2, rows) else None


def rules(dim: int, rows: float | None, mu: float) -> Rules:
    """The rules for about so many rows, or for nobody knows how many, and a shift of all rounds of ``mu`` for one row."""
    if rows is None:
        return _rules(mu, ROUNDS, UNKNOWN_SHARE)
    noisy = dim**1.5 / (max(rows, 1.0) * mu)
    if noisy > HOPELESS:
        return Rules(mu, (1.0,))
    rounds = MORE_ROUNDS if noisy > NOISY else ROUNDS
    if dim < FEW_COLUMNS:
        rounds = next((few for below, few in FEWER_ROUNDS if noisy < below), rounds)
    return _rules(mu, rounds, min(max((noisy / 0.3) ** 2, 0.02), 1 / rounds))


def _rules(mu: float, rounds: int, early: float) -> Rules:
    return Rules(mu, (early,) * (rounds - 1) + (1 - (rounds - 1) * early,))


def sampled(rules: Rules, rows: float | None, task: Task) -> float | None:
    """The sample for about so many rows of the task's table, within the memory that it may take."""
    columns = task.dim if task.schema is None else len(task.schema.columns)
    return rules.sample(task.dim, rows, MEMORY.of(task.options) * 1e6 / (CELL_BYTES * columns))


def first_map(dim: int, row_bound: float, stretches: Sequence[float] | float = 1.0) -> PublicMap:
    """A multiple of the identity, in units of where numbers mostly lie: rows longer than a share of the bound are clipped."""
    return PublicMap.near(np.eye(dim) * stretches / (math.sqrt(FIRST_CLIP) * row_bound))


def next_map(seen: Sequence[Round], rules: Rules, rows: float | None, task: Task) -> PublicMap:
    """The map that whitens rows by all that was published, and brings those of the clipped length to one."""
    count = steering_count(seen, rows, task)
    stretch = np.array(task.stretches)
    moments = steering_estimate(seen, rows, task) / count * np.outer(stretch, stretch)  # in units of where numbers mostly lie
    summed = count if len(seen) == len(rules.shares) - 1 else count * seen[-1].sampled  # by the next round
    square = rules.clip(len(seen), task.dim, summed)
    whitening = inverse_root(with_least_leverage(moments, square, rules.mu * count, task.spans)) * stretch
    longest = float(np.linalg.norm(whitening, 2)) ** 2 * task.row_bound**2
    return PublicMap.near(whitening / math.sqrt(min(square, longest)))


def scales(through: PublicMap, task: Task) -> Scales:
    """The scales of the last round: as many as the longest row can reach that map and bound allow."""
    return scales_up_to(float(np.linalg.norm(through.matrix, 2)) ** 2 * task.row_bound**2)


def row_count(seen: Sequence[Round], rows: float | None) -> float:
    """The number of rows, or the largest that any round counted."""
    return max(counted(r) for r in seen) if rows is None else rows


def steering_count(seen: Sequence[Round], rows: float | None, task: Task) -> float:
    """About how many rows count, for a map: of ``rows``, where some may not, what rounds can have counted at most.

    The first round does not say, because it clips most rows."""
    if rows is None or not (task.counts_partly and task.intercept):
        return row_count(seen, rows)
    return min([rows, *sorted(counted(r) + SURELY * count_sd(r) for r in seen[1:])[-1:]])


def count_so_far(seen: Sequence[Round], rows: float | None, task: Task) -> float:
    """How many rows count, for rounds that steer: their number where it is known, else what rounds counted of clipped rows.

    Where rows can count as less than one, early rounds may be over a sample, and their counts are noisy: then it is the last round's, or
    what another surely counted beyond it. No more can have counted than there are rows, or than units can have."""
    if not task.counts_partly:
        return row_count(seen, rows if task.neighbours is Neighbours.REPLACE else None)
    return _possible(counted(seen[-1]), seen, task)


def final_count(seen: Sequence[Round], rows: float | None, task: Task) -> float:
    """How many rows count, when all rounds were seen: their number where it is known, else an estimate that undoes the last clipping."""
    if rows is not None and not task.counts_partly and task.neighbours is Neighbours.REPLACE:
        return rows
    return _possible(rows_before_clipping(seen[-1], white=len(seen) > 1)[0], seen, task)


def _possible(count: float, seen: Sequence[Round], task: Task) -> float:
    """``count``, or what a round surely counted beyond it; no more than there are rows, or than units can have."""
    most = [float(each) for each in (task.rows, task.units and task.units * task.rows_per_unit) if each is not None]
    surely = max(counted(r) - BEYOND_DOUBT * count_sd(r) for r in seen)
    return min([max(count, surely), *most])


def count_sd(seen: Round) -> float:
    """The standard deviation of what a round counts: of its noise, and of which rows are in its sample."""
    length = float(np.linalg.norm(np.linalg.solve(seen.through.T, np.eye(len(seen.through))[0])))
    noise = math.sqrt(2) * seen.sd_off_diagonal * length**2 / seen.sampled
    return math.hypot(noise, math.sqrt(counted(seen) * (1 - seen.sampled) / seen.sampled))


def steering_estimate(seen: Sequence[Round], rows: float | None, task: Task) -> Array:
    """A positive definite estimate of the Gram, from the rounds so far."""
    known, count = (f(seen, rows, task) if task.intercept else None for f in (steering_count, count_so_far))
    through, matrix, sd = pooled(looks(weighed(seen, count), known), steps=POOLING_STEPS)
    return in_own_columns(log_det_repair(matrix, sd, strength=STEERING), through, rows=known)


def with_least_leverage(moments: Array, square: float, budget_rows: float, spans: Sequence[float]) -> Array:
    """``moments`` with more on the diagonal, so that no column alone makes a row stand out without limit; rows are clipped at ``square``.

    A level that few rows have is a direction of little variance. Whitened, these rows are long, and clipped whatever the map; the next
    round sees less of them, and would stretch them further, until what they say of the target is lost. So the least that a column must
    have of its own, given all others, is what lets its indicator stand out by about the clip's length and no further. Numbers may
    stand out further by a lot, because most are far from their bounds, and bounds may be wide. A ridge of a few rows comes before it:
    for numbers, of the column's own variance as far as it is known."""
    half = np.asarray(spans)
    indicator, counts = half == 0.5, half > 0
    means = moments[0] if half[0] == 0 else np.zeros(len(half))  # the intercept's row
    variance = np.where(indicator, 0.25, np.maximum(np.diag(moments) - means**2 / moments[0, 0], 0.0))
    lifted = moments + np.diag(np.where(counts, variance, 0.0)) / budget_rows
    own = 1 / np.diag(np.linalg.inv(lifted))
    least = np.where(indicator, INDICATOR_LEVERAGE, NUMBER_LEVERAGE) / square
    return lifted + np.diag(np.where(counts, np.maximum(least - own, 0.0), 0.0))


def inverse_root(matrix: Array) -> Array:
    """W with W ``matrix`` W' = I, where directions fainter than ``FAINTEST`` of the strongest count as that.

    Two columns that are the same, or one that is always zero, have a direction without any length: round after round would stretch it by as
    much again, until no float holds the map. Rows lie on a grid of 2^-20, so a longer stretch would show their rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.sqrt(np.maximum(values, FAINTEST * values[-1]))).T


def counted(seen: Round) -> float:
    """The number of rows, those that were shrunk counting less, by the intercept's own entry; never below one."""
    return max(float(unmapped(seen.gram, seen.through)[0, 0]) / seen.sampled, 1.0)


def weighed(seen: Sequence[Round], count: float | None) -> tuple[Round, ...]:
    """The rounds, each with the average share of a row's square that shrinking left, as far as all that was published can tell.

    With an intercept by its own entry, which without shrinking would be ``count``. Without one (None) by traces, if the last map made
    rows white; that leaves open the share of the last round, which counts as one."""
    if count is not None:
        shares = [counted(r) / max(count, 1.0) for r in seen]
    else:
        back = np.linalg.inv(seen[-1].through)
        sizes = [float(np.trace(r.gram)) / r.sampled / float(np.sum((r.through @ back) ** 2)) for r in seen]
        shares = [size / sizes[-1] if sizes[-1] > 0 else 1.0 for size in sizes]
    return tuple(replace(r, kept=min(max(share, LEAST_KEPT), 1.0)) for r, share in zip(seen, shares, strict=True))


def unwhitened(last: Round) -> Array:
    """The last round's matrix in the table's own columns."""
    whole = unmapped(last.gram, last.through)
    return (whole + whole.T) / (2 * last.kept)


def finished(seen: Sequence[Round], rows: float | None, task: Task) -> Outcome:
    """What is made of all rounds in the end."""
    rounds = weighed(seen, final_count(seen, rows, task) if task.intercept else None)
    if task.dim <= MANY_COLUMNS:
        return Outcome(unwhitened(rounds[-1]), WhitenedGaussian(rounds), choices(rounds))
    last = on_grid(rounds[-1])
    gram, together = unwhitened(last), None
    if len(rounds) > 1:
        counts = max(float(gram[0, 0]), 1.0) if task.intercept else None
        known = rows if task.neighbours is Neighbours.REPLACE and not task.counts_partly else counts
        together = pooled_rounds((*rounds[:-1], last), known)
    return Outcome(gram, WhitenedGaussian((last,), together), choices(rounds))


def pooled_rounds(rounds: Sequence[Round], rows: float | None) -> Pooled:
    """What estimates read of all rounds together: of many columns it stands in a release instead of them, which are a large file.

    ``rows`` is the number of rows as far as the release tells."""
    seen = looks(rounds, rows, widest=WIDEST)
    half, matrix = pooled_there(seen)
    return Pooled((half + half.T) / 2, matrix, seen[-1][2])


def on_grid(last: Round) -> Round:
    """The round with its numbers on the grid of its noise, where they are but for experiments in floats with a seed: short in a file."""
    step = grid_step(last.sd_off_diagonal)
    gram, *outer = (step * np.rint(matrix / step) + 0.0 for matrix in (last.gram, *last.outer))
    return replace(last, gram=gram, outer=tuple(outer))


def choices(seen: Sequence[Round]) -> dict[str, float]:
    """What was chosen between rounds, for the label: the number of scales of the last one; the longest that a row can be before it is
    shrunk is 1 / ``stretch``."""
    shown = {"scales": float(len(seen[-1].scales))}
    for place, each in enumerate(seen, 1):
        shown[f"round_{place}_stretch"] = float(np.linalg.norm(each.through, 2))
        shown[f"round_{place}_kept"] = each.kept
    return shown
