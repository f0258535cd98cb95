"""Mistakes in looks at columns: the audit finds each one, and does not accuse them as they are.

All draws are seeded. Right looks are accused with probability at most 1e-6 per audit (``CONFIDENCE``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpgram.accounting.compose import GaussianCost
from dpgram.audits.laws.looks import MECHANISM, LooksLaw
from dpgram.audits.neighbours import Cells
from dpgram.audits.run import audit
from dpgram.cli.app import run
from dpgram.errors import MechanismError
from dpgram.mechanisms import looks, ranges, registry, whitened_noise
from dpgram.mechanisms.conversation import CountsQuestion, Drawing, hold, publish
from dpgram.rows.bin_counts import BinCounts
from dpgram.sampling.base import known
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource
from dpgram.sources.open import open_source
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import SymmetricGaussian
from tests.audits.test_rounds import CONFIDENCE, told_apart

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
WORST = {REPLACE: "another bin in every column", ADD_REMOVE: "one row more"}


def task_for(neighbours, epsilon=LooksLaw.epsilon, dim=2):
    return registry.task(MECHANISM, Budget(epsilon, 0.01), neighbours, dim, 1.5)


def audited(neighbours, draws, seed=1, **options):
    given = {"only": [WORST[neighbours]], "nearby": False, **options}
    return audit(MECHANISM, task_for(neighbours), SeededSource(seed), draws=draws, confidence=CONFIDENCE, **given)[0]


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_worst_pair_comes_close_to_the_proven_curve(neighbours):
    """At 60,000 releases the bound by shape reaches four fifths of the looks' own epsilon, and the law on the pair all of it."""
    found = audited(neighbours, 60_000)
    assert not found.broken, found.faults
    assert found.pair_epsilon > 0.97 * found.proven_epsilon
    assert found.power > 0.8


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("dim", [1, 3])
def test_nobody_is_accused(neighbours, dim):
    others = [SeededSource(3), ExactSource(insecure_seed=4)]
    for found in audit(
        MECHANISM, task_for(neighbours, dim=dim), SeededSource(2), draws=1000, confidence=CONFIDENCE, searches=2, others=others
    ):
        assert not found.broken, (found.pair, found.faults)


def test_the_command_audits_looks(capsys):
    assert run(["audit", "looks", "--draws", "1000", "--random", "0", "--confidence", "0.999999999"]) == 0
    out, err = capsys.readouterr()
    assert WORST[REPLACE] in " ".join(out.split())
    assert "not refuted." in err


def test_looks_that_would_not_be_made_are_not_audited():
    task = replace(task_for(REPLACE, epsilon=0.1), rows=100)
    with pytest.raises(MechanismError, match="use a larger epsilon, or fewer columns"):
        audit(MECHANISM, task, SeededSource(0), draws=1000)


# Mistakes.


def noise(times):
    right = looks.add_symmetric_noise
    return lambda matrix, off, on, rng: right(matrix, times * off, times * on, rng)


def a_column_forgotten(columns, neighbours, rows_per_unit, right=looks.counts_sensitivity):
    return right(columns - 1, neighbours, rows_per_unit)


def of_adding_a_row(columns, neighbours, rows_per_unit, right=looks.counts_sensitivity):
    return right(columns, ADD_REMOVE, rows_per_unit)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_half_of_the_noise(neighbours, monkeypatch):
    monkeypatch.setattr(looks, "add_symmetric_noise", noise(0.5))
    found = audited(neighbours, 4000)
    assert told_apart(found)
    assert any(fault.startswith("number ") for fault in found.faults)


def test_four_per_cent_less_noise_is_seen(monkeypatch):
    """The tables are hardly told apart better, but the law is another."""
    monkeypatch.setattr(looks, "add_symmetric_noise", noise(0.96))
    assert any(fault.startswith("number ") for fault in audited(REPLACE, 30_000).faults)


@pytest.mark.parametrize(
    ("mistake", "neighbours"),
    [(a_column_forgotten, REPLACE), (a_column_forgotten, ADD_REMOVE), (of_adding_a_row, REPLACE)],
)
def test_a_sensitivity_that_is_too_small(mistake, neighbours, monkeypatch):
    monkeypatch.setattr(looks, "counts_sensitivity", mistake)
    found = audited(neighbours, 20_000)
    assert told_apart(found), (found.counted_epsilon, found.strength)
    assert any("looks have a shift of" in fault for fault in found.faults)


