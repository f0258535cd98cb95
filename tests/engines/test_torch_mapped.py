"""Rows through a public map on a device: the bits of the local engine.

Tests with "cuda" in their name need an NVIDIA GPU: ``pytest tests/engines/test_torch_mapped.py -k cuda`` there."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dpgram
from dpgram.engines import device_sum, kernels
from dpgram.engines.device_sum import DeviceSum
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_pass
from dpgram.engines.scaling import Scaling
from dpgram.engines.torch import DevicePass
from dpgram.errors import BoundBrokenError, InexactDeviceError, MechanismError, SlowDeviceWarning
from dpgram.sources.open import open_source
from dpgram.terms.public_map import MOST_EXPONENT, PublicMap, digest_of
from dpgram.terms.scales import MOST_SCALES, first_scales
from tests.conftest import small_schema, small_table
from tests.engines.tensors import (
    DEVICES,
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


def wild_map(dim: int) -> PublicMap:
    """Rows of ordinary, huge and tiny size, one in ten of zeros."""
    rng = np.random.default_rng(dim)
    matrix = rng.normal(size=(dim, dim)) * np.exp(rng.normal(scale=20, size=(dim, 1)) * (rng.random((dim, 1)) < 0.2))
    matrix[rng.random(dim) < 0.1] = 0.0
    return PublicMap.near(matrix)


def tame_map(dim: int) -> PublicMap:
    """Some mapped rows are longer than one, others are not."""
    return PublicMap.near(np.random.default_rng(dim).normal(size=(dim, dim)) / dim)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [wild_map, tame_map])
@pytest.mark.parametrize("bound", [1.0, 0.3])
@pytest.mark.parametrize(
    ("rows", "dim"), [(0, 3), (1, 1), (1, 5), (4096, 7), (9999, 22), (5000, 63), (5001, 64), (3000, 90), (600, 150)]
)
def test_a_mapped_matrix_gives_the_local_bits(device, make, bound, rows, dim):
    schema, cells = numbers(dim), wild_cells(rows, dim)
    through = make(dim + 1)
    assert tensor_bits(on(device, cells), schema, bound, device, through) == local_bits(cells, schema, bound, through)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int16, torch.uint8], ids=str)
@pytest.mark.parametrize("dim", [9, 90])
def test_every_type_and_stride_is_mapped_alike(device, dtype, dim):
    schema, through = numbers(dim), tame_map(dim + 1)
    cells = wild_cells(1000, dim)
    tensor = torch.from_numpy(cells if dtype.is_floating_point else np.nan_to_num(cells).clip(0, 100)).to(dtype)
    expected = local_bits(tensor.to(torch.float64).numpy(), schema, 1.0, through)
    for laid_out in (tensor, tensor.T.contiguous().T, tensor.repeat_interleave(2, dim=0)[::2]):
        assert tensor_bits(laid_out.to(device), schema, 1.0, device, through) == expected


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cells_and_any_map_give_the_local_bits(device, data):
    dim, rows = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 8))
    cells = data.draw(hnp.arrays(np.float64, (rows, dim)))
    most = 2**33 // dim
    entries = st.integers(-most, most) | st.sampled_from([-most, 0, 1, most])
    exponents = st.integers(-MOST_EXPONENT, MOST_EXPONENT) | st.integers(8, 40)
    through = PublicMap(
        data.draw(hnp.arrays(np.int64, (dim, dim), elements=entries)), data.draw(hnp.arrays(np.int64, dim, elements=exponents))
    )
    schema, bound = numbers(dim, intercept=False), data.draw(st.floats(2**-10, 1.0))
    assert tensor_bits(on(device, cells), schema, bound, device, through) == local_bits(cells, schema, bound, through)


def scaled_bits(found, through: PublicMap, scales) -> tuple:
    total = found.gram(1.0, through, scales)
    assert (total.through, total.high.shape[:-2]) == (digest_of(through, scales), () if len(scales) == 1 else (len(scales),))
    return bits(total)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [2, 4, MOST_SCALES])
@pytest.mark.parametrize(("rows", "dim"), [(0, 3), (1, 1), (4096, 7), (9999, 22), (5001, 64), (600, 150)])
def test_several_scales_give_the_local_bits(device, count, rows, dim):
    schema, cells, names = numbers(dim), wild_cells(rows, dim), [f"x{i}" for i in range(dim)]
    for through in (wild_map(dim + 1), tame_map(dim + 1), PublicMap.near(20 * tame_map(dim + 1).matrix)):
        here = LocalPass(open_source(np.ascontiguousarray(cells), columns=names), schema)
        there = open_pass(on(device, cells), schema, columns=names, device=device)
        assert isinstance(there, DevicePass)
        scales = first_scales(count)
        assert scaled_bits(there, through, scales) == scaled_bits(here, through, scales)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [1, 3, *(8 * k + i for k in range(1, 9) for i in (-1, 0, 1)), *WIDE])
def test_every_width_is_mapped_alike(device, dim):
    """One bound, and three scales with few long rows and with many."""
    schema, cells, names = numbers(dim, intercept=False), wild_cells(300, dim), [f"x{i}" for i in range(dim)]
    here = LocalPass(open_source(cells, columns=names), schema)
    there = open_pass(on(device, cells), schema, columns=names, device=device)
    for size, count in ((1.0, 1), (0.5, 3), (3.0, 3)):
        through = PublicMap.near(size * tame_map(dim).matrix)
        assert scaled_bits(there, through, first_scales(count)) == scaled_bits(here, through, first_scales(count))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [2, 70])
def test_rows_at_every_switch_give_the_local_bits(device, dim):
    squares = np.array([1.0, *(0.8 * scale for scale in first_scales(MOST_SCALES)), *first_scales(10)])
    lengths = np.sqrt(np.concatenate([squares * (1 + step * 2.0**-18) for step in range(-3, 4)])) / 1024
    names = [f"x{i}" for i in range(dim)]
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -1, 1) for name in names], intercept=False)
    cells, scales = np.zeros((len(lengths), dim)), first_scales(MOST_SCALES)
    cells[:, 0] = lengths
    through = PublicMap(2**30 * np.eye(dim, dtype=np.int64), np.full(dim, 20))  # times 1024
    here = LocalPass(open_source(cells, columns=names), schema)
    there = open_pass(on(device, cells), schema, columns=names, device=device)
    assert scaled_bits(there, through, scales) == scaled_bits(here, through, scales)


def test_shares_that_cannot_be_kept_are_an_error(monkeypatch):
    monkeypatch.setattr(device_sum, "JUST_BELOW_ONE", 1.001)
    summing = DeviceSum(Scaling.of_encoded(2), 1.0, torch.device("cpu"), PublicMap.near(3 * np.eye(2)), first_scales(3))
    summing.add(torch.ones((3, 2), dtype=torch.float64))
    with pytest.raises(BoundBrokenError):
        summing.total()


@pytest.mark.parametrize("device", DEVICES)
def test_another_table_is_encoded_here_and_mapped_there(device):
    schema, table = small_schema(derived=[dpgram.Product("xy", ("x", "y"))]), small_table(10_000)
    through = tame_map(len(schema.encoded))
    found = open_pass(table, schema, device=device)
    assert isinstance(found, DevicePass)
    assert found.scaling is None
    assert bits(found.gram(1.0, through)) == bits(open_pass(table, schema).gram(1.0, through))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [12, 90])
def test_small_pieces_and_carried_limbs_change_nothing(device, dim, monkeypatch):
    schema, cells, through = numbers(dim), wild_cells(30_000, dim), tame_map(dim + 1)
    expected = local_bits(cells, schema, 1.0, through)
    monkeypatch.setattr("dpgram.engines.torch.VIEW_ROWS", 5333)
    monkeypatch.setattr(kernels, "ROWS_PER_BLOCK", 2)
    for name in ("MAPPED_BYTES", "EAGER_BYTES", "MOST_SPILLS"):
        monkeypatch.setattr(device_sum, name, 3)
    assert tensor_bits(on(device, cells), schema, 1.0, device, through) == expected


@pytest.mark.parametrize("device", DEVICES)
def test_the_longest_rows_and_the_largest_maps(device):
    """Sums of products that reach 2^53, and powers of two at both ends."""
    dim = 130
    whole = np.full((dim, dim), 2**33 // dim, dtype=np.int64)
    whole[:, 0] += 2**33 - whole.sum(axis=1)
    through = PublicMap(whole, np.where(np.arange(dim) % 2, MOST_EXPONENT, -MOST_EXPONENT))
    schema, cells = numbers(dim - 1), np.full((70, dim - 1), 1e9)
    cells[::2] = np.random.default_rng(0).normal(size=(35, dim - 1))
    assert tensor_bits(on(device, cells), schema, 1.0, device, through) == local_bits(cells, schema, 1.0, through)


def test_a_map_that_does_not_fit_is_refused():
    found = open_pass(torch.zeros((3, 2)), numbers(2), columns=["x0", "x1"], device="cpu")
    with pytest.raises(MechanismError, match="of 2 columns cannot map rows of 3"):
        found.gram(1.0, tame_map(2))
    with pytest.raises(MechanismError, match="scale the map"):
        found.gram(1.5, tame_map(3))


def test_a_bound_that_cannot_be_kept_is_an_error(monkeypatch):
    monkeypatch.setattr(device_sum, "JUST_BELOW_ONE", 1.1)
    summing = DeviceSum(Scaling.of_encoded(2), 0.5, torch.device("cpu"), PublicMap.near(np.eye(2)))
    summing.add(torch.ones((3, 2), dtype=torch.float64))
    with pytest.raises(BoundBrokenError):
        summing.total()


def test_an_inexact_product_with_a_map_would_be_noticed(monkeypatch):
    """Factors of 31 bits would pass for points, which have 20, and not for maps."""
    plain = torch.Tensor.__matmul__

    def rounded(a, b):
        bits = 2.0 ** (torch.frexp(b)[1].double() - 31)
        return plain(a, (b / bits).round() * bits)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    device_sum._check_exact_products.cache_clear()
    device_sum._check_exact_maps.cache_clear()
    try:
        device_sum._check_exact_products(torch.device("cpu"))
        with pytest.raises(InexactDeviceError, match="does not multiply whole numbers exactly"):
            device_sum._check_exact_maps(torch.device("cpu"))
    finally:
        device_sum._check_exact_products.cache_clear()
        device_sum._check_exact_maps.cache_clear()


@needs_cuda
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("dim", [2, 9, 90])
def test_cuda_a_mapped_row_above_its_bound_would_be_noticed(dim, count, monkeypatch):
    break_kernels(monkeypatch, "JUST_BELOW_ONE = 1.0 - 1.0 / (1ll << 50)", "JUST_BELOW_ONE = 1.01")
    summing = DeviceSum(
        Scaling.of_encoded(dim), 1.0, torch.device("cuda", 0), PublicMap.near(3 * np.eye(dim)), first_scales(count)
    )
    summing.add(torch.ones((300, dim), dtype=torch.float64, device="cuda"))
    with pytest.raises(BoundBrokenError):
        summing.total()


@needs_cuda
@pytest.mark.parametrize(("right", "wrong"), [("SWITCH = 0.8;", "SWITCH = 0.81;"), ("MOST_POWER = 20", "MOST_POWER = 1")])
@pytest.mark.parametrize("dim", [2, 70])
def test_cuda_another_rule_of_scales_has_other_bits(dim, right, wrong, monkeypatch):
    """The rows at every switch would show it."""
    break_kernels(monkeypatch, right, wrong)
    with pytest.raises(AssertionError):
        test_rows_at_every_switch_give_the_local_bits("cuda", dim)


@needs_cuda
def test_cuda_memory_does_not_grow_with_the_mapped_rows():
    for dim in (22, 70):
        schema, through = numbers(dim), tame_map(dim + 1)
        cells = torch.randn((2**22, dim), device="cuda")
        tensor_bits(cells[:10], schema, 1.0, None, through)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        tensor_bits(cells, schema, 1.0, None, through)
        assert torch.cuda.max_memory_allocated() - before < 2**29


@needs_cuda
@pytest.mark.parametrize("count", [1, 4])
def test_cuda_a_sum_that_is_dropped_gives_its_memory_back(count):
    """At once: were it in a circle of references, it would wait for the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        before = torch.cuda.memory_allocated()
        summing = DeviceSum(Scaling.of_encoded(90), 1.0, torch.device("cuda", 0), tame_map(90), first_scales(count))
        summing.add(torch.ones((300, 90), dtype=torch.float64, device="cuda"))
        summing.total()
        del summing
        assert torch.cuda.memory_allocated() == before
    finally:
        gc.enable()


