"""The session ledger: exact sums, no overspending, one account whatever is copied."""

from __future__ import annotations

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

import dpgram
from dpgram.accounting.compose import PlainCost
from dpgram.errors import BudgetError, BudgetSpentError, LedgerError, MechanismError, UnreadableTableError
from dpgram.ledger.base import Drawn, Ledger
from dpgram.terms.budget import Budget, Neighbours


def spend(ledger, epsilon, delta, what="release"):
    ledger.commit(ledger.reserve(Budget(epsilon, delta), Neighbours.REPLACE, what))


def test_it_is_a_ledger():
    assert isinstance(dpgram.SessionLedger(1, 1e-6), Ledger)


@pytest.mark.parametrize(("total", "part", "times"), [(0.3, 0.1, 3), (1.0, 0.1, 10), (100.0, 0.1, 1000), (1.0, 1 / 3, 3)])
def test_equal_parts_fit_whatever_floats_make_of_their_sum(total, part, times):
    """In floats three times 0.1 is more than 0.3; here it is 0.3, and the next part is refused."""
    ledger = dpgram.SessionLedger(total, delta=1e-3)
    assert ledger.total == dpgram.Budget(total, 1e-3)
    for _ in range(times):
        spend(ledger, part, 1e-7)
    assert ledger.left[0] < 1e-15
    with pytest.raises(BudgetSpentError):
        spend(ledger, 1e-6, 1e-30)


def test_a_release_too_large_is_refused_with_what_would_fit_and_that_fits():
    ledger = dpgram.SessionLedger(epsilon=1.0, delta=1e-6)
    spend(ledger, 1 / 3, 1e-7)
    with pytest.raises(
        BudgetSpentError, match="asks for epsilon 0.7 and delta 1e-07, but after 1 release .* left. .* is possible"
    ) as caught:
        spend(ledger, 0.7, 1e-7)
    assert len(ledger.entries) == 1
    spend(ledger, *caught.value.left)
    assert ledger.left == (0.0, 0.0)
    assert ledger.spent == (1.0, 1e-6)


def test_delta_alone_can_run_out():
    ledger = dpgram.SessionLedger(epsilon=10, delta=1e-6)
    with pytest.raises(BudgetSpentError):
        spend(ledger, 1, 2e-6)


def test_what_was_reserved_and_not_committed_counts():
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    ledger.reserve(Budget(0.6, 1e-7), Neighbours.REPLACE, "crashed")
    assert ledger.spent == (0.6, 1e-7)
    assert not ledger.entries[0].committed
    with pytest.raises(BudgetSpentError):
        spend(ledger, 0.6, 1e-7)


def test_a_copy_is_the_same_ledger_and_a_pickle_accepts_nothing():
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    away = pickle.loads(pickle.dumps(ledger))
    assert repr(away) == repr(pickle.loads(pickle.dumps(away))) == "SessionLedger(of another process: accepts no release)"
    asked = Budget(0.1, 1e-7), Neighbours.REPLACE, "x"
    for use in (
        lambda: away.reserve(*asked, unit="p", by_rounds=True),
        lambda: away.commit(ledger.reserve(*asked)),
        lambda: away.settle(1),
        *(lambda name=name: getattr(away, name) for name in ("total", "neighbours", "entries", "spent", "left")),
    ):
        with pytest.raises(LedgerError, match=r"works in one process only.*n_jobs.*FileLedger, which processes can share"):
            use()


def test_releases_in_other_processes_are_refused_in_our_own_words():
    """joblib says only that it cannot pickle the task, if a ledger cannot be pickled."""
    ledger = dpgram.SessionLedger(epsilon=10, delta=1e-3)
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
    task = joblib.delayed(dpgram.release)({"x": np.ones(50)}, schema, epsilon=1, delta=1e-6, ledger=ledger)
    with pytest.raises(LedgerError, match=r"SessionLedger, which works in one process only.*nothing was released"):
        joblib.Parallel(n_jobs=2)([task])
    assert not ledger.entries
    with joblib.parallel_config(backend="threading"):  # what the words advise
        joblib.Parallel(n_jobs=2)([task])
    assert len(ledger.entries) == 1


