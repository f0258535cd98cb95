"""Normal numbers from a seed, for tests and experiments: whoever knows the seed can subtract the noise."""

from __future__ import annotations

import hashlib

import numpy as np

from dpgram.errors import BudgetError
from dpgram.sampling.base import KEY_BYTES, FloatSource


class SeededSource(FloatSource):
    """NumPy's generator with a given seed. A release that used it is marked as not private."""

    private = False

    def __init__(self, seed: int):
        check_seed(seed)
        self.description = f"NumPy's PCG64 with seed {seed}: not private"
        self._seed = int(seed)
        self._generator = np.random.Generator(np.random.PCG64(int(seed)))

    def normal(self, scale: float, size: tuple[int, ...]) -> np.ndarray:
        return self._generator.normal(scale=scale, size=size)

    def key(self) -> bytes:
        return seeded_key(self._seed)

    def uniform(self, size: tuple[int, ...]) -> np.ndarray:
        return np.maximum(self._generator.random(size=size), 2.0**-60)


def seeded_key(seed: int) -> bytes:
    """The key of a seed: the same in every arithmetic, and nothing that is drawn from the seed."""
    return hashlib.shake_256(f"key:{seed}".encode()).digest(KEY_BYTES)


def check_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise BudgetError(f"insecure_seed is {seed!r} and must be a whole number, 0 or more.")
