"""Forecasts are right where they can be computed otherwise, and sensible at the edges."""

import math
from itertools import pairwise

import numpy as np
import pytest

import dpgram
from dpgram.engines.encoded import encoded_rows
from dpgram.errors import MechanismError, PlanError
from dpgram.mechanisms import registry
from dpgram.planning import expected as expecting
from dpgram.planning.assumed import Assumptions, assumed_table, default_target
from dpgram.planning.bounds import row_bounds
from dpgram.planning.expected import expect
from dpgram.planning.forecast import CONDITIONAL, forecast
from dpgram.planning.ground import ground_of
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget

SIX = [dpgram.Numeric(f"x{j}", 0, 1) for j in range(6)]
UNCONDITIONAL = [name for name in registry.MECHANISMS if name != CONDITIONAL]
FEW = 12


def assumed(columns=None, target=None, **changes):
    schema = dpgram.Schema(unit="p", columns=columns or SIX, **changes)
    target = target or default_target(schema)
    return ground_of(schema, encoded_rows(assumed_table(schema, Assumptions(), target, rows=4000), schema), target)


GROUND = assumed()


def test_small_additive_noise_gives_the_error_that_first_order_says():
    """(G_xx)^-1 (n - N b) has a known covariance; a median absolute error is 0.6745 of its root."""
    rows, budget = 10**7, Budget(1.0, 1e-6)
    found = expect(GROUND, registry.find("gaussian-noise"), budget, rows, copies=400)
    gram = rows * GROUND.moments()
    design = GROUND.design
    inverse = np.linalg.inv(design.regressors.T @ gram @ design.regressors)
    b = inverse @ design.regressors.T @ gram @ design.label
    covariance = inverse @ (found.noise_sd**2 * ((1 + b @ b) * np.eye(len(b)) + np.outer(b, b))) @ inverse
    sd = np.sqrt(np.diag(design.to_own_units @ covariance @ design.to_own_units.T))
    assert [c.noise_error for c in found.coefficients] == pytest.approx(list(0.6745 * sd), rel=0.2)
    assert found.typical.noise_error == pytest.approx(GROUND.in_typical_units(0.6745 * sd), rel=0.1)
    total = np.hypot(sd, GROUND.sampling_sd(rows))
    assert found.typical.error == pytest.approx(GROUND.in_typical_units(0.6745 * total), rel=0.05)
    assert found.typical.width == pytest.approx(GROUND.in_typical_units(2 * 1.96 * total), rel=0.05)
    assert found.typical.detectable == pytest.approx(found.typical.width / 3.92 * 2.8016, rel=0.01)


def test_every_mechanism_is_listed_with_its_noise_and_the_best_stands_first():
    made = forecast(GROUND, Budget(1.0, 1e-6), 100_000, copies=FEW)
    assert sorted(e.mechanism for e in made.mechanisms) == sorted(UNCONDITIONAL)
    assert made.mechanisms[0].mechanism == made.best == "whitened-noise"  # columns far from zero, close to the intercept
    assert f"It works in {made.mechanisms[0].rounds} rounds" in made.why or "adds little" in made.why
    assert made.best in made.why
    assert all((e.rounds > 1) == registry.find(e.mechanism).several for e in made.mechanisms)
    assert all(e.passes == 1 for e in made.mechanisms)  # a small table is kept in memory
    once = forecast(GROUND, Budget(1.0, 1e-6), 100_000, mechanisms=UNCONDITIONAL[:-1], copies=FEW)
    assert once.best == "gaussian-noise"
    errors = [e.typical.error for e in made.mechanisms[1:]]
    assert errors == sorted(errors)
    for expected in made.mechanisms:
        assert expected.noise_sd > 0
        assert len(expected.coefficients) == 6
    assert made.of("gaussian-noise").noise_sd == pytest.approx(
        registry.find("gaussian-noise").calibrate(
            registry.task(
                registry.find("gaussian-noise"),
                Budget(1.0, 1e-6),
                GROUND.schema.neighbours,
                7,
                GROUND.schema.effective_row_bound,
            )
        )["sd_off_diagonal"]
    )


def test_errors_fall_with_epsilon_and_with_rows_down_to_the_floor():
    gaussian = registry.find("gaussian-noise")
    by_epsilon = [expect(GROUND, gaussian, Budget(e, 1e-6), 50_000, copies=FEW).typical for e in (0.05, 0.5, 5.0, 50.0)]
    assert all(a.error > b.error for a, b in pairwise(by_epsilon))
    assert by_epsilon[-1].error == pytest.approx(by_epsilon[-1].sampling_error, rel=0.05)
    by_rows = [expect(GROUND, gaussian, Budget(1.0, 1e-6), n, copies=FEW).typical.error for n in (1000, 10_000, 100_000)]
    assert by_rows == sorted(by_rows, reverse=True)


