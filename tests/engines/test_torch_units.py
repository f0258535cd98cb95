"""Tensors, and any table on a device, count by unit, weight and missing cells to the bits of the local engine.

Tests with "cuda" in their name need an NVIDIA GPU: ``pytest tests/engines/test_torch_units.py -k cuda`` there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram.engines import device_sum
from dpgram.engines import torch as engine
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_pass
from dpgram.engines.torch import DevicePass
from dpgram.errors import ColumnTypeError, TableError
from dpgram.mechanisms.ranges import next_bins
from dpgram.rows.coins import Coins
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, first_scales
from tests.engines.tensors import DEVICES, bits, numbers, on, wild_cells
from tests.needs import package
from tests.panels import PANEL, SCHEMAS, mechanism

torch = package("torch")
pytestmark = pytest.mark.package("torch")
WIDTHS = [3, 22, 63, 90]  # encoded columns of which CUDA has kernels of different kinds


def with_units(dim: int, **changes) -> dpgram.Schema:
    given = {"unit_id": "id", "rows_per_unit": 2, "weight": "w", "largest_weight": 1.5, **changes}
    return replace(numbers(dim), **given)


def columns(rows: int, dim: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Wild cells, weights of every kind, and ids of one to many rows."""
    rng = np.random.default_rng(seed)
    cells = wild_cells(rows, dim, seed)
    cells[rng.random(rows) < 0.5] = rng.normal(size=(1, dim))  # more rows without a missing cell
    weights = np.select([rng.random(rows) < 0.3, rng.random(rows) < 0.1], [1.5, np.nan], rng.normal(size=rows) + 1)
    ids = (rows / 2 * rng.random(rows) ** 2).astype(np.int64)
    return {**{f"x{i}": cells[:, i] for i in range(dim)}, "id": ids, "w": weights}


def both(table: dict, schema: dpgram.Schema, device: str, *, matrix: bool = False):
    """A device's pass over tensors, and the local one over the same arrays."""
    tensors = {name: on(device, cells) for name, cells in table.items()}
    given, names = (
        (torch.stack([one.double() for one in tensors.values()], dim=1), list(tensors)) if matrix else (tensors, None)
    )
    made = open_pass(given, schema, columns=names, device=device)
    assert isinstance(made, DevicePass)
    return made, LocalPass(open_source(table), schema)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("matrix", [True, False], ids=["a matrix", "columns"])
@pytest.mark.parametrize("dim", WIDTHS)
def test_every_sum_has_the_local_bits(device, dim, matrix):
    schema, table = with_units(dim), columns(5000, dim)
    made, local = both(table, schema, device, matrix=matrix)
    assert made.scaling is not None
    through = PublicMap.near(np.random.default_rng(dim).normal(size=(dim + 1,) * 2) / 4)
    assert made.count_units() == local.count_units() == len(np.unique(table["id"]))
    for given in ((0.7 * schema.largest_norm, None, ONE_CLIP), (1.0, through, ONE_CLIP), (1.0, through, first_scales(4))):
        found = made.gram(*given)
        assert bits(found) == bits(local.gram(*given))
        assert found.rows == 5000
    bins = next_bins([], schema.looked_at)
    expected = local.counts(bins)
    assert expected.low.any()
    assert bits(made.counts(bins)) == bits(expected)
    kept, rows = made.kept(None)
    assert rows == 5000
    assert bits(kept.gram(1.0, through)) == bits(local.gram(1.0, through))
    some, other = made.kept(Coins(bytes(32), 0.25))[0], local.kept(Coins(bytes(32), 0.25))[0]
    assert bits(some.gram(1.0, through)) == bits(other.gram(1.0, through))
    lower, upper = schema.looked_at["x0"]
    learnt = replace(schema, learnt={"x0": (lower, lower + (upper - lower) / 100)})
    assert bits(made.under(learnt).gram(1.0, through)) == bits(local.under(learnt).gram(1.0, through))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("changes", [{"weight": None, "largest_weight": None}, {"unit_id": None, "rows_per_unit": None}])
def test_ids_alone_and_weights_alone(device, changes):
    schema, table = with_units(8, **changes), columns(3000, 8)
    made, local = both(table, schema, device)
    if schema.unit_id is not None:
        assert made.count_units() == local.count_units()
    assert bits(made.gram(1.2)) == bits(local.gram(1.2))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "float64", "float32"])
def test_ids_of_every_type(device, dtype):
    schema, table = with_units(4), columns(2000, 4)
    table["id"] = (table["id"] % 120).astype(dtype)
    made, local = both(table, schema, device)
    assert made.count_units() == local.count_units() == 120
    assert bits(made.gram(1.2)) == bits(local.gram(1.2))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("missing", ["drop-row", False, True])
def test_a_truth_value_that_is_none_drops_its_row(device, missing):
    cells = np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 0.5], [0.5, 0.5], [1.0, np.nan], [1.0, -1.0]])
    schema = dpgram.Schema(unit="p", columns=[dpgram.Boolean("b", missing=missing), dpgram.Numeric("x", -2, 2, missing=0)])
    made = open_pass(on(device, cells), schema, columns=["b", "x"], device=device)
    local = LocalPass(open_source(cells, columns=["b", "x"]), schema)
    assert bits(made.gram(1.2)) == bits(local.gram(1.2))
    whole = on(device, np.array([[0, 1], [1, 2], [2, 1]]))
    made = open_pass(whole, schema, columns=["b", "x"], device=device)
    assert bits(made.gram(1.2)) == bits(LocalPass(open_source(whole.cpu().numpy(), columns=["b", "x"]), schema).gram(1.2))


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_of_any_size(device, monkeypatch):
    schema, table = with_units(5), columns(3001, 5)
    expected = both(table, schema, device)[1]
    expected.count_units()
    for name, size in (("CHOSEN_BYTES", 8 * 7 * 100), ("COPY_BYTES", 8 * 7 * 37)):
        monkeypatch.setattr(engine, name, size)
        for matrix in (True, False):
            made, _ = both(table, schema, device, matrix=matrix)
            made.count_units()
            assert bits(made.gram(1.2)) == bits(expected.gram(1.2))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("ids", SCHEMAS)
