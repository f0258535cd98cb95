"""A mechanism is a small conversation: it asks for Gram sums, is given them, and ends with an outcome.

Most ask once, for the rows under their row bound. The curator carries a question to the engine and the sum back; a test
answers from an array. One of several rounds announces each of them (``Drawing``) before it draws, so that a ledger knows
what was spent if the release ends early."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpgram.accounting.compose import Cost, PlainCost
from dpgram.errors import CalibrationError, MechanismError
from dpgram.mechanisms.options import Option
from dpgram.sampling.base import FLOAT, Matrix, RandomSource, grid_step
from dpgram.terms.bins import Bins
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import NoiseModel
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema
from dpgram.terms.words import Words

Array = np.ndarray
Parameters = dict[str, float]

EXACT_CURVE, PAPER = "exact", "paper"


@dataclass(frozen=True)
class Task:
    """What a mechanism is to achieve. All of it is public.

    ``calibration`` is "exact" (the tight curves) or "paper" (Sheffet's printed formulas). ``rows`` is the number of rows where
    it is public and known. A unit adds at most as much to a sum as ``rows_per_unit`` rows. Where units have ids, ``units`` is their number
    where that is public and known, and ``rows`` is None. ``experiment`` lets a printed formula through that is less private than it says:
    it is never set by a release."""

    budget: Budget
    neighbours: Neighbours
    dim: int
    row_bound: float
    calibration: str = EXACT_CURVE
    options: Mapping[str, float | str] = field(default_factory=dict)
    rows: int | None = None
    units: int | None = None  # the number of units, where they have ids, likewise
    rows_per_unit: int = 1
    counts_partly: bool = False  # whether a row can count as less than one: then the number of rows says less than the sums do
    experiment: bool = False
    intercept: bool = False  # whether the first column is one in every row
    half_ranges: tuple[float, ...] = ()  # of the encoded columns, where they are declared: 1 for numbers, 0.5 for indicators
    schema: Schema | None = None  # what is declared about the columns, where the rows are those of a table

    @property
    def by_unit(self) -> bool:
        """Whether a unit's rows are protected together: then the number of rows is not public."""
        return self.rows_per_unit > 1 or (self.schema is not None and self.schema.unit_id is not None)

    @property
    def spans(self) -> tuple[float, ...]:
        """Half the range of every encoded column: of an intercept 0, of what is not declared 1."""
        return self.half_ranges or ((0.0,) if self.intercept else (1.0,)) + (1.0,) * (self.dim - 1)

    @property
    def stretches(self) -> tuple[float, ...]:
        """Of every encoded column, its half range over that in which its numbers mostly lie, where it was learnt."""
        return (1.0,) * self.dim if self.schema is None else self.schema.stretches

    def having_learnt(self, learnt: Mapping[str, tuple[float, float]]) -> Task:
        """The task with columns scaled by what was learnt of them."""
        if self.schema is None or not learnt:
            return self
        return replace(self, schema=replace(self.schema, learnt={**self.schema.learnt, **learnt}))

    @property
    def learnt(self) -> Mapping[str, tuple[float, float]]:
        """What is known of the scale of columns."""
        return {} if self.schema is None else self.schema.learnt

    def number(self, name: str) -> float | None:
        """The option ``name`` as a number, None when it was not given."""
        value = self.options.get(name)
        return None if value is None else float(value)


@dataclass(frozen=True)
class GramQuestion:
    """Asks for the sum of z z' over all rows, each shrunk to ``row_bound``; first multiplied by ``through`` where it is given.

    With a ``sample`` p it asks for the sum over rows that are read once, for all such questions, and kept in memory: each is among them
    with probability p, by a secret coin of its own. With p = 1 they are all rows.

    Mapped rows have a bound of at most one, so that sums of their grid points are exact. At several ``scales`` it asks for one sum of
    each, between which long rows are shared."""

    row_bound: float
    through: PublicMap | None = None
    questions: int | None = None  # how many there will be in all, where it is known; for progress only
    scales: Scales = ONE_CLIP
    learnt: Mapping[str, tuple[float, float]] | None = (
        None  # what was learnt of columns, to encode by; None: as the schema says
    )
    sample: float | None = None  # in (0, 1], a multiple of 2^-16


@dataclass(frozen=True)
class CountsQuestion:
    """Asks how many rows lie in each of some public bins, column by column. The answer is the matrix into which ``bins`` packs them."""

    bins: Bins
    questions: int | None = None  # as in ``GramQuestion``
    sample: float | None = None  # likewise


@dataclass(frozen=True)
class Drawing:
    """Says that the noise of round ``number`` of ``rounds`` is about to be drawn; all of it is public.

    ``spent`` is what this round and those before it cost together: of Gaussian rounds, GaussianCost(sqrt(sum of mu_i^2)). It comes
    after the round's sum is known and before its first draw, and its answer is None."""

    number: int  # from 1
    rounds: int
    spent: Cost


@dataclass(frozen=True, repr=False)
class GramAnswer:
    """The sum, unprotected, and the number of rows of the whole table where it is public."""

    gram: Matrix  # an array, or a matrix that is known exactly
    rows: int | None
    outer: tuple[Matrix, ...] = ()  # the sums at the other scales, where several were asked for, each in units of its scale


@dataclass(frozen=True)
class Outcome:
    """What a mechanism publishes."""

    gram: Array
    noise: NoiseModel
    parameters: Parameters = field(default_factory=dict)
    grid: float | None = None  # the entries of ``gram`` are multiples of it, where arithmetic is exact
    condition: str = ""  # what the guarantee hangs on besides its proof, in words
    learnt: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # about columns, with noise: they are scaled by it


def plain_cost(task: Task, parameters: Parameters) -> Cost:
    """What a release costs of which only the budget is known."""
    return PlainCost(task.budget.epsilon, task.budget.delta)


Question = GramQuestion | CountsQuestion
Conversation = Generator[Question | Drawing, GramAnswer, Outcome]


@dataclass(frozen=True)
class Mechanism:
    """One line of the registry.

    ``calibrate`` returns the public parameters without touching any data: among them ``delta_at_epsilon``, the true delta of
    the parameters. ``start`` calibrates, asks back, and only then asks its first question. One that asks for ``several`` sums needs a table
    that can be read again, and announces every round before it draws: a ledger gives back what was not announced.

    ``words`` tell people what its parameters are. A parameter ``round_<k>_<what>`` stands in a table of rounds, under the words for
    ``round_<what>``; those for ``row_bound`` say what limits a row, where it is not the schema's bound."""

    name: str
    summary: str
    proof: str  # file in proofs/
    words: Mapping[str, Words] = field(default_factory=dict, kw_only=True)  # by parameter
    calibrate: Callable[[Task], Parameters]
    start: Callable[[Task, RandomSource], Conversation]
    options: Mapping[str, Option] = field(default_factory=dict)  # by name
    cost: Callable[[Task, Parameters], Cost] = plain_cost  # what is known of its curve, for composition
    takes_units: bool = False  # whether its proof holds for all rows of a unit together, of which there can be several
    several: bool = False  # whether it asks more than one question, and so announces its rounds
    batched: bool = False  # whether a source that draws many copies at once makes many releases at once


def known_cost(mechanism: Mechanism, task: Task) -> Cost:
    """What is known of a release's curve before any row is read; where it follows a number of rows that is not known, its budget alone."""
    try:
        return mechanism.cost(task, mechanism.calibrate(task))
    except MechanismError:
        return plain_cost(task, {})


def hold(
    conversation: Conversation,
    answer: Callable[[Any], GramAnswer],
    announce: Callable[[Drawing], None] = lambda drawing: None,
) -> Outcome:
    """The outcome of the conversation when ``answer`` answers its questions and ``announce`` hears of its rounds."""
    try:
        said = next(conversation)
        while True:
            if isinstance(said, Drawing):
                announce(said)
                said = next(conversation)
            else:
                said = conversation.send(answer(said))
    except StopIteration as end:
        return end.value


def publish(matrix: Matrix, noise: NoiseModel, rng: RandomSource) -> tuple[Array, float | None]:
    """The matrix as it is published, and the step of its grid, a function of the public size of the ``noise`` in it.

    The step is declared where arithmetic is exact; the secure source rounds floats to it as well."""
    step = grid_step(noise.sd_off_diagonal)
    return rng.publish(matrix, step), None if rng.arithmetic == FLOAT else step


def ask_back(task: Task, mechanism: str, delta: float) -> None:
    """Raise unless ``delta``, the true curve at the parameters in use, is within the budget."""
    if delta <= task.budget.delta or task.experiment:
        return
    if task.calibration == PAPER:
        raise MechanismError(
            f"the printed formula of {mechanism} is less private than it says: its true delta is {delta:.3g}, but the budget allows "
            f"{task.budget.delta:.3g}. Use calibration='exact'."
        )
    raise CalibrationError(mechanism=mechanism, delta=delta, needed=task.budget.delta)


def one_sum(task: Task, mechanism: str, parameters: Parameters) -> Generator[GramQuestion, GramAnswer, GramAnswer]:
    """The sum over rows under the task's own bound, asked for only if the true curve of ``parameters`` is within the budget."""
    ask_back(task, mechanism, parameters["delta_at_epsilon"])
    return (yield GramQuestion(task.row_bound))


def require(condition: bool, what: str) -> None:
    """Raise with the condition of a printed theorem that does not hold."""
    if not condition:
        raise MechanismError(f"the printed theorem needs {what}. Use calibration='exact', or other parameters.")
