"""Runs the benchmarks one after the other, on a machine that should do nothing else, and writes them between the markers of
docs/benchmarks.md: ``make bench``.

Every number is a ratio, or is next to the number it is to be compared with, measured in the same run."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import machine, note
from experiments.markers import fill
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
        "This is the work on each row of an array in memory: clamp, scale, clip, and add its products to an exact sum. `ours / "
        "bare` compares it with `np.dot(A.T, A)` of the same array. Both use one thread. The limit is the best that the machine "
        "could do: the time to read the array once, or the time of the multiplications at the speed of a large matrix product, "
        "whichever is longer. `2 threads gain` is the time with one thread over the time with two, and `Mrows/s` is the speed "
        "with two. For float32 arrays, the bare product does only half the work, because the exact sum needs float64. `mapped / "
        "ours` is the pass in which each row is first multiplied by a public matrix, over the pass without it, with one thread. "
        "The second table shows the same ratio for each instruction set, at one clip and at several scales, and for a matrix "
        "with zeros above its diagonal.",
        quick=("--seconds", "0.05", "--cells", "1e6", "--columns", "10", "22"),
    ),
    Section(
        "From files and databases",
        "bench_files",
        "The time from the opened source to the exact sum, compared with only decoding the same batches with the same number of "
        "threads. The second table compares whole releases of several rounds with a single pass, with one thread. Sources that "
        "are slow to read are read once and kept.",
        quick=("--rows", "200000", "--csv-rows", "20000", "--seconds", "0.1"),
    ),
    Section(
        "Ids and weights",
        "bench_units",
        "What it costs that rows count by unit or weight, compared with the pass over the same file in which every row counts in full "
        "(for ids and weights: in which rows count by weight). With ids there are two passes: the first one reads only the column of "
        "ids, and counts the rows of each unit. So text ids are decoded twice.",
        quick=("--rows", "100000", "--seconds", "0.1"),
    ),
    Section(
        "Spark",
        "bench_spark",
        "Starting Spark is not included. More workers than the machine has cores cannot be faster. [scaling.md](scaling.md) "
        "explains what the numbers mean for larger tables.",
        quick=("--rows", "100000", "--repeats", "1"),
    ),
    Section(
        "The release step",
        "bench_release_step",
        "What a release does after the pass over the rows. `calibration` finds the noise scale, with empty caches. `Gram to "
        "outcome` draws the noise from the operating system's source and adds it, in floats or in exact arithmetic. Exact "
        "arithmetic is timed up to 500 columns. Mechanisms of several rounds are left out, because they read the table between "
        "two steps. The second table shows how long Python takes to start with the library.",
        quick=("--repeats", "2"),
    ),
    Section(
        "Whitened releases of many columns",
        "bench_wide",
        "20,000 rows at epsilon 10: the size of the file, the time of `dpgram.load` over that of `json.load` of the same bytes, "
        "and the processor time of a release in exact arithmetic over that in floats. The passes over the rows are included. The second "
        "table has the time of a regression with its summary, over that of the inverse of the released matrix, and the memory that it "
        "takes beside the release. The first regression from a release computes what all later ones use.",
        quick=("--columns", "22", "--repeats", "1", "--wide", "200", "--features", "20"),
    ),
    Section(
        "Planning",
        "bench_plan",
        "Processor seconds of `dpgram plan` and of the choice by `auto`, at 22 encoded columns and 300,000 rows. Each number "
        "comes from a process of its own, with the default number of BLAS threads, and includes start-up, except in the line "
        "*imports done*. `flights` has the columns of the bundled table, `numbers` has 21 numbers.",
        quick=("--quick",),
    ),
    Section(
        "Regressions from a release",
        "bench_regress",
        "The time of one regression from a loaded release of 41 columns, compared with `numpy.linalg.solve`. Both find the "
        "columns by name.",
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


def sections(texts: dict[str, tuple[Section, str]]) -> str:
    """What stands between the page's markers: the machine, and a section per benchmark."""
    facts = machine()
    head = (
        f"Machine: {facts['processor']}, {facts['cores']} cores; Python {facts['python']}, NumPy {facts['numpy']}; kernel "
        f"{facts['kernel']}; load when the run ended {os.getloadavg()[0]:.1f}.\n"
    )
    return head + "".join(f"\n## {title}\n\n{section.words}\n\n{text}\n" for title, (section, text) in texts.items())


def kept(page: str, title: str) -> str:
    """What the page has below the words of a section."""
    found = re.search(
        rf"^## {re.escape(title)}\n\n[^\n]+\n\n(.*?)(?=^## |^<!-- end of benchmarks)", page, flags=re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise SystemExit(f"the page has no section {title!r} to keep: run it, too.")
    return found[1].strip()


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument(
        "--quick", action="store_true", help="small sizes, to see that everything runs; the figures mean nothing"
    )
    options.add_argument("--out", type=Path, default=PAGE)
    modules = [section.module for section in SECTIONS]
    options.add_argument("--only", nargs="+", choices=modules, default=modules, help="these; other sections stay as they are")
    given = options.parse_args()
    start = time.perf_counter()
    around = (given.out if given.out.exists() else PAGE).read_text(encoding="utf-8")
    texts = {}
    for section in SECTIONS:
        if section.module not in given.only:
            texts[section.title] = (section, kept(around, section.title))
            continue
        arguments = list(section.quick) if given.quick else []
        with postgresql() if section.module == "bench_files" else nullcontext([]) as server:
            texts[section.title] = (section, run(section, [*arguments, *server]))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(fill(around, {"benchmarks": sections(texts)}), encoding="utf-8")
    note(f"{given.out} written after {time.perf_counter() - start:.0f} s; its first table is written by hand: look at it again")


if __name__ == "__main__":
    main()
