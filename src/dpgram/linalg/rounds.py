"""One matrix from several noisy looks at it, each through its own linear map, and what shrinking rows hides in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dpgram.linalg.roots import root
from dpgram.linalg.special import chdtr, chdtrc
from dpgram.linalg.symmetric import square_root

Array = np.ndarray

Look = tuple[Array, Array, float]
"""T, a noisy T G T' and the sd of its noise off the diagonal (sqrt(2) times that on it), for one and the same G."""

OLD_ROUNDS = 3
POOLING_STEPS = 50
STILL = 1e-13  # relative to the matrix
MOST_RESCALED = 4.0  # a first entry that is further than this from its known value is noise, not a scale
WIDEST = 2.0  # squares of mapped rows, in the last round's: what is wider tells of other weights
FAR_FROM_WHITE = 0.6  # relative to the mean of all columns


Shrunk = Any
"""One round: ``gram`` is the noisy Gram of rows that were mapped by ``through`` and shrunk to norm one, which ``kept`` a share of their
squares; ``sd_off_diagonal`` is that of its noise. Each row is in the sum with probability ``sampled``."""


def looks(rounds: Sequence[Shrunk], rows: float | None, *, widest: float | None = None) -> list[Look]:
    """The rounds that count, the last of them last, with what shrinking took put back; ``rows`` where their number is known.

    The oldest only steered the maps: they are noisy, and their rows were shrunk before they were white. Where ``widest`` is given, rounds
    whose mapped rows had more than so many times the last round's squares are left out too: they were shrunk harder, and tell of other
    weights."""
    oldest, last = min(len(rounds) // 2, OLD_ROUNDS), rounds[-1]
    alike = [r for r in rounds[oldest:-1] if widest is None or _squares(r) <= widest * _squares(last)]
    return [look(r, rows, white=r is not rounds[0]) for r in (*alike, last)]


def look(seen: Shrunk, rows: float | None, *, white: bool = True) -> Look:
    """One round, with what shrinking took put back. Of rows that are not ``white`` only the scale is known."""
    whole, sd = of_all_rows(seen, rows)
    if not white:
        return seen.through, whole / seen.kept, sd / seen.kept
    gram, factor = unshrunk(whole, seen.kept, rows)
    return seen.through, gram, factor * sd


def of_all_rows(seen: Shrunk, rows: float | None) -> tuple[Array, float]:
    """What a round over a sample says of the sum over all rows, and the sd off the diagonal of all that it is wrong by.

    With probability p a row is in the sample, so the sum is divided by p, and its noise with it. What rows are in the sample moves an
    entry of the sum of z z' by a variance of (1 - p) / p times the sum of z_i^2 z_j^2: of n rows that are about white n m^2, where m is
    the mean of z_i^2."""
    p = seen.sampled
    if p == 1.0:
        return seen.gram, seen.sd_off_diagonal
    gram = seen.gram / p
    squares = max(float(np.trace(gram)), 0.0)
    many = max(squares / seen.kept if rows is None else rows, 1.0)  # no square is above one
    return gram, float(np.hypot(seen.sd_off_diagonal / p, np.sqrt((1 - p) / p / many) * squares / len(gram)))


def _squares(seen: Shrunk) -> float:
    """The sum of squares of mapped rows, before they were shrunk."""
    return float(np.trace(seen.gram)) / seen.sampled / seen.kept


def unmapped(matrix: Array, through: Array) -> Array:
    """T^-1 ``matrix`` T^-T, T = ``through``: the Gram of rows before they were mapped."""
    return np.linalg.solve(through, np.linalg.solve(through, matrix).mT)


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
    if len(looks) == 1:
        return looks[-1]
    (last, _, sd), (half, matrix) = looks[-1], pooled_there(looks, steps=steps)
    return half @ last, matrix, sd


def pooled_there(looks: Sequence[Look], *, steps: int = POOLING_STEPS) -> tuple[Array, Array]:
    """W^(1/2) and the pooled matrix, of which ``pooled`` says what they are."""
    last, _, sd = looks[-1]
    # In units of the last look's noise variance. What is far below the others' precision in every look is as good as not seen.
    seen = [(np.linalg.solve(last.T, through.T).T, gram, (sd / other) ** 2) for through, gram, other in looks[:-1]]
    squares = [(weight, h.T @ h) for h, _, weight in seen]
    wanted = sum(weight * (h.T @ gram @ h) for h, gram, weight in seen) + looks[-1][1]
    values, vectors = np.linalg.eigh(sum(weight * (square @ square) for weight, square in squares) + np.eye(len(last)))
    values = np.maximum(values, 1.0)  # the last look's own
    undo = (vectors / np.sqrt(values)) @ vectors.T
    solution = undo @ wanted @ undo
    left = wanted - _applied(squares, solution)
    solved = undo @ left @ undo
    along, size = solved, float(np.vdot(left, solved))
    enough = STILL**2 * float(np.vdot(wanted, undo @ wanted @ undo))
    for _ in range(steps):
        if not size > enough:
            break
        image = _applied(squares, along)
        step = size / float(np.vdot(along, image))
        solution, left = solution + step * along, left - step * image
        solved = undo @ left @ undo
        before, size = size, float(np.vdot(left, solved))
        along = solved + size / before * along
    half = (vectors * values**0.25) @ vectors.T
    matrix = half @ solution @ half
    return half, (matrix + matrix.T) / 2


def _applied(squares: Sequence[tuple[float, Array]], matrix: Array) -> Array:
    """The left side of the normal equations; the last look's P is the identity, and its weight one."""
    return sum(weight * (square @ matrix @ square) for weight, square in squares) + matrix


def in_own_columns(matrix: Array, through: Array, *, rows: float | None = None) -> Array:
    """``unmapped`` by way of a root: symmetric and, like ``matrix``, positive semi-definite; T = ``through`` need not be well conditioned.

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


@lru_cache(maxsize=256)  # a release asks for the same number after every round
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


def share_kept(dim: int, mean_square: float) -> float:
    """The mean weight that shrinking to norm one left the squares of normal rows, where ``mean_square`` is their mean by these weights.

    >>> [round(share_kept(20, square), 2) for square in (0.3, 0.8, 0.95)]
    [1.0, 0.97, 0.92]
    """
    return _weight(dim, _root(lambda x: mean_square - _left(dim, x) * np.exp(-x) / _weight(dim, x)))


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
    return low if rising(low) >= 0 else high if rising(high) <= 0 else root(rising, low, high)
