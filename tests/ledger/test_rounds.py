"""Releases of several rounds in a ledger: reserved in full, noted round by round, and settled for what was noted."""

from __future__ import annotations

import json
import math
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import dpgram
from dpgram.accounting.compose import GaussianCost, PlainCost, composed_delta
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.cli.app import run
from dpgram.errors import BudgetSpentError, LedgerError
from dpgram.ledger.base import Drawn, Ledger, Reservation, RoundLedger
from dpgram.ledger.lines import Committed, KnownCost, Opened, Reserved, chained
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.terms.budget import SMALLEST_EPSILON, Budget, Neighbours
from tests import rounds
from tests.conftest import NUMBERS_TOML, small_schema, small_table
from tests.ledger.kill_release import NotedLedger, watched
from tests.test_passes import Between

ROOT = Path(__file__).parents[2]
BUDGET = Budget(1.0, 1e-6)
MU = calibrate_mu(BUDGET)
KINDS = ["file", "session", "plain file"]


def opened(kind, folder, epsilon=1.5, delta=2e-6):
    if kind == "session":
        return dpgram.SessionLedger(epsilon, delta)
    composition = "plain" if kind == "plain file" else "composed"
    path = folder / f"{kind}.sqlite".replace(" ", "-")
    return dpgram.FileLedger.create(
        path, epsilon=epsilon, delta=delta, unit="person", dataset="visits", composition=composition
    )


def reserved(ledger, **more):
    return ledger.reserve(BUDGET, Neighbours.REPLACE, "x", cost=GaussianCost(MU), **{"by_rounds": True, **more})


def drawn(number, of=4):
    return Drawn(number, of, GaussianCost(MU * math.sqrt(number / of)))


def spent(ledger):
    """(epsilon, delta) by plain sums."""
    if isinstance(ledger, dpgram.SessionLedger):
        return ledger.spent
    spending = ledger.account().spending
    return tuple(map(float, spending.plain)) if spending.asked else (0.0, 0.0)


def entry(ledger):
    return (ledger.entries if isinstance(ledger, dpgram.SessionLedger) else ledger.account().entries)[0]


each = pytest.mark.parametrize("kind", KINDS)


@each
def test_what_was_reserved_counts_in_full_until_it_is_settled(kind, tmp_path):
    ledger = opened(kind, tmp_path)
    assert isinstance(ledger, RoundLedger)
    reservation = reserved(ledger)
    for number in (1, 2):
        ledger.note_round(reservation, drawn(number))
    assert spent(ledger) == (1.0, 1e-6)
    assert entry(ledger).drawn == drawn(2)
    assert ledger.settle(reservation.number) == drawn(2)
    epsilon, delta = spent(ledger)
    assert delta == 1e-6
    assert epsilon < 1
    mu = MU * math.sqrt(2 / 4)
    assert composed_delta(epsilon, [GaussianCost(mu)]) <= 1e-6  # private for what counts
    assert composed_delta(0.999 * epsilon, [GaussianCost(mu)]) > 1e-6  # and not for less


@each
def test_a_release_that_ended_before_its_first_round_costs_nothing_once_settled(kind, tmp_path):
    ledger = opened(kind, tmp_path)
    number = reserved(ledger).number
    assert ledger.settle(number) == Drawn()
    assert spent(ledger) == (0.0, 0.0)
    ledger.commit(ledger.reserve(Budget(1.5, 2e-6), Neighbours.REPLACE, "all of it"))


@each
def test_what_was_given_back_can_be_spent_and_no_more(kind, tmp_path):
    ledger = opened(kind, tmp_path, epsilon=1.0, delta=2e-6)
    reservation = reserved(ledger)
    ledger.note_round(reservation, drawn(1, 16))
    with pytest.raises(BudgetSpentError):
        ledger.reserve(Budget(0.5, 1e-7), Neighbours.REPLACE, "x")
    ledger.settle(reservation.number)
    ledger.reserve(Budget(0.5, 1e-7), Neighbours.REPLACE, "x")
    with pytest.raises(BudgetSpentError):
        ledger.reserve(Budget(0.9, 1e-7), Neighbours.REPLACE, "x")


def test_settled_rounds_compose_by_their_shift(tmp_path):
    ledger = opened("file", tmp_path, epsilon=9.0, delta=1e-5)
    for count in (1, 2, 3):
        reservation = reserved(ledger)
        for number in range(1, count + 1):
            ledger.note_round(reservation, drawn(number))
        ledger.settle(reservation.number)
    found = ledger.account().spending.epsilon(1e-6)
    assert composed_delta(found, [GaussianCost(MU * math.sqrt(6 / 4))]) <= 1e-6
    assert composed_delta(found * (1 - 1e-5), [GaussianCost(MU * math.sqrt(6 / 4))]) > 1e-6


