"""Runs the benchmarks one after the other, on a machine that should do nothing else, and writes docs/benchmarks.md: ``make bench``.

Every figure is a ratio, or stands beside the one it is to be compared with, measured in the same run."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import machine, note
from tests.needs import program
from tests.servers import make_server

PAGE = Path("docs/benchmarks.md")


class Section(NamedTuple):
    title: str
    module: str
    words: str
    quick: Sequence[str] = ()


SECTIONS = [
    Section(
        "Clip and Gram in memory",
        "bench_pass",
        "`ours / bare` is the pass over an array with one thread (clamp, scale, clip, exact sum) over `np.dot(A.T, A)` of the same "
        "array with one thread. The limit is the larger of the time to read the array once and the time of its multiply-adds at the "
        "speed of a large product. `mapped / ours` is the pass with one thread where each row is first multiplied by a public matrix, "
        "d^2 more of them, over the one without. `2 threads gain` is the time with one thread over the time with two. Bare products of "
        "float32 do half the work: the exact sum needs float64. The second table is the same ratio for each instruction set, at one clip "
        "and at several scales, and for a map with zeros above its diagonal.",
        quick=("--seconds", "0.05", "--cells", "1e6", "--columns", "10", "22"),
    ),
    Section(
        "From files and databases",
        "bench_files",
        "From the opened source to the exact sum, over merely decoding the same batches with the same threads. Then whole releases with "
        "one thread, of several rounds over a single pass: what is slow to read is read once, and kept.",
        quick=("--rows", "200000", "--csv-rows", "20000", "--seconds", "0.1"),
    ),
    Section(
        "Spark",
        "bench_spark",
        "Start-up excluded. More workers than the machine has cores cannot be faster. "
        "[scaling.md](scaling.md) says what the figures mean for larger tables.",
        quick=("--rows", "100000", "--repeats", "1"),
    ),
    Section(
        "The release step",
        "bench_release_step",
        "What comes after the pass: calibration with empty caches, and from the Gram to the outcome with noise from the operating "
        "system. Mechanisms of several rounds, which read the table between two steps, are left out.",
        quick=("--repeats", "2"),
    ),
    Section(
        "Whitened releases of many columns",
        "bench_wide",
        "20,000 rows at epsilon 10. The size of the file, the time of `dpgram.load` over that of `json.load` of the same bytes, and "
        "processor seconds of a release in exact arithmetic, passes over the rows included, over those in floats.",
        quick=("--columns", "22", "--repeats", "1"),
    ),
    Section(
        "Planning",
        "bench_plan",
        "Processor seconds at 22 encoded columns and 300,000 rows, start-up included but for `auto`'s choice with imports done; each in a "
        "process of its own, with as many BLAS threads as it takes by itself. `flights` are the bundled table's columns, `numbers` 21 "
        "numbers.",
        quick=("--quick",),
    ),
    Section(
        "Regressions from a release",
        "bench_regress",
        "The columns are found by name in both.",
        quick=("--count", "50", "--many", "100"),
    ),
]


@contextmanager
def postgresql() -> Iterator[list[str]]:
    """The argument that names a server, which runs meanwhile; none, and a word about it, where PostgreSQL is not installed."""
    if not program("initdb"):
        note("PostgreSQL is not installed: its line will be missing")
        yield []
        return
    server = make_server()
    try:
        yield ["--postgres", server.uri]
    finally:
        server.stop()
        shutil.rmtree(server.folder)


def run(section: Section, arguments: Sequence[str]) -> str:
    """What the benchmark prints."""
    note(f"== {section.title}")
    command = [sys.executable, "-m", f"benchmarks.{section.module}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{section.module} failed with status {done.returncode}: nothing was written.")
    return done.stdout.strip()


def page(texts: dict[str, tuple[Section, str]]) -> str:
    facts = machine()
    head = [
        "# Benchmarks",
        "",
        "Made by `make bench`. Every table is one run, in which the contestants took turns; what counts are the ratios.",
        "",
        f"Machine: {facts['processor']}, {facts['cores']} cores; Python {facts['python']}, NumPy {facts['numpy']}; kernel "
        f"{facts['kernel']}; load when the run ended {os.getloadavg()[0]:.1f}.",
        "",
        "Time and memory end to end, and accuracy against other private regressions, are in [peers.md](peers.md); figures from a GPU in "
        "[gpu.md](gpu.md).",
    ]
    body = [f"\n## {title}\n\n{section.words}\n\n{text}\n" for title, (section, text) in texts.items()]
    return "\n".join(head) + "\n" + "".join(body)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything runs; the figures mean nothing"
    )
    options.add_argument("--out", type=Path, default=PAGE)
    given = options.parse_args()
    start = time.perf_counter()
    texts = {}
    for section in SECTIONS:
        arguments = list(section.quick) if given.quick else []
        with postgresql() if section.module == "bench_files" else nullcontext([]) as server:
            texts[section.title] = (section, run(section, [*arguments, *server]))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(page(texts))
    note(f"{given.out} written after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
