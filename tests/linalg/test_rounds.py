"""One matrix from several looks: the optimum is checked by its own equation, the way back by solving forward."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.linalg.rounds import MOST_RESCALED, in_own_columns, pooled
from dpgram.linalg.symmetric import log_det_repair


def noise(rng, dim, sd):
    upper = np.triu(rng.normal(scale=sd, size=(dim, dim)), 1)
    return upper + upper.T + np.sqrt(2) * np.diag(rng.normal(scale=sd, size=dim))


def whitened_looks(seed, dim, count):
    """Looks at one matrix of condition 1e4, through maps that whiten it better and better."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    gram = (turn * np.logspace(0, -4, dim)) @ turn.T
    found = []
    for k in range(count):
        through = np.linalg.inv(np.linalg.cholesky(gram + 10 ** (-1.5 - k / 2) * np.eye(dim)))
        sd = 0.05 * rng.uniform(0.5, 2.0)
        found.append((through, through @ gram @ through.T + noise(rng, dim, sd), sd))
    return gram, found


@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 8),
    count=st.integers(2, 5),
    scales=st.lists(st.floats(-6, 6), min_size=5, max_size=5),
)
@settings(deadline=None, max_examples=50)
def test_whatever_the_looks_the_pool_is_symmetric_and_finite(seed, dim, count, scales):
    rng = np.random.default_rng(seed)
    looks = [(10**s * rng.normal(size=(dim, dim)), noise(rng, dim, 10**s), 10.0 ** rng.uniform(-3, 3)) for s in scales[:count]]
    through, found, sd = pooled(looks)
    assert np.isfinite(found).all()
    assert np.isfinite(through).all()
    assert sd > 0
    assert np.array_equal(found, found.T)
    repaired = log_det_repair(found, sd)
    assert np.linalg.eigvalsh(repaired)[0] > -1e-12 * np.linalg.norm(repaired)


def test_several_looks_are_closer_to_the_truth_than_the_last_alone():
    """Seven earlier looks of like noise: the error of the mean is well below; seeds are fixed, and the ratio is about 2."""
    apart = []
    for seed in range(5):
        gram, looks = whitened_looks(seed, 20, 8)
        white = np.linalg.inv(np.linalg.cholesky(gram))
        for some in (looks, looks[-1:]):
            through, matrix, sd = pooled(some)
            found = in_own_columns(log_det_repair(matrix, sd), through)
            apart.append(np.linalg.norm(white @ (found - gram) @ white.T))
    together, alone = np.reshape(apart, (-1, 2)).mean(axis=0)
    assert together < 0.7 * alone


@pytest.mark.parametrize(("dim", "count"), [(1, 2), (5, 3), (20, 8)])
def test_the_pool_solves_the_normal_equations_of_all_looks(dim, count):
    _, looks = whitened_looks(7, dim, count)
    through, matrix, _ = pooled(looks)
    back = np.linalg.solve(through, np.linalg.solve(through, matrix).T)
    slope, size = np.zeros((dim, dim)), 0.0
    for look, gram, sd in looks:
        h = look @ np.linalg.inv(looks[-1][0])
        slope += h.T @ (look @ back @ look.T - gram) @ h / sd**2
        size += np.linalg.norm(h.T @ gram @ h) / sd**2
    assert np.linalg.norm(slope) < 1e-8 * size


def test_the_noise_of_the_pool_is_about_even():
    """Of 400 pools of one matrix, entries off the diagonal have the sd that is said, those on it sqrt(2) times that: a mean over all
    entries is known to 1 %, and what makes the pool uneven is of that order."""
    off, on = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        gram, looks = whitened_looks(3, 8, 5)
        looks = [(through, through @ gram @ through.T + noise(rng, 8, sd), sd) for through, _, sd in looks]
        through, matrix, sd = pooled(looks)
        left = (matrix - through @ gram @ through.T) / sd
        off.append(left[np.triu_indices(8, 1)])
        on.append(np.diag(left))
    assert np.std(off) == pytest.approx(1.0, abs=0.1)
    assert np.std(on) == pytest.approx(np.sqrt(2), abs=0.15)


@given(seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 6), scales=st.lists(st.floats(-4, 4), min_size=1, max_size=5))
@settings(deadline=None, max_examples=50)
def test_a_pool_of_any_looks_is_finite(seed, dim, scales):
    rng = np.random.default_rng(seed)
    looks = [(10**s * rng.normal(size=(dim, dim)), noise(rng, dim, 10**s), 10.0 ** rng.uniform(-3, 3)) for s in scales]
    through, matrix, sd = pooled(looks)
    assert np.isfinite(through).all()
    assert np.isfinite(matrix).all()
    assert np.array_equal(matrix, matrix.T)
    assert sd == looks[-1][2]
    if len(scales) == 1:
        assert matrix is looks[0][1]


def test_the_way_back_loses_nothing_to_a_badly_conditioned_map():
    """Columns whose sizes are eight orders apart: every entry comes back to its own precision."""
    matrix = 2 * np.eye(6) + 0.5
    scale = np.logspace(0, 8, 6)
    assert np.allclose(in_own_columns(matrix, np.diag(scale)), matrix / scale[:, None] / scale, rtol=1e-12, atol=0.0)


@pytest.mark.parametrize(("rows", "factor"), [(50.0, 2.0), (1e9, MOST_RESCALED), (0.0, 1 / MOST_RESCALED)])
def test_a_known_number_of_rows_scales_the_whole(rows, factor):
    matrix = np.array([[25.0, 3.0], [3.0, 4.0]])
    assert np.allclose(in_own_columns(matrix, np.eye(2), rows=rows), factor * matrix)
