"""Tables that differ in a whole unit: audits come close to what is proven, and find noise that was meant for single rows.

All draws are seeded. A right mechanism is accused with probability at most 1e-6 per audit (``CONFIDENCE``)."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from dpgram.audits import neighbours as tables
from dpgram.audits.laws import whitened_noise as whitened_law
from dpgram.audits.laws.registry import find, law_of
from dpgram.audits.neighbours import Rows
from dpgram.audits.run import audit
from dpgram.cli.audit import faults_of_units
from dpgram.errors import MechanismError
from dpgram.mechanisms import gaussian_noise, looks, noisy_inverse, registry, whitened_noise
from dpgram.rows.shares import Shares
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours

CONFIDENCE = 1 - 1e-6
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
OPTIONS = {"gaussian-noise": {}, "whitened-noise": {"table_rows": 3000.0}, "noisy-inverse": {"rho": 4.0}, "looks": {}}
MANY = 3


def audited(name, relation, draws, *, many=MANY, pair=None, dim=2, nearby=False, **options):
    mechanism = find(name)
    task = registry.task(
        mechanism,
        Budget(law_of(name).epsilon, 0.01),
        relation,
        dim,
        1.5,
        "exact",
        {**OPTIONS[name], **options},
        rows_per_unit=many,
    )
    law = law_of(name)
    worst = pair or law(*_prepared(law, mechanism, task)).worst_pairs()[0].name
    (found,) = audit(mechanism, task, SeededSource(1), draws=draws, confidence=CONFIDENCE, only=[worst], nearby=nearby)
    return found


def _prepared(law, mechanism, task):
    task = law.prepared(task)
    return task, mechanism.calibrate(task)


def told_apart(found):
    return found.strength > 1 or found.counted_epsilon > found.claimed_epsilon


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_unit_with_all_rows_at_the_bound_comes_close_to_the_proven_curve(name, relation):
    found = audited(name, relation, 40_000)
    assert not found.broken, found.faults
    assert found.pair_epsilon > 0.95 * found.proven_epsilon
    assert found.power > 0.5


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("name", ["gaussian-noise", "whitened-noise", "noisy-inverse"])
def test_a_unit_of_many_rows_in_two_directions_moves_less(name, relation):
    found = audited(name, relation, 5000, pair="a unit of many rows")
    assert not found.broken, found.faults
    assert 0.2 * found.proven_epsilon < found.pair_epsilon < 0.95 * found.proven_epsilon


def test_the_inverse_is_moved_most_along_several_directions():
    """Where a unit is larger than the claimed eigenvalue: with rho = 0.5 and three rows, two directions are the worst."""
    alone = audited("noisy-inverse", ADD_REMOVE, 5000, rho=0.5)
    spread = audited("noisy-inverse", ADD_REMOVE, 5000, rho=0.5, pair="a unit of many rows")
    assert not alone.broken
    assert not spread.broken
    assert alone.pair_epsilon < 0.97 * spread.pair_epsilon
    assert spread.pair_epsilon > 0.95


def of_one_row(module, name):
    """The sensitivity of a single row, where a unit has several."""
    right = getattr(module, name)
    where = list(inspect.signature(right).parameters).index("rows_per_unit")
    return lambda *given: right(*given[:where], 1, *given[where + 1 :])


FOR_ONE_ROW = {
    "gaussian-noise": [(gaussian_noise, "gram_sensitivity")],
    "whitened-noise": [(whitened_noise, "gram_sensitivity")],
    "noisy-inverse": [(noisy_inverse, "inverse_sensitivity")],
    "looks": [(looks, "counts_sensitivity")],
}


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("name", FOR_ONE_ROW)
def test_noise_for_single_rows_is_found(name, relation, monkeypatch):
    for module, function in FOR_ONE_ROW[name]:
        monkeypatch.setattr(module, function, of_one_row(module, function))
    found = audited(name, relation, 4000)
    assert told_apart(found), (found.counted_epsilon, found.strength)
    assert any("delta" in fault or "shift" in fault for fault in found.faults)


def test_a_single_direction_is_not_enough_for_the_inverse(monkeypatch):
    """Section 10's rank-one formula, at m rows: wrong for a unit that is larger than the claimed eigenvalue."""

    def of_one_direction(row_bound, rho, neighbours, rows_per_unit, dim):
        return rows_per_unit / (row_bound**2 * (1 + rho) * (1 + rows_per_unit + rho))

    monkeypatch.setattr(noisy_inverse, "inverse_sensitivity", of_one_direction)
    found = audited("noisy-inverse", ADD_REMOVE, 1000, many=9, dim=6, rho=0.2, pair="a unit of many rows")
    assert any("delta" in fault for fault in found.faults)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("name", ["gaussian-noise", "whitened-noise"])
def test_a_unit_whose_many_rows_all_count_in_full_is_found(name, relation, monkeypatch):
    monkeypatch.setattr(tables, "shares", lambda unit, task: np.ones(len(np.atleast_2d(unit))))
    monkeypatch.setattr(whitened_law, "shares", lambda unit, task: np.ones(len(np.atleast_2d(unit))))
    assert told_apart(audited(name, relation, 2000, pair="a unit of many rows"))


def test_the_number_of_rows_must_not_be_told_where_units_are_protected(monkeypatch):
    """A unit of one hundred rows in place of one: the rules would follow the number of rows."""
    right = Rows.answer
    told = lambda self, question, task: replace(right(self, question, task), rows=len(self.rows))  # noqa: E731
    monkeypatch.setattr(Rows, "answer", told)
    found = audited("whitened-noise", REPLACE, 1000, pair="a unit of many rows")
    assert any("depends on the table" in fault for fault in found.faults)


def test_a_calibration_that_forgets_the_rows_of_a_unit_is_found_nearby(monkeypatch):
    kept = {}

    right = gaussian_noise.gram_sensitivity

    def forgetful(row_bound, neighbours, rows_per_unit, dim):
        return kept.setdefault((row_bound, neighbours), right(row_bound, neighbours, rows_per_unit, dim))

    monkeypatch.setattr(gaussian_noise, "gram_sensitivity", forgetful)
    found = audited("gaussian-noise", REPLACE, 1000, nearby=True)
    assert any("one row more per unit" in fault for fault in found.faults)


def test_other_mechanisms_are_refused():
    with pytest.raises(MechanismError, match="use gaussian-noise or whitened-noise"):
        registry.task(find("gaussian-sketch"), Budget(1.0, 0.01), REPLACE, 2, 1.5, rows_per_unit=3)


# Whole releases of hostile units, from cells to the Gram sum


@pytest.mark.parametrize("many", [1, 3, 50])
def test_whole_releases_of_one_unit_stay_within_their_rows_per_unit(many):
    assert faults_of_units(many) == []


@pytest.mark.parametrize("many", [1, 50])
@pytest.mark.parametrize("share", [lambda rows, many: 1.0, lambda rows, many: np.sqrt(many / rows)])
def test_a_unit_that_counts_as_more_is_found(many, share, monkeypatch):
    """Every row in full; and a factor where its square should be."""

    def wrong(self, rows):
        return np.minimum(1.0, share(np.maximum(rows, 1), many)) * np.ones(len(rows))

    monkeypatch.setattr(Shares, "_by_unit", wrong)
    found = faults_of_units(many)
    assert "a unit that counts as more than its rows per unit" in found
    assert "a unit that counts as more than its rows per unit after a map" in found
