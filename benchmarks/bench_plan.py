"""Processor seconds of planning at 22 encoded columns: of ``dpgram plan``, of ``auto``, and of the search for a wanted
width. ``make bench`` runs it.

Every figure is from a process of its own: a second plan in one process finds calibrations that the first one kept. The number of BLAS
threads is not set, as on a user's machine."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.timing import machine, options, print_table, show

FLIGHTS = Path("src/dpgram/demo/flights.toml")
NUMBERS = 'unit = "person"\nneighbours = "replace"\n' + "".join(
    f'\n[[columns]]\nname = "x{i}"\nkind = "numeric"\nlower = -1\nupper = 1\n' for i in range(21)
)
BUDGET = ("--delta", "1e-7")
CHOICE = """
import sys, time
import dpgram
from dpgram.planning.choose import choose
schema, budget = dpgram.Schema.load(sys.argv[1]), dpgram.Budget(1.0, 1e-7)
other = dpgram.Schema(unit="p", columns=[dpgram.Numeric("a", 0, 1), dpgram.Categorical("b", ["u", "v"])])
if sys.argv[2] == "warm":  # what is imported when it is first needed, is
    choose(other, 50_000, dpgram.Budget(2.0, 1e-6))
start = time.process_time()
choose(schema, 300_000, budget)
print(time.process_time() - start)
"""


def command_seconds(arguments: Sequence[str]) -> float:
    """User and system time of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, env=_own_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def choice_seconds(schema: Path, how: str) -> float:
    """Of the choice alone, with ("cold") or without ("warm") what it imports."""
    done = subprocess.run(
        [sys.executable, "-c", CHOICE, str(schema), how], capture_output=True, text=True, check=True, env=_own_environment()
    )
    return float(done.stdout)


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}


def bench(repeats: int = 3, *, quick: bool = False) -> dict:
    """The smallest of some turns, for the bundled schema (numbers and categories) and for one of numbers alone."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder) / "numbers.toml"
        numbers.write_text(NUMBERS)
        for title, schema, typical, named in (
            ("flights", FLIGHTS, "0.3", "dep_delay=0.008"),
            ("numbers", numbers, "0.01", "x1=0.012"),
        ):
            plan = ("-m", "dpgram", "plan", "--schema", str(schema), *BUDGET, "--table-rows", "300000")
            contestants: dict[str, Callable[[], float]] = {
                "python -c 'import dpgram'": lambda: command_seconds(["-c", "import dpgram"]),
                "dpgram plan": lambda plan=plan: command_seconds([*plan, "--epsilon", "1"]),
                "auto's choice, imports done": lambda schema=schema: choice_seconds(schema, "warm"),
                "auto's choice, with imports": lambda schema=schema: choice_seconds(schema, "cold"),
                "plan that identifies nothing": lambda plan=plan: command_seconds([*plan[:-1], "2000", "--epsilon", "0.1"]),
                "plan --target-width": lambda plan=plan, width=typical: command_seconds([*plan, "--target-width", width]),
                "plan --target-width NAME=VALUE": lambda plan=plan, width=named: command_seconds(
                    [*plan, "--target-width", width]
                ),
            }
            if quick:
                contestants = dict(list(contestants.items())[:3])
            turns = [{each: run() for each, run in contestants.items()} for _ in range(1 if quick else repeats)]
            figures[title] = {each: min(turn[each] for turn in turns) for each in contestants}
    return {"figures": figures, "machine": machine()}


def table(result: dict) -> None:
    figures = result["figures"]
    (first, *_) = figures.values()
    print_table(["processor seconds", *figures], [[each, *(figures[title][each] for title in figures)] for each in first])


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    show(bench(given.repeats, quick=given.quick), given.json, table)


if __name__ == "__main__":
    main()
