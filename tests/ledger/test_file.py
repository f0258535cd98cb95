"""The ledger in a file: nothing is spent twice, whoever writes at once, is killed, or tampers with it."""

from __future__ import annotations

import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.accounting.compose import GaussianCost, PlainCost, SamplingCost, composed_delta
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.errors import BudgetSpentError, LedgerError, LedgerFullError, UnreadableTableError, UnsavedReleaseError
from dpgram.ledger import file
from dpgram.ledger.base import Drawn, Ledger, Reservation
from dpgram.ledger.file import FileLedger
from dpgram.ledger.lines import FIRST, chained
from dpgram.terms.budget import Budget, Neighbours
from tests.conftest import small_schema


def opened(folder, name="ledger.sqlite", **changes):
    wanted = {"epsilon": 1.0, "delta": 1e-6, "unit": "person", "dataset": "visits", **changes}
    return FileLedger.create(folder / name, **wanted)


def spend(ledger, epsilon, delta, cost=None):
    ledger.commit(ledger.reserve(Budget(epsilon, delta), Neighbours.REPLACE, "a release", unit="person", cost=cost))


def gaussian(epsilon, delta):
    return GaussianCost(calibrate_mu(Budget(epsilon, delta)))


def test_it_is_a_ledger_and_a_copy_is_the_same(tmp_path):
    ledger = opened(tmp_path)
    assert isinstance(ledger, Ledger)
    for other in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger)), FileLedger(str(ledger.path))):
        spend(other, 0.1, 1e-8)
    assert len(ledger.account().entries) == 3
    assert ledger.account().total == Budget(ledger.account().opened.epsilon, ledger.account().opened.delta)


@pytest.mark.parametrize(("total", "part", "times"), [(0.3, 0.1, 3), (1.0, 0.1, 10), (1.0, 1 / 3, 3)])
def test_equal_parts_fit_exactly(tmp_path, total, part, times):
    """By the plain sum; a further part is refused by it, and by composition."""
    ledger = opened(tmp_path, epsilon=total, delta=1e-3, composition="plain")
    for _ in range(times):
        spend(ledger, part, 1e-9)
    with pytest.raises(LedgerFullError, match="No further release at this delta is possible"):
        spend(ledger, 1e-3, 1e-9)


def test_a_hair_more_than_is_left_is_refused(tmp_path):
    """Sums are those of the decimals: no tolerance adds up over many releases."""
    ledger = opened(tmp_path, composition="plain")  # 1 and 1e-6
    spend(ledger, 0.5, 5e-7)
    for epsilon, delta in ((0.5 + 1e-9, 1e-9), (0.1, 5e-7 * (1 + 1e-9))):
        with pytest.raises(LedgerFullError):
            spend(ledger, epsilon, delta)
    spend(ledger, 0.5, 5e-7)


def test_gaussian_releases_compose(tmp_path):
    """Seven releases of epsilon 1 fit into epsilon 3; the sum of epsilons would let three through."""
    ledger = opened(tmp_path, epsilon=3.0, delta=1e-6)
    costs = [gaussian(1.0, 1e-7)]
    made = next(k for k in range(1, 100) if composed_delta(3.0, costs * (k + 1)) > 1e-6)
    assert made > 3
    for _ in range(made):
        spend(ledger, 1.0, 1e-7, *costs)
    with pytest.raises(
        LedgerFullError, match=r"epsilon 1 and delta 1e-07.*At this delta, a release of at most epsilon 0\.\d+ is possible"
    ) as full:
        spend(ledger, 1.0, 1e-7, *costs)
    left, delta = full.value.left
    spend(ledger, left, delta, gaussian(left, delta))
    account = ledger.account()
    assert account.spending.epsilon(1e-6) <= 3.0 * (1 + 1e-5)
    assert float(account.spending.plain[0]) > made


def test_plain_sums_alone_count_where_that_was_chosen(tmp_path):
    ledger = opened(tmp_path, epsilon=3.0, composition="plain")
    for _ in range(3):
        spend(ledger, 1.0, 1e-7, gaussian(1.0, 1e-7))
    with pytest.raises(BudgetSpentError):
        spend(ledger, 1.0, 1e-7, gaussian(1.0, 1e-7))


