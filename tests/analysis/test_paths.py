"""Paths of penalties: scikit-learn's where noise is nil."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

import dpgram
from dpgram.errors import ModelError
from tests.conftest import small_schema
from tests.regression.test_regress import columns_in_own_units, noiseless


@pytest.fixture(scope="module")
def exact():
    return noiseless(small_schema())


@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
def test_a_path_is_scikit_learns_when_noise_is_nil(exact, l1_ratio):
    path = dpgram.penalty_path(exact, "y", l1_ratio=l1_ratio, penalties=10)
    own = columns_in_own_units()
    x, y = np.column_stack([own[name] for name in path.names[1:]]), own["y"]
    assert path.coefficients.shape == (10, 5)
    for k in (0, 3, 6, 9):
        model = ElasticNet(alpha=path.penalties[k], l1_ratio=l1_ratio, tol=1e-10, max_iter=100_000).fit(x, y)
        assert path.coefficients[k] == pytest.approx([model.intercept_, *model.coef_], rel=1e-2, abs=2e-3)
    assert (path.coefficients[0, 1:] == 0).all()
    assert (np.diff(path.penalties) < 0).all()


def test_a_path_as_a_frame_and_by_penalty(exact):
    path = dpgram.penalty_path(exact, "y ~ x + b", penalties=7)
    frame = path.to_frame()
    assert frame.columns.tolist() == ["(intercept)", "x", "b"]
    assert frame.index.tolist() == path.penalties.tolist()
    assert path.at(path.penalties[3] * 1.01) == frame.iloc[3].to_dict()
    assert path.at(0) == frame.iloc[-1].to_dict()
    assert path.at(1e9) == frame.iloc[0].to_dict()
    assert repr(path) == "PenaltyPath(y ~ (intercept) + x + b, 7 penalties) (NOT PRIVATE)"
    assert path.target == "y"


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("y", {"features": []}, "needs a feature besides the intercept"),
        ("y", {"l1_ratio": 0}, "l1_ratio is 0"),
        ("y", {"l1_ratio": 2}, "l1_ratio is 2 and must be a finite number of at least 0 and at most 1"),
        ("y", {"penalties": 0}, "penalties is 0 and must be a whole number of at least 1"),
        ("y", {"penalties": 2.5}, "penalties is 2.5 and must be a whole number"),
        ("y ~ x", {"features": ["x"]}, "Leave out features and intercept"),
        ("y ~ x", {"intercept": False}, "Leave out features and intercept"),
    ],
)
def test_paths_that_cannot_be(exact, target, options, message):
    with pytest.raises(ModelError, match=message):
        dpgram.penalty_path(exact, target, **options)


def test_a_path_needs_a_release():
    with pytest.raises(ModelError, match="release is a str and must be a GramRelease"):
        dpgram.penalty_path("release.json", "y")


def test_a_path_from_noise_alone(small_release):
    drowned = dpgram.release({n: np.zeros(10) for n in ("x", "y", "b")} | {"c": ["a"] * 10}, small_schema(), epsilon=0.01,
                             delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)  # fmt: skip
    assert np.isfinite(dpgram.penalty_path(drowned, "y").coefficients).all()
    assert np.isfinite(dpgram.penalty_path(small_release, {"y": 1, "x": 2}, ["c"], intercept=False).coefficients).all()