def test_a_fork_may_neither_spend_nor_settle_nor_note(monkeypatch):
    """Its copy of the account would allow the whole budget once more."""
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    asked = Budget(0.5, 1e-7), Neighbours.REPLACE, "x"
    reserved = ledger.reserve(*asked, by_rounds=True)
    other = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: other)
    for use in (
        lambda: ledger.reserve(*asked),
        lambda: ledger.commit(reserved),
        lambda: ledger.note_round(reserved, Drawn(1, 2, PlainCost(0.1, 1e-8))),
        lambda: ledger.settle(1),
    ):
        with pytest.raises(LedgerError, match="belongs to another process"):
            use()
    assert len(ledger.entries) == 1


def test_other_neighbours_and_other_ledgers_are_refused():
    ledger, other = dpgram.SessionLedger(1, 1e-6), dpgram.SessionLedger(1, 1e-6, neighbours="add-remove")
    assert other.neighbours is Neighbours.ADD_REMOVE
    with pytest.raises(LedgerError, match="cannot be added"):
        other.reserve(Budget(0.1, 1e-7), Neighbours.REPLACE, "x")
    theirs = other.reserve(Budget(0.1, 1e-7), Neighbours.ADD_REMOVE, "x")
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.commit(theirs)
    other.commit(theirs)
    with pytest.raises(LedgerError, match="already committed"):
        other.commit(theirs)
    with pytest.raises(LedgerError, match="must be"):
        dpgram.SessionLedger(1, 1e-6, neighbours="both")
    with pytest.raises(BudgetError):
        dpgram.SessionLedger(0, 1e-6)


def test_threads_together_do_not_overspend():
    ledger = dpgram.SessionLedger(epsilon=5, delta=1e-4)

    def attempt(_) -> bool:
        try:
            spend(ledger, 0.1, 1e-7)
        except BudgetSpentError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(attempt, range(200))) == 50
    assert ledger.spent[0] == 5.0


def test_a_release_reserves_before_a_row_is_read_and_commits_after(table, schema):
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    dpgram.release(table, schema, epsilon=0.6, delta=1e-7, mechanism="gaussian-noise", ledger=ledger)
    (entry,) = ledger.entries
    assert entry.committed
    assert entry.reservation.what == "gaussian-noise release of 4 columns"
    read = []
    with pytest.raises(BudgetSpentError):
        dpgram.release(table, schema, epsilon=0.6, delta=1e-7, mechanism="gaussian-noise", ledger=ledger, progress=read.append)
    assert read == []


def test_a_release_that_fails_on_its_checks_costs_nothing(table, schema):
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    with pytest.raises(dpgram.DpgramError):
        dpgram.release({"x": np.zeros(3)}, schema, epsilon=0.5, delta=1e-7, ledger=ledger)
    with pytest.raises(MechanismError):  # found by the mechanism itself, when it starts
        dpgram.release(table, schema, epsilon=0.5, delta=1e-7, ledger=ledger, mechanism="gaussian-noise", repair="magic")
    assert ledger.entries == ()
    with pytest.raises(LedgerError, match="ledger is a dict and must be a ledger"):
        dpgram.release(table, schema, epsilon=0.5, delta=1e-7, ledger={})
    with pytest.raises(LedgerError, match="there is no ledger at .*ledger.db"):
        dpgram.release(table, schema, epsilon=0.5, delta=1e-7, ledger="ledger.db")


def test_a_release_that_fails_on_the_rows_counts_as_spent(schema):
    import pyarrow as pa

    def broken():
        raise OSError("SECRET")
        yield

    fields = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("c", pa.string()), ("b", pa.bool_())])
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    with pytest.raises(UnreadableTableError):
        dpgram.release(pa.RecordBatchReader.from_batches(fields, broken()), schema, epsilon=0.5, delta=1e-7, ledger=ledger)
    assert [entry.committed for entry in ledger.entries] == [False]
    assert ledger.spent == (0.5, 1e-7)


def test_a_seeded_release_says_so_in_the_ledger(table, schema):
    ledger = dpgram.SessionLedger(epsilon=1, delta=1e-6)
    dpgram.release(table, schema, epsilon=0.5, delta=1e-7, mechanism="gaussian-noise", ledger=ledger, insecure_seed=1)
    assert "NOT PRIVATE" in ledger.entries[0].reservation.what
    assert "1 release," in repr(ledger)