def test_what_was_reserved_and_not_committed_is_spent(tmp_path):
    ledger = opened(tmp_path)
    ledger.reserve(Budget(1.0, 1e-6), Neighbours.REPLACE, "crashed")
    assert ledger.account().entries[0].committed is None
    with pytest.raises(BudgetSpentError):
        spend(ledger, 0.1, 1e-7)


def test_another_relation_or_unit_is_refused(tmp_path):
    ledger = opened(tmp_path)
    with pytest.raises(LedgerError, match="the ledger is for neighbours = 'replace', but the release is for 'add-remove'"):
        ledger.reserve(Budget(0.1, 1e-7), Neighbours.ADD_REMOVE, "x")
    with pytest.raises(LedgerError, match="protects one 'person', but the release's schema says unit = 'visit'"):
        ledger.reserve(Budget(0.1, 1e-7), Neighbours.REPLACE, "x", unit="visit")
    assert not ledger.account().entries


def test_a_reservation_is_committed_once_and_where_it_was_made(tmp_path):
    one, two = opened(tmp_path), opened(tmp_path, "other.sqlite")
    reservation = one.reserve(Budget(0.1, 1e-7), Neighbours.REPLACE, "x")
    with pytest.raises(LedgerError, match="is not in the ledger. It belongs to another ledger"):
        two.commit(reservation)
    one.commit(reservation)
    with pytest.raises(LedgerError, match="already committed"):
        one.commit(reservation)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"unit": " "}, "unit is ' ' and must be a name, such as 'person'"),
        ({"dataset": ""}, "dataset is '' and must be a name, such as 'visits-2026'"),
        ({"neighbours": "friends"}, "neighbours is 'friends'"),
        ({"composition": "hope"}, "composition is 'hope'"),
    ],
)
def test_a_bad_account_is_not_opened(tmp_path, changes, message):
    with pytest.raises(dpgram.DpgramError, match=message):
        opened(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_an_account_is_opened_once_and_must_be_there(tmp_path):
    ledger = opened(tmp_path)
    before = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="exists. A ledger is created only once"):
        opened(tmp_path)
    assert ledger.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.sqlite"]
    with pytest.raises(LedgerError, match="there is no ledger at"):
        FileLedger(tmp_path / "none.sqlite").account()
    with pytest.raises(LedgerError, match="a ledger cannot be created at"):
        opened(tmp_path / "no folder")
    (tmp_path / "text.sqlite").write_text("not a ledger")
    with pytest.raises(LedgerError, match="not a database"):
        FileLedger(tmp_path / "text.sqlite").account()
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(LedgerError, match="no such table"):
        FileLedger(tmp_path / "empty.sqlite").account()


