"""Symmetric matrices: repair and solve."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def log_det_repair(matrix: Array, noise_sd: float, *, strength: float = 0.25) -> Array:
    """The positive definite matrix closest to ``matrix`` under a prior that favours large determinants.

    Every eigenvalue w becomes (w + sqrt(w^2 + 8 strength d noise_sd^2)) / 2, the posterior mode of a Gram matrix with
    prior density det(G)^strength when ``matrix`` carries symmetric Gaussian noise of off-diagonal sd ``noise_sd``. Large
    eigenvalues hardly move; those below the noise become positive.

    >>> log_det_repair(np.diag([4.0, -1.0]), noise_sd=0.0).round(12)
    array([[4., 0.],
           [0., 0.]])
    """
    values, vectors = np.linalg.eigh(matrix)
    lift = 8 * strength * len(matrix) * noise_sd**2
    root = np.sqrt(values**2 + lift)
    # (w + root) / 2 without cancellation when w is far below zero
    repaired = np.where(values >= 0, (values + root) / 2, lift / 2 / np.where(values >= 0, 1.0, root - values))
    return (vectors * repaired) @ vectors.T


def smallest_eigenvalue(matrix: Array) -> float:
    """The smallest eigenvalue of a symmetric matrix; infinity for an empty one."""
    return float(np.linalg.eigvalsh(matrix)[0]) if len(matrix) else np.inf


def smallest_eigenvalues(matrices: Array) -> Array:
    """The same for each of a stack of matrices, or for one."""
    return np.linalg.eigvalsh(matrices)[..., 0]


def eigenvalues_within(matrix: Array, edge: float) -> bool:
    """Whether all eigenvalues of a symmetric matrix lie within ``edge`` of zero, up to rounding, which decides at the edge itself.

    Two Cholesky factors take a fraction of the time that the eigenvalues take.

    >>> [eigenvalues_within(np.diag([1.0, -2.0]), edge) for edge in (1.9, 2.1)]
    [False, True]
    """
    try:
        for sign in (-1.0, 1.0):
            shifted = sign * matrix
            np.fill_diagonal(shifted, shifted.diagonal() + edge)
            if not np.all(np.isfinite(np.linalg.cholesky(shifted).diagonal())):
                return False  # what is no number does not stop the factor
    except np.linalg.LinAlgError:
        return False
    return True


def positive_part(matrix: Array) -> Array:
    """The nearest positive semi-definite matrix in Frobenius norm: negative eigenvalues become zero."""
    values, vectors = np.linalg.eigh(matrix)
    part = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (part + part.T) / 2


def square_root(matrix: Array, *, ridge: float | Array = 0.0) -> Array:
    """R with R R' = matrix + ridge I, for a positive semi-definite matrix whatever its conditioning; one R for each ridge.

    Eigenvalues that rounding made negative count as zero, so that R R' is never below ridge I."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0) + np.asarray(ridge)[..., None])[..., None, :]
