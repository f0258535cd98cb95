"""Steering on a sample: how large it is, how often the table is read, what the estimators make of it, and why its coins are secret."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.linalg.rounds import of_all_rows
from dpgram.mechanisms import whitening
from dpgram.mechanisms.conversation import Task
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.mechanisms.whitening import COINS, rules
from dpgram.rows import coins
from dpgram.rows.coins import Coins
from dpgram.sampling.base import known
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource
from dpgram.sampling.seeded import SeededSource
from dpgram.sources.open import open_source
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import Round

ROWS = 40_000
NAMES = ("a", "b", "c", "y")
SCHEMA = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -8, 8) for name in NAMES])


def table(rows: int = ROWS) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b, c, e = rng.normal(size=(4, rows))
    return {"a": a, "b": a + 0.1 * b, "c": c, "y": b - c + 0.5 * e}


@pytest.fixture
def sampled(monkeypatch):
    """Small tables are steered by a sample as well."""
    monkeypatch.setattr(whitening, "FEWEST_STEERING", 100)
    monkeypatch.setattr(whitening, "ENOUGH", 10.0)


@pytest.fixture
def readings(monkeypatch):
    """Every reading of a table: "sum", "counts", or the share of rows that was kept."""
    seen: list[object] = []
    for name in ("gram", "counts", "kept"):
        right = getattr(LocalPass, name)

        def noted(self, *given, name=name, right=right, **named):
            if type(self._source).__name__ != "KeptRows":
                seen.append((given[0].share if given[0] else 1.0) if name == "kept" else name)
            return right(self, *given, **named)

        monkeypatch.setattr(LocalPass, name, noted)
    return seen


def released(rows=None, schema=SCHEMA, **options):
    given = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "whitened-noise", "insecure_seed": 5, **options}
    return dpgram.release(table() if rows is None else rows, schema, **given)


# How large it is


@pytest.mark.parametrize("epsilon_mu", [0.02, 0.25, 1.0, 5.0])
@pytest.mark.parametrize("dim", [3, 22, 41, 120])
def test_the_sample_follows_public_numbers(dim, epsilon_mu):
    room = 256e6 / 8 / dim
    before = 1.0
    for rows in (1e3, 1e5, 1e6, 1e7, 1e9, 1e12):
        chosen = rules(dim, rows, epsilon_mu)
        share = chosen.sample(dim, rows, room)
        if len(chosen.shares) == 1:
            assert share is None
            continue
        needed = max(whitening.ENOUGH * dim**1.5 / (epsilon_mu * math.sqrt(chosen.shares[0])), whitening.FEWEST_STEERING)
        if share is None:
            assert room < min(needed / 2, rows)
            continue
        assert 0 < share <= 1
        assert (share * COINS) % 1 == 0
        assert share <= before  # a larger table has no larger share in its sample
        assert share * rows >= min(needed / 2, rows)
        assert (share - 1 / COINS) * rows <= room
        assert rows > 250_000 or share == 1.0 or rows > room
        before = share


def test_without_a_number_of_rows_or_memory_every_round_reads_the_table():
    chosen = rules(22, 1e7, 0.25)
    assert chosen.sample(22, None, 1e9) is None
    assert chosen.sample(22, 1e7, 1000.0) is None
    assert COINS == 2**coins.COIN_BITS


# How often the table is read


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_small_table_is_read_once_and_has_the_bits_of_one_that_is_read_for_every_round(readings, neighbours):
    schema = replace(SCHEMA, neighbours=neighbours)
    hint = {"table_rows": ROWS} if neighbours == "add-remove" else {}
    kept = released(schema=schema, **hint)
    assert readings == [1.0]
    assert "sample" not in kept.parameters
    readings.clear()
    again = released(schema=schema, memory=0, **hint)
    assert readings == ["counts"] * int(kept.parameters["looks"]) + ["gram"] * int(kept.parameters["rounds"])
    assert "sample" not in again.parameters
    assert kept.noise == again.noise
    assert np.array_equal(kept.gram, again.gram)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("arithmetic", ["float", "exact"])
def test_a_large_table_is_read_twice_and_only_the_last_round_is_over_all_rows(sampled, readings, neighbours, arithmetic):
    schema = replace(SCHEMA, neighbours=neighbours)
    hint = {"table_rows": ROWS} if neighbours == "add-remove" else {}
    made = released(schema=schema, arithmetic=arithmetic, **hint)
    share = made.parameters["sample"]
    assert 0 < share < 0.5
    assert readings == [share, "gram"]
    assert [each.sampled for each in made.noise.rounds] == [share] * (len(made.noise.rounds) - 1) + [1.0]
    again = released(schema=schema, arithmetic=arithmetic, threads=3, **hint)
    assert np.array_equal(made.gram, again.gram)
    assert made.noise == again.noise
    assert not np.array_equal(made.gram, released(schema=schema, arithmetic=arithmetic, insecure_seed=6, **hint).gram)
    fit = dpgram.regress(made, "y", ["a", "b", "c"])
    assert abs(fit.estimates["c"] + 1) < 0.05


def test_with_more_rows_than_were_guessed_the_sample_is_not_cut(sampled, readings):
    schema = replace(SCHEMA, neighbours="add-remove")
    made = released(schema=schema, table_rows=ROWS // 4, memory=0.4)  # 12,500 rows of 32 bytes
    share = made.parameters["sample"]
    assert readings == [share, "gram"]
    kept, _ = LocalPass(open_source(table()), schema).kept(Coins(SeededSource(5).key(), share))
    many = sum(piece.batch.num_rows for piece in kept._source.pieces(schema.names))
    assert abs(many - share * ROWS) < 6 * math.sqrt(ROWS * share * (1 - share))
    assert many > 12_500 or share < 0.3


def test_nothing_tells_how_many_rows_are_in_the_sample(sampled, tmp_path):
    made = released(out=tmp_path / "r.json", arithmetic="exact", insecure_seed=None)
    assert made.rows == ROWS
    assert "key" not in (tmp_path / "r.json").read_text()
    loaded = dpgram.load(tmp_path / "r.json")
    assert loaded.noise == made.noise
    assert loaded.noise.rounds[0].sampled == made.parameters["sample"]


def test_the_bar_shows_both_readings(sampled):
    class Bar:
        def __init__(self):
            self.seen, self.begun = [], []

        def __call__(self, fraction):
            self.seen.append(fraction)

        def begin(self, number, of):
            self.begun.append((number, of))

    bar = Bar()
    made = released(progress=bar)
    assert bar.seen == [step / 100 for step in range(1, 101)]
    assert bar.begun[-1][0] == made.parameters["rounds"] + made.parameters["looks"]


# The key


@pytest.mark.parametrize("make", [SeededSource, ExactSource])
def test_a_key_changes_nothing_that_is_drawn(make):
    plain, keyed = make(3), make(3)
    key = keyed.key()
    assert keyed.key() == key == SeededSource(3).key()
    assert key != make(4).key()
    first, second = (
        source.publish(add_symmetric_noise(known(np.eye(3), source), 1.0, 1.0, source), 2.0**-20) for source in (plain, keyed)
    )
    assert np.array_equal(first, second)


def test_secret_keys_are_new_each_time():
    assert len({source.key() for source in (SecureSource(), SecureSource(), ExactSource(), ExactSource())}) == 4


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_every_release_throws_coins_of_its_own_secret_key(sampled, monkeypatch, arithmetic):
    """Coins that somebody can foresee are as bad as public places."""
    drawn, used = [], []
    for kind in (SecureSource, ExactSource):
        right = kind.key
        monkeypatch.setattr(kind, "key", lambda self, right=right: drawn.append(right(self)) or drawn[-1])
    thrown = Coins.chosen
    monkeypatch.setattr(Coins, "chosen", lambda self, *place: used.append(self.key) or thrown(self, *place))
    for _ in range(2):
        assert released(arithmetic=arithmetic, insecure_seed=None).parameters["sample"] < 1
    assert set(used) == set(drawn)
    assert len(set(used)) == len(drawn) == 2


# What the estimators make of it


def test_a_round_over_a_sample_says_what_all_rows_would_and_how_sure_it_is():
    rng = np.random.default_rng(4)
    rows, dim, share, sd = 20_000, 5, 0.1, 3.0
    z = rng.normal(size=(rows, dim)) / 8  # hardly any is as long as one
    truth = z.T @ z
    errors = []
    for _ in range(300):
        chosen = z[rng.random(rows) < share]
        noise = np.triu(rng.normal(scale=sd, size=(dim, dim)), 1)
        noise += noise.T + np.diag(rng.normal(scale=math.sqrt(2) * sd, size=dim))
        seen = Round(np.eye(dim), chosen.T @ chosen + noise, sd, kept=1.0, sampled=share)
        whole, told = of_all_rows(seen, float(rows))
        errors.append((whole - truth)[np.triu_indices(dim, 1)] / told)
    assert abs(np.mean(errors)) < 6 / math.sqrt(3000)
    assert 0.93 < np.std(errors) < 1.07
    exact = Round(np.eye(dim), truth, sd, kept=1.0)
    assert of_all_rows(exact, float(rows)) == (exact.gram, sd)


def test_a_file_whose_last_round_is_over_a_sample_was_changed(sampled, tmp_path):
    made = released(out=tmp_path / "r.json")
    share = made.parameters["sample"]
    text = (tmp_path / "r.json").read_text()
    rounds = text.count('"sampled"')
    assert rounds == len(made.noise.rounds) - 1  # a round over all rows says nothing of it, as in older files
    last = replace(made.noise.rounds[-1], sampled=share)
    broken = replace(made, noise=replace(made.noise, rounds=(*made.noise.rounds[:-1], last)))
    broken.save(tmp_path / "broken.json")
    with pytest.raises(dpgram.DpgramError, match="ends with a round over a sample"):
        dpgram.load(tmp_path / "broken.json")


# Why coins are secret and independent: mistakes that were not made


def apart(chosen_of, first: dict, second: dict) -> float:
    """How far one row more moves the Gram sum over a sample, in units of what a row of norm one may."""
    sums = []
    for rows in (first, second):
        kept = np.column_stack(list(rows.values()))[chosen_of(rows)]
        sums.append(kept.T @ kept)
    return float(np.linalg.norm(sums[0] - sums[1]))


def test_public_places_exchange_the_whole_sample_when_a_row_goes():
    """The trap: rows of two kinds in turn. By every second place the sample is all of one kind, and all of the other when one row goes."""
    kinds = np.array([[1.0, 0.0], [0.0, 1.0]])[np.arange(1000) % 2]
    more = {"a": kinds[:, 0], "b": kinds[:, 1]}
    less = {name: cells[1:] for name, cells in more.items()}
    assert apart(lambda rows: np.arange(len(rows["a"])) % 2 == 0, more, less) > 700
    assert apart(lambda rows: np.arange(len(rows["a"])) < 500, more, less) <= math.sqrt(
        2
    )  # here, but not where rows are sorted anew
    # Secret coins, handed on row by row: the same law, and one row apart.
    thrown = np.zeros(1000, dtype=bool)
    thrown[Coins(bytes(32), 0.5).chosen(0, 0, 1000)] = True
    assert apart(lambda rows: thrown[-len(rows["a"]) :], more, less) <= 1.0


def test_the_sample_of_the_engine_does_not_look_at_cells():
    """Whatever the cells are, the same places are chosen: else a row would decide for itself whether it is seen."""
    coin = Coins(bytes(range(32)), 0.25)
    for fill in (0.0, 1.0):
        cells = {name: np.full(5000, fill) for name in NAMES}
        cells["a"] = np.arange(5000) / 1000  # tells the places
        kept, _ = LocalPass(open_source(cells), SCHEMA, threads=1).kept(coin)
        found = np.concatenate([piece.batch.column("a") for piece in kept._source.pieces(NAMES)])
        assert np.array_equal(np.sort(found), coin.chosen(0, 0, 5000) / 1000)


def test_one_sample_serves_all_rounds(sampled, monkeypatch):
    """Coins that were thrown anew for every round would still be private; coins thrown again by the places of a second reading would not,
    where a database hands its rows over in another order."""
    thrown = []
    right = Coins.chosen
    monkeypatch.setattr(Coins, "chosen", lambda self, *place: thrown.append(place[:2]) or right(self, *place))
    released()
    assert len(thrown) == len(set(thrown))


def test_rounds_that_published_nothing_keep_everything():
    """No row is left in the last round, as it may be in a table without rows: nothing is divided by zero."""
    empty = Round(np.eye(2), np.zeros((2, 2)), 1.0, kept=1.0)
    full = replace(empty, gram=np.eye(2))
    assert [each.kept for each in whitening.weighed([full, empty], None)] == [1.0, 1.0]


@pytest.mark.parametrize(("published", "told"), [(0.3, 1.0), (0.0, 1.0)])
def test_a_wide_release_is_of_one_row_at_least(published, told, monkeypatch):
    known = []
    monkeypatch.setattr(whitening, "MANY_COLUMNS", 1)
    monkeypatch.setattr(whitening, "pooled_rounds", lambda rounds, count: known.append(count))
    task = Task(Budget(1.0, 1e-6), Neighbours.ADD_REMOVE, dim=2, row_bound=2.0, intercept=True)
    rounds = [Round(np.eye(2), np.diag([published, 1.0]), 0.01, kept=1.0)] * 2
    whitening.finished(rounds, None, task)
    assert known == [pytest.approx(told, rel=1e-3)]


def test_few_columns_have_fewer_rounds():
    few = [len(rules(dim, 1e7, 1.0).shares) for dim in (whitening.FEW_COLUMNS - 1, whitening.FEW_COLUMNS)]
    assert few == [4, whitening.ROUNDS]