TAMPERED = {
    "a line changed": "update lines set text = replace(text, '0.25', '0.05') where number = 4",
    "a line removed": "delete from lines where number = 4",
    "the last line removed": "delete from lines where number = (select max(number) from lines)",
    "lines exchanged": (
        "update lines set text = case number when 2 then (select text from lines where number = 3) "
        "else (select text from lines where number = 2) end where number in (2, 3)"
    ),
    "a line put in": "insert into lines (text, hash) select text, hash from lines where number = 2",
    "the account changed": "update lines set text = replace(text, '1.0', '9.0') where number = 1",
    "no line left": "delete from lines",
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_changed_ledger_is_noticed(tmp_path, how):
    ledger = opened(tmp_path)
    for _ in range(3):
        spend(ledger, 0.25, 1e-8)
    database = sqlite3.connect(ledger.path, isolation_level=None)
    with pytest.raises(sqlite3.Error, match="lines are only added"):
        database.execute("delete from lines where number = 4")
    database.executescript("drop trigger lines_stay; drop trigger lines_remain")
    database.execute(TAMPERED[how])
    database.close()
    with pytest.raises(LedgerError, match="is inconsistent at line|contains a line that this version cannot read"):
        ledger.account()
    with pytest.raises(LedgerError):
        spend(ledger, 0.01, 1e-9)


def forge(ledger, number, edit):
    """Line ``number`` after an edit, and the hashes of all lines as they must be: what a stranger can write as well as dpgram."""
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as database:
        database.executescript("drop trigger lines_stay")
        seal = FIRST
        for place, text in database.execute("select number, text from lines order by number").fetchall():
            if place == number:
                content = json.loads(text)
                edit(content)
                text = json.dumps(content).encode()
            seal = chained(seal, place, text)
            database.execute("update lines set text = ?, hash = ? where number = ?", (text, seal, place))


@pytest.mark.parametrize(
    ("number", "edit", "message"),
    [
        (
            2,
            lambda line: line["cost"].update(numbers=[]),
            r"line 2 of .* a cost of kind 'gaussian' has 0 numbers, but it needs 1 \(mu\)",
        ),
        (
            2,
            lambda line: line["cost"].update(numbers=[0.1, 0.2]),
            r"has 2 numbers, but it needs 1 \(mu\). The file was changed",
        ),
        (2, lambda line: line["cost"].update(kind="plain"), r"has 1 numbers, but it needs 2 \(epsilon, delta\)"),
        (2, lambda line: line["cost"].update(kind="plain", numbers=[-1.0, 1e-9]), "negative or not finite"),
        (2, lambda line: line.update(epsilon=-1.0), "line 2 of .* epsilon is -1 and must be a positive"),
        (2, lambda line: line.update(rows_per_unit=0), "rows_per_unit is 0 and must be 1 or more"),
        (1, lambda line: line.update(delta=2.0), "line 1 of .* delta is 2 and must lie"),
        (3, lambda line: line["spent"].update(numbers=[0.1, 0.1, 0.1]), "line 3 of .* has 3 numbers, but it needs 1"),
        (3, lambda line: line.update(round=5), "it notes round 5 of 2"),
    ],
)
def test_a_forged_line_whose_hash_fits_is_told_in_words(tmp_path, number, edit, message):
    ledger = opened(tmp_path)
    reserved = ledger.reserve(Budget(0.25, 1e-8), Neighbours.REPLACE, "a release", cost=GaussianCost(0.05), by_rounds=True)
    ledger.note_round(reserved, Drawn(1, 2, GaussianCost(0.03)))
    ledger.commit(reserved)
    forge(ledger, number, lambda line: None)
    assert len(ledger.account().entries) == 1
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as database:
        database.executescript("create trigger lines_stay before update on lines begin select raise(abort, 'only added'); end")
    forge(ledger, number, edit)
    for use in (ledger.account, lambda: spend(ledger, 0.01, 1e-9)):
        with pytest.raises(LedgerError, match=message):
            use()


def test_a_line_with_a_new_hash_of_its_own_breaks_the_next(tmp_path):
    """Each hash stands for all lines before it: to change one line all that follow must be made anew, and the seal shows that."""
    ledger = opened(tmp_path)
    spend(ledger, 0.5, 1e-8)
    with contextlib.closing(sqlite3.connect(ledger.path)) as database, database:
        ((first,),) = database.execute("select hash from lines where number = 1")
        ((text,),) = database.execute("select text from lines where number = 2")
        changed = bytes(text).replace(b"0.5", b"0.1")
        assert changed != text
        database.executescript("drop trigger lines_stay")
        database.execute("update lines set text = ?, hash = ? where number = 2", (changed, chained(first, 2, changed)))
    with pytest.raises(LedgerError, match="inconsistent at line 3"):
        ledger.account()


def test_a_line_has_a_length(tmp_path):
    """A reader prints it; a text without an end would keep it busy for hours."""
    ledger = opened(tmp_path)
    with pytest.raises(LedgerError, match="has more than 100,000 characters"):
        ledger.reserve(Budget(0.1, 1e-8), Neighbours.REPLACE, "x" * 200_000)
    assert ledger.account().entries == ()
    with contextlib.closing(sqlite3.connect(ledger.path)) as database, database:
        ((first,),) = database.execute("select hash from lines where number = 1")
        text = b'{"line":"settled","time":"' + b"x" * 200_000 + b'","number":1}'
        database.execute("insert into lines (text, hash) values (?, ?)", (text, chained(first, 2, text)))
    with pytest.raises(LedgerError, match="line 2 of .* has more than 100,000 characters"):
        ledger.account()


def test_the_seal_tells_a_ledger_whose_end_was_cut_off_cleverly(tmp_path):
    ledger = opened(tmp_path)
    spend(ledger, 0.25, 1e-8)
    seal = ledger.account().seal
    spend(ledger, 0.25, 1e-8)
    database = sqlite3.connect(ledger.path, isolation_level=None)
    database.executescript("drop trigger lines_remain; delete from lines where number > 3; update sqlite_sequence set seq = 3")
    database.close()
    assert ledger.account().seal == seal  # what the officer noted after the second release was another one


COSTS = st.one_of(
    st.builds(GaussianCost, st.floats(0.01, 0.5)),
    st.builds(SamplingCost, st.floats(5, 500), st.floats(20, 500)),
    st.just(None),
)


@settings(deadline=None, max_examples=15)
@given(asked=st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(1e-9, 1e-6), COSTS), min_size=1, max_size=6))
def test_whatever_is_let_through_stays_within_the_budget(tmp_path_factory, asked):
    ledger = opened(tmp_path_factory.mktemp("ledger"), epsilon=2.0, delta=1e-5)
    let = []
    for epsilon, delta, cost in asked:
        try:
            spend(ledger, epsilon, delta, cost)
        except LedgerFullError:
            continue
        let.append((epsilon, delta, cost))
    account = ledger.account()
    assert len(account.entries) == len(let)
    assert account.spending.epsilon(1e-5) <= 2.0 * (1 + 1e-5)
    assert [entry.cost for entry in account.entries] == [c or PlainCost(e, d) for e, d, c in let]


