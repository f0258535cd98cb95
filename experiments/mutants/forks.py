"""A plugin for pytest that runs tests on the package with one mistake after another in it, each in a process that is forked for it.

The tests are collected once. Of those that run the line, the quickest come first, and the first that fails ends it. A test that fails
for the first time is run alone without a mistake, too: if it fails then, it is not asked again and the mistake is shown to the others."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from functools import _lru_cache_wrapper
from pathlib import Path

import pytest

from experiments.mutants.anew import MISTAKE, PIPE
from experiments.mutants.choice import Choice
from experiments.mutants.mutations import FOLDER, Mutant
from experiments.mutants.planting import functions, plant

TODO, RESULTS, UNFIT = FOLDER / "todo.json", FOLDER / "results.jsonl", FOLDER / "unfit.json"
SECONDS, AS_LONG = 10, 10  # of processor time that a test may take, and as a multiple of what it took without a mistake
WAITING = 3  # how many times as long it may last
SURVIVED, NOT_RUN = "survived", "not run by any test"
OUTCOMES = {"survived": SURVIVED, "failed": "killed", "no import": "killed at import"}


def allowed(nominal: float) -> float:
    return SECONDS + AS_LONG * nominal


def limit(nominal: float) -> None:
    """End this process when the test that begins takes far too much of the processor."""
    limit_to(allowed(nominal))


def limit_to(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, seconds)


class Child:
    """One process with one mistake, or with none, and what it has said so far."""

    def __init__(self, mutant: Mutant | None, tests: list[str], nominal: dict[str, float], *, anew: bool = False) -> None:
        self.mutant, self.tests, self.nominal = mutant, tests, nominal
        self.anew = anew  # whether the package is imported again
        self.begun, self.test, self.rest = 0, "", ""
        self.since = self.start = time.monotonic()
        self.folder = tempfile.mkdtemp(prefix="mutant-")
        self.outcome: str | None = None

    def hear(self, words: str) -> None:
        *lines, self.rest = (self.rest + words).split("\n")
        for line in lines:
            word, _, test = line.partition(" ")
            if word == "test":
                self.begun, self.test, self.since = self.begun + 1, test, time.monotonic()
            elif word == "anew":
                self.anew = True
            else:
                self.outcome = OUTCOMES[line]

    @property
    def overdue(self) -> bool:
        return time.monotonic() - self.since > WAITING * allowed(self.nominal.get(self.test, 0.0))

    @property
    def killer(self) -> tuple[str, bool] | None:
        """The test that noticed, and whether the package was imported again for it."""
        return (self.test, self.anew) if self.test and self.outcome != SURVIVED else None

    def result(self) -> dict:
        assert self.mutant is not None
        by = self.killer[0] if self.killer else ""
        seconds = round(time.monotonic() - self.start, 1)
        return _result(self.mutant, self.outcome, by=by, tests=self.begun, of=len(self.tests), seconds=seconds)


def _result(mutant: Mutant, outcome: str | None, *, by: str = "", tests: int = 0, of: int = 0, seconds: float = 0.0) -> dict:
    return {**asdict(mutant), "name": mutant.name, "outcome": outcome, "by": by, "tests": tests, "of": of, "seconds": seconds}


class Forks:
    """Runs what ``TODO`` lists instead of the tests that were collected."""

    def __init__(self, workers: int, seconds: float) -> None:
        self.workers, self.choice = workers, Choice(seconds)
        self.unfit: set[str] = set(json.loads(UNFIT.read_text())) if UNFIT.exists() else set()
        self.fit: set[tuple[str, bool]] = set()
        self.doubtful: dict[tuple[str, bool], list[Child]] = {}  # by a test that has not been run without a mistake yet

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session, self.items = session, {item.nodeid: item for item in session.items}
        self.live = functions()
        self.caches = [each for each in gc.get_objects() if type(each) is _lru_cache_wrapper]
        gc.collect()
        gc.freeze()
        self.waiting: list[Child | Mutant] = [Mutant(**each) for each in json.loads(TODO.read_text())][::-1]
        self.total, self.tally = len(self.waiting), Counter[str]()
        running: dict[int, Child] = {}
        with RESULTS.open("a", encoding="utf-8") as self.out:
            while self.waiting or running:
                while self.waiting and len(running) < self.workers:
                    child = self.begin(self.waiting.pop())
                    if child is not None:
                        running[child.pipe] = child
                for pipe in select.select(list(running), [], [], 1.0)[0]:
                    words = os.read(pipe, 65536).decode()
                    running[pipe].hear(words)
                    if not words:  # it has ended
                        running[pipe].outcome = running[pipe].outcome or "killed"
                for pipe, child in list(running.items()):
                    if child.outcome is None and child.overdue:
                        child.outcome = "timed out"
                    if child.outcome is not None:
                        del running[pipe]
                        self.end(child)
        return True

    def begin(self, job: Child | Mutant) -> Child | None:
        """A process for the mistake, if any test runs its line."""
        if isinstance(job, Mutant):
            tests = [test for test in self.choice.tests(job, self.unfit) if test in self.items]
            if not tests:
                self.record(_result(job, NOT_RUN))
                return None
            job = Child(job, tests, self.choice.seconds_of)
        reading, writing = os.pipe()
        job.process = os.fork()
        if job.process == 0:
            os.close(reading)
            try:
                self.inside(job, writing)
            finally:
                os._exit(0)
        os.close(writing)
        job.pipe = reading
        return job

    def inside(self, child: Child, pipe: int) -> None:
        """The forked process: plants the mistake and runs tests until one fails."""

        def tell(line: str) -> None:
            os.write(pipe, f"{line}\n".encode())

        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        self.session.config.pluginmanager.get_plugin("terminalreporter")._tw._file = os.fdopen(nothing, "w")
        if not child.anew and (child.mutant is None or plant(child.mutant, self.live)):
            for cache in self.caches:
                cache.cache_clear()
            self.session.config._tmp_path_factory._basetemp = Path(child.folder)
            items = [self.items[test] for test in child.tests]
            for item, following in zip(items, [*items[1:], None], strict=True):
                tell(f"test {item.nodeid}")
                limit(child.nominal.get(item.nodeid, 0.0))
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.session.testsfailed:
                    tell("failed")
                    return
            tell("survived")
            return
        tell("anew")
        os.set_inheritable(pipe, True)
        os.environ[MISTAKE], os.environ[PIPE] = json.dumps(child.mutant and asdict(child.mutant)), str(pipe)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "experiments.mutants.anew", f"--basetemp={child.folder}"]
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *options, *child.tests])

    def end(self, child: Child) -> None:
        """Record the result, unless the test that noticed has to show first that it passes without a mistake."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process, signal.SIGKILL)
        os.waitpid(child.process, 0)
        os.close(child.pipe)
        shutil.rmtree(child.folder, ignore_errors=True)
        if child.mutant is None:
            self.judge((child.tests[0], child.anew), passed=child.outcome == SURVIVED)
        elif child.killer is None or child.killer in self.fit:
            self.record(child.result())
        else:
            first = child.killer not in self.doubtful
            self.doubtful.setdefault(child.killer, []).append(child)
            if first:
                test, anew = child.killer
                self.waiting.append(Child(None, [test], self.choice.seconds_of, anew=anew))

    def judge(self, test: tuple[str, bool], *, passed: bool) -> None:
        children = self.doubtful.pop(test)
        if passed:
            self.fit.add(test)
            for child in children:
                self.record(child.result())
        else:
            self.unfit.add(test[0])
            UNFIT.write_text(json.dumps(sorted(self.unfit)))
            self.waiting += [child.mutant for child in children]

    def record(self, result: dict) -> None:
        self.out.write(json.dumps(result) + "\n")
        self.out.flush()
        self.tally[result["outcome"]] += 1
        count = self.tally.total()
        if count % 20 == 0:
            words = ", ".join(f"{many} {outcome}" for outcome, many in self.tally.most_common())
            print(f"{time.strftime('%H:%M:%S')} {count} of {self.total}: {words}", file=sys.__stderr__, flush=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutant-workers", type=int, default=2)
    parser.addoption("--mutant-seconds", type=float, default=30.0)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Forks(config.getoption("mutant_workers"), config.getoption("mutant_seconds")))
