"""Balls contain the numbers they stand for: against mpmath with more digits, and against fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, arb_mat

from dpgram.sampling.reals import (
    Real,
    RealMatrix,
    Undecided,
    below,
    cholesky,
    diagonal,
    is_positive,
    lifted,
    nearest,
    precision,
)

DIGITS = 120  # of mpmath: some 400 bits, well beyond the 200 that balls are computed with
BITS = 200
DIMS = [1, 2, 5, 16, 17, 33]  # 16 is the size above which matrices are treated by halves


def number(ball):
    """The middle of a ball, as mpmath's number."""
    mantissa, exponent = (int(part) for part in ball.mid().man_exp())
    return mpmath.mpf(mantissa) * mpmath.mpf(2) ** exponent


def check(matrix, expected, *, width=2.0**-120):
    """Every ball contains what mpmath finds, and is narrow."""
    with precision(BITS), mpmath.workdps(DIGITS):
        balls = matrix.at(BITS)
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                ball = balls[i, j]
                radius = number(ball.rad())
                assert abs(number(ball) - expected[i, j]) <= radius + mpmath.mpf(10) ** (20 - DIGITS)
                assert radius < width * (1 + abs(expected[i, j]))


def definite(dim, seed=0):
    """A positive definite matrix of whole numbers over 2^40, of condition 10^6 or so."""
    rows = np.random.default_rng(seed).integers(-(2**20), 2**20, size=(dim + 3, dim))
    return RealMatrix.of_integers((rows.T @ rows).tolist(), -40), mpmath.matrix((rows.T @ rows).tolist()) / 2**40


@pytest.mark.parametrize("dim", DIMS)
def test_cholesky_factors_and_inverses_contain_the_true_ones(dim):
    matrix, true = definite(dim)
    with mpmath.workdps(DIGITS):
        factor = mpmath.cholesky(true)
        inverse = mpmath.inverse(true)
        check(matrix.cholesky(), factor)
        check(matrix.inverse(), inverse)
        check(matrix.cholesky().inverse_of_lower(), mpmath.inverse(factor))


@pytest.mark.parametrize("dim", [1, 2, 5, 17])
def test_the_formulas_of_the_mechanisms_contain_the_true_values(dim):
    matrix, true = definite(dim)
    floats = np.random.default_rng(1).normal(size=(dim, dim))
    with mpmath.workdps(DIGITS):
        other, eye = mpmath.matrix(floats.tolist()), mpmath.eye(dim)
        check(matrix + floats, true + other)
        check(floats + matrix, true + other)
        check(matrix - floats, true - other)
        check(0.1 * matrix, mpmath.mpf(0.1) * true)
        check(matrix / 0.3, true / mpmath.mpf(0.3))
        check(matrix @ floats, true * other)
        check(RealMatrix.of_floats(floats).mT @ matrix, other.T * true)
        masked = np.tril(np.ones((dim, dim)), -1) * RealMatrix.of_floats(floats)
        check(masked, mpmath.matrix(np.tril(floats, -1).tolist()))
        roots = diagonal(Real(lambda bits, k=k: arb(k + 2).sqrt()) for k in range(dim))
        check(roots, mpmath.diag([mpmath.sqrt(k + 2) for k in range(dim)]))
        factor = mpmath.cholesky(true + mpmath.mpf(0.7) * eye) * other
        sketch = (matrix + 0.7 * np.eye(dim)).cholesky() @ floats
        check(sketch @ sketch.mT / 3.5, factor * factor.T / mpmath.mpf(3.5))


def test_a_matrix_that_is_not_definite_is_told_from_one_that_may_be():
    with precision(64), pytest.raises(Undecided) as surely_not:
        cholesky(arb_mat([[1, 2], [2, 1]]).tolist())
    assert surely_not.value.not_definite
    third = arb(2).sqrt() ** 2 / 2  # one, but no ball says so
    with precision(64), pytest.raises(Undecided) as undecided:
        cholesky([[arb(1), third], [third, arb(1)]])
    assert not undecided.value.not_definite
    with precision(64), pytest.raises(Undecided) as no_number:
        cholesky([[arb("nan")]])
    assert not no_number.value.not_definite


@pytest.mark.parametrize("exponent", [-30, -1, 0, 7])
@pytest.mark.parametrize("bits", [8, 53, 400])
def test_rounding_of_exactly_known_numbers_is_that_of_fractions(exponent, bits):
    rng = np.random.default_rng(bits)
    step = Fraction(2) ** exponent
    for _ in range(300):
        whole, place = int(rng.integers(-(2**62), 2**62)), int(rng.integers(-100, 3))
        value = Fraction(whole) * Fraction(2) ** place
        ball = arb((whole, place))
        with precision(bits):
            up, down = nearest(ball, exponent), below(ball, exponent)
        assert up in (None, math.floor(value / step + Fraction(1, 2)))
        assert down in (None, math.floor(value / step))
        assert bits < 400 or None not in (up, down)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("whole", [0, 1, -1, 12345, -(2**70)])
def test_a_ball_that_touches_a_half_is_undecided_and_one_that_does_not_is_decided(side, whole):
    middle = Fraction(2 * whole + 1, 2)
    with precision(500):
        beside = arb((2 * whole + 1, -1)) + side * arb((3, -202))  # 3 2^-202 from the half step
        narrow, wide = arb(0, arb((1, -202))), arb(0, arb((1, -200)))
        assert nearest(beside + narrow, 0) == math.floor(middle + side * Fraction(3, 2**202) + Fraction(1, 2))
        assert nearest(beside + wide, 0) is None
        assert below(beside + wide, 0) == whole  # a half is no edge for rounding down
        assert below(beside - arb(0.5) + wide, 0) is None


def test_what_is_no_number_is_undecided():
    for ball in (arb("nan"), arb("inf"), arb(0, arb("inf")), arb(0) / arb(0), arb(-1).log()):
        assert nearest(ball, 0) is None
        assert below(ball, 0) is None
    with pytest.raises(ArithmeticError, match="undecided"):
        is_positive(lambda bits: arb("nan"))
    with pytest.raises(ArithmeticError, match="undecided"):
        is_positive(lambda bits: arb(0))


@pytest.mark.parametrize("distance", [100, 1000, 30000])
def test_a_comparison_is_decided_however_close(distance):
    assert is_positive(lambda bits: arb(2).sqrt() ** 2 - 2 + arb((1, -distance)), 8)
    assert not is_positive(lambda bits: arb(2).sqrt() ** 2 - 2 - arb((1, -distance)), 8)


def test_a_number_plus_a_fraction_is_their_sum():
    with precision(200):
        moved = lifted(Real(lambda bits: arb(1) / 3), Fraction(1, 7)).at(200)
        assert moved.contains(arb(10) / 21) or abs(moved - arb(10) / 21).upper() < arb((1, -190))


def test_matrices_and_numbers_print_nothing():
    assert "<private>" in repr(RealMatrix.of_floats(np.array([[3.5]])))
    assert "3.5" not in repr(RealMatrix.of_floats(np.array([[3.5]])))
    assert "<private>" in repr(Real(lambda bits: arb(3.5)))
