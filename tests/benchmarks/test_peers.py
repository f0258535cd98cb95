"""The peers are what their papers say: least squares without noise, noise that the accounting asks for, sensitivities that hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import bench_end_to_end, bench_peers
from benchmarks.peers import adassp, boosted_adassp, diffprivlib_regression, gradient_descent, page, study, tables, tukey_em
from benchmarks.peers.questions import NotInstalledError, Questions, Regression
from benchmarks.peers.registry import METHODS
from benchmarks.peers.shares import approximate_share, gaussian_share, pure_delta, pure_share
from benchmarks.peers.study import Plan, read
from dpgram.accounting.compose import GaussianCost, composed_delta
from dpgram.terms.budget import Budget

BUDGET = Budget(1.0, 1e-6)
HAS_DIFFPRIVLIB = pytest.mark.package("diffprivlib")


def regression(rows: int = 4000, features: int = 3, seed: int = 0) -> Regression:
    rng = np.random.default_rng(seed)
    x = np.vstack([np.ones(rows), rng.uniform(-1, 1, (features, rows))])
    y = np.clip(rng.uniform(-1, 1, features + 1) @ x / (features + 1) + 0.05 * rng.normal(size=rows), -1, 1)
    named = tuple(f"x{j}" for j in range(features))
    return Regression("y", named, ("(intercept)", *named), x, y, math.sqrt(features + 1), np.ones(features + 1))


def independent_delta(epsilon: float, mu: float) -> float:
    """The Gaussian mechanism's curve, by other means than the library's."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


# What one of k may spend


@pytest.mark.parametrize("k", [1, 4, 256])
def test_gaussian_shares_add_up_to_the_budget(k):
    mu = gaussian_share(BUDGET, k)
    assert composed_delta(BUDGET.epsilon, [GaussianCost(mu)] * k) == pytest.approx(BUDGET.delta, rel=1e-6)
    assert independent_delta(BUDGET.epsilon, mu * math.sqrt(k)) == pytest.approx(BUDGET.delta, rel=1e-6)


def test_the_delta_of_pure_mechanisms_is_that_of_randomised_responses():
    """Enumerated over all outcomes of k coins."""
    epsilon, each, k = 0.7, 0.4, 6
    truth = math.exp(each) / (1 + math.exp(each))
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=k):
        p = math.prod(truth if bit else 1 - truth for bit in outcome)
        q = math.prod(1 - truth if bit else truth for bit in outcome)
        total += max(0.0, p - math.exp(epsilon) * q)
    assert pure_delta(epsilon, each, k) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("k", [1, 4, 64, 256])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_pure_shares_meet_the_budget_and_beat_addition(k, epsilon):
    each = pure_share(epsilon, 1e-6, k)
    assert each >= epsilon / k
    assert pure_delta(epsilon, each, k) <= 1e-6
    if k >= 64:
        assert each > 1.2 * epsilon / k
        assert pure_delta(epsilon, each * 1.001, k) > 1e-6


def test_approximate_shares_leave_room_for_every_delta():
    epsilon, delta = approximate_share(BUDGET, 16)
    assert 16 * delta + pure_delta(BUDGET.epsilon, epsilon, 16) <= BUDGET.delta
    assert approximate_share(BUDGET, 1) == (BUDGET.epsilon, BUDGET.delta)


# Without noise, least squares


def test_adassp_without_noise_is_least_squares():
    one = regression()
    np.testing.assert_allclose(adassp.fit(one, 1e9, 1e-6, np.random.default_rng(0)), one.least_squares, atol=1e-5)


def test_boosting_without_noise_is_least_squares():
    one = regression()
    found = boosted_adassp.fit(one, 1e9, 1e-6, np.random.default_rng(0), rounds=20, clip=1.0)
    np.testing.assert_allclose(found, one.least_squares, atol=1e-5)


def test_gradient_descent_without_noise_is_least_squares():
    one = regression()
    setting = gradient_descent.Setting(steps=400, clip=2.0, rate=2, momentum=0.8)
    np.testing.assert_allclose(gradient_descent.fit(one, 1e9, setting, np.random.default_rng(0)), one.least_squares, atol=1e-4)


def test_tukey_without_noise_is_the_deepest_model():
    one = regression(20_000)
    found = tukey_em.fit(one, 1e3, 1e-6, np.random.default_rng(0))
    middle = np.median(tukey_em.models(one, tukey_em.number_of_models(one.rows, one.size, 1e3, 1e-6)), axis=1)
    assert found is not None
    np.testing.assert_allclose(found, middle, atol=2e-3)
    np.testing.assert_allclose(found, one.least_squares, atol=0.02)


