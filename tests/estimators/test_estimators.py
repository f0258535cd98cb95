"""The estimators end to end: right numbers, honest marks, budget accounted for, no row kept and none in a message."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import traceback
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpgram
from dpgram.errors import (
    BudgetError,
    BudgetSpentError,
    DpgramError,
    EmptyTableError,
    LedgerError,
    ModelError,
    NotPrivateWarning,
    RefitWarning,
    RowsShapeError,
    SchemaError,
)
from dpgram.estimators import base
from tests.estimators.conftest import BOUNDS, TARGET_BOUNDS, all_estimators

pytestmark = pytest.mark.filterwarnings(
    "ignore::dpgram.errors.RefitWarning",
    "ignore::dpgram.errors.NotPrivateWarning",
    "ignore::dpgram.errors.UnidentifiedWarning",  # tests/estimators/test_intervals.py is about it
)

LARGE = {"epsilon": 1e5, "delta": 1e-6, "bounds": BOUNDS}  # noise so small that only the treatment of rows is seen
SUPERVISED = [dpgram.PrivateLinearRegression, dpgram.PrivateRidge, dpgram.PrivateLasso]


def regression(settings, **changes) -> dpgram.PrivateLinearRegression:
    return dpgram.PrivateLinearRegression(**{**settings, "target_bounds": TARGET_BOUNDS, **changes})


# The right numbers


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (dpgram.PrivateLinearRegression(), LinearRegression()),
        (dpgram.PrivateRidge(alpha=200.0), Ridge(alpha=200.0)),
        (dpgram.PrivateRidge(alpha=None), LinearRegression()),  # the penalty follows the noise, and there is next to none
        (dpgram.PrivateLasso(alpha=0.3), Lasso(alpha=0.3)),
    ],
)
def test_with_little_noise_they_fit_what_scikit_learn_fits_to_the_clamped_rows(rows, clamped, ours, theirs, intercept):
    ours = clone(ours).set_params(**LARGE, target_bounds=TARGET_BOUNDS, fit_intercept=intercept).fit(*rows)
    theirs = clone(theirs).set_params(fit_intercept=intercept).fit(*clamped)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-3)
    np.testing.assert_allclose(ours.predict(rows[0]), theirs.predict(clamped[0]), atol=2e-2)
    assert ours.score(*rows) > 0.8
    assert ours.private_


def test_several_targets_have_the_shapes_of_scikit_learn(rows):
    X, y = rows
    both = regression(LARGE, target_bounds=([-25.0, -50.0], [35.0, 70.0])).fit(X, np.column_stack([y, 2 * y]))
    alone = regression(LARGE).fit(X, y)
    assert both.coef_.shape == (2, 3)
    assert both.intercept_.shape == (2,)
    assert both.predict(X).shape == (len(X), 2)
    np.testing.assert_allclose(both.coef_, [alone.coef_, 2 * alone.coef_], rtol=5e-3)
    assert isinstance(alone.intercept_, float)
    assert regression(LARGE).fit(X, y[:, None]).predict(X).shape == (len(X), 1)


def test_principal_components(rows, clamped):
    X, _ = rows
    ours, theirs = dpgram.PrivatePCA(2, **LARGE).fit(X), PCA(2).fit(clamped[0])
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(ours.components_ * theirs.components_, axis=1)), 1, atol=1e-4)
    scores = ours.transform(X)
    np.testing.assert_allclose(np.abs(scores), np.abs(theirs.transform(clamped[0])), atol=0.1)
    np.testing.assert_allclose(ours.transform(ours.inverse_transform(scores[:1])), scores[:1], atol=1e-6)
    frame = ours.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == ["privatepca0", "privatepca1"]
    with pytest.raises(RowsShapeError, match="2 columns, one for each component"):
        ours.inverse_transform(X)


def test_covariance(rows, clamped):
    X, _ = rows
    ours = dpgram.PrivateCovariance(**LARGE).fit(X)
    np.testing.assert_allclose(ours.covariance_, np.cov(clamped[0].T), rtol=2e-2, atol=1e-3)
    np.testing.assert_allclose(ours.location_, clamped[0].mean(axis=0), atol=1e-2)
    np.testing.assert_allclose(ours.get_precision() @ ours.covariance_, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(ours.correlation_, np.corrcoef(clamped[0].T), atol=1e-3)
    assert ours.mahalanobis(X).mean() == pytest.approx(3, rel=0.01)
    assert np.isfinite(ours.score(X))


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "wishart-noise", "inverse-wishart"])
def test_a_small_budget_and_any_mechanism_give_finite_numbers(rows, settings, mechanism):
    for kind in SUPERVISED:
        model = kind(**{**settings, "epsilon": 0.01}, target_bounds=TARGET_BOUNDS, mechanism=mechanism).fit(*rows)
        assert np.isfinite(model.coef_).all()
        assert model.release_.mechanism == mechanism
    assert np.isfinite(
        dpgram.PrivateCovariance(**{**settings, "epsilon": 0.01}, mechanism=mechanism).fit(rows[0]).precision_
    ).all()


def test_options_of_the_mechanism(rows, settings):
    model = regression(settings, mechanism="gaussian-noise", mechanism_options={"repair": "psd"}).fit(*rows)
    assert np.linalg.eigvalsh(model.release_.gram)[0] >= -1e-6


# One release, many regressions


def test_the_release_answers_other_regressions(rows, settings):
    ledger = dpgram.SessionLedger(1, 1e-6)
    model = regression(settings, ledger=ledger).fit(*rows)
    assert dpgram.regress(model.release_, "y", ["x0", "x1", "x2"]).coefficients[1:].tolist() == model.coef_.tolist()
    assert set(dpgram.regress(model.release_, "x2", ["x0"]).params.index) == {"(intercept)", "x0"}
    assert len(ledger.entries) == 1


def test_a_penalty_is_varied_at_no_cost(rows, clamped):
    ledger = dpgram.SessionLedger(1e5, 1e-6)
    model = dpgram.PrivateLasso(**LARGE, target_bounds=TARGET_BOUNDS, alpha=0.3, ledger=ledger).fit(*rows)
    model.set_params(alpha=2.0).refit_from_release()
    np.testing.assert_allclose(model.coef_, Lasso(alpha=2.0).fit(*clamped).coef_, rtol=2e-3, atol=2e-3)
    assert len(ledger.entries) == 1
    with pytest.raises(ModelError):
        model.set_params(alpha=-1).refit_from_release()


# Frames and schemas


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(rows, settings, frame):
    X = frame(dict(zip(["age", "dose", "y"], rows[0].T, strict=True)))
    bounds = {"y": (-30, 50), "age": (-2, 2), "dose": (0, 10)}
    model = regression(settings, bounds=bounds, random_state=1).fit(X, rows[1])
    assert model.feature_names_in_.tolist() == ["age", "dose", "y"]
    assert model.schema_.names == ("age", "dose", "y", "y_")  # the target makes way for a feature of its name
    same = regression(settings, random_state=1).fit(*rows)
    np.testing.assert_allclose(model.predict(X), same.predict(rows[0]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["dose", "age", "y"]])
    with pytest.raises(SchemaError, match="must name exactly the columns 'age', 'dose', 'y'"):
        regression(settings, bounds={"age": (0, 1)}).fit(X, rows[1])


def test_the_index_of_a_frame_is_not_looked_at(rows, settings):
    X, y = pd.DataFrame(rows[0], columns=list("abc")), pd.Series(rows[1])
    model = regression(settings, random_state=1)
    straight = model.fit(X, y).coef_
    crossed = model.fit(X.set_axis(range(5, 6005)), y.set_axis(range(6000)[::-1])).coef_
    assert straight.tolist() == crossed.tolist()


def test_a_schema_brings_categories(rows):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": rng.uniform(0, 10, 6000), "sex": rng.choice(["f", "m", "x"], 6000)})
    y = 1 + 2 * X["dose"] + 5 * (X["sex"] == "m")
    dose, sex = dpgram.Numeric("dose", 0, 10), dpgram.Categorical("sex", ["f", "m"], other=True)
    schema = dpgram.Schema(unit="patient", neighbours="add-remove", columns=[sex, dpgram.Numeric("effect", 0, 30), dose])
    model = dpgram.PrivateLinearRegression(epsilon=100, delta=1e-6, bounds=schema).fit(X, y)
    assert model.schema_.names == ("dose", "sex", "effect")
    assert model.schema_.unit == "patient"
    assert model.release_.rows is None
    np.testing.assert_allclose(model.coef_, [2, 5, 0], atol=0.1)
    np.testing.assert_allclose(model.predict(X.head()), y.head(), atol=0.5)
    features = dpgram.Schema(unit="patient", columns=[dose, sex])
    again = dpgram.PrivateLinearRegression(epsilon=100, delta=1e-6, bounds=features, target_bounds=(0, 30), row_bound=1.5)
    assert again.fit(X, y).release_.row_bound == 1.5
    assert dpgram.PrivatePCA(3, epsilon=1, delta=1e-6, bounds=features).fit(X).transform(X).shape == (6000, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target_bounds": (0, 1)}, "the target is declared twice"),
        ({"neighbours": "add-remove"}, "neighbours differs from what the schema declares"),
        ({"row_bound": 1.0}, "row_bound differs from what the schema declares"),
    ],
)
def test_a_schema_and_parameters_must_agree(rows, changes, message):
    columns = [dpgram.Numeric(name, -50, 50) for name in ("x0", "x1", "x2", "y")]
    schema = dpgram.Schema(unit="row", columns=columns, row_bound=1.5)
    with pytest.raises(SchemaError, match=message):
        dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=schema, **changes).fit(*rows)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["x0", "x1", "y"], {}, "'x2', but the schema does not declare it"),
        (["x0", "x1", "x2", "y", "z"], {}, "besides the columns of X, the schema declares 'y', 'z'"),
        (["x0", "x1", "x2", "y"], {"intercept": False}, "Use fit_intercept=False"),
    ],
)
def test_a_schema_must_fit_the_columns(rows, columns, options, message):
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -50, 50) for name in columns], **options)
    with pytest.raises(SchemaError, match=message):
        dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=schema).fit(*rows)


def test_a_categorical_target_is_refused(rows):
    columns = [*(dpgram.Numeric(name, -50, 50) for name in ("x0", "x1", "x2")), dpgram.Categorical("y", ["a", "b"])]
    with pytest.raises(SchemaError, match="'y' is declared categorical"):
        dpgram.PrivateRidge(epsilon=1, delta=1e-6, bounds=dpgram.Schema(unit="row", columns=columns)).fit(*rows)


# What is refused, before anything is spent


@pytest.mark.parametrize(
    "bounds", [None, "data", "auto", "minmax", [(-1, 1)], [-1, 1], np.array([-1, 1]), (1,), max, (min, max), ("a", "b")]
)
@pytest.mark.parametrize("parameter", ["bounds", "target_bounds"])
def test_bounds_must_be_declared(rows, settings, bounds, parameter):
    with pytest.raises(SchemaError, match="never from the data"):
        regression(settings, **{parameter: bounds}).fit(*rows)


@pytest.mark.parametrize("bounds", [(1, -1), ([-1, -1], [1, 1]), (-np.inf, np.inf), (np.nan, 1)])
def test_bounds_must_make_sense(rows, settings, bounds):
    with pytest.raises(SchemaError):
        regression(settings, bounds=bounds).fit(*rows)


@pytest.mark.parametrize(
    ("kind", "changes", "error"),
    [
        (dpgram.PrivateLinearRegression, {"epsilon": None}, BudgetError),
        (dpgram.PrivateLinearRegression, {"delta": None}, BudgetError),
        (dpgram.PrivateLinearRegression, {"estimator": "plain"}, ModelError),
        (dpgram.PrivateLinearRegression, {"fit_intercept": "yes"}, ModelError),
        (dpgram.PrivateLinearRegression, {"random_state": np.random.RandomState(0)}, BudgetError),
        (dpgram.PrivateLinearRegression, {"mechanism": "magic"}, DpgramError),
        (dpgram.PrivateLinearRegression, {"neighbours": "both"}, SchemaError),
        (dpgram.PrivateRidge, {"alpha": -1}, ModelError),
        (dpgram.PrivateLasso, {"alpha": None}, ModelError),
        (dpgram.PrivateLasso, {"l1_ratio": 2}, ModelError),
        (dpgram.PrivateLasso, {"max_iter": 0}, ModelError),
    ],
)
def test_a_parameter_that_cannot_be_used_costs_nothing(rows, settings, kind, changes, error):
    ledger = dpgram.SessionLedger(1, 1e-6)
    with pytest.raises(error):
        kind(**{**settings, "target_bounds": TARGET_BOUNDS, "ledger": ledger, **changes}).fit(*rows)
    assert ledger.entries == ()


@pytest.mark.parametrize("wanted", [0, 4, 0.9, True])
def test_the_number_of_components_is_checked_first(rows, settings, wanted):
    ledger = dpgram.SessionLedger(1, 1e-6)
    with pytest.raises(ModelError, match="from 1 to 3"):
        dpgram.PrivatePCA(wanted, **settings, ledger=ledger).fit(rows[0])
    assert ledger.entries == ()


def test_no_rows_are_refused_only_where_their_number_is_public(settings):
    ledger = dpgram.SessionLedger(1, 1e-6)
    with pytest.raises(EmptyTableError):
        dpgram.PrivateCovariance(**settings, ledger=ledger).fit(np.empty((0, 3)))
    assert ledger.entries == ()
    assert dpgram.PrivateCovariance(**settings, neighbours="add-remove").fit(np.empty((0, 3))).release_.rows is None


@pytest.mark.parametrize(
    ("model", "same"),
    [
        (dpgram.PrivateLinearRegression(), {"estimator": "shrunk"}),
        (dpgram.PrivateRidge(alpha=5.0), {"estimator": "ridge", "penalty": 5.0}),
        (dpgram.PrivateLasso(alpha=0.01), {"estimator": "lasso", "penalty": 0.01}),
    ],
)
def test_wide_bounds_give_the_coefficients_of_the_release(rows, model, same):
    """A release of several rounds learns the scale of columns whose bounds are far too wide, and is in that scale."""
    wide = {"bounds": (-1e5, 1e5), "target_bounds": (-1e5, 1e5), "mechanism": "whitened-noise"}
    model = clone(model).set_params(epsilon=10.0, delta=1e-6, **wide).fit(*rows)
    assert model.release_.schema.learnt
    found = dpgram.regress(model.release_, "y", **same).estimates
    np.testing.assert_allclose([model.intercept_, *model.coef_], list(found), rtol=1e-4)
    np.testing.assert_allclose(model.coef_, [2.0, -1.5, 0.25], atol=0.5)


# Budget


def test_every_fold_spends_and_the_ledger_stops_it(rows, settings):
    ledger = dpgram.SessionLedger(epsilon=1.0, delta=1e-5)
    model = regression(settings, epsilon=0.2, delta=1e-7, ledger=ledger)
    assert clone(model).ledger is ledger
    assert len(cross_val_score(model, *rows, cv=3)) == 3
    assert ledger.spent == (0.6, 3e-7)
    with pytest.raises(BudgetSpentError, match="No further release is possible"):
        cross_val_score(model, *rows, cv=3, error_score="raise")
    assert len(ledger.entries) == 5
    assert "5 releases" in repr(ledger)


def test_every_candidate_of_a_search_spends(rows, settings):
    ledger = dpgram.SessionLedger(epsilon=10, delta=1e-4)
    search = GridSearchCV(
        dpgram.PrivateRidge(**settings, target_bounds=TARGET_BOUNDS, ledger=ledger), {"alpha": [1.0, 100.0]}, cv=2
    )
    search.fit(*rows)
    assert len(ledger.entries) == 2 * 2 + 1
    assert search.best_estimator_.private_


def test_a_pipeline(rows, settings):
    X, y = rows
    ledger = dpgram.SessionLedger(epsilon=2, delta=1e-5)
    scores = {"bounds": (-100, 100), "target_bounds": TARGET_BOUNDS, "epsilon": 1.0, "delta": 1e-6}
    pipeline = make_pipeline(
        FunctionTransformer(lambda rows: rows * 1.0),
        dpgram.PrivatePCA(2, **settings, ledger=ledger),
        dpgram.PrivateLinearRegression(**scores, ledger=ledger),
    )
    assert pipeline.fit(X, y).predict(X).shape == (6000,)
    assert len(ledger.entries) == 2


def test_a_fitted_estimator_is_saved_without_its_account(rows, settings):
    model = regression(settings, ledger=dpgram.SessionLedger(1, 1e-6)).fit(*rows)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.coef_.tolist() == model.coef_.tolist()
    with pytest.raises(LedgerError, match="or loaded from a file"):
        loaded.fit(*rows)


def test_a_ledger_in_other_processes_is_refused_in_our_own_words(rows, settings):
    """joblib's workers: what they raise comes back, and scikit-learn repeats it where it collects failures."""
    ledger = dpgram.SessionLedger(epsilon=10, delta=1e-4)
    model = dpgram.PrivateRidge(**settings, target_bounds=TARGET_BOUNDS, ledger=ledger)
    search = GridSearchCV(model, {"alpha": [1.0, 100.0]}, cv=2, n_jobs=2)
    words = "SessionLedger, which works in one process only.*nothing was released. Use n_jobs=None, or threads"
    with pytest.raises(ValueError, match=f"(?s){words}"):
        search.fit(*rows)
    with pytest.raises(LedgerError, match=words):
        cross_val_score(make_pipeline(FunctionTransformer(), model), *rows, cv=2, n_jobs=2, error_score="raise")
    assert not ledger.entries
    with joblib.parallel_config(backend="threading"):  # what the words advise
        search.fit(*rows)
    assert len(ledger.entries) == 2 * 2 + 1