def test_a_tiny_part_still_has_an_epsilon():
    assert Drawn(1, 9, GaussianCost(1e-9)).budget(BUDGET) == Budget(SMALLEST_EPSILON, 1e-6)
    assert Drawn(9, 9, GaussianCost(2 * MU)).budget(BUDGET) == BUDGET  # never more than was reserved


@each
def test_nothing_more_is_drawn_after_it_was_settled_or_made(kind, tmp_path):
    """So that settling a release that is still running is no way to spend twice."""
    ledger = opened(kind, tmp_path, epsilon=5, delta=1e-5)
    running, made = reserved(ledger), reserved(ledger)
    ledger.note_round(running, drawn(1))
    ledger.settle(running.number)
    for act in (lambda: ledger.note_round(running, drawn(2)), lambda: ledger.commit(running)):
        with pytest.raises(LedgerError, match="settled"):
            act()
    ledger.commit(made)
    with pytest.raises(LedgerError, match="no further round can be drawn"):
        ledger.note_round(made, drawn(1))
    assert entry(ledger).drawn == drawn(1)


@each
def test_what_cannot_be_settled(kind, tmp_path):
    ledger = opened(kind, tmp_path, epsilon=9, delta=1e-5)
    single, whole, made, twice = reserved(ledger, by_rounds=False), reserved(ledger), reserved(ledger), reserved(ledger)
    for number in (1, 2, 3, 4):
        ledger.note_round(whole, drawn(number))
    ledger.commit(made)
    ledger.settle(twice.number)
    before = spent(ledger)
    for line, message in (
        (single.number, "single round, and nobody can know whether its noise was drawn"),
        (whole.number, "had begun its last round"),
        (made.number, "is a finished release, so none of its budget can be given back"),
        (twice.number, "settled already"),
        (99, "no reservation number 99|line 99 of .* is not a release"),
    ):
        with pytest.raises(LedgerError, match=message):
            ledger.settle(line)
    assert spent(ledger) == before
    ledger.commit(whole)


@each
def test_rounds_out_of_order_or_beyond_the_reservation_are_refused(kind, tmp_path):
    ledger = opened(kind, tmp_path, epsilon=9, delta=1e-5)
    reservation = reserved(ledger)
    for wrong in (drawn(2), Drawn(1, 0, GaussianCost(0.1)), Drawn(1, 4), drawn(0)):
        with pytest.raises(LedgerError, match="one by one"):
            ledger.note_round(reservation, wrong)
    for dear in (GaussianCost(1.001 * MU), PlainCost(1.1, 1e-9), PlainCost(0.1, 1.1e-6)):
        with pytest.raises(LedgerError, match="would cost more than was reserved"):
            ledger.note_round(reservation, Drawn(1, 4, dear))
    with pytest.raises(LedgerError, match="does not record its rounds"):
        ledger.note_round(reserved(ledger, by_rounds=False), drawn(1))
    other = opened(kind, tmp_path / "..", 9, 1e-5) if kind == "session" else None
    if other is not None:
        with pytest.raises(LedgerError, match="another ledger"):
            other.note_round(reservation, drawn(1))
    assert entry(ledger).drawn == Drawn()
    ledger.note_round(reservation, Drawn(1, 1, GaussianCost(MU)))  # all of it


# Ledgers of other versions


def test_a_ledger_of_an_older_version_is_read_and_goes_on(tmp_path):
    """Its lines as they were written then, to the byte."""
    ledger = opened("file", tmp_path, epsilon=5.0)
    cost = KnownCost(kind="gaussian", numbers=(0.2,))
    old = [
        Opened(
            format=1,
            time="t",
            dataset="d",
            epsilon=5.0,
            delta=1e-5,
            neighbours="replace",
            unit="person",
            composition="composed",
        ),
        Reserved(time="t", epsilon=1.0, delta=1e-6, cost=cost, what="x"),
        Committed(time="t", number=2),
    ]
    texts = [msgspec.json.encode(line) for line in old]
    assert texts[1] == (
        b'{"line":"reserved","time":"t","epsilon":1.0,"delta":1e-6,"cost":{"kind":"gaussian","numbers":[0.2]},"what":"x"}'
    )
    database = sqlite3.connect(ledger.path, isolation_level=None)
    database.executescript("drop trigger lines_remain; delete from lines; update sqlite_sequence set seq = 0")
    seal = "0" * 64
    for number, text in enumerate(texts, 1):
        seal = chained(seal, number, text)
        database.execute("insert into lines (text, hash) values (?, ?)", (text, seal))
    database.close()
    (entry,) = ledger.account().entries
    assert entry.drawn is None
    assert entry.committed == "t"
    ledger.note_round(reserved(ledger), drawn(1))
    assert [entry.drawn for entry in ledger.account().entries] == [None, drawn(1)]


