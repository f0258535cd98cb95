"""Clip and exact Gram of an array in memory, over a bare ``A.T @ A`` of the same array, and over what the machine can do at best.

Bare is ``np.dot(A.T, A)`` on one thread of BLAS. The memory limit is the time to read the array once, the arithmetic limit that of
d (d + 1) / 2 multiply-adds per row at the speed of a large product of matrices; both are measured in the same run, on one core. A pass
through a public map, d^2 more of them per row, is compared with the plain pass on the same rows, of which it shrinks the same ones."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

import dpgram
from benchmarks.timing import best_times, machine, note, options, print_table, show
from dpgram.engines.local import LocalPass
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap

WIDTHS = (10, 22, 41, 200, 1000)
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
    return {"machine": machine(), "clipped": clipped, "arrays": timings}


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
