"""Rows with known coefficients, and estimators that are ready to fit."""

from __future__ import annotations

import numpy as np
import pytest

import dpgram

BOUNDS, TARGET_BOUNDS = ([-2.0, 0.0, -30.0], [2.0, 10.0, 50.0]), (-25.0, 35.0)


@pytest.fixture(scope="session")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns on different scales, some cells beyond the bounds."""
    rng = np.random.default_rng(7)
    base = rng.normal(size=(6000, 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
    X = base * [0.9, 2.0, 15.0] + [0.0, 4.0, 10.0]
    return X, 3 + X @ [2.0, -1.5, 0.25] + rng.normal(size=6000)


@pytest.fixture(scope="session")
def clamped(rows) -> tuple[np.ndarray, np.ndarray]:
    X, y = rows
    return np.clip(X, *BOUNDS), np.clip(y, *TARGET_BOUNDS)


@pytest.fixture
def settings() -> dict:
    return {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}


def all_estimators(**changes) -> list:
    """One of each, with bounds that suit scikit-learn's checks."""
    common = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-10, 10), **changes}
    supervised = {**common, "target_bounds": (-10, 10)}
    return [
        dpgram.PrivateLinearRegression(**supervised),
        dpgram.PrivateRidge(**supervised),
        dpgram.PrivateLasso(**supervised),
        dpgram.PrivatePCA(**common),
        dpgram.PrivateCovariance(**common),
    ]
