"""Plans for units of several rows, and for rows that count as less than one, beside what releases of such tables give."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpgram
from dpgram.engines.encoded import encoded_rows
from dpgram.errors import LargeDeltaWarning, PlanError
from dpgram.mechanisms import registry
from dpgram.planning.assumed import Assumptions, assumed_table
from dpgram.planning.expected import expect
from dpgram.planning.forecast import forecast
from dpgram.planning.ground import ground_of
from dpgram.terms.budget import Budget

COLUMNS = [dpgram.Numeric(f"x{j}", 0, 1) for j in range(4)]
BUDGET = Budget(4.0, 1e-6)
MANY = 4


def panel(many: int | None = MANY, **changes) -> dpgram.Schema:
    ids = {} if many is None else {"unit_id": "who", "rows_per_unit": many}
    return dpgram.Schema(unit="person", columns=COLUMNS, **ids, **changes)


def ground(schema: dpgram.Schema, rows: int = 4000, **changes):
    table = assumed_table(schema, Assumptions(), "x0", rows=rows)
    return replace(ground_of(schema, encoded_rows(table, panel(None)), "x0"), **changes)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_noise_and_sampling_are_those_of_units(neighbours):
    one, several = (
        expect(ground(panel(many, neighbours=neighbours)), registry.find("gaussian-noise"), BUDGET, 100_000)
        for many in (None, MANY)
    )
    assert several.noise_sd == pytest.approx(MANY * one.noise_sd, rel=1e-9)
    assert several.typical.sampling_error == pytest.approx(np.sqrt(MANY) * one.typical.sampling_error, rel=1e-9)
    assert several.typical.error > 1.9 * one.typical.error


def test_only_mechanisms_that_take_units_are_compared():
    made = forecast(ground(panel()), BUDGET, 20_000, copies=8)
    assert sorted(e.mechanism for e in made.mechanisms) == ["gaussian-noise", "whitened-noise"]
    asked = forecast(ground(panel()), BUDGET, 20_000, mechanisms=["gaussian-sketch", "gaussian-noise"], copies=8)
    assert "use gaussian-noise or whitened-noise" in asked.of("gaussian-sketch").refused


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    """The slopes of the law that rows are drawn from, to three digits."""
    large = ground(panel(None), rows=400_000)
    return {name: value for name, value in zip(large.design.names, large.truth, strict=True) if name != "(intercept)"}


def outcome(mechanism: str, schema: dpgram.Schema, table, seed: int, truth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = dpgram.release(
            table,
            schema,
            epsilon=BUDGET.epsilon,
            delta=BUDGET.delta,
            mechanism=mechanism,
            insecure_seed=seed,
            arithmetic="float",
        )
        fit = dpgram.regress(made, "x0")
    widths = (fit.conf_int()[1] - fit.conf_int()[0]).to_dict()
    return [fit.estimates[n] - truth[n] for n in truth], [widths[n] for n in truth]


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("alike", [True, False])
def test_a_forecast_for_units_is_what_releases_give(mechanism, alike, truth):
    """Rows of a unit are all the same (the worst case), or have nothing in common (a design effect of one)."""
    schema, units = panel(), 5000
    here = ground(schema, given_design_effect=None if alike else 1.0)
    found = expect(here, registry.find(mechanism), BUDGET, MANY * units)
    errors, widths = [], []
    for seed in range(30):
        rows = units if alike else MANY * units
        table = assumed_table(panel(None), Assumptions(), "x0", rows=rows, seed=seed + 1)
        if alike:
            table = {name: np.repeat(column, MANY) for name, column in table.items()}
        table["who"] = np.repeat(np.arange(units), MANY)
        error, width = outcome(mechanism, schema, table, seed, truth)
        errors.append(error)
        widths.append(width)
    told = {c.name: c for c in found.coefficients}
    sizes = np.median(np.abs(errors)) / np.median([told[n].error for n in truth])
    assert 0.75 < sizes < 1.33
    if alike:  # an interval takes the worst case, unless the analyst says otherwise
        lengths = np.median(widths) / np.median([told[n].width for n in truth])
        assert 0.85 < lengths < 1.18


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_a_forecast_for_weighted_rows_is_what_releases_give(mechanism, truth):
    """Half of the rows have a weight of zero, the others the largest: as if there were half as many."""
    schema, rows = dpgram.Schema(unit="person", columns=COLUMNS, weight="w", largest_weight=7.0), 20_000
    here = ground(schema, counted=0.5)
    found = expect(here, registry.find(mechanism), BUDGET, rows)
    errors = []
    for seed in range(30):
        table = assumed_table(panel(None), Assumptions(), "x0", rows=rows, seed=seed + 1)
        table["w"] = np.where(np.arange(rows) % 2, 7.0, 0.0)
        errors.append(outcome(mechanism, schema, table, seed, truth)[0])
    told = {c.name: c for c in found.coefficients}
    assert 0.75 < np.median(np.abs(errors)) / np.median([told[n].error for n in truth]) < 1.33


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_weights_that_are_a_column_too_are_forecast(mechanism):
    """A forecast takes the worst case, as it does for weights that are no column: it cannot know how unequal they will be."""
    weights = [dpgram.Schema(unit="person", columns=COLUMNS, weight=name, largest_weight=1.0) for name in ("w", "x3")]
    found = [expect(ground(schema), registry.find(mechanism), BUDGET, 20_000, copies=8) for schema in weights]
    assert [each.refused for each in found] == [found[0].refused] * 2
    assert found[1].typical.width == found[0].typical.width > 0


def test_assumptions_about_units_and_weights_are_told_and_checked():
    told = Assumptions(counted=0.8, design_effect=2.5)
    assert told.to_dict()["counted"] == 0.8
    assert told.to_dict()["design_effect"] == 2.5
    assert "a row counts as 80% of one on average; the design effect is 2.5" in told.in_words
    assert set(Assumptions().to_dict()) == {"spread", "correlation", "signal"}
    for wrong, words in (
        ({"counted": 0}, "counted share is 0"),
        ({"counted": 1.2}, "counted share is 1.2"),
        ({"design_effect": 0}, "design effect is 0"),
        ({"design_effect": 1e300}, "design effect is 1e\\+300 and must be a positive number from 1e-09 to 1,000,000,000"),
    ):
        with pytest.raises(PlanError, match=words):
            Assumptions(**wrong)


def test_a_plan_says_what_it_assumes_of_units():
    made = dpgram.plan(panel(), epsilon=1.0, delta=1e-6, table_rows=10_000, mechanisms=["gaussian-noise"])
    assert "all rows of one person have the same error, the worst case (design effect 4)" in made.assumed
    told = dpgram.plan(
        panel(),
        epsilon=1.0,
        delta=1e-6,
        table_rows=10_000,
        mechanisms=["gaussian-noise"],
        assumptions=Assumptions(design_effect=1.0),
    )
    assert made.sampling_error == pytest.approx(2 * told.sampling_error)
    assert "worst case" not in told.assumed
    assert "every row counts in full" in made.assumed  # a unit of more rows would make the forecast worse
    less = dpgram.plan(panel(), epsilon=1.0, delta=1e-6, table_rows=10_000, assumptions=Assumptions(counted=0.5))
    assert "in full" not in less.assumed
    assert "a row counts as 50% of one on average" in less.assumed


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_less_that_counts_means_more_noise_and_alike_rows_wider_intervals(mechanism):
    whole, part, alone = (
        expect(ground(panel(), **changes), registry.find(mechanism), BUDGET, 200_000, copies=60).typical
        for changes in ({}, {"counted": 0.25}, {"given_design_effect": 1.0})
    )
    assert part.noise_error > 2 * whole.noise_error
    assert part.sampling_error == pytest.approx(2 * whole.sampling_error)
    assert alone.width < 0.9 * whole.width


def test_delta_is_compared_with_the_number_of_units():
    """As a release does: 10,000 rows are 2,500 units of four."""
    asked = {"epsilon": 1.0, "table_rows": 10_000, "mechanisms": ["gaussian-noise"]}
    with pytest.warns(LargeDeltaWarning, match=r"above 1/\(number of units\) = 0.0004"):
        dpgram.plan(panel(), delta=5e-4, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LargeDeltaWarning)
        dpgram.plan(panel(), delta=3e-4, **asked)
        with pytest.raises(LargeDeltaWarning, match="number of rows"):
            dpgram.plan(panel(None), delta=3e-4, **asked)