def test_copies_of_an_estimator_share_its_ledger(rows, settings):
    ledger = dpgram.SessionLedger(epsilon=10, delta=1e-4)
    model = regression(settings, ledger=ledger)
    for made in (copy.copy(model), copy.deepcopy(model), clone(model), copy.deepcopy(model.fit(*rows))):
        assert made.ledger is ledger
    away = pickle.loads(pickle.dumps(clone(model)))
    with pytest.raises(LedgerError, match="or loaded from a file"):
        away.fit(*rows)
    assert len(ledger.entries) == 1
    assert "of another process" in repr(away.ledger)
    assert away.set_params(ledger=ledger).fit(*rows).private_


# Honest marks


@pytest.mark.parametrize("estimator", all_estimators(random_state=0), ids=lambda e: type(e).__name__)
def test_a_seed_marks_the_fit_as_not_private(rows, estimator):
    with pytest.warns(NotPrivateWarning, match="NOT PRIVATE"):
        estimator.fit(*rows)
    assert estimator.private_ is estimator.release_.private is False
    assert "NOT PRIVATE" in repr(estimator)
    assert "NOT PRIVATE" in estimator._repr_html_()
    assert estimator._repr_mimebundle_()["text/html"].startswith("<p><strong>NOT PRIVATE")


@pytest.mark.filterwarnings("error::dpgram.errors.NotPrivateWarning")
@pytest.mark.parametrize("estimator", all_estimators(mechanism="gaussian-noise"), ids=lambda e: type(e).__name__)
def test_without_a_seed_it_is_private_and_two_fits_differ(rows, estimator):
    grams = [estimator.fit(*rows).release_.gram for _ in range(2)]
    assert (grams[0] != grams[1]).all()
    assert estimator.private_
    for shown in (repr(estimator), estimator._repr_html_()):
        assert "NOT PRIVATE" not in shown


