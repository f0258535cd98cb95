"""One positive definite matrix from several noisy looks at it, each through its own linear map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpgram.linalg.symmetric import log_det_repair, square_root

Array = np.ndarray

Look = tuple[Array, Array, float]
"""T, a noisy T G T' and the sd of its noise off the diagonal (sqrt(2) times that on it), for one and the same G."""

STEPS = 200  # of the search; it stops before where nothing moves any more
STILL = 1e-13  # relative to the matrix
MOST_RESCALED = 4.0  # a first entry that is further than this from its known value is noise, not a scale


def most_likely(looks: Sequence[Look], *, strength: float = 0.25, steps: int = STEPS) -> Array:
    """The positive definite S that all looks together make most likely, in the coordinates of the last: S stands for T G T'.

    It minimises 1/2 sum_k |H_k S H_k' - M_k|^2 / t_k^2 - 2 strength d log det S with H_k = T_k T^-1: the posterior mode under the prior of
    ``log_det_repair``, which is what comes back where there is one look. Accelerated proximal gradient steps, taken afresh
    where they overshoot (O'Donoghue and Candes 2015). Only ratios of sds matter beside the prior, and the last sd must be positive.

    >>> once = (np.eye(2), np.diag([4.0, -1.0]), 0.5)
    >>> bool(np.allclose(most_likely([once]), log_det_repair(np.diag([4.0, -1.0]), 0.5)))
    True
    >>> twice = most_likely([once, once], strength=0.5)  # half the variance, and as much of the prior
    >>> bool(np.allclose(twice, log_det_repair(np.diag([4.0, -1.0]), 0.5 / np.sqrt(2), strength=0.5)))
    True
    """
    last, matrix, sd = looks[-1]
    found = log_det_repair(matrix, sd, strength=strength)
    if len(looks) == 1:
        return found
    # Everything in units of the last look's noise variance, so that its own weight is one.
    seen = [(np.eye(len(last)), matrix, 1.0)]
    seen += [(np.linalg.solve(last.T, through.T).T, gram, (sd / other) ** 2) for through, gram, other in looks[:-1]]
    squares = [(weight, h.T @ h) for h, _, weight in seen]
    constant = sum(weight * (h.T @ gram @ h) for h, gram, weight in seen)
    step = 1.0 / _steepest(squares)
    lift = 2 * strength * len(last) * sd**2 * step
    at, momentum = found, 1.0
    for _ in range(steps):
        slope = sum(weight * (square @ at @ square) for weight, square in squares) - constant
        new = _towards_large_determinant(at - step * slope, lift)
        moved = new - found
        if np.linalg.norm(moved) <= STILL * np.linalg.norm(new):
            return new
        if np.vdot(at - new, moved) > 0:  # the last step went against the slope: forget the speed
            at, momentum = new, 1.0
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            at, momentum = new + (momentum - 1) / following * moved, following
        found = new
    return found


def in_own_columns(matrix: Array, through: Array, *, rows: float | None = None) -> Array:
    """T^-1 ``matrix`` T^-T, symmetric and, like ``matrix``, positive semi-definite; T = ``through`` need not be well conditioned.

    Where ``rows`` is given, the first column is the intercept and its own entry is known to be ``rows``: the matrix is multiplied by
    what makes it so, though by no more than ``MOST_RESCALED`` either way."""
    root = np.linalg.solve(through, square_root(matrix))
    own = root @ root.T
    if rows is None:
        return own
    return own * np.clip(rows / max(own[0, 0], np.finfo(float).tiny), 1 / MOST_RESCALED, MOST_RESCALED)


def _towards_large_determinant(matrix: Array, lift: float) -> Array:
    """argmin over S > 0 of 1/2 |S - matrix|^2 - lift log det S: every eigenvalue w becomes (w + sqrt(w^2 + 4 lift)) / 2."""
    return log_det_repair((matrix + matrix.T) / 2, np.sqrt(lift / (2 * len(matrix))), strength=1.0)


def _steepest(squares: Sequence[tuple[float, Array]]) -> float:
    """An upper bound, most often tight, on the largest eigenvalue of S -> sum of weight P S P.

    The map keeps the cone of positive definite matrices, so that for any X in it the largest generalised eigenvalue of its image and X
    is an upper bound (Collatz and Wielandt); a few power steps bring X close to where that is the eigenvalue itself."""
    bound = sum(weight * np.linalg.norm(square, 2) ** 2 for weight, square in squares)
    x = np.eye(len(squares[0][1]))
    for _ in range(20):
        image = sum(weight * (square @ x @ square) for weight, square in squares)
        factor = np.linalg.cholesky(x)
        half = np.linalg.solve(factor, np.linalg.solve(factor, image).T)
        bound = min(bound, float(np.linalg.eigvalsh((half + half.T) / 2)[-1]) * (1 + 1e-9))
        image = image / np.trace(image)
        x = (image + image.T) / 2 + 1e-4 / len(x) * np.eye(len(x))  # stays well inside the cone
    return bound
