"""Lower confidence bounds on epsilon from numbers drawn on both tables.

By which number to tell the tables apart, where to cut it and which table to accuse is chosen on the first fifth of the draws; the
shares of correct and false accusations are then counted on the rest, with Clopper and Pearson's bounds. So the confidence holds
whatever the mechanism does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from dpgram.audits.claims import STRENGTHS, Claim, smallest_epsilon

Array = np.ndarray
PairScore = Callable[[Array, Array], Array]  # of shares caught and of false alarms

PILOT, CAUTION = 0.2, 1e-3  # the share of the draws, and the error of the bounds by which a cut is chosen on it
CUTS = 400


@dataclass(frozen=True)
class Bounds:
    """What the draws show, with the confidence asked for.

    ``counted`` is a bound on epsilon at the claim's delta without any assumption. ``strength`` is a bound on the factor by which
    a row counts more than proven, if the law is of the proven family, and ``shaped`` the epsilon of that member of the family."""

    counted: float
    shaped: float
    strength: float


def lower_bounds(first: Array, second: Array, claim: Claim, confidence: float) -> Bounds:
    """Bounds from releases of the first and of the second table, one in a row; both hold together with ``confidence``.

    Each column is a number by which the tables may be told apart; which one is used is chosen with the cut. The tests are ">= cut", for the
    first table, and "<= cut", for the second."""
    error = (1 - confidence) / 4  # two bounds, of two shares each
    (pilot_first, rest_first), (pilot_second, rest_second) = (
        np.split(rows, [int(PILOT * len(rows))]) for rows in (first, second)
    )
    sides = [
        (sign * one[:, k], sign * other[:, k], sign * rest[:, k], sign * far[:, k])
        for k in range(first.shape[1])
        for sign, one, other, rest, far in (
            (1, pilot_first, pilot_second, rest_first, rest_second),
            (-1, pilot_second, pilot_first, rest_second, rest_first),
        )
    ]

    def best(score: PairScore) -> tuple[float, float]:
        """Bounds on the shares of the best test: of those caught, from below, and of false alarms, from above."""
        options = [(*_best_cut(one, other, score), rest, far) for one, other, rest, far in sides]
        _, cut, rest, far = max(options, key=lambda option: option[0])
        caught, alarms = (int(np.count_nonzero(side >= cut)) for side in (rest, far))
        return float(at_least(caught, len(rest), error)), float(at_most(alarms, len(far), error))

    def epsilon(caught: Array, alarms: Array) -> Array:
        """What these shares prove at the claim's delta; below zero where they prove nothing."""
        return np.log(np.maximum(caught - claim.delta, 1e-300) / alarms)

    counted = max(0.0, float(epsilon(*map(np.array, best(epsilon)))))
    strength = strength_of(*best(claim.refuted), claim)
    return Bounds(counted, claim.proven_epsilon(strength) if strength else 0.0, strength)


def _best_cut(one: Array, other: Array, score: PairScore) -> tuple[float, float]:
    """(score, cut) of the cut that promises most: cautiously, or the best of many cuts is the luckiest."""
    both = np.sort(np.concatenate([one, other]))
    ends = np.exp(np.linspace(math.log(3 / len(both)), 0.0, CUTS))
    places = np.concatenate(
        [np.linspace(0, 1, CUTS), 1 - ends]
    )  # evenly through both tables' losses, and finely in their upper ends
    cuts = np.unique(both[np.clip((places * len(both)).astype(int), 0, len(both) - 1)])
    shares = [(len(losses) - np.searchsorted(np.sort(losses), cuts)) / len(losses) for losses in (one, other)]
    caught, alarms = (
        bound(share * len(losses), len(losses), CAUTION)
        for bound, share, losses in zip((at_least, at_most), shares, (one, other), strict=True)
    )
    with np.errstate(all="ignore"):
        scores = np.nan_to_num(score(caught, alarms), nan=-np.inf)
    place = int(np.argmax(scores))
    return float(scores[place]), float(cuts[place])


def strength_of(caught: float, alarms: float, claim: Claim) -> float:
    """The largest strength whose curve does not allow these shares, from below; zero where all do."""
    whole = int(claim.refuted(np.array([caught]), np.array([alarms]))[0])
    low = STRENGTHS[whole - 1] if whole else 0.0
    if whole == len(STRENGTHS):
        return low
    high = STRENGTHS[whole]
    while high - low > 5e-3 * high and high > 0.05:
        middle = (low + high) / 2
        low, high = (low, middle) if claim.allows(caught, alarms, middle) else (middle, high)
    return low


def at_least(hits: Array | int, draws: int, error: float) -> Array:
    """Clopper and Pearson's lower bound on a share."""
    hits = np.asarray(hits, dtype=float)
    return np.where(hits > 0, betaincinv(np.maximum(hits, 1e-9), draws - hits + 1, error), 0.0)


def at_most(hits: Array | int, draws: int, error: float) -> Array:
    """Clopper and Pearson's upper bound on a share."""
    hits = np.asarray(hits, dtype=float)
    return 1 - at_least(draws - hits, draws, error)


def pair_epsilon(first: Array, second: Array, delta: float) -> float:
    """The epsilon at ``delta`` of the law on this pair of tables, estimated from the losses of releases of both.

    delta(epsilon) is the mean of (1 - e^(epsilon - loss))+ on either table, the loss turned round on the second."""

    def holds(epsilon: float) -> bool:
        return all(np.mean(-np.expm1(np.minimum(epsilon - losses, 0.0))) <= delta for losses in (first, -second))

    return smallest_epsilon(holds, 1e-3)
