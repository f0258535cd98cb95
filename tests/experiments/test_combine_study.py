"""The page on combined releases shows what the study measured, and the study measures what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.combine import page
from experiments.combine.__main__ import RESULTS
from experiments.combine.study import CASES, EPSILONS, FEW, ROWS, Line, combined_and_one, hospital, measure
from experiments.coverage.releases import calibrated_once
from experiments.markers import fill
from experiments.real.study import read

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_results():
    text = (ROOT / page.PAGE).read_text(encoding="utf-8")
    assert fill(text, page.tables(read(RESULTS, Line))) == text


def test_every_case_was_measured_and_intervals_hold():
    """Of 400 slopes 92 % hold by chance in one of 200 cases whose intervals are right."""
    lines = read(RESULTS, Line)
    assert [(line.rows, line.name, line.epsilon) for line in lines] == [(c.rows, c.name, e) for c in CASES for e in EPSILONS]
    assert min(line.coverage for line in lines) > 0.92


def test_cases_are_what_they_are_called():
    assert {len(case.sizes) for case in CASES if case.rows == "disjoint"} == {2, 5, 20}
    assert all(0.99 * ROWS < sum(case.sizes) <= ROWS for case in CASES)
    assert any(min(case.sizes) == FEW for case in CASES)
    rows = hospital(5000, 1.0, np.random.default_rng(0))
    assert np.abs(rows).max() == 1.0
    assert rows[:, 1].mean() == pytest.approx(0.2, abs=0.02)


def test_a_case_is_measured():
    with calibrated_once():
        both, one = combined_and_one(CASES[3], 3.0, 0)
        line = measure(CASES[-1], 3.0, repeats=2)
    assert both.rows == one.rows
    assert line.slopes == 8
    assert line.error < 0.1
