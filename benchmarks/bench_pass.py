"""Clip and exact Gram of an array in memory, over a bare ``A.T @ A`` of the same array, and over what the machine can do at best.

Bare is ``np.dot(A.T, A)`` on one thread of BLAS. The memory limit is the time to read the array once, the arithmetic limit that of
d (d + 1) / 2 multiply-adds per row at the speed of a large product of matrices; both are measured in the same run, on one core. A pass
through a public map, d^2 more of them per row, is compared with the plain pass on the same rows, of which it shrinks the same ones; for
each instruction set of the machine, at one clip and at several scales, in processor time."""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

import dpgram
from benchmarks.timing import best_times, machine, note, options, print_table, show
from dpgram.engines import summing
from dpgram.engines.local import LocalPass
from dpgram.native.library import FILE, INSTRUCTIONS, Kernel
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import first_scales

WIDTHS = (10, 22, 41, 200, 1000)
MAPPED_WIDTHS = (22, 41)
LONG = 0.05  # of the rows: those that are shared between scales, or shrunk
CELLS = 4e7  # of the array, unless that leaves fewer than 40,000 rows


def bench_width(width: int, dtype: str, *, clipped: float, seconds: float, cells: float) -> dict:
    """One array: bare, ours on one thread and two, and the two limits."""
    rows = max(min(40_000, int(cells)), int(cells / width))
    names = [f"x{i}" for i in range(width)]
    array = np.random.default_rng(0).uniform(-1, 1, (rows, width)).astype(dtype)
    schema = dpgram.Schema(unit="row", intercept=False, columns=[dpgram.Numeric(name, -1, 1) for name in names])
    # The squared norm of a row is about width/3 with a small spread, so this bound cuts about the wanted fraction of rows.
    bound = (
        float(np.quantile(np.linalg.norm(array[:4096].astype("f8"), axis=1), 1 - clipped)) if clipped else schema.largest_norm
    )

    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(width, width)))[0]  # changes no norm
    through = PublicMap.near(turn / bound)

    def ours(threads: int) -> None:
        LocalPass(open_source(array, columns=names), schema, threads=threads).gram(bound)

    def mapped() -> None:
        LocalPass(open_source(array, columns=names), schema, threads=1).gram(1.0, through)

    square = np.random.default_rng(1).normal(size=(1000, 1000)).astype(dtype)
    with threadpool_limits(1):
        best = best_times(
            {
                "bare": lambda: np.dot(array.T, array),
                "one": lambda: ours(1),
                "two": lambda: ours(2),
                "mapped": mapped,
                "read": lambda: np.add.reduce(array, axis=None),
                "square": lambda: np.dot(square, square),
            },
            seconds=seconds,
        )
    arithmetic = best["square"] / 1000**3 * rows * width * (width + 1) / 2
    return {
        "columns": width,
        "dtype": dtype,
        "rows": rows,
        "bare_ns_per_row": 1e9 * best["bare"] / rows,
        "over_bare": best["one"] / best["bare"],
        "over_limit": best["one"] / max(best["read"], arithmetic),
        "bare_over_limit": best["bare"] / max(best["read"], arithmetic),
        "limit": "memory" if best["read"] > arithmetic else "arithmetic",
        "mapped_over_plain": best["mapped"] / best["one"],
        "two_threads_gain": best["one"] / best["two"],
        "million_rows_per_s": rows / best["two"] / 1e6,
    }