def test_any_table_on_a_device_gives_the_local_release(device, method, ids):
    """Text ids, dates and categories are encoded on this machine."""
    given = {"delta": 1e-6, "insecure_seed": 4, **mechanism(method)}
    there, here = (dpgram.release(PANEL, SCHEMAS[ids], device=where, **given) for where in (device, None))
    assert np.array_equal(there.gram, here.gram)
    assert there.units == here.units == PANEL[ids].nunique()


@pytest.mark.parametrize("device", DEVICES)
def test_an_indicator_is_encoded_on_this_machine(device):
    schema = replace(with_units(2), columns=[dpgram.Numeric("x0", -2, 2, missing="indicator"), dpgram.Numeric("x1", -1, 1)])
    made, local = both(columns(1000, 2), schema, device)
    assert made.scaling is None
    assert made.count_units() == local.count_units()
    assert bits(made.gram(1.2)) == bits(local.gram(1.2))


def test_a_table_that_changed_since_its_units_were_counted(tmp_path):
    PANEL.to_parquet(tmp_path / "t.parquet")
    made = open_pass(tmp_path / "t.parquet", SCHEMAS["number"], device="cpu")
    made.count_units()
    PANEL[1:].to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="was changed"):
        made.gram(1.0)


def test_ids_that_are_truth_values_are_none():
    table = columns(10, 2)
    table["id"] = table["id"] > 1
    with pytest.raises(ColumnTypeError, match="column 'id' is the unit_id"):
        both(table, with_units(2), "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_times", lambda points, factors: points),  # no weighting
        ("_times", lambda points, f: points if f is None else points.mul_((f * f).unsqueeze(1)).trunc_()),  # twice
        ("_times", lambda points, f: points if f is None else points.mul_(f.unsqueeze(1)).round_()),  # rounded up
    ],
)
def test_planted_mistakes_are_seen(device, name, wrong, monkeypatch):
    monkeypatch.setattr(device_sum, name, wrong)
    made, local = both(columns(2000, 4), with_units(4), device)
    made.count_units(), local.count_units()
    assert bits(made.gram(1.2)) != bits(local.gram(1.2))


def test_no_cell_but_ids_and_weights_comes_to_the_host(monkeypatch):
    made, _ = both(columns(500, 4), with_units(4), "cpu", matrix=True)
    seen = []
    right = engine.Tensors.batch
    monkeypatch.setattr(engine.Tensors, "batch", lambda self, span, names: seen.extend(names) or right(self, span, names))
    made.count_units()
    made.gram(1.0)
    assert set(seen) == {"id", "w"}


def test_a_dict_of_tensors_and_text_ids():
    table = columns(500, 3)
    table["id"] = [f"person {i}" for i in table["id"]]
    schema = with_units(3)
    mixed = {name: cells if name == "id" else torch.from_numpy(np.asarray(cells)) for name, cells in table.items()}
    made, local = open_pass(mixed, schema, device="cpu"), LocalPass(open_source(pa.table(table)), schema)
    assert made.count_units() == local.count_units()
    assert bits(made.gram(1.2)) == bits(local.gram(1.2))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("missing", ["indicator", "drop-row"], ids=["encoded on the host", "on the device"])
@pytest.mark.parametrize("kind", ["float64", "bfloat16"])
def test_a_matrix_may_have_its_columns_in_another_order(device, missing, kind):
    """They were taken for one another where all of them were read: a unit of a thousand rows then counted in full."""
    rng, columns_of = np.random.default_rng(3), [dpgram.Numeric(name, -4, 4, missing=missing) for name in ("a", "b")]
    schema = dpgram.Schema(unit="p", columns=columns_of, unit_id="id", rows_per_unit=1, weight="w", largest_weight=4)
    ids = np.where(rng.random(3000) < 0.4, 7, rng.integers(8, 250, 3000))
    cells = np.where(rng.random((2, 3000)) < 0.1, np.nan, rng.integers(-4, 5, (2, 3000)) / 4)
    table = {"w": rng.integers(1, 5, 3000) / 1.0, "b": cells[1], "id": ids / 1.0, "a": cells[0] + 1}
    matrix = torch.stack([on(device, each) for each in table.values()], dim=1).to(getattr(torch, kind))
    made, local = open_pass(matrix, schema, columns=list(table), device=device), LocalPass(open_source(table), schema)
    assert made.count_units() == local.count_units()
    assert bits(made.gram(1.5)) == bits(local.gram(1.5))


@pytest.mark.parametrize("names", [["w", "id"], ["id", "w"]])
def test_ids_and_weights_alone_may_have_any_order(names):
    schema = dpgram.Schema(
        unit="p", columns=[dpgram.Numeric("w", 0, 4)], unit_id="id", rows_per_unit=1, weight="w", largest_weight=4
    )
    table = {"w": np.arange(400) % 4 + 1.0, "id": np.arange(400) // 40 + 0.0}
    matrix = torch.stack([on("cpu", table[name]) for name in names], dim=1)
    made, local = open_pass(matrix, schema, columns=names, device="cpu"), LocalPass(open_source(table), schema)
    assert made.count_units() == local.count_units()
    assert bits(made.gram(1.0)) == bits(local.gram(1.0))
