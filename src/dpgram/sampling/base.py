"""What a mechanism asks of a source of randomness.

A source decides the arithmetic as well: the same formula runs on float64 arrays and on matrices of real numbers (``RealMatrix``), which
have the same operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from dpgram.sampling.reals import RealMatrix

EXACT, FLOAT = "exact", "float64"
KEY_BYTES = 32
BITS_BELOW_SD = 24  # rounding adds a part in 10^15 to the noise's variance, and leaves 28 bits of a float for sums of 2^28 sd

Matrix = Any
"""A float64 array, or a RealMatrix: what formulas are written for."""


class RandomSource(Protocol):
    """Draws independent normal and uniform numbers, and rounds what is made of them when it is published."""

    private: bool  # whether what is drawn cannot be foreseen by anybody
    description: str  # for the label
    arithmetic: str  # "exact" or "float64"
    copies: tuple[int, ...]  # () draws one release; (n,) draws n at once

    def normal(self, scale: float, size: tuple[int, ...]) -> Any:
        """Independent N(0, scale^2)."""
        ...

    def key(self) -> bytes:
        """32 secret bytes, from a stream apart: what else is drawn does not depend on whether they were. A seed has one key."""
        ...

    def publish(self, matrix: Matrix, step: float) -> np.ndarray:
        """The symmetric ``matrix`` as floats; where arithmetic is exact, each entry rounded once, to a multiple of ``step``.

        In floats a source may round to it as well, as the secure one does."""
        ...

    def publish_below(self, number: Any, step: float) -> Any:
        """The number as a float; where arithmetic is exact, the largest multiple of ``step`` that is not above it."""
        ...


class FloatSource(RandomSource):
    """What all sources in float64 share. Subclasses draw ``normal`` and ``uniform``."""

    arithmetic = FLOAT
    copies: tuple[int, ...] = ()

    def uniform(self, size: tuple[int, ...]) -> np.ndarray:
        """Independent and uniform on (0, 1), neither end included, as fine near zero as floats are."""
        raise NotImplementedError

    def publish(self, matrix: np.ndarray, step: float) -> np.ndarray:
        return (matrix + matrix.mT) / 2

    def publish_below(self, number: Any, step: float) -> Any:
        return number


def grid_step(sd: Any) -> Any:
    """The step of the grid on which noise of standard deviation ``sd`` is published: a power of two, 2^-24 of it or a little less.

    One for each of many releases that are drawn at once, where their noise differs."""
    step = np.ldexp(1.0, np.frexp(sd)[1] - 1 - BITS_BELOW_SD)
    return step if np.ndim(step) else float(step)


def known(matrix: Matrix, rng: RandomSource) -> Matrix:
    """``matrix`` in the arithmetic of ``rng``: a float is the fraction that it is."""
    return matrix if rng.arithmetic == FLOAT or not isinstance(matrix, np.ndarray) else exactly(matrix)


def exactly(matrix: np.ndarray) -> RealMatrix:
    """The matrix of these floats, each the fraction that it is."""
    from dpgram.sampling.reals import RealMatrix  # its library takes a tenth of a second to import

    return RealMatrix.of_floats(matrix)


def exact_gram(whole: np.ndarray, exponent: int) -> RealMatrix:
    """A matrix of whole numbers times 2^exponent, known exactly."""
    from dpgram.sampling.reals import RealMatrix

    return RealMatrix.of_integers(whole, exponent)