def test_the_parts_of_tukey_are_fitted_by_least_squares():
    one = regression(100)
    fits = tukey_em.models(one, 10)
    own = np.linalg.lstsq(one.x[:, 20:30].T, one.y[20:30])[0]
    np.testing.assert_allclose(fits[:, 2], own, atol=6 * tukey_em.JITTER)


@HAS_DIFFPRIVLIB
@pytest.mark.filterwarnings("ignore")
def test_diffprivlib_without_noise_is_least_squares():
    one = regression()
    np.testing.assert_allclose(diffprivlib_regression.fit(one, 1e9, 0), one.least_squares, atol=1e-4)


def test_a_missing_diffprivlib_is_said(monkeypatch):
    monkeypatch.setattr(diffprivlib_regression, "find_spec", lambda name: None)
    assert "dpgram[bench]" in str(diffprivlib_regression.available())
    with pytest.raises(NotInstalledError, match="dpgram\\[bench\\]"):
        diffprivlib_regression.linear_regression()
    monkeypatch.setattr(bench_end_to_end, "available", diffprivlib_regression.available)
    line = bench_end_to_end.measure("diffprivlib", "memory", None, 1)
    assert line.seconds is None
    assert "dpgram[bench]" in line.note


@pytest.fixture(scope="module")
def small() -> tables.Table:
    return tables.paper(2**12)


def test_one_release_without_noise_is_least_squares(small):
    """Nearly: rows longer than the bound are shrunk, by a whitened release other ones than by the regression that is scored."""
    asked = tables.ask(small, 2, seed=3)
    for method in METHODS[:4]:
        limit = 5e-3 if "whitened" in method.name else 1e-3
        for one, found in zip(
            asked, method.answer(Questions(small, asked, 1, Budget(1e4, 1e-6)), np.random.default_rng(0)), strict=True
        ):
            assert one.lost(found) < limit


# Noise scales


def test_adassp_spends_what_it_was_given():
    mu, one = gaussian_share(BUDGET, 4), regression()
    sd = adassp.scales(mu, one.x_bound)
    spent = math.hypot(math.sqrt(2) * one.x_bound**2 / sd.gram, 2 * one.x_bound / sd.moments, one.x_bound**2 / sd.smallest)
    assert independent_delta(BUDGET.epsilon, 2 * spent) == pytest.approx(BUDGET.delta, rel=1e-6)


def test_boosting_spends_what_it_was_given():
    mu, one = gaussian_share(BUDGET, 1), regression()
    gram, smallest, each = boosted_adassp.scales(mu, one.x_bound, 20, 0.25)
    rounds = [2 * one.x_bound * 0.25 / each] * 20
    spent = math.hypot(math.sqrt(2) * one.x_bound**2 / gram, one.x_bound**2 / smallest, *rounds)
    assert independent_delta(BUDGET.epsilon, spent) == pytest.approx(BUDGET.delta, rel=1e-6)


def test_gradient_descent_spends_what_it_was_given():
    steps = [2 * 0.7 / gradient_descent.step_scale(gaussian_share(BUDGET, 1), 0.7, 200)] * 200
    assert independent_delta(BUDGET.epsilon, math.hypot(*steps)) == pytest.approx(BUDGET.delta, rel=1e-6)


def test_the_noise_of_adassp_is_isotropic():
    """Squared Frobenius norms of 4,000 draws of 15 degrees of freedom, within six standard deviations."""
    rng, sd = np.random.default_rng(1), 3.0
    squares = np.array([np.sum(adassp.symmetric_noise(5, sd, rng) ** 2) for _ in range(4000)]) / sd**2
    assert abs(squares.mean() - 15) < 6 * math.sqrt(30 / 4000)


def test_noise_reaches_the_answers(small):
    """Means over draws come close to the noise that is promised: the moments' sd is seen through AdaSSP's solve."""
    one = regression()
    draws = np.array([adassp.fit(one, 1.0, 1e-6, np.random.default_rng(seed)) for seed in range(400)])
    assert draws.std(axis=0).min() > 0.5 * 2 * one.x_bound * math.sqrt(3) / np.linalg.eigvalsh(one.gram)[-1]


# Sensitivities, on random and on extreme neighbours


