"""Releases of both tables of a pair by the real release code: numbers by which they may be told apart, and what is strange."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpgram.audits.bounds import PILOT
from dpgram.audits.fit import Counts, faults_between, faults_of_grid
from dpgram.audits.laws.base import MechanismLaw
from dpgram.audits.neighbours import Pair, Table, answered
from dpgram.audits.replay import faults_of_replay
from dpgram.audits.scores import OutcomeScore, scores
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import Mechanism, Outcome, Task, hold
from dpgram.sampling.base import EXACT, FloatSource, RandomSource, grid_step
from dpgram.terms.noise import NoiseModel, Round, SymmetricGaussian, WhitenedGaussian
from dpgram.terms.scales import MOST_SCALES

Array = np.ndarray

CHUNK = 1_200_000  # entries of matrices that are drawn at once: 300,000 releases of two columns, some 300 MB at work
KEPT = 4_000_000  # entries of published matrices that are kept of each table, to choose tests on
OUTER = 2  # matrices at further scales whose entries tests look at


class BatchedSource(FloatSource):
    """Draws from ``source`` for ``draws`` independent releases at a time: the mechanism's own formula, on stacks of matrices.

    They are not rounded to a grid, which would hide how fine the drawn noise is. Releases that are made one at a time are."""

    def __init__(self, source: FloatSource, draws: int):
        self._source, self.copies = source, (draws,)
        self.private, self.description = source.private, f"{source.description}, many releases at once"

    def normal(self, scale: float, size: tuple[int, ...]) -> Array:
        return self._source.normal(scale, size)

    def uniform(self, size: tuple[int, ...]) -> Array:
        return self._source.uniform(size)

    def key(self) -> bytes:
        return self._source.key()


def is_rounding(source: RandomSource) -> bool:
    """Whether what ``source`` publishes of one release lies on a grid."""
    return source.arithmetic == EXACT or float(source.publish(np.array([[0.25]]), 1.0)[0, 0]) == 0.0


class PairReleases:
    """Releases of both tables of a pair: many at once where the mechanism and the source can, or one at a time."""

    def __init__(self, mechanism: Mechanism, law: MechanismLaw, pair: Pair):
        self.law, self.pair = law, pair
        self.itself, self.mechanism = replace(law.whole(mechanism), batched=False), law.many_at_once(mechanism)
        self.alone = replace(law.one_at_a_time(mechanism), batched=False)
        self.rounds = int(law.parameters.get("rounds", 1))

    def draw(
        self, rng: RandomSource, draws: int, error: float, tell: Callable[[float], None]
    ) -> tuple[Array, Array, list[str]]:
        """Scores of ``draws`` releases of each table, and faults. The first releases are kept, and the tests chosen on them."""
        dim = self.law.task.dim
        kept = max(200, min(int(PILOT * draws), KEPT // dim**2 // self.rounds))
        tests = self._tests()
        pilots = [self._some(rng, kept, test) for test in tests]
        strange = self._strange(pilots, error / 4, exact=rng.arithmetic == EXACT)
        fitted = pilots
        if self.rounds > 1:  # so many numbers that discriminants look best on the releases they are fitted to: on others, then
            fitted = [self._some(rng, kept, test) for test in tests]
        made = scores(lambda many: self.law.loss(many, self.pair), *(self._entries(many) for many in fitted))
        out = np.empty((2, draws, len(made)))
        step, done = max(1, CHUNK // dim**2 // self.rounds), 2 * kept
        for place, test in enumerate(tests):
            out[place, :kept] = self._scored(made, pilots[place])
            for start in range(kept, draws, step):
                stop = min(start + step, draws)
                out[place, start:stop] = self._scored(made, self._some(rng, stop - start, test))
                done += stop - start
                tell(done / (2 * draws))
        rounded = is_rounding(rng) and not self._at_once(rng)
        return out[0], out[1], strange + faults_of_laws(tests, error * 3 / 4, rounded=rounded)

    def look(self, rng: RandomSource, draws: int, error: float, *, one_at_a_time: bool = False) -> list[str]:
        """Faults of a few releases."""
        tests = self._tests()
        few = [self._some(rng, draws, test, one_at_a_time=one_at_a_time) for test in tests]
        rounded = is_rounding(rng) and (one_at_a_time or not self._at_once(rng))
        strange = self._strange(few, error / 4, exact=rng.arithmetic == EXACT) + self.replayed(rng)
        return strange + faults_of_laws(tests, error * 3 / 4, rounded=rounded)

    def replayed(self, rng: RandomSource) -> list[str]:
        """Faults of one release of several rounds, held again on the other table."""
        return faults_of_replay(self.itself, self.law.task, self.pair, rng) if self.itself.several else []

    def _tests(self) -> list[Counts]:
        """Counts of what should be uniform, for each of the two tables."""
        return [Counts(self.pair.first), Counts(self.pair.second)]

    def _at_once(self, rng: RandomSource) -> bool:
        return self.mechanism.batched and isinstance(rng, FloatSource)

    def _some(self, rng: RandomSource, draws: int, test: Counts, *, one_at_a_time: bool = False) -> Outcome:
        many = releases(self.alone if one_at_a_time else self.mechanism, self.law.task, test.table, rng, draws)
        test.add(np.clip(np.nan_to_num(self.law.uniforms(many, test.table), nan=0.0), 0.0, 1.0))
        return many

    def _strange(self, some: Sequence[Outcome], error: float, *, exact: bool) -> list[str]:
        """What is published besides the matrix must not depend on the table, but for what the first stage paid for."""
        faults = [fault for many in some for fault in self.law.faults_of_numbers(many)]
        for each in (each for many in some for each in many.noise.rounds if exact):
            for matrix in (each.gram, *each.outer):
                faults += faults_of_grid(
                    matrix, grid_step(each.sd_off_diagonal), error / 2 / len(some) / (self.rounds + MOST_SCALES)
                )
        for name, value in self.law.parameters.items():
            fixed = name not in self.law.varying
            if fixed and any(np.any(np.asarray(many.parameters.get(name, value)) != value) for many in some):
                faults.append(f"{name} is not what the calibration says")
        grid = some[0].grid
        if grid is not None and all(many.grid == grid for many in some):  # never of one that changes, which is not a number
            faults += [fault for many in some for fault in faults_of_grid(many.gram, grid, error / 2)]
        elif any(many.grid is not None for many in some) and not self.law.grid_varies:
            faults.append("the grid depends on the table")
        return faults

    def _entries(self, many: Outcome) -> Array:
        """What is published: the matrix, and numbers that differ from release to release; of several rounds, all matrices and maps."""
        above, rounds = np.triu_indices(many.gram.shape[-1]), many.noise.rounds[: self.rounds]
        if rounds:
            maps = [each.through.reshape(len(many.gram), -1) for each in rounds[1:]]
            matrices = [*(each.gram for each in rounds), *rounds[-1].outer[:OUTER]]
            entries = np.hstack([*(matrix[:, *above] for matrix in matrices), *maps])
            width = (self.rounds + OUTER) * len(above[0]) + (self.rounds - 1) * many.gram.shape[-1] ** 2
            return np.pad(entries, ((0, 0), (0, width - entries.shape[1])))  # where a wrong release has fewer
        numbers = [np.broadcast_to(many.parameters[name], len(many.gram)) for name in self.law.varying]
        return np.column_stack([many.gram[:, *above], *numbers])

    def _scored(self, made: Sequence[OutcomeScore], many: Outcome) -> Array:
        entries = self._entries(many)
        return np.nan_to_num(np.column_stack([score(many, entries) for score in made]), posinf=np.inf, neginf=-np.inf)


def faults_of_laws(tests: Sequence[Counts], error: float, *, rounded: bool) -> list[str]:
    faults = [fault for test in tests for fault in test.faults(error / 3)]
    first, second = (test.first for test in tests)
    if first.shape[1] != second.shape[1]:
        return [*faults, "more is published of one table than of the other"]
    return list(dict.fromkeys(faults + faults_between(first, second, error / 3, rounded=rounded)))


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
    return Outcome(many, _together(outcomes), numbers, grid)  # type: ignore[arg-type]


def _together(outcomes: Sequence[Outcome]) -> NoiseModel:
    """What is published of the noise of many releases: their shifts, or their rounds and scales but for those that not all have."""
    noise = outcomes[0].noise
    if isinstance(noise, SymmetricGaussian):
        return replace(noise, shift=np.array([outcome.noise.shift for outcome in outcomes]))  # type: ignore[arg-type]
    if not noise.rounds:
        return noise
    rounds = zip(*(outcome.noise.rounds for outcome in outcomes), strict=False)
    return WhitenedGaussian(
        tuple(
            Round(
                np.array([each.through for each in same]),
                np.array([each.gram for each in same]),
                same[0].sd_off_diagonal,
                np.array([each.kept for each in same]),  # type: ignore[arg-type]
                tuple(np.array(matrices) for matrices in zip(*(each.outer for each in same), strict=False)),
                min((each.scales for each in same), key=len),
            )
            for same in rounds
        )
    )
