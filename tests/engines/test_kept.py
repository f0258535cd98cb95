"""Rows that are kept in memory: the same bits as the table, and of a sample the rows whose secret coin says so."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.engines import partial
from dpgram.engines.kept import KeptRows
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_pass
from dpgram.errors import MechanismError
from dpgram.mechanisms import ranges
from dpgram.rows.coins import BLOCK_ROWS, Coins
from dpgram.sources.open import open_source
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap
from tests.engines.tensors import DEVICES, bits, numbers, wild_cells
from tests.needs import is_here

if is_here("package", "torch"):
    import torch

KEY = bytes(range(32))
ROWS = 5000
SCHEMA = dpgram.Schema(
    unit="person",
    columns=[
        dpgram.Numeric("x", -3, 3, missing="midpoint"),
        dpgram.Numeric("whole", 0, 9, missing="midpoint"),
        dpgram.Categorical("level", ("a", "b", "c"), other=True),
        dpgram.Boolean("yes"),
        dpgram.Date("when", "2020-01-01", "2021-01-01", missing="midpoint"),
    ],
    derived=[dpgram.Product("both", ("x", "whole"))],
)


def table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    x[::17] = np.nan
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 366, rows)]
    return pa.table(
        {
            "x": x,
            "whole": pa.array([None if i % 13 == 0 else i % 10 for i in range(rows)], pa.int16()),
            "level": pa.array([("a", "b", "c", "d", None)[i % 5] for i in range(rows)]),
            "yes": pa.array([(True, False, None)[i % 3] for i in range(rows)]),
            "when": pa.array(days),
        }
    )


def maps(schema: dpgram.Schema) -> PublicMap:
    rng = np.random.default_rng(2)
    return PublicMap.near(rng.normal(size=(len(schema.encoded),) * 2))


def bins_of(schema: dpgram.Schema) -> Bins:
    found = ranges.next_bins([], schema.looked_at)
    assert found is not None
    return found


def sums(read: LocalPass, schema: dpgram.Schema) -> list:
    """Both kinds of sums, at one scale and at several, and counts."""
    through = maps(schema)
    return [
        bits(read.gram(2.0)),
        bits(read.gram(1.0, through)),
        bits(read.gram(1.0, through, (1.0, 4.0, 16.0))),
        bits(read.counts(bins_of(schema))),
    ]


@pytest.fixture(params=["arrow", "chunks", "views", "dictionary", "csv", "parquet"])
def given(request, tmp_path, monkeypatch):
    whole = table()
    match request.param:
        case "chunks":
            return pa.Table.from_batches(whole.to_batches(max_chunksize=600))
        case "views":
            text = whole.column("level").combine_chunks().cast(pa.string_view())
            return whole.set_column(2, "level", text)
        case "dictionary":
            return whole.set_column(2, "level", whole.column("level").dictionary_encode())
        case "csv":
            whole.to_pandas().to_csv(tmp_path / "t.csv", index=False)
            return tmp_path / "t.csv"
        case "parquet":
            pq.write_table(whole, tmp_path / "t.parquet", row_group_size=700)
            monkeypatch.setattr("dpgram.sources.parquet.batch_rows", lambda columns: 100)  # several batches in a part
            return tmp_path / "t.parquet"
    return whole


@pytest.mark.parametrize("threads", [1, 3])
def test_all_rows_from_memory_have_the_bits_of_the_table(given, threads):
    read = LocalPass(open_source(given), SCHEMA, threads=threads)
    kept, rows = read.kept(None)
    assert rows == ROWS
    assert sums(kept, SCHEMA) == sums(read, SCHEMA)


@pytest.mark.parametrize("threads", [1, 3])
def test_more_rows_than_memory_may_hold_are_read_again(given, threads):
    """Of a table with many more rows than its units can count for, nobody foresees that all of them are too many."""
    read = LocalPass(open_source(given), SCHEMA, threads=threads, memory=0.1)
    again, rows = read.kept(None)
    assert rows == ROWS
    assert not isinstance(again._source, KeptRows)
    assert sums(again, SCHEMA) == sums(read, SCHEMA)
    small, _ = LocalPass(open_source(given), SCHEMA, threads=threads, memory=1.0).kept(None)
    assert isinstance(small._source, KeptRows)
    sample, _ = read.kept(Coins(KEY, 0.5))
    assert isinstance(sample._source, KeptRows)  # whatever it takes: other rows would be another sample


def test_kept_rows_are_encoded_by_scales_that_were_learnt_later(given):
    learnt = dpgram.Schema(unit="person", columns=SCHEMA.columns, derived=SCHEMA.derived, learnt={"x": (0.1, 0.2)})
    read = LocalPass(open_source(given), SCHEMA)
    kept, _ = read.kept(None)
    assert sums(kept.under(learnt), learnt) == sums(LocalPass(open_source(given), learnt), learnt)
    assert sums(kept, SCHEMA) == sums(read, SCHEMA)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_sample_is_the_rows_that_the_coins_choose_whatever_the_threads(given, threads):
    coins = Coins(KEY, 0.25)
    source = open_source(given)
    kept, rows = LocalPass(source, SCHEMA, threads=threads).kept(coins)
    assert rows == ROWS  # of the table, not of the sample
    parts, chosen = source.parts(SCHEMA.names), []
    start = 0
    for number, part in enumerate(parts):
        many = sum(piece.batch.num_rows for piece in part())
        chosen += [start + place for place in coins.chosen(number, 0, many)]
        start += many
    assert abs(len(chosen) - ROWS / 4) < 6 * math.sqrt(ROWS * 3 / 16)
    alone = LocalPass(open_source(table().take(chosen)), SCHEMA)
    assert sums(kept, SCHEMA) == sums(alone, SCHEMA)


def test_taking_numbers_imports_no_pandas(tmp_path):
    """It takes half a second and 30 MB, and Arrow imports it by itself when it makes arrays of NumPy's."""
    pq.write_table(pa.table({"x": np.arange(9.0)}), tmp_path / "t.parquet")
    code = f"""
import sys
from dpgram import Numeric, Schema
from dpgram.engines.open import open_pass
from dpgram.rows.coins import Coins
schema = Schema(unit="person", columns=[Numeric("x", 0, 9)])
open_pass({str(tmp_path / "t.parquet")!r}, schema).kept(Coins(bytes(32), 0.5))
assert "pyarrow" in sys.modules and "pandas" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.package("torch")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("share", [None, 0.5])
def test_a_device_keeps_the_same_rows(device, named, share):
    schema, cells = numbers(4), wild_cells(3000, 4)
    coins = None if share is None else Coins(KEY, share)
    tensor = torch.from_numpy(cells)
    given = {name: tensor[:, i].contiguous() for i, name in enumerate(schema.names)} if named else tensor
    columns = None if named else list(schema.names)
    read = open_pass(given, schema, columns=columns, device=device)
    local = LocalPass(open_source(cells, columns=list(schema.names)), schema)
    one, other = read.kept(coins), local.kept(coins)
    assert one[1] == other[1] == 3000
    assert sums(one[0], schema) == sums(other[0], schema)
    streamed = open_pass({name: cells[:, i] for i, name in enumerate(schema.names)}, schema, device=device).kept(coins)
    assert sums(streamed[0], schema) == sums(other[0], schema)


# The coins themselves


def test_coins_do_not_depend_on_how_rows_are_read():
    coins, rows = Coins(KEY, 0.125), 2 * BLOCK_ROWS + 777
    whole = coins.chosen(3, 0, rows)
    for step in (1000, BLOCK_ROWS, 50_000):
        pieces = [coins.chosen(3, first, min(step, rows - first)) + first for first in range(0, rows, step)]
        assert np.array_equal(np.concatenate(pieces), whole)
    assert len(coins.chosen(3, 5, 0)) == 0


def test_coins_of_other_places_parts_and_keys_are_independent():
    """Frequencies, and how often two coins are heads together, within 6 standard deviations: a false alarm in 10^8."""
    share, rows = 0.25, 20 * BLOCK_ROWS

    def heads(coins: Coins, part: int) -> np.ndarray:
        thrown = np.zeros(rows, dtype=bool)
        thrown[coins.chosen(part, 0, rows)] = True
        return thrown

    first = heads(Coins(KEY, share), 0)
    others = [
        heads(Coins(KEY, share), 1),
        heads(Coins(KEY[::-1], share), 0),
        np.roll(first, 1),
        np.roll(first, BLOCK_ROWS),
        np.arange(rows) % 4 == 0,  # a public choice
    ]
    assert abs(first.mean() - share) < 6 * math.sqrt(share * (1 - share) / rows)
    for other in others:
        together = share**2
        assert abs(np.mean(first & other) - together) < 6 * math.sqrt(together * (1 - together) / rows)


def test_all_heads_where_the_sample_is_the_table():
    assert np.array_equal(Coins(KEY, 1.0).chosen(0, 10, 100), np.arange(100))


@pytest.mark.parametrize("wrong", [(KEY, 0.0), (KEY, 1.5), (KEY, 1 / 3), (KEY[:16], 0.5)])
def test_coins_that_nobody_could_throw_are_refused(wrong):
    with pytest.raises(MechanismError, match="multiple of 2\\^-16, by a secret key"):
        Coins(*wrong)


def test_coins_and_kept_rows_print_nothing():
    kept, _ = LocalPass(open_source(table()), SCHEMA).kept(Coins(KEY, 0.5))
    assert repr(Coins(KEY, 0.5)) == "Coins(share=0.5, key=<secret>)"
    for shown in (repr(kept), repr(kept._source), str(vars(kept._source)["where"])):
        assert not any(character.isdigit() for character in shown.partition(" at 0x")[0])


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_rows_that_workers_keep_are_those_of_their_parts(share):
    whole, edges = table(), [0, 0, 1700, 1701, ROWS]
    kept = [
        tuple(row.values())
        for number, (start, stop) in enumerate(pairwise(edges))
        for batch in partial.keep_part(
            iter(whole.slice(start, stop - start).to_batches(max_chunksize=600)),
            SCHEMA.to_dict(),
            list(SCHEMA.names),
            KEY if share < 1 else b"",
            share,
            number,
        )
        for row in batch.to_pylist()
    ]
    batches, rows, ids = partial.from_kept(kept, SCHEMA)
    assert (rows, ids) == (ROWS, 0)
    chosen = [
        start + place
        for number, (start, stop) in enumerate(pairwise(edges))
        for place in Coins(KEY, share).chosen(number, 0, stop - start)
    ]
    memory = LocalPass(KeptRows("the table", SCHEMA.names, batches), SCHEMA)
    assert sums(memory, SCHEMA) == sums(LocalPass(open_source(whole.take(chosen)), SCHEMA), SCHEMA)
