"""Rows in public bins: every engine counts alike, in whole numbers, and reads a table again under learnt scales."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.engines import partial
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_pass
from dpgram.engines.summing import Summing, summing_for
from dpgram.engines.torch import DevicePass
from dpgram.mechanisms import ranges
from dpgram.rows.bin_counts import COUNT_BOUND
from dpgram.sources.open import open_source
from dpgram.terms.bins import Bins
from tests.engines.tensors import DEVICES, bits, numbers, wild_cells
from tests.needs import is_here

if is_here("package", "torch"):
    import torch

needs_torch = pytest.mark.package("torch")


def bins_of(schema: dpgram.Schema) -> Bins:
    found = ranges.next_bins([], schema.looked_at)
    assert found is not None
    return found


def one_by_one(cells: np.ndarray, bins: Bins) -> np.ndarray:
    """By the definition: a cell lies in the bin above the largest edge that it reaches; one that is not finite in none."""
    counts = []
    for column, edges in zip(cells.T, bins.inner.values(), strict=True):
        own = [0] * (len(edges) + 1)
        for cell in column[np.isfinite(column)]:
            own[sum(edge <= cell for edge in edges)] += 1
        counts += own
    return np.array(counts)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 700])
def test_this_machine_counts_by_the_definition(threads, rows):
    schema, cells = numbers(3), wild_cells(rows, 3)
    bins = bins_of(schema)
    source = open_source(cells, columns=list(schema.names))
    total = LocalPass(source, schema, threads=threads).counts(bins)
    found = np.concatenate(list(bins.unpacked(total.high).values()))
    assert np.array_equal(found, one_by_one(cells, bins))
    assert total.rows == rows
    assert np.array_equal(total.in_scaled_units(), total.high)  # a count of one is one
    assert np.array_equal(total.high, total.high.T)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_packing_loses_nothing(sizes):
    bins = Bins({f"x{i}": tuple(float(e) for e in range(size)) for i, size in enumerate(sizes)})
    counts = np.arange(1, bins.total + 1)
    matrix = bins.packed(counts)
    assert np.array_equal(np.concatenate(list(bins.unpacked(matrix).values())), counts)
    assert (bins.dim - 1) * bins.dim // 2 < bins.total <= bins.dim * (bins.dim + 1) // 2


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_a_device_counts_alike(device, dtype):
    schema = numbers(4)
    cells = np.nan_to_num(wild_cells(600, 4), posinf=9.0, neginf=-9.0) if "int" in dtype else wild_cells(600, 4)
    with np.errstate(over="ignore"):
        cells = np.clip(cells, -100, 100).astype(dtype) if "int" in dtype else cells.astype(dtype)
    made = open_pass(torch.from_numpy(cells), schema, columns=list(schema.names), device=device)
    assert isinstance(made, DevicePass)
    assert made.scaling is not None
    local = LocalPass(open_source(cells, columns=list(schema.names)), schema)
    assert bits(made.counts(bins_of(schema))) == bits(local.counts(bins_of(schema)))


@needs_torch
def test_cells_on_the_edges_are_counted_alike_everywhere():
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", -10, 10)])
    bins = bins_of(schema)
    edges = np.array(bins.inner["x"])
    cells = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [-10.0, 10.0, -11.0, 11.0]])[
        :, None
    ]
    local = LocalPass(open_source(cells, columns=["x"]), schema).counts(bins)
    device = open_pass(torch.from_numpy(cells), schema, columns=["x"], device="cpu").counts(bins)
    assert bits(local) == bits(device)
    assert np.array_equal(bins.unpacked(local.high)["x"], one_by_one(cells, bins))


@pytest.mark.parametrize("edges", [[0, 300], [0, 0, 17, 200, 300]])
def test_counts_of_parts_add_up(edges):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=300), "y": pa.array([None, 1.0, 2.0] * 100)})
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -2, 2), dpgram.Numeric("y", 0, 4)])
    bins = bins_of(schema)
    batches = [
        piece
        for number, (start, stop) in enumerate(pairwise(edges))
        for piece in partial.count_part(
            iter(table.slice(start, stop - start).to_batches()), schema.to_dict(), ["x", "y"], dict(bins.inner), number
        )
    ]
    pieces = [tuple(row.values()) for batch in partial.add_pieces(batches, COUNT_BOUND) for row in batch.to_pylist()]
    whole = LocalPass(open_source(table), schema).counts(bins)
    assert bits(partial.from_pieces(pieces, bins.dim, COUNT_BOUND)) == bits(whole)


def test_text_and_dates_are_counted_as_they_are_encoded():
    table = {"x": ["1", " 2.5 ", "", "x"], "when": ["2013-01-01", "2013-06-01", "2015-01-01", None]}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 4), dpgram.Date("when", "2010-01-01", "2020-01-01")])
    bins = Bins({"x": (1.0, 2.0), "when": (15706.0, 16000.0)})
    found = bins.unpacked(LocalPass(open_source(table), schema).counts(bins).high)
    assert found["x"].tolist() == [0, 1, 1]  # an empty cell and one that is no number lie in no bin
    assert found["when"].tolist() == [0, 2, 1]


# The same table under learnt scales.

LEARNT = {"x0": (-1.5, -1.0), "x2": (-2.0, -1.9)}


def learnt(schema: dpgram.Schema) -> dpgram.Schema:
    wide = [replace(column, lower=-1000.0, upper=1000.0) for column in schema.columns]
    return replace(schema, columns=tuple(wide), learnt=LEARNT)


def test_a_pass_is_read_again_under_learnt_scales():
    schema, cells = learnt(numbers(3)), wild_cells(500, 3)
    source = open_source(cells, columns=list(schema.names))
    bare = replace(schema, learnt={})
    first = LocalPass(source, bare)
    again = first.under(schema)
    assert bits(again.gram(2.0)) == bits(LocalPass(source, schema).gram(2.0))
    assert bits(first.gram(2.0)) == bits(LocalPass(source, bare).gram(2.0)) != bits(again.gram(2.0))


def test_the_kernel_and_numpy_encode_learnt_scales_alike(monkeypatch):
    schema, cells = learnt(numbers(5)), wild_cells(500, 5)
    source = open_source(cells, columns=list(schema.names))
    compiled = bits(LocalPass(source, schema).gram(2.0))
    monkeypatch.setattr("dpgram.engines.summing.kernel", lambda: None)
    assert type(summing_for(schema, 2.0)) is Summing  # in NumPy
    assert bits(LocalPass(source, schema).gram(2.0)) == compiled


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_a_device_encodes_learnt_scales_alike(device):
    schema, cells = learnt(numbers(4)), wild_cells(500, 4)
    made = open_pass(torch.from_numpy(cells), replace(schema, learnt={}), columns=list(schema.names), device=device)
    local = LocalPass(open_source(cells, columns=list(schema.names)), schema)
    assert bits(made.under(schema).gram(2.0)) == bits(local.gram(2.0))
