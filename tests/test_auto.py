"""mechanism="auto" takes what a plan expects to be best: it costs nothing, reads nothing but a public number, and is recorded."""

import numpy as np
import pytest

import dpgram
from dpgram import curator
from dpgram.accounting.compose import GaussianCost, composed_epsilon
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.encoding import encode
from dpgram.engines.encoded import encoded_rows
from dpgram.engines.local import LocalPass
from dpgram.errors import MechanismError, PlanError
from dpgram.ledger.base import Reservation
from dpgram.mechanisms import registry
from dpgram.planning import choose
from dpgram.planning.ground import ground_of
from dpgram.report.facts import label_data, label_groups
from tests.conftest import small_schema, small_table

BUDGET = {"epsilon": 5.0, "delta": 1e-6}


class Watched:
    """A ledger that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def reserve(self, budget, neighbours, what, *, unit=None, cost=None):
        self.asked.append((what, cost))
        return Reservation(1, budget, what)

    def commit(self, reservation):
        pass


def test_the_release_is_that_of_the_chosen_mechanism_and_says_how_it_was_chosen():
    made = dpgram.release(small_table(), small_schema(), mechanism="auto", insecure_seed=3, **BUDGET)
    named = dpgram.release(small_table(), small_schema(), mechanism=made.mechanism, insecure_seed=3, **BUDGET)
    assert np.array_equal(made.gram, named.gram)
    assert made.parameters == named.parameters
    assert made.noise == named.noise
    assert made.choice.startswith("auto, by a quick forecast for 4,000 rows")
    assert named.choice == ""
    assert label_data(made)["chosen_by"] == made.choice
    assert [made.choice] in [fact.lines for _, group in label_groups(made) for fact in group if fact.key == ("chosen_by",)]
    assert label_data(named)["chosen_by"] is None


def test_the_choice_survives_the_file_and_old_files_have_none(tmp_path):
    made = dpgram.release(small_table(), small_schema(), mechanism="auto", insecure_seed=3, out=tmp_path / "a.json", **BUDGET)
    assert dpgram.load(tmp_path / "a.json") == made
    given = {"mechanism": "gaussian-noise", "insecure_seed": 3, "out": tmp_path / "b.json"}
    named = dpgram.release(small_table(), small_schema(), **given, **BUDGET)
    assert '"choice"' not in (tmp_path / "b.json").read_text()
    assert dpgram.load(tmp_path / "b.json") == named


def test_the_choice_is_a_function_of_the_public_number_of_rows():
    """Tables that differ in every cell, and a hint that is the same number, give the same words."""
    choices = {
        dpgram.release(
            small_table(seed=seed), small_schema(), mechanism="auto", insecure_seed=0, table_rows=rows, **BUDGET
        ).choice
        for seed, rows in ((0, None), (1, None), (0, 4000))
    }
    assert len(choices) == 1


@pytest.mark.parametrize(("hint", "said"), [(9000, "9,000 rows"), (None, "its first round counts the rows, under noise")])
def test_under_add_remove_a_public_hint_counts_and_nothing_else(hint, said, monkeypatch):
    monkeypatch.setattr(LocalPass, "count", lambda _: pytest.fail("rows were counted that are protected"))
    schema = small_schema(neighbours="add-remove")
    choices = {
        dpgram.release(small_table(rows), schema, mechanism="auto", table_rows=hint, insecure_seed=0, **BUDGET).choice
        for rows in (0, 10, 500)
    }
    assert len(choices) == 1
    assert said in choices.pop()


def test_under_add_remove_the_number_of_units_is_not_counted_for_a_choice():
    """It is protected: neither the choice nor the release tells it."""
    schema = small_schema(neighbours="add-remove", unit_id="id", rows_per_unit=1)
    made = [
        dpgram.release(small_table(rows).append_column("id", [np.arange(rows)]), schema, mechanism="auto", **BUDGET)
        for rows in (300, 301)
    ]
    assert made[0].units is None
    assert made[1].units is None
    assert made[0].choice == made[1].choice


def test_every_mechanism_can_be_chosen(monkeypatch):
    for name in registry.MECHANISMS:
        if name == "noisy-inverse":
            continue
        monkeypatch.setattr(choose, "choose", lambda *_, name=name, **__: (registry.find(name), "for a test"))
        made = dpgram.release(small_table(), small_schema(), mechanism="auto", insecure_seed=3, **BUDGET)
        named = dpgram.release(small_table(), small_schema(), mechanism=name, insecure_seed=3, **BUDGET)
        assert made.mechanism == name
        assert np.array_equal(made.gram, named.gram)


def test_a_ledger_is_charged_what_the_chosen_mechanism_costs():
    """With a hint and without: the choice is made before anything is reserved."""
    for hint in ({}, {"table_rows": 4000}):
        ledger = Watched()
        made = dpgram.release(small_table(), small_schema(), mechanism="auto", insecure_seed=0, ledger=ledger, **hint, **BUDGET)
        ((what, cost),) = ledger.asked
        assert what.startswith(f"{made.mechanism} release")
        assert isinstance(cost, GaussianCost)  # of both mechanisms that are ever best here


@pytest.mark.parametrize("name", [n for n in registry.MECHANISMS if n not in ("noisy-inverse", "wishart-noise")])
def test_the_curve_in_the_ledger_is_that_of_what_is_drawn(name, monkeypatch):
    """That of inverse-wishart too, whose degrees of freedom follow the number of rows."""
    monkeypatch.setattr(choose, "choose", lambda *_, **__: (registry.find(name), "for a test"))
    ledger = Watched()
    made = dpgram.release(small_table(), small_schema(), mechanism="auto", insecure_seed=0, ledger=ledger, **BUDGET)
    mechanism, ((_, cost),) = registry.find(name), ledger.asked
    assert cost == mechanism.cost(registry.schema_task(mechanism, made.budget, made.schema), made.parameters)


def test_two_automatic_releases_compose_as_what_they_are(tmp_path):
    """As plain budgets of (1, 1e-7) they would count epsilon 2."""
    ledger = dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=3.0, delta=1e-6, unit="person", dataset="d")
    budget = dpgram.Budget(1.0, 1e-7)
    made = [
        dpgram.release(small_table(rows), small_schema(), epsilon=1.0, delta=1e-7, mechanism="auto", ledger=ledger)
        for rows in (200, 30_000)
    ]
    assert [each.mechanism for each in made] == ["gaussian-noise", "whitened-noise"]
    spent = ledger.account().spending.epsilon(1e-6)
    assert spent == pytest.approx(composed_epsilon(1e-6, [GaussianCost(calibrate_mu(budget))] * 2), rel=1e-6)
    assert spent < 1.31


def test_exact_arithmetic_goes_through_the_choice():
    made = dpgram.release(small_table(50), small_schema(), mechanism="auto", epsilon=5.0, delta=1e-6)
    assert made.arithmetic == "exact"
    assert made.private


def test_options_are_refused():
    for option, having in (
        (
            {"sketch_rows": 50},
            r"sketch_rows is given, but .* takes no options. Name a mechanism that has it \(gaussian-sketch, gaussian-sketch-adaptive\)",
        ),
        (
            {"repair": "psd"},
            r"the option repair is given, but .* takes no options. Name a mechanism that has it \(gaussian-noise, wishart-noise\)",
        ),
        ({"sketchrows": 50}, "the option sketchrows is given, but .* takes no options. No mechanism has this option"),
    ):
        with pytest.raises(MechanismError, match=having):
            dpgram.release("nowhere.csv", small_schema(), mechanism="auto", **option, **BUDGET)


def test_wrong_hints_are_refused_before_any_row_is_read(monkeypatch):
    monkeypatch.setattr(curator, "open_pass", lambda *_, **__: pytest.fail("the table was opened"))
    with pytest.raises(MechanismError, match="table_rows is given, but mechanism 'gaussian-noise' does not use it"):
        dpgram.release(small_table(), small_schema(), mechanism="gaussian-noise", table_rows=4000, **BUDGET)
    with pytest.raises(PlanError, match="table_rows is 0"):
        dpgram.release(small_table(), small_schema(), mechanism="auto", table_rows=0, **BUDGET)


def test_a_schema_without_a_regression_gets_the_default():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -1, 1)], intercept=False)
    made = dpgram.release({"x": np.zeros(20)}, schema, mechanism="auto", insecure_seed=0, **BUDGET)
    assert made.mechanism == "gaussian-noise"
    assert "no regression to look at" in made.choice


def test_a_very_wide_schema_gets_the_default_without_a_forecast(monkeypatch):
    monkeypatch.setattr(choose, "WIDEST", 5)
    made = dpgram.release(small_table(50), small_schema(), mechanism="auto", insecure_seed=0, **BUDGET)
    assert made.mechanism == "gaussian-noise"
    assert "more than 5 encoded columns" in made.choice


def test_a_plan_reads_no_table(monkeypatch):
    """Rows are encoded, but only the assumed ones."""
    seen = []
    before = encode.encoded_numbers
    monkeypatch.setattr(encode, "encoded_numbers", lambda schema, table: seen.append(table) or before(schema, table))
    monkeypatch.setattr(encode, "encoded_columns", lambda *_: pytest.fail("a table was encoded"))
    monkeypatch.setattr(curator, "counting_rows", lambda *_: pytest.fail("a table was encoded"))
    monkeypatch.setattr(curator, "open_pass", lambda *_, **__: pytest.fail("a table was opened"))
    dpgram.plan(small_schema(), table_rows=1000, mechanisms=["gaussian-noise"], **BUDGET)
    assert [set(table) for table in seen] == [{"x", "y", "c", "b"}]


def test_a_sample_must_be_called_public():
    with pytest.raises(PlanError, match="nobody says that it is public"):
        dpgram.plan(small_schema(), table_rows=1000, sample=small_table(50), **BUDGET)
    with pytest.raises(PlanError, match="both a sample and assumptions"):
        dpgram.plan(
            small_schema(),
            table_rows=1000,
            sample=small_table(50),
            sample_is_public=True,
            assumptions=dpgram.Assumptions(),
            **BUDGET,
        )


def test_a_public_sample_replaces_the_assumptions_and_is_recorded():
    made = dpgram.plan(
        small_schema(),
        table_rows=4000,
        target="y",
        mechanisms=["gaussian-noise"],
        sample=small_table(1000, seed=5),
        sample_is_public=True,
        **BUDGET,
    )
    data = made.to_dict()
    assert data["sample_is_public"] is True
    assert data["assumptions"] is None
    assert "sample of 1,000 rows" in data["assumed"]
    assert dict(zip(made.ground.design.names, made.ground.truth, strict=True))["x"] == pytest.approx(2, abs=0.1)
    assert (
        dpgram.plan(small_schema(), table_rows=4000, mechanisms=["gaussian-noise"], **BUDGET).to_dict()["sample_is_public"]
        is False
    )


def test_a_forecast_of_a_table_like_the_sample_comes_true():
    """One table, many releases: the median error is the forecast one, within what some dozen releases can show."""
    schema, table = small_schema(), small_table(20_000)
    made = dpgram.plan(
        schema,
        table_rows=20_000,
        target="y",
        mechanisms=["gaussian-noise"],
        sample=small_table(2000, seed=9),
        sample_is_public=True,
        epsilon=0.5,
        delta=1e-6,
    )
    rows = encoded_rows(table, schema)
    whole = ground_of(schema, rows, "y").truth
    errors = []
    for seed in range(60):
        release = dpgram.release(table, schema, epsilon=0.5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=seed)
        errors.append(np.abs(dpgram.regress(release, "y").shrunk.to_numpy() - whole))
    realised = made.ground.in_typical_units(np.median(errors, axis=0))
    assert made.forecast.mechanisms[0].typical.privacy_error == pytest.approx(realised, rel=0.4)
