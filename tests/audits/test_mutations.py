"""Known mistakes, planted into copies of the mechanisms: an audit must find each one, and must not accuse what is right.

All draws are seeded. A right mechanism is accused with probability at most 1e-6 per audit (``CONFIDENCE``)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpgram.accounting.compose import GaussianCost, composed_delta
from dpgram.audits.claims import Claim
from dpgram.audits.draws import releases
from dpgram.audits.laws.registry import law_of
from dpgram.audits.neighbours import Pair
from dpgram.audits.run import audit, judge
from dpgram.mechanisms import first_stage, gaussian_sketch, registry, wishart_noise
from dpgram.mechanisms.conversation import GramQuestion, Outcome
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.mechanisms.inverse_wishart import draw_posterior, multiple_of
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.rows.clip import GRID, clip
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import InverseWishartSample, SymmetricGaussian, WishartSample

CONFIDENCE = 1 - 1e-6
NEEDED = {
    "noisy-inverse": {"rho": 3.0},
    "inverse-wishart": {"degrees_of_freedom": 20.0},
    "whitened-noise": {"table_rows": 2000.0},
}


def task_for(name, neighbours=Neighbours.REPLACE, dim=2):
    return registry.task(MECHANISMS[name], Budget(1.0, 0.01), neighbours, dim, 1.0, "exact", NEEDED.get(name))


def source(seed=0):
    return SeededSource(seed)


# Copies of the mechanisms' last steps, each with one mistake.


def smaller_sensitivity(task, rng):
    """B^2 where sqrt(2) B^2 is needed: the sensitivity of adding a row, for replacing one."""
    return (yield from MECHANISMS["gaussian-noise"].start(replace(task, neighbours=Neighbours.ADD_REMOVE), rng))


def gaussian(change):
    """Gaussian noise whose two standard deviations were changed."""

    def start(task, rng):
        found = MECHANISMS["gaussian-noise"].calibrate(task)
        off, on = change(found["sd_off_diagonal"], found["sd_diagonal"])
        answer = yield GramQuestion(task.row_bound)
        return Outcome(add_symmetric_noise(answer.gram, off, on, rng), SymmetricGaussian(off, on), found)

    return start


def averaged_with_its_transpose(task, rng):
    """A full square of noise, made symmetric by averaging: half of the variance is lost off the diagonal."""
    found = MECHANISMS["gaussian-noise"].calibrate(task)
    answer = yield GramQuestion(task.row_bound)
    square = rng.normal(found["sd_off_diagonal"], answer.gram.shape)
    noise = (square + square.T) / 2
    noise[np.diag_indices(task.dim)] = found["sd_diagonal"] * rng.normal(1.0, (task.dim,))
    return Outcome(answer.gram + noise, SymmetricGaussian(found["sd_off_diagonal"], found["sd_diagonal"]), found)


def last_column_without_noise(task, rng):
    found = MECHANISMS["gaussian-noise"].calibrate(task)
    off, on = found["sd_off_diagonal"], found["sd_diagonal"]
    answer = yield GramQuestion(task.row_bound)
    released = add_symmetric_noise(answer.gram, off, on, rng)
    released[-1, -1] = answer.gram[-1, -1]
    return Outcome(released, SymmetricGaussian(off, on), found)


def d_plus_one_degrees(task, rng):
    """Wishart noise with d + 1 degrees of freedom, as peers shipped it."""
    found = MECHANISMS["wishart-noise"].calibrate(task)
    answer = yield GramQuestion(task.row_bound)
    noisy = answer.gram + wishart_noise.draw_noise(task.dim, found["scale"], task.dim + 1, rng)
    return Outcome(noisy, SymmetricGaussian(found["scale"], found["scale"]), {**found, "shift_removed": 0.0})


def ridge_not_squared(task, rng):
    """w where w^2 is needed."""
    found = MECHANISMS["gaussian-sketch"].calibrate(task)
    answer = yield GramQuestion(task.row_bound)
    ridge, r = math.sqrt(found["w_squared"]), found["sketch_rows"]
    drawn = gaussian_sketch.draw_sketch(answer.gram, ridge, r, rng)
    return Outcome(drawn, WishartSample(degrees_of_freedom=r, shift=ridge, floor=ridge), found)


def four_times_the_sketch(task, rng):
    """Calibrated for r rows of the sketch, drawn with four times as many."""
    found = MECHANISMS["gaussian-sketch"].calibrate(task)
    answer = yield GramQuestion(task.row_bound)
    ridge, r = found["w_squared"], found["sketch_rows"]
    drawn = gaussian_sketch.draw_sketch(answer.gram, ridge, 4 * r, rng)
    return Outcome(drawn, WishartSample(degrees_of_freedom=r, shift=ridge, floor=ridge), found)


def no_prior(task, rng):
    """A posterior draw whose prior is a tenth of the calibrated one."""
    found = MECHANISMS["inverse-wishart"].calibrate(task)
    answer = yield GramQuestion(task.row_bound)
    psi, nu = found["psi"] / 10, found["degrees_of_freedom"]
    multiple = multiple_of(nu, task.dim)
    drawn = multiple * draw_posterior(answer.gram, psi, nu, rng)
    return Outcome(drawn, InverseWishartSample(nu, shift=psi, floor=psi, multiple=multiple), found)


def scale_upside_down(task, rng):
    """Laplace noise of scale epsilon B^2 where B^2/epsilon is needed, in the first stage."""
    stages = first_stage.plan_stages(task, gaussian_sketch.sketch_rows(task))
    answer = yield GramQuestion(task.row_bound)
    upside_down = replace(stages, scale=stages.parameters["first_stage_epsilon"] * task.row_bound**2)
    s = first_stage.release_smallest_eigenvalue(answer.gram, upside_down, rng)
    ridge, r = first_stage.second_stage(task, stages, s)
    drawn = gaussian_sketch.draw_sketch(answer.gram, ridge, r, rng)
    found = {**stages.parameters, "first_stage_value": s, "w_squared": ridge, "sketch_rows": r}
    return Outcome(drawn, WishartSample(degrees_of_freedom=r, shift=ridge, floor=ridge + s), found)


ALONG, TURNED = "orthogonal rows", "the same, turned"

MUTANTS = {  # mistake -> mechanism, mutant, the pair that shows it, draws
    "B^2 for sqrt(2) B^2": ("gaussian-noise", smaller_sensitivity, ALONG, 10_000),
    "noise halved": ("gaussian-noise", gaussian(lambda off, on: (off / 2, on / 2)), ALONG, 2000),
    "a standard deviation of mu for sensitivity/mu": (
        "gaussian-noise",
        gaussian(lambda off, on: (1 / off, 1 / on)),
        ALONG,
        1000,
    ),
    "the same sd on the diagonal": ("gaussian-noise", gaussian(lambda off, on: (off, off)), ALONG, 10_000),
    "no noise on the diagonal": ("gaussian-noise", gaussian(lambda off, on: (off, 0.0)), ALONG, 1000),
    "averaged with its transpose": ("gaussian-noise", averaged_with_its_transpose, TURNED, 10_000),
    "the last column forgotten": ("gaussian-noise", last_column_without_noise, ALONG, 1000),
    "d + 1 degrees of freedom": ("wishart-noise", d_plus_one_degrees, ALONG, 1500),
    "w for w^2": ("gaussian-sketch", ridge_not_squared, ALONG, 6000),
    "more rows of the sketch than calibrated for": ("gaussian-sketch", four_times_the_sketch, ALONG, 2000),
    "a tenth of the prior": ("inverse-wishart", no_prior, ALONG, 1500),
    "the scale upside down": ("gaussian-sketch-adaptive", scale_upside_down, ALONG, 2000),
}


@pytest.mark.parametrize("mistake", MUTANTS)
def test_an_audit_finds_the_mistake(mistake):
    name, start, pair, draws = MUTANTS[mistake]
    mutant = replace(MECHANISMS[name], start=start, batched=False)
    (result,) = audit(mutant, task_for(name), source(1), draws=draws, confidence=CONFIDENCE, only=[pair], nearby=False)
    assert result.strength > 1 or result.counted_epsilon > 1, (
        result.counted_epsilon,
        result.strength,
    )  # by telling tables apart alone
    assert result.broken


@pytest.mark.parametrize("name", sorted(MECHANISMS))
@pytest.mark.parametrize("neighbours", Neighbours)
def test_an_audit_does_not_accuse_what_is_right(name, neighbours):
    only = [ALONG, "one row more"]
    quick = "adaptive" not in name  # these have their further looks in the slow test
    others = (source(3), ExactSource(4)) if quick else ()
    (result,) = audit(
        MECHANISMS[name],
        task_for(name, neighbours),
        source(2),
        draws=1000,
        confidence=CONFIDENCE,
        only=only,
        others=others,
        nearby=quick,
    )
    assert not result.broken, (result.pair, result.faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MECHANISMS))
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("dim", [2, 3])
def test_more_draws_accuse_nobody_either(name, neighbours, dim):
    """On every worst pair and on random ones."""
    for result in audit(
        MECHANISMS[name],
        task_for(name, neighbours, dim),
        source(3),
        draws=5_000,
        confidence=CONFIDENCE,
        searches=2,
        others=(source(4), ExactSource(5)),
    ):
        assert not result.broken, (result.pair, result.faults)


# Mistakes outside a mechanism: its loss is drawn from releases that something else spoiled.


def two_releases(fresh, swapped, gram, draws, seed):
    """Losses of pairs of releases: of the table, and of the same table with its two columns exchanged."""
    mechanism, task = MECHANISMS["gaussian-noise"], task_for("gaussian-noise")
    one = releases(mechanism, task, gram, SeededSource(seed), draws).gram
    again = SeededSource(seed + 1000 if fresh else seed)
    two = releases(mechanism, task, gram[::-1, ::-1], again, draws).gram
    loss = np.einsum("nij,ij->n", one - two, swapped)
    return loss[:, None]


@pytest.mark.parametrize("fresh", [True, False])
def test_noise_drawn_once_for_two_releases(fresh):
    mu = MECHANISMS["gaussian-noise"].calibrate(task_for("gaussian-noise"))["mu"]
    claim = Claim(2.0, 0.02, lambda epsilon, strength: composed_delta(epsilon, [GaussianCost(strength * mu)] * 2))
    towards = np.diag([1.0, -1.0])
    first, second = (
        two_releases(fresh, towards, np.diag(gram), 1500, seed) for gram, seed in (([1.0, 0.0], 3), ([0.0, 1.0], 5))
    )
    assert judge("gaussian-noise", "twice", first, second, claim, CONFIDENCE).broken is not fresh


def gram_of(row, clipped):
    if clipped:
        row = clip(row[:, None], 1.0).points[:, 0] / GRID
    return np.outer(row, row)


@pytest.mark.parametrize("clipped", [True, False])
def test_a_forgotten_clip(clipped):
    """Rows with both columns at their bounds: their norm is sqrt(2), where 1 was declared."""
    mechanism, task = MECHANISMS["gaussian-noise"], task_for("gaussian-noise")
    first, second = (gram_of(np.array(row), clipped) for row in ([1.0, 1.0], [1.0, -1.0]))
    law, pair = law_of(mechanism.name)(task, mechanism.calibrate(task)), Pair("long rows", first, second)
    drawn = [
        law.loss(releases(mechanism, task, gram, source(seed), 3000), pair)[:, None] for seed, gram in ((1, first), (2, second))
    ]
    result = judge(mechanism.name, "long rows", *drawn, law.claim(), CONFIDENCE)
    assert result.broken is not clipped


def noise_size(many):
    return np.abs(many.gram[:, 0, 1])


@pytest.mark.parametrize("declared", [True, False])
def test_bounds_read_from_the_data(declared):
    """The row bound is the longest row's norm: the size of the noise tells which row is there."""
    mechanism, task = MECHANISMS["gaussian-noise"], task_for("gaussian-noise")
    claim = law_of(mechanism.name)(task, mechanism.calibrate(task)).claim()
    drawn = []
    for seed, norm in ((1, 1.0), (2, 0.5)):
        gram = np.diag([norm**2, 0.0])
        used = task if declared else replace(task, row_bound=norm)
        drawn.append(noise_size(releases(mechanism, used, gram, source(seed), 3000))[:, None])
    assert judge(mechanism.name, "a short row", *drawn, claim, CONFIDENCE).broken is not declared
