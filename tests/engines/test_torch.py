"""Tensors, and any table on a device, give the bits of the local engine.

Tests with "cuda" in their name need an NVIDIA GPU: ``pytest tests/engines/test_torch.py -k cuda`` there."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dpgram
from dpgram.engines import device_sum, kernels
from dpgram.engines.device_sum import DeviceSum
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_pass
from dpgram.engines.scaling import Scaling, _reciprocal
from dpgram.engines.torch import DevicePass, known_device
from dpgram.errors import (
    BoundBrokenError,
    ColumnTypeError,
    DeviceError,
    InexactDeviceError,
    MissingColumnError,
    MissingExtraError,
    SlowDeviceWarning,
    TableError,
    UnreadableTableError,
)
from dpgram.rows.clip import GRID
from dpgram.sources.open import open_source
from tests.conftest import small_schema, small_table
from tests.engines.tensors import (
    DEVICES,
    HAS_CUDA,
    WIDE,
    bits,
    break_kernels,
    local_bits,
    needs_cuda,
    numbers,
    on,
    tensor_bits,
    wild_cells,
)
from tests.needs import package

torch = package("torch")
pytestmark = pytest.mark.package("torch")
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("share", [0.3, 0.7, 2.0], ids=lambda s: f"bound {s} of the largest")
@pytest.mark.parametrize(
    ("rows", "dim"), [(0, 3), (1, 1), (1, 5), (2, 9), (4096, 7), (9999, 22), (20_001, 41), (5000, 63), (5001, 90)]
)
def test_a_matrix_gives_the_local_bits(device, rows, dim, share):
    schema = numbers(dim)
    bound = share * schema.largest_norm
    cells = wild_cells(rows, dim)
    assert tensor_bits(on(device, cells), schema, bound, device) == local_bits(cells, schema, bound)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [1, 2, 3, *(8 * k + i for k in range(1, 9) for i in (-1, 0, 1)), *WIDE])
def test_every_width_gives_the_local_bits(device, dim):
    schema, cells = numbers(dim, intercept=False), wild_cells(300, dim)
    assert tensor_bits(on(device, cells), schema, 0.8, device) == local_bits(cells, schema, 0.8)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
@pytest.mark.parametrize("dim", [5, 80])
def test_every_type_is_widened_exactly(device, dtype, dim):
    """float64 holds all of them, but for large 64-bit integers, which are rounded to the nearest as Arrow does."""
    schema = numbers(dim)
    raw = torch.from_numpy(wild_cells(1000, dim)) if dtype.is_floating_point else torch.randint(-4, 4, (1000, dim))
    tensor = raw.to(dtype)
    if dtype is torch.int64:
        tensor[::7] = 2**62 + 12345
    wide = tensor.to(torch.float64).numpy()
    expected = local_bits(wide, schema, 1.5)
    assert tensor_bits(tensor.to(device), schema, 1.5, device) == expected
    undirected = open_pass(tensor, schema, columns=list(schema.names))  # no device: the local engine
    assert isinstance(undirected, LocalPass)
    assert bits(undirected.gram(1.5)) == expected


def layouts(cells: np.ndarray):
    """The same table, laid out in many ways."""
    yield "rows together", torch.from_numpy(cells)
    yield "columns together", torch.from_numpy(np.asfortranarray(cells))
    yield "every second row", torch.from_numpy(np.repeat(cells, 2, axis=0))[::2]
    yield "every third column", torch.from_numpy(np.repeat(cells, 3, axis=1))[:, ::3]
    yield "within a larger one", torch.from_numpy(np.pad(cells, ((3, 2), (1, 4)), constant_values=7.0))[3:-2, 1:-4]
    yield "with a gradient", torch.from_numpy(cells).clone().requires_grad_()
    yield "a parameter", torch.nn.Parameter(torch.from_numpy(cells))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [6, 70])
def test_strides_do_not_matter(device, dim):
    schema, cells = numbers(dim), wild_cells(777, dim)
    expected = local_bits(cells, schema, 1.1)
    for name, tensor in layouts(cells):
        assert tensor_bits(on(device, tensor), schema, 1.1, device) == expected, name


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_that_is_repeated_by_a_stride_of_zero(device):
    schema, row = numbers(4), torch.tensor([[0.1, -0.2, 0.3, -0.4]], dtype=torch.float64)
    expected = local_bits(row.repeat(500, 1).numpy(), schema, 1.0)
    assert tensor_bits(row.to(device).expand(500, 4), schema, 1.0, device) == expected


@pytest.mark.parametrize("device", DEVICES)
def test_a_dict_of_tensors(device):
    schema, cells = numbers(5), wild_cells(1234, 5)
    tensors = {f"x{i}": on(device, cells[:, i]) for i in reversed(range(5))} | {
        "unused": on(device, np.zeros(1234, dtype=np.int8))
    }
    assert tensor_bits(tensors, schema, 0.9, device) == local_bits(cells, schema, 0.9)


@pytest.mark.parametrize("device", DEVICES)
def test_columns_are_found_by_name_and_others_left_alone(device):
    schema, cells = numbers(3), wild_cells(500, 3)
    tensor = on(device, np.column_stack([cells[:, 2], np.full(500, np.nan), cells[:, 0], cells[:, 1]]))
    found = open_pass(tensor, schema, columns=["x2", "other", "x0", "x1"], device=device)
    assert bits(found.gram(1.0)) == local_bits(cells, schema, 1.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [4, 80])
def test_truth_values_and_what_stands_for_missing_ones(device, dim):
    columns = [dpgram.Boolean(f"x{i}", missing=bool(i % 2)) for i in range(dim - 1)]
    schema = dpgram.Schema(unit="row", columns=[*columns, dpgram.Numeric(f"x{dim - 1}", -1, 3, missing=2.5)])
    cells = np.random.default_rng(0).choice([0.0, 1.0, -0.0, 2.0, np.nan, np.inf, 0.5], (999, dim))
    assert tensor_bits(on(device, cells), schema, 1.2, device) == local_bits(cells, schema, 1.2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scale", [1e-290, 1e-200, 1e-9, 1e9, 1e200, 1e290])
def test_bounds_of_any_size(device, scale):
    """Beyond 2^400 the kernel divides the slow way: its remainders would underflow."""
    columns = [dpgram.Numeric(f"x{i}", -scale * (i + 1) / 3, scale * 7 / (i + 1), missing="midpoint") for i in range(9)]
    cells = np.random.default_rng(0).normal(size=(3000, 9)) * scale
    for intercept in (True, False):
        schema = dpgram.Schema(unit="row", columns=columns, intercept=intercept)
        assert tensor_bits(on(device, cells), schema, 1.3, device) == local_bits(cells, schema, 1.3)


@pytest.mark.parametrize("device", DEVICES)
def test_bounds_as_close_together_as_a_schema_takes_them(device):
    schema = dpgram.Schema(
        unit="row",
        columns=[
            dpgram.Numeric("a", 1e9, 1e9 + 2.1, missing="midpoint"),
            dpgram.Numeric("b", -1e9 - 2.1, -1e9, missing="midpoint"),
        ],
    )
    assert Scaling.of_schema(schema, {"a": 0, "b": 1}).within_grid
    cells = np.random.default_rng(0).uniform(-1, 3, (2000, 2)) + np.array([1e9, -1e9])
    assert tensor_bits(on(device, cells), schema, 1.3, device) == local_bits(cells, schema, 1.3)


@pytest.mark.parametrize("device", DEVICES)
def test_cells_beside_grid_points(device):
    """Cells whose quotients lie at a grid point, or one unit in the last place beside it: a division that is not correctly rounded
    would be seen. An odd half-width makes most quotients inexact."""
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", -1.1, 2.3, missing="midpoint")])
    whole = np.random.default_rng(0).integers(-GRID, GRID, 20_000)
    encoded = schema.encoded[1]
    near = encoded.centre + encoded.half * (whole / GRID)
    cells = np.stack([near, np.nextafter(near, -9), np.nextafter(near, 9)]).reshape(-1, 1)
    assert tensor_bits(on(device, cells), schema, 0.9, device) == local_bits(cells, schema, 0.9)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6).filter(lambda s: s[1] > 0)),
    bound=st.floats(2**-10, 3.0),
    intercept=st.booleans(),
)
def test_any_cells_give_the_local_bits(device, cells, bound, intercept):
    schema = numbers(cells.shape[1], intercept=intercept)
    assert tensor_bits(on(device, cells), schema, bound, device) == local_bits(cells, schema, bound)


@pytest.mark.parametrize("device", DEVICES)
def test_another_table_is_encoded_here_and_summed_there(device, tmp_path):
    """Categories, text and derived columns; a file, a frame, a dict."""
    schema = small_schema(derived=[dpgram.Product("xy", ("x", "y")), dpgram.Power("x2", "x", 2)])
    table = small_table(10_000)
    expected = bits(open_pass(table, schema).gram(1.0))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=3000)
    for source in (table, tmp_path / "t.parquet", table.to_pandas(), {n: table[n].to_numpy() for n in table.column_names}):
        found = open_pass(source, schema, device=device)
        assert isinstance(found, DevicePass)
        assert found.scaling is None
        assert bits(found.gram(1.0)) == expected


@pytest.mark.parametrize("device", DEVICES)
def test_a_tensor_with_categories_or_derived_columns_goes_by_way_of_the_host(device):
    columns = [dpgram.Categorical("c", [1, 2, 3], other=True), dpgram.Numeric("x", -1, 2, missing="midpoint")]
    schema = dpgram.Schema(unit="row", columns=columns, derived=[dpgram.Power("x2", "x", 2)])
    cells = np.random.default_rng(0).integers(0, 6, (70_001, 2)).astype(np.float64)
    expected = local_bits(cells, schema, 1.0)
    for dtype in (torch.float64, torch.bfloat16, torch.float16, torch.int16):
        found = open_pass(on(device, cells).to(dtype), schema, columns=["c", "x"], device=device)
        assert isinstance(found, DevicePass)
        assert found.scaling is None
        assert bits(found.gram(1.0)) == expected
    tensors = {"c": on(device, cells[:, 0]), "x": on(device, cells[:, 1])}
    assert bits(open_pass(tensors, schema, device=device).gram(1.0)) == expected


def test_tensors_may_stand_beside_other_columns():
    """On the host, where the local engine takes them."""
    schema, table = small_schema(), small_table(500)
    mixed = {n: table[n].to_numpy() for n in table.column_names} | {"x": torch.from_numpy(table["x"].to_numpy().copy())}
    for device in (None, "cpu"):
        assert bits(open_pass(mixed, schema, device=device).gram(1.0)) == bits(open_pass(table, schema).gram(1.0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [12, 90])
def test_small_pieces_and_carried_limbs_change_nothing(device, dim, monkeypatch):
    schema, cells = numbers(dim), wild_cells(20_000, dim)
    expected = local_bits(cells, schema, 1.0)
    monkeypatch.setattr("dpgram.engines.torch.VIEW_ROWS", 333)
    monkeypatch.setattr("dpgram.engines.torch.COPY_BYTES", 50_000)
    monkeypatch.setattr(device_sum, "MOST_SPILLS", 3)
    monkeypatch.setattr(kernels, "ROWS_PER_BLOCK", 2)
    assert tensor_bits(on(device, cells), schema, 1.0, device) == expected
    assert tensor_bits({f"x{i}": on(device, cells[:, i]) for i in range(dim)}, schema, 1.0, device) == expected


def test_more_rows_than_one_sum_of_64_bits_can_hold():
    """Limbs take what overflows: 2^23 rows at the bound make 2^63."""
    rows = 2**23 + 2**20
    summing = DeviceSum(Scaling.of_encoded(1), 1.0, torch.device("cpu"))
    summing.add(torch.ones((1, 1), dtype=torch.float64).expand(rows, 1))
    assert Fraction(*summing.total().in_scaled_units()[0, 0].as_integer_ratio()) == rows


@pytest.mark.parametrize("device", DEVICES)
def test_a_release_from_a_tensor_is_the_release_from_numpy(device):
    schema, cells = numbers(6, row_bound=1.2), wild_cells(5000, 6)
    given = {"epsilon": 1.0, "delta": 1e-6, "columns": list(schema.names), "insecure_seed": 5, "mechanism": "gaussian-noise"}
    seen: list[float] = []
    ours = dpgram.release(on(device, cells), schema, device=device, progress=seen.append, **given)
    assert np.array_equal(ours.gram, dpgram.release(cells, schema, **given).gram)
    assert np.array_equal(ours.gram, dpgram.release(torch.from_numpy(cells), schema, **given).gram)
    assert seen == [i / 100 for i in range(1, 101)]


def test_the_command_line_takes_a_device(tmp_path, capsys):
    from dpgram.cli.app import run

    schema = numbers(4)
    pq.write_table(pa.table({f"x{i}": wild_cells(500, 4)[:, i] for i in range(4)}), tmp_path / "t.parquet")
    (tmp_path / "s.toml").write_text(
        'unit = "row"\n'
        + "".join(
            f'[[columns]]\nname = "{c.name}"\nkind = "numeric"\nlower = {c.lower}\nupper = {c.upper}\n' for c in schema.columns
        )
    )
    asked = ["release", str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--delta", "1e-6"]
    assert run([*asked, "--insecure-seed", "1", "--out", str(tmp_path / "a.json")]) == 0
    assert run([*asked, "--insecure-seed", "1", "--device", "cpu", "--out", str(tmp_path / "b.json")]) == 0
    assert np.array_equal(dpgram.load(tmp_path / "a.json").gram, dpgram.load(tmp_path / "b.json").gram)
    assert run([*asked, "--device", "nonsense", "--out", str(tmp_path / "c.json")]) == 2
    assert "is not a device that PyTorch knows" in capsys.readouterr().err


@pytest.mark.parametrize("dim", [3, 70])
@pytest.mark.parametrize("device", DEVICES)
def test_a_broken_bound_would_be_noticed(device, dim, monkeypatch):
    if device == "cuda":
        break_kernels(monkeypatch, "JUST_BELOW_ONE = 1.0 - 1.0 / (1ll << 50)", "JUST_BELOW_ONE = 1.01")
    monkeypatch.setattr(device_sum, "JUST_BELOW_ONE", 1.01)
    with pytest.raises(BoundBrokenError, match="nothing was released"):
        tensor_bits(on(device, np.full((9, dim), 5.0)), numbers(dim), 1.0, device)


def test_what_is_no_table_of_numbers_is_refused():
    schema = numbers(2)
    ok = torch.zeros((4, 2))

    def refused(table, match, error=TableError, names=("x0", "x1"), schema=schema, device=None):
        with pytest.raises(error, match=match):
            open_pass(table, schema, columns=names, device=device)

    refused(ok, "Pass columns=", names=None)
    refused(ok, "must be a list of names", names="x0")
    refused(ok, "a name twice", names=["x0", "x0"])
    refused(ok, "gives 3 names", names=["x0", "x1", "x2"])
    refused(ok, "no column of that name. It has x0, y", MissingColumnError, names=["x0", "y"], device="cpu")
    refused(torch.zeros(4), "two-dimensional")
    refused(torch.zeros((4, 2)).to_sparse(), "dense tensor")
    refused(torch.zeros((4, 2), device="meta"), "without data")
    refused(torch.zeros((4, 2), dtype=torch.complex64), "torch.complex64, but real numbers")
    refused({"x0": ok, "x1": ok}, "has 2 dimensions", names=None)
    refused({"x0": ok[:, 0], "x1": ok[:2, 1]}, "differ in length", names=None)
    refused({"x0": ok[:, 0], "x1": ok[:, 1]}, "has names already")
    refused({"x0": ok[:, 0], "x1": torch.zeros(4, device="meta")}, "without data", names=None)
    dates = dpgram.Schema(unit="row", columns=[dpgram.Date("x0", "2013-01-01", "2014-01-01"), dpgram.Numeric("x1", 0, 1)])
    refused(ok, "dates or timestamps", ColumnTypeError, schema=dates, device="cpu")


def test_a_device_that_is_not_here_is_named():
    with pytest.raises(DeviceError, match="device='nonsense' is not a device"):
        known_device("nonsense")
    with pytest.raises(DeviceError, match="device=7.5 is not a device"):
        known_device(7.5)
    with pytest.raises(DeviceError, match="no double precision"):
        known_device("mps" if not torch.backends.mps.is_available() else "meta")
    assert known_device("cpu") == torch.device("cpu")


@pytest.mark.skipif(HAS_CUDA, reason="a CUDA device is here")
def test_no_gpu_is_said_with_what_there_is():
    with pytest.raises(DeviceError, match="needs a CUDA device, but PyTorch finds none.*Use device='cpu'"):
        open_pass(small_table(10), small_schema(), device="cuda")


def test_a_machine_without_pytorch_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpgram\[torch\]'"):
        open_pass(small_table(10), small_schema(), device="cpu")


def test_pytorch_is_not_imported_without_need():
    code = "import sys, dpgram; dpgram.release({'x': [1.0, 2.0]}, dpgram.Schema(unit='r', columns=[dpgram.Numeric('x', 0, 3)], "
    code += "neighbours='add-remove'), epsilon=1, delta=1e-6); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_failure_on_the_device_says_nothing_of_the_rows(monkeypatch):
    def fails(self, cells):
        raise RuntimeError(f"cannot take {cells[0, 0].item()}")

    monkeypatch.setattr(DeviceSum, "add", fails)
    with pytest.raises(UnreadableTableError) as caught:
        tensor_bits(torch.full((3, 2), 0.125), numbers(2), 1.0, "cpu")
    assert "0.125" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_inexact_product_would_be_noticed(monkeypatch):
    monkeypatch.setattr(torch, "bmm", lambda a, b: (a.float() @ b.float()).double())
    device_sum._check_exact_products.cache_clear()
    with pytest.raises(InexactDeviceError, match="does not multiply whole numbers exactly"):
        device_sum._check_exact_products(torch.device("cpu"))
    device_sum._check_exact_products.cache_clear()


def test_reciprocals_are_known_to_twice_the_precision():
    """The second number is the exact remainder, correctly rounded or nearly so."""
    rng = np.random.default_rng(0)
    steps = np.concatenate(
        [rng.uniform(1e-9, 2, 500), 2.0 ** rng.integers(-400, 380, 100), np.nextafter(2.0, [1, 3]), [1e-120, 1e120]]
    )
    for step, inverse, rest in zip(steps.tolist(), *(one.tolist() for one in _reciprocal(steps)), strict=True):
        assert inverse == 1 / step
        assert abs(Fraction(inverse) + Fraction(rest) - 1 / Fraction(step)) * Fraction(step) <= Fraction(2) ** -104


@pytest.mark.parametrize("half", [1.0, 0.1, 1.7, 3.3, np.nextafter(1.0, 2), np.nextafter(2.0, 1), 1 / 3, 12345.678])
def test_the_kernels_division_is_correctly_rounded(half):
    """Its three steps in exact arithmetic, each rounded once, against the division itself."""
    scaling = Scaling._of([(-half, half, 0.0, 0.0, half, False, 0)])
    step, inverse, rest = scaling.fields[4:7, 0].tolist()
    rng = np.random.default_rng(0)
    whole = step * rng.integers(-GRID, GRID, 1500)
    for a in np.concatenate(
        [whole, np.nextafter(whole, 9e9), np.nextafter(whole, -9e9), rng.uniform(-half, half, 1500)]
    ).tolist():
        quotient = float(Fraction(a) * Fraction(inverse) + Fraction(a * rest))
        remainder = Fraction(a) - Fraction(step) * Fraction(quotient)
        assert Fraction(float(remainder)) == remainder
        assert float(remainder * Fraction(inverse) + Fraction(quotient)) == a / half * GRID


@needs_cuda
def test_cuda_uses_the_kernel_and_no_row_comes_back(monkeypatch):
    """Without a warning, and without a copy to the host but that of the sum."""
    schema, cells = numbers(22), torch.randn((100_000, 22), dtype=torch.float64, device="cuda")
    copied: list[int] = []
    plain = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: copied.append(self.numel()) or plain(self))
    tensor_bits(cells, schema, 1.0, None)
    assert max(copied) <= 2 * 23**2 + 1


@needs_cuda
@pytest.mark.parametrize("dim", [22, 70])
def test_cuda_memory_does_not_grow_with_the_rows(dim):
    """The cells are read where they lie, also column by column."""
    schema = numbers(dim)
    for cells in (torch.randn((2**22, dim), device="cuda"), torch.randn((dim, 2**22), device="cuda").T):
        tensor_bits(cells[:10], schema, 1.0, None)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        tensor_bits(cells, schema, 1.0, None)
        assert torch.cuda.max_memory_allocated() - before < (2**20 if dim == 22 else 2**29)


@needs_cuda
def test_cuda_without_the_kernel_warns_and_gives_the_same_bits(monkeypatch):
    schema, cells = numbers(9), wild_cells(5000, 9)
    monkeypatch.setattr(kernels, "_trouble", lambda device: "no compiler")
    with pytest.warns(SlowDeviceWarning, match="no compiler.*result is the same"):
        found = tensor_bits(on("cuda", cells), schema, 1.0, None)
    assert found == local_bits(cells, schema, 1.0)


@needs_cuda
def test_cuda_reduced_precision_settings_change_nothing():
    schema, cells = numbers(80), wild_cells(9000, 80)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        single = on("cuda", cells).float()
        assert tensor_bits(single, schema, 1.0, None) == local_bits(single.cpu().numpy(), schema, 1.0)
    finally:
        torch.set_float32_matmul_precision(before)


@needs_cuda
def test_cuda_takes_a_tensor_of_the_host_in_pieces(monkeypatch):
    monkeypatch.setattr("dpgram.engines.torch.COPY_BYTES", 100_000)
    schema, cells = numbers(30), wild_cells(20_000, 30)
    assert tensor_bits(torch.from_numpy(cells), schema, 1.0, "cuda") == local_bits(cells, schema, 1.0)
    assert tensor_bits(torch.from_numpy(cells).pin_memory(), schema, 1.0, "cuda") == local_bits(cells, schema, 1.0)


@needs_cuda
def test_cuda_millions_of_rows():
    """Many blocks, several spills of each warp: against PyTorch's operations on the host."""
    cells = torch.randn((3_000_001, 22), dtype=torch.float64)
    expected = tensor_bits(cells, numbers(22), 1.0, "cpu")
    assert tensor_bits(cells.to("cuda"), numbers(22), 1.0, None) == expected


