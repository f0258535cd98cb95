"""Grams of regressions of any dimension and shape, drawn without rows: sums of products of normal rows are Wishart."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

SPREAD = 0.3  # standard deviation of every column but the intercept, which is declared within [-1, 1]
KINDS = ("isotropic", "AR(0.8)", "near-singular")


def covariance(kind: str, p: int, rng: np.random.Generator) -> Array:
    """Of p features with unit variances."""
    if kind == "isotropic":
        return np.eye(p)
    if kind == "AR(0.8)":
        return 0.8 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    factors = rng.normal(size=(p, max(1, p // 2)))  # half as many causes as features, and one per cent of their own
    common = factors @ factors.T
    size = np.sqrt(np.diag(common))
    return 0.99 * common / np.outer(size, size) + 0.01 * np.eye(p)


def draw(kind: str, columns: int, rows: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """(Gram, true coefficients, those of least squares without noise) of (1, x, y), y with the same variance as a feature.

    Errors have sd 0.5 before y is scaled; coefficients are uniform; the intercept is uniform on [-0.15, 0.15]."""
    p = columns - 2
    shape = covariance(kind, p, rng)
    slopes = rng.uniform(-1, 1, p)
    sd = np.sqrt(slopes @ shape @ slopes + 0.25)
    beta = np.concatenate([[rng.uniform(-0.5, 0.5) * SPREAD], slopes / sd])
    inner = np.zeros((p + 1, p + 1))  # features, and errors in the units of y
    inner[:-1, :-1], inner[-1, -1] = shape * SPREAD**2, (0.5 / sd * SPREAD) ** 2
    root = np.linalg.cholesky(inner + 1e-15 * np.eye(p + 1))
    factor = np.tril(rng.standard_normal((p + 1, p + 1)), -1)
    factor[np.diag_indices(p + 1)] = np.sqrt(rng.chisquare(rows - 1 - np.arange(p + 1)))
    scatter = root @ factor
    means = root @ rng.standard_normal(p + 1) / np.sqrt(rows)
    parts = np.empty((columns, columns))
    parts[0, 0], parts[0, 1:], parts[1:, 0] = rows, rows * means, rows * means
    parts[1:, 1:] = scatter @ scatter.T + rows * np.outer(means, means)
    change = np.eye(columns)
    change[:-1, -1] = beta
    gram = change.T @ parts @ change
    return gram, beta, np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
