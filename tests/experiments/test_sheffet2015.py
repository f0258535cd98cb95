"""The rerun of the paper: its generator, its errors, its pages. A small form of it is run here; `make reproduce` runs all of it."""

from __future__ import annotations

import json
import math
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpgram.mechanisms.conversation import GramQuestion
from dpgram.terms.public_map import PublicMap
from experiments.markers import fill
from experiments.sheffet2015 import __main__ as program
from experiments.sheffet2015 import grams, page, whitened
from experiments.sheffet2015.claims import Book, claims
from experiments.sheffet2015.figures import table
from experiments.sheffet2015.lasso import read_zeros
from experiments.sheffet2015.run import read_results, run_techniques, write_results
from experiments.sheffet2015.settings import FEATURES, MULTIPLE, SETTINGS, SINGLE, cells, seed
from experiments.sheffet2015.techniques import TECHNIQUES, results

HERE = Path(program.__file__).parent
FALSE_ALARM = 1e-9  # per test, when the generator is right


def test_every_table_has_a_seed_of_its_own():
    seeds = [seed(*cell) for cell in cells(27, 15)]
    assert len(set(seeds)) == len(seeds) == 28 * 15


def test_the_normals_are_normal():
    """Kolmogorov's distance of 200,000 values of two columns, their correlations and those of neighbours; sees a scale 2 % off."""
    z = grams._normals(np, 5, np.arange(200_000, dtype=np.int64), 21)
    for column in (0, 12, 20):
        assert stats.kstest(z[:, column], "norm").pvalue > FALSE_ALARM
        assert stats.kstest(1.02 * z[:, column], "norm").pvalue < 1e-3
    limit = stats.norm.isf(FALSE_ALARM / 2 / 441) / math.sqrt(len(z))
    assert np.abs(np.corrcoef(z.T) - np.eye(21)).max() < limit
    assert np.abs(np.corrcoef(z[1:].T, z[:-1].T)[:21, 21:]).max() < limit


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_a_gram_is_that_of_the_rows_whatever_the_blocks(setting, monkeypatch):
    gram, beta = grams.gram(setting, 12, 3)
    rows = grams._rows(np, setting, beta, seed(setting, 12, 3), np.arange(2**12, dtype=np.int64))
    np.testing.assert_allclose(gram, rows.T @ rows, rtol=1e-12, atol=1e-9)
    assert np.linalg.norm(rows, axis=1).max() <= setting.row_bound * (1 + 1e-12)
    whole = np.linalg.lstsq(rows[:, : 1 + FEATURES], rows[:, -1], rcond=None)[0]
    assert np.linalg.norm(whole - beta[:, -1]) < 0.15  # rows are shrunk whole, so the coefficients stay
    monkeypatch.setattr(grams, "BLOCK_CPU", 1000)
    np.testing.assert_allclose(grams.gram(setting, 12, 3)[0], gram, rtol=1e-12, atol=1e-9)


