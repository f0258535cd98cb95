"""The parameters of each mechanism: printed formulas, exact ones, and what each option does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgram.accounting.additive_wishart import additive_delta
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.mechanisms.noisy_inverse import inverse_sensitivity
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from tests.accounting.inverses import additive_epsilon
from tests.mechanisms.test_contract import task

E9 = math.exp(-9)
PAPER = {"epsilon": 0.1, "delta": E9, "dim": 22, "bound": math.sqrt(55)}  # the setting of the paper's experiments
B2 = 55.0


def calibrate(name, **changes):
    return MECHANISMS[name].calibrate(task(name, **changes))


def test_printed_formulas_are_those_of_the_paper():
    l4, l8 = math.log(4 / E9), math.log(8 / E9)
    sketch = calibrate("gaussian-sketch", **PAPER, calibration="paper", sketch_rows=44.0)
    assert sketch["w_squared"] == pytest.approx(4 * B2 * (math.sqrt(2 * 44 * l4) + l4) / 0.1)
    posterior = calibrate("inverse-wishart", **PAPER, calibration="paper", degrees_of_freedom=1000.0)
    assert posterior["psi"] == pytest.approx(2 * B2 / 0.1 * (2 * math.sqrt(2 * 1000 * l4) + 2 * l4))
    noise = calibrate("wishart-noise", **PAPER, calibration="paper")
    assert (noise["scale"], noise["degrees_of_freedom"]) == (pytest.approx(B2), math.floor(22 + 14 / 0.01 * 2 * l4))
    for name in ("gaussian-sketch-adaptive", "inverse-wishart-adaptive"):
        adaptive = calibrate(name, **PAPER, calibration="paper")
        assert adaptive["base_w_squared"] == pytest.approx(8 * B2 / 0.1 * (math.sqrt(2 * 44 * l8) + l8))
        assert adaptive["first_stage_scale"] == pytest.approx(2 * B2 / 0.1)
        assert adaptive["first_stage_offset"] == pytest.approx(2 * B2 * math.log(2 / E9) / 0.1)
        assert adaptive["delta_at_epsilon"] == pytest.approx(E9 / 4, rel=1e-4)
    gauss = calibrate("gaussian-noise", **PAPER, calibration="paper")
    assert gauss["sd_off_diagonal"] == pytest.approx(math.sqrt(2 * math.log(2 / E9)) * B2 / 0.1)
    inverse = calibrate("noisy-inverse", epsilon=0.5, delta=1e-6, bound=1.0, calibration="paper", rho=3.0)
    assert inverse["sd_off_diagonal"] == pytest.approx(math.sqrt(8 * math.log(2e6)) / (3 * 0.5))


def test_exact_constants_cut_the_noise_as_far_as_promised():
    def ratio(name, key, **options):
        return calibrate(name, **PAPER, calibration="paper", **options)[key] / calibrate(name, **PAPER, **options)[key]

    assert ratio("gaussian-sketch", "w_squared", sketch_rows=44.0) == pytest.approx(10.02, abs=0.01)
    assert ratio("gaussian-noise", "sd_off_diagonal") == pytest.approx(1.84, abs=0.01)
    k = calibrate("wishart-noise", **PAPER, scale=B2)["degrees_of_freedom"]
    assert calibrate("wishart-noise", **PAPER, calibration="paper")["degrees_of_freedom"] / k == pytest.approx(47, abs=0.5)


@pytest.mark.parametrize(
    ("name", "changes", "condition"),
    [
        ("gaussian-sketch", {"delta": 0.4}, "delta < 1/e"),
        ("gaussian-sketch", {"sketch_rows": 5.0}, "sketch rows above d"),
        ("gaussian-sketch", {"sketch_rows": 8.5}, "whole number of sketch rows"),
        ("wishart-noise", {"epsilon": 1.0}, "epsilon < 1"),
        ("wishart-noise", {"epsilon": 0.5, "delta": 0.4}, "delta < 1/e"),
        ("inverse-wishart", {"degrees_of_freedom": 7.5}, "whole number of degrees of freedom"),
        ("inverse-wishart", {"delta": 0.4}, "delta < 1/e"),
        ("gaussian-sketch-adaptive", {"delta": 0.4}, "delta < 1/e"),
        ("inverse-wishart-adaptive", {"delta": 0.4}, "delta < 1/e"),
        ("noisy-inverse", {"epsilon": 1.5}, "epsilon < 1"),
    ],
)
def test_printed_theorems_refuse_what_they_do_not_cover_and_exact_ones_do_not(name, changes, condition):
    with pytest.raises(MechanismError, match=f"the printed theorem needs .*{condition}"):
        calibrate(name, calibration="paper", **changes)
    assert calibrate(name, **changes)["delta_at_epsilon"] > 0


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gaussian-sketch", {"sketch_rows": 0.5}, "sketch_rows is 0.5 and must lie between 1 and 1e12"),
        ("gaussian-sketch", {"sketch_rows": 2.5}, "be whole unless it is above d - 1"),
        ("inverse-wishart", {"degrees_of_freedom": 4.0}, "must lie between d = 5 and 1e12"),
        ("inverse-wishart-adaptive", {"degrees_of_freedom": 4.0}, "must lie between d = 5 and 1e12"),
        ("wishart-noise", {"degrees_of_freedom": 5.0}, "must be whole, from d \\+ 1 = 6"),
        ("wishart-noise", {"degrees_of_freedom": 9.5}, "must be whole"),
        ("wishart-noise", {"scale": -1.0}, "scale is -1 and must be positive"),
        ("noisy-inverse", {"rho": 0.0}, "rho is 0 and must be positive"),
        ("gaussian-sketch-adaptive", {"first_stage": "cauchy"}, "must be 'laplace' or 'gauss'"),
    ],
)
def test_parameters_out_of_range_are_named(name, changes, message):
    with pytest.raises(MechanismError, match=message):
        calibrate(name, **changes)


def test_options_must_be_of_their_type():
    with pytest.raises(MechanismError, match="sketch_rows is 'many' and must be a number"):
        task("gaussian-sketch", sketch_rows="many")
    with pytest.raises(MechanismError, match="first_stage is 3 and must be a word"):
        task("gaussian-sketch-adaptive", first_stage=3)


def test_the_claim_of_the_noisy_inverse_must_be_made():
    bare = MECHANISMS["noisy-inverse"].calibrate
    asked = task("gaussian-noise")
    with pytest.raises(MechanismError, match="rho is not given. With it you claim, from public knowledge"):
        bare(asked)


@pytest.mark.parametrize("r", [1.0, 3.0, 44.0, 7.25, 1e6, 1e12])
def test_the_sketch_takes_any_number_of_rows(r):
    found = calibrate("gaussian-sketch", sketch_rows=r)
    outcome = hold(
        MECHANISMS["gaussian-sketch"].start(task("gaussian-sketch", sketch_rows=r), SeededSource(0)),
        lambda question: GramAnswer(1e4 * np.eye(5), 10),
    )
    assert found["sketch_rows"] == r
    assert np.linalg.matrix_rank(outcome.gram) == min(5, r)
    if r == 1e12:
        assert outcome.gram == pytest.approx((1e4 + found["w_squared"]) * np.eye(5), rel=1e-5, abs=100)


def test_posterior_degrees_follow_the_public_number_of_rows():
    name = "inverse-wishart"
    asked = task(name)
    open_ended = type(asked)(asked.budget, Neighbours.REPLACE, 5, 1.5)
    outcome = hold(MECHANISMS[name].start(open_ended, SeededSource(0)), lambda question: GramAnswer(np.eye(5), 1000))
    assert outcome.parameters["degrees_of_freedom"] == 1005
    with pytest.raises(MechanismError, match="would reveal the number of rows"):
        next(MECHANISMS[name].start(type(asked)(asked.budget, Neighbours.ADD_REMOVE, 5, 1.5), SeededSource(0)))
    with pytest.raises(MechanismError, match="not known before the rows are read"):
        MECHANISMS[name].calibrate(open_ended)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "delta", "dim"), [(0.1, E9, 22), (1, 1e-6, 5), (1, 1e-6, 100), (4, 1e-9, 22)])
def test_wishart_noise_is_within_five_per_cent_of_the_gaussian_limit(neighbours, epsilon, delta, dim):
    found = calibrate("wishart-noise", epsilon=epsilon, delta=delta, dim=dim, bound=1.0, neighbours=neighbours)
    limit = 1 / calibrate_mu(Budget(epsilon, delta)) / (1 if neighbours is Neighbours.REPLACE else math.sqrt(2))
    assert 1 - 1e-6 <= found["sd_off_diagonal"] / limit <= 1.05


def test_wishart_noise_takes_off_its_mean_as_far_as_it_can():
    def outcome(size, **options):
        asked = task("wishart-noise", scale=1.5**2, **options)
        return hold(MECHANISMS["wishart-noise"].start(asked, SeededSource(1)), lambda question: GramAnswer(size * np.eye(5), 9))

    large, small, raw = outcome(1e6), outcome(0.0), outcome(0.0, repair="none")
    assert large.noise.shift == 0
    assert large.parameters["shift_removed"] == pytest.approx(large.parameters["mean_shift"])
    k, scale = small.parameters["degrees_of_freedom"], small.parameters["scale"]
    part = scale * max(0.0, math.sqrt(k) - math.sqrt(5) - math.sqrt(2 * math.log(4e6))) ** 2
    assert small.parameters["shift_removed"] == pytest.approx(part)
    assert np.linalg.eigvalsh(small.gram)[0] > 0
    assert raw.noise.shift == pytest.approx(k * scale)
    assert raw.gram == pytest.approx(small.gram + part * np.eye(5))


def test_the_wishart_mechanism_that_peers_shipped_is_refused():
    """Noise with d + 1 degrees of freedom, advertised as pure epsilon-differentially private, at its own calibration."""
    dim, epsilon, bound = 5, 1.0, 1.0
    scale = 3 * bound**2 / (2 * epsilon)
    true_delta = additive_delta(epsilon, dim + 1, dim, bound**2 / scale, Neighbours.REPLACE)
    assert true_delta >= 1 - math.exp(-epsilon / 3) > 0.28
    assert additive_epsilon(1e-6, dim + 1, dim, bound**2 / scale, Neighbours.REPLACE) == math.inf
    asked = task("wishart-noise", bound=bound, dim=dim, degrees_of_freedom=dim + 1.0, scale=scale)
    with pytest.raises(Exception, match="nothing was released"):
        next(MECHANISMS["wishart-noise"].start(asked, SeededSource(0)))


@pytest.mark.parametrize("rho", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("many", [1, 4, 40])
def test_the_inverse_of_a_single_column_moves_by_one_unit_at_most(rho, many):
    bound = 1.3
    floor = (1 + rho) * bound**2
    attained = 1 / floor - 1 / (floor + many * bound**2)
    for neighbours in Neighbours:
        promised = inverse_sensitivity(bound, rho, neighbours, many, 1)
        assert promised == pytest.approx(attained, rel=1e-12)
        for base in floor * np.linspace(1, 5, 40):  # two units of different sizes beside a common rest
            parts = base + many * bound**2 * np.linspace(0, 1, 20)
            assert np.ptp(1 / parts) <= promised * (1 + 1e-12)


@pytest.mark.parametrize("rho", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_sensitivity_of_the_inverse_is_attained_and_never_exceeded(rho, neighbours):
    bound, rng = 1.3, np.random.default_rng(0)
    floor = (1 + rho) * bound**2
    promised = inverse_sensitivity(bound, rho, neighbours, 1)
    e1, e2 = bound * np.eye(3)[:2]
    common = floor * np.eye(3)
    other = np.outer(e2, e2) if neighbours is Neighbours.REPLACE else 0
    worst = np.linalg.norm(np.linalg.inv(common + np.outer(e1, e1)) - np.linalg.inv(common + other))
    assert worst == pytest.approx(promised, rel=1e-12)
    for _ in range(2000):
        v, w = (bound * u / max(1.0, np.linalg.norm(u)) for u in rng.normal(size=(2, 3)))
        base = floor * np.eye(3) + np.outer(*(2 * [rng.normal(size=3)])) * rng.exponential()
        one = base + np.outer(v, v)
        two = base + (np.outer(w, w) if neighbours is Neighbours.REPLACE else 0)
        assert np.linalg.norm(np.linalg.inv(one) - np.linalg.inv(two)) <= promised * (1 + 1e-12)


@pytest.mark.parametrize("name", ["gaussian-sketch-adaptive", "inverse-wishart-adaptive"])
@pytest.mark.parametrize("first_stage", ["laplace", "gauss"])
@pytest.mark.parametrize(("smallest", "ridge_left"), [(0.0, True), (30.0, True), (1e5, False)])
def test_the_first_stage_is_on_the_label_and_steers_the_second(name, first_stage, smallest, ridge_left):
    asked = task(name, first_stage=first_stage)
    outcome = hold(MECHANISMS[name].start(asked, SeededSource(2)), lambda question: GramAnswer(smallest * np.eye(5), 9))
    p = outcome.parameters
    assert 0 <= p["first_stage_value"] <= smallest
    assert p["first_stage_delta"] > 0
    ridge = p["w_squared" if "sketch" in name else "psi"]
    degrees = p["sketch_rows" if "sketch" in name else "degrees_of_freedom"]
    assert ridge == outcome.noise.shift
    if ridge_left:
        assert ridge == pytest.approx(p["base_w_squared"] - p["first_stage_value"])
        assert degrees == 10
    else:
        assert ridge == 0
        assert degrees > 1e5
        assert degrees == int(degrees)


def test_the_best_split_comes_near_the_tabulated_thresholds():
    """Ridge plus offset over B^2, against the best split found by search: within 6 %."""
    for epsilon, delta, r, best in ((0.1, E9, 44, 419.4), (1, 1e-6, 44, 82.83), (1, 1e-6, 1000, 230.2), (4, E9, 1000, 48.7)):
        p = calibrate("gaussian-sketch-adaptive", epsilon=epsilon, delta=delta, dim=22, bound=1.0, sketch_rows=float(r))
        assert best * 0.99 <= p["base_w_squared"] + p["first_stage_offset"] <= 1.06 * best
    gauss = {"first_stage": "gauss", "dim": 22, "bound": 1.0}
    p = calibrate("gaussian-sketch-adaptive", epsilon=1, delta=1e-6, sketch_rows=1000.0, **gauss)
    assert p["base_w_squared"] + p["first_stage_offset"] <= 1.25 * 199


def test_the_gaussian_first_stage_is_refused_where_it_is_not_proven():
    for changes in ({"neighbours": Neighbours.ADD_REMOVE}, {"dim": 1}):
        with pytest.raises(MechanismError, match="proven for REPLACE and two columns or more"):
            calibrate("gaussian-sketch-adaptive", first_stage="gauss", **changes)


@pytest.mark.parametrize("name", ["gaussian-sketch-adaptive", "inverse-wishart-adaptive"])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_printed_first_stage_that_promises_nothing_is_refused(name, neighbours):
    """At huge epsilon the printed ridge is below one B^2, and a neighbour may have no floor at all: the true delta is one."""
    option = {"sketch_rows": 2.0} if "sketch" in name else {"degrees_of_freedom": 2.0}
    asked = task(name, epsilon=200.0, delta=0.01, dim=2, calibration="paper", neighbours=neighbours, **option)
    with pytest.raises(MechanismError, match="less private than it says"):
        next(MECHANISMS[name].start(asked, SeededSource(0)))


@pytest.mark.parametrize("delta", [1e-6, 1e-15, 1e-24])
def test_the_gaussian_first_stage_is_told_to_the_last_digit(delta):
    p = calibrate("gaussian-sketch-adaptive", delta=delta, first_stage="gauss")
    assert p["first_stage_delta"] == pytest.approx(0.2 * delta, rel=1e-6)
    assert delta * (1 - 1e-6) <= p["delta_at_epsilon"] <= delta


@pytest.mark.parametrize("scale", [1e15, 1e18, 1e24])
def test_a_huge_gram_is_a_gram(scale):
    conversation = MECHANISMS["gaussian-sketch-adaptive"].start(task("gaussian-sketch-adaptive"), SeededSource(0))
    assert np.isfinite(hold(conversation, lambda question: GramAnswer(scale * np.eye(5), 9)).gram).all()


@pytest.mark.parametrize(("epsilon", "delta", "dim"), [(0.012, 0.045, 5), (1.556, 0.0997, 1000), (0.036, 0.00575, 22)])
def test_wishart_noise_uses_its_budget_where_the_gaussian_limit_is_out_of_reach(epsilon, delta, dim):
    """The sum of three corners is promised, so at a large delta no number of degrees of freedom comes within 5 %."""
    found = calibrate("wishart-noise", epsilon=epsilon, delta=delta, dim=dim, bound=1.0)
    assert found["sd_off_diagonal"] * calibrate_mu(Budget(epsilon, delta)) > 1.05
    assert delta * (1 - 3e-6) <= found["delta_at_epsilon"] <= delta