def test_a_shift_that_is_counted_for_half(monkeypatch):
    """The rounds then have more than looks leave."""
    right = looks.look_shift
    monkeypatch.setattr(looks, "look_shift", lambda *given: right(*given) / 2)
    found = audited(REPLACE, 4000)
    assert told_apart(found)
    assert any("looks have a shift of" in fault for fault in found.faults)
    assert any("the parameters have delta" in fault for fault in found.faults)


def test_a_shift_that_is_not_taken_off(monkeypatch):
    monkeypatch.setattr(looks, "shift_left", lambda mu, shifts: mu)
    found = audited(ADD_REMOVE, 1000)
    assert any("the parameters have delta" in fault for fault in found.faults)


def noted_too_little(place, first, *rest, right=looks.noted_shift):
    return 0.9 * right(place, first, *rest)


def noted_once(place, first, *rest):
    """That of the first look, with all of them."""
    return first


@pytest.mark.parametrize(("mistake", "look"), [(noted_too_little, 1), (noted_once, 2)])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_ledger_is_told_too_little(mistake, look, neighbours, monkeypatch):
    monkeypatch.setattr(looks, "noted_shift", mistake)
    assert f"less is noted with look {look} than it and those before it spend" in audited(neighbours, 1000).faults


def test_a_row_that_counts_in_two_bins_of_a_column(monkeypatch):
    right = Cells.in_bins
    monkeypatch.setattr(Cells, "in_bins", lambda self, bins: right(self, bins) + np.roll(right(self, bins), 1))
    assert told_apart(audited(ADD_REMOVE, 20_000))


def learn_from_the_true_counts(task, rng, mu, rows, sample=None, rules=ranges):
    """A copy of ``looks.learn`` whose next bins are made of counts without noise."""
    seen, shifts, declared = [], (), looks.wide_columns(task)
    while (bins := rules.next_bins(seen, declared)) is not None:
        answer = yield CountsQuestion(bins)
        sd = looks.counts_sd(len(bins.inner), rows, mu, task, place=len(seen))
        shifts = (*shifts, looks.look_shift(sd, len(bins.inner), task.neighbours, 1))
        yield Drawing(len(seen) + 1, len(seen) + 2, GaussianCost(mu))
        publish(looks.add_symmetric_noise(known(answer.gram, rng), sd, sd, rng), SymmetricGaussian(sd, sd), rng)
        seen.append(ranges.Look(bins, bins.unpacked(answer.gram), 1e-3))
    return looks.Looked(task, shifts, (1.0,) * len(shifts))


@pytest.mark.parametrize("neighbours", Neighbours)
def test_bins_that_follow_the_rows_are_seen_when_a_release_is_held_again(neighbours, monkeypatch):
    monkeypatch.setattr(whitened_noise, "learn", learn_from_the_true_counts)
    found = audited(neighbours, 1000)
    assert any("question 2 depends on the table" in fault for fault in found.faults), found.faults


# The tables of an audit are counted and encoded as tables are.


@pytest.mark.parametrize("neighbours", Neighbours)
def test_cells_are_counted_as_by_the_engines(neighbours):
    law = LooksLaw(LooksLaw.prepared(task_for(neighbours)), {})
    for pair in law.worst_pairs():
        for table in (pair.first, pair.second):
            rows = np.repeat(table.cells, table.counts.astype(int), axis=0)
            bins = ranges.next_bins([], table.schema.looked_at)
            counts = BinCounts(table.schema, bins)
            for piece in open_source(dict(zip(table.schema.names, rows.T, strict=True))).pieces(table.schema.names):
                counts.add(piece.batch)
            assert np.array_equal(counts.total().high, bins.packed(table.in_bins(bins)))


def test_a_release_that_is_held_again_learns_scales():
    """Else its later bins, and the rows that are scaled, would not be looked at."""
    task = LooksLaw.prepared(task_for(REPLACE))
    law = LooksLaw(task, MECHANISM.calibrate(task))
    table = law.worst_pairs()[0].first
    outcome = hold(law.whole(MECHANISM).start(task, SeededSource(1)), lambda question: table.answer(question, task))
    assert set(outcome.learnt) == set(table.schema.names)
    assert outcome.parameters["looks"] > 1
