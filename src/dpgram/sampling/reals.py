"""Real numbers that are known as finely as one asks, and matrices of them.

A real number is here a rule: asked for ``bits`` of precision it gives a ball, an interval that certainly contains the number
(python-flint's arb). Formulas are written as on arrays, with + - * / and @; nothing is computed before ``at`` is called, and it can
be called again with more bits. A comparison or a rounding is taken only when the ball leaves no doubt, so what comes out is a
function of the real number, not of how it was computed."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

Array = np.ndarray
Balls = list[list[arb]]

FIRST_BITS, MOST_BITS = 128, 1 << 16
BLOCK = 16  # below this size a triangular matrix is treated entry by entry, above it by halves and products
_ONE_AT_A_TIME = threading.RLock()  # the library's precision is a global setting


class Undecided(ArithmeticError):
    """The balls are too wide to go on: more bits are needed, unless a pivot is certainly not positive."""

    def __init__(self, *, not_definite: bool = False):
        self.not_definite = not_definite


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with ``bits`` of precision. Whatever the precision, balls contain what they stand for."""
    with _ONE_AT_A_TIME:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


def refine(attempt: Callable[[int], Any], first_bits: int = FIRST_BITS) -> Any:
    """What ``attempt`` returns with as many bits as it needs; it raises Undecided, or returns None, where they are too few."""
    bits = first_bits
    while bits <= MOST_BITS:
        with precision(bits):
            try:
                answer = attempt(bits)
            except Undecided:
                answer = None
        if answer is not None:
            return answer
        bits *= 2
    raise ArithmeticError(
        "a comparison of real numbers is undecided at 65536 bits: they are equal, or the formula is singular."
    )


class Real:
    """One real number. ``at(bits)`` is a ball around it, to about so many bits of precision; call it within ``precision(bits)``."""

    def __init__(self, ball: Callable[[int], arb]):
        self.at = lru_cache(maxsize=1)(ball)

    def then(self, function: Callable[[arb], arb]) -> Real:
        """The ``function`` of the number."""
        return Real(lambda bits: function(self.at(bits)))

    def __repr__(self) -> str:
        return "Real(<private>)"


def lifted(number: Real, by: Fraction) -> Real:
    """The number plus a fraction."""
    return number.then(lambda ball: ball + arb(by.numerator) / arb(by.denominator))


def is_positive(value: Callable[[int], arb], first_bits: int = FIRST_BITS) -> bool:
    """Whether the number is above zero; asks for more bits until there is no doubt."""

    def attempt(bits: int) -> bool | None:
        ball = value(bits)
        return True if ball > 0 else False if ball < 0 else None

    return bool(refine(attempt, first_bits))


class RealMatrix:
    """A matrix of real numbers. Where it holds sums over rows it is as private as they are, and prints nothing.

    ``at(bits)`` are balls around the entries, computed with so many bits; call it within ``precision(bits)``."""

    __array_ufunc__ = None  # array * matrix is this class's business

    def __init__(self, shape: tuple[int, int], balls: Callable[[int], arb_mat]):
        self.shape = shape
        self.at = lru_cache(maxsize=1)(balls)
        self.whole: Array | None = None  # of a matrix of whole numbers times 2^exponent: these, as Python's integers
        self.exponent = 0

    @classmethod
    def of_integers(cls, whole: Sequence[Sequence[int]] | Array, exponent: int) -> RealMatrix:
        """The matrix of ``whole`` times 2^exponent, exactly."""
        numbers = np.array(whole, dtype=object)  # whatever they were, Python's integers
        exact = cache(lambda: arb_mat([[arb((entry, exponent)) for entry in row] for row in numbers]))
        made = cls(numbers.shape, lambda bits: exact())
        made.whole, made.exponent = numbers, exponent
        return made

    @classmethod
    def of_floats(cls, array: Array) -> RealMatrix:
        """The matrix of these floats, each the fraction that it is."""
        exact = arb_mat([[arb(float(entry)) for entry in row] for row in array])
        return cls((array.shape[0], array.shape[1]), lambda bits: exact)

    def __len__(self) -> int:
        return self.shape[0]

    def __add__(self, other: RealMatrix | Array) -> RealMatrix:
        term = _lifted(other)
        return RealMatrix(self.shape, lambda bits: self.at(bits) + term.at(bits))

    __radd__ = __add__

    def __sub__(self, other: RealMatrix | Array) -> RealMatrix:
        term = _lifted(other)
        return RealMatrix(self.shape, lambda bits: self.at(bits) - term.at(bits))

    def __mul__(self, factor: float | Array) -> RealMatrix:
        """Times a number, or entry by entry times an array of floats."""
        if np.ndim(factor) == 0:
            number = arb(float(factor))
            return RealMatrix(self.shape, lambda bits: self.at(bits) * number)
        factors = [arb(float(entry)) for entry in np.ravel(factor)]
        return RealMatrix(
            self.shape,
            lambda bits: arb_mat(*self.shape, [a * f for a, f in zip(self.at(bits).entries(), factors, strict=True)]),
        )

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> RealMatrix:
        number = arb(float(divisor))
        return RealMatrix(self.shape, lambda bits: self.at(bits) / number)

    def __matmul__(self, other: RealMatrix | Array) -> RealMatrix:
        factor = _lifted(other)
        return RealMatrix((self.shape[0], factor.shape[1]), lambda bits: self.at(bits) * factor.at(bits))

    @property
    def mT(self) -> RealMatrix:  # NumPy's name for the transposed matrix
        return RealMatrix((self.shape[1], self.shape[0]), lambda bits: self.at(bits).transpose())

    def cholesky(self) -> RealMatrix:
        """The lower triangular matrix whose square this positive definite matrix is."""
        return RealMatrix(self.shape, lambda bits: arb_mat(cholesky(self.at(bits).tolist())[0]))

    def inverse_of_lower(self) -> RealMatrix:
        """The inverse of this lower triangular matrix."""
        return RealMatrix(self.shape, lambda bits: arb_mat(lower_inverse(self.at(bits).tolist())))

    def inverse(self) -> RealMatrix:
        """The inverse of this positive definite matrix."""

        def balls(bits: int) -> arb_mat:
            lower = arb_mat(cholesky(self.at(bits).tolist())[1])
            return lower.transpose() * lower

        return RealMatrix(self.shape, balls)

    def __repr__(self) -> str:
        return f"RealMatrix({self.shape[0]} by {self.shape[1]}, <private>)"


