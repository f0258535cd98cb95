"""The default estimator on a few cells of the error study, and the study's page."""

from pathlib import Path

import pytest

from experiments.errors.study import grid_cell, read, write
from experiments.errors.table import MOST_OVER_BEST, MOST_OVER_PLAIN, PAGE, RESULTS, tables
from experiments.markers import fill

ROOT = Path(__file__).parents[2]
RUNS = 25


@pytest.mark.parametrize("kind", ["isotropic", "AR(0.8)", "near-singular"])
@pytest.mark.parametrize(("columns", "epsilon"), [(3, 0.2), (12, 1.0)])
def test_the_default_is_never_far_from_the_best(kind, columns, epsilon):
    """25 runs on fixed seeds. The study's 100 runs find at most 1.14; the best of seven noisy means is too good by luck, some
    five per cent here, so 1.35 leaves room without letting the first version through, which reaches 1.5 at three columns."""
    cell = grid_cell(kind, columns, 2**12, epsilon, RUNS)
    assert cell.ratio_to_best < 1.35


def test_the_default_is_the_plain_solve_where_noise_is_small():
    """The same data for both, so the ratio hardly varies: 25 runs find it within a per cent."""
    cell = grid_cell("isotropic", 5, 2**20, 5.0, RUNS)
    assert cell.noise_is_small
    assert cell.ratio_to_plain < 1.02


def test_the_page_says_what_the_numbers_say(tmp_path):
    page, cells = (ROOT / PAGE).read_text(encoding="utf-8"), read(ROOT / RESULTS)
    assert fill(page, tables(cells)) == page
    write(tmp_path / "again.csv", cells)
    assert (tmp_path / "again.csv").read_text() == (ROOT / RESULTS).read_text()
    gaussian = [c for c in cells if c.mechanism == "gaussian-noise"]
    assert max(c.ratio_to_best for c in gaussian if c.part == "grid") <= MOST_OVER_BEST
    assert max(c.ratio_to_plain for c in gaussian if c.noise_is_small) <= MOST_OVER_PLAIN
