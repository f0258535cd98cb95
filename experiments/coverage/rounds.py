"""Releases of ``whitened-noise`` for the study: rows in an array answer its questions, and are weighed as its last round weighed them."""

from __future__ import annotations

import math

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, hold
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import WhitenedGaussian
from dpgram.terms.schema import Schema

Array = np.ndarray

MECHANISM = "whitened-noise"
DELTA = math.exp(-9)
BLOCK = 16_384


def release_rows(
    rows: Array,
    *,
    schema: Schema,
    row_bound: float,
    epsilon: float,
    seed: int,
    delta: float = DELTA,
    half_ranges: tuple[float, ...] = (),
) -> GramRelease:
    """One release of ``rows`` (n, d), intercept first and in scaled units, under the schema's relation, with noise from ``seed``.

    ``half_ranges`` tells which columns are indicators; without it all are numbers."""
    chosen = registry.find(MECHANISM)
    rng = SeededSource(seed)
    public = len(rows) if schema.neighbours is Neighbours.REPLACE else None
    budget = Budget(epsilon, delta)
    dim = rows.shape[1]
    task = registry.task(chosen, budget, schema.neighbours, dim, row_bound, intercept=True, half_ranges=half_ranges)

    def answer(question: GramQuestion) -> GramAnswer:
        assert question.through is not None
        assert question.row_bound == 1.0
        return GramAnswer(shrunk_gram(rows, question.through.matrix), public)

    outcome = hold(chosen.start(task, rng), answer)
    return GramRelease(
        schema=schema,
        gram=outcome.gram,
        rows=public,
        row_bound=row_bound,
        budget=task.budget,
        mechanism=MECHANISM,
        parameters=outcome.parameters,
        noise=outcome.noise,
        randomness=rng.description,
        private=False,
        library_version="experiment",
    )


def shrunk_gram(rows: Array, through: Array) -> Array:
    """The sum of z z' over z = ``through`` a, shrunk to norm one."""
    total = np.zeros(through.shape)
    for start in range(0, len(rows), BLOCK):
        z = rows[start : start + BLOCK] @ through.T
        z *= np.sqrt(_weights(z))[:, None]
        total += z.T @ z
    return total


def last_weights(rows: Array, release: GramRelease) -> Array:
    """(n,) what each row's square counted for in the last round."""
    assert isinstance(release.noise, WhitenedGaussian)
    through = release.noise.last.through
    return np.concatenate([_weights(rows[start : start + BLOCK] @ through.T) for start in range(0, len(rows), BLOCK)])


def _weights(z: Array) -> Array:
    return np.minimum(1.0, 1.0 / np.maximum(np.einsum("ij,ij->i", z, z), 1e-300))
