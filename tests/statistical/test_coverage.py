"""The coverage study runs, its page says what its numbers say, and a reduced version of it holds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.coverage.measure import share
from experiments.coverage.releases import calibrated_once, make_release, plain_schema, plan
from experiments.coverage.rounds import release_rows
from experiments.coverage.settings import FEATURES, Setting, data_sets, draw, draw_rows
from experiments.coverage.study import Batch, read, run, write
from experiments.coverage.table import HIGHEST, LOWEST, PAGE, RESULTS, outside, tables
from experiments.markers import fill

ROOT = Path(__file__).parents[2]
FALSE_ALARM = 1e-6  # per case, when the true coverage lies within the bounds; the suite's README adds these up
DATA_SETS = 60


def test_the_study_runs(tmp_path):
    """Two data sets of 2^10 rows, every kind of noise, both methods: lines come out, and survive the file."""
    setting = Setting("tiny", 2**10, features=3, labels=2, other_labels=(0, 1), epsilons=(5.0,))
    rows = []
    with calibrated_once():
        for mechanism, method in (
            ("gaussian-noise", "auto"),
            ("gaussian-sketch", "bootstrap"),
            ("inverse-wishart", "auto"),
            ("whitened-noise", "auto"),
            ("whitened-noise", "bootstrap"),
        ):
            rows += run(Batch(setting, mechanism, 5.0, method, 2), tmp_path)
    assert [(r.others, r.releases, r.coefficients) for r in rows] == [(0, 2, 4), (1, 2, 5)] * 5
    assert all(0 <= r.coverage <= 1 and np.isfinite(r.error_shrunk) for r in rows)
    write(tmp_path / "rows.csv", rows)
    again = read(tmp_path / "rows.csv")
    assert [(r.mechanism, r.method, r.others) for r in again] == [(r.mechanism, r.method, r.others) for r in rows]
    assert [r.error_shrunk for r in again] == pytest.approx([r.error_shrunk for r in rows], rel=1e-4)


def test_data_sets_do_not_depend_on_what_was_kept(tmp_path):
    setting = Setting("tiny", 2**10, features=3)
    first, kept, fresh = data_sets(setting, 3, tmp_path), data_sets(setting, 2, tmp_path), data_sets(setting, 2, None)
    assert np.array_equal(first.grams[:2], kept.grams)
    assert np.array_equal(kept.grams, fresh.grams)


@pytest.mark.parametrize("law", FEATURES)
def test_rows_are_those_of_the_gram(law):
    """The same data set, whether its rows are asked for or its Gram: here no row is shrunk."""
    setting = Setting("tiny", 2**10, features=3, law=law, errors="skewed", bound_squared=1e6)
    rows, beta, errors = draw_rows(setting, 1)
    gram, again, left, over = draw(setting, 1)
    assert rows.T @ rows == pytest.approx(gram)
    assert np.array_equal(beta, again)
    assert (errors @ errors / len(errors), 0.0) == pytest.approx((left, over))
    assert rows[:, 4] == pytest.approx(rows[:, :4] @ beta[:, 0] + errors)


def test_the_standard_error_counts_releases():
    """Ten releases whose four coefficients are all covered or all missed: the spread of ten draws, not of forty."""
    part = np.array([4, 4, 4, 4, 4, 4, 4, 4, 0, 0])
    ratio, error = share(part, np.full(10, 4))
    assert ratio == 0.8
    assert error == pytest.approx(np.sqrt(0.8 * 0.2 / 10))


def test_the_page_says_what_the_numbers_say():
    page, rows = (ROOT / PAGE).read_text(encoding="utf-8"), read(ROOT / RESULTS)
    assert fill(page, tables(rows)) == page
    assert min(r.releases for r in rows if r.method == "auto") >= 400


def test_a_part_of_the_results_has_tables_too():
    """Groups without a cell that identifies something are left out of the short table."""
    whitened = [r for r in read(ROOT / RESULTS) if r.mechanism == "whitened-noise" and "rare" not in r.setting]
    made = tables([*whitened, replace(whitened[0], mechanism="noisy-inverse", not_identified=1.0)])
    assert [line.split(" | ")[0] for line in made["in short"].splitlines()[2:]] == ["| `whitened-noise`"]
    assert made["outside"].startswith("Coefficients are identified in 0 of 1 cells.")


def within_bounds(covered: np.ndarray, highest: float = HIGHEST) -> bool:
    """Whether the mean of the releases' own shares is compatible with a coverage within the promised bounds."""
    shares = covered.mean(axis=1)
    mean, error = shares.mean(), max(shares.std(ddof=1) / np.sqrt(len(shares)), 1e-9)
    reach = stats.t.isf(FALSE_ALARM / 2, len(shares) - 1) * error
    return bool(LOWEST - reach <= mean <= highest + reach)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "features", "epsilon", "mechanism"),
    [
        ("single", 20, 0.1, "gaussian-noise"),
        ("single", 20, 0.1, "wishart-noise"),
        ("single", 20, 0.1, "inverse-wishart"),
        ("few", 5, 1.0, "gaussian-sketch"),
    ],
)
def test_intervals_cover(name, features, epsilon, mechanism):
    """Sixty data sets of 2^16 rows. Intervals that ignore the noise are rejected, and so are ours at 0.6 times their width."""
    from experiments.coverage.measure import Truth, look

    setting = Setting(name, 2**16, features=features)
    data, looks = data_sets(setting, DATA_SETS, None), []
    with calibrated_once():
        for i, gram in enumerate(data.grams):
            release = make_release(
                gram,
                schema=plain_schema(setting.columns),
                rows=setting.rows,
                row_bound=setting.row_bound,
                epsilon=epsilon,
                mechanism=mechanism,
                seed=5_000 + i,
            )
            truth = Truth(setting.truth(data.betas[i], 0))
            looks.append(look(release, plan(release, setting.places(0)), truth, "auto"))
    assert np.mean([s.bounded for s in looks]) > 0.5
    assert within_bounds(np.array([s.covered for s in looks]))
    assert not within_bounds(np.array([s.naive for s in looks]))
    assert not within_bounds(np.array([np.abs(s.error) <= 0.6 * s.width / 2 for s in looks]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "epsilon"),
    [
        ({"name": "single"}, 0.1),
        ({"name": "single, AR(0.9)", "correlation": 0.9}, 0.1),
        ({"name": "single, heavy", "law": "heavy", "errors": "heavy"}, 0.3),
    ],
)
def test_intervals_from_whitened_rounds_cover(changes, epsilon):
    """For rows that are whitened first: at least what is promised. These errors are symmetric, so clipping does no harm; intervals
    count what it might have done, and cover more."""
    from experiments.coverage.measure import Truth, look

    setting, looks = Setting(rows=2**16, **changes), []
    for i in range(DATA_SETS):
        rows, beta, _ = draw_rows(setting, i)
        schema = plain_schema(setting.columns)
        release = release_rows(rows, schema=schema, row_bound=setting.row_bound, epsilon=epsilon, seed=6_000 + i)
        looks.append(look(release, plan(release, setting.places(0)), Truth(setting.truth(beta, 0)), "auto"))
    assert np.mean([s.bounded for s in looks]) > 0.5
    assert within_bounds(np.array([s.covered for s in looks]), highest=1.0)
    assert not within_bounds(np.array([s.naive for s in looks]))
    assert not within_bounds(np.array([np.abs(s.error) <= 0.1 * s.width / 2 for s in looks]))


@pytest.mark.parametrize(
    ("share", "error", "missing", "method", "named"),
    [
        (0.95, 0.005, 0.1, "auto", False),
        (0.90, 0.005, 0.1, "auto", True),
        (0.93, 0.005, 0.1, "auto", False),  # within two standard errors
        (0.99, 0.002, 0.1, "auto", True),
        (0.985, 0.002, 0.1, "bootstrap", False),
        (0.50, 0.100, 0.999, "auto", False),  # nothing is identified
    ],
)
def test_a_cell_outside_its_bounds_is_named(share, error, missing, method, named):
    row = read(ROOT / RESULTS)[0]
    changes = {"coverage_identified": share, "coverage_identified_se": error, "not_identified": missing, "method": method}
    assert outside(replace(row, **changes)) == named
