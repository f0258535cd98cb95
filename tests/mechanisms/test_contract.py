"""What every mechanism of the registry must do, under every calibration and neighbour relation. A new one joins by its line there."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpgram
from dpgram.accounting.compose import composed_delta
from dpgram.errors import CalibrationError, MechanismError
from dpgram.mechanisms import conversation, gaussian_sketch, registry
from dpgram.mechanisms.conversation import hold
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from tests.conftest import small_schema, small_table
from tests.rounds import always

NAMES = sorted(MECHANISMS)
NEEDED = {
    "noisy-inverse": {"rho": 3.0},
    "inverse-wishart": {"degrees_of_freedom": 60.0},
    "whitened-noise": {"table_rows": 1000},
}
ALWAYS_DEFINITE = {"gaussian-sketch", "gaussian-sketch-adaptive", "inverse-wishart", "inverse-wishart-adaptive"}


def task(name, *, epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE, dim=5, bound=1.5, calibration="exact", **options):
    given = {**NEEDED.get(name, {}), **options}
    return registry.task(MECHANISMS[name], Budget(epsilon, delta), neighbours, dim, bound, calibration, given)


def run(name, gram, seed=0, **changes):
    asked = task(name, dim=len(gram), **changes)
    return hold(MECHANISMS[name].start(asked, SeededSource(seed)), always(gram, 1000))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.01, 1e-15), (0.1, 1e-4), (1, 1e-6), (5, 1e-9), (20, 0.3), (20, 1e-15), (1e6, 1e-6)]
)
def test_the_calibrated_parameters_meet_the_budget(name, neighbours, epsilon, delta):
    found = MECHANISMS[name].calibrate(task(name, epsilon=epsilon, delta=delta, neighbours=neighbours))
    assert 0 < found["delta_at_epsilon"] <= delta
    assert all(isinstance(value, float) and math.isfinite(value) for value in found.values())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-4), (1, 1e-6), (5, 1e-9)])
def test_a_ledger_is_told_all_that_a_release_costs(name, neighbours, epsilon, delta):
    """By the cost alone, a release has the delta that its parameters have, and no smaller one."""
    asked = task(name, epsilon=epsilon, delta=delta, neighbours=neighbours)
    found = MECHANISMS[name].calibrate(asked)
    cost = conversation.known_cost(MECHANISMS[name], asked)
    told = composed_delta(epsilon, [cost])
    assert told <= delta
    assert told >= found["delta_at_epsilon"] * (1 - 1e-6)


def size_of_noise(name, **changes):
    found = MECHANISMS[name].calibrate(task(name, **changes))
    if name == "whitened-noise":  # of all rounds together: how it is split between them changes with the budget
        return 1 / found["mu"]
    return next(found[key] for key in ("sd_off_diagonal", "w_squared", "psi", "base_w_squared") if key in found)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_larger_budget_never_means_more_noise(name, neighbours):
    sizes = [size_of_noise(name, epsilon=e, neighbours=neighbours) for e in (0.1, 0.9, 5)]
    assert sizes == sorted(sizes, reverse=True)
    sizes = [size_of_noise(name, delta=d, neighbours=neighbours) for d in (1e-12, 1e-6, 1e-2)]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("noisy-inverse", "whitened-noise")]
)  # one has its bound in its maps
def test_parameters_scale_with_the_squared_row_bound(name):
    assert size_of_noise(name, bound=3.0) == pytest.approx(4 * size_of_noise(name, bound=1.5), rel=1e-7)


def wide(dim):
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(dim, dim)))[0]
    gram = (rotation * np.logspace(-4, 8, dim)) @ rotation.T
    return (gram + gram.T) / 2


GRAMS = {
    "nothing": np.zeros((5, 5)),
    "one column": np.array([[700.0]]),
    "fewer rows than columns": np.outer([1, -1, 0.5, 0, 0.2], [1, -1, 0.5, 0, 0.2]),
    "columns of zeros": np.diag([500.0, 0, 300, 0, 10]),
    "twelve orders of magnitude": wide(5),
    "many columns": 1e5 * np.eye(60),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", GRAMS)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_every_gram_gives_a_finite_symmetric_release(name, case, neighbours):
    outcome = run(name, GRAMS[case], neighbours=neighbours)
    assert np.isfinite(outcome.gram).all()
    assert np.array_equal(outcome.gram, outcome.gram.T)
    assert outcome.noise.sd_off_diagonal > 0
    assert all(isinstance(value, float) for value in outcome.parameters.values())
    if name in ALWAYS_DEFINITE:
        assert np.linalg.eigvalsh(outcome.gram)[0] > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_release_and_another_does_not(name):
    one, same, other = (run(name, GRAMS["columns of zeros"], seed=seed).gram for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_release_by_every_mechanism_saves_loads_and_answers(name, neighbours, tmp_path):
    schema = small_schema(neighbours=neighbours)
    release = dpgram.release(small_table(), schema, epsilon=5, delta=1e-6, mechanism=name, **NEEDED.get(name, {}))
    release.save(tmp_path / "r.json")
    loaded = dpgram.load(tmp_path / "r.json")
    assert loaded == release
    assert loaded.mechanism == name
    fit = dpgram.regress(loaded, "y")
    assert np.isfinite(fit.coefficients).all()
    assert bool(loaded.condition) == (name == "noisy-inverse")


@pytest.mark.parametrize("name", NAMES)
def test_unknown_options_and_calibrations_are_refused(name):
    with pytest.raises(MechanismError, match=f"{name} has no option 'colour'"):
        task(name, colour=1.0)
    with pytest.raises(MechanismError, match="calibration is 'best' and must be 'exact' or 'paper'"):
        task(name, calibration="best")


@pytest.mark.parametrize("name", NAMES)
def test_parameters_that_miss_the_budget_are_never_used(name, monkeypatch):
    """Every mechanism asks back before it asks for a sum: when the answer is no, none starts."""
    module = __import__(f"dpgram.mechanisms.{name.replace('-', '_')}", fromlist=["ask_back"])
    seen = []

    def refuse(task, mechanism, delta):
        seen.append(delta)
        raise CalibrationError(mechanism=mechanism, delta=2 * task.budget.delta, needed=task.budget.delta)

    for place in (module, conversation):  # where a mechanism asks back itself, and where ``one_sum`` does
        monkeypatch.setattr(place, "ask_back", refuse, raising=False)
    with pytest.raises(CalibrationError):
        next(MECHANISMS[name].start(task(name), SeededSource(0)))
    assert len(seen) == 1


def test_a_sketch_has_one_row_to_a_trillion_and_below_the_columns_a_whole_number():
    for rows in (1.0, 2.0, 4.5, 1e12):
        assert gaussian_sketch.sketch_rows(task("gaussian-sketch", sketch_rows=rows)) == rows
    for rows in (0.999, 3.5, 1e12 + 1):
        with pytest.raises(MechanismError, match=r"must lie between 1 and 1e12, and be whole unless it is above d - 1 = 4\."):
            gaussian_sketch.sketch_rows(task("gaussian-sketch", sketch_rows=rows))


def test_the_printed_theorem_needs_a_delta_below_one_over_e():
    MECHANISMS["gaussian-sketch"].calibrate(
        task("gaussian-sketch", calibration="paper", delta=math.nextafter(1 / math.e, 0), sketch_rows=12.0)
    )
    with pytest.raises(MechanismError, match="delta < 1/e"):
        MECHANISMS["gaussian-sketch"].calibrate(
            task("gaussian-sketch", calibration="paper", delta=1 / math.e, sketch_rows=12.0)
        )


def test_all_but_the_one_of_many_maps_draw_many_releases_at_once():
    assert {name for name in NAMES if not MECHANISMS[name].batched} == {"whitened-noise"}
