"""Releases of rows in an array by the library's own mechanisms, from seeds, and what its estimators make of them: not private."""

from __future__ import annotations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import Design, design
from dpgram.regression.fit import fit_linear
from experiments.coverage.releases import make_release, plain_schema
from experiments.coverage.rounds import release_rows, shrunk_gram

Array = np.ndarray

NUMBER, INDICATOR, INTERCEPT = 1.0, 0.5, 0.0  # half-ranges of scaled columns
ESTIMATORS = ("shrunk", "log-det")  # the default, and the matrix that everything else starts from
HARD_CLIP = 0.2  # of the squared bound: a single release that many tables like better


def whitened(rows: Array, half: Array, squared_bound: float, epsilon: float, delta: float, seed: int) -> GramRelease:
    """One release by ``whitened-noise``; ``half`` says what each column is, ``squared_bound`` is the largest squared norm of a row."""
    return release_rows(
        rows,
        schema=plain_schema(len(half)),
        row_bound=float(np.sqrt(squared_bound)),
        epsilon=epsilon,
        delta=delta,
        seed=seed,
        half_ranges=tuple(half.tolist()),
    )


def clipped_gram(rows: Array, squared_bound: float) -> Array:
    return squared_bound * shrunk_gram(rows, np.eye(rows.shape[1]) / np.sqrt(squared_bound))


def single(gram: Array, rows: int, squared_bound: float, epsilon: float, delta: float, seed: int) -> GramRelease:
    """One release by ``gaussian-noise`` of a Gram that ``clipped_gram`` made."""
    bound = float(np.sqrt(squared_bound))
    return make_release(
        gram,
        schema=plain_schema(len(gram)),
        rows=rows,
        row_bound=bound,
        epsilon=epsilon,
        delta=delta,
        mechanism="gaussian-noise",
        seed=seed,
    )


def coefficients(release: GramRelease, places: list[int]) -> list[Array]:
    """Of the last column on the intercept and the others at ``places``, in scaled units: by each of ``ESTIMATORS``."""
    plan = regression(release, places)
    return [fit_linear(Evidence.of(release), plan, name) for name in ESTIMATORS]


def regression(release: GramRelease, places: list[int]) -> Design:
    names = release.columns
    return design(release.schema, names[-1], [names[j] for j in places if j > 0], True)
