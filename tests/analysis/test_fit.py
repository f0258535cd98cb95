"""A fit and its uncertainty: least squares where noise is nil, and always an answer that holds together."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

import dpgram
from dpgram.errors import ModelError
from dpgram.inference.intervals import METHODS
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.terms.noise import SymmetricGaussian
from tests.conftest import filled_schema, small_schema, small_table
from tests.regression.test_regress import TABLE, columns_in_own_units, noiseless

OPTIONS = {"noisy-inverse": {"rho": 2.0}, "gaussian-sketch": {"sketch_rows": 50.0}}


def strictly(data):
    """As another program reads it: JSON has no NaN and no infinity."""
    return json.loads(json.dumps(data, allow_nan=False))


def released(mechanism="gaussian-noise", rows=4000, epsilon=5.0, seed=1, **changes):
    options = OPTIONS.get(mechanism, {})
    if mechanism == "inverse-wishart" and changes.get("neighbours") == "add-remove":
        options = {"degrees_of_freedom": 400.0}
    schema, table = small_schema(**changes), small_table(rows)
    return dpgram.release(table, schema, epsilon=epsilon, delta=1e-6, mechanism=mechanism, insecure_seed=seed, **options)


def ordinary(names, target="y"):
    """Least squares on the rows: coefficients, covariance, residual variance, R^2."""
    own = columns_in_own_units()
    x, y = np.column_stack([own[n] for n in names]), own[target]
    b = np.linalg.lstsq(x, y, rcond=None)[0]
    left = np.sum((y - x @ b) ** 2)
    variance = left / (len(y) - len(b))
    whole = np.sum((y - y.mean()) ** 2) if names[0] == "(intercept)" else np.sum(y**2)
    return b, variance * np.linalg.inv(x.T @ x), variance, 1 - left / whole


@pytest.mark.parametrize("features", [None, ["x"], ["c", "b"], []])
@pytest.mark.parametrize("intercept", [True, False])
def test_everything_is_ordinary_least_squares_when_noise_is_nil(features, intercept):
    if features == [] and not intercept:
        return
    fit = dpgram.regress(noiseless(small_schema()), "y", features, intercept=intercept)
    b, covariance, variance, r_squared = ordinary(fit.names)
    se = np.sqrt(np.diag(covariance))
    assert list(fit.params) == pytest.approx(b, rel=1e-4, abs=1e-5)
    assert list(fit.bse) == pytest.approx(se, rel=1e-3)
    assert list(fit.bse_sampling) == pytest.approx(se, rel=1e-3)
    assert max(fit.bse_privacy) < 1e-5
    assert fit.cov_params() == pytest.approx(covariance, rel=1e-3, abs=1e-3 * se.max() ** 2)
    assert list(fit.tvalues) == pytest.approx(b / se, rel=1e-3)
    assert list(fit.pvalues) == pytest.approx(2 * stats.norm.sf(np.abs(b / se)), rel=1e-2, abs=1e-12)
    for confidence in (0.5, 0.9, 0.999):
        reach = stats.norm.isf((1 - confidence) / 2) * se
        for method in ("auto", "wald", "fieller"):
            ends = fit.conf_int(confidence=confidence, method=method).to_numpy()
            assert ends == pytest.approx(np.column_stack([b - reach, b + reach]), rel=1e-3, abs=2e-3 * se.min())
    assert fit.goodness.residual_variance == pytest.approx(variance, rel=1e-3)
    assert fit.rsquared == pytest.approx(r_squared, abs=1e-4)
    low, high = fit.goodness.residual_variance_interval
    half = stats.norm.isf(0.025) * variance * np.sqrt(2 / len(TABLE))
    assert (low, high) == pytest.approx((variance - half, variance + half), rel=1e-3)


def test_joint_tests_are_those_of_least_squares_when_noise_is_nil():
    fit = dpgram.regress(noiseless(small_schema()), "y")
    b, covariance, *_ = ordinary(fit.names)
    for name, places in (("c", [2, 3]), (["x", "b"], [1, 4]), ("c[b]", [2]), (["c", "c[b]"], [2, 3])):
        wanted = b[places] @ np.linalg.solve(covariance[np.ix_(places, places)], b[places])
        found = fit.joint_test(name)
        assert found.statistic == pytest.approx(wanted, rel=1e-2)
        assert (found.degrees, found.coefficients) == (len(places), tuple(fit.names[j] for j in places))
    assert [t.name for t in fit.joint_tests] == ["c", "all features"]
    assert dpgram.regress(noiseless(small_schema()), "y", ["x"]).joint_tests == ()
    with pytest.raises(ModelError, match="this fit has no coefficient 'q'. Its coefficients are"):
        fit.joint_test("q")
    with pytest.raises(ModelError, match="no restriction is given"):
        fit.joint_test([])


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("rows", "epsilon"), [(4000, 5.0), (60, 0.1)])
def test_a_fit_holds_together(mechanism, neighbours, rows, epsilon):
    """From every mechanism, with much noise and little: finite numbers, strict JSON, intervals that hold their number."""
    release = released(mechanism, rows, epsilon, neighbours=neighbours)
    fit = dpgram.regress(release, "y")
    errors = (fit.bse, fit.bse_privacy, fit.bse_sampling, fit.bse_clipping)
    for found in (fit.params, fit.estimates, fit.shrunk, *errors, fit.tvalues, fit.pvalues):
        assert tuple(found.index) == fit.names
        assert np.isfinite(found).all()
    whole, privacy, sampling, clipping = (part.to_numpy() for part in errors)
    assert whole**2 == pytest.approx(privacy**2 + sampling**2 + clipping**2)
    assert all(0 <= p <= 1 for p in fit.pvalues)
    widths = []
    for confidence in (0.5, 0.9, 0.999):
        for method in ("auto", "wald", "fieller"):
            ends = fit.conf_int(confidence=confidence, method=method)
            assert ((ends[0] <= fit.params) & (fit.params <= ends[1])).all()
            widths.append((ends[1] - ends[0]).to_numpy())
    for j in range(3):
        assert np.all(widths[j] <= widths[j + 3])
        assert np.all(widths[j + 3] <= widths[j + 6])
    data, text = strictly(fit.to_dict()), str(fit.summary())
    assert "nan" not in text
    assert mechanism in text
    assert "NOT PRIVATE" in text
    assert ("CONDITIONAL" in text) == (mechanism == "noisy-inverse")
    assert data["rows"] == (None if neighbours == "add-remove" else rows)
    assert ("protected" in text) == (neighbours == "add-remove")
    assert 0 <= data["r_squared_interval"][0] <= (data["r_squared"] or 0) + 1e-12
    low, high = (np.inf if end is None else end for end in data["residual_variance_interval"])
    assert 0 <= low <= data["residual_variance"] <= high


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bootstrap_intervals_hold_their_number(mechanism):
    fit = dpgram.regress(released(mechanism), "y", ["x"], intervals="bootstrap", confidence=0.9)
    ends = fit.conf_int()
    assert ((ends[0] <= fit.params) & (fit.params <= ends[1])).all()
    assert {c["interval"] for c in fit.to_dict()["coefficients"].values()} == {"bootstrap"}


def test_bootstrap_agrees_with_wald_when_noise_is_small():
    fit = dpgram.regress(noiseless(small_schema()), "y", ["x", "b"])
    boot, wald = (fit.conf_int(method=m).to_numpy() for m in ("bootstrap", "wald"))
    assert np.diff(boot) == pytest.approx(np.diff(wald), rel=0.15)


def test_what_is_not_identified_is_none_in_json_infinite_in_a_frame_and_said_in_words():
    fit = dpgram.regress(released(rows=60, epsilon=0.1), "y")
    assert fit.not_identified == fit.names
    for c in strictly(fit.to_dict())["coefficients"].values():
        assert (c["lower"], c["upper"], c["identified"], c["interval"]) == (None, None, False, "fieller")
    frame = fit.to_frame()
    assert frame.index.tolist() == list(fit.names)
    assert (frame["lower"] == -np.inf).all()
    assert (frame["upper"] == np.inf).all()
    said = " ".join(fit.notes)
    assert "Not identified at this budget: (intercept), x, c[b], c[other], b. The noise is too large" in said
    assert "so their intervals are infinite. Use fewer features" in said
    assert fit.rsquared is None
    assert "not identified" in " ".join(str(fit.summary()).split())


def test_the_frame_holds_what_the_fit_says(small_release):
    fit = dpgram.regress(small_release, "y")
    frame = fit.to_frame()
    assert frame["coefficient"].to_dict() == fit.params.to_dict()
    assert frame["shrunk"].to_dict() == fit.shrunk.to_dict()
    assert frame["se"].to_dict() == fit.bse.to_dict()
    assert frame[["lower", "upper"]].to_numpy().tolist() == fit.conf_int().to_numpy().tolist()
    assert all(frame[name].dtype == float for name in ("coefficient", "se", "z", "p_value", "lower", "upper"))


@pytest.mark.parametrize("estimator", ["debiased", "log-det", "plain", "ridge", "lasso", "elastic-net"])
def test_any_estimator_leaves_params_and_shrunk_alone(small_release, estimator):
    default, fit = dpgram.regress(small_release, "y"), dpgram.regress(small_release, "y", estimator=estimator)
    assert fit.params.equals(default.params)
    assert fit.shrunk.equals(default.shrunk)
    assert fit.conf_int().equals(default.conf_int())
    assert fit.to_dict()["coefficients"]["x"][estimator] == fit.estimates["x"] == fit.coefficients[1]
    frame = {"x": [1.0], "c": ["a"], "b": [False]}
    assert fit.predict(frame) == pytest.approx([fit.estimates["(intercept)"] + fit.estimates["x"]])


def test_weighted_targets_are_weighted_regressions(small_release):
    both = dpgram.regress(small_release, {"y": 2, "x": -1.5}, ["c"])
    one, two = (dpgram.regress(small_release, target, ["c"]) for target in ("y", "x"))
    assert both.target == "2*y - 1.5*x"
    assert list(both.params) == pytest.approx([2 * one.params[n] - 1.5 * two.params[n] for n in both.names], rel=1e-9, abs=1e-9)
    exact = dpgram.regress(noiseless(small_schema()), {"y": 1, "x": 1}, ["b"])
    own = columns_in_own_units()
    x = np.column_stack([np.ones(len(TABLE)), own["b"]])
    assert list(exact.params) == pytest.approx(np.linalg.lstsq(x, own["x"] + own["y"], rcond=None)[0], rel=1e-4)
    assert dpgram.regress(small_release, {"y": 1}).params.equals(dpgram.regress(small_release, "y").params)
    for weight in (0, np.nan, np.inf, True, "2"):
        with pytest.raises(ModelError, match="must be a finite number other than zero"):
            dpgram.regress(small_release, {"y": weight})
    with pytest.raises(ModelError, match="the target is an empty dict"):
        dpgram.regress(small_release, {})
    with pytest.raises(ModelError, match="'x' is the target, so it cannot be a feature too"):
        dpgram.regress(small_release, {"y": 1, "x": 1}, ["x"])


def test_several_targets_and_formulas(small_release):
    fits = dpgram.regress(small_release, ["y", {"x": 2}, "b ~ x + c - 1"])
    assert isinstance(fits, dpgram.Fits)
    assert [fit.target for fit in fits] == ["y", "2*x", "b"]
    assert fits[0].params.equals(dpgram.regress(small_release, "y").params)
    assert fits[2].names[0] == "x"
    assert isinstance(dpgram.regress(small_release, ["y"]), dpgram.Fits)
    assert isinstance(dpgram.regress(small_release, "y"), dpgram.Fit)
    with pytest.raises(ModelError, match="the list of targets is empty"):
        dpgram.regress(small_release, [])
    with pytest.raises(ModelError, match="Leave out features and intercept"):
        dpgram.regress(small_release, "y ~ x", ["x"])


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, "0.9", True, None, float("nan")])
def test_a_confidence_lies_between_zero_and_one(small_release, confidence):
    with pytest.raises(ModelError, match="confidence is .* and must be a number between 0 and 1"):
        dpgram.regress(small_release, "y", confidence=confidence)


def test_unknown_intervals_are_refused(small_release):
    for ask in (
        lambda: dpgram.regress(small_release, "y", intervals="exact"),
        lambda: dpgram.regress(small_release, "y").conf_int(method="exact"),
    ):
        with pytest.raises(ModelError, match=f"intervals is 'exact' and must be one of {', '.join(METHODS)}"):
            ask()


def test_add_remove_never_shows_the_number_of_rows():
    release = released(rows=4000, neighbours="add-remove", epsilon=1.0)
    fit = dpgram.regress(release, "y")
    data = fit.to_dict()
    shown = str(fit.summary()) + repr(fit) + fit._repr_html_()
    assert data["rows"] is None
    assert data["effective_rows"] == pytest.approx(release.gram[0, 0])
    assert "4,000" not in shown
    assert f"{release.gram[0, 0]:,.0f}" in shown


def test_with_public_rows_that_are_never_shrunk_the_effective_rows_are_those(small_release):
    gram = small_release.gram.copy()
    gram[0, 0] = 3900.0
    noisy = dataclasses.replace(small_release, gram=gram, schema=filled_schema())
    assert dpgram.regress(noisy, "y").to_dict()["effective_rows"] == 4000
    partly = dataclasses.replace(noisy, schema=small_schema())  # rows with a missing number do not count
    for protected in (dataclasses.replace(noisy, rows=None), dataclasses.replace(noisy, row_bound=1.0), partly):
        assert dpgram.regress(protected, "y").to_dict()["effective_rows"] == 3900


def test_releases_without_an_intercept():
    for neighbours in ("replace", "add-remove"):
        fit = dpgram.regress(released(intercept=False, neighbours=neighbours), "y")
        assert fit.names == ("x", "c[b]", "c[other]", "b")
        assert fit.params["x"] == pytest.approx(2, abs=1.0)
        strictly(fit.to_dict())


def test_a_private_release_is_not_marked(table, schema):
    fit = dpgram.regress(dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise"), "y")
    assert "NOT PRIVATE" not in str(fit.summary()) + repr(fit)
    assert fit.notes == ()


NUMBERS = np.random.default_rng(0)


def simple(columns, table, epsilon, **changes):
    schema = dpgram.Schema(unit="p", columns=columns, **changes)
    return dpgram.release(table, schema, epsilon=epsilon, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)


def check_all(fit):
    strictly(fit.to_dict())
    assert "nan" not in str(fit.summary())
    for method in ("auto", "wald", "fieller"):
        ends = fit.conf_int(method=method)
        assert ((ends[0] <= fit.params) & (fit.params <= ends[1])).all()
    return fit


@pytest.mark.parametrize("epsilon", [1e6, 5.0, 1e-3])
@pytest.mark.parametrize("rows", [1, 3, 2000])
def test_few_rows_and_an_intercept_alone(rows, epsilon):
    check_all(dpgram.regress(simple([dpgram.Numeric("x", 0, 1)], {"x": NUMBERS.random(rows)}, epsilon), "x"))
    check_all(dpgram.regress(released(rows=rows, epsilon=epsilon), "y"))
    check_all(dpgram.regress(released(rows=rows, epsilon=epsilon), "y", ["x"], intercept=False))


@pytest.mark.parametrize("epsilon", [50.0, 0.01])
@pytest.mark.parametrize(("unit", "label"), [(1e-12, 1), (1e12, 1), (1e-12, 1e12), (1e12, 1e-12), (1e-100, 1)])
def test_huge_and_tiny_units_are_only_units(unit, label, epsilon):
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(2, 3000))
    y = 2 * x + z + rng.normal(size=3000)

    def made(u, v):
        columns = [dpgram.Numeric("x", -5 * u, 5 * u), dpgram.Numeric("z", -5, 5), dpgram.Numeric("y", -10 * v, 10 * v)]
        return simple(columns, {"x": x * u, "z": z, "y": y * v}, epsilon)

    fit, plain = check_all(dpgram.regress(made(unit, label), "y")), dpgram.regress(made(1, 1), "y")
    back = np.array([1, unit, 1]) / label
    for what in ("params", "shrunk", "bse"):
        assert getattr(fit, what).to_numpy() * back == pytest.approx(getattr(plain, what).to_numpy(), rel=1e-5, abs=1e-6)
    assert list(fit.pvalues) == pytest.approx(list(plain.pvalues), abs=1e-4)
    frame = {"x": x[:50], "z": z[:50]}
    assert fit.predict({"x": x[:50] * unit, "z": z[:50]}) / label == pytest.approx(plain.predict(frame), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("sd", [0.0, 1e-12, 1e-6])
def test_next_to_no_noise(sd):
    release = dataclasses.replace(noiseless(small_schema()), noise=SymmetricGaussian.orthogonal(sd))
    fit = check_all(dpgram.regress(release, "y"))
    assert list(fit.params) == pytest.approx(ordinary(fit.names)[0], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("estimator", ["shrunk", "debiased", "log-det", "ridge", "lasso"])
@pytest.mark.parametrize("epsilon", [1e4, 1.0])
def test_copied_and_constant_columns(epsilon, estimator):
    a = NUMBERS.normal(size=2000)
    table = {"a": a, "twin": a, "constant": np.ones(2000), "y": 2 * a}
    fit = dpgram.regress(simple([dpgram.Numeric(n, -4, 4) for n in table], table, epsilon), "y", estimator=estimator)
    check_all(fit)
    assert np.isfinite(fit.coefficients).all()


def test_units_that_double_precision_cannot_hold_are_refused_in_words():
    columns = [dpgram.Numeric("x", -1e-290, 1e-290), dpgram.Numeric("y", -1, 1)]
    release = simple(columns, {"x": np.zeros(50), "y": np.zeros(50)}, 1.0)
    for ask in (lambda: dpgram.regress(release, "y"), lambda: dpgram.covariance(release)):
        with pytest.raises(ModelError, match="'x'.*Rescale"):
            ask()


def test_a_p_value_and_its_interval_say_the_same():
    """Zero lies outside an interval of confidence 0.95 where p < 0.05, and there alone."""
    for seed in (3, 5, 20, 37, 46, 49):
        release = dpgram.release(
            small_table(4000, seed), small_schema(), epsilon=0.5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=seed
        )
        for c in dpgram.regress(release, "y").to_dict()["coefficients"].values():
            outside = c["identified"] and not c["lower"] <= 0 <= c["upper"]
            assert outside == (c["p_value"] < 0.05)
