"""Hostile tables: whatever ids, weights and cells a table holds, a unit with all of its rows changes a sum by at most its bound.

Sums are compared as whole numbers, with and without the unit. They differ by the unit's own Gram matrix, which has no negative eigenvalue,
so its trace says all: it is at most m B^2. At several scales a unit has a trace at each; the root of the sum of their squares is at most
m. Counts in bins differ by at most m in every column."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines import local as local_engine
from dpgram.engines import summing
from dpgram.engines.local import LocalPass
from dpgram.errors import TableError
from dpgram.mechanisms.ranges import next_bins
from dpgram.rows import shares, units
from dpgram.rows.coins import Coins
from dpgram.rows.gram_sum import LIMB_BITS
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, first_scales

COLUMNS = [dpgram.Numeric("x", -1, 1), dpgram.Numeric("y", -1, 1, missing="indicator"), dpgram.Boolean("b", missing="drop-row")]
BINS = next_bins([], {"x": (-1.0, 1.0), "y": (-1.0, 1.0)})
LARGE = PublicMap.near(np.random.default_rng(0).normal(size=(5, 5)) * 40)  # all rows are long, and are clipped
SMALL = PublicMap.near(np.random.default_rng(1).normal(size=(5, 5)) / 3)
QUESTIONS = {
    "its largest norm": (2.0, None, ONE_CLIP),
    "clipped": (0.8, None, ONE_CLIP),
    "a map": (1.0, SMALL, ONE_CLIP),
    "a map, all clipped": (1.0, LARGE, ONE_CLIP),
    "three scales": (1.0, SMALL, first_scales(3)),
    "three scales, all long": (1.0, LARGE, first_scales(3)),
    "five scales": (1.0, LARGE, first_scales(5)),
}


def schema_for(most: int, weighted: bool = False) -> dpgram.Schema:
    weight = {"weight": "w", "largest_weight": 3.0} if weighted else {}
    return dpgram.Schema(unit="person", columns=COLUMNS, unit_id="id", rows_per_unit=most, **weight)


def table_of(ids, seed: int = 0, at_bound: bool = True) -> pa.Table:
    """Rows with these ids, all as long as the schema allows, or with cells of every kind; weights at the bound and beyond."""
    rows, rng = len(ids), np.random.default_rng(seed)
    x, y = (np.where(rng.random(rows) < 0.5, -1.0, 1.0) for _ in range(2))
    weights = np.where(rng.random(rows) < 0.7, 3.0, 1e9)
    if not at_bound:
        x, y, weights = x * rng.random(rows) * 3, y * rng.random(rows), rng.exponential(size=rows)
        for cells in (x, y, weights):
            cells[rng.random(rows) < 0.1] = np.nan
    return pa.table({"id": ids, "x": x, "y": y, "b": np.ones(rows, bool), "w": weights})


def counted(table: pa.Table, schema: dpgram.Schema, threads: int = 2) -> LocalPass:
    made = LocalPass(open_source(table), schema, threads=threads)
    made.count_units()
    return made


def changes(whole: pa.Table, without: pa.Table, schema: dpgram.Schema, question: str) -> list[np.ndarray]:
    """What the rows that ``without`` lacks add to the sum, at every scale, in units of 2^-40."""
    one, other = (counted(table, schema).gram(*QUESTIONS[question]).in_whole_numbers()[0] for table in (whole, without))
    return [*(one - other)] if one.ndim == 3 else [one - other]


def is_within(added: list[np.ndarray], most: int, row_bound: float) -> bool:
    """Whether a unit's Gram matrices keep to its bound, exactly."""
    traces = [int(np.trace(each)) for each in added]
    assert all(trace >= 0 for trace in traces)
    return sum(trace**2 for trace in traces) <= (most * Fraction(row_bound) ** 2 * 2**40) ** 2