def bench_mapped(width: int, kernel: Kernel, *, seconds: float, cells: float) -> dict:
    """The kernel's mapped pass over its plain one, by columns of float64 as a file gives them."""
    rows, names = int(cells / width), [f"x{i}" for i in range(width)]
    array = np.asfortranarray(np.random.default_rng(0).uniform(-1, 1, (rows, width)))
    schema = dpgram.Schema(unit="row", intercept=False, columns=[dpgram.Numeric(name, -1, 1) for name in names])
    bound = float(np.quantile(np.linalg.norm(array[:4096], axis=1), 1 - LONG))
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(width, width)))[0]
    triangle = np.linalg.cholesky(np.cov(array[:4096].T)) * np.sqrt(3) / bound

    def run(bound: float, through: np.ndarray | None = None, count: int = 1) -> None:
        given = None if through is None else PublicMap.near(through)
        LocalPass(open_source(array, columns=names), schema, threads=1).gram(bound, given, first_scales(count))

    before, summing.kernel = summing.kernel, lambda: kernel
    try:
        best = best_times(
            {
                "plain": lambda: run(bound),
                "clip": lambda: run(1.0, turn / bound),
                "scales": lambda: run(1.0, turn / bound, 4),
                "triangle": lambda: run(1.0, triangle, 4),
            },
            seconds=seconds,
            clock=time.process_time,
        )
    finally:
        summing.kernel = before
    return {
        "columns": width,
        "rows": rows,
        "instructions": INSTRUCTIONS[kernel.isa],
        "plain_ns_per_row": 1e9 * best["plain"] / rows,
        **{f"{name}_over_plain": best[name] / best["plain"] for name in ("clip", "scales", "triangle")},
    }


def every_kernel() -> list[Kernel]:
    """One for each instruction set of this machine that is worth a measurement."""
    return [Kernel(FILE, isa) for isa in range(1, Kernel(FILE).isa + 1)] if FILE.is_file() else []


def bench(
    widths: tuple[int, ...] = WIDTHS,
    dtypes: tuple[str, ...] = ("float64", "float32"),
    clipped: float = 0.5,
    seconds: float = 1.0,
    cells: float = CELLS,
) -> dict:
    timings = []
    for dtype in dtypes:
        for width in widths:
            note(f"{dtype}, {width} columns")
            timings.append(bench_width(width, dtype, clipped=clipped, seconds=seconds, cells=cells))
    mapped = []
    for kernel in every_kernel():
        for width in sorted(set(widths) & set(MAPPED_WIDTHS)):
            note(f"mapped, {INSTRUCTIONS[kernel.isa]}, {width} columns")
            mapped.append(bench_mapped(width, kernel, seconds=seconds, cells=cells))
    return {"machine": machine(), "clipped": clipped, "arrays": timings, "mapped": mapped}


def table(result: dict) -> None:
    print(f"clip and exact Gram, {result['clipped']:.0%} of rows shrunk; {result['machine']['kernel']}")
    print_table(
        [
            "array",
            "rows",
            "ns/row bare",
            "ours / bare",
            "ours / limit",
            "bare / limit",
            "limit",
            "mapped / ours",
            "2 threads gain",
            "Mrows/s",
        ],
        [
            [
                f"{a['dtype']} d={a['columns']}",
                a["rows"],
                a["bare_ns_per_row"],
                a["over_bare"],
                a["over_limit"],
                a["bare_over_limit"],
                a["limit"],
                a["mapped_over_plain"],
                a["two_threads_gain"],
                a["million_rows_per_s"],
            ]
            for a in result["arrays"]
        ],
    )
    print(f"rows through a public map over the plain pass, {LONG:.0%} of rows long, processor time of one thread")
    print_table(
        ["instructions", "columns", "ns/row plain", "one clip", "4 scales", "4 scales, triangular map"],
        [
            [
                m["instructions"],
                m["columns"],
                m["plain_ns_per_row"],
                m["clip_over_plain"],
                m["scales_over_plain"],
                m["triangle_over_plain"],
            ]
            for m in result["mapped"]
        ],
    )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=list(WIDTHS))
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--clipped", type=float, default=0.5, help="fraction of rows that are shrunk to the bound")
    parser.add_argument("--seconds", type=float, default=1.5, help="per contestant")
    parser.add_argument("--cells", type=float, default=CELLS, help="cells of the array")
    given = parser.parse_args()
    show(bench(tuple(given.columns), tuple(given.dtypes), given.clipped, given.seconds, given.cells), given.json, table)


if __name__ == "__main__":
    main()
