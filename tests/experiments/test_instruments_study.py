"""The study of instruments measures what it says, its page is that of its results, and a reduced version of it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy import stats

from experiments.instruments import page
from experiments.instruments.__main__ import COVERAGE, REPLICATION
from experiments.instruments.replication import EPSILONS, EXACT, REFERENCE, TABLE, Line
from experiments.instruments.study import Cell, Coverage, cells, coverage, rare_cells
from experiments.markers import fill
from experiments.real.study import read

ROOT = Path(__file__).parents[2]
FALSE_ALARM = 1e-6  # per case, if sets cover as often as they should
RELEASES = 25


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("strength", ["weak", "strong"])
@pytest.mark.parametrize("rare", [0, 10])
def test_sets_cover(mechanism, strength, rare):
    """25 seeded releases, two coefficients each at least: misses beyond what 5 % allows are a chance of 1e-6."""
    found = coverage(Cell(mechanism, 1.0, strength, 1, rows=5000, rare=rare), RELEASES)
    most = stats.binom.isf(FALSE_ALARM, RELEASES, 0.05)
    assert (1 - found.auto) * RELEASES <= most
    assert (1 - found.exogenous) * RELEASES <= most


def test_the_page_is_that_of_the_results():
    written = (ROOT / page.PAGE).read_text(encoding="utf-8")
    lines = read(COVERAGE, Coverage)
    assert fill(written, page.tables(lines, read(REPLICATION, Line))) == written
    assert [(one.mechanism, one.epsilon, one.strength, one.instruments, one.rare) for one in lines] == [
        (one.mechanism, one.epsilon, one.strength, one.instruments, one.rare) for one in [*cells(), *rare_cells()]
    ]


def test_every_measured_coverage_could_be_that_of_95_percent():
    """Each share of the committed study lies above what a coverage of 95 % leaves a chance of 1e-4."""
    for line in read(COVERAGE, Coverage):
        least = stats.binom.ppf(1e-4, line.releases, 0.95) / line.releases
        assert line.auto >= least, line
        assert line.exogenous >= least, line


def test_the_published_numbers_are_those_of_the_table():
    """Computed again by linearmodels, and from a release with next to no noise: coefficients to the digits that were printed."""
    lines = read(REPLICATION, Line)
    for line in lines:
        if line.printed and line.epsilon == REFERENCE:
            value, _, se = line.printed.rstrip(")").partition(" (")
            digits = max(0.6 * 10.0 ** -len(value.partition(".")[2]), 5e-4 * abs(line.value))  # the files have four
            assert line.value == pytest.approx(float(value), abs=digits)
            assert not se or line.se == pytest.approx(float(se), abs=0.6 * 10.0 ** -len(se.partition(".")[2]))
    exact, known = ([line.value for line in lines if line.epsilon == name] for name in (EXACT, REFERENCE))
    assert exact[:-1] == pytest.approx(known[:-1], rel=1e-3)
    assert len(lines) == (len(TABLE) + 1) * (2 + len(EPSILONS))