def unit_of(rows: int, others: int = 50) -> tuple[pa.Table, pa.Table]:
    """A table with a unit of so many rows at the bound, among others; and the same table without it."""
    ids = np.concatenate([np.full(rows, 7), 1000 + np.arange(others) // 2])
    order = np.random.default_rng(3).permutation(len(ids))
    table = table_of(ids).take(order)
    return table, table.filter(pa.compute.not_equal(table["id"], 7))


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(("rows", "most"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 3), (7, 6), (100, 1), (1001, 7), (4097, 4096)])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_unit_with_all_its_rows_at_the_bound(question, rows, most, weighted):
    whole, without = unit_of(rows)
    added = changes(whole, without, schema_for(most, weighted), question)
    row_bound = QUESTIONS[question][0]
    assert is_within(added, most, row_bound)
    if rows >= most and question in (
        "its largest norm",
        "clipped",
        "a map, all clipped",
    ):  # and it is not far below: nothing is wasted
        length = min(row_bound**2, 4.0 if question != "a map, all clipped" else 1.0)
        reached = 0.999 * most * (length if question != "its largest norm" else 4.0)
        assert np.trace(added[0]) > reached * 2**40 - 1


@pytest.mark.parametrize("rows", [1, 2, 3, 50, 1001])
@pytest.mark.parametrize("most", [1, 3])
def test_looks_count_a_unit_at_most_as_often(rows, most):
    whole, without = unit_of(rows)
    one, other = (counted(table, schema_for(most, weighted=True)).counts(BINS) for table in (whole, without))
    change = (one.high.astype(object) - other.high) * 2**LIMB_BITS + (one.low.astype(object) - other.low)
    for column in BINS.unpacked(change).values():
        assert all(each >= 0 for each in column)
        assert sum(column) <= most * 2**LIMB_BITS
        assert sum(column) > 0.999 * min(rows, most) * 2**LIMB_BITS


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("question", ["clipped", "three scales, all long"])
def test_wild_cells_and_weights(question, seed):
    rng = np.random.default_rng(seed)
    ids = rng.choice([1, 2, 3, 4, 5], 400, p=[0.6, 0.2, 0.1, 0.05, 0.05])
    table, schema = table_of(ids, seed, at_bound=False), schema_for(3, weighted=True)
    for unit in range(1, 6):
        without = table.filter(pa.compute.not_equal(table["id"], unit))
        assert is_within(changes(table, without, schema, question), 3, QUESTIONS[question][0])


def test_one_id_for_all_rows():
    """The whole table is one unit, so all of its sum is bounded."""
    table, schema = table_of(np.full(30_000, 5)), schema_for(2)
    assert counted(table, schema).count_units() == 1
    for question in QUESTIONS:
        assert is_within(changes(table, table[:0], schema, question), 2, QUESTIONS[question][0])


def test_a_unit_of_a_million_rows(tmp_path):
    """In many batches and threads, and in files of their own."""
    rows = 10**6
    table = pa.concat_tables([table_of(np.full(rows, 7)), table_of(np.arange(100) + 10**6)])
    schema = schema_for(3)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2**16)
    made = LocalPass(open_source(tmp_path / "t.parquet"), schema, threads=4)
    assert made.count_units() == 101
    other = counted(table[rows:], schema)
    added = made.gram(2.0).in_whole_numbers()[0] - other.gram(2.0).in_whole_numbers()[0]
    assert is_within([added], 3, 2.0)
    assert np.trace(added) > 0.99 * 12 * 2**40  # rounding towards zero takes off more of short rows


def test_as_many_ids_as_rows():
    """All rows count in full: the sum is that of a table without ids."""
    table = table_of(np.arange(200_000))
    plain = dpgram.Schema(unit="row", columns=COLUMNS)
    made = counted(table, schema_for(1))
    assert made.count_units() == 200_000
    one, other = made.gram(1.0), LocalPass(open_source(table), plain).gram(1.0)
    assert np.array_equal(one.in_whole_numbers()[0], other.in_whole_numbers()[0])


