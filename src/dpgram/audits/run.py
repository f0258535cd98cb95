"""An audit: the real release code on both tables of a pair, many times, and what can be told from what comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dpgram.audits.batched import BatchedSource
from dpgram.audits.bounds import PILOT, lower_bounds
from dpgram.audits.claims import Claim, claim_of
from dpgram.audits.fit import Counts, faults_between, faults_of_grid
from dpgram.audits.laws import Uniforms, uniforms
from dpgram.audits.losses import pair_epsilon, privacy_loss
from dpgram.audits.neighbours import Pair, Table, answered, random_pairs, with_rows, worst_pairs
from dpgram.audits.reference import faults_of_parameters, faults_of_rounds, faults_of_second_stages
from dpgram.audits.replay import faults_of_replay
from dpgram.audits.scores import Score, scores
from dpgram.audits.steering import WHITENED, with_quick_maps
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import Mechanism, Outcome, Parameters, Task, hold
from dpgram.sampling.base import EXACT, FloatSource, RandomSource, grid_step
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import Round, WhitenedGaussian

Array = np.ndarray

CHUNK = 1_200_000  # entries of matrices that are drawn at once: 300,000 releases of two columns, some 300 MB at work
KEPT = 4_000_000  # entries of published matrices that are kept of each table, to choose tests on
FEWEST = 1000
ALONE, SLOW = 300, 40  # releases made one at a time, of each table and from each further source; of a mechanism that makes maps
ALARMS = (0.001, 0.003, 0.01, 0.03, *(round(0.05 * k, 2) for k in range(1, 20)), 0.97, 0.99)
VARYING = ("first_stage_value", "shift_removed")
CHOSEN = ("w_squared", "sketch_rows", "psi", "degrees_of_freedom")  # what an adaptive mechanism chooses after its first stage


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
    pair_epsilon: float | None  # of the proven law on this pair of tables, estimated; None where the law is not known
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
    own_maps: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> list[Audit]:
    """Audits of ``mechanism`` on its worst pairs of tables, and on ``searches`` random ones; of these, ``only`` those named.

    What is claimed comes from ``mechanism.calibrate``, what is released from ``mechanism.start``. All audits together wrongly
    accuse a mechanism that keeps its claim with probability at most 1 - ``confidence``. From ``others``, further sources, a few
    releases are made one at a time and compared with the proven law; ``nearby`` does so with other bounds, columns and budgets. A
    printed formula is let through even where it is known to be less private than it says: an audit releases nobody's table.

    A mechanism that makes maps is given quick ones (``steering``), but for those few, or for all with ``own_maps``: some 30 ms each."""
    if draws < FEWEST:
        raise MechanismError(f"draws is {draws} and must be at least {FEWEST}: fewer tell nothing.")
    if not 0.5 <= confidence < 1:
        raise MechanismError(f"confidence is {confidence:g} and must lie between 0.5 and 1, such as 0.999.")
    task = with_rows(mechanism.name, replace(task, experiment=True))
    found = mechanism.calibrate(task)
    pairs = worst_pairs(mechanism.name, task, found)
    pairs += random_pairs(mechanism.name, task, found, searches, np.random.default_rng(0))
    each = 1 - (1 - confidence) / (len(pairs) + 1)
    claim, faults = claim_of(mechanism.name, task, found), faults_of_parameters(mechanism, task, found)
    faults += _faults_nearby(mechanism, task, rng, 1 - each) if nearby else []
    audits = []
    for pair in pairs:
        if only is not None and pair.name not in only:
            continue
        drawing = _Drawing(mechanism, task, found, pair, own_maps=own_maps)
        again = drawing.replayed(rng)
        error = (1 - each) / 3 / (1 + len(others))
        first, second, strange = drawing.draw(rng, draws, error, _teller(progress, pair.name))
        alone = SLOW if mechanism.name == WHITENED else ALONE
        for other in others if drawing.laws[0] is not None else ():
            strange += [
                f"{words} (one at a time, {other.arithmetic})" for words in drawing.look(other, alone, error, batched=False)
            ]
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
    for name, other in nearby.items():
        try:
            found = mechanism.calibrate(other)
        except MechanismError:
            continue  # not for this relation, or not with these options
        strange = faults_of_parameters(mechanism, other, found)
        drawing = _Drawing(mechanism, other, found, worst_pairs(mechanism.name, other, found)[0])
        if drawing.laws[0] is not None:
            strange += drawing.look(rng, 2 * ALONE, error / len(nearby))
        faults += [f"{words} (with {name})" for words in strange]
    return faults


def _teller(progress: Callable[[str, float], None] | None, name: str) -> Callable[[float], None]:
    return lambda share: progress(name, share) if progress else None


class _Drawing:
    """Releases of both tables of a pair, as numbers by which they may be told apart, and what is strange about them."""

    def __init__(self, mechanism: Mechanism, task: Task, found: Parameters, pair: Pair, *, own_maps: bool = False):
        self.alone, self.task, self.found, self.pair = replace(mechanism, batched=False), task, found, pair
        self.mechanism = mechanism if own_maps else with_quick_maps(mechanism)
        self.rounds = int(found.get("rounds", 1))
        self.loss = privacy_loss(mechanism.name, task, found, pair)
        self.tables = (pair.first, pair.second)
        self.laws = [uniforms(mechanism.name, task, found, gram) for gram in self.tables]

    def draw(
        self, rng: RandomSource, draws: int, error: float, tell: Callable[[float], None]
    ) -> tuple[Array, Array, list[str]]:
        """Scores of ``draws`` releases of each table, and faults. The first releases are kept, and the tests chosen on them."""
        kept = max(200, min(int(PILOT * draws), KEPT // self.task.dim**2 // self.rounds))
        tests = [_LawTest(law) for law in self.laws]
        pilots = [self._some(rng, table, kept, test) for table, test in zip(self.tables, tests, strict=True)]
        strange = self._strange(pilots, error / 4, exact=rng.arithmetic == EXACT)
        fitted = pilots
        if (
            self.rounds > 1
        ):  # so many numbers that discriminants look best on the very releases they are fitted to: on others, then
            fitted = [self._some(rng, table, kept, test) for table, test in zip(self.tables, tests, strict=True)]
        made = scores(self.loss, *(_entries(many, self.rounds) for many in fitted))
        out = np.empty((2, draws, len(made)))
        step, done = max(1, CHUNK // self.task.dim**2 // self.rounds), 2 * kept
        for place, table in enumerate(self.tables):
            out[place, :kept] = _scored(made, pilots[place], self.rounds)
            for start in range(kept, draws, step):
                stop = min(start + step, draws)
                out[place, start:stop] = _scored(made, self._some(rng, table, stop - start, tests[place]), self.rounds)
                done += stop - start
                tell(done / (2 * draws))
        return out[0], out[1], strange + _faults_of_laws(tests, error * 3 / 4, exact=rng.arithmetic == EXACT)

    def look(self, rng: RandomSource, draws: int, error: float, *, batched: bool = True) -> list[str]:
        """Faults of a few releases, all at once or one at a time."""
        tests = [_LawTest(law) for law in self.laws]
        mechanism = self.mechanism if batched else self.alone
        few = [releases(mechanism, self.task, table, rng, draws) for table in self.tables]
        for test, many in zip(tests, few, strict=True):
            test.add(many)
        return (
            self._strange(few, error / 4, exact=rng.arithmetic == EXACT)
            + self.replayed(rng)
            + _faults_of_laws(tests, error * 3 / 4, exact=rng.arithmetic == EXACT)
        )

    def replayed(self, rng: RandomSource) -> list[str]:
        """Faults of one release of several rounds, held again on the other table."""
        return faults_of_replay(self.alone, self.task, self.pair, rng) if self.mechanism.name == WHITENED else []

    def _some(self, rng: RandomSource, table: Table, draws: int, test: _LawTest) -> Outcome:
        many = releases(self.mechanism, self.task, table, rng, draws)
        test.add(many)
        return many

    def _strange(self, some: Sequence[Outcome], error: float, *, exact: bool) -> list[str]:
        """What is published besides the matrix must not depend on the table, but for what the first stage paid for."""
        faults = [fault for many in some for fault in faults_of_second_stages(self.task, self.found, many)]
        faults += [fault for many in some for fault in faults_of_rounds(self.task, many)]
        for each in (each for many in some for each in _rounds(many) if exact):
            faults += faults_of_grid(each.gram, grid_step(each.sd_off_diagonal), error / 2 / len(some) / self.rounds)
        for name, value in self.found.items():
            free = name in CHOSEN and "first_stage_value" in some[0].parameters
            if not free and any(np.any(np.asarray(many.parameters.get(name, value)) != value) for many in some):
                faults.append(f"{name} is not what the calibration says")
        grid, free = some[0].grid, "first_stage_value" in some[0].parameters
        if grid is not None and all(many.grid == grid for many in some):  # never of one that changes, which is not a number
            faults += [fault for many in some for fault in faults_of_grid(many.gram, grid, error / 2)]
        elif any(many.grid is not None for many in some) and not free:
            faults.append("the grid depends on the table")
        return faults


class _LawTest:
    """Counts of what should be uniform in releases of one table; the first numbers are kept."""

    def __init__(self, law: Uniforms | None):
        self.law, self.counts, self.first = law, Counts(), np.empty((0, 0))

    def add(self, many: Outcome) -> None:
        if self.law is None:
            return
        numbers = self.law(many)
        if not self.counts.draws:
            self.first = numbers[:50_000]
        self.counts.add(numbers)


def _faults_of_laws(tests: Sequence[_LawTest], error: float, *, exact: bool) -> list[str]:
    if any(test.law is None for test in tests):
        return []
    faults = [fault for test in tests for fault in test.counts.faults(error / 3)]
    if tests[0].first.shape[1] != tests[1].first.shape[1]:
        return [*faults, "more is published of one table than of the other"]
    return list(dict.fromkeys(faults + faults_between(tests[0].first, tests[1].first, error / 3, exact=exact)))


def _rounds(many: Outcome) -> tuple[Round, ...]:
    return many.noise.rounds if isinstance(many.noise, WhitenedGaussian) else ()


def _entries(many: Outcome, rounds: int) -> Array:
    """What is published: the matrix, and numbers that differ from release to release; of several rounds, all matrices and maps."""
    above = np.triu_indices(many.gram.shape[-1])
    if _rounds(many):
        found = [each.gram[:, *above] for each in _rounds(many)[:rounds]]
        found += [each.through.reshape(len(many.gram), -1) for each in _rounds(many)[1:rounds]]
        width = rounds * len(above[0]) + (rounds - 1) * many.gram.shape[-1] ** 2
        entries = np.hstack(found)
        return np.pad(entries, ((0, 0), (0, width - entries.shape[1])))  # where a wrong release has fewer
    numbers = [
        np.broadcast_to(many.parameters[name], len(many.gram)) for name in (*VARYING, *CHOSEN) if name in many.parameters
    ]
    return np.column_stack([many.gram[:, *above], *numbers])


def _scored(made: Sequence[Score], many: Outcome, rounds: int) -> Array:
    entries = _entries(many, rounds)
    return np.nan_to_num(np.column_stack([score(many, entries) for score in made]), posinf=np.inf, neginf=-np.inf)


def releases(mechanism: Mechanism, task: Task, table: Table, rng: RandomSource, draws: int) -> Outcome:
    """Independent releases by the conversation that the curator holds: one outcome whose matrix and numbers have a place for each.

    They are drawn at once where the mechanism and the source can, otherwise one after the other."""
    if mechanism.batched and isinstance(rng, FloatSource):
        return hold(mechanism.start(task, BatchedSource(rng, draws)), lambda question: answered(table, question, task))
    outcomes = [hold(mechanism.start(task, rng), lambda question: answered(table, question, task)) for _ in range(draws)]
    names = [name for name in outcomes[0].parameters if all(name in outcome.parameters for outcome in outcomes)]
    numbers = {name: np.array([outcome.parameters[name] for outcome in outcomes]) for name in names}
    grids = {outcome.grid for outcome in outcomes}
    if not isinstance(outcomes[0].gram, np.ndarray):
        raise MechanismError(
            f"{mechanism.name} publishes no floats in {rng.arithmetic} arithmetic: end it with conversation.publish."
        )
    grid = grids.pop() if len(grids) == 1 else math.nan
    many = np.array([outcome.gram for outcome in outcomes])
    noise = _together(outcomes) if _rounds(outcomes[0]) else outcomes[0].noise
    return Outcome(many, noise, numbers, grid)  # type: ignore[arg-type]


def _together(outcomes: Sequence[Outcome]) -> WhitenedGaussian:
    """The rounds of many releases; those that not all of them have are left out."""
    rounds = zip(*(_rounds(outcome) for outcome in outcomes), strict=False)
    return WhitenedGaussian(
        tuple(
            Round(
                np.array([each.through for each in same]),
                np.array([each.gram for each in same]),
                same[0].sd_off_diagonal,
                np.array([each.kept for each in same]),  # type: ignore[arg-type]
            )
            for same in rounds
        )
    )


def judge(
    mechanism: str, pair: str, first: Array, second: Array, claim: Claim, confidence: float, faults: Sequence[str] = ()
) -> Audit:
    """What the scores of releases of the two tables say about ``claim``; the first score is the privacy loss where that is known."""
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
        pair_epsilon(first[:, 0], second[:, 0], claim.delta) if claim.known else None,
        bounds.counted,
        bounds.shaped,
        bounds.strength,
        tuple(dict.fromkeys(faults)),
        tuple(map(float, alarms)),
        tuple(map(float, misses)),
        tuple(map(float, claim.missed(alarms))),
    )
