"""Linear discriminants: those of scikit-learn where noise is nil, with distances whose errors noise really has."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import dpgram
from dpgram.cli.app import run
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.inference.discriminant import error_gradient, error_rate, pair_error
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.seeded import SeededSource
from experiments.yes_no.classes import error_coverage
from tests.analysis.test_fit import released
from tests.conftest import small_schema
from tests.regression.test_regress import columns_in_own_units, noiseless
from tests.releases import NOISES, pass_through


def groups(rows=3000, seed=0, apart=1.0):
    """Three normal classes of three features in bounds of [-10, 10], and their schema."""
    rng = np.random.default_rng(seed)
    c = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    x = (
        rng.normal(size=(rows, 3)) @ [[1, 0.5, 0], [0, 1, 0.3], [0, 0, 1]]
        + apart * np.array([[0, 0, 0], [1, 1, 0], [2, 0, 1]])[c]
    )
    columns = [
        *(dpgram.Numeric(f"x{j}", -10, 10, missing="midpoint") for j in range(3)),
        dpgram.Categorical("c", ["0", "1", "2"]),
    ]
    return x, c, dpgram.Schema(unit="p", columns=columns)


def table_of(x, c):
    return {**{f"x{j}": x[:, j] for j in range(3)}, "c": c.astype(str)}


@pytest.fixture(scope="module")
def exact():
    x, c, schema = groups()
    return noiseless(schema, table_of(x, c))


def test_it_is_that_of_scikit_learn_when_noise_is_nil(exact):
    x, c, _ = groups()
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(x, c)
    found = dpgram.lda(exact, "c")
    assert found.coef == pytest.approx(theirs.coef_, rel=1e-4, abs=1e-5)
    assert found.intercept == pytest.approx(theirs.intercept_, rel=1e-4)
    assert found.means == pytest.approx(theirs.means_, rel=1e-4, abs=1e-4)
    assert found.priors == pytest.approx(theirs.priors_, rel=1e-6)
    assert (found.predict(table_of(x, c)) == theirs.predict(x).astype(str)).mean() > 0.999
    assert found.predict_proba(table_of(x, c)) == pytest.approx(theirs.predict_proba(x), abs=1e-4)
    wrong = np.mean(theirs.predict(x) != c)
    assert found.error_rate == pytest.approx(wrong, abs=0.03)
    assert found.error_interval[0] < found.error_rate < found.error_interval[1]


def test_two_classes_give_the_logit(exact):
    found, fit = (f(noiseless(small_schema()), "b", ["x", "y"]) for f in (dpgram.lda, dpgram.logit))
    assert found.classes == ("0", "1")
    assert (found.coef[1] - found.coef[0]) == pytest.approx([fit.params["x"], fit.params["y"]], rel=1e-4)
    assert found.intercept[1] - found.intercept[0] == pytest.approx(fit.params["(intercept)"], rel=1e-4)
    own = columns_in_own_units()
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(np.column_stack([own["x"], own["y"]]), own["b"])
    assert (found.coef[1] - found.coef[0]) == pytest.approx(theirs.coef_[0], rel=1e-4)
    assert found.distance[0, 1] == pytest.approx(fit.to_dict()["distance"], rel=1e-3)


def test_error_rates_of_normal_classes():
    assert pair_error(2.0, 0.5, 0.5) == pytest.approx(0.158655, abs=1e-6)
    assert pair_error(0.0, 0.3, 0.7) == 0.3
    line = np.array([[0.0], [2.0], [4.0]])
    assert error_rate(line, np.full(3, 1 / 3)) == pytest.approx(0.158655 * 4 / 3, abs=0.005)


@pytest.mark.parametrize(
    ("points", "priors"),
    [
        ([[0.0, 0.0], [1.2, 0.3]], [0.9, 0.1]),
        ([[0.0, 0.0], [1.2, 0.3], [0.2, -1.0]], [0.5, 0.3, 0.2]),
        ([[0.0], [1.0]], [0.5, 0.5]),
    ],
)
def test_the_error_rate_moves_as_its_derivatives_say(points, priors):
    points, priors = np.array(points), np.array(priors)
    by_share, by_point = error_gradient(points, priors)
    step = 0.01
    for place in np.ndindex(points.shape):
        moved = np.zeros_like(points)
        moved[place] = step
        slope = (error_rate(points + moved, priors) - error_rate(points - moved, priors)) / (2 * step)
        assert by_point[place] == pytest.approx(slope, abs=1e-3)
    for other in range(1, len(priors)):
        moved = np.zeros_like(priors)
        moved[0], moved[other] = -step, step
        slope = (error_rate(points, priors + moved) - error_rate(points, priors - moved)) / (2 * step)
        assert by_share[other] - by_share[0] == pytest.approx(slope, abs=2e-3)


@pytest.mark.parametrize("shares", [(0.7, 0.3), (0.95, 0.05), (0.5, 0.3, 0.2)])
@pytest.mark.parametrize(("mechanism", "epsilon"), [("gaussian-noise", 0.3), ("gaussian-noise", 3.0), ("whitened-noise", 1.0)])
def test_intervals_of_error_rates_cover(shares, mechanism, epsilon):
    """60 samples. Were coverage 95 %, fewer than 84 % would come up once in 1,300, and pairs of classes are less alike than one."""
    found = error_coverage(shares, mechanism, epsilon, samples=60)
    assert found.error > 0.84
    assert found.distances > 0.84
    assert not found.refused


def test_the_interval_of_an_error_rate_counts_the_shares_alone():
    """Classes so near each other that all rows go to the larger one: the error rate is the share of the smaller one."""
    rng = np.random.default_rng(0)
    c = (rng.random(4000) < 0.1).astype(int)
    table = {"x": rng.normal(size=4000) + 0.2 * c, "c": np.array(["a", "b"])[c]}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -10, 10), dpgram.Categorical("c", ["a", "b"])])
    found = dpgram.lda(noiseless(schema, table), "c")
    low, high = found.error_interval
    half = 1.96 * np.sqrt(c.mean() * (1 - c.mean()) / 4000)
    assert found.error_rate == pytest.approx(c.mean(), rel=1e-4)
    assert (low, high) == pytest.approx((c.mean() - half, c.mean() + half), rel=0.02)  # by the logarithm of the share
    assert low < c.mean() < high


def test_a_distance_that_noise_may_make_has_no_upper_end():
    x, c, schema = groups(300)
    rows = np.column_stack([np.ones(300), x / 10, c == 1, c == 2])
    noise = NOISES["gaussian"]
    gram = pass_through(noise, rows.T @ rows, SeededSource(3))
    found = dpgram.lda(replace(noiseless(schema, table_of(x, c)), gram=gram, noise=noise, rows=300), "c")
    assert np.isinf(found.distance_upper).any()
    assert found.error_interval[0] == 0.0
    data = found.to_dict()
    assert None in [pair["upper"] for pair in data["pairs"]]
    json.dumps(data, allow_nan=False)
    assert " inf " in str(found)


@pytest.mark.parametrize("kind", ["gaussian", "wishart"])
def test_distances_move_as_far_as_they_say(kind):
    """120 tables with noise of their own: the relative sd of a standard deviation is 6.5 %, so 30 % off comes up once in 100,000."""
    noise, found = NOISES[kind], []
    _, _, schema = groups(10)
    base = noiseless(schema, table_of(*groups(10)[:2]))
    for seed in range(120):
        x, c, _ = groups(20_000, seed)
        rows = np.column_stack([np.ones(len(c)), x / 10, c == 1, c == 2])
        gram = pass_through(noise, rows.T @ rows, SeededSource(seed))
        found.append(dpgram.lda(replace(base, gram=gram, noise=noise, rows=len(c)), "c"))
    pairs = np.triu_indices(3, 1)
    moved = np.std([each.distance[pairs] ** 2 for each in found], axis=0)
    told = np.median([(each.distance[pairs] ** 2 - each.distance_lower[pairs] ** 2) / 1.96 for each in found], axis=0)
    assert told == pytest.approx(moved, rel=0.3)


def test_distances_and_error_rates_allow_for_clipped_rows(monkeypatch):
    """The logarithm of a feature with a long tail decides. So among its long rows classes differ less than the others say, and these are
    clipped. Without what clipping leaves open no interval holds; with it nearly all do."""
    rng, rows = np.random.default_rng(5), 20_000
    x = np.exp(rng.normal(size=(rows, 1)))
    y = np.log(x[:, 0]) + rng.normal(size=rows) > 0
    schema = dpgram.Schema(unit="p", columns=[dpgram.Boolean("y"), dpgram.Numeric("x", 0, 100)])
    table = {"y": y, "x": np.minimum(x[:, 0], 100)}
    truth = dpgram.lda(noiseless(schema, table), "y")

    def held(release):
        found = dpgram.lda(release, "y")
        ends = found.distance_lower[0, 1], found.distance_upper[0, 1]
        return ends[0] < truth.distance[0, 1] < ends[1], found.error_interval[0] < truth.error_rate < found.error_interval[1]

    whitened = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "whitened-noise"}
    releases = [dpgram.release(table, schema, **whitened, insecure_seed=seed) for seed in range(10)]
    assert (np.sum([held(one) for one in releases], axis=0) >= 8).all()
    monkeypatch.setattr("dpgram.inference.discriminant._Points._clipping", lambda self, gradient: (0.0, 0.0))
    assert not np.any([held(one) for one in releases])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_an_answer_or_one_sentence(mechanism):
    for rows, epsilon in ((4000, 8.0), (60, 0.01)):
        try:
            found = dpgram.lda(released(mechanism, rows=rows, epsilon=epsilon), "c")
        except ModelError as refused:
            assert "hides how many rows are in" in str(refused)  # noqa: PT017
            continue
        json.dumps(found.to_dict(), allow_nan=False)
        assert "Private linear discriminant analysis of c" in str(found)
        assert list(found.to_frame().index) == ["a", "b", "other"]


def test_refusals(exact):
    with pytest.raises(ModelError, match="'x0' is neither categorical nor Boolean"):
        dpgram.lda(exact, "x0")
    with pytest.raises(UnknownColumnError):
        dpgram.lda(exact, "d")
    with pytest.raises(ModelError, match="needs at least one feature"):
        dpgram.lda(exact, "c", [])
    with pytest.raises(ModelError, match="needs the intercept column"):
        dpgram.lda(released(intercept=False), "c")
    with pytest.raises(ModelError, match="is the target, so it cannot be a feature"):
        dpgram.lda(exact, "c", ["c[1]"])
    with pytest.raises(ModelError, match="confidence is 0"):
        dpgram.lda(exact, "c", confidence=0)


def test_the_command(tmp_path, capsys):
    file = tmp_path / "r.json"
    released().save(file)
    assert run(["lda", str(file), "--target", "c", "--features", "x,y"]) == 0
    assert "Error rate" in capsys.readouterr().out
    assert run(["lda", str(file), "--target", "b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["0", "1"]


def test_it_says_which_level_is_the_reference():
    exact = noiseless(small_schema())
    made = dpgram.lda(exact, "c", ["x", "b"])
    assert made.to_dict()["references"] == {"c": "a"}
    assert "reference: a is the reference level of c." in " ".join(str(made).split())
    assert "compared with a reference level" not in str(made)
    truth = dpgram.lda(exact, "b", ["x", "c"])
    assert truth.to_dict()["references"] == {"b": "0", "c": "a"}
    text = " ".join(str(truth).split())
    assert (
        "reference: 0 is the reference level of b. The score of a class minus that of 0 is the log odds of the class against 0."
        in text
    )
    assert "Features that are levels are compared with a reference level: a of c." in text
    assert dpgram.lda(exact, "b", ["c[b]"]).to_dict()["references"] == {"b": "0", "c": "a"}
