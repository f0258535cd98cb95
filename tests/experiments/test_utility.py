"""The utility theorems hold in simulation: errors stay below the bound, and the bound is not vacuous."""

import math

import numpy as np
import pytest

from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.mechanisms.gaussian_sketch import draw_sketch
from dpgram.mechanisms.wishart_noise import draw_noise
from dpgram.sampling.seeded import SeededSource
from experiments.sheffet2015.utility import gaussian_noise_error, sketch_error, wishart_noise_error

P, FAILURE, DRAWS = 6, 0.1, 400


def table(seed=0, rows=20_000):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, P)) @ np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(range(P), range(P)))).T
    y = x @ rng.uniform(-1, 1, P) + 0.5 * rng.normal(size=rows)
    z = np.column_stack([x, y])
    return z.T @ z


GRAM = table()
XX, XY = GRAM[:P, :P], GRAM[:P, P]
BETA = np.linalg.solve(XX, XY)
SMALLEST = float(np.linalg.eigvalsh(XX)[0])


def errors(draw, target=BETA):
    """Distances of DRAWS private fits from ``target``."""
    rng = SeededSource(4)
    fits = [np.linalg.solve(m[:P, :P], m[:P, P]) for m in (draw(rng) for _ in range(DRAWS))]
    return np.linalg.norm(np.array(fits) - target, axis=1)


def check(found, bound):
    assert math.isfinite(bound)
    assert np.mean(found > bound) <= FAILURE
    assert bound < 20 * np.median(found)  # not vacuous


@pytest.mark.parametrize("sd", [10.0, 100.0, 400.0])
def test_gaussian_noise(sd):
    bound = gaussian_noise_error(
        features=P, sd_off_diagonal=sd, smallest=SMALLEST, size=float(np.linalg.norm(BETA)), failure=FAILURE
    )
    check(errors(lambda rng: add_symmetric_noise(GRAM, sd, math.sqrt(2) * sd, rng)), bound)


@pytest.mark.parametrize(("scale", "k"), [(1.0, 30), (0.5, 1000), (10.0, 100)])
def test_wishart_noise(scale, k):
    bound = wishart_noise_error(
        features=P, scale=scale, degrees_of_freedom=k, smallest=SMALLEST, size=float(np.linalg.norm(BETA)), failure=FAILURE
    )
    check(errors(lambda rng: GRAM + draw_noise(P + 1, scale, k, rng)), bound)


@pytest.mark.parametrize(("w_squared", "r"), [(100.0, 200), (2000.0, 1000)])
def test_sketch(w_squared, r):
    ridge = np.linalg.solve(XX + w_squared * np.eye(P), XY)
    weights = np.append(ridge, -1.0)
    residual = float(weights @ (GRAM + w_squared * np.eye(P + 1)) @ weights)
    bound = sketch_error(features=P, sketch_rows=r, w_squared=w_squared, smallest=SMALLEST, residual=residual, failure=FAILURE)
    check(errors(lambda rng: draw_sketch(GRAM, w_squared, r, rng), target=ridge), bound)


def test_bounds_are_infinite_where_nothing_can_be_said():
    assert gaussian_noise_error(features=5, sd_off_diagonal=10.0, smallest=20.0, size=1.0, failure=0.1) == math.inf
    assert sketch_error(features=50, sketch_rows=60, w_squared=1.0, smallest=1.0, residual=1.0, failure=0.1) == math.inf
