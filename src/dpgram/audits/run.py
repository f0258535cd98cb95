"""An audit: the real release code on both tables of a pair, many times, and what can be told from what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpgram.audits.batched import BatchedSource
from dpgram.audits.bounds import discriminant, lower_bounds
from dpgram.audits.claims import Claim, claim_of
from dpgram.audits.losses import Loss, privacy_loss
from dpgram.audits.neighbours import random_pairs, worst_pairs
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import GramAnswer, Mechanism, Outcome, Task, hold
from dpgram.sampling.base import FloatSource, RandomSource

Array = np.ndarray

CHUNK = 20_000
FEWEST = 1000
ALARMS = (0.001, 0.003, 0.01, 0.03, *(round(0.05 * k, 2) for k in range(1, 20)), 0.97, 0.99)


@dataclass(frozen=True)
class Audit:
    """What an audit found on one pair of tables."""

    mechanism: str
    pair: str
    draws: int  # releases of each table
    confidence: float
    claimed_epsilon: float
    delta: float
    proven_epsilon: float
    counted_epsilon: float  # lower bound, no assumption
    shaped_epsilon: float  # lower bound, if the law is of the proven family
    strength: float
    false_alarms: tuple[float, ...]
    misses: tuple[float, ...]
    proven_misses: tuple[float, ...]

    @property
    def broken(self) -> bool:
        """Whether the draws refute what was claimed, or the curve that was proven."""
        return max(self.counted_epsilon, self.shaped_epsilon) > self.claimed_epsilon * (1 + 1e-6) or self.strength > 1

    @property
    def power(self) -> float:
        """The better lower bound over the epsilon that is proven: close to one where the pair is the worst and the draws are many."""
        return max(self.counted_epsilon, self.shaped_epsilon) / self.proven_epsilon

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "power": self.power, "broken": self.broken}


def audit(
    mechanism: Mechanism,
    task: Task,
    rng: RandomSource,
    *,
    draws: int,
    confidence: float = 0.999,
    searches: int = 0,
    only: Sequence[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> list[Audit]:
    """Audits of ``mechanism`` on its worst pairs of tables, and on ``searches`` random ones; of these, ``only`` those named.

    What is claimed comes from ``mechanism.calibrate``, what is released from ``mechanism.start``. All audits together wrongly
    accuse a mechanism that keeps its claim with probability at most 1 - ``confidence``. A printed formula is let through even where
    it is known to be less private than it says: an audit releases nobody's table."""
    if draws < FEWEST:
        raise MechanismError(f"draws is {draws} and must be at least {FEWEST}: fewer tell nothing.")
    if not 0.5 <= confidence < 1:
        raise MechanismError(f"confidence is {confidence:g} and must lie between 0.5 and 1, such as 0.999.")
    task = replace(task, experiment=True)
    found = mechanism.calibrate(task)
    claim = claim_of(mechanism.name, task, found)
    pairs = worst_pairs(mechanism.name, task, found)
    pairs += random_pairs(mechanism.name, task, found, searches, np.random.default_rng(0))
    each = 1 - (1 - confidence) / len(pairs)
    audits = []
    for pair in pairs:
        if only is not None and pair.name not in only:
            continue
        loss = privacy_loss(mechanism.name, task, found, pair)

        def tell(share: float, half: int, name: str = pair.name) -> None:
            if progress:
                progress(name, (share + half) / 2)

        first = draw(mechanism, task, pair.first, loss, rng, draws, partial(tell, half=0))
        second = draw(mechanism, task, pair.second, loss, rng, draws, partial(tell, half=1))
        audits.append(judge(mechanism.name, pair.name, first, second, claim, each))
    return audits


@dataclass(frozen=True, eq=False)
class Drawn:
    """Many releases of one table: their privacy losses, and the entries of the released matrices, one release in a row."""

    losses: Array
    entries: Array


def draw(
    mechanism: Mechanism,
    task: Task,
    gram: Array,
    loss: Loss,
    rng: RandomSource,
    draws: int,
    progress: Callable[[float], None] | None = None,
) -> Drawn:
    """``draws`` releases of a table with the Gram sum ``gram``."""
    upper = np.triu_indices(task.dim)
    losses, entries = np.empty(draws), np.empty((draws, len(upper[0])))
    for start in range(0, draws, CHUNK):
        stop = min(start + CHUNK, draws)
        many = releases(mechanism, task, gram, rng, stop - start)
        losses[start:stop] = loss(many)
        entries[start:stop] = many.gram[:, *upper]
        if progress:
            progress(stop / draws)
    return Drawn(losses, entries)


def releases(mechanism: Mechanism, task: Task, gram: Array, rng: RandomSource, draws: int) -> Outcome:
    """Independent releases by the conversation that the curator holds: one outcome whose matrix and numbers have a place for each.

    They are drawn at once where the mechanism and the source can, otherwise one after the other."""
    answer = GramAnswer(gram, task.rows)
    if mechanism.batched and isinstance(rng, FloatSource):
        return hold(mechanism.start(task, BatchedSource(rng, draws)), lambda question: answer)
    outcomes = [hold(mechanism.start(task, rng), lambda question: answer) for _ in range(draws)]
    numbers = {name: np.array([outcome.parameters[name] for outcome in outcomes]) for name in outcomes[0].parameters}
    return Outcome(np.array([outcome.gram for outcome in outcomes]), outcomes[0].noise, numbers)  # type: ignore[arg-type]


def judge(mechanism: str, pair: str, first: Drawn, second: Drawn, claim: Claim, confidence: float) -> Audit:
    """What releases of the two tables say about ``claim``."""
    weights = discriminant(first.entries, second.entries)
    one, other = (np.column_stack([drawn.losses, drawn.entries @ weights]) for drawn in (first, second))
    bounds = lower_bounds(one, other, claim, confidence)
    cuts = np.quantile(second.losses, 1 - np.array(ALARMS), method="higher")
    alarms = np.array([np.mean(second.losses >= cut) for cut in cuts])
    misses = np.array([np.mean(first.losses < cut) for cut in cuts])
    return Audit(
        mechanism,
        pair,
        len(first.losses),
        confidence,
        claim.epsilon,
        claim.delta,
        claim.proven_epsilon(),
        bounds.counted,
        bounds.shaped,
        bounds.strength,
        tuple(map(float, alarms)),
        tuple(map(float, misses)),
        tuple(map(float, claim.missed(alarms))),
    )
