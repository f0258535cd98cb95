"""Time of the pass over a tensor on a CUDA device, over a bare ``A.T @ A`` there: ``python -m benchmarks.bench_gpu``.

Each line is one shape: all times are medians in one run, from the call to the sum on the host, compilation excluded. ``speed`` is the
bare product's time over ours: 1 means that clipping and exact sums cost nothing. ``read`` is the share of the device's copy
bandwidth at which the cells were read."""

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

DIMS = (10, 22, 41, 200, 1000)
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


def copy_bandwidth() -> float:
    """Bytes a second, read and written."""
    cells = torch.zeros(2**28, dtype=torch.float64, device="cuda")
    other = torch.empty_like(cells)
    return 2 * cells.nbytes / seconds(lambda: other.copy_(cells))


def bench(dim: int, dtype: torch.dtype, bandwidth: float, *, by_column: bool = False) -> dict:
    """One shape, stored row by row or column by column. The bound shrinks about half of the rows."""
    rows = min(2**24, CELLS // dim)
    torch.manual_seed(0)
    cells = torch.randn((dim, rows) if by_column else (rows, dim), dtype=dtype, device="cuda")
    cells = cells.T if by_column else cells
    bound = float(np.sqrt(dim) / 3)
    scaling = numbers(dim)
    device = cells.device

    def ours() -> None:
        summing = DeviceSum(scaling, bound, device)
        summing.add(cells)
        summing.total()

    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    pass_ = seconds(ours)
    extra = torch.cuda.max_memory_allocated() - before  # before cuBLAS takes its workspace for the bare product
    bare = seconds(lambda: (cells.T @ cells).cpu())
    return {
        "dim": dim,
        "dtype": str(dtype).removeprefix("torch."),
        "rows": rows,
        "bare_ms": 1e3 * bare,
        "pass_ms": 1e3 * pass_,
        "speed": bare / pass_,
        "read": cells.nbytes / pass_ / bandwidth,
        "rows_per_second": rows / pass_,
        "scratch_mb": extra / 1e6,
    }


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
        bench(dim, dtype, bandwidth, by_column=given.by_column)
        for dtype in (torch.float64, torch.float32)
        for dim in given.columns
    ]
    machine = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_gb_per_second": bandwidth / 1e9}
    if given.json:
        print(json.dumps({"machine": machine, "shapes": timings}))
        return
    print(f"{machine['device']}, PyTorch {machine['torch']}, copy {bandwidth / 1e9:.0f} GB/s\n")
    print("| cells | d | rows | `A.T @ A`, ms | the pass, ms | speed | read | scratch, MB |\n|---|---|---|---|---|---|---|---|")
    for one in timings:
        times = (
            f"{one['bare_ms']:.2f} | {one['pass_ms']:.2f} | {one['speed']:.2f} | {one['read']:.2f} | {one['scratch_mb']:.0f}"
        )
        print(f"| {one['dtype']} | {one['dim']} | {one['rows']:,} | {times} |")


if __name__ == "__main__":
    main()