def test_a_line_of_a_newer_version_is_not_called_damage_alone(tmp_path):
    ledger = opened("file", tmp_path)
    text = b'{"line":"dreamt","time":"t"}'
    with sqlite3.connect(ledger.path) as database:
        database.execute("insert into lines (text, hash) values (?, ?)", (text, chained(ledger.account().seal, 2, text)))
    with pytest.raises(LedgerError, match="If a newer dpgram wrote it, update"):
        ledger.account()


class OldLedger:
    """A ledger of somebody's own that knows nothing of rounds."""

    def __init__(self):
        self.said = []

    def reserve(self, budget, neighbours, what, *, unit=None, cost=None):
        self.said.append("reserved")
        return Reservation(1, budget, what)

    def commit(self, reservation):
        self.said.append("committed")


def test_a_ledger_that_knows_nothing_of_rounds_does_as_before(in_rounds):
    ledger = OldLedger()
    assert isinstance(ledger, Ledger)
    assert not isinstance(ledger, RoundLedger)
    dpgram.release(small_table(), small_schema(), epsilon=1, delta=1e-6, mechanism=in_rounds, ledger=ledger)
    assert ledger.said == ["reserved", "committed"]


# Releases


class NotedRounds(NotedLedger):
    def reserve(self, *args, by_rounds=False, **more):
        assert by_rounds
        return super().reserve(*args, **more)

    def note_round(self, reservation, drawn):
        self._note(f"round-{drawn.number}-of-{drawn.rounds}")
        self._drawn = False

    def settle(self, number):
        raise AssertionError("nobody asked for it")


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
@pytest.mark.parametrize("mechanism", sorted({rounds.NAME, *(name for name, found in MECHANISMS.items() if found.several)}))
def test_every_mechanism_of_several_rounds_notes_each_before_it_draws(mechanism, arithmetic, tmp_path, in_rounds):
    """The first draw after each note is noted too: nothing is drawn before the first note, and every note has its draws."""
    ledger = NotedRounds(tmp_path / "ledger")
    with watched(ledger.drawn):
        dpgram.release(
            small_table(), small_schema(), epsilon=5, delta=1e-6, ledger=ledger, mechanism=mechanism, arithmetic=arithmetic
        )
    first, *middle, last = ledger.read()
    assert (first, last) == ("reserved", "committed")
    notes, draws = middle[::2], middle[1::2]
    assert draws == ["drawn"] * len(notes)  # after the last note too
    told = [
        tuple(map(int, note.split("-")[1::2])) for note in notes
    ]  # how many there are is known for sure once looks have ended
    assert [number for number, _ in told] == list(range(1, len(notes) + 1))
    assert all(number < of for number, of in told[:-1])
    assert told[-1] == (len(notes), len(notes))
    assert len(notes) > 1


@pytest.mark.parametrize("kind", ["file", "session"])
def test_a_release_that_fails_between_rounds_leaves_its_rounds_in_the_ledger(kind, tmp_path, in_rounds):
    ledger = opened(kind, tmp_path, epsilon=5, delta=1e-5)

    def stop():
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        dpgram.release(
            small_table(),
            small_schema(),
            epsilon=1.0,
            delta=1e-6,
            mechanism=in_rounds,
            ledger=ledger,
            progress=Between(stop, 3),
        )
    assert entry(ledger).drawn == Drawn(2, 3, GaussianCost(pytest.approx(MU * math.sqrt(2 / 3))))
    made = dpgram.release(small_table(), small_schema(), epsilon=1.0, delta=1e-6, mechanism=in_rounds, ledger=ledger)
    assert np.isfinite(made.gram).all()
    assert spent(ledger) == (2.0, 2e-6)


