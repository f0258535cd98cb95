"""Releases of ``whitened-noise`` for the study: rows in an array answer its questions, and are weighed as its last round weighed them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.linalg.scales import grams, weights
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, hold
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import WhitenedGaussian
from dpgram.terms.scales import ONE_CLIP, SWITCH
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
    sample: Array | None = None,
) -> GramRelease:
    """One release of ``rows`` (n, d), intercept first and in scaled units, under the schema's relation, with noise from ``seed``.

    ``half_ranges`` tells which columns are indicators; without it all are numbers. ``sample`` holds the rows that steer, where a rule asks
    for a sample; otherwise all rows do, whatever their number."""
    chosen = registry.find(MECHANISM)
    rng = SeededSource(seed)
    public = len(rows) if schema.neighbours is Neighbours.REPLACE else None
    budget = Budget(epsilon, delta)
    dim = rows.shape[1]
    task = registry.task(chosen, budget, schema.neighbours, dim, row_bound, intercept=True, half_ranges=half_ranges)
    task = task if sample is None else replace(task, rows=public)

    def answer(question: GramQuestion) -> GramAnswer:
        assert question.through is not None
        assert question.row_bound == 1.0
        summed = rows if question.sample is None else sample
        assert summed is not None
        gram, *outer = grams(mapped(summed, question.through.matrix), question.scales, SWITCH)
        return GramAnswer(gram, public, tuple(outer))

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


def mapped(rows: Array, through: Array) -> Iterator[Array]:
    """z = ``through`` a, some rows at a time."""
    return (rows[start : start + BLOCK] @ through.T for start in range(0, len(rows), BLOCK))


def shrunk_gram(rows: Array, through: Array) -> Array:
    """The sum of z z' over z = ``through`` a, shrunk to norm one."""
    return grams(mapped(rows, through), ONE_CLIP, SWITCH)[0]


def last_weights(rows: Array, release: GramRelease) -> Array:
    """(n,) what each row's square counted for in the first matrix of the last round."""
    assert isinstance(release.noise, WhitenedGaussian)
    last = release.noise.last
    squares = (np.einsum("ij,ij->i", z, z) for z in mapped(rows, last.through))
    return np.concatenate([weights(each, last.scales, SWITCH)[0] for each in squares])
