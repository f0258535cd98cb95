"""Coverage of the error rates of linear discriminants, for rows of two or three normal classes whose error rate is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import dpgram
from dpgram.errors import ModelError
from dpgram.inference.discriminant import error_rate
from dpgram.terms.columns import Categorical, Numeric
from dpgram.terms.schema import Schema
from experiments.yes_no.study import ROWS, released

Array = np.ndarray
SAMPLES = 300
COVARIANCE = np.array([[1.0, 0.4], [0.4, 1.0]])
MEANS = np.array([[0.0, 0.0], [1.2, 0.3], [0.2, -1.0]])
SHARES = ((0.7, 0.3), (0.95, 0.05), (0.5, 0.3, 0.2))
BOUND = 6.0  # of both features: five standard deviations or more


@dataclass(frozen=True)
class ErrorCoverage:
    """Shares of simulated samples whose 95 % interval contains the truth."""

    shares: tuple[float, ...]
    mechanism: str
    epsilon: float
    truth: float  # the error rate
    error: float
    distances: float
    width: float  # median, of the error rate's interval
    refused: float  # share of releases that have no discriminant


def error_coverage(shares: tuple[float, ...], mechanism: str, epsilon: float, samples: int = SAMPLES) -> ErrorCoverage:
    k, root = len(shares), np.linalg.cholesky(COVARIANCE)
    points = np.linalg.solve(root, MEANS[:k].T).T
    truth = error_rate(points, np.array(shares))
    pairs = np.triu_indices(k, 1)
    apart = np.linalg.norm(points[:, None] - points, axis=2)[pairs]
    columns = [*(Numeric(name, -BOUND, BOUND, missing="midpoint") for name in "ab"), Categorical("c", list("xyz"[:k]))]
    schema = Schema(unit="row", columns=columns)
    hits, between, widths = [], [], []
    for seed in range(samples):
        rng = np.random.default_rng([seed, k, int(1000 * shares[-1])])
        c = rng.choice(k, ROWS, p=shares)
        x = rng.normal(size=(ROWS, 2)) @ root.T + MEANS[c]
        rows = np.column_stack([np.ones(ROWS), np.clip(x / BOUND, -1, 1), *(c == j for j in range(1, k))])
        try:
            found = dpgram.lda(released(rows, schema, mechanism, epsilon, seed), "c")
        except ModelError:
            continue
        low, high = found.error_interval
        hits.append(low <= truth <= high)
        between.append((found.distance_lower[pairs] <= apart) & (apart <= found.distance_upper[pairs]))
        widths.append(high - low)
    return ErrorCoverage(
        shares,
        mechanism,
        epsilon,
        truth,
        float(np.mean(hits)),
        float(np.mean(between)),
        float(np.median(widths)),
        1 - len(hits) / samples,
    )
