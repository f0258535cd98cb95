"""mechanism="auto" and mechanisms of several rounds: taken where a forecast expects them to be best and the table can be read again."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.accounting.compose import GaussianCost
from dpgram.engines.local import LocalPass
from dpgram.errors import LedgerError, OneShotError
from dpgram.mechanisms import registry
from dpgram.planning import choose
from dpgram.sources import store
from dpgram.terms.noise import WhitenedGaussian
from tests.ledger.kill_release import watched

ROUNDS = "whitened-noise"
ROWS = 100_000
BUDGET = {"epsilon": 1.0, "delta": 1e-7}
NAMES = [f"x{j}" for j in range(6)]


def schema(**changes):
    """Columns far from zero, and so close to the intercept: what whitening is for, whatever its rules are."""
    return dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, 0, 1) for name in NAMES], **changes)


def table(rows=ROWS):
    return dict(zip(NAMES, np.clip(np.random.default_rng(0).normal(0.5, 0.12, (6, rows)), 0, 1), strict=True))


TABLE = table()


def stream():
    """Arrow batches that can be read once."""
    whole = pa.table(TABLE)
    return pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches())


@pytest.fixture
def passes(monkeypatch):
    """The maps of all passes over a table's rows, None where there is none."""
    seen, gram = [], LocalPass.gram

    def noted(self, row_bound, *asked):
        seen.append(asked[0] if asked else None)
        return gram(self, row_bound, *asked)

    monkeypatch.setattr(LocalPass, "gram", noted)
    return seen


def made_by_auto(data, of=None, **changes):
    return dpgram.release(data, of or schema(), mechanism="auto", insecure_seed=1, **BUDGET, **changes)


def test_a_table_that_can_be_read_again_gets_the_rounds_and_the_label_says_why(tmp_path, passes):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(TABLE), path)
    for data in (TABLE, path):
        made = made_by_auto(data)
        assert made.mechanism == ROUNDS
        assert f"{ROUNDS} is expected to be best" in made.choice
        assert "read only once" not in made.choice
        rounds = len(made.noise.rounds)
        assert None not in passes  # the choice is made by the number of rows that the table itself tells
        assert len(passes) == rounds
        passes.clear()


def test_with_a_public_number_of_rows_no_pass_is_made_for_the_choice(passes):
    made = made_by_auto(TABLE, table_rows=ROWS)
    named = dpgram.release(TABLE, schema(), mechanism=ROUNDS, insecure_seed=1, table_rows=ROWS, **BUDGET)
    assert made.mechanism == ROUNDS
    assert len(passes) == 2 * len(made.noise.rounds)
    assert None not in passes
    assert np.array_equal(made.gram, named.gram)


def test_the_choice_is_the_same_with_the_hint_as_without():
    late, early = made_by_auto(TABLE), made_by_auto(TABLE, table_rows=ROWS)
    assert late.choice == early.choice
    assert late.mechanism == early.mechanism == ROUNDS
    assert late.gram == pytest.approx(early.gram, rel=1e-9, abs=1e-9 * ROWS)  # rounds' sds may differ in a last bit


def test_a_stream_that_is_not_kept_gets_the_best_of_those_that_read_once_and_the_label_says_so(passes):
    for changes in ({}, {"table_rows": ROWS}):
        made = made_by_auto(stream(), cache=False, **changes)
        assert not registry.find(made.mechanism).several
        assert "The table can be read only once, so mechanisms of several rounds were left out." in made.choice
        assert ROUNDS not in made.choice
    assert passes == [None, None]
    with pytest.raises(OneShotError):
        dpgram.release(stream(), schema(), mechanism=ROUNDS, insecure_seed=1, cache=False, **BUDGET)


def test_a_stream_that_is_kept_gets_the_rounds(tmp_path):
    expected = made_by_auto(TABLE)
    for kept in ({}, {"cache": tmp_path, "memory": 0}):
        made = made_by_auto(stream(), **kept)
        assert made.mechanism == ROUNDS
        assert np.array_equal(made.gram, expected.gram)
    assert not list(tmp_path.iterdir())


def test_under_add_remove_the_hint_decides_and_goes_on_to_the_mechanism(passes):
    protected = schema(neighbours="add-remove")
    made = made_by_auto(TABLE, protected, table_rows=ROWS)
    assert made.mechanism == ROUNDS
    assert made.rows is None
    assert len(passes) == len(made.noise.rounds)
    assert made_by_auto(table(20_000), protected, table_rows=ROWS).choice == made.choice


