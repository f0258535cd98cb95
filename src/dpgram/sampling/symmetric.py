"""Symmetric Gaussian noise on a matrix of whole numbers, rounded exactly and fast.

Noise is real numbers, as in ``sampling.exact``. To round them, float64 with a bound on its error is nearly always enough
(``sampling.enclosed``); an entry that it leaves open is decided on balls, of the same random bits and more of them."""

from __future__ import annotations

import numpy as np
from flint import arb, arb_mat

from dpgram.sampling.bits import BitSource, LazyUniforms
from dpgram.sampling.enclosed import normal_pairs
from dpgram.sampling.reals import RealMatrix, box_muller

Array = np.ndarray

UNDERFLOW = 2.0**-1072  # more than products lose below the smallest normal float


class SymmetricNoise(RealMatrix):
    """Independent N(0, off^2) above the diagonal and N(0, on^2) on it; below it what is above.

    Its numbers are those above and on the diagonal of a (dim, dim) matrix of normal numbers, times the standard deviations; the others are
    never drawn."""

    def __init__(self, dim: int, off: float, on: float, source: BitSource):
        super().__init__((dim, dim), self._balls)
        self._sds = off, on
        self._uniforms = LazyUniforms(2 * ((dim * dim + 1) // 2), source)

    def __radd__(self, known: RealMatrix | Array) -> RealMatrix:
        if isinstance(known, RealMatrix) and known.whole is not None:
            return NoisyMatrix(known, self)
        return super().__add__(known)

    __add__ = __radd__

    def ball(self, i: int, j: int, bits: int) -> arb:
        """A ball around the entry in row i and column j."""
        place = min(i, j) * len(self) + max(i, j)
        pair = place // 2
        both = box_muller(self._uniforms.ball(2 * pair, bits), self._uniforms.ball(2 * pair + 1, bits))
        return arb(self._sds[i == j]) * both[place % 2]

    def _balls(self, bits: int) -> arb_mat:
        dim = len(self)
        upper = {(i, j): self.ball(i, j, bits) for i in range(dim) for j in range(i, dim)}
        return arb_mat([[upper[min(i, j), max(i, j)] for j in range(dim)] for i in range(dim)])

    def enclosed(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The entries in these rows and columns, none left of the diagonal, in float64, and bounds on their errors."""
        off, on = self._sds
        places = rows * len(self) + columns
        pairs, which = np.unique(places // 2, return_inverse=True)
        even, odd, error = normal_pairs(self._uniforms.words(2 * pairs), self._uniforms.words(2 * pairs + 1))
        sd = np.where(rows == columns, on, off)
        values = sd * np.where(places % 2 == 0, even[which], odd[which])
        return values, 1.01 * sd * error[which] + 2.0**-52 * np.abs(values) + UNDERFLOW


class NoisyMatrix(RealMatrix):
    """A matrix of whole numbers times a power of two, plus symmetric noise."""

    def __init__(self, known: RealMatrix, noise: SymmetricNoise):
        super().__init__(noise.shape, lambda bits: known.at(bits) + noise.at(bits))
        self._whole, self._exponent, self._noise = np.asarray(known.whole), known.exponent, noise

    def ball(self, i: int, j: int, bits: int) -> arb:
        """A ball around the entry in row i and column j."""
        return arb((int(self._whole[i, j]), self._exponent)) + self._noise.ball(i, j, bits)

    def nearest(self, rows: Array, columns: Array, exponent: int) -> tuple[Array, Array]:
        """(k, certain): k 2^exponent is nearest to the entry, where that is ``certain``."""
        shift, whole = exponent - self._exponent, self._whole[rows, columns]
        if shift < 0:
            whole, shift = whole << -shift, 0
        multiples = whole >> shift  # rounded down
        rest = np.ldexp((whole - (multiples << shift)).astype(np.float64), -shift)  # in [0, 1]
        with np.errstate(over="ignore", invalid="ignore"):  # then nothing is certain
            noise, error = self._noise.enclosed(rows, columns)
            x = np.ldexp(noise, -exponent)
            lifted = x + (rest + 0.5)
            below = np.floor(lifted)
            error = np.ldexp(error, -exponent) + 2.0**-51 * (np.abs(x) + 2)
            certain = (lifted - below > error) & (lifted - below < 1 - error) & (np.abs(x) < 2.0**50)
        return multiples + np.where(certain, below, 0.0).astype(np.int64).astype(object), certain
