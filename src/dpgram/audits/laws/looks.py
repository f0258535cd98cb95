"""The law of looks at columns, which come before the rounds of whitened-noise: normal noise around counts of rows in public bins.

Looks have a few per cent of a release's budget, so a mistake in them hardly shows in a whole release. They are audited by themselves,
against the shift that they say they have; what they leave to the rounds, and what a ledger is told, is computed a second time.

Their rules take many bins, and other ones for every release. The proof allows any bins that are functions of what was published, so
releases that are compared have three bins of every column in each of three looks. A whole release with the rules of its own, looks and
rounds, is held again on the other table."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpgram.accounting.compose import GaussianCost
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.audits import reference
from dpgram.audits.claims import Claim, smallest_epsilon
from dpgram.audits.laws.base import TOLERANCE, MechanismLaw, published
from dpgram.audits.neighbours import Cells, Contrast, Pair
from dpgram.errors import MechanismError
from dpgram.mechanisms import looks, whitened_noise
from dpgram.mechanisms.conversation import Conversation, Drawing, Mechanism, Outcome, Parameters, Task
from dpgram.mechanisms.ranges import MOST_LOOKS, Intervals, Look
from dpgram.mechanisms.whitened_noise import hinted_rows
from dpgram.sampling.base import RandomSource
from dpgram.terms.bins import Bins
from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import Numeric
from dpgram.terms.noise import SymmetricGaussian
from dpgram.terms.schema import Schema

Array = np.ndarray

WIDE = 1000.0  # the bounds of every column
NEAR = 300.0 + np.linspace(0.0, 0.5, 8)  # where most rows lie: not at a bound, nor in the middle, so that looks come closer
AWAY = 500.0  # where the row lies in which the tables differ, or at minus that
ENDS = (250.0, 125.0, 62.5)  # of the middle bin of every column, in each look
MORE = 4  # times the fewest rows that looks are made at: they then take as much of the budget as they ever do


def with_columns(task: Task) -> Task:
    """The task for a table of as many wide columns as it has."""
    columns = tuple(Numeric(f"x{place}", -WIDE, WIDE) for place in range(task.dim))
    return replace(task, schema=Schema(unit="row", columns=columns, neighbours=task.neighbours, intercept=False))


class FewBins:
    """Rules of three looks that count in three bins of every column, and learn nothing. They keep what was published."""

    seen: Sequence[Look] = ()

    def next_bins(self, seen: Sequence[Look], declared: Intervals) -> Bins | None:
        return few_bins(declared, len(seen)) if len(seen) < MOST_LOOKS else None

    def intervals(self, seen: Sequence[Look], declared: Intervals, rows: float | None) -> Intervals:
        self.seen = seen
        return {}


def few_bins(names: Any, place: int) -> Bins:
    return Bins({name: (-ENDS[place], ENDS[place]) for name in names})


def calibrate(task: Task) -> Parameters:
    """The noise of three looks, their shift, and what they leave to the rounds."""
    whitened_noise.check(task)
    mu, rows = calibrate_mu(task.budget), hinted_rows(task)
    sds = [looks.counts_sd(task.dim, rows, mu, task, place=place) for place in range(MOST_LOOKS)]
    if None in sds:
        raise MechanismError(
            "looks would tell nothing at this budget, and are not made: use a larger epsilon, or fewer columns."
        )
    return _parameters(task, [sd for sd in sds if sd is not None], mu)


def _parameters(task: Task, sds: Sequence[float], mu: float, shifts: Sequence[float] = ()) -> Parameters:
    shifts = shifts or [looks.look_shift(sd, task.dim, task.neighbours, task.rows_per_unit) for sd in sds]
    left = looks.shift_left(mu, shifts)
    return {
        "mu": math.hypot(*shifts),
        "left": left,
        "delta_at_epsilon": gaussian_delta(task.budget.epsilon, math.hypot(left, *shifts)),
        **{f"look_{place}_sd": sd for place, sd in enumerate(sds, 1)},
    }


def start(task: Task, rng: RandomSource) -> Conversation:
    """The looks of a release, and nothing else; their counts are what is published."""
    rules, mu = FewBins(), calibrate_mu(task.budget)
    looked, noted = yield from _listened(looks.learn(with_columns(task), rng, mu, hinted_rows(task), rules=rules))
    counts = np.concatenate([counts for look in rules.seen for counts in look.counts.values()], axis=-1)
    parameters = _parameters(task, looked.sds, mu, looked.shifts)
    parameters |= {f"noted_{place}": shift for place, shift in enumerate(noted, 1)}
    return Outcome(_as_diagonals(counts), SymmetricGaussian(looked.sds[0], looked.sds[0]), parameters)


def _listened(conversation: Generator[Any, Any, looks.Looked]) -> Generator[Any, Any, tuple[looks.Looked, list[float]]]:
    """What comes of the conversation, and the shifts that it announced."""
    noted = []
    said = next(conversation)
    try:
        while True:
            if isinstance(said, Drawing) and isinstance(said.spent, GaussianCost):
                noted.append(said.spent.mu)
            said = conversation.send((yield said))
    except StopIteration as end:
        return end.value, noted


def _as_diagonals(counts: Array) -> Array:
    """Counts on the diagonals of matrices, one for each release."""
    return counts[..., None] * np.eye(counts.shape[-1])


class LooksLaw(MechanismLaw):
    epsilon = 8.0  # of the release: a few per cent of mu^2 are then about epsilon 1

    @classmethod
    def prepared(cls, task: Task) -> Task:
        """With as many rows as make looks take the most."""
        if hinted_rows(task) is not None:
            return task
        rows, mu = 16, calibrate_mu(task.budget)
        while looks.counts_sd(task.dim, float(rows), mu, task, place=1) is None:
            rows = math.ceil(1.1 * rows)
        if task.neighbours is Neighbours.REPLACE:
            public = math.ceil(MORE * rows / task.rows_per_unit)
            return replace(task, units=public) if task.by_unit else replace(task, rows=public)
        return replace(task, options={**task.options, "table_rows": float(MORE * rows)})

    def whole(self, mechanism: Mechanism) -> Mechanism:
        """A release with looks of its own rules, and rounds."""
        return replace(mechanism, start=lambda task, rng: whitened_noise.start(with_columns(task), rng))

    def loss(self, many: Outcome, pair: Pair) -> Array:
        first, second = self._true(pair.first), self._true(pair.second)
        return (_counts(many) - (first + second) / 2) @ ((first - second) / self._sds**2)

    def uniforms(self, many: Outcome, table: Cells) -> Array:
        return ndtr((_counts(many) - self._true(table)) / self._sds)

    def curve(self, epsilon: float, strength: float) -> float:
        return gaussian_delta(epsilon, strength * self.parameters["mu"])

    def claim(self) -> Claim:
        """Of the looks alone: at the release's delta, the epsilon that their shift has."""
        delta = self.task.budget.delta
        return Claim(smallest_epsilon(lambda epsilon: self.curve(epsilon, 1.0) <= delta, 1e-4), delta, self.curve)

    def delta(self) -> float:
        """Of the whole release: looks, and rounds that have what is left."""
        spent = math.hypot(reference.looks(self.task, self._published_sds), self.parameters["left"])
        return float(reference.hockey_stick(self.task.budget.epsilon, spent))

    def faults_of_parameters(self) -> list[str]:
        said, spent = self.parameters["mu"], reference.looks(self.task, self._published_sds)
        wrong = [f"looks have a shift of {spent:.4g}, where {said:.4g} is claimed"] if spent > said * (1 + TOLERANCE) else []
        return super().faults_of_parameters() + wrong

    def faults_of_numbers(self, many: Outcome) -> list[str]:
        """Whether as much was noted, look by look, as was spent."""
        faults = []
        for place in range(1, MOST_LOOKS + 1):
            spent = reference.looks(self.task, self._published_sds[:place])
            if np.any(published(many, f"noted_{place}") < spent * (1 - TOLERANCE)):
                faults.append(f"less is noted with look {place} than it and those before it spend")
        return faults

    def pair(self, contrast: Contrast) -> Pair:
        """Many rows close together and, in place of the contrast's, one that is ``AWAY`` in every column, by the signs it has."""
        task, rows = with_columns(self.task), hinted_rows(self.task) or 0.0
        assert task.schema is not None
        common, replaced = np.repeat(NEAR[:, None], task.dim, axis=1), task.neighbours is Neighbours.REPLACE
        counts = np.full(len(NEAR), rows // len(NEAR))
        counts[0] += rows - replaced * task.rows_per_unit - counts.sum()
        tables = []
        for row in (contrast.one, contrast.other):
            if row is None:
                tables.append(Cells(task.schema, common, counts))
            else:
                tables.append(Cells(task.schema, np.vstack([common, AWAY * row]), np.append(counts, task.rows_per_unit)))
        return Pair(contrast.name, *tables)

    def worst_pairs(self) -> list[Pair]:
        here = np.ones(self.task.dim)
        gone, beyond, turned = here * math.nan, here * 1e300, np.where(np.arange(self.task.dim) % 2, -here, here)
        if self.task.neighbours is Neighbours.ADD_REMOVE:
            contrasts = [Contrast("one row more", here), Contrast("one row more, beyond the bounds", -beyond)]
        else:
            contrasts = [Contrast("another bin in every column", here, -here), Contrast("a row of missing cells", turned, gone)]
        return [self.pair(contrast) for contrast in contrasts]

    def random_pairs(self, count: int, rng: np.random.Generator) -> list[Pair]:
        """Rows of random signs and lengths."""
        drawn = rng.uniform(-2.0, 2.0, (count, 2, self.task.dim))
        added = self.task.neighbours is Neighbours.ADD_REMOVE
        return [
            self.pair(Contrast(f"random rows {place}", one, None if added else other))
            for place, (one, other) in enumerate(drawn, 1)
        ]

    @property
    def _published_sds(self) -> list[float]:
        return [self.parameters[f"look_{place}_sd"] for place in range(1, MOST_LOOKS + 1)]

    @property
    def _sds(self) -> Array:
        """The noise of every count."""
        return np.repeat(self._published_sds, 3 * self.task.dim)

    def _true(self, table: Cells) -> Array:
        """The counts of all looks, without noise."""
        return np.concatenate([table.in_bins(few_bins(table.schema.names, place)) for place in range(MOST_LOOKS)])


def _counts(many: Outcome) -> Array:
    return np.diagonal(many.gram, axis1=-2, axis2=-1)


MECHANISM = Mechanism(
    name="looks",
    summary="noisy counts of rows in public bins of columns, by which whitened-noise learns their scales",
    proof="learnt_scales.md",
    calibrate=calibrate,
    start=start,
    takes_units=True,
    several=True,
    batched=True,
    options={name: whitened_noise.MECHANISM.options[name] for name in ("table_rows",)},
)