def writer(path, part, ready):
    ledger, made = FileLedger(path), 0
    ready.wait()
    try:
        while True:
            spend(ledger, part, 1e-9)
            made += 1
    except LedgerFullError:
        os._exit(made)


def test_writers_at_once_spend_no_more_than_there_is(tmp_path):
    """Four processes spend hundredths until they are refused: together a hundred of them, no more and no fewer."""
    ledger, ready = opened(tmp_path, delta=1e-3, composition="plain"), multiprocessing.get_context("fork").Event()
    children = [multiprocessing.get_context("fork").Process(target=writer, args=(ledger.path, 0.01, ready)) for _ in range(4)]
    for child in children:
        child.start()
    ready.set()
    for child in children:
        child.join()
    assert sum(child.exitcode for child in children) == 100 == len(ledger.account().entries)


def spend_and_tell(path, pipe):
    ledger = FileLedger(path)
    while True:
        reservation = ledger.reserve(Budget(0.001, 1e-12), Neighbours.REPLACE, "a release")
        os.write(pipe, reservation.number.to_bytes(8, "big"))  # the noise would be drawn here
        ledger.commit(reservation)


def test_a_killed_writer_leaves_no_draw_unrecorded(tmp_path):
    """A writer is killed again and again while another spends beside it: every number that was handed out is in the ledger."""
    ledger, handed = opened(tmp_path, epsilon=1000.0, delta=1e-3, composition="plain"), set()
    rng, kills = np.random.default_rng(0), 40
    for _ in range(kills):
        told, pipe = os.pipe()
        child = multiprocessing.get_context("fork").Process(target=spend_and_tell, args=(ledger.path, pipe))
        child.start()
        os.close(pipe)
        first = os.read(told, 8)  # at work
        time.sleep(float(rng.uniform(0, 0.03)))
        os.kill(child.pid, signal.SIGKILL)
        spend(ledger, 0.001, 1e-12)
        with os.fdopen(told, "rb") as rest:
            numbers = first + rest.read()
        child.join()
        child.close()
        handed |= {int.from_bytes(numbers[k : k + 8], "big") for k in range(0, len(numbers), 8)}
    recorded = {entry.number for entry in ledger.account().entries}
    assert handed <= recorded
    assert len(handed) >= kills
    assert len(recorded) <= len(handed) + 2 * kills  # ours, and a reservation may be on disk and not yet told


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path):
    """The child may not make any file longer than it is; the ledger it leaves is whole."""
    ledger = opened(tmp_path, epsilon=1000.0, delta=1e-3, composition="plain")
    spend(ledger, 1.0, 1e-9)
    script = textwrap.dedent(
        """
        import resource, signal, sys
        from dpgram.errors import LedgerError
        from dpgram.ledger.file import FileLedger
        from dpgram.terms.budget import Budget, Neighbours
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        ledger = FileLedger(sys.argv[1])
        try:
            for _ in range(1000):
                ledger.reserve(Budget(0.001, 1e-12), Neighbours.REPLACE, "x" * 500)
                print("reserved", flush=True)
        except LedgerError as error:
            print(error)
        """
    )
    done = subprocess.run([sys.executable, "-c", script, str(ledger.path)], capture_output=True, text=True, check=True)
    *reserved, last = done.stdout.splitlines()
    assert "cannot be used: " in last
    assert "The ledger is unchanged" in last
    assert len(ledger.account().entries) == 1 + len(reserved)
    spend(ledger, 1.0, 1e-9)


