"""Normal numbers from the operating system's cryptographic source, in float64.

The numbers are those of the Box-Muller transform on fresh bits. The uniform behind the radius has 128 bits, so that tails
reach 13 standard deviations and the missing mass, 2^-128 per number, is far below every delta in use. The arithmetic is
floating point: see mechanisms/proofs/floating_point.md for what that leaves open. What is published is rounded to the grid that an
exact release would have: unrounded, its lowest bits tell neighbouring tables apart (tests/attacks)."""

from __future__ import annotations

import math
import os

import numpy as np

from dpgram.sampling.base import KEY_BYTES, FloatSource

Array = np.ndarray


class SecureSource(FloatSource):
    """The operating system's cryptographic source; has no seed and cannot be repeated."""

    private = True
    description = "the operating system's cryptographic source"

    def normal(self, scale: float, size: tuple[int, ...]) -> Array:
        pairs = (math.prod(size) + 1) // 2
        bits = np.frombuffer(os.urandom(24 * pairs), dtype=np.uint64).reshape(3, pairs)
        return scale * box_muller(bits)[: math.prod(size)].reshape(size)

    def key(self) -> bytes:
        return os.urandom(KEY_BYTES)

    def uniform(self, size: tuple[int, ...]) -> Array:
        words = np.frombuffer(os.urandom(16 * math.prod(size)), dtype=np.uint64).reshape(2, -1)
        return np.minimum(fine_uniform(words[0], words[1]), 1 - 2.0**-53).reshape(size)

    def publish(self, matrix: Array, step: float) -> Array:
        """Rounded to multiples of ``step``, a power of two."""
        return step * np.rint(super().publish(matrix, step) / step) + 0.0  # + 0.0 makes a negative zero a zero

    def publish_below(self, number: float, step: float) -> float:
        """Rounded down to a multiple of ``step``."""
        return step * float(np.floor(number / step))


def fine_uniform(high: Array, low: Array) -> Array:
    """Numbers in (0, 1] from two 64-bit words each: as fine near zero as 128 bits are."""
    return np.ldexp(high.astype(float), -64) + np.ldexp(low.astype(float) + 0.5, -128)


def box_muller(bits: Array) -> Array:
    """2 m standard normal numbers from (3, m) uniform 64-bit words."""
    high, low, turn = bits
    radius = np.sqrt(-2 * np.log(fine_uniform(high, low)))
    angle = 2 * np.pi * np.ldexp(turn.astype(float), -64)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