def test_the_warning_is_given_once_where_fit_is_called(rows, settings):
    base._announced.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regression(settings).fit(*rows)
        dpgram.PrivatePCA(**settings).fit(rows[0])
    (warning,) = [w for w in caught if w.category is RefitWarning]
    assert warning.filename == __file__
    for words in ("each fold of a cross-validation", "not protected", "spends its epsilon and delta again"):
        assert words in str(warning.message)


def test_a_warning_made_an_error_stops_the_fit_before_it_spends(rows, settings):
    base._announced.clear()
    ledger = dpgram.SessionLedger(1, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RefitWarning):
            dpgram.PrivatePCA(**settings, ledger=ledger).fit(rows[0])
    assert ledger.entries == ()


# Rows stay where they are

CANARY = 31337.25
ODD = 4321  # rows, under ADD_REMOVE, where their number is protected


def hostile() -> dict:
    X, y = np.full((ODD, 3), CANARY), np.full(ODD, CANARY)
    return {
        "one dimension": (X[:, 0], y),
        "three dimensions": (X[:, :, None], y),
        "no features": (X[:, :0], y),
        "one target less": (X, y[:-1]),
        "a target of three dimensions": (X, y[:, None, None]),
        "no target": (X, None),
        "complex": (X + 1j, y),
        "times": (X.astype("datetime64[s]"), y),
        "names twice": (pd.DataFrame(X, columns=["a", "a", "b"]), y),
        "names of two kinds": (pd.DataFrame(X, columns=["a", 0, "b"]), y),
    }


