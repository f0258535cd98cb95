"""Ours: one whitened release of the table, and every regression from it; k costs nothing.

Guarantee: (epsilon, delta), exactly calibrated, once for all regressions and all rounds. Neighbours: one row replaced. Rounds, their shares of
the budget and their clips follow public rules (the mechanism's defaults): nothing is chosen here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.peers.one_gram import by_group
from benchmarks.peers.questions import Answers, Array, Method, Questions
from benchmarks.peers.tables import Table
from dpgram.linalg.rounds import in_own_columns, most_likely
from dpgram.mechanisms import registry, whitening
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, hold
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import Round

NAME = "whitened-noise"
BLOCK = 1 << 14


def released(table: Table, columns: Sequence[str], budget: Budget, seed: int) -> tuple[Round, ...]:
    """All rounds of one release of the intercept and ``columns``."""
    mechanism, rows = registry.find(NAME), table.rows[table.places(columns)]
    task = registry.task(mechanism, budget, Neighbours.REPLACE, len(rows), table.bound(columns), intercept=True)
    return hold(mechanism.start(task, SeededSource(seed)), lambda question: answered(rows, question)).noise.rounds


def answered(rows: Array, question: GramQuestion) -> GramAnswer:
    """The Gram of the columns of ``rows`` (d, n), mapped and then shrunk to the bound."""
    total = np.zeros((len(rows), len(rows)))
    for start in range(0, rows.shape[1], BLOCK):
        mapped = question.through.matrix @ rows[:, start : start + BLOCK]
        mapped /= np.maximum(1.0, np.sqrt(np.einsum("ij,ij->j", mapped, mapped)) / question.row_bound)
        total += mapped @ mapped.T
    return GramAnswer(total, rows.shape[1])


def coefficients(rounds: tuple[Round, ...], wanted: Sequence[tuple[list[int], int]]) -> Answers:
    """Of each (places of the regressors, place of the label), in scaled units: the one function that names the estimator."""
    matrix = in_own_columns(most_likely(whitening.looks(rounds), strength=0.1), rounds[-1].through)
    return [np.linalg.solve(matrix[np.ix_(places, places)], matrix[places, label]) for places, label in wanted]


def answers(columns: Sequence[str], questions: Questions, rng: np.random.Generator) -> Answers:
    """From one release of ``columns``."""
    table: Table = questions.table
    known = table.places(columns)
    names = [table.schema.encoded_names[j] for j in known]
    wanted = [([known.index(j) for j in table.places(r.features)], names.index(r.target)) for r in questions.asked]
    return coefficients(released(table, columns, questions.budget, int(rng.integers(2**31))), wanted)


def whole_table(questions: Questions, rng: np.random.Generator) -> Answers:
    table: Table = questions.table
    return answers(table.schema.names, questions, rng)


WHOLE = Method(
    name="one whitened release",
    paper="dpgram, whitened-noise",
    cost="one Gaussian mechanism per round, composed exactly, for all regressions",
    setting="the whole table in one release; rounds, shares and clips by the mechanism's public rules",
    answer=whole_table,
    any_k=True,
    draws=8,
)
NEEDED = Method(
    name="one whitened release, needed columns",
    paper="the same",
    cost="the same",
    setting="a release of the columns that the k regressions use",
    answer=lambda questions, rng: by_group(questions, rng, answers),
    draws=3,
)
