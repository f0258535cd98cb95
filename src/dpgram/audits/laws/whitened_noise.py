"""The law of whitened-noise: normal noise in every round, around the sum through the map that was published before it.

The mechanism asks for other sums as it goes on, so its tables are rows: many short ones in every direction, by which its maps come close
to a multiple of a rotation, and leave long rows long and right angles right.

Its maps are made by a search that takes milliseconds. Its proof allows any that are functions of what was published, so many releases at
once have simpler ones, made in one step from the round before; all else is the mechanism's own. A few releases are made with its own
maps as well. The number of scales may follow the map, and is fixed in both, so that each release publishes as much.

The short rows come out of these maps at about the clip. So rows a little longer than they are reach one scale or another, and the pairs
include some in which a row moves between two, crosses the switch or stands at the clip."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpgram.accounting.gaussian import gaussian_delta
from dpgram.audits import reference
from dpgram.audits.laws.base import TOLERANCE, MechanismLaw, Options
from dpgram.audits.laws.gaussian_noise import gaussian_loss, normal_uniforms
from dpgram.audits.neighbours import Contrast, Pair, Rows, shares
from dpgram.linalg.rounds import unmapped
from dpgram.mechanisms.conversation import Conversation, Mechanism, Outcome, Task
from dpgram.mechanisms.whitened_noise import hinted_rows
from dpgram.mechanisms.whitening import MEMORY, Rules
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import Round, WhitenedGaussian
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import RATIO, SWITCH, Scales, first_scales

Array = np.ndarray

MANY, SHORT = 3000, 0.1  # rows of a table where nobody says how many; the length of most over the row bound
LONG = {"at the clip": 1.0, "in the first scale": 3.0, "at the switch": SWITCH * RATIO, "in the second scale": 8.0}
"""Squared lengths of a row over those of short ones, which are about one after a map."""


class WhitenedNoiseLaw(MechanismLaw):
    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        return [{"table_rows": float(MANY)}] if neighbours is Neighbours.ADD_REMOVE else [{}]

    @classmethod
    def prepared(cls, task: Task) -> Task:
        """The number of rows of the tables is known where it is public. All rounds are over all rows: none costs less over a sample."""
        task = replace(task, options={**task.options, MEMORY.name: 0.0})
        if task.neighbours is not Neighbours.REPLACE or hinted_rows(task) is not None:
            return task
        return replace(task, units=math.ceil(MANY / task.rows_per_unit)) if task.by_unit else replace(task, rows=MANY)

    def many_at_once(self, mechanism: Mechanism) -> Mechanism:
        start: Callable[..., Conversation] = mechanism.start
        return replace(mechanism, start=partial(start, **QUICK), batched=True)

    def one_at_a_time(self, mechanism: Mechanism) -> Mechanism:
        """With its own maps, and as many scales whatever they are."""
        start: Callable[..., Conversation] = mechanism.start
        return replace(mechanism, start=partial(start, scales_of=quick_scales))

    def loss(self, many: Outcome, pair: Pair) -> Array:
        """The sum over rounds, each with the map that was published before it."""
        losses = np.zeros(len(many.gram))
        for each in many.noise.rounds:
            off, tables = each.sd_off_diagonal, (pair.first, pair.second)
            sums = zip(*(table.grams(each.through, each.scales) for table in tables), strict=True)
            for matrix, (first, second) in zip((each.gram, *each.outer), sums, strict=True):
                losses += gaussian_loss(matrix, first, second, off, math.sqrt(2) * off)
        return losses

    def uniforms(self, many: Outcome, table: Rows) -> Array:
        """The sds are those of the calibration, where that knows how many rounds there are."""
        numbers = []
        for place, each in enumerate(many.noise.rounds, 1):
            off = self.parameters.get(f"round_{place}_sd_off_diagonal", each.sd_off_diagonal)
            sums = table.grams(each.through, each.scales)
            for matrix, true in zip((each.gram, *each.outer), sums, strict=True):
                numbers.append(normal_uniforms(matrix - true, off, math.sqrt(2) * off))
        return np.hstack(numbers)

    def curve(self, epsilon: float, strength: float) -> float:
        return gaussian_delta(epsilon, strength * self.parameters["mu"])

    def delta(self) -> float:
        if "rounds" not in self.parameters:
            return reference.hockey_stick(self.task.budget.epsilon, self.parameters["mu"])
        places = range(1, int(self.parameters["rounds"]) + 1)
        return reference.rounds(self.task, [self.parameters[f"round_{place}_sd_off_diagonal"] for place in places])

    def faults_of_numbers(self, many: Outcome) -> list[str]:
        """Whether the noise that the rounds say they have is enough, whatever number of them there is."""
        budget, delta = self.task.budget, reference.rounds(self.task, [each.sd_off_diagonal for each in many.noise.rounds])
        if delta <= budget.delta * (1 + TOLERANCE):
            return []
        return [f"the rounds have delta {delta:.4g} at epsilon {budget.epsilon:g}, where {budget.delta:.4g} is claimed"]

    def worst_pairs(self) -> list[Pair]:
        """Those of long rows, and some whose rows are shared between the sums of the last round in different ways."""
        return super().worst_pairs() + [self.pair(contrast) for contrast in self._shared()]

    def _shared(self) -> list[Contrast]:
        task, along = self.task, self.task.row_bound * SHORT * np.eye(self.task.dim)[[0, -1]]
        if task.neighbours is Neighbours.ADD_REMOVE:
            return [Contrast(f"one row more, {name}", math.sqrt(square) * along[0]) for name, square in LONG.items()]
        first, switch, second = (math.sqrt(LONG[name]) for name in [*LONG][1:])
        moves = {
            "a row moves from one scale to another": (first * along[0], second * along[0]),
            "a row crosses the switch": (switch * (1 - 1e-3) * along[0], switch * (1 + 1e-3) * along[0]),
            "a row turns and moves": (first * along[0], second * along[1]),
            "a row at the clip turns": (along[0], along[1]),
        }
        return [Contrast(name, *rows) for name, rows in moves.items()]

    def pair(self, contrast: Contrast) -> Pair:
        """Tables of short rows along the columns, both ways, and the rows or units of the contrast; as many as the task says.

        Where the second has no other row, it has a row of zeros, or no row under ADD_REMOVE."""
        task, replaced = self.task, self.task.neighbours is Neighbours.REPLACE
        columns = SHORT * task.row_bound * np.eye(task.dim)[1 if contrast.last else 0 :]
        beside = np.empty((0, task.dim)) if contrast.beside is None else contrast.beside
        many = int(hinted_rows(task) or MANY) - len(beside) - replaced
        each, left = divmod(max(many, 0), 2 * len(columns))
        counts = [each + (place < left) for place in range(2 * len(columns))]
        common = np.vstack([columns, -columns, beside])
        shared = [*counts, *np.ones(len(beside))]
        more = Rows(np.vstack([common, contrast.one]), np.array([*shared, *shares(contrast.one, task)]))
        if not replaced:
            return Pair(contrast.name, more, Rows(common, np.array(shared)))
        other = np.zeros(task.dim) if contrast.other is None else contrast.other
        return Pair(contrast.name, more, Rows(np.vstack([common, other]), np.array([*shared, *shares(other, task)])))


class ManyMaps(PublicMap):
    """A map for each of many releases, in floats: an audit answers from rows of its own, and needs no exact sums."""

    many: Array

    def __init__(self, many: Array):
        object.__setattr__(self, "many", many)

    @property
    def matrix(self) -> Array:
        return self.many


def quick_map(seen: Sequence[Round], rules: Rules, rows: float | None, task: Task) -> PublicMap:
    """V w^(-1/2) V' T sqrt(m / d), from the last round's map T and matrix V w V' of m rows; eigenvalues within noise are lifted.

    It whitens by the last round alone, and shrinks rows of more than average length."""
    last = seen[-1]
    values, vectors = np.linalg.eigh(last.gram)
    values = np.maximum(values, 2 * math.sqrt(task.dim) * last.sd_off_diagonal)
    many = values.sum(axis=-1)[..., None, None]  # about so many rows, those that were not shrunk counting less
    matrix = (vectors / np.sqrt(values)[..., None, :]) @ vectors.mT @ last.through * np.sqrt(many / task.dim)
    return PublicMap.near(matrix) if matrix.ndim == 2 else ManyMaps(matrix)


def quickly_finished(seen: Sequence[Round], rows: float | None, task: Task) -> Outcome:
    """The last round's matrix in the table's own columns; nothing is said of shrinking."""
    last = seen[-1]
    whole = unmapped(last.gram, last.through)
    return Outcome((whole + whole.mT) / 2, WhitenedGaussian(tuple(seen)))


def quick_scales(through: PublicMap, task: Task) -> Scales:
    """The same for all releases, whatever their maps."""
    return first_scales(3)


QUICK = {"next_map": quick_map, "finished": quickly_finished, "scales_of": quick_scales}