@pytest.mark.parametrize("case", hostile())
def test_errors_carry_no_cell_and_no_number_of_rows(case):
    X, y = hostile()[case]
    model = dpgram.PrivateRidge(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 1), neighbours="add-remove")
    with pytest.raises((DpgramError, TypeError)) as caught:
        model.fit(X, y)
    told = "".join(traceback.format_exception(caught.value, chain=True)).replace(str(CANARY), "SECRET")
    told += str(caught.value.__cause__) + str(caught.value.__context__) + str(caught.value)
    assert "SECRET" not in told.replace(f"{CANARY:g}", "SECRET")
    assert str(ODD) not in str(caught.value)
    assert str(ODD - 1) not in str(caught.value)


@pytest.mark.parametrize("cell", [np.nan, np.inf, -1e308, "Smith", {"name": "Smith"}, None, 1j, "é\udce9"])
def test_no_cell_raises_whatever_it_is(rows, settings, cell):
    X, y = rows[0].astype(object), rows[1].astype(object)
    X[0, 0], y[1] = cell, cell
    model = regression(settings).fit(X, y)
    assert np.isfinite(model.coef_).all()
    is_number = isinstance(cell, float) and np.isfinite(cell)
    for table in (X, X.tolist()[:3]):
        assert np.isfinite(model.predict(table)).tolist() == [is_number, *[True] * (len(table) - 1)]


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_rows_with_a_missing_cell_do_not_count(rows, settings, relation):
    """The same bits as without these rows, whatever says that a cell is missing."""
    X, y = rows
    holes = np.arange(len(X)) % 3 == 0
    with_nan = np.where(holes[:, None] & (np.arange(3) == 1), np.nan, X)
    masked = np.ma.masked_array(X, mask=np.isnan(with_nan))
    target = np.where(np.arange(len(X)) % 5 == 0, np.nan, y)
    left = ~holes & ~np.isnan(target)
    model = regression(settings, random_state=1, neighbours=relation, mechanism="gaussian-noise")
    found = [clone(model).fit(table, target).release_.gram.tolist() for table in (with_nan, masked)]
    wanted = clone(model).fit(X[left], target[left])
    assert found == [wanted.release_.gram.tolist()] * 2
    assert np.isnan(wanted.predict(with_nan)).tolist() == holes.tolist()
    assert wanted.score(with_nan, target) == pytest.approx(wanted.score(X[left], target[left]))
    for kind in (dpgram.PrivatePCA, dpgram.PrivateCovariance):
        fitted = kind(**settings, random_state=1, mechanism="gaussian-noise").fit(with_nan)
        of_each = fitted.transform(with_nan)[:, 0] if kind is dpgram.PrivatePCA else fitted.mahalanobis(with_nan)
        assert np.isnan(of_each).tolist() == holes.tolist()
    assert np.isfinite(fitted.score(with_nan))


def test_a_fitted_estimator_keeps_no_row(settings):
    X = np.full((5000, 3), CANARY)
    for estimator in (regression(settings), dpgram.PrivateCovariance(**settings), dpgram.PrivatePCA(**settings)):
        stored = pickle.dumps(estimator.fit(X, X[:, 0]))
        assert np.float64(CANARY).tobytes() not in stored
        assert len(stored) < 10_000


def test_importing_dpgram_does_not_import_scikit_learn():
    code = "import sys, dpgram, dpgram.curator; dpgram.SessionLedger(1, 1e-6); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import importlib.util as util; util.find_spec = lambda name: None\nimport dpgram; dpgram.PrivatePCA"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'dpgram[sklearn]'" in done.stderr
