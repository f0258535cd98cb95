"""Time of the pass over a tensor on a CUDA device, over a bare ``A.T @ A`` there: ``python -m benchmarks.bench_gpu``.

Each line is one shape: all times are medians in one run, from the call to the sum on the host, compilation excluded. ``speed`` is the
bare product's time over ours: 1 means that clipping and exact sums cost nothing. ``read`` is the share of the device's copy
bandwidth at which the cells were read. Each shape has three passes: over plain rows, over rows through a public map, and over rows
through a map that are summed at several scales."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from dpgram.engines.device_sum import DeviceSum
from dpgram.engines.scaling import Scaling
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales, first_scales

DIMS = (10, 22, 41, 200, 1000)
PASSES = ("plain", "mapped", "4 scales")
CELLS = 2**24 * 22  # at d = 22 that is 2^24 rows: 3 GB of float64
REPEATS = 15


def seconds(call: Callable[[], object]) -> float:
    """Median time of a call, the device idle before and after."""
    for _ in range(3):
        call()
    seconds = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def numbers(dim: int) -> Scaling:
    """Columns of numbers in [-3, 3], no intercept."""
    whole = np.ones(dim)
    return Scaling(-3 * whole, 3 * whole, 0 * whole, 0 * whole, 3 * whole, np.zeros(dim, dtype=bool), tuple(range(dim)))


def turned(dim: int, size: float) -> PublicMap:
    """A turn that takes rows of standard normal numbers, as ``numbers`` encodes them, to lengths of about ``size``."""
    matrix, _ = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, dim)))
    return PublicMap.near(3 * size / np.sqrt(dim) * matrix)


def pass_of(kind: str, dim: int) -> tuple[float, PublicMap | None, Scales]:
    """Bound, map and scales. About half of the rows exceed the bound; at several scales 4 % are longer than the first where d is 22."""
    match kind:
        case "plain":
            return float(np.sqrt(dim) / 3), None, ONE_CLIP
        case "mapped":
            return 1.0, turned(dim, 1.0), ONE_CLIP
        case _:
            return 1.0, turned(dim, 0.8), first_scales(4)


def copy_bandwidth() -> float:
    """Bytes a second, read and written."""
    cells = torch.zeros(2**28, dtype=torch.float64, device="cuda")
    other = torch.empty_like(cells)
    return 2 * cells.nbytes / seconds(lambda: other.copy_(cells))


def bench(dim: int, dtype: torch.dtype, bandwidth: float, *, by_column: bool = False) -> list[dict]:
    """One shape, stored row by row or column by column, with all passes."""
    rows = min(2**24, CELLS // dim)
    torch.manual_seed(0)
    cells = torch.randn((dim, rows) if by_column else (rows, dim), dtype=dtype, device="cuda")
    cells = cells.T if by_column else cells
    timed = {kind: time_pass(kind, cells) for kind in PASSES}  # before cuBLAS takes its workspace for the bare product
    bare = seconds(lambda: (cells.T @ cells).cpu())
    return [
        {
            "pass": kind,
            "dim": dim,
            "dtype": str(dtype).removeprefix("torch."),
            "rows": rows,
            "bare_ms": 1e3 * bare,
            "pass_ms": 1e3 * ours,
            "speed": bare / ours,
            "read": cells.nbytes / ours / bandwidth,
            "rows_per_second": rows / ours,
            "scratch_mb": scratch / 1e6,
        }
        for kind, (ours, scratch) in timed.items()
    ]


def time_pass(kind: str, cells: torch.Tensor) -> tuple[float, int]:
    """Seconds of one pass, and the memory that it takes besides the cells."""
    scaling = numbers(cells.shape[1])
    bound, through, scales = pass_of(kind, scaling.dim)

    def ours() -> None:
        summing = DeviceSum(scaling, bound, cells.device, through, scales)
        summing.add(cells)
        summing.total()

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    time_of_it = seconds(ours)
    return time_of_it, torch.cuda.max_memory_allocated() - before


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_gpu", description=__doc__)
    options.add_argument("--json", action="store_true", help="print the numbers as JSON instead of a table")
    options.add_argument("--columns", type=int, nargs="+", default=list(DIMS))
    options.add_argument("--by-column", action="store_true", help="tensors that are stored column by column")
    given = options.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA device, and PyTorch finds none here")
    bandwidth = copy_bandwidth()
    timings = [
        one
        for dtype in (torch.float64, torch.float32)
        for dim in given.columns
        for one in bench(dim, dtype, bandwidth, by_column=given.by_column)
    ]
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_gb_per_second": bandwidth / 1e9}
    if given.json:
        print(json.dumps({"machine": machine, "shapes": timings}))
        return
    print(f"{machine['device']}, PyTorch {machine['torch']}, copy {bandwidth / 1e9:.0f} GB/s\n")
    print(
        "| rows are | cells | d | rows | `A.T @ A`, ms | the pass, ms | speed | read | scratch, MB |\n|---|---|---|---|---|---|---|---|---|"
    )
    for one in timings:
        times = (
            f"{one['bare_ms']:.2f} | {one['pass_ms']:.2f} | {one['speed']:.2f} | {one['read']:.2f} | {one['scratch_mb']:.0f}"
        )
        print(f"| {one['pass']} | {one['dtype']} | {one['dim']} | {one['rows']:,} | {times} |")


if __name__ == "__main__":
    main()
