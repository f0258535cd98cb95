"""The study of the whitened release: a small form of it is run here, and its pages say what its numbers say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from experiments.markers import fill
from experiments.whitened import designs, study, tables
from experiments.whitened.releases import INDICATOR, INTERCEPT, NUMBER, clipped_gram, coefficients, single, whitened
from experiments.whitened.table import AIMS, PAGE, RESULTS, TABLES, best_error, everything, loses, parts

ROOT = Path(__file__).parents[2]
KINDS = sorted({case.kind for case in study.CASES})


def test_the_pages_say_what_the_numbers_say(tmp_path):
    page, lines = (ROOT / PAGE).read_text(encoding="utf-8"), study.read(ROOT / RESULTS)
    assert fill(page, parts(lines)) == page
    assert everything(lines) == (ROOT / TABLES).read_text(encoding="utf-8")
    study.write(tmp_path / "again.csv", lines)
    assert (tmp_path / "again.csv").read_text() == (ROOT / RESULTS).read_text()


def test_the_numbers_are_of_the_whole_study():
    lines = study.read(ROOT / RESULTS)
    assert len(lines) == study.LINES
    assert {x.setting for x in lines if x.part == "real"} == set(tables.TABLES)
    assert {(x.setting, round(math.log2(x.rows)), x.epsilon) for x in lines if x.runs >= 30} >= set(AIMS)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_design_is_as_its_truth_says(kind, wide):
    """Least squares on 2^14 rows: nothing is further than ten standard errors from the truth. Levels are 0 and 1."""
    table = designs.draw(kind, 2**14, 6, np.random.default_rng(3), wide=wide)
    assert table.half[0] == INTERCEPT
    assert table.half[-1] == NUMBER
    assert np.isin(table.rows[:, table.half == INDICATOR], (0.0, 1.0)).all()
    if wide:
        assert np.abs(table.rows).max() <= 1
        return  # cells beyond the bounds were cut, and least squares moves with them
    for places, truth in table.truths.values():
        x, y = table.rows[:, places], table.rows[:, -1]
        found = np.linalg.lstsq(x, y, rcond=None)[0]
        noise = np.mean((y - x @ found) ** 2) * np.diag(np.linalg.inv(x.T @ x))
        assert np.all(np.abs(found - truth) < 10 * np.sqrt(noise))


def test_releases_are_the_library_s_own():
    table = designs.draw("mixed", 2**12, 6, np.random.default_rng(1))
    several = whitened(table.rows, table.half, table.squared_bound, 1.0, 1e-6, seed=5)
    one = single(clipped_gram(table.rows, table.squared_bound), 2**12, table.squared_bound, 1.0, 1e-6, seed=5)
    assert (several.mechanism, one.mechanism) == ("whitened-noise", "gaussian-noise")
    assert several.parameters["mu"] == pytest.approx(
        math.sqrt(2) * one.row_bound**2 / (math.sqrt(2) * one.noise.sd_off_diagonal)
    )
    assert not several.private
    numbers = whitened(
        table.rows, np.where(table.half == INDICATOR, NUMBER, table.half), table.squared_bound, 1.0, 1e-6, seed=5
    )
    assert not np.array_equal(several.noise.last.through, numbers.noise.last.through)  # which columns are indicators is heard
    places, truth = table.truths["mixed"]
    for release in (several, one):
        for found in coefficients(release, places):
            assert found.shape == truth.shape


def test_a_simulated_line_is_better_whitened_where_columns_are_alike():
    """AR(0.9), 2^13 rows, epsilon 3, on fixed seeds: the study's own cells differ by a factor of ten, this one asks for two."""
    (line,) = study.simulated(study.Case("AR(0.9)", 13, 3.0, runs=3, features=6))
    assert (line.part, line.columns, line.rows, line.runs) == ("simulated", 8, 2**13, 3)
    assert line.without < line.whitened_shrunk < best_error(line) / 2
    assert math.isnan(line.single_error)


def test_a_real_line_tells_r2_and_error(monkeypatch):
    rows = designs.draw("AR(0.9)", 4_000, 4, np.random.default_rng(2), wide=True)
    own = rows.rows[:3_000]
    fit = np.linalg.lstsq(own[:, :-1], own[:, -1], rcond=None)[0]
    table = tables.Real(own, rows.rows[3_000:], rows.half, 6.0, own.T @ own, fit)
    assert table.error(fit) == 1.0
    monkeypatch.setattr(tables, "load", lambda name: table)
    line = study.real("slid", 5.0, draws=3)
    assert (line.group, line.columns, line.rows) == (study.HELD_OUT, 6, 3_000)
    assert 0.5 < line.whitened_shrunk <= 1
    assert line.without == pytest.approx(table.test_r2(fit))
    assert 1 <= line.whitened_error < line.single_error
    assert not loses(line)


def test_every_table_has_a_group():
    assert set(tables.CHOSEN_ON) | set(tables.FRESH) < set(tables.TABLES)
    assert not set(tables.CHOSEN_ON) & set(tables.FRESH)
    assert len(tables.TABLES) == 26
