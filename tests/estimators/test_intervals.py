"""Estimators that speak of their uncertainty: the intervals of their release, in statsmodels' shape, and a word where there is nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import dpgram
from dpgram.errors import ModelError, UnidentifiedWarning
from tests.estimators.conftest import BOUNDS, TARGET_BOUNDS

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.RefitWarning", "ignore::dpgram.errors.NotPrivateWarning")

GIVEN = {"epsilon": 5.0, "delta": 1e-6, "bounds": BOUNDS, "target_bounds": TARGET_BOUNDS}
SEED = 0  # of a draw after which one column is not identified and the others are; after a third of all draws none is
MODELS = {
    "shrunk": dpgram.PrivateLinearRegression(**GIVEN),
    "log-det": dpgram.PrivateLinearRegression(estimator="log-det", **GIVEN),
    "ridge": dpgram.PrivateRidge(alpha=2000.0, **GIVEN),
    "lasso": dpgram.PrivateLasso(alpha=0.3, **GIVEN),
    "elastic-net": dpgram.PrivateLasso(alpha=0.3, l1_ratio=0.5, **GIVEN),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_intervals_are_those_of_the_release_whatever_the_penalty(rows, name, alpha):
    model = MODELS[name].fit(*rows)
    found = model.conf_int(alpha)
    same = dpgram.regress(model.release_, "y")
    assert found.tolist() == same.conf_int(alpha).to_numpy().tolist()
    assert found.shape == (4, 2)


@pytest.mark.parametrize("name", MODELS)
def test_the_summary_shows_the_estimator_s_own_coefficients_beside_them(rows, name):
    """Those that ``predict`` uses, whatever the parameters are by now."""
    model = MODELS[name].fit(*rows)
    model.set_params(**({"alpha": 1e9} if "alpha" in model.get_params() else {}))
    text = str(model.summary())
    assert f" {name}\n" in text
    for column, coefficient in zip(["(intercept)", "x0", "x1", "x2"], [model.intercept_, *model.coef_], strict=True):
        (line,) = (line for line in text.splitlines() if line.startswith(f"{column} "))
        assert line.endswith(f" {coefficient:.5g}")
    assert "[0.025" in text
    assert "[0.1 " in str(model.summary(alpha=0.2))


def test_without_noise_they_are_those_of_least_squares(clamped):
    """As statsmodels' OLS would have them: the estimate and 1.96 standard errors, in own units."""
    X, y = clamped
    model = dpgram.PrivateLinearRegression(**{**GIVEN, "epsilon": 1e5}, mechanism="gaussian-noise").fit(X, y)
    design = np.column_stack([np.ones(len(X)), X])
    beta, (residual,) = np.linalg.lstsq(design, y)[:2]
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residual / (len(y) - 4))
    expected = beta[:, None] + norm.ppf(0.975) * errors[:, None] * [-1, 1]
    np.testing.assert_allclose(model.conf_int(), expected, rtol=1e-2, atol=1e-3)


def test_shapes_with_several_targets_and_without_an_intercept(rows):
    X, y = rows
    model = dpgram.PrivateLinearRegression(**GIVEN, fit_intercept=False).fit(X, np.column_stack([y, -y, y / 2]))
    assert model.conf_int().shape == (3, 3, 2)
    assert "regression of y1" in str(model.summary("y1"))
    assert f"{model.coef_[1, 0]:.5g}" in str(model.summary("y1"))
    with pytest.raises(ModelError, match="no target is named, but the targets are y0, y1, y2. Name one of them"):
        model.summary()
    with pytest.raises(ModelError, match="there is no target 'y', but the targets are y0, y1, y2"):
        model.summary("y")


@pytest.mark.parametrize("alpha", [0, 1, -0.1, True, "0.05", float("nan")])
def test_an_alpha_that_is_none(rows, alpha):
    model = MODELS["shrunk"].fit(*rows)
    for ask in (model.conf_int, lambda a: model.summary(alpha=a)):
        with pytest.raises(ModelError, match="alpha is .* and must be a number between 0 and 1"):
            ask(alpha)


def test_before_the_fit_there_is_nothing_to_say():
    for model in (dpgram.PrivateRidge(**GIVEN), dpgram.PrivatePCA(), dpgram.PrivateCovariance()):
        with pytest.raises(NotFittedError):
            model.summary()
    with pytest.raises(NotFittedError):
        dpgram.PrivateRidge(**GIVEN).conf_int()


@pytest.mark.parametrize("model", [dpgram.PrivateLinearRegression, dpgram.PrivateRidge, dpgram.PrivateLasso])
def test_a_fit_that_says_nothing_is_warned_of(rows, model):
    X, y = rows
    with pytest.warns(UnidentifiedWarning, match="no coefficient of 'y' is identified at this budget") as caught:
        fitted = model(**{**GIVEN, "epsilon": 0.01}).fit(X[:500], y[:500])
    assert [each.filename for each in caught] == [__file__]
    assert np.isinf(fitted.conf_int()[1:]).all()
    assert "Not identified at this budget" in str(fitted.summary())


def test_a_fit_that_says_something_is_not_warned_of(rows):
    """Also if one column of many cannot be told from noise."""
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnidentifiedWarning)
        MODELS["shrunk"].fit(X, y)
        narrow = np.column_stack([X, np.full(len(X), 1e-6)])
        bounds = ([*BOUNDS[0], -1.0], [*BOUNDS[1], 1.0])
        partly = dpgram.PrivateLinearRegression(**{**GIVEN, "bounds": bounds}, mechanism="gaussian-noise", random_state=SEED)
        partly.fit(narrow, y)
    assert np.isinf(partly.conf_int()[-1]).all()
    assert np.isfinite(partly.conf_int()[1:-1]).all()


def test_components_and_covariances_have_summaries(rows):
    X, _ = rows
    given = {name: value for name, value in GIVEN.items() if name != "target_bounds"}
    components = dpgram.PrivatePCA(2, **given).fit(X)
    assert f"{components.components_[1, 0]:.3f}" in str(components.summary())
    assert "component 3" not in str(components.summary())
    covariance = dpgram.PrivateCovariance(**given).fit(X)
    assert f"{covariance.covariance_[0, 1]:.5g}" in str(covariance.summary())
    assert f"{covariance.correlation_[0, 1]:.5g}" in str(covariance.summary("correlation"))
