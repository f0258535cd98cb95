"""What the benchmarks share: contestants timed in turn in one run, the machine in words, tables on the terminal, JSON beside them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from dpgram.native.library import kernel_name


def best_times(
    contestants: Mapping[str, Callable[[], object]],
    *,
    seconds: float = 1.0,
    rounds: int = 3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The shortest time of each, in seconds. They take turns, at least ``rounds`` times and for about ``seconds`` each, so that a busy
    moment of the machine does not fall on one of them alone. ``clock`` is ``time.process_time`` where processor time counts."""
    best = dict.fromkeys(contestants, float("inf"))
    begun, turns = time.perf_counter(), 0
    while turns < rounds or (time.perf_counter() - begun < seconds * len(contestants) and turns < 50):
        for name, run in contestants.items():
            start = clock()
            run()
            best[name] = min(best[name], clock() - start)
        turns += 1
    return best


def peak_memory(command: Sequence[str], **environment: str) -> tuple[float, float]:
    """Seconds and the largest resident size in MB of a command, from the operating system."""
    script = (
        "import resource, subprocess, sys, time; start = time.perf_counter(); "
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
        "print(code, time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *command], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    code, seconds, kilobytes = ran.stdout.split()
    if code != "0":
        raise RuntimeError(f"{command[0]} failed: {ran.stderr}")
    return float(seconds), float(kilobytes) / 1024


def own_peak_memory() -> float:
    """The largest resident size of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernel": kernel_name(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    name = facts.get("model name", platform.machine())
    caches = facts.get("cache size", "")
    return f"{name}, {caches} cache" if caches else name


def print_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table in Markdown, its columns aligned so that it reads well on a terminal too."""
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["| " + " | ".join(t.ljust(w) if i == 0 else t.rjust(w) for i, (t, w) in enumerate(zip(row, widths, strict=True))) + " |"
             for row in cells]  # fmt: skip
    lines.insert(1, "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|")
    print("\n" + "\n".join(lines) + "\n")


def _cell(value: object) -> str:
    """Three digits, and all of those before the point."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def options(doc: str | None) -> argparse.ArgumentParser:
    """An argument parser that knows ``--json``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print all figures as JSON instead of a table")
    return parser


def show(result: dict, as_json: bool, table: Callable[[dict], None]) -> None:
    """The result in the form that was asked for."""
    if as_json:
        print(json.dumps(result, indent=1))
    else:
        table(result)


def note(text: str) -> None:
    """A line on what is going on, for whoever waits."""
    print(text, file=sys.stderr, flush=True)