def test_a_release_is_reserved_before_any_row_is_read_and_committed_when_it_is_on_disk(tmp_path, table, monkeypatch):
    ledger, schema = opened(tmp_path, epsilon=5.0), small_schema()
    made = dpgram.release(table, schema, epsilon=1.0, delta=1e-7, ledger=ledger.path, out=tmp_path / "r.json")
    (entry,) = ledger.account().entries
    assert entry.committed
    assert isinstance(entry.cost, GaussianCost)
    assert dpgram.load(tmp_path / "r.json") == made
    assert made.ledger_entry.startswith(f"{entry.number}:")

    def fails(*_):
        raise UnreadableTableError(where="somewhere", failure="a test")

    monkeypatch.setattr("dpgram.engines.local.LocalPass.gram", fails)
    with pytest.raises(UnreadableTableError):
        dpgram.release(table, schema, epsilon=1.0, delta=1e-7, ledger=ledger, out=tmp_path / "s.json")
    assert ledger.account().entries[-1].committed is None
    assert not (tmp_path / "s.json").exists()


def test_a_reservation_made_before_an_older_copy_was_put_back_is_not_committed_there(tmp_path):
    ledger = opened(tmp_path)
    older = ledger.path.read_bytes()
    first = ledger.reserve(Budget(0.25, 1e-8), Neighbours.REPLACE, "first")
    ledger.path.write_bytes(older)
    second = ledger.reserve(Budget(0.25, 1e-8), Neighbours.REPLACE, "second")
    assert first.number == second.number
    with pytest.raises(LedgerError, match="restored from a copy that is older"):
        ledger.commit(first)
    ledger.commit(second)


def test_a_copy_of_the_file_alone_knows_every_reservation(tmp_path):
    """Whoever was killed after reserving: the line is in the file, not only in the log beside it."""
    ledger = opened(tmp_path)
    child = os.fork()
    if child == 0:
        ledger.reserve(Budget(0.9, 1e-7), Neighbours.REPLACE, "killed")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    copied = tmp_path / "copy.sqlite"
    copied.write_bytes(ledger.path.read_bytes())
    assert len(FileLedger(copied).account().entries) == 1
    with pytest.raises(LedgerFullError):
        spend(FileLedger(copied), 0.9, 1e-7)


def test_what_another_ledger_left_behind_is_not_taken_over(tmp_path):
    (tmp_path / "ledger.sqlite-wal").write_bytes(b"old")
    with pytest.raises(LedgerError, match="belongs to an earlier ledger"):
        opened(tmp_path)


def test_another_working_folder_is_not_another_ledger(tmp_path, monkeypatch):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        opened(tmp_path / name, "l.sqlite")
    monkeypatch.chdir(tmp_path / "here")
    ledger = FileLedger("l.sqlite")
    spend(ledger, 0.9, 1e-7)
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(LedgerFullError):
        spend(ledger, 0.9, 1e-7)


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-wal"])
def test_a_release_does_not_replace_its_ledger(tmp_path, table, name):
    ledger = opened(tmp_path)
    with pytest.raises(dpgram.DpgramError, match="is the ledger itself"):
        dpgram.release(table, small_schema(), epsilon=0.5, delta=1e-7, ledger=ledger, out=tmp_path / name)
    assert not ledger.account().entries


