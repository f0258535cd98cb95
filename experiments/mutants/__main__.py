"""Plants small mistakes in the rooms that a promise rests on, one at a time: ``python -m experiments.mutants``, or ``make mutants``.

First every test is run once to see which lines it runs. Then each mistake is shown to the tests that run its line. Stopped, it goes on
where it was; remove build/mutants to start anew. Writes a table of docs/audits.md if all were planted. Ends with 1 where a mistake that
no test notices has no reason in reasons.toml, or where more than one in twenty is not noticed."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from experiments.markers import fill_page
from experiments.mutants.covering import NOTES
from experiments.mutants.forks import TODO
from experiments.mutants.mutations import ROOT, Mutant, mutants
from experiments.mutants.report import MOST, Report, noticed, read_reasons, read_results

ROOMS_OF_TESTS = (
    *(
        "accounting",
        "artifact",
        "attacks",
        "audits",
        "checking",
        "cli",
        "doctor",
        "engines",
        "estimators",
        "formats",
        "fuzz",
        "golden",
    ),
    *(
        "house",
        "interop",
        "ledger",
        "linalg",
        "mechanisms",
        "native",
        "planning",
        "properties",
        "report",
        "rows",
        "sampling",
        "sources",
    ),
    *("statistical", "terms"),
)
STARTS_THREADS = (
    "tests/cli/test_margins.py"  # of polars, when it is collected; a process that is forked has none, and waits for them
)
ABOUT_PAGES = {"test_docs.py", "test_guides.py", "test_site.py"}
TESTS = (
    *(f"tests/{room}" for room in ROOMS_OF_TESTS),
    *(f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py")) if path.name not in ABOUT_PAGES),
    "src/dpgram",
)  # not tests/architecture, because a digest of the source sees every mistake and understands none


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m experiments.mutants", description=__doc__)
    options.add_argument("--share", type=float, default=1.0, help="of the mistakes, chosen by a hash: the same ones each time")
    options.add_argument("--within", default="", help="a part of the name of the files to plant mistakes in")
    options.add_argument("--seconds", type=float, default=40.0, help="of tests that a mistake gets")
    options.add_argument(
        "--tests", nargs="+", default=TESTS, help="files and folders of tests; with others than usual no page is written"
    )
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options.add_argument(
        "--again", action="store_true", help="show the survivors of before to the tests again, but for those explained"
    )
    given = options.parse_args()
    os.chdir(ROOT)
    NOTES.parent.mkdir(parents=True, exist_ok=True)
    if not any(NOTES.glob("*.json")):
        run_tests(given.tests, "-n", str(given.workers), "--dist=loadgroup", "-p", "experiments.mutants.covering")
    known = list(mutants(given.within))
    planted = [each for each in known if each.among(given.share)]
    waiting = sorted(
        to_plant(planted, again=given.again), key=lambda each: each.name
    )  # so that what is done by any time is a smaller sample
    if waiting:
        TODO.write_text(json.dumps([asdict(each) for each in waiting]))
        run_tests(
            given.tests,
            *("-p", "experiments.mutants.forks", f"--mutant-workers={given.workers}", f"--mutant-seconds={given.seconds}"),
        )
    report = Report.of(planted, read_results(), known=len(known))
    print(report.table())
    for line in report.unexplained():
        print(line, file=sys.stderr)
    if given.tests is TESTS and not given.within and not report.missing:
        fill_page(
            ROOT / "docs/audits.md",
            {"mutants": report.words() + "\n\n" + report.table(), "survivors": report.survivors_table()},
        )
    return 1 if report.missing or report.unexplained() or report.surviving_share > MOST else 0


def to_plant(planted: list[Mutant], *, again: bool) -> list[Mutant]:
    """Mistakes without a result yet; ``again``: and those that nothing noticed and nothing explains."""
    results, reasons = read_results(), read_reasons()
    doubtful = {name for name, result in results.items() if again and not noticed(result) and name not in reasons}
    return [each for each in planted if each.name not in results or each.name in doubtful]


def run_tests(tests: Sequence[str], *options: str) -> None:
    """Pytest on files and folders. That some tests fail is no matter: they are not asked later."""
    kinds = ["-m", "not slow and not system", f"--ignore={STARTS_THREADS}", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *kinds, *options, *tests]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}, check=False)


if __name__ == "__main__":
    sys.exit(main())
