"""diffprivlib's LinearRegression as it is installed: the functional mechanism of Zhang et al. 2012, Laplace noise on every moment.

Guarantee: pure epsilon, by its documentation; neighbours: one row replaced, by its sensitivities. Version 0.6.6 takes the lower bound
twice where the diagonal of X'X needs both, so noise is too small, or absent, unless bounds are symmetric. It is called here in a way
that keeps the promise: the intercept as a column of its own and every column centred to symmetric bounds."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.peers.questions import LABEL_BOUND, Answers, Array, Method, NotInstalledError, Questions, Regression
from benchmarks.peers.shares import pure_share

MISSING = 'diffprivlib is not installed: pip install "dpgram[bench]"'


def available() -> str | None:
    return None if find_spec("diffprivlib") else MISSING


def linear_regression() -> Any:
    """diffprivlib.models.LinearRegression.

    Version 0.6.6 imports two names that scikit-learn 1.8 dropped, for its random forests alone; they are put back for the import."""
    if find_spec("diffprivlib") is None:
        raise NotInstalledError(MISSING)
    import sklearn.tree._tree as trees

    for name in ("DOUBLE", "DTYPE"):
        if not hasattr(trees, name):
            setattr(trees, name, np.float64)
    from diffprivlib.models import LinearRegression

    return LinearRegression


def symmetric(regression: Regression) -> tuple[Array, Array, Array]:
    """(x with indicators moved from {0, 1} to +-1/2, their bounds, the shifts); regressors and the intercept span the same space."""
    shift = np.array([0.5 if "[" in name else 0.0 for name in regression.names])
    return regression.x - shift[:, None], np.where(shift > 0, 0.5, 1.0), shift


def fit(regression: Regression, epsilon: float, seed: int) -> Array:
    x, bound, shift = symmetric(regression)
    model = linear_regression()(
        epsilon=epsilon,
        bounds_X=(-bound, bound),
        bounds_y=(-LABEL_BOUND, LABEL_BOUND),
        fit_intercept=False,
        random_state=seed,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # its minimiser overflows where the noisy quadratic has no minimum
        coefficients = model.fit(x.T, regression.y).coef_.copy()
    coefficients[0] -= shift @ coefficients
    return np.nan_to_num(coefficients, nan=0.0, posinf=1e12, neginf=-1e12)


def answer(questions: Questions, rng: np.random.Generator) -> Answers:
    epsilon = pure_share(questions.budget.epsilon, questions.budget.delta, questions.k)
    return [fit(regression, epsilon, int(rng.integers(2**31))) for regression in questions.asked]


METHOD = Method(
    name="diffprivlib",
    paper="Zhang et al. 2012, diffprivlib 0.6.6",
    cost="pure epsilon per regression, composed by Kairouz, Oh and Viswanath's theorem",
    setting="columns centred to symmetric bounds, the intercept as a column",
    answer=answer,
    available=available,
)
