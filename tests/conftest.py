"""What many tests share: a small table, its schema, and a release of it."""

from __future__ import annotations

import shutil
import signal
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings

import dpgram
from dpgram.artifact import claims
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.terms.noise import SymmetricGaussian
from tests import needs, rounds
from tests.servers import make_server

settings.register_profile("fixed", derandomize=True, deadline=None)  # `make test`: the same examples in every run
settings.register_profile("search", deadline=None, print_blob=True)  # `make test-search`: others each time
settings.load_profile("fixed")


if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as a shell has it for what runs in the background: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = (
    "tests/test_docs.py",
    "tests/test_guides.py",
    "tests/experiments/",
)  # begun first, with all groups, so that no worker waits at the end


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that uses a server, a cluster or a browser needs the program behind it."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG) and item.get_closest_marker("xdist_group") is None)
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in needs.FIXTURES:
                item.add_marker(pytest.mark.system(needs.FIXTURES[fixture]))


def pytest_runtest_setup(item: pytest.Item) -> None:
    needs.check(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """After everything else that is said: what was not run, and what to do about it."""
    told = yield
    skipped = terminalreporter.stats.get("skipped", [])
    for line in needs.closing_lines(str(report.longrepr) for report in skipped):
        terminalreporter.write_line(line, yellow=True, bold=True)
    return told


def small_schema(**changes) -> dpgram.Schema:
    """Two numbers, one category, one truth value."""
    fields = {
        "unit": "person",
        "columns": [
            dpgram.Numeric("x", -5, 5),
            dpgram.Numeric("y", -10, 30),
            dpgram.Categorical("c", ["a", "b"], other=True),
            dpgram.Boolean("b"),
        ],
        **changes,
    }
    return dpgram.Schema(**fields)


def filled_schema(**changes) -> dpgram.Schema:
    """``small_schema`` where missing cells are filled, so that every row counts as one."""
    schema = small_schema(**changes)
    columns = [replace(c, missing="midpoint") if isinstance(c, dpgram.Numeric) else c for c in schema.columns]
    return replace(schema, columns=columns)


NUMBERS_TOML = """
unit = "person"
columns = [
  {name = "x", kind = "numeric", lower = -5, upper = 5},
  {name = "y", kind = "numeric", lower = -10, upper = 30},
]
"""  # a schema file of the two numbers of ``small_schema``


def small_table(rows: int = 4000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    x, c, b = rng.normal(size=rows), rng.choice(["a", "b", "z"], rows), rng.random(rows) < 0.4
    y = 5 + 2 * x + 3 * (c == "b") - 4 * b + rng.normal(size=rows)
    return pa.table({"x": x, "y": y, "c": c, "b": b})


@pytest.fixture(scope="session")
def schema() -> dpgram.Schema:
    return small_schema()


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return small_table()


@pytest.fixture(scope="session")
def small_release(table, schema) -> dpgram.GramRelease:
    return dpgram.release(table, schema, epsilon=5.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)


@pytest.fixture
def in_rounds(monkeypatch) -> str:
    """The name of a mechanism of several rounds, which is in the registry while a test runs."""
    monkeypatch.setitem(MECHANISMS, rounds.NAME, rounds.MECHANISM)
    monkeypatch.setitem(claims.CLAIMS, rounds.NAME, claims.Claim(SymmetricGaussian, claims.curve_of_mu, {}))
    return rounds.NAME


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server, one per process that runs tests."""
    server = make_server()
    yield server
    server.stop()
    shutil.rmtree(server.folder)
