"""The study of panels measures what it says: both ways bound a unit, one is the mean of the other, and intervals cover simulated slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpgram
from experiments.units import page
from experiments.units.panels import LISTED, Panel, held_out
from experiments.units.study import MOST, coverage, errors, gram_of, kept, shares

COLUMNS = [dpgram.Numeric("y", -1, 1), dpgram.Numeric("x", -1, 1)]


def made_up(units=300, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, units)
    whose = np.repeat(np.arange(units), sizes)
    x = rng.uniform(-1, 1, len(whose))
    y = 0.4 * x + rng.normal(scale=0.1, size=units)[whose] + rng.normal(scale=0.05, size=len(whose))
    schema = dpgram.Schema(unit="person", columns=COLUMNS)
    return Panel("made up", schema, "y", np.column_stack([np.ones(len(x)), y, x]), whose)


@pytest.mark.parametrize("most", MOST)
def test_no_unit_counts_for_more_than_m_rows_either_way(most):
    panel = made_up()
    rng = np.random.default_rng(1)
    for share in (kept(panel, most, rng), shares(panel, most)):
        assert np.bincount(panel.units, share) == pytest.approx(np.minimum(panel.sizes, most))


def test_counting_all_rows_for_less_is_the_mean_of_keeping_some():
    panel = made_up(40)
    rng = np.random.default_rng(2)
    mean = np.mean([gram_of(panel.rows, kept(panel, 2, rng)) for _ in range(4000)], axis=0)
    assert mean == pytest.approx(gram_of(panel.rows, shares(panel, 2)), abs=0.3)


def test_measures_are_what_they_are_called():
    panel = made_up()
    found = errors(panel, 1, math.inf, releases=20)
    assert 0 < found.weigh < found.keep
    held = coverage(panel, 3, math.inf, resamples=60)
    assert held.worst > 0.93
    assert held.wider == pytest.approx(math.sqrt(3), rel=0.02)


def test_two_panels_are_held_out_and_the_tables_name_them():
    assert sum(map(held_out, LISTED)) == 2
    panel = made_up(60)
    lines = [errors(panel, most, epsilon, releases=2) for most in MOST for epsilon in (math.inf, 8.0)]
    assert page.error_table(lines).count("made up") == 1
    cells = [coverage(panel, most, epsilon, resamples=2) for most in MOST for epsilon in (math.inf, 8.0)]
    assert page.coverage_table(cells).count("made up") == 3
