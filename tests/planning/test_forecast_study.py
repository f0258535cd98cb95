"""Forecasts against outcomes: the committed study is within its limits, the page shows it, and a slow run makes part of it again."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpgram.mechanisms import registry
from experiments.coverage.releases import calibrated_once
from experiments.forecast.study import HIGHEST, LOWEST, compared, read
from experiments.forecast.table import PAGE, RESULTS, outside, table, tables
from experiments.forecast.tables import assumed, flights, paper
from experiments.markers import fill
from experiments.sheffet2015 import settings

ROOT = Path(__file__).parents[2]
CELLS = read(ROOT / RESULTS)


def test_every_forecast_of_the_study_came_true_but_those_of_clipped_rounds_on_real_rows():
    """The longest rows of a real table decide what clipping them does, and a sample of 2,000 does not show it (docs/plan.md).

    One more: of a wide table few releases are simulated, and at this budget they differ a lot; with 160 of them the ratio is 1.1."""
    for cell in outside(CELLS):
        assert registry.find(cell.mechanism).several, cell
        assert cell.table.startswith("flights") or (cell.table, cell.epsilon) == ("paper, multiple, n = 2^14", 0.1), cell
    for cell in CELLS:
        assert cell.releases >= 20
    sure = [cell for cell in CELLS if not cell.table.startswith("flights")]
    assert {cell.mechanism for cell in sure} == set(registry.MECHANISMS)
    assert {cell.mechanism for cell in CELLS} == set(registry.MECHANISMS)
    assert len({(cell.table, cell.epsilon) for cell in CELLS}) >= 20


def test_the_page_shows_the_study():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert fill(text, tables(CELLS)) == text
    assert f"{len(CELLS) - len(outside(CELLS))} of {len(CELLS)} ratios lie within" in table(CELLS)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", registry.MECHANISMS)
def test_forecasts_come_true_again(mechanism):
    """One of the paper's tables and one of the flights' (for rounds, one that is as assumed), at one epsilon each, by fewer releases.

    Seeds are fixed, so there is no false alarm; with 100 releases a ratio's standard error is some 0.1 at most."""
    first = paper(settings.SINGLE, 14, (0.1,))
    if registry.find(mechanism).several:
        second = replace(assumed(), epsilons=(1.0,))
    else:
        second = replace(next(t for t in flights() if t.name.endswith("on all columns")), epsilons=(1.0,))
    with calibrated_once():
        for one in (first, second):
            for cell in compared(one, 100, (mechanism,)):
                assert LOWEST <= cell.ratio <= HIGHEST, cell
