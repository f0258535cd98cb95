"""Releases of a known Gram by every mechanism, drawn from seeds, as the library's own objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.mechanisms import (
    gaussian_noise,
    gaussian_sketch,
    gaussian_sketch_adaptive,
    inverse_wishart,
    inverse_wishart_adaptive,
    registry,
    wishart_noise,
)
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.regression.design import Design, design
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema

Array = np.ndarray

DELTA = math.exp(-9)
ALL = tuple(name for name, mechanism in registry.MECHANISMS.items() if not mechanism.several)  # of a Gram that is known
DRAWN = ("gaussian-sketch", "gaussian-sketch-adaptive", "inverse-wishart", "inverse-wishart-adaptive")


@lru_cache(maxsize=64)
def plain_schema(columns: int) -> Schema:
    """An intercept and columns x1, x2, ... whose own units are the scaled ones."""
    return Schema(unit="row", columns=[Numeric(f"x{i}", -1, 1, missing="midpoint") for i in range(1, columns)])


def make_release(
    gram: Array,
    *,
    schema: Schema,
    rows: int,
    row_bound: float,
    epsilon: float,
    mechanism: str,
    seed: int,
    delta: float = DELTA,
    options: Mapping[str, float] | None = None,
) -> GramRelease:
    """One release of ``gram`` under REPLACE, with noise from ``seed``: not private."""
    chosen = registry.find(mechanism)
    rng = SeededSource(seed)
    task = registry.task(chosen, Budget(epsilon, delta), Neighbours.REPLACE, len(gram), row_bound, options=options)
    outcome = hold(chosen.start(task, rng), lambda question: GramAnswer(gram, rows))
    return GramRelease(
        schema=schema,
        gram=outcome.gram,
        rows=rows,
        row_bound=row_bound,
        budget=task.budget,
        mechanism=mechanism,
        condition=outcome.condition,
        parameters=outcome.parameters,
        noise=outcome.noise,
        randomness=rng.description,
        private=False,
        library_version="experiment",
    )


def plan(release: GramRelease, features: list[int]) -> Design:
    """The regression of the last column on those at ``features``, with an intercept."""
    names = release.columns
    return design(release.schema, names[-1], [names[j] for j in features], True)


def claim(grams: Array, row_bound: float) -> dict[str, float] | None:
    """What a custodian could claim for ``noisy-inverse``: half of the expected Gram's smallest eigenvalue. None where it is too small.

    The expectation is over data sets with the same coefficients, so the smallest over data sets stands in for it."""
    smallest = min(float(np.linalg.eigvalsh(gram)[0]) for gram in grams)
    rho = smallest / 2 / row_bound**2 - 1
    return {"rho": rho} if rho > 0.1 else None


@contextmanager
def calibrated_once() -> Iterator[None]:
    """Within it, the public numbers of a task are computed once: they do not depend on data, and a study asks for them often."""
    places = [
        (gaussian_noise, "calibrate"),
        (gaussian_sketch, "calibrate"),
        (wishart_noise, "calibrate"),
        (inverse_wishart, "calibrate"),
        (gaussian_sketch_adaptive, "plan_stages"),
        (inverse_wishart_adaptive, "plan_stages"),
    ]
    before = [getattr(module, name) for module, name in places]
    for (module, name), function in zip(places, before, strict=True):
        setattr(module, name, _remembered(function))
    try:
        yield
    finally:
        for (module, name), function in zip(places, before, strict=True):
            setattr(module, name, function)


def _remembered(function: Any) -> Any:
    known: dict[str, Any] = {}

    def asked(*given: Any) -> Any:
        key = repr(given)
        if key not in known:
            known[key] = function(*given)
        return known[key]

    return asked