@pytest.mark.parametrize("where", ["curator", "ledger"])
def test_a_release_killed_at_any_line_has_noted_every_round_that_it_drew(where, tmp_path):
    """One process for every line of the curator, and of the ledger, killed when it gets there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.ledger.kill_rounds", where, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {tuple(line.split()) for line in done.stdout.splitlines()}
    assert all(int(drew) <= max(0, int(known)) for drew, known, *_ in found)
    # Kills fell before the reservation, after it, and before and after every note.
    expected = {
        ("0", "-1"),
        ("0", "0"),
        ("0", "1"),
        ("1", "1"),
        ("1", "2"),
        ("2", "2"),
        ("2", "3"),
        ("3", "3"),
        ("3", "3", "made"),
    }
    assert found == expected


# The command line

WORDS = "release t.parquet --schema schema.toml --epsilon 1 --delta 1e-6 --ledger ledger.sqlite --mechanism test-rounds --out r.json"


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small_table().to_pandas().to_parquet("t.parquet")
    (tmp_path / "schema.toml").write_text(NUMBERS_TOML)
    assert run(["ledger", "open", "--epsilon", "2", "--delta", "1e-5", "--unit", "person", "--dataset", "visits"]) == 0
    capsys.readouterr()
    return tmp_path


def test_an_interrupted_release_is_named_shown_and_settled(folder, capsys, in_rounds, monkeypatch):
    asked = []

    def interrupted(self, row_bound, *mapped):
        asked.append(row_bound)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return whole(self, row_bound, *mapped)

    whole = dpgram.engines.local.LocalPass.gram
    monkeypatch.setattr(dpgram.engines.local.LocalPass, "gram", interrupted)
    assert run(WORDS.split()) == 130
    err = capsys.readouterr().err
    assert "interrupted: no incomplete file was left behind. Line 2 of the ledger stays reserved" in err
    command = f"`dpgram ledger settle 2 --ledger {folder / 'ledger.sqlite'}`"
    assert f"It drew 2 of 3 rounds. Use {command} to give back the rounds that were not drawn." in err
    assert not (folder / "r.json").exists()
    assert run(["ledger", "show"]) == 0
    assert "RESERVED ONLY   2 of 3" in capsys.readouterr().out
    assert run(["ledger", "settle", "2"]) == 0
    assert (
        "settled line 2 of ledger.sqlite: the release drew 2 of 3 rounds, and from now on only that counts."
        in capsys.readouterr().err
    )
    assert run(["ledger", "show"]) == 0
    assert "settled   2 of 3" in capsys.readouterr().out
    assert run(["ledger", "show", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (release,) = data["releases"]
    assert release["rounds"] == {"drawn": 2, "of": 3}
    assert release["settled"]
    assert (release["epsilon"], release["counts"]["delta"]) == (1.0, 1e-6)
    assert release["counts"]["epsilon"] == data["spent"]["plain_sum"]["epsilon"] < 1
    assert run(["ledger", "settle", "2"]) == 2
    assert "error: line 2 was settled already" in capsys.readouterr().err


def test_a_release_that_never_began_to_draw_shows_so(folder, capsys, in_rounds, monkeypatch):
    def failed(self, row_bound, *mapped):
        raise dpgram.errors.TableError("the disk is gone.")

    monkeypatch.setattr(dpgram.engines.local.LocalPass, "gram", failed)
    assert run(WORDS.split()) == 2
    err = capsys.readouterr().err
    assert "error: the disk is gone. Line 2 of the ledger stays reserved and counts as spent. It drew no round." in err
    run(["ledger", "show"])
    assert "RESERVED ONLY     none" in capsys.readouterr().out
    assert run(["ledger", "settle", "2"]) == 0
    run(["ledger", "show", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["releases"][0]["counts"] is None
    assert data["spent"]["plain_sum"] == {"epsilon": 0.0, "delta": 0.0}
    run(["ledger", "show"])
    assert "settled     none" in capsys.readouterr().out


def test_the_command_has_a_cache_and_the_bar_says_which_round(folder, capsys, in_rounds, monkeypatch):
    said = []
    monkeypatch.setattr("dpgram.cli.output.Bar.begin", lambda self, number, of: said.append((number, of)))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    query = "--query \"select x, y from 't.parquet'\""
    assert run(shlex.split(f"{WORDS.replace('release t.parquet', 'release duckdb:')} {query} --cache .")) == 0
    assert said == [(1, 3), (2, 3), (3, 3)]
    assert sorted(path.name for path in folder.iterdir()) == ["ledger.sqlite", "r.json", "schema.toml", "t.parquet"]
    assert run([*WORDS.split(), "--overwrite", "--cache", "none"]) == 2
    assert "none is not a folder" in capsys.readouterr().err
