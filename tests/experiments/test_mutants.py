"""Mistakes are planted, shown to the tests that run their line, and counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

from tests.needs import package

package("cosmic_ray")
package("coverage")

from experiments.mutants.mutations import Mutant, mutants, of_file  # noqa: E402
from experiments.mutants.report import REASONS, Reason, Report, read_reasons  # noqa: E402

ROOT = Path(__file__).parents[2]

SOURCE = '''"""A file."""


def half(x: float) -> float:
    """Half of it."""
    return x / 2


@cache
def known(x: float | None = None) -> bool:
    return x is None or not x > 1
'''


def test_mistakes_have_a_place_and_a_name_of_their_own():
    found = list(of_file("src/dpgram/made_up.py", SOURCE))
    assert {each.after.strip() for each in found} >= {
        "return x * 2",
        "return x / 3",
        "return x is not None or not x > 1",
        "return x is None and not x > 1",
        "return x is None or not x >= 1",
        "",  # the decorator taken away
    }
    assert len({each.name for each in found}) == len(found)
    lines = SOURCE.splitlines()
    assert all(each.before.splitlines() == lines[each.line - 1 : each.last] for each in found)


def test_annotations_and_docstrings_are_no_mistakes():
    assert not list(
        of_file("src/dpgram/made_up.py", '"""1 + 1"""\n\n\ndef f(x: int | None) -> int | None:\n    "2 > 1"\n    return x\n')
    )


def run(tmp_path: Path, *options: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "experiments.mutants", "--workers=1", *options],
        cwd=ROOT,
        env={**os.environ, "DPGRAM_MUTANTS": str(tmp_path), "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )


def test_tests_notice_mistakes_in_what_they_run(tmp_path):
    asked = ("--within=accounting/roots.py", "--share=0.1", "--tests", "tests/accounting/test_roots.py")
    done = run(tmp_path, *asked)
    results = {each["name"]: each for each in map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())}
    assert set(results) == {each.name for each in mutants("accounting/roots.py") if each.among(0.1)}, done.stderr
    assert {"killed", "survived"} <= {each["outcome"] for each in results.values()}
    assert done.returncode == 1  # few tests were asked, so some mistakes live that have no reason
    table = done.stdout[done.stdout.index("| where |") :]
    assert "| accounting |" in table
    written = (tmp_path / "results.jsonl").read_text()
    again = run(tmp_path, *asked)
    assert again.stdout == table
    assert (tmp_path / "results.jsonl").read_text() == written  # nothing is planted twice


def test_every_reason_is_that_of_a_mistake_which_can_be_made():
    for name, reason in read_reasons().items():
        lines = (ROOT / reason.file).read_text(encoding="utf-8")
        assert reason.before in lines, f"{REASONS.name} explains {name}, a mistake in a line that has changed: remove it"
        assert reason.why


def result(mutant: Mutant, outcome: str) -> dict:
    return {**asdict(mutant), "name": mutant.name, "outcome": outcome}


def test_a_mistake_that_nothing_notices_needs_a_reason():
    planted = list(of_file("src/dpgram/rows/made_up.py", SOURCE))
    results = {each.name: result(each, "killed") for each in planted[3:]}
    results |= {each.name: result(each, "survived") for each in planted[:2]}
    results[planted[2].name] = result(planted[2], "not run by any test")
    harmless, same = (
        Reason(each.file, each.before, each.after, "it does no harm", same)
        for each, same in zip(planted, (False, True), strict=False)
    )
    report = replace(Report.of(planted, results, known=100), reasons={planted[0].name: harmless, planted[1].name: same})
    (line,) = report.unexplained()
    assert planted[2].name in line
    count = len(planted)
    assert f"| rows | {count} | 1 | {count - 3} | 2 | {2 / (count - 1):.1%} |" in report.table()
    assert report.surviving_share == 2 / (count - 1)
    assert "| the same: it does no harm |" in report.survivors_table()
    assert report.missing == 0
    assert Report.of(planted, {}, known=100).missing == count