@pytest.mark.package("torch")
def test_pytorch_makes_the_same_tables():
    for setting in SETTINGS:
        ours, theirs = (grams.gram(setting, 12, 0, device=device)[0] for device in ("cpu", "cpu:0"))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_whitened_release_asks_of_the_rows_what_it_should(monkeypatch):
    """Mapped, then shrunk to the bound; the same from rows that are held and from rows made again, whatever the blocks."""
    cell, through = (MULTIPLE, 12, 3), np.tril(np.random.default_rng(1).normal(size=(MULTIPLE.dim, MULTIPLE.dim))) / 40
    question = GramQuestion(1.0, PublicMap.near(through))
    rows = grams.whole_rows(np, MULTIPLE, grams.coefficients(*cell), seed(*cell), np.arange(2**12, dtype=np.int64))
    mapped = rows @ question.through.matrix.T
    length = np.linalg.norm(mapped, axis=1, keepdims=True)
    assert 0.1 < np.mean(length > 1) < 0.999
    mapped = mapped / np.maximum(length, 1)
    monkeypatch.setattr(whitened, "BLOCK_CPU", 1000)
    devices = ["cpu", "cpu:0"] if find_spec("torch") else ["cpu"]
    for device in devices:
        for held in (True, False):
            table_of_rows = whitened.Table(cell, device, held=held)
            np.testing.assert_allclose(table_of_rows.gram(question), mapped.T @ mapped, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(table_of_rows.gram(None), rows.T @ rows, rtol=1e-9, atol=1e-9)


def test_whitened_releases_are_made_once_and_read_back(tmp_path, monkeypatch):
    cell = (SINGLE, 14, 0)
    whitened.make_releases([cell], tmp_path)
    once = whitened.load(whitened.path_of(tmp_path, cell))
    assert set(once.rounds) == set(SINGLE.epsilons)
    monkeypatch.setattr(whitened, "_one", None)  # nothing is left to do
    assert "NumPy" in whitened.make_releases([cell], tmp_path)["whitened_made_on"]
    whitened.save(tmp_path / "again.npz", once)
    assert whitened.load(tmp_path / "again.npz").rounds == once.rounds  # on their grid already


@pytest.mark.slow
def test_a_small_run_from_nothing(tmp_path, capsys, monkeypatch):
    """Tables, releases, regressions and figures of n up to 2^14; the tables again give the same results."""
    monkeypatch.setattr(program, "EXPONENTS", (14,))
    program.run(14, 2, "cpu", tmp_path / "tables", tmp_path / "out", long=False)
    found = read_results(tmp_path / "out/results.csv")
    assert {r.technique for r in found if r.setting == "single"} == set(TECHNIQUES)
    assert {r.extra for r in found if r.setting == "multiple"} == set(range(20))
    assert len({p.name for p in (tmp_path / "out/figures").iterdir()}) == 16
    assert json.loads((tmp_path / "out/run.json").read_text())["largest"] == 14
    assert "8 tables in" in capsys.readouterr().err
    line = run_techniques(cells(14, 2), tmp_path / "tables", only_whitened=True)
    with_others, zeros = program.with_committed(line, cells(14, 2))  # what --whitened writes
    assert {r.technique for r in line} == {whitened.NAME, whitened.NOT_PRIVATE}
    assert len(with_others) == len(found)
    assert {z.exponent for z in zeros} <= {14}
    write_results(run_techniques(cells(14, 2)[:3], tmp_path / "tables"), tmp_path / "again.csv")
    again, before = read_results(tmp_path / "again.csv"), set(found)
    assert len(again) > 500
    assert set(again) <= before


@pytest.fixture(scope="module")
def committed():
    return read_results(HERE / "results.csv")


def test_the_committed_results_are_the_full_sweep(committed):
    data = table(committed)
    assert {len(errors) for errors in data.values()} == {15}
    assert {k for (s, k, *_) in data if s == "single"} == set(SINGLE.exponents)
    assert {k for (s, k, *_) in data if s == "multiple"} == set(MULTIPLE.exponents)


def test_the_committed_results_are_what_the_code_gives(committed):
    """Two small tables again, from nothing: every error to the six digits of the file."""
    by_key = {(r.setting, r.exponent, r.repetition, r.epsilon, r.calibration, r.technique, r.extra): r.error for r in committed}
    for setting, exponent, extras in ((SINGLE, 14, (0,)), (MULTIPLE, 12, tuple(range(20)))):
        again = list(results(setting, exponent, 0, *grams.gram(setting, exponent, 0), extras))
        assert len(again) > 100
        for r in again:
            key = (r.setting, r.exponent, r.repetition, r.epsilon, r.calibration, r.technique, r.extra)
            # an indefinite matrix magnifies the last bits
            assert r.error == pytest.approx(by_key[key], rel=1e-3 if r.technique.startswith("analyze-gauss") else 2e-5), key


@pytest.mark.parametrize(
    ("technique", "calibration", "exponent", "expected"),
    [
        ("algorithm-2", "exact", 25, 0.006),
        ("algorithm-2", "paper", 25, 0.05),
        ("algorithm-3", "exact", 20, 0.09),
        ("algorithm-3", "paper", 20, 1.63),
        ("algorithm-3-shifted", "exact", 20, 0.017),
        ("algorithm-3-shifted", "paper", 20, 0.12),
        ("analyze-gauss", "exact", 20, 0.0174),
    ],
)
def test_known_means_at_epsilon_a_tenth(committed, technique, calibration, exponent, expected):
    """Means of an independent implementation, within 15 %: some three standard errors of 15 repetitions."""
    assert Book(committed).mean(technique, calibration, 0.1)[exponent] == pytest.approx(expected, rel=0.15)


def test_the_quick_run_can_say_something_too(committed):
    """Claims of n up to 2^20 alone, as `make reproduce-quick` prints them."""
    zeros = [z for z in read_zeros(HERE / "zeros.csv") if z.exponent <= 20]
    said = claims([r for r in committed if r.exponent <= 20], zeros)
    assert len(said) >= 20
    assert all(claim.printed and claim.exact for claim in said)


def test_the_page_says_what_the_results_say(committed):
    said = claims(committed, read_zeros(HERE / "zeros.csv"))
    assert len(said) >= 20
    text = program.PAGE.read_text(encoding="utf-8")
    for name, content in page.parts(Book(committed), said).items():
        assert fill(text, {name: content}) == text, name
    for image in re.findall(r"!\[[^]]*\]\((images/sheffet2015/[^)]+)\)", text):
        assert (program.PAGE.parent / image).stat().st_size > 10_000