def diagonal(entries: Iterable[Real]) -> RealMatrix:
    """The diagonal matrix of these numbers."""
    numbers, zero = list(entries), arb(0)
    return RealMatrix(
        (len(numbers), len(numbers)),
        lambda bits: arb_mat([[x.at(bits) if i == j else zero for j in range(len(numbers))] for i, x in enumerate(numbers)]),
    )


def _lifted(matrix: RealMatrix | Array) -> RealMatrix:
    return matrix if isinstance(matrix, RealMatrix) else RealMatrix.of_floats(matrix)


def cholesky(rows: Balls) -> tuple[Balls, Balls]:
    """(L, L^-1) with L L' = the matrix; raises Undecided where it cannot be told from one that is not positive definite."""
    if len(rows) <= BLOCK:
        lower = _small_cholesky(rows)
        return lower, _small_inverse(lower)
    half = len(rows) // 2
    first, first_inverse = cholesky([row[:half] for row in rows[:half]])
    upside = arb_mat(first_inverse)
    corner = arb_mat([row[:half] for row in rows[half:]]) * upside.transpose()
    rest, rest_inverse = cholesky((arb_mat([row[half:] for row in rows[half:]]) - corner * corner.transpose()).tolist())
    corner_inverse = -(arb_mat(rest_inverse) * (corner * upside))
    return _lower(first, corner, rest), _lower(first_inverse, corner_inverse, rest_inverse)


def lower_inverse(rows: Balls) -> Balls:
    """The inverse of a lower triangular matrix."""
    if len(rows) <= BLOCK:
        return _small_inverse(rows)
    half = len(rows) // 2
    first, rest = lower_inverse([row[:half] for row in rows[:half]]), lower_inverse([row[half:] for row in rows[half:]])
    corner = -(arb_mat(rest) * (arb_mat([row[:half] for row in rows[half:]]) * arb_mat(first)))
    return _lower(first, corner, rest)


def _lower(first: Balls, corner: arb_mat, rest: Balls) -> Balls:
    nothing = [arb(0)] * len(rest)
    return [row + nothing for row in first] + [left + right for left, right in zip(corner.tolist(), rest, strict=True)]


def _small_cholesky(rows: Balls) -> Balls:
    zero = arb(0)
    lower: Balls = []
    for i, row in enumerate(rows):
        made: list[arb] = []
        for j in range(i):
            made.append((row[j] - sum((a * b for a, b in zip(made, lower[j], strict=False)), zero)) / lower[j][j])
        pivot = row[i] - sum((a * a for a in made), zero)
        if not pivot > 0:
            raise Undecided(not_definite=bool(pivot <= 0))
        lower.append([*made, pivot.sqrt(), *[zero] * (len(rows) - i - 1)])
    return lower


def _small_inverse(lower: Balls) -> Balls:
    zero, size = arb(0), len(lower)
    inverse = [[zero] * size for _ in range(size)]
    for j in range(size):
        inverse[j][j] = 1 / lower[j][j]
        for i in range(j + 1, size):
            inverse[i][j] = -sum((lower[i][k] * inverse[k][j] for k in range(j, i)), zero) / lower[i][i]
    return inverse


def box_muller(u: arb, v: arb) -> tuple[arb, arb]:
    """sqrt(-2 ln u) times cosine and sine of 2 pi v: two independent normal numbers, of independent uniform ones."""
    radius = (-2 * u.log()).sqrt()
    sine, cosine = (2 * v).sin_cos_pi()
    return radius * cosine, radius * sine


def nearest(ball: arb, exponent: int) -> int | None:
    """The whole number k for which k 2^exponent is nearest to every number in the ball; None where they do not agree."""
    return _whole((ball * arb((1, -exponent)) + arb(0.5)).floor())


def below(ball: arb, exponent: int) -> int | None:
    """The largest k with k 2^exponent at most the number, for every number in the ball; None where they do not agree."""
    return _whole((ball * arb((1, -exponent))).floor())


def _whole(ball: arb) -> int | None:
    only = ball.unique_fmpz()
    return None if only is None else int(only)


def grid_exponent(step: float) -> int:
    """e with step = 2^e; raises where step is no power of two."""
    mantissa, exponent = math.frexp(step)
    if mantissa != 0.5:
        raise ValueError(f"the step of a grid is {step!r} and must be a power of two.")
    return exponent - 1
