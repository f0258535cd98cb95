"""The smallest statistic within subspaces: derivatives, agreement with a dense search, and no memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, null_space
from scipy.optimize import minimize

import dpgram
from dpgram.evidence.evidence import Evidence
from dpgram.inference.anderson_rubin import Test
from dpgram.regression.formula import instrumented
from dpgram.regression.instruments import conditions, estimate
from tests.instrumented import CARD, card_schema, like_card, made_up, schema_of
from tests.releases import NOISES, SILENT, seen_through

Test.__test__ = False  # not one of pytest's
TWO = "y ~ w + [x0 + x1 ~ z0 + z1 + z2]"


def prepared(release, formula):
    evidence = Evidence.of(release)
    seen = conditions(evidence, instrumented(evidence.schema, formula))
    return Test(seen, estimate(seen))


def card(epsilon, seed, *, rows=30_000, mechanism="gaussian-noise"):
    options = {"epsilon": epsilon, "delta": 1e-6, "mechanism": mechanism, "insecure_seed": seed}
    return prepared(dpgram.release(like_card(rows), card_schema(), **options), CARD)


def made(noise, formula, **choices):
    table = made_up(**choices)
    return prepared(seen_through(noise, table, schema_of(table), seed=1), formula)


AWKWARD = {
    **{f"nearly collinear, epsilon {epsilon}, seed {seed}": (card, epsilon, seed) for epsilon in (1, 2) for seed in range(4)},
    "nearly collinear, few rows": (lambda: card(2, 0, rows=3000),),
    "whitened": (lambda: card(0.3, 1, mechanism="whitened-noise"),),
    "two endogenous, one weak": (lambda: made(NOISES["gaussian"], TWO, rows=3000, endogenous=2, strength=0.3),),
    "two endogenous, noise that multiplies": (lambda: made(NOISES["wishart"], TWO, rows=3000, endogenous=2, strength=0.3),),
    "no noise": (lambda: made(SILENT["gaussian"], TWO, rows=3000, endogenous=2, strength=0.3),),
}


def searched(test, restrictions, seed):
    """The smallest T over v with ``restrictions @ v = 0`` by many searches of scipy's, from random points."""
    rng, within = np.random.default_rng(seed), null_space(restrictions)
    scale = test.statistic.pencil(test.statistic.diagonal(test.of.errors(test.at.b)[None])[0])
    values, axes = np.linalg.eigh(within.T @ sum(scale) @ within)
    within = within @ axes / np.sqrt(np.maximum(values, 1e-9 * values[-1]))

    def at(w):
        near = test.statistic.look((within @ w)[None])
        return float(near.value[0]), 2 * within.T @ near.gradient[0]

    starts = rng.standard_normal((12, within.shape[1]))
    return min(minimize(at, start / np.linalg.norm(start), jac=True, method="BFGS").fun for start in starts)


@pytest.mark.parametrize("name", AWKWARD)
def test_no_dense_search_finds_less(name):
    """At random values of every coefficient, far out too. A value that the search accepts is never rejected."""
    make, *given = AWKWARD[name]
    test, rng = make(*given), np.random.default_rng(7)
    of = test.of
    for place in range(of.count):
        row, se = of.to_own[place], np.sqrt(of.to_own[place] @ test.at.covariance @ of.to_own[place])
        value = row @ test.at.b + se * np.tan(rng.uniform(-1.5, 1.5))
        found = test.each(np.append(row, value)[None])[0]
        least = searched(test, np.append(row, value)[None], place)
        assert found <= least + 1e-4 * (1 + least), of.asked.design.names[place]


def test_an_answer_does_not_depend_on_those_before():
    """Alone, in a stack, and in another order."""
    test = card(1, 1)
    row = test.of.to_own[2]
    values = row @ test.at.b + np.linspace(-3, 3, 25) * np.sqrt(row @ test.at.covariance @ row)
    restrictions = np.column_stack([np.broadcast_to(row, (25, len(row))), values])
    together, backwards = test.each(restrictions), test.each(restrictions[::-1])[::-1]
    alone = [test.each(one[None])[0] for one in restrictions]
    assert together == pytest.approx(alone, rel=1e-8, abs=1e-8)
    assert together == pytest.approx(backwards, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("noise", ["gaussian", "shifted", "wishart"])
def test_derivatives_are_those_of_the_statistic(noise):
    statistic = made(NOISES[noise], TWO, rows=3000, endogenous=2, strength=0.3).statistic
    statistic = statistic.turned(np.random.default_rng(1).standard_normal((5, 5)))
    v = np.random.default_rng(0).standard_normal((4, 5))
    near, step = statistic.look(v), 1e-5 * np.eye(5)
    for k, point in enumerate(v):
        slope = [(statistic.at((point + one)[None]) - statistic.at((point - one)[None]))[0] / 2e-5 for one in step]
        assert 2 * near.gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-4 * np.max(np.abs(slope)))
        bend = [
            (statistic.look((point + one)[None]).gradient - statistic.look((point - one)[None]).gradient)[0] / 2e-5
            for one in step
        ]
        assert near.curvature[k] == pytest.approx(np.array(bend), rel=1e-4, abs=1e-4 * np.max(np.abs(bend)))


def test_without_noise_it_is_an_eigenvalue():
    """In a subspace T is a ratio of two quadratic forms. Some combinations have no error at all, and T of these is all but infinite."""
    test = made(SILENT["gaussian"], "y ~ w + [x0 ~ z0 + z1 + z2]", rows=8000, strength=0.4, direct=0.03, seed=1)
    row, inner = test.of.to_own[-1], test.of.cross.T @ (test.of.cross / test.of.own[:, None])
    values = row @ test.at.b + np.sqrt(row @ test.at.covariance @ row) * np.tan(np.linspace(-1.5, 1.5, 101))
    restrictions = np.column_stack([np.broadcast_to(row, (101, len(row))), values])
    for found, restriction in zip(test.each(restrictions), restrictions, strict=True):
        within = null_space(restriction[None])
        forms = within.T @ test.statistic.errors @ within, within.T @ inner @ within
        assert found == pytest.approx(1 / eigh(*forms, eigvals_only=True)[-1], rel=1e-5)


def test_what_is_found_obeys_the_restrictions():
    test = card(2, 2)
    restrictions = np.random.default_rng(0).standard_normal((3, 2, test.of.count + 1))
    found, v = test._subspaces.least(restrictions)
    assert np.max(np.abs(restrictions @ v[:, :, None])) < 1e-9 * np.max(np.abs(v))
    assert test.statistic.at(v) == pytest.approx(found, rel=1e-6)