EDGES = {
    "one feature": ([dpgram.Numeric("x", -5, 5), dpgram.Numeric("y", 0, 1)], {}),
    "one column": ([dpgram.Numeric("x", -5, 5)], {}),
    "categories": ([dpgram.Categorical("c", ["u", "v", "w"]), dpgram.Categorical("k", [1, 2], missing="level")], {}),
    "truth values": ([dpgram.Boolean("u"), dpgram.Boolean("v"), dpgram.Boolean("w")], {}),
    "no intercept": (SIX, {"intercept": False}),
    "add-remove": (SIX, {"neighbours": "add-remove"}),
    "row bound": (SIX, {"row_bound": 1.2}),
}


@pytest.mark.parametrize("edge", EDGES)
def test_schemas_at_the_edge_are_forecast(edge):
    columns, changes = EDGES[edge]
    made = forecast(assumed(columns, **changes), Budget(1.0, 1e-6), 20_000, copies=FEW)
    assert made.best
    assert not made.of("whitened-noise").refused  # the forecast's own number of rows is a hint where there is no intercept
    best = made.of(made.best).typical
    assert 0 < best.error < 1e3
    assert best.width > 0
    for expected in made.mechanisms:
        assert (expected.typical is None) == bool(expected.refused)
    if edge == "add-remove":
        assert "number of rows" in made.of("inverse-wishart").refused
    if edge == "row bound":
        assert made.of("gaussian-noise").typical.shrinking_error > 0


@pytest.mark.parametrize(("epsilon", "rows"), [(0.01, 5000), (20.0, 5000), (1e-6, 100), (1.0, 1), (1.0, 8), (1.0, 10**12)])
def test_budgets_and_sizes_at_the_edge_are_forecast(epsilon, rows):
    made = forecast(GROUND, Budget(epsilon, 1e-6), rows, copies=FEW)
    best = made.of(made.best).typical
    if rows <= 6:
        assert math.isinf(best.error)
        assert "no more rows than coefficients" in made.why
    else:
        assert math.isfinite(best.error)
    if epsilon * rows < 60:
        assert math.isinf(best.width)
        assert made.best == "gaussian-noise"  # where nothing can be told apart, the simplest


def test_where_noise_hides_everything_the_forecast_says_so():
    assert "hides the coefficients" in forecast(GROUND, Budget(0.01, 1e-6), 500, copies=FEW).why


def test_the_conditional_mechanism_is_listed_only_with_its_claim_and_never_chosen():
    made = forecast(GROUND, Budget(1.0, 1e-6), 100_000, options={"rho": 2.0}, copies=FEW)
    assert CONDITIONAL in [e.mechanism for e in made.mechanisms]
    assert made.best != CONDITIONAL
    alone = forecast(GROUND, Budget(1.0, 1e-6), 100_000, mechanisms=[CONDITIONAL], copies=FEW)
    assert "claim" in alone.mechanisms[0].refused
    assert alone.best == ""


def test_options_go_to_the_mechanisms_that_have_them():
    plain, more = (
        forecast(
            GROUND, Budget(1.0, 1e-6), 100_000, mechanisms=["gaussian-noise", "gaussian-sketch"], options=options, copies=FEW
        )
        for options in ({}, {"sketch_rows": 500.0})
    )
    assert more.of("gaussian-sketch").degrees == 500
    assert more.of("gaussian-noise").typical == plain.of("gaussian-noise").typical
    with pytest.raises(MechanismError, match="none of gaussian-noise has an option 'sketch_rows'"):
        forecast(GROUND, Budget(1.0, 1e-6), 100, mechanisms=["gaussian-noise"], options={"sketch_rows": 5.0})


@pytest.mark.parametrize("rows", [0, -3, 1.5, True, 10**13, None])
def test_numbers_of_rows_that_make_no_sense_are_refused(rows):
    with pytest.raises(PlanError, match="table_rows"):
        forecast(GROUND, Budget(1.0, 1e-6), rows)


def test_row_bounds_trade_noise_for_shrinking_and_the_own_one_is_marked():
    trades = row_bounds(GROUND, "gaussian-noise", Budget(0.5, 1e-6), 50_000, copies=FEW)
    bounds = [t.row_bound for t in trades]
    assert bounds == sorted(bounds, reverse=True)
    assert 6 <= len(trades) <= 9
    assert [t.own for t in trades] == [True] + [False] * (len(trades) - 1)
    assert trades[0].noise_error > 2 * trades[-1].noise_error
    assert trades[0].shrinking_error == 0 < trades[-1].shrinking_error
    assert [t.shrunk for t in trades] == sorted(t.shrunk for t in trades)
    (best,) = (t for t in trades if t.recommended)
    assert best.error <= 1.1 * min(t.error for t in trades)
    assert best.row_bound < bounds[0]


def test_a_row_bound_of_the_schemas_own_is_among_them_and_kept_where_it_is_good():
    found = assumed(row_bound=1.31)
    trades = row_bounds(found, "gaussian-noise", Budget(0.5, 1e-6), 50_000, copies=FEW)
    (own,) = (t for t in trades if t.own)
    assert own.row_bound == 1.31
    assert trades[0].row_bound == found.schema.largest_norm


