"""What is measured: 95 % intervals of the slopes from combined releases, and errors beside those of one release.

Hospitals of unequal size, whose patients differ in age, have the same relation between a label and four correlated features. Disjoint: each
hospital releases its own rows, and the releases are combined; beside it stands one release of all rows with the same budget. Same: all rows
are released twice; beside it stands one release whose epsilon is the sum. Mechanisms and combination are the real ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease
from experiments.coverage.releases import make_release, plain_schema
from experiments.coverage.rounds import release_rows

Array = np.ndarray

GAUSSIAN, WHITENED = "gaussian-noise", "whitened-noise"
EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-6
ROWS, FEW = 100_000, 50
REPEATS = 100
SLOPES = np.array([0.6, -0.4, 0.2, 0.0])
DIM = len(SLOPES) + 2
MIXING = np.linalg.cholesky(0.5 * np.eye(4) + 0.5)


@dataclass(frozen=True)
class Case:
    """How rows are spread over releases, and which mechanism makes each. ``shares`` are those of epsilon."""

    rows: str
    name: str
    sizes: tuple[int, ...]
    mechanisms: tuple[str, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Line:
    """One case at one epsilon: the share of slopes within their intervals, of those that are not identified, and median errors."""

    rows: str
    name: str
    mechanisms: str
    epsilon: float
    slopes: int
    coverage: float
    unidentified: float
    error: float
    error_of_one: float
    width: float  # of the intervals, over those of one release, where both are finite


def sizes(hospitals: int) -> tuple[int, ...]:
    """Unequal: the largest is about three times the smallest."""
    weights = np.linspace(3.0, 1.0, hospitals)
    return tuple((weights / weights.sum() * ROWS).astype(int).tolist())


CASES = [
    *(
        Case("disjoint", f"{many} hospitals", sizes(many), (mechanism,) * many, (1.0,) * many)
        for mechanism in (GAUSSIAN, WHITENED)
        for many in (2, 5, 20)
    ),
    *(
        Case("disjoint", f"2 hospitals, one of {FEW} rows", (ROWS - FEW, FEW), (mechanism,) * 2, (1.0, 1.0))
        for mechanism in (GAUSSIAN, WHITENED)
    ),
    Case("disjoint", "2 hospitals", sizes(2), (GAUSSIAN, WHITENED), (1.0, 1.0)),
    *(Case("same", "twice, epsilon each", (ROWS,), (mechanism,) * 2, (1.0, 1.0)) for mechanism in (GAUSSIAN, WHITENED)),
    *(Case("same", "epsilon, then a third", (ROWS,), (mechanism,) * 2, (1.0, 1 / 3)) for mechanism in (GAUSSIAN, WHITENED)),
    Case("same", "twice, epsilon each", (ROWS,), (GAUSSIAN, WHITENED), (1.0, 1.0)),
]


def hospital(rows: int, place: float, rng: np.random.Generator) -> Array:
    """Rows of one hospital: intercept, features whose first has a mean of its own, label."""
    features = 0.15 * rng.standard_normal((rows, 4)) @ MIXING.T
    features[:, 0] += 0.2 * place
    label = features @ SLOPES + 0.1 * rng.standard_normal(rows)
    return np.column_stack([np.ones(rows), np.clip(features, -1, 1), np.clip(label, -1, 1)])


def release(rows: Array, mechanism: str, epsilon: float, seed: int) -> GramRelease:
    schema = plain_schema(DIM)
    common = {"schema": schema, "row_bound": schema.effective_row_bound, "epsilon": epsilon, "seed": seed, "delta": DELTA}
    if mechanism == WHITENED:
        return release_rows(rows, **common)
    return make_release(rows.T @ rows, rows=len(rows), mechanism=mechanism, **common)


def measure(case: Case, epsilon: float, repeats: int = REPEATS) -> Line:
    within, wide, errors = [], [], []
    for repeat in range(repeats):
        both, one = combined_and_one(case, epsilon, repeat)
        (estimate, ends), (estimate_of_one, ends_of_one) = slopes(both), slopes(one)
        within.append((ends[:, 0] <= SLOPES) & (ends[:, 1] >= SLOPES))
        wide.append((ends[:, 1] - ends[:, 0], ends_of_one[:, 1] - ends_of_one[:, 0]))
        errors.append(np.abs([estimate - SLOPES, estimate_of_one - SLOPES]))
    ours, theirs = np.array(wide).transpose(1, 0, 2)
    finite = np.isfinite(ours) & np.isfinite(theirs)
    error, error_of_one = np.median(errors, axis=(0, 2)).tolist()
    return Line(
        rows=case.rows,
        name=case.name,
        mechanisms=" and ".join(dict.fromkeys(case.mechanisms)),
        epsilon=epsilon,
        slopes=len(within) * len(SLOPES),
        coverage=float(np.mean(within)),
        unidentified=float(np.mean(~np.isfinite(ours))),
        error=error,
        error_of_one=error_of_one,
        width=float(np.median(ours[finite] / theirs[finite])) if finite.any() else math.inf,
    )


def combined_and_one(case: Case, epsilon: float, repeat: int) -> tuple[GramRelease, GramRelease]:
    """The combined release of one repetition, and one release of all its rows."""
    rng = np.random.default_rng([repeat, len(case.sizes)])
    places = np.linspace(-1, 1, len(case.sizes)) if len(case.sizes) > 1 else [0.0]
    tables = [hospital(many, place, rng) for many, place in zip(case.sizes, places, strict=True)]
    given = tables if case.rows == "disjoint" else tables * len(case.mechanisms)
    parts = [
        release(rows, mechanism, epsilon * share, 1000 * repeat + number)
        for number, (rows, mechanism, share) in enumerate(zip(given, case.mechanisms, case.shares, strict=True))
    ]
    spent = epsilon * (1.0 if case.rows == "disjoint" else sum(case.shares))
    one = release(np.concatenate(tables), case.mechanisms[-1], spent, 1000 * repeat + 999)
    return dpgram.combine(parts, rows=case.rows), one  # type: ignore[arg-type]


def slopes(of: GramRelease) -> tuple[Array, Array]:
    """Estimates that the noise shrinks least in error, and the ends of their intervals."""
    names: Sequence[str] = of.columns
    fit = dpgram.regress(of, names[-1], list(names[1:-1]))
    return np.array(list(fit.params.to_numpy()))[1:], np.array(list(fit.conf_int().to_numpy()))[1:]
