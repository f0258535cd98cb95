"""Regressions from a release of many columns: how much memory they take, and what they do not compute."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import dpgram
from dpgram.evidence.tails import Tails

COLUMNS, ROWS = 150, 3000


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    cells = rng.standard_t(6, (ROWS, COLUMNS))
    cells[:, 0] += cells[:, 1:4].sum(axis=1)
    table = {f"x{i}": column for i, column in enumerate(cells.T)}
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -30, 30, missing="midpoint") for name in table])
    made = dpgram.release(
        table, schema, epsilon=500, delta=1e-6, mechanism="whitened-noise", arithmetic="float", insecure_seed=1
    )
    assert made.noise.last.outer
    path = tmp_path_factory.mktemp("wide") / "release.json"
    made.save(path)
    return path


def summed_up(file, features: int) -> tuple[str, float]:
    """The summary of a regression from a fresh copy of the release, and how much memory it took, in matrices of all columns."""
    release = dpgram.load(file)
    dpgram.regress(release, "x1", ["x2"]).summary()  # imports what it needs
    release = dpgram.load(file)
    tracemalloc.start()
    try:
        text = str(dpgram.regress(release, "x0", [f"x{i}" for i in range(1, features + 1)]).summary())
        return text, tracemalloc.get_traced_memory()[1] / (8 * (COLUMNS + 1) ** 2)
    finally:
        tracemalloc.stop()


def test_a_few_features_of_many_take_the_memory_of_a_few_matrices(file):
    """Ten at the time of writing. It was twice as many: what every outer matrix shows, and its eigenvectors, all at once."""
    text, matrices = summed_up(file, 20)
    assert "x20" in text
    assert matrices < 13


def test_outer_matrices_are_looked_into_only_where_long_rows_disagree(file, monkeypatch):
    def never(self, *given):
        raise AssertionError

    monkeypatch.setattr(Tails, "clear", never)
    assert "x20" in summed_up(file, 20)[0]
    monkeypatch.setattr(Tails, "disagree", lambda self, *given: np.arange(len(self.scales)) == 1)
    with pytest.raises(AssertionError):
        summed_up(file, 20)


def test_all_columns_at_once(file):
    text, _ = summed_up(file, COLUMNS - 1)
    assert "all features" in text