def test_no_row_bounds_are_compared_for_a_mechanism_that_shrinks_rows_by_its_own_rules():
    """Said in words, and true: the error moves by less than the forecast's chance, where Gaussian noise's moves severalfold."""
    asked = {"epsilon": 1.0, "delta": 1e-6, "table_rows": 100_000}
    made = dpgram.plan(GROUND.schema, mechanisms=["whitened-noise"], **asked)
    assert made.bounds == ()
    assert made.recommended_row_bound is None
    assert "hardly changes the errors of" in made.to_dict()["no_row_bounds"]
    trades = row_bounds(GROUND, "whitened-noise", Budget(1.0, 1e-6), 100_000, copies=5 * FEW)
    errors = [trade.error for trade in trades]
    assert max(errors) < 1.1 * min(errors)
    other = dpgram.plan(GROUND.schema, mechanisms=["gaussian-noise"], **asked)
    assert other.bounds
    assert other.to_dict()["no_row_bounds"] is None


BATCHED = [name for name, mechanism in registry.MECHANISMS.items() if mechanism.batched]


def one_by_one(*given, at_once=expecting._all_at_once):
    return ((gram, noise, by) for grams, noise, by in at_once(*given) for gram in grams)


@pytest.mark.parametrize("name", BATCHED)
def test_many_releases_are_read_at_once_as_they_are_one_by_one(name, monkeypatch):
    """Weak and strong noise, so that some coefficients are identified and some are not."""
    mechanism, many = registry.find(name), {"sketch_rows": 60.0, "degrees_of_freedom": 60.0, "rho": 2.0}
    own = {option: value for option, value in many.items() if option in mechanism.options}
    unbounded = []
    for epsilon in (0.05, 0.2, 0.4, 0.8, 1.5, 5.0):
        task = registry.schema_task(mechanism, Budget(epsilon, 1e-6), GROUND.schema, options=own)
        together = expecting.draw(GROUND, mechanism, task, 3000, FEW)
        with monkeypatch.context() as patch:
            patch.setattr(expecting, "_all_at_once", one_by_one)
            alone = expecting.draw(GROUND, mechanism, task, 3000, FEW)
        for column in ("errors", "widths", "detectable", "noise_sd", "degrees", "passes"):
            assert getattr(together, column) == pytest.approx(getattr(alone, column), rel=1e-9), column
        unbounded.append(float(np.isinf(alone.widths).mean()))
    assert max(unbounded) > 0 or mechanism.name == CONDITIONAL


@pytest.mark.parametrize("name", ["gaussian-sketch-adaptive", "inverse-wishart-adaptive"])
def test_the_few_steps_of_a_first_stage_change_a_forecast_by_less_than_its_chance(name, monkeypatch):
    mechanism = registry.find(name)
    for epsilon, rows in ((0.3, 10**6), (1.0, 10**7), (3.0, 10**5)):
        few = expect(GROUND, mechanism, Budget(epsilon, 1e-6), rows, copies=48)
        with monkeypatch.context() as patch:
            patch.setattr(expecting._ManyAtOnce, "publish_below", SeededSource.publish_below)  # each as it was drawn
            exact = expect(GROUND, mechanism, Budget(epsilon, 1e-6), rows, copies=48)
        assert few.typical.error == pytest.approx(exact.typical.error, rel=0.1 * exact.wobble)
        assert few.typical.width == pytest.approx(exact.typical.width, rel=0.1 * exact.wobble)


def test_refusals_of_rounds_are_told():
    printed = expect(GROUND, registry.find("whitened-noise"), Budget(1.0, 1e-6), 100_000, calibration="paper")
    assert "not in the paper" in printed.refused
    assert printed.typical is None


def test_what_clipping_after_whitening_does_is_in_the_forecast():
    """Errors that grow with a row's length bend a regression whose long rows are shrunk: the forecast's bias is that of the rows. With more
    rows and budget the long ones are seen clearly, and most of it is put back."""
    rng = np.random.default_rng(3)
    features = rng.standard_t(3, (20_000, 2)) / 20
    label = features.sum(axis=1) + 4 * features[:, 0] ** 3 / 0.01 * rng.choice([1.0, 1.2], len(features))
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in ("x", "z", "y")])
    rows = np.clip(np.column_stack([np.ones(len(features)), features, label / 10]), -1, 1)
    found = ground_of(schema, rows, "y")
    few, many = (
        {c.name: c for c in expect(found, registry.find("whitened-noise"), Budget(epsilon, 1e-6), n, copies=FEW).coefficients}[
            "x"
        ]
        for epsilon, n in ((0.1, 30_000), (0.5, 10**6))
    )
    assert few.shrinking_error > 3 * few.noise_error
    assert few.privacy_error == pytest.approx(few.shrinking_error, rel=0.3)
    assert many.shrinking_error < 0.1 * few.shrinking_error
    assert many.privacy_error < 0.2 * few.privacy_error
