"""Ridge, lasso, principal components and covariance from the moments of a release. Post-processing: sees no row.

The released Gram is first made positive definite by the library's own repair, so every function here has an answer however
large the noise. Moments are in the columns' own units; with no noise each result is what scikit-learn computes from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import ElasticNet

from dpgram.artifact.release import GramRelease
from dpgram.regression.fit import regress

Array = np.ndarray

REPAIR = "log-det"


@dataclass(frozen=True, eq=False)
class Moments:
    """Of some columns, in their own units: the number of rows, means, and the matrix of (centred) sums of products.

    ``half`` are the columns' half-ranges, and ``noise_edge`` is about the largest eigenvalue of the privacy noise, both public:
    noise is even in scaled units, where every column has a half-range of one."""

    names: tuple[str, ...]
    count: float
    mean: Array
    scatter: Array
    half: Array
    noise_edge: float


def moments(release: GramRelease, columns: Sequence[str], *, centred: bool = True) -> Moments:
    """Moments of the encoded ``columns``; about their means, or about zero when not ``centred``."""
    encoded = release.schema.encoded
    places = [release.columns.index(name) for name in columns]
    gram = regress(release, encoded[1].name, [], estimator=REPAIR).gram  # repaired as a whole: any target gives the same
    half = np.array([encoded[j].half for j in places])
    centre = np.array([encoded[j].centre for j in places])
    count, cross = gram[0, 0], gram[0, places]
    mean = centre + half * cross / count
    inner = gram[np.ix_(places, places)] - np.outer(cross, cross) / count  # a Schur complement: definite like the whole
    scatter = half[:, None] * inner * half
    if not centred:
        scatter, mean = scatter + count * np.outer(mean, mean), np.zeros_like(mean)
    edge = 2 * release.noise.sd_off_diagonal * np.sqrt(len(places))
    return Moments(tuple(columns), _rows(release, count), mean, (scatter + scatter.T) / 2, half, float(edge))


def _rows(release: GramRelease, count: float) -> float:
    """The public number of rows where no row can have been shrunk, else its noisy estimate, in which shrunk rows count for less."""
    unshrunk = release.row_bound**2 >= len(release.schema.columns) + 1
    return float(release.rows) if release.rows and unshrunk else float(count)


def ridge(of: Moments, targets: int, alpha: float | None) -> Array:
    """Coefficients (targets, features); the last ``targets`` columns are the targets.

    ``alpha`` penalises as in scikit-learn's Ridge, in own units. None penalises in scaled units by the edge of the noise."""
    p = len(of.names) - targets
    penalty = of.noise_edge / of.half[:p] ** 2 if alpha is None else np.full(p, float(alpha))
    scale = 1 / of.half[:p]  # solved in scaled units, where the matrix is well conditioned
    lhs = scale[:, None] * (of.scatter[:p, :p] + np.diag(penalty)) * scale
    return (scale[:, None] * np.linalg.solve(lhs, scale[:, None] * of.scatter[:p, p:])).T


def elastic_net(of: Moments, targets: int, alpha: float, l1_ratio: float, *, max_iter: int, tol: float) -> tuple[Array, int]:
    """Coefficients (targets, features) of scikit-learn's ElasticNet, by its own solver, and the number of iterations.

    The solver is given as many pseudo-rows as there are columns, with the same sums of products. Its loss is a mean over
    rows, so penalties are scaled by (rows) / (pseudo-rows)."""
    rows = pseudo_rows(of)
    p = len(of.names) - targets
    model = ElasticNet(alpha=alpha * of.count / len(rows), l1_ratio=l1_ratio, fit_intercept=False, max_iter=max_iter, tol=tol)
    model.fit(np.asfortranarray(rows[:, :p]), rows[:, p:])
    return np.reshape(model.coef_, (targets, p)), int(np.max(model.n_iter_))


def intercepts(of: Moments, coef: Array) -> Array:
    """What makes each fit pass through the means; zero where the moments are about zero."""
    p = coef.shape[1]
    return of.mean[p:] - coef @ of.mean[:p]


def pseudo_rows(of: Moments) -> Array:
    """A square matrix R with R'R = scatter."""
    values, vectors = np.linalg.eigh(of.scatter / of.half[:, None] / of.half)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * of.half


def principal_components(of: Moments) -> tuple[Array, Array]:
    """Variances from the largest down, and components as rows, each with its largest entry positive."""
    values, vectors = np.linalg.eigh(of.scatter / max(of.count - 1, 1.0))
    components = vectors[:, ::-1].T
    largest = np.abs(components).argmax(axis=1)
    signs = np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)
    return np.maximum(values[::-1], 0.0), components * signs[:, None]


def covariance(of: Moments) -> Array:
    """The covariance with divisor n, as in sklearn.covariance."""
    return of.scatter / max(of.count, 1.0)


def correlation(matrix: Array) -> Array:
    """The correlations behind a covariance."""
    sd = np.sqrt(np.diag(matrix))
    found = np.clip(matrix / sd[:, None] / sd, -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def inverse(of: Moments, matrix: Array) -> Array:
    """The inverse of a covariance, computed in scaled units."""
    scaled = np.linalg.inv(matrix / of.half[:, None] / of.half)
    found = scaled / of.half[:, None] / of.half
    return (found + found.T) / 2