def neighbours(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(x, y) and (x', y'), of which one example differs; norms at their bounds."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(3, 6)), rng.choice([-1.0, 1.0], 6)
    x *= 2.0 / np.linalg.norm(x, axis=0)
    other_x, other_y = x.copy(), y.copy()
    other_x[:, 0] = [lambda: -x[:, 0], lambda: np.cross(x[:, 0], x[:, 1]), lambda: rng.normal(size=3)][seed % 3]()
    other_x[:, 0] *= 2.0 / np.linalg.norm(other_x[:, 0])
    other_y[0] = -y[0] if seed % 2 else y[0]
    return x, y, other_x, other_y


def test_sensitivities_hold_and_are_reached():
    gram, moments, smallest, gradient = [], [], [], []
    for seed in range(300):
        x, y, other_x, other_y = neighbours(seed)
        gram.append(np.linalg.norm(x @ x.T - other_x @ other_x.T))
        moments.append(np.linalg.norm(x @ y - other_x @ other_y))
        smallest.append(abs(np.linalg.eigvalsh(x @ x.T)[0] - np.linalg.eigvalsh(other_x @ other_x.T)[0]))
        b, clip = np.random.default_rng(seed).normal(size=3), 0.3
        sums = [
            gradient_descent.clipped_sum(a, label, np.linalg.norm(a, axis=0), b, clip)
            for a, label in ((x, y), (other_x, other_y))
        ]
        gradient.append(np.linalg.norm(sums[0] - sums[1]))
    for seen, bound in ((gram, math.sqrt(2) * 4), (moments, 2 * 2.0), (gradient, 2 * 0.3)):
        assert 0.99 * bound < max(seen) <= bound * (1 + 1e-12)
    assert max(smallest) <= 4


def test_prepared_gradients_stay_within_the_clip():
    """In single precision too, for examples of any length."""
    one = regression(500)
    x, y, lengths = gradient_descent.prepared(one)
    for seed in range(20):
        b = np.random.default_rng(seed).normal(scale=5, size=one.size)
        for j in range(0, 500, 7):
            at = slice(j, j + 1)
            assert np.linalg.norm(gradient_descent.clipped_sum(x[:, at], y[at], lengths[at], b, 0.1)) <= 0.1


def changed_models(seed: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    models = rng.normal(size=(2, m)) * rng.choice([0.01, 1.0])
    other = models.copy()
    other[:, rng.integers(m)] = rng.normal(size=2) * rng.choice([0.0, 0.1, 30.0])
    return np.sort(models, axis=1), np.sort(other, axis=1)


def test_the_distance_of_tukey_moves_by_one_at_most():
    moved = set()
    for seed in range(300):
        a, b = (
            tukey_em.steps_to_danger(tukey_em.log_volumes(models), 60 // 4, 1.5, 0.05) for models in changed_models(seed, 60)
        )
        moved.add(abs(a - b))
    assert moved == {0, 1}


def depths(ordered: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of the points of a grid, by counting."""
    found = []
    for points, own in zip((x, y), ordered, strict=True):
        below = np.searchsorted(own, points)
        found.append(np.minimum(below, len(own) - below))
    return np.minimum(found[0][:, None], found[1][None, :])


@pytest.mark.parametrize("which", [0, 1])
def test_the_draw_of_tukey_is_as_private_as_its_proof_says(which):
    """Both densities are constant on the cells between the models' coordinates, so their hockey-stick divergence is a finite sum."""
    m, a, delta, good = 60, 0.8, 0.05, 0
    t = m // 4
    for seed in range(200):
        pair = changed_models(seed, m)
        first = pair[which]
        if tukey_em.steps_to_danger(tukey_em.log_volumes(first), t, a, delta) < 0:
            continue
        good += 1
        cuts = [np.unique(np.concatenate([ordered[j] for ordered in pair])) for j in range(2)]
        middles = [(c[1:] + c[:-1]) / 2 for c in cuts]
        area = np.multiply.outer(np.diff(cuts[0]), np.diff(cuts[1]))
        mass = []
        for ordered in (first, pair[1 - which]):
            depth = depths(ordered, *middles)
            weight = np.where(depth >= t, np.exp(a * depth), 0.0) * area
            mass.append(weight / weight.sum())
        assert np.maximum(0.0, mass[0] - math.exp(2 * a) * mass[1]).sum() <= delta
    assert good > 50


def test_the_draw_of_tukey_has_the_density_it_should():
    """Mean depth of draws against the exact mean over the cells, within six standard errors."""
    ordered, a, t = changed_models(0, 60)[0], 0.3, 15
    volumes, rng = tukey_em.log_volumes(ordered), np.random.default_rng(5)
    middles = [(row[1:] + row[:-1]) / 2 for row in ordered]
    depth = depths(ordered, *middles)
    weight = np.where(depth >= t, np.exp(a * depth), 0.0) * np.multiply.outer(*(np.diff(row) for row in ordered))
    mean = np.sum(depth * weight) / weight.sum()
    spread = math.sqrt(np.sum((depth - mean) ** 2 * weight) / weight.sum())
    drawn = [tukey_em.draw(ordered, volumes, t, a, rng) for _ in range(4000)]
    seen = [depths(ordered, point[:1], point[1:])[0, 0] for point in drawn]
    assert abs(np.mean(seen) - mean) < 6 * spread / math.sqrt(4000)


def test_a_table_in_danger_passes_the_test_of_tukey_with_probability_delta(monkeypatch):
    """Exactly delta, from 4,000 tests of a table that is not good; within six standard deviations."""
    monkeypatch.setattr(tukey_em, "steps_to_danger", lambda *_: -1)
    one, rng, delta = regression(2000), np.random.default_rng(2), 0.05
    passed = sum(tukey_em.fit(one, 1.0, delta, rng) is not None for _ in range(4000))
    assert abs(passed - 4000 * delta) < 6 * math.sqrt(4000 * delta)


def test_tukey_gives_no_answer_where_the_test_fails():
    assert tukey_em.fit(regression(2000), 0.01, 1e-6, np.random.default_rng(0)) is None


# The tables and the scripts


def test_regressions_are_asked_by_a_public_rule(small):
    assert small.rows.shape == (41, 2**12)
    asked = tables.ask(small, 6, seed=1)
    assert len({(r.target, r.features) for r in asked}) == 6
    for one in asked:
        assert 3 <= len(one.features) <= 10
        assert one.target not in one.features
        assert np.linalg.norm(one.x, axis=0).max() <= one.x_bound * (1 + 1e-12)
        assert np.abs(one.y).max() <= 1
        assert one.explained > 0.05
        assert one.lost(one.least_squares) == pytest.approx(0, abs=1e-12)
        assert one.lost(np.zeros(one.size)) > 0.9
    again = tables.ask(small, 3, seed=1)
    assert [(r.target, r.features) for r in again] == [(r.target, r.features) for r in asked[:3]]


def test_bounds_are_those_of_the_schema():
    made = tables.flights(2000)
    assert made.schema_of(made.schema.names).effective_row_bound == pytest.approx(made.schema.effective_row_bound)


@pytest.mark.filterwarnings("ignore")
def test_the_benchmark_runs(tmp_path, monkeypatch, capsys):
    plan = Plan((lambda: tables.paper(2**11),), ks=(1, 4), epsilons=(1.0,), regressions=2, repetitions=1)
    monkeypatch.setattr(bench_peers, "QUICK", plan)
    assert bench_peers.main(["--quick", "--out", str(tmp_path)]) == 0
    cells = read(tmp_path / "peers.csv")
    present = [method.name for method in METHODS if method.available() is None]
    assert list(dict.fromkeys(c.method for c in cells)) == [study.NON_PRIVATE, *present]
    flat = [c.mean_lost for c in cells if c.method == "one Gram"]
    assert flat[0] == flat[1]
    assert (tmp_path / "peers.png").stat().st_size > 10_000
    assert "one Gram" in capsys.readouterr().out
    assert bench_peers.main(["--quick", "--method", "AdaSSP", "--out", str(tmp_path)]) == 0
    assert read(tmp_path / "peers.csv") == cells  # the same seeds, in the same places
    assert bench_peers.main(["--from-results", "--out", str(tmp_path)]) == 0


def test_a_table_that_cannot_be_made_is_said(monkeypatch):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    said: list[str] = []
    assert list(study.run(Plan((tables.diamonds,)), METHODS, said.append)) == []
    assert "LEFT OUT" in said[0]
    assert "dpgram[bench]" in said[0]


def test_the_page_holds_what_the_results_say():
    cells, text = read(bench_peers.RESULTS), bench_peers.PAGE.read_text(encoding="utf-8")
    for table in (
        page.in_short(cells),
        page.methods(),
        page.tables(cells),
        page.lost(cells),
        *(page.wins(cells, o) for o in page.OURS),
    ):
        assert table in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", bench_end_to_end.SOURCES)
def test_every_way_end_to_end_answers(source, tmp_path):
    bench_end_to_end.make_table(3000, 4, tmp_path)
    file = tmp_path / bench_end_to_end.SOURCES[source]
    for way, run in bench_end_to_end.WAYS.items():
        if way != "diffprivlib" or diffprivlib_regression.available() is None:
            found = run(np.load(file) if source == "memory" else file)
            assert np.all(np.isfinite(found))
            assert len(found) in (3, 4)  # with and without an intercept


def test_end_to_end_measures_in_a_process_of_its_own(tmp_path):
    bench_end_to_end.make_table(3000, 4, tmp_path)
    line = bench_end_to_end.measure("dpgram", "memory", tmp_path, 1)
    assert line.note == ""
    assert line.seconds > 0
    text = bench_end_to_end.table_of(
        {"rows": 3000, "columns": 4, "runs": 1, "lines": [line.__dict__], "machine": bench_end_to_end.machine()}
    )
    assert "| memory | dpgram |" in text
