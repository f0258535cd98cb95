"""What many tests share: a small table, its schema, and a release of it."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram.mechanisms.registry import MECHANISMS
from tests import rounds
from tests.servers import make_server


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
    return dpgram.release(table, schema, epsilon=5.0, delta=1e-6, insecure_seed=1)


@pytest.fixture
def in_rounds(monkeypatch) -> str:
    """The name of a mechanism of several rounds, which is in the registry while a test runs."""
    monkeypatch.setitem(MECHANISMS, rounds.NAME, rounds.MECHANISM)
    return rounds.NAME


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server, one per process that runs tests."""
    server = make_server()
    yield server
    server.stop()
    shutil.rmtree(server.folder)