def test_a_release_that_could_not_be_saved_anywhere_says_that_it_is_paid_for(tmp_path, table, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    ledger = opened(tmp_path)
    monkeypatch.setattr("os.link", full)
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(
        UnsavedReleaseError,
        match=r"No space left on device. No other file could be written either. The noise was already drawn, so the budget counts as "
        r"spent. Line 2 of the ledger stays reserved",
    ) as raised:
        dpgram.release(table, small_schema(), epsilon=0.5, delta=1e-7, ledger=ledger, out=tmp_path / "r.json")
    assert raised.value.fallback is None
    assert ledger.account().entries[0].committed is None
    monkeypatch.undo()
    raised.value.release.save(tmp_path / "later.json")
    assert dpgram.load(tmp_path / "later.json").ledger_entry.startswith("2:")


@pytest.mark.parametrize("ledger_is_full", [False, True])
def test_a_release_that_was_saved_elsewhere_is_committed_and_named(tmp_path, table, monkeypatch, ledger_is_full):
    """If its ledger is on the full disk too, the line stays reserved, which counts the same, and the file is named all the same."""
    link = os.link

    def full(draft, path):
        if path.name == "r.json":
            raise OSError(28, "No space left on device")
        link(draft, path)

    monkeypatch.setattr("os.link", full)
    monkeypatch.setattr("os.replace", full)
    ledger = opened(tmp_path)
    if ledger_is_full:
        monkeypatch.setattr(ledger, "commit", lambda _: opened(tmp_path))  # raises: the file exists
    with pytest.raises(UnsavedReleaseError, match="was saved to") as raised:
        dpgram.release(table, small_schema(), epsilon=0.3, delta=1e-7, ledger=ledger, out=tmp_path / "r.json")
    assert (ledger.account().entries[0].committed is None) == ledger_is_full
    assert dpgram.load(raised.value.fallback) == raised.value.release


def test_a_commit_that_fails_does_not_say_that_nothing_was_released(tmp_path, monkeypatch):
    ledger = opened(tmp_path)
    reservation = ledger.reserve(Budget(0.5, 1e-7), Neighbours.REPLACE, "x")

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("dpgram.ledger.file._append", full)
    with pytest.raises(LedgerError, match=r"disk is full. The release was made and its budget counts as spent"):
        ledger.commit(reservation)


def test_a_file_that_cannot_be_written_costs_nothing(tmp_path, table):
    ledger = opened(tmp_path)
    with pytest.raises(dpgram.DpgramError, match="there is no folder"):
        dpgram.release(table, small_schema(), epsilon=0.5, delta=1e-7, ledger=ledger, out=tmp_path / "nowhere" / "r.json")
    assert not ledger.account().entries


def test_every_line_is_on_the_disk_before_it_counts(tmp_path, monkeypatch):
    """SQLite waits for the disk at the end of every transaction: a line outlives a machine that loses power."""
    said, connect = [], sqlite3.connect

    def watched(*args, **more):
        database = connect(*args, **more)
        database.set_trace_callback(said.append)
        return database

    ledger = opened(tmp_path)
    monkeypatch.setattr(sqlite3, "connect", watched)
    reserved = ledger.reserve(Budget(0.5, 1e-7), Neighbours.REPLACE, "x", by_rounds=True)
    ledger.note_round(reserved, Drawn(1, 2, PlainCost(0.1, 1e-8)))
    ledger.settle(reserved.number)
    orders = [text for text in said if "synchronous" in text]
    assert orders == ["pragma synchronous = full"] * 3


def test_the_file_is_the_owner_s_alone(tmp_path):
    assert opened(tmp_path).path.stat().st_mode & 0o077 == 0


def test_a_reader_is_not_disturbed_by_a_line_that_is_added_meanwhile(tmp_path, monkeypatch):
    ledger = opened(tmp_path)
    connect, added = sqlite3.connect, []

    class Interrupted(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith("select seq") and not added:  # the lines are read, their number is not
                added.append(True)
                ledger.reserve(Budget(0.5, 1e-7), Neighbours.REPLACE, "meanwhile")
            return super().execute(sql, *values)

    monkeypatch.setattr(file, "WAIT", 0.2)  # the reader here waits for the writer, so the writer must not wait for the reader
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=Interrupted, **named))
    assert ledger.account().entries == ()
    assert added
    assert [entry.what for entry in ledger.account().entries] == ["meanwhile"]


@pytest.mark.parametrize("name", ["file:account", ":memory:", "a?mode=ro#b%20c"])
def test_a_name_that_sqlite_reads_otherwise_is_a_name_like_any_other(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    FileLedger.create(name, epsilon=1.0, delta=1e-6, unit="person", dataset="visits").reserve(
        Budget(1.0, 1e-6), Neighbours.REPLACE, "all of it"
    )
    assert len(FileLedger(tmp_path / name).account().entries) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


# Whose rows


def released_by(ledger, **units):
    table = {"x": np.ones(40), "pid": np.repeat(np.arange(20), 2), "w": np.arange(40)}
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1)], **units)
    return dpgram.release(table, schema, epsilon=0.1, delta=1e-8, mechanism="gaussian-noise", ledger=ledger)


