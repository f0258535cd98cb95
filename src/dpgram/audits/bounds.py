"""Lower confidence bounds on epsilon from losses drawn on both tables.

Where to cut the losses, and which table to accuse, is chosen on the first fifth of the draws; the shares of correct and false accusations
are then counted on the rest, with Clopper and Pearson's bounds. So the confidence holds whatever the mechanism does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri

from dpgram.audits.claims import Claim

Array = np.ndarray
Score = Callable[[Array, Array], Array]

PILOT, CAUTION = 0.2, 0.02  # a fifth of the draws, one-sided errors: about as wide as the bounds on the rest will be
CUTS = 400
STRONGEST = 64.0


@dataclass(frozen=True)
class Shares:
    """Bounds on a test's shares: ``caught`` from below, of the accused table; ``alarms`` from above, of the other."""

    caught: float
    alarms: float


@dataclass(frozen=True)
class Bounds:
    """What the draws show, with the confidence asked for.

    ``counted`` is a bound on epsilon at the claim's delta without any assumption. ``strength`` is a bound on the factor by which a row counts
    more than proven, if the law is of the proven family, and ``shaped`` the epsilon of that member of the family."""

    counted: float
    shaped: float
    strength: float


def lower_bounds(first: Array, second: Array, claim: Claim, confidence: float) -> Bounds:
    """Bounds from losses of releases of the first and of the second table; both hold together with ``confidence``."""
    error = (1 - confidence) / 4  # two bounds, of two shares each
    halves = [(losses[: int(PILOT * len(losses))], losses[int(PILOT * len(losses)) :]) for losses in (first, second)]
    (pilot_first, rest_first), (pilot_second, rest_second) = halves
    sides = [(pilot_first, pilot_second, rest_first, rest_second), (-pilot_second, -pilot_first, -rest_second, -rest_first)]

    def best(score: Score) -> Shares:
        options = [(*_best_cut(one, other, score), rest, far) for one, other, rest, far in sides]
        _, cut, rest, far = max(options, key=lambda option: option[0])
        return Shares(
            float(at_least(np.count_nonzero(rest >= cut), len(rest), error)),
            float(at_most(np.count_nonzero(far >= cut), len(far), error)),
        )

    counted = _epsilon(best(lambda caught, alarms: _epsilon_score(caught, alarms, claim.delta)), claim.delta)
    strength = strength_of(best(lambda caught, alarms: ndtri(caught) - ndtri(alarms)), claim)
    return Bounds(counted, claim.proven_epsilon(strength) if strength else 0.0, strength)


def _best_cut(one: Array, other: Array, score: Score) -> tuple[float, float]:
    """(score, cut) of the cut that promises most: cautiously, or the best of many cuts is the luckiest."""
    cuts = _cuts(one, other)
    shares = [(len(losses) - np.searchsorted(np.sort(losses), cuts)) / len(losses) for losses in (one, other)]
    caught, alarms = (
        bound(share * len(losses), len(losses), CAUTION)
        for bound, share, losses in zip((at_least, at_most), shares, (one, other), strict=True)
    )
    with np.errstate(all="ignore"):
        scores = np.nan_to_num(score(caught, alarms), nan=-np.inf)
    place = int(np.argmax(scores))
    return float(scores[place]), float(cuts[place])


def _cuts(one: Array, other: Array) -> Array:
    """Places to cut: evenly through the losses of both tables, and finely in their upper ends."""
    both = np.sort(np.concatenate([one, other]))
    ends = np.exp(np.linspace(math.log(3 / len(both)), 0.0, CUTS))
    places = np.concatenate([np.linspace(0, 1, CUTS), 1 - ends])
    return np.unique(both[np.clip((places * len(both)).astype(int), 0, len(both) - 1)])


def _epsilon_score(caught: Array, alarms: Array, delta: float) -> Array:
    return np.log(np.maximum(caught - delta, 1e-300) / alarms)


def _epsilon(shares: Shares, delta: float) -> float:
    """The epsilon that these shares prove at ``delta``; zero where they prove nothing."""
    return max(0.0, float(_epsilon_score(np.array(shares.caught), np.array(shares.alarms), delta)))


def strength_of(shares: Shares, claim: Claim) -> float:
    """The largest strength whose curve does not allow these shares, from below; zero where all do."""
    low, high = 0.0, 1.0
    while not claim.allows(shares.caught, shares.alarms, high):
        low, high = high, 2 * high
        if high > STRONGEST:
            return low
    while high - low > 1e-3 * high and high > 1e-2:
        middle = (low + high) / 2
        low, high = (low, middle) if claim.allows(shares.caught, shares.alarms, middle) else (middle, high)
    return low


def at_least(hits: Array, draws: int, error: float) -> Array:
    """Clopper and Pearson's lower bound on a share."""
    hits = np.asarray(hits, dtype=float)
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1e-9), draws - hits + 1, error), 0.0)


def at_most(hits: Array, draws: int, error: float) -> Array:
    """Clopper and Pearson's upper bound on a share."""
    hits = np.asarray(hits, dtype=float)
    return 1 - at_least(draws - hits, draws, error)
