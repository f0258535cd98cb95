"""One positive definite matrix from several noisy looks at it, each through its own linear map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtr, chdtrc

from dpgram.linalg.symmetric import log_det_repair, square_root

Array = np.ndarray

Look = tuple[Array, Array, float]
"""T, a noisy T G T' and the sd of its noise off the diagonal (sqrt(2) times that on it), for one and the same G."""

STEPS = 200  # of the search; it stops before where nothing moves any more
POOLING_STEPS = 50
STILL = 1e-13  # relative to the matrix
POWER_STEPS, GAINED = 20, 0.99  # at most so many for the length of a step, while each makes the bound smaller by 1 %
MOST_RESCALED = 4.0  # a first entry that is further than this from its known value is noise, not a scale
FAR_FROM_WHITE = 0.6  # relative to the mean of all columns


def most_likely(looks: Sequence[Look], *, strength: float = 0.25, steps: int = STEPS, still: float = STILL) -> Array:
    """The positive definite S that all looks together make most likely, in the coordinates of the last: S stands for T G T'.

    It minimises 1/2 sum_k |H_k S H_k' - M_k|^2 / t_k^2 - 2 strength d log det S with H_k = T_k T^-1: the posterior mode under the prior of
    ``log_det_repair``, which is what comes back where there is one look. Accelerated proximal gradient steps, taken afresh
    where they overshoot (O'Donoghue and Candes 2015). Only ratios of sds matter beside the prior, and the last sd must be positive.
    The search ends when a step moves S by no more than ``still``, relative to S.

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
        if np.linalg.norm(moved) <= still * np.linalg.norm(new):
            return new
        if np.vdot(at - new, moved) > 0:  # the last step went against the slope: forget the speed
            at, momentum = new, 1.0
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            at, momentum = new + (momentum - 1) / following * moved, following
        found = new
    return found


def pooled(looks: Sequence[Look], *, steps: int = POOLING_STEPS) -> Look:
    """One look that says about what all of them say together, with noise that is about that of a single look.

    X minimises sum_k |H_k X H_k' - M_k|^2 / t_k^2, H_k = T_k T^-1, by conjugate gradients on its normal equations,

        sum_k P_k X P_k / t_k^2 = sum_k H_k' M_k H_k / t_k^2,    P_k = H_k' H_k,

    preconditioned by X -> W^-1 X W^-1 with W^2 = sum_k P_k^2 / t_k^2. The precision of X is about X -> W X W, exactly so where all P_k
    are multiples of one matrix: in the coordinates W^(1/2) T the noise is even again. One look is itself.

    >>> through, matrix, sd = pooled([(np.eye(2), np.diag([4.0, 1.0]), 0.5), (np.eye(2), np.diag([2.0, 3.0]), 0.5)])
    >>> bool(np.allclose(in_own_columns(matrix, through), np.diag([3.0, 2.0]))), sd
    (True, 0.5)
    """
    last, _, sd = looks[-1]
    if len(looks) == 1:
        return looks[-1]
    # In units of the last look's noise variance. What is far below the others' precision in every look is as good as not seen.
    seen = [(np.linalg.solve(last.T, through.T).T, gram, (sd / other) ** 2) for through, gram, other in looks[:-1]]
    seen.append((np.eye(len(last)), looks[-1][1], 1.0))
    squares = [(weight, h.T @ h) for h, _, weight in seen]
    wanted = sum(weight * (h.T @ gram @ h) for h, gram, weight in seen)
    values, vectors = np.linalg.eigh(sum(weight * (square @ square) for weight, square in squares))
    values = np.maximum(values, 1.0)  # the last look's own
    undo = (vectors / np.sqrt(values)) @ vectors.T
    found = undo @ wanted @ undo
    left = wanted - _applied(squares, found)
    solved = undo @ left @ undo
    along, size = solved, float(np.vdot(left, solved))
    enough = STILL**2 * float(np.vdot(wanted, undo @ wanted @ undo))
    for _ in range(steps):
        if not size > enough:
            break
        image = _applied(squares, along)
        step = size / float(np.vdot(along, image))
        found, left = found + step * along, left - step * image
        solved = undo @ left @ undo
        before, size = size, float(np.vdot(left, solved))
        along = solved + size / before * along
    half = (vectors * values**0.25) @ vectors.T
    matrix = half @ found @ half
    return half @ last, (matrix + matrix.T) / 2, sd


def _applied(squares: Sequence[tuple[float, Array]], matrix: Array) -> Array:
    return sum((weight * (square @ matrix @ square) for weight, square in squares), np.zeros_like(matrix))


def in_own_columns(matrix: Array, through: Array, *, rows: float | None = None) -> Array:
    """T^-1 ``matrix`` T^-T, symmetric and, like ``matrix``, positive semi-definite; T = ``through`` need not be well conditioned.

    Where ``rows`` is given, the first column is the intercept and its own entry is known to be ``rows``: the matrix is multiplied by
    what makes it so, though by no more than ``MOST_RESCALED`` either way."""
    root = np.linalg.solve(through, square_root(matrix))
    own = root @ root.T
    if rows is None:
        return own
    return own * np.clip(rows / max(own[0, 0], np.finfo(float).tiny), 1 / MOST_RESCALED, MOST_RESCALED)


def unshrunk(gram: Array, kept: float, rows: float | None) -> tuple[Array, float]:
    """What the sum of z z' over whitened rows would be, had none been shrunk to norm one; and what that multiplies its noise by.

    ``kept`` is the mean weight that shrinking left a row's square. Dividing by it sets the scale right, but shrinking also hides part of
    what is left to whiten: a direction in which rows are longer than in others has more of them shrunk. If z is elliptical with scatter
    proportional to I + D, D small with trace zero, then the shrunk sum is proportional to I + k D, where

        k = 1 - 2 / (d + 2) share,    share = (the number of rows shrunk) / trace,

    whatever the law of the lengths (w(r^2) = min(1, 1/r^2) under I + D has mean E w z z' + E w'(r^2) z z' (z'Dz)). So what differs from a
    multiple of the identity is divided by k too. It is far from one where columns are few: 5/7 for five of them, all rows shrunk. A
    column that is far from white, because a map may not stretch it further, keeps its own entry as it is: its rows' lengths, and so
    their weights, hardly depend on it."""
    mean = float(np.trace(gram)) / len(gram)
    if mean <= 0:  # nothing but noise
        return gram / kept, 1 / kept
    response = 1 - 2 / (len(gram) + 2) * share_shrunk(len(gram), kept, mean * len(gram) / rows if rows else None)
    apart = np.diag(gram) - mean
    near = np.maximum(1 - (apart / (FAR_FROM_WHITE * mean)) ** 2, 0.0)
    white = np.diag(mean + (1 - near) * apart)
    return (white + (gram - white) / response) / kept, 1 / (kept * response)


def share_shrunk(dim: int, kept: float, mean_square: float | None = None) -> float:
    """About the number of rows of norm one over the sum of all squares, for rows that were shrunk to norm one.

    For normal rows it follows from the mean weight that was ``kept``, and as well from the mean square that is left. Where tails are
    heavy the first is too large and the second too small, and their mean is near the truth. Where all seems to be kept, which may be
    noise, or nobody can tell, the second says it alone.

    >>> share_shrunk(20, 1.0), round(share_shrunk(20, 0.9, 0.87), 2), round(share_shrunk(20, 0.3), 2)
    (0.0, 0.53, 1.0)
    """
    lengths = [] if kept >= 1.0 else [_root(lambda x: _weight(dim, x) - kept)]
    if mean_square is not None:
        lengths.append(_root(lambda x: min(mean_square, 1.0) - _left(dim, x) * np.exp(-x)))
    return float(np.mean([np.exp(x) * chdtrc(dim, dim * np.exp(x)) / _left(dim, x) for x in lengths])) if lengths else 0.0


def _weight(dim: int, log_room: float) -> float:
    """The mean of min(1, room / r^2) for a normal row with r^2 of mean one."""
    dim = max(dim, 3)
    room = dim * np.exp(log_room)
    return float(chdtr(dim, room) + room * chdtrc(dim - 2, room) / (dim - 2))


def _left(dim: int, log_room: float) -> float:
    """The mean of min(r^2, room) for such a row."""
    room = np.exp(log_room)
    return float(chdtr(dim + 2, dim * room) + room * chdtrc(dim, dim * room))


def _root(rising: Callable[[float], float]) -> float:
    """Where a function of the logarithm of a length changes its sign; the end of the range where it does not."""
    low, high = -12.0, 6.0
    return low if rising(low) >= 0 else high if rising(high) <= 0 else float(brentq(rising, low, high, xtol=1e-12))


def _towards_large_determinant(matrix: Array, lift: float) -> Array:
    """argmin over S > 0 of 1/2 |S - matrix|^2 - lift log det S: every eigenvalue w becomes (w + sqrt(w^2 + 4 lift)) / 2."""
    return log_det_repair((matrix + matrix.T) / 2, np.sqrt(lift / (2 * len(matrix))), strength=1.0)


def _steepest(squares: Sequence[tuple[float, Array]]) -> float:
    """An upper bound, most often tight, on the largest eigenvalue of S -> sum of weight P S P.

    The map keeps the cone of positive definite matrices, so that for any X in it the largest generalised eigenvalue of its image and X
    is an upper bound (Collatz and Wielandt); a few power steps bring X close to where that is the eigenvalue itself."""
    bound = sum(weight * float(np.linalg.norm(square, 2)) ** 2 for weight, square in squares)
    x = np.eye(len(squares[0][1]))
    for _ in range(POWER_STEPS):
        image = sum(weight * (square @ x @ square) for weight, square in squares)
        factor = np.linalg.cholesky(x)
        half = np.linalg.solve(factor, np.linalg.solve(factor, image).T)
        before, bound = bound, min(bound, float(np.linalg.eigvalsh((half + half.T) / 2)[-1]) * (1 + 1e-9))
        if bound > GAINED * before:
            return bound
        image = image / np.trace(image)
        x = (image + image.T) / 2 + 1e-4 / len(x) * np.eye(len(x))  # stays well inside the cone
    return bound
