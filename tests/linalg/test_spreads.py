"""One shape of noise is enough for a sum of several, and is theirs where they are alike."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.linalg.spreads import one_shape, weights


def made_up(dim, many, seed):
    rng = np.random.default_rng([dim, many, seed])
    maps = [rng.normal(size=(dim, dim)) * np.exp(rng.normal(size=dim)) for _ in range(many)]
    return maps, np.exp(rng.normal(size=many)).tolist()


def relative(maps, sds, back):
    """Eigenvalues of the true covariance of the noise in units of the one that is said; at most one where it is enough."""
    there = [np.linalg.solve(back, each) for each in maps]
    return np.linalg.eigvalsh(sum(sd**2 * np.kron(each @ each.T, each @ each.T) for each, sd in zip(there, sds, strict=True)))


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("many", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_the_noise_is_never_larger_than_is_said(dim, many, seed):
    maps, sds = made_up(dim, many, seed)
    shape = one_shape(maps, sds)
    assert relative(maps, sds, shape.turn.T).max() <= 1 + 1e-6
    assert relative(maps, sds, 0.99 * shape.turn.T).max() > 1  # nor is it said to be larger than it is, in some direction


@pytest.mark.parametrize("many", [1, 2, 5])
def test_it_is_exact_where_all_have_one_shape(many):
    ((only,), _), (_, sds) = made_up(3, 1, 0), made_up(3, many, 0)
    shape = one_shape([only] * many, sds)
    assert relative([only] * many, sds, shape.turn.T) == pytest.approx(np.ones(9), abs=1e-6)
    assert shape.largest([1.0] * many) == pytest.approx(1.0)
    assert shape.largest([0.5] * many) == pytest.approx(0.5)


def test_it_turns_with_the_units_of_columns():
    maps, sds = made_up(3, 2, 1)
    units = np.diag([1.0, 100.0, 1e-3])
    here, there = one_shape(maps, sds), one_shape([units @ each for each in maps], sds)
    assert here.turn.T @ here.turn == pytest.approx(np.linalg.solve(units, np.linalg.solve(units, there.turn.T @ there.turn).T))
    assert np.linalg.solve(here.turn.T, maps[0]) == pytest.approx(here.ways[0])
    assert here.through @ here.turn.T == pytest.approx(np.eye(3), abs=1e-9)


def test_the_ratio_of_other_noise_is_an_upper_bound():
    maps, sds = made_up(3, 3, 2)
    shape, ratios = one_shape(maps, sds), [0.3, 1.0, 0.7]
    largest = shape.largest(ratios)
    smaller = [ratio * sd for ratio, sd in zip(ratios, sds, strict=True)]
    assert largest <= 1 + 1e-9
    assert relative(maps, smaller, np.sqrt(largest) * shape.turn.T).max() <= 1 + 1e-6


def test_weights_are_inverse_to_variances_where_shapes_agree():
    (only,), _ = made_up(4, 1, 3)
    assert weights([only] * 3, [1.0, 2.0, 4.0]) == pytest.approx(np.array([16, 4, 1]) / 21)


def test_a_look_in_whose_coordinates_the_matrix_is_white_decides():
    """It is far better in a direction of little variance, though worse by its volume: the other would drown that direction."""
    narrow, wide = np.diag([100.0, 0.1]), np.eye(2)
    assert weights([wide, narrow], [1.0, 1.0], [False, True])[1] > 0.99
    assert weights([wide, narrow], [1.0, 1.0])[1] < 0.01