SAME = [[7, 7.0], ["7", "7"], ["7", "7.0"], ["é", "é"]]
OTHERS = [
    ["a", "A"],  # case
    ["a", "a "],  # white space
    ["a", "\ta"],
    ["\u00e9", "e\u0301"],  # Unicode forms
    ["\ufb01", "fi"],
    ["7", "07"],
    ["7", "7.5"],
    ["7", "+7"],
    ["ß", "ss"],
    ["a\0", "a"],
    ["nan", "NaN"],
    [2**53, 2**53 + 1],
    [-1, 1],
    [0.5, 0.25],
]


@pytest.mark.parametrize("pair", SAME, ids=str)
def test_ids_that_are_one(pair):
    assert counted(table_of(pair), schema_for(1)).count_units() == 1


@pytest.mark.parametrize("pair", OTHERS, ids=ascii)
def test_ids_that_are_two(pair):
    assert counted(table_of(pair), schema_for(1)).count_units() == 2


def test_a_whole_number_and_its_text_are_one_id():
    """In batches of one table too, whose types may differ."""
    made = [counted(table_of(ids), schema_for(1)).gram(1.0) for ids in ([7, 7, 8], [7.0, 7.0, 8.0], ["7", "7", "8"])]
    assert all(np.array_equal(made[0].low, each.low) for each in made)


@pytest.mark.parametrize(
    "ids",
    [[None, None, "a"], ["", None, "a"], [b"", None, b"a"], [np.nan, np.nan, 1.0], pa.array([None, None, 1], pa.int64())],
    ids=["null", "empty", "empty bytes", "no number", "integers"],
)
def test_rows_without_an_id_do_not_count(ids):
    """They would else be one unit, or each its own, and either could hold a person's rows."""
    table = table_of(ids if isinstance(ids, pa.Array) else pa.array(ids))
    made = counted(table, schema_for(1))
    assert made.count_units() == 1
    assert np.array_equal(made.gram(1.0).low, counted(table[2:], schema_for(1)).gram(1.0).low)
    assert made.gram(1.0).rows == 3


