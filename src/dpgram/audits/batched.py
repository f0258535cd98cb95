"""Another source's numbers, for many releases at once: an audit makes millions of them, and most of the cost is in the asking."""

from __future__ import annotations

import numpy as np

from dpgram.sampling.base import EXACT, FloatSource, RandomSource

Array = np.ndarray


class BatchedSource(FloatSource):
    """Draws from ``source`` for ``draws`` independent releases at a time: the mechanism's own formula, on stacks of matrices.

    They are not rounded to a grid, which would hide how fine the drawn noise is. Releases that are made one at a time are."""

    def __init__(self, source: FloatSource, draws: int):
        self._source, self.copies = source, (draws,)
        self.private, self.description = source.private, f"{source.description}, many releases at once"

    def normal(self, scale: float, size: tuple[int, ...]) -> Array:
        return self._source.normal(scale, size)

    def uniform(self, size: tuple[int, ...]) -> Array:
        return self._source.uniform(size)


def is_rounding(source: RandomSource) -> bool:
    """Whether what ``source`` publishes of one release lies on a grid."""
    return source.arithmetic == EXACT or float(source.publish(np.array([[0.25]]), 1.0)[0, 0]) == 0.0