@needs_cuda
def test_cuda_more_rows_than_32_bits_count():
    """One row, repeated by a stride of zero: the sum is a multiple of that row's."""
    schema, rows = numbers(22), 2**32 + 5
    row = torch.randn((1, 22), dtype=torch.float64, device="cuda")
    found = open_pass(row.expand(rows, 22), schema, columns=list(schema.names)).gram(1.0)
    one = LocalPass(open_source(row.cpu().numpy(), columns=list(schema.names)), schema).gram(1.0)
    exact = (one.high.astype(object) * 2**40 + one.low) * rows
    assert np.array_equal(found.high.astype(object) * 2**40 + found.low, exact)
    assert found.rows == rows


@needs_cuda
@pytest.mark.slow
def test_cuda_a_tensor_that_fills_most_of_the_memory():
    """No second copy of it fits; its sum is the sum of its halves."""
    schema = numbers(22)
    rows = int(0.75 * torch.cuda.mem_get_info()[0]) // (4 * 22)
    cells = torch.empty((rows, 22), dtype=torch.float32, device="cuda").normal_()
    names = list(schema.names)
    whole, *halves = (
        open_pass(part, schema, columns=names).gram(1.0) for part in (cells, cells[: rows // 2], cells[rows // 2 :])
    )
    assert bits(whole) == bits(halves[0].merge(halves[1]))


def test_a_negation_that_pytorch_put_off_is_carried_out():
    late = torch.complex(torch.zeros(5, 2, dtype=torch.float64), torch.rand(5, 2, dtype=torch.float64)).conj().imag
    assert late.is_neg()
    schema = dpgram.Schema(unit="visit", columns=[dpgram.Numeric("a", -1, 1), dpgram.Numeric("b", -1, 1)])
    for device in (None, "cpu"):
        found, expected = (
            open_pass(t, schema, columns=["a", "b"], device=device).gram(1.0) for t in (late, late.resolve_neg())
        )
        np.testing.assert_array_equal(found.in_scaled_units(), expected.in_scaled_units())


def test_threads_beside_a_device_are_refused():
    """They would be ignored, and nobody told."""
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", 0, 1)])
    for table in ({"x": np.ones(4)}, {"x": torch.ones(4)}):
        with pytest.raises(TableError, match="Pass one of the two"):
            dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", device="cpu", threads=2)
