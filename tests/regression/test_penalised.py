"""Penalised fits: scikit-learn's on the clamped rows where there is no noise, and no surprise where there is."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso, Ridge

import dpgram
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import design
from dpgram.regression.fit import fit_linear
from dpgram.regression.penalised import penalty_path, ridge
from dpgram.terms.noise import SymmetricGaussian, WishartSample
from tests.conftest import filled_schema, small_schema, small_table
from tests.releases import NOISES, SILENT, matrix_release, seen_through, true_gram, with_gram

TABLE = small_table(rows=3000)
FEATURES = ["x", "b", "c"]


def clamped():
    x, y = (np.clip(TABLE[n].to_numpy(), low, high) for n, low, high in (("x", -5, 5), ("y", -10, 30)))
    c, b = TABLE["c"].to_numpy(), TABLE["b"].to_numpy().astype(float)
    return np.column_stack([x, b, (c == "b") * 1.0, (c == "z") * 1.0]), y


def silent(noise, **changes):
    schema = filled_schema(**changes)
    gram = true_gram(TABLE, schema)
    return with_gram(noise, gram + noise.shift * np.eye(len(gram)), TABLE, schema)


@pytest.mark.parametrize("noise", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize(("column", "kept"), [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize(
    ("estimator", "options", "model"),
    [
        ("ridge", {"penalty": 100.0}, Ridge(alpha=100.0)),
        ("ridge", {"penalty": 0.0}, Ridge(alpha=0.0)),
        ("lasso", {"penalty": 0.2}, Lasso(alpha=0.2, tol=1e-10, max_iter=100_000)),
        ("elastic-net", {"penalty": 0.2, "l1_ratio": 0.3}, ElasticNet(alpha=0.2, l1_ratio=0.3, tol=1e-10, max_iter=100_000)),
    ],
    ids=["ridge", "ridge of nothing", "lasso", "elastic net"],
)
def test_without_noise_it_is_scikit_learn_on_the_rows(noise, column, kept, estimator, options, model):
    release = silent(noise, intercept=column)
    x, y = clamped()
    found = fit_linear(Evidence.of(release), design(release.schema, "y", FEATURES, kept), estimator, **options)
    model.set_params(fit_intercept=kept).fit(x, y)
    expected = [model.intercept_, *model.coef_] if kept else model.coef_
    assert found == pytest.approx(expected, rel=1e-3, abs=2e-3)


def test_a_path_passes_through_the_single_fits():
    release = silent(SILENT["gaussian"])
    plan = design(release.schema, "y", FEATURES, None)
    penalties, coefficients = penalty_path(Evidence.of(release), plan, penalties=12)
    assert coefficients.shape == (12, 5)
    assert np.abs(coefficients[0, 1:]).max() < 1e-6
    assert (np.diff(penalties) < 0).all()
    for k in (3, 7):
        single = fit_linear(Evidence.of(release), plan, "lasso", penalty=float(penalties[k]))
        assert coefficients[k] == pytest.approx(single, abs=0.02)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("estimator", ["ridge", "lasso", "elastic-net"])
def test_left_out_penalties_have_an_answer(noise, estimator):
    release = seen_through(noise, TABLE, small_schema())
    for features in (None, ["x"], []):
        assert np.isfinite(fit_linear(Evidence.of(release), design(release.schema, "y", features, None), estimator)).all()


def test_the_left_out_lasso_penalty_drops_what_is_noise():
    """Six features without any effect, noise as large as a tenth of their squares: nearly all vanish, and the one that counts stays."""
    kept, false = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, (3000, 7))
        y = 0.5 * x[:, 0] + 0.1 * rng.normal(size=3000)
        z = np.column_stack([np.ones(3000), x, y])
        noise = rng.normal(scale=30 / np.sqrt(2), size=(9, 9))
        release = matrix_release(z.T @ z + noise + noise.T, SymmetricGaussian.orthogonal(30.0), rows=3000)
        found = fit_linear(Evidence.of(release), design(release.schema, "y", None, None), "lasso")
        kept += found[1] != 0
        false += np.count_nonzero(found[2:])
    assert kept == 20
    assert false <= 12  # of 120


def test_the_left_out_ridge_penalty_vanishes_with_the_noise():
    """The rule of Wang (2018): nothing is added once the smallest eigenvalue is above the edge of the noise."""
    gram = np.diag([1000.0, 100.0, 80.0, 50.0])
    gram[1, 3] = gram[3, 1] = 40.0
    for sd, expected in ((1.0, 0.4), (40.0, 40 / (100 + 2 * 40 * np.sqrt(3) - 80))):
        release = matrix_release(gram, SymmetricGaussian.orthogonal(sd))
        assert ridge(Evidence.of(release), design(release.schema, "y", None, None))[1] == pytest.approx(expected)


def test_ridge_of_a_matrix_that_is_all_noise():
    release = matrix_release(-np.diag([900.0, 800.0, 700.0, 600.0]), SymmetricGaussian.orthogonal(10.0))
    for estimator in ("ridge", "lasso", "elastic-net"):
        assert np.isfinite(fit_linear(Evidence.of(release), design(release.schema, "y", None, None), estimator)).all()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("estimator", ["ridge", "lasso"])
def test_units_of_any_size(scale, estimator):
    """A column in units a million millions away: the penalty is in those units, and the answer finite."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -scale, scale), dpgram.Numeric("y", -1, 1)])
    x = np.linspace(-1, 1, 500)
    release = seen_through(SymmetricGaussian.orthogonal(1.0), {"x": scale * x, "y": x / 2}, schema)
    for penalty in (None, 0.0, 1.0):
        found = fit_linear(Evidence.of(release), design(release.schema, "y", None, None), estimator, penalty=penalty)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("penalty", [-1.0, np.inf, np.nan, True, "much"])
def test_penalties_that_are_none(penalty):
    release = silent(SILENT["gaussian"])
    for estimator in ("ridge", "lasso"):
        with pytest.raises(ModelError, match="penalty is .* must be a finite number of at least 0"):
            fit_linear(Evidence.of(release), design(release.schema, "y", None, None), estimator, penalty=penalty)


def test_options_and_estimators_that_do_not_exist():
    release = silent(WishartSample(1e6, 1.0, 1.0))
    plan = design(release.schema, "y", None, None)
    with pytest.raises(ModelError, match="'debiased' has no option 'penalty'. It has no options"):
        fit_linear(Evidence.of(release), plan, "debiased", penalty=1.0)
    with pytest.raises(ModelError, match="no estimator named 'best'. Use one of shrunk, debiased"):
        fit_linear(Evidence.of(release), plan, "best")
    with pytest.raises(ModelError, match="a path needs a feature"):
        penalty_path(Evidence.of(release), design(release.schema, "y", [], None))