def test_a_cache_is_written_only_for_what_cannot_be_read_again_and_only_where_it_may_be(tmp_path, monkeypatch):
    opened = []
    before = store.open_cache
    monkeypatch.setattr(store, "open_cache", lambda folder: opened.append(folder) or before(folder))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(TABLE), path)
    for data in (TABLE, path):
        made_by_auto(data, cache=tmp_path, memory=0)
    assert opened == []
    monkeypatch.setattr(choose, "choose", lambda *_, **__: (registry.find("gaussian-noise"), "for a test"))
    made_by_auto(stream(), cache=tmp_path, memory=0, table_rows=ROWS)  # known before the first pass to be the only one
    assert opened == []
    made_by_auto(stream(), cache=tmp_path, memory=0)  # known after it: the rows must have been kept by then
    assert opened == [tmp_path]


@pytest.mark.parametrize("kind", ["session", "file"])
def test_a_stream_that_auto_reads_once_goes_through_a_ledger_and_is_never_given_back(kind, tmp_path):
    ledger = dpgram.SessionLedger(2.0, 1e-6)
    if kind == "file":
        ledger = dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=2.0, delta=1e-6, unit="p", dataset="d")
    made = dpgram.release(stream(), schema(), mechanism="auto", ledger=ledger, arithmetic="float", cache=False, **BUDGET)
    assert made.mechanism != ROUNDS
    (entry,) = ledger.entries if kind == "session" else ledger.account().entries
    assert entry.committed
    assert entry.drawn is None
    with pytest.raises(LedgerError, match="is a finished release"):
        ledger.settle(1 if kind == "session" else entry.number)


class Stopped(BaseException):
    """Stands for whatever ends a process while it draws."""


@pytest.mark.parametrize("arithmetic", ["float", "exact"])
@pytest.mark.parametrize("name", [n for n in registry.MECHANISMS if n != "noisy-inverse"])
def test_whatever_auto_takes_every_draw_was_in_the_ledger_before(name, arithmetic, tmp_path, monkeypatch):
    """Looked at from inside of every draw: what `settle` would count then covers the round that is being drawn."""
    monkeypatch.setattr(choose, "choose", lambda *_, **__: (registry.find(name), "for a test"))
    ledger = dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=50.0, delta=1e-5, unit="p", dataset="d")
    noted = []

    def look():
        (entry,) = ledger.account().entries
        noted.append(1 if entry.drawn is None else entry.drawn.number)  # None: reserved as one that is never given back
        assert entry.what.startswith(f"{name} release")

    with watched(look):
        made = dpgram.release(TABLE, schema(), mechanism="auto", ledger=ledger, arithmetic=arithmetic, **BUDGET)
    rounds = len(made.noise.rounds) if isinstance(made.noise, WhitenedGaussian) else 1
    rounds += int(made.parameters.get("looks", 0))  # at columns, before the first round: drawn and noted like one
    assert (rounds > len(made.noise.rounds)) if name == ROUNDS else (rounds == 1)
    assert noted
    assert sorted(set(noted)) == list(range(1, rounds + 1))
    (entry,) = ledger.account().entries
    assert entry.committed


@pytest.mark.parametrize("name", ["gaussian-noise", "gaussian-sketch-adaptive", ROUNDS])
def test_a_release_that_ends_while_it_draws_is_never_given_back(name, tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "choose", lambda *_, **__: (registry.find(name), "for a test"))
    ledger = dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=50.0, delta=1e-5, unit="p", dataset="d")

    def stop():
        raise Stopped

    with watched(stop), pytest.raises(Stopped) as ended:
        dpgram.release(TABLE, schema(), mechanism="auto", ledger=ledger, arithmetic="float", **BUDGET)
    (entry,) = ledger.account().entries
    offered = any(f"ledger settle {entry.number}" in note for note in getattr(ended.value, "__notes__", ()))
    assert offered == registry.find(name).several
    if registry.find(name).several:
        assert ledger.settle(entry.number).number == 1
    else:
        with pytest.raises(LedgerError, match="a release of a single round"):
            ledger.settle(entry.number)
    (entry,) = ledger.account().entries
    counted, cost = entry.counted
    if registry.find(name).several:
        assert isinstance(cost, GaussianCost)  # of the first round
        assert counted.epsilon < BUDGET["epsilon"]
    else:
        assert counted == entry.budget


def test_what_ends_before_a_mechanism_is_chosen_has_reserved_nothing(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise Stopped

    monkeypatch.setattr(choose, "choose", stop)
    ledger = dpgram.FileLedger.create(tmp_path / "l.sqlite", epsilon=50.0, delta=1e-5, unit="p", dataset="d")
    with pytest.raises(Stopped):
        dpgram.release(TABLE, schema(), mechanism="auto", ledger=ledger, **BUDGET)
    assert list(ledger.account().entries) == []


def test_the_bar_names_the_passes_that_sum(passes):
    begun = []

    class Bar:
        def __call__(self, fraction):
            pass

        def begin(self, number, of):
            begun.append((number, of))

    made = made_by_auto(TABLE, progress=Bar())
    all_passes = len(passes) + int(made.parameters["looks"])
    assert [number for number, _ in begun] == list(range(1, all_passes + 1))
    assert {of for _, of in begun} == {None, all_passes}