@needs_cuda
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("sums[m] += theirs[m]", "sums[m] += 0.0 * theirs[m]"),  # half of a row's squares
        ("memory.raw[stage], ahead > band", "memory.raw[stage], ahead >= 0"),  # the next rows' first columns
        ("excess_of(max(largest[m], (int)theirs[m]))", "excess_of(largest[m])"),
    ],
)
def test_cuda_a_mistake_in_the_images_of_wide_rows_would_be_seen(right, wrong, monkeypatch):
    break_kernels(monkeypatch, right, wrong)
    schema, cells = numbers(200, intercept=False), wild_cells(20_000, 200)
    through, bound = (
        (wild_map(200), 1.0) if "excess" in right else (tame_map(200), 0.3)
    )  # shorter than most rows, and than half of one
    try:
        found = tensor_bits(on("cuda", cells), schema, bound, None, through)
    except BoundBrokenError:
        return
    assert found != local_bits(cells, schema, bound, through)


@needs_cuda
def test_cuda_brings_no_mapped_row_back(monkeypatch):
    schema, cells = numbers(22), torch.randn((100_000, 22), dtype=torch.float64, device="cuda")
    device_sum._check_exact_maps(cells.device)
    device_sum._check_exact_products(cells.device)
    copied: list[int] = []
    plain = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: copied.append(self.numel()) or plain(self))
    tensor_bits(cells, schema, 1.0, None, tame_map(23))
    assert copied == [2 * 23**2 + 1]


@needs_cuda
def test_cuda_without_the_kernel_maps_to_the_same_bits(monkeypatch):
    schema, cells, through = numbers(9), wild_cells(5000, 9), tame_map(10)
    monkeypatch.setattr(kernels, "_trouble", lambda device: "no compiler")
    with pytest.warns(SlowDeviceWarning, match=r"no compiler.*result is the same"):
        found = tensor_bits(on("cuda", cells), schema, 1.0, None, through)
    assert found == local_bits(cells, schema, 1.0, through)


@needs_cuda
def test_cuda_maps_millions_of_rows():
    cells, through = torch.randn((3_000_001, 22), dtype=torch.float64), tame_map(23)
    expected = tensor_bits(cells, numbers(22), 1.0, "cpu", through)
    assert tensor_bits(cells.to("cuda"), numbers(22), 1.0, None, through) == expected


@needs_cuda
def test_cuda_reduced_precision_settings_do_not_touch_maps():
    schema, cells, through = numbers(80), wild_cells(9000, 80), tame_map(81)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert tensor_bits(on("cuda", cells), schema, 1.0, None, through) == local_bits(cells, schema, 1.0, through)
    finally:
        torch.set_float32_matmul_precision(before)
