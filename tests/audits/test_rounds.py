"""Mistakes in a release of several rounds: the audit finds each one, and does not accuse the mechanism as it is.

All draws are seeded. A right mechanism is accused with probability at most 1e-6 per audit (``CONFIDENCE``)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpgram.audits.draws import releases
from dpgram.audits.laws.registry import law_of
from dpgram.audits.neighbours import Rows
from dpgram.audits.replay import faults_of_replay
from dpgram.audits.run import audit
from dpgram.errors import CalibrationError
from dpgram.linalg.scales import weights
from dpgram.mechanisms import registry, whitened_noise, whitening
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, hold, publish
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise, diagonal_sd
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.mechanisms.whitened_noise import round_sds, with_rounds
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import Round, SymmetricGaussian
from dpgram.terms.scales import ONE_CLIP

CONFIDENCE = 1 - 1e-6
REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
WHITENED = MECHANISMS["whitened-noise"]
WORST = {REPLACE: "orthogonal rows", ADD_REMOVE: "one row more"}


def task_for(neighbours, dim=2, *, hint=2000.0, intercept=False):
    options = {"table_rows": hint} if hint else {}
    return registry.task(WHITENED, Budget(1.0, 0.01), neighbours, dim, 1.5, "exact", options, intercept=intercept)


def law_for(task):
    return law_of(WHITENED.name)(task, WHITENED.calibrate(task))


def audited(mechanism, neighbours, draws, seed=1, **options):
    (found,) = audit(
        mechanism,
        task_for(neighbours, intercept=options.pop("intercept", False)),
        SeededSource(seed),
        draws=draws,
        confidence=CONFIDENCE,
        only=[options.pop("only", WORST[neighbours])],
        nearby=False,
        **options,
    )
    return found


def told_apart(found):
    """Whether the tables were told apart better than is claimed, by counting alone."""
    return found.strength > 1 or found.counted_epsilon > found.claimed_epsilon


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_worst_pair_comes_close_to_the_proven_curve(neighbours):
    """At 60,000 releases the bound by shape reaches four fifths of the proven epsilon, and the law on the pair nearly all of it."""
    found = audited(WHITENED, neighbours, 60_000)
    assert not found.broken, found.faults
    assert found.pair_epsilon > 0.96
    assert found.power > 0.8


@pytest.mark.parametrize("pair", ["one row more, turned", "the last direction"])
@pytest.mark.parametrize("hint", [2000.0, None])
def test_nobody_is_accused_with_or_without_a_hint(pair, hint):
    task = task_for(ADD_REMOVE, hint=hint, intercept=True)
    (found,) = audit(WHITENED, task, SeededSource(2), draws=2000, confidence=CONFIDENCE, only=[pair], nearby=False)
    assert not found.broken, found.faults


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", Neighbours)
def test_with_its_own_maps_the_worst_pair_is_as_bad_and_no_worse(neighbours, monkeypatch):
    monkeypatch.setattr(law_of(WHITENED.name), "many_at_once", staticmethod(lambda mechanism: mechanism))
    found = audited(WHITENED, neighbours, 1000)
    assert not found.broken, found.faults
    assert found.pair_epsilon > 0.8


# A copy of the conversation that can be led astray in one place at a time.


def copied(
    *,
    looks_at=None,
    rounds=None,
    sds=lambda sds: sds,
    drawn=lambda place, of, off: off,
    relation=None,
    outside=lambda off: off,
    shares_noise=False,
):
    def start(task, rng, next_map=whitening.next_map, finished=whitening.finished, scales_of=whitening.scales):
        if relation:
            task = replace(task, neighbours=relation)
        mu = whitened_noise.calibrate_mu(task.budget)
        through = whitening.first_map(task.dim, task.row_bound)
        answer = yield GramQuestion(1.0, through)
        rows = whitened_noise.hinted_rows(task) if answer.rows is None else float(answer.rows)
        plan = whitening.rules(task.dim, rows, mu)
        if rounds is not None:
            plan = replace(plan, shares=rounds(answer.gram, plan.shares))
        chosen = sds(round_sds(mu, plan.shares, task.neighbours, task.rows_per_unit))
        seen, kept = [], []
        for place, off in enumerate(chosen):
            if seen:
                through = next_map(seen, plan, rows, task)
                scales = scales_of(through, task) if place == len(chosen) - 1 else ONE_CLIP
                answer = yield GramQuestion(1.0, through, scales=scales)
            used = drawn(place, len(chosen), off)
            noisy = [add_symmetric_noise(answer.gram, used, diagonal_sd(used), rng)]
            for outer in answer.outer:
                sd = outside(used)
                noisy.append(
                    noisy[0] - answer.gram + outer if shares_noise else add_symmetric_noise(outer, sd, diagonal_sd(sd), rng)
                )
            gram, *more = (publish(each, SymmetricGaussian(used, diagonal_sd(used)), rng)[0] for each in noisy)
            kept.append(Round(through.matrix, gram, off, 1.0, tuple(more), scales if seen else ONE_CLIP))
            seen.append(kept[-1] if looks_at is None else looks_at(kept[-1], answer.gram))
        return replace(finished(kept, rows, task), parameters=with_rounds(task, chosen))

    return start


def true_answer(last, gram):
    """The map that follows is made of the sum itself."""
    return replace(last, gram=gram if last.gram.ndim == gram.ndim else np.broadcast_to(gram, last.gram.shape))


def fewer_where_the_first_column_is_longer(gram, shares):
    """The number of rounds is decided by the first sum, before its noise."""
    return (0.5, 0.5) if gram[0, 0] > gram[-1, -1] else shares


def every_round_has_all(sds):
    return tuple(min(sds) for _ in sds)


COUNTED = {  # found by telling tables apart: mistake -> relation, mutant, draws
    "a map made of the true sum": (REPLACE, copied(looks_at=true_answer), 1500),
    "a map made of the true sum, add-remove": (ADD_REMOVE, copied(looks_at=true_answer), 1500),
    "every round spends all": (REPLACE, copied(sds=every_round_has_all), 2000),
    "the last round has half of its noise": (
        ADD_REMOVE,
        copied(drawn=lambda place, of, off: off / 2 if place == of - 1 else off),
        4000,
    ),
    "noise for adding a row, where one is replaced": (REPLACE, copied(relation=ADD_REMOVE), 12_000),
    "outer matrices have half of the noise": (ADD_REMOVE, copied(outside=lambda off: off / 2), 8000),
    "noise is shared between matrices": (REPLACE, copied(shares_noise=True), 1500),
    "noise is shared between matrices, add-remove": (ADD_REMOVE, copied(shares_noise=True), 1500),
}


@pytest.mark.parametrize("mistake", COUNTED)
def test_the_tables_are_told_apart(mistake):
    neighbours, start, draws = COUNTED[mistake]
    found = audited(replace(WHITENED, start=start), neighbours, draws)
    assert told_apart(found), (found.counted_epsilon, found.strength)


def test_the_copy_without_a_mistake_is_not_accused():
    for neighbours in Neighbours:
        found = audited(replace(WHITENED, start=copied()), neighbours, 4000)
        assert not found.broken, found.faults


def test_four_per_cent_less_noise_in_one_round_is_seen():
    """In an early round, which has a small share of the budget: the tables are hardly told apart better, but the law is another."""
    mutant = replace(WHITENED, start=copied(drawn=lambda place, of, off: 0.96 * off if place == 1 else off))
    found = audited(mutant, REPLACE, 50_000)
    assert any(fault.startswith("number ") for fault in found.faults), found.faults


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_number_of_rounds_must_not_follow_the_rows(neighbours):
    mutant = replace(WHITENED, start=copied(rounds=fewer_where_the_first_column_is_longer))
    found = audited(mutant, neighbours, 1000)
    assert any("number of questions depends on the table" in fault for fault in found.faults)
    assert any("rounds is not what the calibration says" in fault for fault in found.faults)


def test_shares_that_add_up_to_more_than_one_are_refused_and_found(monkeypatch):
    right = whitening.rules

    def generous(dim, rows, mu):
        plan = right(dim, rows, mu)
        return replace(plan, shares=tuple(1.05 * share for share in plan.shares))

    monkeypatch.setattr(whitening, "rules", generous)
    with pytest.raises(CalibrationError, match="nothing was released"):
        next(WHITENED.start(task_for(REPLACE), SeededSource(0)))
    found = audited(WHITENED, REPLACE, 1000)
    assert any("the parameters have delta" in fault for fault in found.faults)


def test_a_curve_that_forgets_rounds_does_not_excuse_itself(monkeypatch):
    """The shift of the largest round in place of all together, and shares by it: parameters say that all is well."""
    right = whitening.rules
    monkeypatch.setattr(whitening, "rules", lambda *given: replace(right(*given), shares=(1.0,) * 3))
    monkeypatch.setattr(
        whitened_noise,
        "total_shift",
        lambda sds, neighbours, rows_per_unit, looks=(): whitened_noise_shift(min(sds), neighbours),
    )
    found = audited(WHITENED, ADD_REMOVE, 4000)
    assert any("the parameters have delta" in fault for fault in found.faults)
    assert any("the rounds have delta" in fault for fault in found.faults)
    assert told_apart(found)


def whitened_noise_shift(off, neighbours):
    return whitened_noise.gram_sensitivity(1.0, neighbours, 1) / (math.sqrt(2) * off)


# Mistakes on the way from rows to the sum, which the curator answers with.


def alone(gram, scales):
    """A sum at one scale; at the others there is nothing."""
    return [gram, *(np.zeros_like(gram) for _ in scales[1:])]


def clipped_before_the_map(self, through, scales=ONE_CLIP):
    rows = self.rows / np.maximum(np.linalg.norm(self.rows, axis=-1, keepdims=True) / 1.5, 1.0)
    mapped = rows @ np.swapaxes(through, -1, -2)
    return alone(np.swapaxes(mapped * self.counts[:, None], -1, -2) @ mapped, scales)


def shrunk_by_half_of_the_columns(self, through, scales=ONE_CLIP):
    """The norm after the map is taken over the last column alone."""
    mapped = self.rows @ np.swapaxes(through, -1, -2)
    mapped = mapped / np.maximum(np.abs(mapped[..., -1:]), 1.0)
    return alone(np.swapaxes(mapped * self.counts[:, None], -1, -2) @ mapped, scales)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("wrong", [clipped_before_the_map, shrunk_by_half_of_the_columns])
def test_a_bound_that_does_not_hold_after_the_map(wrong, neighbours, monkeypatch):
    monkeypatch.setattr(Rows, "grams", wrong)
    assert told_apart(audited(WHITENED, neighbours, 2000))


# Mistakes in how a long row is shared between scales.


def a_whole_row_in_each(squares, scales, switch):
    """Without a division by the norm of the shares: the first sum has the row at norm one, and the other as much as it holds."""
    out = weights(squares, scales, switch)
    out[0] = 1 / np.maximum(squares, 1.0)
    for place in range(1, len(scales)):
        out[place] = np.where(out[place] > 0, out[0], 0.0)
    return out


def clipped_at_every_scale(squares, scales, switch):
    """The Gram of rows clipped at each scale in turn, each in its own units: three releases for the price of one."""
    return np.array([1 / np.maximum(squares, scale) for scale in scales])


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("wrong", [a_whole_row_in_each, clipped_at_every_scale])
def test_a_row_that_is_in_several_sums_with_more_than_its_share(wrong, neighbours, monkeypatch):
    monkeypatch.setattr("dpgram.audits.neighbours.weights", wrong)
    assert told_apart(audited(WHITENED, neighbours, 25_000))


@pytest.mark.parametrize("neighbours", Neighbours)
def test_no_pair_whose_rows_are_shared_is_told_apart_better_than_proven(neighbours):
    task = task_for(neighbours)
    law = law_for(task)
    names = [pair.name for pair in law.worst_pairs()][-4:]
    for found in audit(WHITENED, task, SeededSource(3), draws=3000, confidence=CONFIDENCE, only=names, nearby=False):
        assert not found.broken, (found.pair, found.faults)
    moved = {}
    for pair in law.worst_pairs():
        for through in (np.eye(2) / 0.15, np.eye(2) * 3, np.array([[7.0, 1.0], [-2.0, 5.0]])):
            sums = [table.grams(through, (1.0, 4.0, 16.0)) for table in (pair.first, pair.second)]
            far = math.sqrt(sum(np.sum((one - other) ** 2) for one, other in zip(*sums, strict=True)))
            moved[pair.name] = max(moved.get(pair.name, 0.0), far)
    most = {REPLACE: math.sqrt(2), ADD_REMOVE: 1.0}[neighbours]
    assert all(far <= most * (1 + 1e-12) for far in moved.values()), moved
    reached = {REPLACE: "a row turns and moves", ADD_REMOVE: "one row more, in the first scale"}[neighbours]
    assert moved[reached] == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_number_of_rows_that_is_told_where_it_is_protected(intercept, monkeypatch):
    right = Rows.answer
    monkeypatch.setattr(
        Rows, "answer", lambda self, question, task: replace(right(self, question, task), rows=int(self.counts.sum()))
    )
    found = audited(WHITENED, ADD_REMOVE, 1000, intercept=intercept)
    assert any("depends on the table" in fault for fault in found.faults)


# The same conversation on the other table, with the first one's matrices.


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("source", [SeededSource, ExactSource])
def test_with_the_same_matrices_published_nothing_else_differs(neighbours, dim, source):
    task = task_for(neighbours, dim)
    for pair in law_for(task).worst_pairs():
        assert faults_of_replay(WHITENED, task, pair, source(5)) == []


@pytest.mark.parametrize("hint", [None, 500.0])
def test_rows_that_are_counted_by_the_intercept_are_counted_in_what_was_published(hint):
    """Tables of n and n + 1 rows, with a column of ones: nothing but the matrices tells how many there are."""
    rng = np.random.default_rng(1)
    common = np.column_stack([np.ones(50), rng.uniform(-1, 1, (50, 2))])
    one = Rows(np.vstack([common, [1.0, 1.0, -1.0]]), np.ones(51))
    two = Rows(common, np.ones(50))
    task = task_for(ADD_REMOVE, 3, hint=hint, intercept=True)
    pair = replace(law_for(task).worst_pairs()[0], first=one, second=two)
    assert faults_of_replay(WHITENED, task, pair, SeededSource(6)) == []


def test_many_releases_at_once_are_those_that_are_made_one_at_a_time():
    """The same numbers from the source give the same release: what is drawn at once is the mechanism, not a copy of it."""
    task = task_for(ADD_REMOVE, 2)
    quick = law_for(task).many_at_once(WHITENED)
    table = law_for(task).worst_pairs()[0].first
    at_once = releases(quick, task, table, SeededSource(8), 1)

    def answer(question):
        gram, *outer = table.grams(question.through.matrix, question.scales)
        return GramAnswer(gram, None, tuple(outer))

    alone = hold(quick.start(task, SeededSource(8)), answer)
    for one, other in zip(at_once.noise.rounds, alone.noise.rounds, strict=True):
        assert np.reshape(one.through, (2, 2)) == pytest.approx(other.through, rel=1e-6)
        assert one.gram[0] == pytest.approx(other.gram, rel=1e-5, abs=1e-4)
        assert one.scales == other.scales
        assert [each[0] for each in one.outer] == [pytest.approx(each, rel=1e-5, abs=1e-4) for each in other.outer]
    assert len(at_once.noise.last.outer) == 2


def test_the_claim_is_the_curve_of_all_rounds():
    for neighbours in Neighbours:
        claim = law_for(task_for(neighbours)).claim()
        assert claim.proven_epsilon() == pytest.approx(1.0, rel=1e-3)