@pytest.mark.parametrize("act", ["more rows", "fewer rows"])
@pytest.mark.parametrize("ask", [lambda made: made.gram(1.0), lambda made: made.counts(BINS), lambda made: made.kept(None)])
def test_a_table_that_changes_between_the_count_and_the_sum(act, ask, tmp_path):
    """It may have more rows of a unit by then than were counted."""
    path, table = tmp_path / "t.parquet", table_of(np.arange(500) // 2)
    pq.write_table(table, path)
    made = LocalPass(open_source(path), schema_for(2))
    made.count_units()
    pq.write_table(pa.concat_tables([table, table[:1]]) if act == "more rows" else table[1:], path)
    with pytest.raises(TableError, match="changed"):
        ask(made)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("ask", [lambda made: made.gram(1.0), lambda made: made.counts(BINS), lambda made: made.kept(None)])
@pytest.mark.parametrize("becomes", [[1, 2, 2, 2, 2], [2, 2, 2, 2, 1], [1, 1, 1, 1, 1], [1, 1, 1, 2, 2]])
def test_ids_in_memory_that_change_between_the_count_and_the_sum(becomes, ask, compiled, monkeypatch):
    """As many rows, and no id that was not there: only their marks tell. Unit 2 would count as four rows."""
    if not compiled:
        monkeypatch.setattr(units, "kernel", lambda: None)
    ids = np.array([1, 1, 1, 1, 2])
    columns = {name: np.ones(5) for name in ("x", "y", "b")}
    made = LocalPass(open_source({"id": ids, **columns}), schema_for(1), threads=1)
    made.count_units()
    ids[:] = becomes
    with pytest.raises(TableError, match="changed"):
        ask(made)
    ids[:] = [2, 1, 1, 1, 1]  # other places alone are no other table
    ask(made)


def in_whole(made) -> np.ndarray:
    return made.gram(1.0, SMALL).in_whole_numbers()[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_unit_keeps_to_its_bound_under_learnt_scales(weighted):
    schema = schema_for(1, weighted)
    learnt = replace(schema, learnt={"x": (-0.25, 0.25)})
    whole, without = (in_whole(counted(table, schema).under(learnt)) for table in unit_of(100))
    assert is_within([whole - without], 1, 1.0)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("share", [None, 0.5])
def test_rows_that_are_kept_have_the_shares_of_the_whole_table(share, compiled, monkeypatch):
    """Each its own, also where only some rows are kept."""
    if not compiled:
        monkeypatch.setattr(summing, "kernel", lambda: None)
    ids = np.where(np.arange(40_000) % 3 == 0, 7, np.arange(40_000) + 100)
    table, schema = table_of(np.random.default_rng(5).permutation(ids)), schema_for(2, weighted=True)
    made = LocalPass(open_source(table), schema, threads=1)
    made.count_units()
    coins = None if share is None else Coins(bytes(32), share)
    places = np.arange(len(ids)) if coins is None else coins.chosen(0, 0, len(ids))
    kept, _ = made.kept(coins)
    taken = made._over(open_source(table.take(places)))  # the same rows, whose ids are looked up again
    taken._counted = None
    assert np.array_equal(in_whole(kept), in_whole(taken))


def test_ids_that_were_not_there_when_units_were_counted_do_not_count(tmp_path):
    path, table = tmp_path / "t.parquet", table_of(np.arange(500))
    pq.write_table(table, path)
    made = LocalPass(open_source(path), schema_for(2))
    made.count_units()
    pq.write_table(table_of(np.full(500, 9999)), path)
    try:
        total = made.gram(1.0)
    except TableError:
        return
    assert not total.in_whole_numbers()[0].any()


@contextmanager
def per_batch(self):
    """A mistake: rows of a unit are counted within each batch alone."""
    name = self._schema.unit_id

    def rows_of_unit(batch):
        index = local_engine.UnitIndex(2**30)
        index.add(batch.column(name))
        return index.counts(batch.column(name))

    yield shares.Shares(self._schema, rows_of_unit)


def by_share(wrong):
    """A mistake in what rows of a unit that is too large count as."""

    def by_unit(self, rows):
        return np.where(rows > self._most, wrong(self._most, np.maximum(rows, 1)), (rows > 0).astype(np.float64))

    return by_unit


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (shares.Shares, "_by_unit", by_share(lambda most, rows: 1.0)),  # no weighting
        (shares.Shares, "_by_unit", by_share(lambda most, rows: np.sqrt(most / rows))),  # the root of the ratio twice
        (shares.Shares, "_by_unit", by_share(lambda most, rows: most / (rows - 1))),  # off by one
        (LocalPass, "_sharing", per_batch),
    ],
    ids=["none", "root", "off by one", "by batch"],
)
def test_planted_mistakes_are_seen(where, name, wrong, monkeypatch):
    """Each breaks the bound of a unit of four rows, in files of one row."""
    monkeypatch.setattr(where, name, wrong)
    whole, without = unit_of(4)
    schema = schema_for(2)
    sums = []
    for table in (whole, without):
        made = LocalPass(open_source(pa.Table.from_batches(table.to_batches(max_chunksize=1))), schema)
        made.count_units()
        sums.append(made.gram(1.0).in_whole_numbers()[0])
    assert not is_within([sums[0] - sums[1]], 2, 1.0)


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_message_and_no_release_tells_of_an_id(mechanism, neighbours, tmp_path):
    """Nor how many rows a unit has; and under add-remove not even the number of units."""
    schema = replace(schema_for(2), neighbours=neighbours)
    table = table_of([f"canary {i}" for i in np.arange(4000) // 3])
    rows = {"table_rows": 4000} if mechanism == "whitened-noise" else {}
    made = dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism=mechanism, **rows)
    made.save(tmp_path / "made.json")
    assert "canary" not in (tmp_path / "made.json").read_text()
    assert made.rows is None
    assert made.units == (1334 if neighbours == "replace" else None)
    assert math.isfinite(made.gram.sum())
