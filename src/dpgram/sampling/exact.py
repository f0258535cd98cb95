"""Draws whose law is exact: random real numbers, known as finely as one asks, and rounded once, when they are published.

Statement: ``publish`` returns the entries of the real matrix it is given, each rounded to the nearest multiple of a public step. Every
comparison on the way (of a rejection sampler, of a rounding) is between real numbers, and is taken when balls around them leave no doubt.
Proof, and what it does not cover: mechanisms/proofs/exact_release.md."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import arb, arb_mat

from dpgram.sampling.base import KEY_BYTES
from dpgram.sampling.bits import BitSource, SecureBits, SeededBits, Uniforms
from dpgram.sampling.reals import (
    FIRST_BITS,
    Real,
    RealMatrix,
    below,
    box_muller,
    diagonal,
    grid_exponent,
    is_positive,
    nearest,
    refine,
)
from dpgram.sampling.seeded import seeded_key
from dpgram.sampling.symmetric import NoisyMatrix, SymmetricNoise

Array = np.ndarray


class ExactSource:
    """Random real numbers from the operating system's cryptographic source, or from a seed for tests.

    ``first_bits`` is the precision that is tried first; what comes out does not depend on it."""

    arithmetic = "exact"
    copies: tuple[int, ...] = ()

    def __init__(self, insecure_seed: int | None = None, *, first_bits: int = FIRST_BITS):
        self.private = insecure_seed is None
        self.description = (
            "the operating system's cryptographic source"
            if self.private
            else f"bits from the seed {insecure_seed}: not private"
        )
        self._bits: BitSource = SecureBits() if insecure_seed is None else SeededBits(insecure_seed)
        self._first_bits, self._seed = first_bits, insecure_seed

    def key(self) -> bytes:
        """As ``RandomSource`` says."""
        return os.urandom(KEY_BYTES) if self._seed is None else seeded_key(self._seed)

    def normal(self, scale: float, size: tuple[int, ...]) -> RealMatrix:
        """A matrix of independent N(0, scale^2)."""
        rows, columns = size
        count = rows * columns
        draw = _Normals(count, self._bits)
        return RealMatrix((rows, columns), lambda bits: arb_mat(rows, columns, draw.balls(bits)[:count])) * scale

    def symmetric_normal(self, dim: int, off: float, on: float) -> SymmetricNoise:
        """A symmetric matrix of independent N(0, off^2) above the diagonal and N(0, on^2) on it."""
        return SymmetricNoise(dim, off, on, self._bits)

    def chi_diagonal(self, degrees: Sequence[Fraction]) -> RealMatrix:
        """The diagonal matrix of independent square roots of chi-square numbers."""
        return diagonal(self.chi_square(each).then(arb.sqrt) for each in degrees)

    def chi_square(self, degrees: float | Fraction) -> Real:
        """Chi-square with ``degrees`` > 0, whatever real number: Marsaglia and Tsang (2000), a cube of a normal number or another try."""
        shape = Fraction(degrees) / 2
        boost = shape < 1
        d = shape + (1 if boost else 0) - Fraction(1, 3)
        while True:
            x, u = _Normals(1, self._bits).real(0), self._uniform()

            def cube_root(bits: int, x: Real = x) -> arb:
                return 1 + x.at(bits) / (9 * _ball(d)).sqrt()

            def slack(bits: int, x: Real = x, u: Real = u, root: Callable[[int], arb] = cube_root) -> arb:
                v = root(bits) ** 3
                return x.at(bits) ** 2 / 2 + _ball(d) * (1 - v + v.log()) - u.at(bits).log()

            if self._is_positive(cube_root) and self._is_positive(slack):
                break
        if not boost:
            return Real(lambda bits: 2 * _ball(d) * cube_root(bits) ** 3)
        small = self._uniform()  # a gamma number of shape a is one of shape a + 1 times U^(1/a)
        return Real(lambda bits: 2 * _ball(d) * cube_root(bits) ** 3 * (small.at(bits).log() / _ball(shape)).exp())

    def laplace(self, scale: float) -> Real:
        """Laplace noise of the given scale."""
        side, v = self._uniform(), self._uniform()
        sign = 1 if self._is_positive(lambda bits: side.at(bits) - arb(0.5)) else -1
        return Real(lambda bits: -sign * arb(scale) * v.at(bits).log())

    def truncated_laplace(self, scale: float, upper: float) -> Real:
        """Laplace noise of the given scale, conditioned on being at most ``upper``: the formula of variates.truncated_laplace."""
        side, v = self._uniform(), self._uniform()
        if upper <= 0:
            return Real(lambda bits: arb(upper) + arb(scale) * v.at(bits).log())

        def least() -> arb:
            return (-arb(upper) / arb(scale)).exp()

        if self._is_positive(lambda bits: 1 - side.at(bits) * (2 - least())):
            return Real(lambda bits: arb(scale) * v.at(bits).log())
        return Real(lambda bits: -arb(scale) * (least() + v.at(bits) * (1 - least())).log())

    def truncated_normal(self, sd: float, upper: float) -> Real:
        """Normal noise conditioned on being at most ``upper``: drawn until it is."""
        while True:
            noise = _Normals(1, self._bits).real(0).then(lambda ball: arb(sd) * ball)
            if self._is_positive(noise.then(lambda ball: arb(upper) - ball).at):
                return noise

    def publish(self, matrix: RealMatrix, step: float) -> Array:
        """The symmetric ``matrix``, each entry rounded to the nearest multiple of ``step``, a power of two, and then to a float.

        The float is that multiple itself where it has at most 53 digits."""
        exponent, dim = grid_exponent(step), len(matrix)
        if isinstance(matrix, NoisyMatrix):
            return self._publish_noisy(matrix, exponent)
        upper = [(i, j) for i in range(dim) for j in range(i, dim)]

        def attempt(bits: int) -> list[int | None] | None:
            balls = matrix.at(bits)
            whole_numbers = [nearest(balls[place], exponent) for place in upper]
            return None if None in whole_numbers else whole_numbers

        out = np.empty((dim, dim))
        for (i, j), whole in zip(upper, self._refine(attempt), strict=True):
            out[i, j] = out[j, i] = _times_step(whole, exponent)
        return out

    def _publish_noisy(self, matrix: NoisyMatrix, exponent: int) -> Array:
        """As ``publish`` does; each entry by itself, and most of them in floats whose error is bounded."""
        rows, columns = np.triu_indices(len(matrix))
        whole, certain = matrix.nearest(rows, columns, exponent)
        for place in np.flatnonzero(~certain):
            entry = partial(matrix.ball, int(rows[place]), int(columns[place]))
            whole[place] = self._refine(lambda bits, entry=entry: nearest(entry(bits), exponent))  # type: ignore[misc]
        out = np.empty(matrix.shape)
        out[rows, columns] = out[columns, rows] = np.ldexp(whole.astype(np.float64), exponent)
        return out

    def publish_below(self, number: Real, step: float) -> float:
        """The largest multiple of ``step`` that is at most ``number``."""
        exponent = grid_exponent(step)
        whole = self._refine(lambda bits: below(number.at(bits), exponent))
        return _times_step(whole, exponent, towards=-math.inf)

    def _uniform(self) -> Real:
        draw = Uniforms(1, self._bits)
        return Real(lambda bits: draw.balls(bits)[0])

    def _is_positive(self, value: Callable[[int], arb]) -> bool:
        return is_positive(value, self._first_bits)

    def _refine(self, attempt: Callable[[int], Any]) -> Any:
        return refine(attempt, self._first_bits)


class _Normals:
    """Independent standard normal numbers, two from each pair of uniform ones (Box and Muller)."""

    def __init__(self, count: int, source: BitSource):
        self._uniforms = Uniforms(2 * ((count + 1) // 2), source)

    def balls(self, bits: int) -> list[arb]:
        uniforms = iter(self._uniforms.balls(bits))
        out: list[arb] = []
        for u, turn in zip(uniforms, uniforms, strict=True):
            out += box_muller(u, turn)
        return out

    def real(self, place: int) -> Real:
        return Real(lambda bits: self.balls(bits)[place])


def _ball(fraction: Fraction) -> arb:
    return arb(fraction.numerator) / arb(fraction.denominator)


def _times_step(whole: int, exponent: int, towards: float | None = None) -> float:
    """whole times 2^exponent as a float: itself where it is one, otherwise the nearest, or the nearest on one side."""
    near = float(whole)
    if towards is not None and int(near) > whole:
        near = math.nextafter(near, towards)
    return math.ldexp(near, exponent)
