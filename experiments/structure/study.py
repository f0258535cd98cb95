"""What is measured of structure: rows of six normal columns with a known covariance.

Coverage: the share of pairs whose 95 % interval contains the true partial correlation. False edges: the share of releases of unrelated
columns in which the graphical lasso, at its default penalty, has any edge; about 5 % are promised at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dpgram
from experiments.coverage.releases import plain_schema
from experiments.yes_no.study import released

Array = np.ndarray
COLUMNS, SAMPLES = 6, 60
ROWS = (20_000,)
SPREAD = 0.2  # standard deviation of every column, of bounds that are 1: five of them out
PAIRS = np.triu_indices(COLUMNS, 1)

_DRAW = np.random.default_rng(0).normal(size=(COLUMNS, COLUMNS)) * 0.5 + np.eye(COLUMNS)
_COVARIANCE = np.linalg.inv(_DRAW @ _DRAW.T)
CORRELATION = _COVARIANCE / np.sqrt(np.outer(np.diag(_COVARIANCE), np.diag(_COVARIANCE)))


@dataclass(frozen=True)
class Measured:
    """One mechanism at one budget."""

    rows: int
    mechanism: str
    epsilon: float
    coverage: float
    identified: float  # share of pairs about which the release says something
    of_identified: float  # coverage among them
    width: float  # median
    false_edges: float


def truth() -> Array:
    """The partial correlations of all pairs."""
    precision = np.linalg.inv(CORRELATION)
    return -(precision / np.sqrt(np.outer(np.diag(precision), np.diag(precision))))[PAIRS]


def sample(correlation: Array, rows: int, seed: int) -> Array:
    """Encoded rows, the intercept first."""
    rng = np.random.default_rng([seed, rows])
    x = SPREAD * rng.normal(size=(rows, COLUMNS)) @ np.linalg.cholesky(correlation).T
    return np.column_stack([np.ones(rows), np.clip(x, -1, 1)])


def measured(rows: int, mechanism: str, epsilon: float, samples: int = SAMPLES) -> Measured:
    schema, true = plain_schema(COLUMNS + 1), truth()
    hits, known, widths, edges = [], [], [], []
    for seed in range(samples):
        made = released(sample(CORRELATION, rows, seed), schema, mechanism, epsilon, seed)
        found = dpgram.partial_correlations(made)
        lower, upper = found.lower[PAIRS], found.upper[PAIRS]
        hits.append((lower <= true) & (true <= upper))
        known.append(found.identified[PAIRS])
        widths.append(upper - lower)
        unrelated = released(sample(np.eye(COLUMNS), rows, seed + samples), schema, mechanism, epsilon, seed + samples)
        edges.append(len(dpgram.graph(unrelated).edges) > 0)
    right, told = np.array(hits), np.array(known)
    inner = float(right[told].mean()) if told.any() else float("nan")
    numbers = (float(right.mean()), float(told.mean()), inner, float(np.median(widths)), float(np.mean(edges)))
    return Measured(rows, mechanism, epsilon, *numbers)
