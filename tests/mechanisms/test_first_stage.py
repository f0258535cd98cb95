"""The first stage in float64: rounding does not lift the smallest eigenvalue above the true one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpgram.mechanisms import first_stage
from dpgram.mechanisms.first_stage import allowed_degrees, plan_stages, release_smallest_eigenvalue
from dpgram.mechanisms.gaussian_sketch import printed_floor
from dpgram.sampling.base import exactly
from dpgram.sampling.certified import smallest_from_below
from dpgram.sampling.seeded import SeededSource
from tests.mechanisms.test_contract import task


def test_the_eigenvalue_in_floats_is_not_above_the_true_one(monkeypatch):
    """Without noise and offset, on matrices whose smallest eigenvalue is far below the largest. As computed it is above in many of them."""
    asked, rng = task("gaussian-sketch-adaptive", dim=6), np.random.default_rng(0)
    stages = plan_stages(asked, 12.0)
    monkeypatch.setattr(first_stage, "truncated_laplace", lambda scale, offset, source: stages.offset)
    above = 0
    for _ in range(40):
        turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
        gram = (turn * np.array([1e3, 1e4, 1e5, 1e6, 1e7, 1e8])) @ turn.T
        gram = (gram + gram.T) / 2
        slack = 1e-12
        true = smallest_from_below(exactly(gram), slack) + Fraction(slack)
        assert Fraction(release_smallest_eigenvalue(gram, stages, SeededSource(0))) <= true + Fraction(slack)
        above += Fraction(float(np.linalg.eigvalsh(gram)[0])) > true
    assert above > 5


def test_printed_degrees_are_the_most_that_the_printed_theorem_allows():
    """The largest whole number whose ridge, as printed, is at most what the first stage told; never less than without one."""
    asked = task("gaussian-sketch-adaptive", dim=3, bound=2.0, calibration="paper")
    stages = plan_stages(asked, 6.0)
    assert allowed_degrees(asked, stages, 0.1) == 6.0
    for eigenvalue in (4 * stages.base_floor, 2e3, 1e5, 1e8):
        degrees = allowed_degrees(asked, stages, eigenvalue)
        assert degrees.is_integer()
        floors = [printed_floor(r, stages.second.epsilon, stages.second.delta) for r in (degrees, degrees + 1)]
        assert floors[0] <= eigenvalue / 4 * (1 + 1e-9)
        assert eigenvalue / 4 * (1 - 1e-9) < floors[1]


@pytest.mark.parametrize("name", ["gaussian-sketch-adaptive", "inverse-wishart-adaptive"])
def test_only_the_gauss_first_stage_knows_a_mixture(name):
    assert np.isnan(plan_stages(task(name), 12.0).mixture).all()
    mu2, beta = plan_stages(task(name, first_stage="gauss"), 12.0).mixture
    assert mu2 > 0
    assert 0 < beta < 1
