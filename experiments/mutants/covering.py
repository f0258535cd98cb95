"""A plugin for pytest that notes, for every test, which lines of the rooms it runs and how long it takes.

``python -m experiments.mutants`` loads it. Under pytest-xdist every worker writes a file of its own."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

from experiments.mutants.mutations import FOLDER, ROOT, files

NOTES = FOLDER / "notes"


class Covering:
    """Hooks of one worker."""

    def __init__(self) -> None:
        import coverage

        self.coverage = coverage.Coverage(data_file=None, include=[str(path) for path in files()], config_file=False)
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self.coverage.switch_context(item.nodeid)
        done = yield
        self.coverage.switch_context("")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            Path(file).relative_to(ROOT).as_posix(): {
                line: [test for test in tests if test and test not in self.failed]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        NOTES.mkdir(parents=True, exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        (NOTES / f"{worker}.json").write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config, "workerinput", None) is not None or not config.getoption("numprocesses", None):
        plugin = Covering()
        plugin.coverage.start()
        config.pluginmanager.register(plugin)


def covering_tests() -> tuple[dict[tuple[str, int], list[str]], dict[str, float]]:
    """Which tests run a line of a file, quickest first; and how many seconds each takes."""
    lines: dict[tuple[str, int], set[str]] = defaultdict(set)
    seconds: dict[str, float] = {}
    for path in sorted(NOTES.glob("*.json")):
        notes = json.loads(path.read_text())
        seconds.update(notes["seconds"])
        for file, tests in notes["lines"].items():
            for line, names in tests.items():
                lines[file, int(line)].update(names)
    return {place: sorted(names, key=lambda name: seconds.get(name, 1e9)) for place, names in lines.items()}, seconds
