"""Another source's numbers, for many releases at once: an audit makes millions of them, and most of the cost is in the asking."""

from __future__ import annotations

import numpy as np

from dpgram.sampling.base import FloatSource


class BatchedSource(FloatSource):
    """Draws from ``source`` for ``draws`` independent releases at a time: the mechanism's own formula, on stacks of matrices."""

    def __init__(self, source: FloatSource, draws: int):
        self._source, self.copies = source, (draws,)
        self.private, self.description = source.private, f"{source.description}, many releases at once"

    def normal(self, scale: float, size: tuple[int, ...]) -> np.ndarray:
        return self._source.normal(scale, size)

    def uniform(self, size: tuple[int, ...]) -> np.ndarray:
        return self._source.uniform(size)
