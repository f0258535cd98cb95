"""Another source's numbers, fetched many at a time: an audit asks for a few millions of times, and most of the cost is in the asking."""

from __future__ import annotations

import math

import numpy as np

from dpgram.sampling.base import RandomSource

Array = np.ndarray

BLOCK = 1 << 16


class PooledSource:
    """Hands out the numbers of ``source``, each once and in order. Not for releases: what it holds ahead could be read from memory."""

    private = False

    def __init__(self, source: RandomSource):
        self.description = f"{source.description}, fetched ahead"
        self._source = source
        self._normal = self._uniform = np.empty(0)

    def normal(self, scale: float, size: tuple[int, ...]) -> Array:
        count = math.prod(size)
        if count > len(self._normal):
            self._normal = self._source.normal(1.0, (max(BLOCK, count),))
        taken, self._normal = self._normal[:count], self._normal[count:]
        return scale * taken.reshape(size)

    def uniform(self, size: tuple[int, ...]) -> Array:
        count = math.prod(size)
        if count > len(self._uniform):
            self._uniform = self._source.uniform((max(BLOCK, count),))
        taken, self._uniform = self._uniform[:count], self._uniform[count:]
        return taken.reshape(size).copy()
