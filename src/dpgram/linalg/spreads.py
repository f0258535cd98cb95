"""Sums of noisy matrices whose noise has different shapes, seen as one matrix whose noise has one shape.

A matrix L M L' whose M carries symmetric noise N, of variance one off the diagonal and two on it, has noise L N L'. Of what it does to two
combinations of columns a and b only A = L L' matters: Var(a'L N L'b) = (a'A a)(b'A b) + (a'A b)^2, the quadratic form of A x A. A sum of
such matrices with independent noise has sum_i A_i x A_i, which is no A x A, but never more than one:

    sum_i A_i x A_i <= A x A    with A = (sum_i A_i^2)^(1/2), for all positive definite A_i; equal where they are multiples of each other.

Proof: with X = the column of all A_i x I and Y = the column of all I x A_i, the left side is X'Y. Their polar parts are P = A x I and
Q = I x A, which commute, so X'Y = P C Q with |C| <= 1. (PQ)^(-1/2) P C Q (PQ)^(-1/2) = R C R^-1 with R = (P Q^-1)^(1/2) is symmetric and
has the eigenvalues of C, none of which is above one. So it is at most I, and X'Y at most PQ = A x A.

It holds in the coordinates of any F, for F A_i F'. Those in which the A_i add up to the identity are taken: there A depends on no units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class OneShape:
    """Coordinates T in which the noise of a sum is at most even, of sd one off the diagonal and sqrt(2) on it."""

    through: Array  # (d, d) T
    turn: Array  # (d, d) T^-T
    ways: tuple[Array, ...]  # T L_i for each matrix of the sum: from the coordinates of its M to those of the sum
    within: tuple[Array, ...]  # the noise of each, sd_i (T L_i)(T L_i)', in coordinates where these add up to the identity
    root: Array  # the root of sum_i within_i^2

    def largest(self, ratios: Sequence[float]) -> float:
        """What the noise is at most, in any direction, if that of matrix i is ``ratios[i]`` times as large as was said."""
        other = square_sum_root([ratio * each for ratio, each in zip(ratios, self.within, strict=True)])
        half = np.linalg.inv(_root(self.root))
        return float(np.linalg.eigvalsh(half @ other @ half)[-1])

    def sum(self, matrices: Sequence[Array]) -> Array:
        """The sum of matrices, each given in its own coordinates, in those of T."""
        total = sum(way @ matrix @ way.T for way, matrix in zip(self.ways, matrices, strict=True))
        return (total + total.T) / 2


def one_shape(maps: Sequence[Array], sds: Sequence[float]) -> OneShape:
    """The shape that is enough for the noise of sum_i L_i M_i L_i', where ``maps`` are the L_i and M_i has noise of ``sds[i]``.

    >>> shape = one_shape([np.eye(2), np.eye(2)], [3.0, 4.0])
    >>> bool(np.allclose(shape.sum([np.eye(2), np.eye(2)]), 2 / 5 * np.eye(2)))
    True
    """
    roots = [math.sqrt(sd) * each for each, sd in zip(maps, sds, strict=True)]
    triangle: Array = np.linalg.qr(np.concatenate([root.T for root in roots]), mode="r")  # type: ignore[assignment]  # R'R = the sum of all sd_i L_i L_i'
    there = [np.linalg.solve(triangle.T, root) for root in roots]
    within = [each @ each.T for each in there]
    root = square_sum_root(within)
    quarter = _root(root)
    half = np.linalg.inv(quarter)
    ways = [half @ each / math.sqrt(sd) for each, sd in zip(there, sds, strict=True)]
    return OneShape(np.linalg.solve(triangle, half.T).T, quarter @ triangle, tuple(ways), tuple(within), root)


def square_sum_root(matrices: Sequence[Array]) -> Array:
    """(sum_i A_i^2)^(1/2) of symmetric matrices."""
    return _root(sum(each @ each for each in matrices))


def _root(matrix: Array | int) -> Array:
    """The symmetric positive definite root."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def weights(maps: Sequence[Array], sds: Sequence[float], white: Sequence[bool] | None = None) -> tuple[float, ...]:
    """By what to multiply several noisy looks at one matrix, so that their sum has little noise; they add up to one.

    The noise of L_i N L_i' is measured by the variances of all entries together, sd_i^2 (tr(A)^2 + tr(A^2)), in the coordinates of one
    look: of those in whose coordinates the matrix is about ``white``, if there are any, that whose noise has the smallest volume. So a
    direction counts by how much of what is there the noise hides.

    >>> weights([np.eye(2), np.eye(2)], [1.0, 2.0])
    (0.8, 0.2)
    """
    volumes = [len(each) * math.log(sd) + 2 * np.linalg.slogdet(each)[1] for each, sd in zip(maps, sds, strict=True)]
    least = min(range(len(maps)), key=lambda k: (not (white and white[k]), volumes[k]))
    sizes = []
    for each, sd in zip(maps, sds, strict=True):
        there = np.linalg.solve(maps[least], each)
        seen = there @ there.T
        sizes.append((sd / sds[least]) ** 2 * (np.trace(seen) ** 2 + float(np.vdot(seen, seen))))
    inverse = 1 / np.array(sizes)
    return tuple((inverse / inverse.sum()).tolist())
