"""The certified eigenvalue: never above the true one, never below it by more than the tolerance, and never an error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpgram.sampling import certified
from dpgram.sampling.certified import is_above, smallest_from_below
from dpgram.sampling.reals import RealMatrix

TOLERANCE = 2.0**-20


def exactly_above(matrix, level):
    """Whether all eigenvalues are above ``level``: the pivots of elimination in fractions."""
    rows = [[Fraction(entry) - (level if i == j else 0) for j, entry in enumerate(row)] for i, row in enumerate(matrix)]
    while rows:
        first, *rest = rows
        if first[0] <= 0:
            return False
        rows = [[a - row[0] / first[0] * b for a, b in zip(row[1:], first[1:], strict=True)] for row in rest]
    return True


def check(whole, exponent=-40, tolerance=TOLERANCE):
    """Certified and true value agree, in fractions throughout."""
    found = smallest_from_below(RealMatrix.of_integers(whole, exponent), tolerance)
    matrix = [[Fraction(int(entry)) * Fraction(2) ** exponent for entry in row] for row in whole]
    assert found >= 0
    assert found == 0 or exactly_above(matrix, found - Fraction(1, 2**300))
    assert not exactly_above(matrix, found + Fraction(tolerance))
    return found


def scaled(matrix, bits=40):
    return [[int(Fraction(entry) * 2**bits) for entry in row] for row in np.asarray(matrix, dtype=object)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (2, 3), (8, 8), (40, 6)])
def test_random_tables(shape, seed):
    rows = np.random.default_rng(seed).integers(-(2**20), 2**20, size=shape).astype(object)
    check((rows.T @ rows).tolist())


@pytest.mark.parametrize("tolerance", [2.0**-20, 1.5 * 2.0**-20, 0.3, 5.0, 1e-9])
def test_every_tolerance(tolerance):
    rows = np.random.default_rng(1).integers(-(2**20), 2**20, size=(9, 4)).astype(object)
    check((rows.T @ rows).tolist(), tolerance=tolerance)


HARD = {
    "nothing": np.zeros((3, 3)),
    "one number": [[7]],
    "no rows": [[0]],
    "all the same": 5 * np.eye(4),
    "repeated and one more": np.diag([3, 3, 3, 4]),
    "a cluster": np.diag([Fraction(1) + Fraction(k, 2**39) for k in range(5)]),
    "a cluster as wide as the tolerance": np.diag([Fraction(1) + Fraction(k, 2**21) for k in range(5)]),
    "on the edge of its own levels": np.diag([Fraction(1) + Fraction(k, 2**30) for k in range(6)]),
    "smaller than the tolerance": np.diag([Fraction(1, 2**30), 1]),
    "a column twice": [[2, 2, 1], [2, 2, 1], [1, 1, 9]],
    "two blocks that touch their level": [[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 3, 2], [0, 0, 2, 3]],
    "large and small": np.diag([2**52, 1, 2**30]),
}


@pytest.mark.parametrize("case", HARD)
def test_repeated_clustered_and_vanishing_eigenvalues(case):
    check(scaled(HARD[case]))


@pytest.mark.parametrize("lift", [0, 2**18, 2**21, 2**30])
def test_a_matrix_so_large_that_floats_know_nothing_of_its_smallest_eigenvalue(lift):
    """The larger eigenvalue is near 2^51, the smaller one is lift^2 / 2^41: lost in float64, whose errors are of size one."""
    factor = np.array([[2**45, 0], [2**45 + 7, lift]], dtype=object)
    found = check((factor @ factor.T).tolist())
    assert float(found) == pytest.approx(lift**2 / 2**41, abs=TOLERANCE, rel=1e-6)


@pytest.mark.parametrize("vector", ["the largest", "failure"])
def test_a_bad_vector_from_floats_costs_time_and_nothing_else(vector, monkeypatch):
    real = np.linalg.eigh

    def bad(matrix):
        if vector == "failure":
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        values, vectors = real(matrix)
        return values[::-1], vectors[:, ::-1]

    monkeypatch.setattr(certified.np.linalg, "eigh", bad)
    for case in HARD.values():
        check(scaled(case))


def uncertain_levels(low, high, unit, count, places):
    """A table on which the first ``count`` of the levels that are tried are eigenvalues of leading blocks, the largest first.

    A block [[l + 2u, 4u], [4u, l + 8u]] has the eigenvalue l, and its pivots are roots of two: no ball tells the last one from zero."""
    u = Fraction(1, 2**10)
    matrix = np.full((2 * count, 2 * count), Fraction(0), dtype=object)
    for block, place in enumerate(reversed(range(count))):
        level = (low + high) / 2 + unit * Fraction(place, places)
        at = slice(2 * block, 2 * block + 2)
        matrix[at, at] = [[level + 2 * u, 4 * u], [4 * u, level + 8 * u]]
    return RealMatrix.of_integers(scaled(matrix, 60), -60)


def test_a_table_on_which_many_levels_are_uncertain_is_no_error(monkeypatch):
    """Sixty-four levels, as many as were once tried, are not enough for some table of 128 columns; d (d + 1)/2 + 1 are for all."""
    monkeypatch.setattr(certified, "MOST_BITS", 128)  # uncertain ones stay so at every precision: no need to try them all
    monkeypatch.setattr(certified, "BITS_PER_COLUMN", 0)
    low, unit = Fraction(1), Fraction(1, 2**24)
    high = low + 16 * unit
    places = 1 << (128 * 129 // 2).bit_length()
    matrix = uncertain_levels(low, high, unit, 64, places)
    first = (low + high) / 2
    assert [is_above(matrix, first + unit * Fraction(place, places)) for place in (0, 30, 63)] == [None, None, None]
    level, above = certified._decided_between(matrix, low, high, unit)
    assert level == first + unit * Fraction(64, places)
    assert not above


def test_uncertain_means_that_the_level_is_an_eigenvalue():
    low, unit = Fraction(1), Fraction(1, 2**24)
    matrix = uncertain_levels(low, low + 16 * unit, unit, 2, 16)
    level = low + 8 * unit
    assert is_above(matrix, level) is None
    assert is_above(matrix, level - Fraction(1, 2**200)) is True
    assert is_above(matrix, level + Fraction(1, 2**200)) is False
