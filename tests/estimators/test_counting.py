"""Groups and sample weights: units and weights of the schema, right numbers, and no silent loss of what was promised."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpgram
from dpgram.errors import MechanismError, RowsShapeError, SchemaError
from tests.estimators.conftest import BOUNDS, TARGET_BOUNDS

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.RefitWarning", "ignore::dpgram.errors.NotPrivateWarning")

SETTINGS = {"epsilon": 1e5, "delta": 1e-6, "bounds": BOUNDS, "mechanism": "gaussian-noise"}  # noise that is next to none
MOST = 4


@pytest.fixture(scope="module")
def ids(rows) -> np.ndarray:
    """People of one to a few rows, and one with very many."""
    rng = np.random.default_rng(5)
    return np.where(np.arange(len(rows[0])) % 4 == 0, 0, rng.integers(1, 2000, len(rows[0])))


@pytest.fixture(scope="module")
def weights(rows) -> np.ndarray:
    return np.random.default_rng(6).uniform(0.1, 3.0, len(rows[0]))


def counted(ids: np.ndarray) -> np.ndarray:
    """What a row of each unit counts as."""
    _, place, rows = np.unique(ids, return_inverse=True, return_counts=True)
    return np.minimum(1.0, MOST / rows[place])


def regression(**changes) -> dpgram.PrivateLinearRegression:
    return dpgram.PrivateLinearRegression(**{**SETTINGS, "target_bounds": TARGET_BOUNDS, **changes})


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (dpgram.PrivateLinearRegression(), LinearRegression()),
        (dpgram.PrivateRidge(alpha=200.0), Ridge(alpha=200.0)),
        (dpgram.PrivateLasso(alpha=0.3), Lasso(alpha=0.3)),
    ],
)
def test_weights_do_what_they_do_in_scikit_learn(rows, clamped, weights, ours, theirs):
    ours = clone(ours).set_params(**SETTINGS, target_bounds=TARGET_BOUNDS, largest_weight=3.0)
    found, wanted = ours.fit(*rows, sample_weight=weights), theirs.fit(*clamped, sample_weight=weights)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=2e-3)
    assert (found.schema_.weight, found.schema_.largest_weight) == ("sample_weight", 3.0)
    same = clone(ours).fit(*rows, sample_weight=2.0)
    np.testing.assert_allclose(same.coef_, theirs.fit(*clamped, sample_weight=np.full(len(weights), 2.0)).coef_, rtol=2e-3)


def test_groups_count_as_at_most_so_many_rows(rows, clamped, ids):
    found = regression(rows_per_unit=MOST).fit(*rows, groups=ids)
    wanted = LinearRegression().fit(*clamped, sample_weight=counted(ids))
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=2e-3)
    schema = found.schema_
    assert (schema.unit, schema.unit_id, schema.rows_per_unit) == ("group", "groups", MOST)
    assert (found.release_.units, found.release_.rows) == (len(set(ids)), None)
    text = regression(rows_per_unit=MOST, random_state=1).fit(*rows, groups=[f"p{k}" for k in ids])
    numbers = regression(rows_per_unit=MOST, random_state=1).fit(*rows, groups=pd.Series(ids))
    assert text.release_.gram.tolist() == numbers.release_.gram.tolist()


def test_the_noise_is_that_of_a_whole_group(rows, ids):
    """Seeded, because fresh noise could hide every coefficient by chance, and fit would warn."""
    seeded = {"epsilon": 10.0, "random_state": 1}
    alone = regression(**seeded, rows_per_unit=1).fit(*rows, groups=ids)
    many = regression(**seeded, rows_per_unit=MOST).fit(*rows, groups=ids)
    assert many.release_.noise.sd_off_diagonal == pytest.approx(MOST * alone.release_.noise.sd_off_diagonal, rel=1e-6)


def test_groups_and_weights_together_and_for_components(rows, clamped, ids, weights):
    settings = {**SETTINGS, "rows_per_unit": MOST, "largest_weight": 3.0}
    covariance = dpgram.PrivateCovariance(**settings).fit(rows[0], groups=ids, sample_weight=weights)
    wanted = np.cov(clamped[0].T, aweights=counted(ids) * weights, ddof=0)
    np.testing.assert_allclose(covariance.covariance_, wanted, rtol=2e-2, atol=2e-2)
    first = dpgram.PrivatePCA(1, **settings).fit(rows[0], None, ids, weights).components_[0]
    assert abs(first @ np.linalg.eigh(wanted)[1][:, -1]) == pytest.approx(1, abs=1e-3)


def test_rows_without_a_group_or_a_weight_do_not_count(rows, ids, weights):
    groups = np.where(np.arange(len(ids)) % 2 == 0, None, ids.astype(object))
    there = np.arange(len(ids)) % 2 == 1
    model = regression(rows_per_unit=MOST, random_state=1)
    assert clone(model).fit(*rows, groups=groups).release_.gram.tolist() == (
        clone(model).fit(rows[0][there], rows[1][there], groups=ids[there]).release_.gram.tolist()
    )
    weighed = regression(largest_weight=3.0, random_state=1)
    lost = np.where(there, weights, np.nan)
    assert clone(weighed).fit(*rows, sample_weight=lost).release_.gram.tolist() == (
        clone(weighed).fit(rows[0][there], rows[1][there], sample_weight=weights[there]).release_.gram.tolist()
    )


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, {"groups": True}, "fit got groups, but rows_per_unit is not given"),
        ({"rows_per_unit": 3}, {}, "rows_per_unit is given, but fit got no groups"),
        ({"rows_per_unit": 0}, {"groups": True}, "rows_per_unit is 0 and must be a whole number"),
        ({}, {"sample_weight": True}, "fit got sample_weight, but largest_weight is not given"),
        ({"largest_weight": -1}, {"sample_weight": True}, "largest_weight is -1 and must be a positive number"),
    ],
)
def test_what_is_needed_is_said_before_anything_is_spent(rows, ids, weights, settings, arguments, message):
    ledger = dpgram.SessionLedger(epsilon=2e5, delta=1e-3)
    given = {name: {"groups": ids, "sample_weight": weights}[name] for name in arguments}
    with pytest.raises(SchemaError, match=message):
        regression(**settings, ledger=ledger).fit(*rows, **given)
    assert not ledger.entries


def test_shapes_are_checked_in_words_without_numbers_of_rows(rows, ids):
    model = regression(rows_per_unit=3)
    for groups in (ids[:-1], ids[:, None], pd.Series(ids[1:])):
        with pytest.raises(RowsShapeError, match=r"groups (has 2 dimensions|and X have different numbers of rows)") as caught:
            model.fit(*rows, groups=groups)
        assert str(len(ids)) not in str(caught.value)


def schema_with(**changes) -> dpgram.Schema:
    columns = [dpgram.Numeric(f"x{j}", low, high) for j, (low, high) in enumerate(zip(*BOUNDS, strict=True))]
    return dpgram.Schema(unit="person", columns=[*columns, dpgram.Numeric("y", *TARGET_BOUNDS)], **changes)


def test_a_schema_may_say_it_instead(rows, ids, weights):
    settings = {**SETTINGS, "target_bounds": None, "random_state": 1}
    declared = schema_with(unit_id="who", rows_per_unit=MOST, weight="w", largest_weight=3.0)
    by_schema = regression(**{**settings, "bounds": declared}).fit(*rows, groups=ids, sample_weight=weights)
    by_parameters = regression(**{**settings, "bounds": schema_with()}, rows_per_unit=MOST, largest_weight=3.0)
    by_parameters.fit(*rows, groups=ids, sample_weight=weights)
    assert by_schema.release_.gram.tolist() == by_parameters.release_.gram.tolist()
    assert (by_schema.schema_.unit, by_schema.schema_.unit_id) == ("person", "who")
    with pytest.raises(SchemaError, match="unit_id = 'who', which is no column of X or y"):
        clone(by_schema).fit(*rows, sample_weight=weights)
    with pytest.raises(SchemaError, match="rows_per_unit differs from what the schema declares"):
        clone(by_schema).set_params(rows_per_unit=9).fit(*rows, groups=ids, sample_weight=weights)
    of_x = schema_with(unit_id="x0", rows_per_unit=MOST)
    assert regression(**{**settings, "bounds": of_x}).fit(*rows).release_.units == len(set(rows[0][:, 0]))
    with pytest.raises(SchemaError, match="which is a column of X or y, but fit got groups, too"):
        regression(**{**settings, "bounds": of_x}).fit(*rows, groups=ids)


def test_a_mechanism_that_cannot_protect_groups_refuses(rows, ids):
    with pytest.raises(MechanismError):
        regression(mechanism="wishart-noise", rows_per_unit=3).fit(*rows, groups=ids)


def test_pipelines_cross_validation_and_routing(rows, ids, weights):
    X, y = rows
    model = regression(rows_per_unit=MOST, largest_weight=3.0)
    pipe = make_pipeline(FunctionTransformer(), model)
    pipe.fit(X, y, privatelinearregression__groups=ids, privatelinearregression__sample_weight=weights)
    assert pipe[-1].release_.units == len(set(ids))
    folds = GroupKFold(3)
    scores = cross_val_score(model, X, y, groups=ids, cv=folds, params={"groups": ids, "sample_weight": weights})
    assert (scores > 0.8).all()
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=False)
        given = {"groups": ids, "sample_weight": weights}
        assert (cross_val_score(asked, X, y, cv=folds, params=given) > 0.8).all()
    with pytest.raises(SchemaError, match="rows_per_unit is given, but fit got no groups"):
        cross_val_score(model, X, y, groups=ids, cv=folds, error_score="raise")
    assert clone(model).get_params()["rows_per_unit"] == MOST
