"""An audit: the real release code on both tables of a pair, many times, and what can be told from what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dpgram.audits.bounds import lower_bounds, pair_epsilon
from dpgram.audits.claims import Claim
from dpgram.audits.draws import PairReleases
from dpgram.audits.laws.registry import law_of
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import Mechanism, Task
from dpgram.sampling.base import RandomSource
from dpgram.terms.budget import Budget, Neighbours

Array = np.ndarray

FEWEST = 1000
ALONE, SLOW = 300, 40  # releases made one at a time, of each table and from each further source; SLOW of several rounds
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
    pair_epsilon: float  # of the proven law on this pair of tables, estimated
    counted_epsilon: float  # lower bound, no assumption
    shaped_epsilon: float  # lower bound, if the law is of the proven family
    strength: float
    faults: tuple[str, ...]  # where parameters or releases are not what the proof speaks of
    false_alarms: tuple[float, ...]
    misses: tuple[float, ...]
    proven_misses: tuple[float, ...]

    @property
    def broken(self) -> bool:
        """Whether the draws refute what was claimed, the curve that was proven, or the law that the proof speaks of."""
        above = max(self.counted_epsilon, self.shaped_epsilon) > self.claimed_epsilon * (1 + 1e-6)
        return above or self.strength > 1 or bool(self.faults)

    @property
    def power(self) -> float:
        """The better lower bound over the epsilon that is proven: close to one where the pair is the worst and the draws are many."""
        return max(self.counted_epsilon, self.shaped_epsilon) / max(self.proven_epsilon, 1e-12)

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
    others: Sequence[RandomSource] = (),
    nearby: bool = True,
    progress: Callable[[str, float], None] = lambda pair, share: None,
) -> list[Audit]:
    """Audits of ``mechanism`` on its worst pairs of tables, and on ``searches`` random ones; of these, ``only`` those named.

    What is claimed comes from ``mechanism.calibrate``, what is released from ``mechanism.start``. All audits together wrongly
    accuse a mechanism that keeps its claim with probability at most 1 - ``confidence``. From ``others``, further sources, a few
    releases are made one at a time and compared with the proven law; ``nearby`` does so with other bounds, columns and budgets. A
    printed formula is let through even where it is known to be less private than it says: an audit releases nobody's table.

    A mechanism that makes maps is given quick ones (``MechanismLaw.many_at_once``), but for those few: its own take some 30 ms each."""
    if draws < FEWEST:
        raise MechanismError(f"draws is {draws} and must be at least {FEWEST}, because fewer show nothing.")
    if not 0.5 <= confidence < 1:
        raise MechanismError(f"confidence is {confidence:g} and must lie between 0.5 and 1, such as 0.999.")
    kind = law_of(mechanism.name)
    task = kind.prepared(replace(task, experiment=True))
    law = kind(task, mechanism.calibrate(task))
    pairs = law.worst_pairs() + law.random_pairs(searches, np.random.default_rng(0))
    each = 1 - (1 - confidence) / (len(pairs) + 1)
    claim, faults = law.claim(), law.faults_of_parameters()
    faults += _faults_nearby(mechanism, task, rng, 1 - each) if nearby else []
    audits = []
    for pair in pairs:
        if only is not None and pair.name not in only:
            continue
        drawing = PairReleases(mechanism, law, pair)
        again = drawing.replayed(rng)
        error = (1 - each) / 3 / (1 + len(others))
        first, second, strange = drawing.draw(rng, draws, error, partial(progress, pair.name))
        for other in others:
            seen = drawing.look(other, SLOW if mechanism.several else ALONE, error, one_at_a_time=True)
            strange += [f"{words} (one at a time, {other.arithmetic})" for words in seen]
        audits.append(
            judge(mechanism.name, pair.name, first, second, claim, 1 - (1 - each) * 2 / 3, [*faults, *again, *strange])
        )
    return audits


def _faults_nearby(mechanism: Mechanism, task: Task, rng: RandomSource, error: float) -> list[str]:
    """Faults with tasks nearby: other bounds, columns, budgets, relations, after ``task`` itself. One must not be mixed up with another."""
    budget, faults = task.budget, []
    nearby = {
        "a larger row bound": replace(task, row_bound=2.5 * task.row_bound),
        "one column more": replace(task, dim=task.dim + 1),
        "a smaller epsilon": replace(task, budget=Budget(budget.epsilon / 2, budget.delta)),
        "a smaller delta": replace(task, budget=Budget(budget.epsilon, budget.delta / 10)),
        "the other neighbours": replace(task, neighbours=next(each for each in Neighbours if each is not task.neighbours)),
    }
    if mechanism.takes_units:
        nearby["one row more per unit"] = replace(task, rows_per_unit=task.rows_per_unit + 1)
    for name, other in nearby.items():
        try:
            law = law_of(mechanism.name)(other, mechanism.calibrate(other))
        except MechanismError:
            continue  # not for this relation, or not with these options
        drawing = PairReleases(mechanism, law, law.worst_pairs()[0])
        strange = law.faults_of_parameters() + drawing.look(rng, 2 * ALONE, error / len(nearby))
        faults += [f"{words} (with {name})" for words in strange]
    return faults


def judge(
    mechanism: str, pair: str, first: Array, second: Array, claim: Claim, confidence: float, faults: Sequence[str] = ()
) -> Audit:
    """What the scores of releases of the two tables say about ``claim``; the first score is the privacy loss."""
    bounds = lower_bounds(first, second, claim, confidence)
    cuts = np.quantile(second[:, 0], 1 - np.array(ALARMS), method="higher")
    alarms = np.array([np.mean(second[:, 0] >= cut) for cut in cuts])
    misses = np.array([np.mean(first[:, 0] < cut) for cut in cuts])
    return Audit(
        mechanism,
        pair,
        len(first),
        confidence,
        claim.epsilon,
        claim.delta,
        claim.proven_epsilon(),
        pair_epsilon(first[:, 0], second[:, 0], claim.delta),
        bounds.counted,
        bounds.shaped,
        bounds.strength,
        tuple(dict.fromkeys(faults)),
        tuple(map(float, alarms)),
        tuple(map(float, misses)),
        tuple(map(float, claim.missed(alarms))),
    )
