"""Runs the office for a day and checks its books: ``python -m experiments.soak``, some minutes, or ``make soak``.

Writes its table into docs/ledger.md if nothing was shortened. Ends with 1 where something was lost, uncounted or stuck."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from rich.progress import track

from experiments.markers import fill_page
from experiments.soak.office import Day, spend

ROOT = Path(__file__).parents[2]
RELEASES, AT_ONCE = 200, 8


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m experiments.soak", description=__doc__)
    options.add_argument("--releases", type=int, default=RELEASES)
    options.add_argument("--at-once", type=int, default=AT_ONCE)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        days = spend(Path(folder), releases=given.releases, at_once=given.at_once, seed=given.seed)
        *_, day = track(days, total=given.releases + 1, description="releases")
    print(table(day))
    for fault in day.faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    if given.releases == RELEASES and not day.faults:
        fill_page(ROOT / "docs/ledger.md", {"soak": table(day)})
    return 1 if day.faults else 0


def table(day: Day) -> str:
    desks = day.desks
    refused = [desk for desk in desks if desk.code not in (0, -signal.SIGKILL)]
    rows = [
        ("releases begun", len(desks)),
        ("killed", sum(desk.code == -signal.SIGKILL for desk in desks)),
        ("stopped by a full disk", len(refused)),
        ("done", day.made),
        ("lines in the ledger, each counted in full", day.entries),
        ("of them recorded as made", day.committed),
        ("times that the ledger was read meanwhile", day.reads),
        ("seconds of the longest release", f"{day.longest:.0f}"),
        ("seconds in all", f"{day.seconds:.0f}"),
        ("lost, uncounted or stuck", len(day.faults)),
    ]
    return "\n".join(["| what | how many |", "|---|---:|", *(f"| {name} | {many} |" for name, many in rows)])


if __name__ == "__main__":
    sys.exit(main())
