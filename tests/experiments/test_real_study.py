"""The studies of public tables: their machinery on a made-up table, and the list of tables as it was promised."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpgram.terms.columns import Boolean, Categorical, Numeric
from experiments.markers import fill
from experiments.real import bounds, coverage, figure, page, study
from experiments.real.listed import LISTED
from experiments.real.tables import CODES, READERS, declared, held_out, load, make_table, round_bounds
from experiments.real.truth import least_squares

ROOT = Path(__file__).parents[2]
PACKAGES = sorted({package for package, *_ in LISTED.values()})


@pytest.fixture(scope="module")
def table():
    """4,000 rows: y follows x and the level, z nothing."""
    rng = np.random.default_rng(5)
    x, z, level = rng.uniform(0, 9, 4000), rng.normal(0, 2, 4000), rng.integers(0, 3, 4000)
    y = 3 + 2 * x + 5.0 * (level == 2) + rng.normal(0, 1, 4000) * (1 + x)
    return make_table("made up", "none", ("y", "z"), {"y": y, "z": z, "x": x, "level": level}, {"level"})


@pytest.fixture(scope="module")
def lines(table):
    """Releases that hardly have noise."""
    return coverage.measure(table, 6, coverage.PLAIN, (1e5,))


def test_columns_are_declared_as_a_custodian_would(table):
    names = {
        "x": Numeric("x", 0, 10, "midpoint"),
        "z": Numeric("z", -10, 10, "midpoint"),
        "level": Categorical("level", ["0", "1", "2"], missing="reference"),
    }
    assert {c.name: c for c in table.schema.columns if c.name != "y"} == names
    assert declared("b", np.array([0.0, 1.0, 1.0])) == Boolean("b")
    with pytest.raises(ValueError, match="more than 16 levels"):
        declared("many", np.arange(17).astype(str))


@pytest.mark.parametrize("seed", range(50))
def test_bounds_hold_all_values_and_are_round(seed):
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.normal(rng.choice([0, 1000]), 1, 2) * 10.0 ** rng.integers(-3, 7))
    lower, upper = round_bounds(low, high)
    assert lower <= low < high <= upper
    assert lower >= 0 or low < 0  # nobody declares negative values where there are none
    assert upper - lower <= 5 * max(high - low, abs(low), abs(high))


def test_the_truth_is_that_of_the_table(table):
    """Against least squares in the columns' own units, with White's standard errors written out."""
    truth = least_squares(table, "y")
    data = {name: table.data[name].to_numpy() for name in ("y", "x", "z")}
    level = np.asarray(table.data["level"].combine_chunks().cast("string"))
    x = np.column_stack([np.ones(4000), data["z"], data["x"], level == "1", level == "2"])
    found, left = np.linalg.lstsq(x, data["y"], rcond=None)[:2]
    assert truth.names == ("(intercept)", "z", "x", "level[1]", "level[2]")
    np.testing.assert_allclose(truth.coefficients, found, rtol=1e-8, atol=1e-10)
    bread, errors = np.linalg.inv(x.T @ x), data["y"] - x @ found
    robust = bread @ (x.T @ (x * errors[:, None] ** 2)) @ bread * 4000 / 3995
    np.testing.assert_allclose(truth.se, np.sqrt(np.diag(robust)), rtol=1e-8)
    assert truth.r_squared == pytest.approx(1 - left[0] / np.sum((data["y"] - data["y"].mean()) ** 2))
    named = dict(zip(truth.names, found, strict=True))
    assert truth.explained(named) == pytest.approx(truth.r_squared)
    assert truth.explained({**named, "x": 0.0}) < truth.r_squared / 2


def test_without_noise_errors_are_nothing_and_lengths_those_of_sampling(lines):
    assert [(line.target, line.columns) for line in lines] == [("y", 6), ("z", 6)]
    for line in lines:
        assert line.bounded == line.covered == (1.0,) * 5
        assert max(line.error) < 0.1
        assert all(0.5 < length < 2 for length in line.length)  # of one variance, not robust


def test_a_truth_that_is_wrong_is_seen(table):
    """The planted mistake: a target moved by a tenth of its slope, which is three standard errors."""
    truth = least_squares(table, "y")
    looks = np.array([[truth.coefficients + side * 1.96 * truth.se for side in (-1, 0, 1)]] * 4)
    right = coverage.summarise(looks, truth)
    assert right == ((1.0,) * 5, (1.0,) * 5, (0.0,) * 5, pytest.approx((1.0,) * 5, rel=1e-4))
    wrong = coverage.summarise(looks, replace(truth, coefficients=truth.coefficients + 3 * truth.se))
    assert wrong[1] == (0.0,) * 5
    assert wrong[2] == pytest.approx((3.0,) * 5)
    looks[0, [0, 2], 1] = -math.inf, math.inf  # the whole line: neither for nor against
    assert coverage.summarise(looks, truth)[0] == (1.0, 0.75, 1.0, 1.0, 1.0)
    looks[:, 0], looks[:, 2] = -math.inf, math.inf
    assert np.isnan(coverage.summarise(looks, truth)[1]).all()


def test_what_is_done_is_not_measured_again(tmp_path, monkeypatch, table):
    """Stopped within the second table, the study goes on there, and the lines come back as they were written."""
    measured: list[tuple[str, str]] = []

    def measure(table, releases, variant):
        measured.append((table.name, variant))
        if measured.count(("b", "v")) == 1 and table.name == "b":
            raise KeyboardInterrupt
        return [bounds.Row(table.name, "y", 1.0, releases, 10, 3, 0.5, 0.25, 0.125)]

    monkeypatch.setattr(study, "load", lambda name: replace(table, name=name))
    cells = [("a", "v"), ("b", "v")]
    with pytest.raises(KeyboardInterrupt):
        study.run_all(bounds.Row, measure, cells, 7, tmp_path, lambda cell: None, processes=1)
    seen: list[str] = []
    lines = study.run_all(bounds.Row, measure, cells, 7, tmp_path, seen.append, processes=1)
    assert measured == [("a", "v"), ("b", "v"), ("b", "v")]
    assert seen == ["a v", "b v"]
    assert lines == [bounds.Row(name, "y", 1.0, 7, 10, 3, 0.5, 0.25, 0.125) for name in "ab"]
    study.run_all(bounds.Row, measure, cells[:1], 8, tmp_path, seen.append, processes=1)
    assert measured[-1] == ("a", "v")  # more releases are other numbers


def test_lines_come_back_as_they_were_written(tmp_path, lines):
    study.write(tmp_path / "once.csv", coverage.Row, lines)
    study.write(tmp_path / "again.csv", coverage.Row, study.read(tmp_path / "once.csv", coverage.Row))
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "once.csv").read_text()
    assert not list(tmp_path.glob("*.part"))


def test_wide_bounds_are_those_of_somebody_who_does_not_know(table):
    wide = {c.name: c for c in bounds.widened(table.schema, 10).columns}
    assert wide["x"] == Numeric("x", 0, 100, "midpoint")  # never negative: zero stays
    assert wide["z"] == Numeric("z", -100, 100, "midpoint")
    assert wide["level"] == table.schema.columns[-1]
    assert bounds.widened(table.schema, 1.0) == table.schema


def test_the_loss_is_nothing_without_noise_and_one_where_all_is_lost(table, monkeypatch):
    monkeypatch.setattr(bounds, "EPSILON", 1e4)
    exact = bounds.measure(table, 1, "1")
    assert exact[0].loss < 0.02
    assert exact[0].r_squared == pytest.approx(least_squares(table, "y").r_squared)
    monkeypatch.setattr(bounds, "EPSILON", 1e-3)
    assert bounds.measure(table, 1, "1")[0].loss > 0.5


def made_line(table: str, method: str, *, covered=(1.0, 0.5), bounded=(1.0, 1.0), error=(2.0, 4.0)) -> coverage.Row:
    return coverage.Row(table, "y", 1.0, method, 50, 1000, 5, bounded, covered, error, (1.0, 1.0))


def test_the_page_counts_tables_alike_and_ratios_by_coefficient():
    before = [made_line("beauty", coverage.ONE_CLIP), made_line("bwght", coverage.ONE_CLIP, covered=(0.9, 0.9))]
    after = [
        made_line("beauty", "new", error=(1.0, 8.0)),
        made_line("bwght", "new", bounded=(1.0, 0.0), covered=(1.0, math.nan)),
    ]
    assert page.covered(before[:1]) == 0.75
    assert page.covered(after[1:]) == 1.0
    assert page.covered([made_line("beauty", "new", bounded=(1.0, 0.5))]) == pytest.approx((1 + 0.25) / 1.5)  # by intervals
    assert page.ratio([before[0], after[0]], "new", "error") == 1.0  # a half and a double
    seldom = made_line("beauty", "new", bounded=(1.0, 0.2), error=(1.0, 800.0))
    assert page.ratio([before[0], seldom], "new", "error") == 0.5  # what is hardly ever identified does not count
    shown = page.overall([*before, *after]).splitlines()
    assert "82.5" in shown[2]  # (75 + 90) / 2
    assert "75.0 (beauty)" in shown[2]
    assert "75.0" in shown[3]  # of the coefficients of the other method
    assert len(shown) == 4


def test_the_figure_shows_what_was_measured(tmp_path):
    lines = [
        made_line("beauty", coverage.ONE_CLIP),
        made_line("beauty", coverage.WHITENED),
        made_line("beauty", coverage.PLAIN),
    ]
    hidden = made_line("bwght", coverage.ONE_CLIP, bounded=(0.0, 0.0), covered=(math.nan, math.nan))  # nothing to show
    figure.draw([*lines, hidden], tmp_path / "real.png")
    assert (tmp_path / "real.png").stat().st_size > 1000


def test_the_page_sets_losses_against_those_of_bounds_that_fit():
    def line(target: str, width: float, noisy: float, loss: float) -> bounds.Row:
        return bounds.Row("beauty", target, width, 10, 1000, 5, noisy, 0.5, loss)

    many = [line("y", 1.0, 0.01, 0.01), line("y", 100.0, 0.01, 0.04), line("z", 1.0, 0.01, 0.1), line("z", 100.0, 0.01, 0.9)]
    shown = page.loose([*many, line("y", 1.0, 0.03, 0.5), line("y", 100.0, 0.03, 1.0)]).splitlines()
    assert shown[2:] == [
        "| enough rows, development (1) | 2 | median loss | 0.055 | 0.47 |",
        "|  |  | loss over that with fitting bounds | 1 | 6 |",  # the root of 4 times 9
        "| few rows, development (1) | 1 | median loss | 0.5 | 1 |",
        "|  |  | loss over that with fitting bounds | 1 | 2 |",
    ]


def test_the_list_is_as_promised():
    assert len(LISTED) >= 40
    assert len(PACKAGES) >= 5
    assert set(PACKAGES) == set(READERS)
    assert 0.2 < np.mean([held_out(name) for name in LISTED]) < 0.45
    for name, (_, _, targets, features) in LISTED.items():
        columns = [column.lstrip(CODES) for column in f"{targets} {features}".split()]
        assert len(columns) == len(set(columns)), name
        assert 2 <= len(targets.split()) <= 4, name
        assert name == name.replace(" ", "").replace("/", "")


@pytest.mark.parametrize("package", [pytest.param(name, marks=pytest.mark.package(name)) for name in PACKAGES])
@pytest.mark.filterwarnings("ignore")
def test_every_listed_table_is_there(package):
    """Its size as promised, its bounds around all values, and no column a combination of the others."""
    for name in (name for name, (home, *_) in LISTED.items() if home == package):
        table = load(name)
        n, d = table.rows.shape
        assert 1000 <= n <= 300_000, name
        assert 4 <= d <= 40, name
        for column in table.schema.columns:
            if isinstance(column, Numeric):
                values = table.data[column.name].to_numpy()
                assert column.lower <= values.min() < values.max() <= column.upper, name
        lengths = np.linalg.svd(table.rows, compute_uv=False)
        assert lengths[-1] > 1e-8 * lengths[0], name


@pytest.mark.parametrize("which", ["coverage", "bounds"])
def test_the_pages_say_what_the_numbers_say(which):
    kind = {"coverage": coverage.Row, "bounds": bounds.Row}[which]
    text = (ROOT / page.PAGES[which]).read_text(encoding="utf-8")
    assert fill(text, page.tables(which, study.read(ROOT / page.RESULTS[which], kind))) == text
