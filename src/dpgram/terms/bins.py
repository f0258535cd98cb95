"""Public bins of columns, and how counts of rows in them are laid out: as the upper triangle of a symmetric matrix.

A matrix of counts is summed, carried and given noise by the same code as a Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Bins:
    """The ``inner`` edges of each column's bins, rising: m edges make m + 1 bins, and an edge belongs to the bin above it.

    The first bin has no lower end and the last no upper one, so every number lies in exactly one."""

    inner: Mapping[str, tuple[float, ...]]  # by column

    @property
    def total(self) -> int:
        """The number of bins of all columns."""
        return sum(len(edges) + 1 for edges in self.inner.values())

    @property
    def dim(self) -> int:
        """Of the smallest matrix whose upper triangle has room for all bins."""
        return (math.isqrt(8 * self.total - 7) + 1) // 2

    def packed(self, counts: Array) -> Array:
        """The counts, column after column, as a symmetric matrix; what is left of it is zero."""
        upper = np.zeros(self.dim * (self.dim + 1) // 2, dtype=counts.dtype)
        upper[: self.total] = counts
        matrix = np.zeros((self.dim, self.dim), dtype=counts.dtype)
        matrix[np.triu_indices(self.dim)] = upper
        return matrix + np.triu(matrix, 1).T

    def unpacked(self, matrix: Array) -> dict[str, Array]:
        """The counts in a matrix, or in each of many, by column."""
        upper = matrix[..., *np.triu_indices(self.dim)]
        ends = np.cumsum([len(edges) + 1 for edges in self.inner.values()])
        return {
            name: upper[..., end - len(edges) - 1 : end] for (name, edges), end in zip(self.inner.items(), ends, strict=True)
        }