BY_ID = {"unit_id": "pid", "rows_per_unit": 3}


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        (BY_ID, {}, r"units have ids in 'pid', but in the release they have no ids, so one row each"),
        ({}, BY_ID, r"units have no ids, so one row each, but in the release they have ids in 'pid'"),
        (BY_ID, BY_ID | {"unit_id": "w"}, r"units have ids in 'pid', but in the release they have ids in 'w'"),
    ],
)
def test_releases_that_take_other_rows_for_one_person_are_refused(tmp_path, first, then, words):
    opened = {"epsilon": 3, "delta": 1e-5, "unit": "person", "dataset": "visits"}
    ledger = FileLedger.create(tmp_path / "l.sqlite", **opened)
    released_by(ledger, **first)
    with pytest.raises(LedgerError, match=f"{words}.*one 'person': use the same unit_id.*another ledger.*mixed_units=True"):
        released_by(ledger, **then)
    assert len(ledger.account().entries) == 1
    released_by(ledger, **first | ({"rows_per_unit": 1} if first else {}))  # how many rows count is in the noise
    mixed = FileLedger.create(tmp_path / "mixed.sqlite", **opened, mixed_units=True)
    for units in (first, then):
        released_by(mixed, **units)
    assert [entry.protected.unit_id for entry in mixed.account().entries] == [units.get("unit_id") for units in (first, then)]


def test_a_query_that_cannot_be_counted_is_refused_too(tmp_path):
    """Before it is charged: what it would cost belongs to another unit."""
    ledger = FileLedger.create(tmp_path / "l.sqlite", epsilon=3, delta=1e-5, unit="person", dataset="visits")
    released_by(ledger, **BY_ID)
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1)])
    with pytest.raises(LedgerError, match="units have ids in 'pid'"):
        dpgram.release("duckdb:", schema, query="select 1.0 as x where false", epsilon=0.1, delta=1e-8, ledger=ledger)


def test_lines_that_do_not_say_whose_rows_stand_beside_any(tmp_path):
    """Those of older versions, and costs from outside."""
    ledger = FileLedger.create(tmp_path / "l.sqlite", epsilon=3, delta=1e-5, unit="person", dataset="visits")
    ledger.commit(ledger.reserve(Budget(0.1, 1e-8), Neighbours.REPLACE, "from outside", unit="person"))
    released_by(ledger, **BY_ID)
    ledger.commit(ledger.reserve(Budget(0.1, 1e-8), Neighbours.REPLACE, "from outside", unit="person"))
    told = [entry.protected and entry.protected.in_words for entry in ledger.account().entries]
    assert told == [None, "enforced by pid, 3 rows", None]
    with sqlite3.connect(ledger.path) as database:
        lines = [bytes(text) for (text,) in database.execute("select text from lines order by number")]
    assert b"unit_id" not in lines[1]  # a line as older versions wrote it
    assert b'"unit_id":"pid","rows_per_unit":3' in lines[3]


def test_a_ledger_of_ones_own_need_not_know_of_units(tmp_path):
    class Own:
        def reserve(self, budget, neighbours, what, *, unit=None, cost=None):
            return Reservation(1, budget, what)

        def commit(self, reservation):
            pass

    assert released_by(Own(), **BY_ID).units == 20


def test_a_line_of_a_release_that_was_made_may_hold_the_hash_of_its_file(tmp_path):
    """Without one it is as older versions wrote it, and read as they did."""
    ledger = FileLedger.create(tmp_path / "l.sqlite", epsilon=3, delta=1e-5, unit="person", dataset="visits")
    for known in ({}, {"sha256": "ab" * 32}):
        ledger.commit(ledger.reserve(Budget(0.1, 1e-8), Neighbours.REPLACE, "from outside", unit="person"), **known)
    assert [entry.sha256 for entry in ledger.account().entries] == [None, "ab" * 32]
    assert all(entry.committed for entry in ledger.account().entries)
    with sqlite3.connect(ledger.path) as database:
        lines = [bytes(text) for (text,) in database.execute("select text from lines order by number")]
    assert lines[2].endswith(b'"number":2}')
    assert lines[4].endswith(b'"number":4,"sha256":"' + b"ab" * 32 + b'"}')
