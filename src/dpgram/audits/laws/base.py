"""MechanismLaw: what an audit has to know of a mechanism. A subclass for each, written from its proof, is listed in ``registry``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from dpgram.audits.claims import Claim
from dpgram.audits.neighbours import Contrast, Pair, Table, gram_pair, random_contrasts, worst_contrasts
from dpgram.mechanisms.conversation import PAPER, Mechanism, Outcome, Parameters, Task
from dpgram.terms.budget import Neighbours

Array = np.ndarray
Options = dict[str, float | str]

TOLERANCE = 1e-4  # relative, of a delta that is computed a second time


class MechanismLaw(ABC):
    """The law of releases for ``task``, with the ``parameters`` that the calibration published.

    ``loss``, ``uniforms`` and ``delta`` are needed. ``uniforms`` shares no code with the samplers and ``delta`` none with the
    accounting, so that a mistake there does not excuse itself. An outcome holds many releases: its matrix, and any of its numbers, may
    have a place for each."""

    epsilon = 1.0  # for which it is audited when none is asked for
    varying: tuple[str, ...] = ()  # numbers that are published besides the matrix and differ from release to release
    grid_varies = False  # whether the grid follows from those
    smallest_eigenvalue_tells = False  # whether it is looked at: it then moves by a whole B^2 between worst neighbours

    def __init__(self, task: Task, parameters: Parameters):
        self.task = task
        self.parameters = parameters

    @abstractmethod
    def loss(self, many: Outcome, pair: Pair) -> Array:
        """The privacy loss of each release: ln of how much likelier it is on the first table of the pair than on the second.

        No test tells two tables apart better than one that cuts this number somewhere (Neyman and Pearson)."""

    @abstractmethod
    def uniforms(self, many: Outcome, table: Table) -> Array:
        """(releases, numbers): independent and uniform where the releases of ``table`` follow the proven law."""

    @abstractmethod
    def delta(self) -> float:
        """Delta at the budget's epsilon with the published parameters; see ``reference``."""

    def curve(self, epsilon: float, strength: float) -> float:
        """The proven delta at ``epsilon`` if a row's squared norm were ``strength`` times what it may be.

        By default what (epsilon, delta) of the budget implies at other epsilons, and nothing more."""
        delta, claimed = self.task.budget.delta, strength * self.task.budget.epsilon
        return delta if epsilon >= claimed else 1 - (1 - delta) * (1 + math.exp(epsilon)) / (1 + math.exp(claimed))

    def claim(self) -> Claim:
        return Claim(self.task.budget.epsilon, self.task.budget.delta, self.curve)

    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        """Options with which it is audited when none are asked for: where it needs one, and where its proof is sharpest."""
        return [{}]

    @classmethod
    def prepared(cls, task: Task) -> Task:
        """The task as it is audited; raises where releases for it tell nothing."""
        return task

    def many_at_once(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism as it makes many releases at once, where it can."""
        return mechanism

    def one_at_a_time(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism as it makes releases of which each publishes as many numbers."""
        return mechanism

    def whole(self, mechanism: Mechanism) -> Mechanism:
        """The mechanism as it is held again on the other table; see ``replay``."""
        return mechanism

    def level(self) -> float:
        """What both tables have in every direction, as a multiple of the identity in their Gram sums."""
        return 0.0

    def pair(self, contrast: Contrast) -> Pair:
        """Tables with these rows, and others by which they tell most."""
        return gram_pair(contrast, self.level(), self.task, eigenvalue_moves=self.smallest_eigenvalue_tells)

    def worst_pairs(self) -> list[Pair]:
        """The neighbouring tables on which it is least private, as its proof tells."""
        return [self.pair(contrast) for contrast in worst_contrasts(self.task)]

    def random_pairs(self, count: int, rng: np.random.Generator) -> list[Pair]:
        return [self.pair(contrast) for contrast in random_contrasts(self.task, count, rng)]

    def faults_of_parameters(self) -> list[str]:
        """What the published parameters get wrong by themselves, before anything is drawn."""
        delta, budget, said = self.delta(), self.task.budget, self.parameters["delta_at_epsilon"]
        have, faults = f"the parameters have delta {delta:.4g} at epsilon {budget.epsilon:g}, where", []
        if self.task.calibration != PAPER and delta > budget.delta * (1 + TOLERANCE):
            faults.append(f"{have} {budget.delta:.4g} is claimed")
        if delta > said * (1 + TOLERANCE) + 1e-12:
            faults.append(f"{have} they say {said:.4g}")
        return faults

    def faults_of_numbers(self, many: Outcome) -> list[str]:
        """What is wrong with the numbers that were published besides the matrices."""
        return []


def published(many: Outcome, name: str) -> Array:
    """A published number, one for each release."""
    return np.broadcast_to(many.parameters[name], len(many.gram))


def in_words(options: Mapping[str, float | str]) -> str:
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in options.items())
