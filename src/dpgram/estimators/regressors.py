"""Private linear regressions that take the rows themselves: least squares, ridge, lasso.

Bounds are declared. X and y are clamped to them, missing cells are filled with the midpoint, and one release of all columns pays for the
fit. ``coef_`` and ``intercept_`` are computed from the release alone, in the columns' own units. ``predict`` treats new rows as
``fit`` did; what it returns, and a score, depends on those rows and is not protected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpgram.errors import ModelError
from dpgram.estimators.base import PrivateEstimator
from dpgram.estimators.intake import feature_columns, target_columns
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import Design
from dpgram.regression.design import design as design_of
from dpgram.regression.fit import fit_linear
from dpgram.regression.penalised import check_penalty, elastic_net, ridge

Array = np.ndarray

ESTIMATORS = ("shrunk", "debiased", "log-det")  # "plain" may have no answer, and would say so when the budget is spent


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLinearModel(RegressorMixin, MultiOutputMixin, PrivateEstimator, ABC):
    """A linear model of y, or of several y, on X. Subclasses say how coefficients come from a release."""

    target_bounds: Any = None
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any) -> Self:
        """Spend (epsilon, delta) on one release of X and y, and fit the model from it."""
        self._check_parameters()
        features = feature_columns(self, X, reset=True)
        targets, several = target_columns(y, features)
        self._spend(self._declare(features, targets, self.target_bounds), features, targets)
        self._several_targets = several
        return self.refit_from_release()

    def refit_from_release(self) -> Self:
        """Compute the coefficients again from ``release_``, with the parameters as they are now. Costs no budget.

        So a penalty can be varied after one fit: ``model.set_params(alpha=0.1).refit_from_release()``. What the release was made
        with (budget, bounds, mechanism) stays as it was."""
        check_is_fitted(self)
        self._check_parameters()
        constant = bool(self.fit_intercept)
        names = self._declaration.coefficients
        designs = [design_of(self.schema_, target, names, constant) for target in self._declaration.targets]
        coefficients = np.array(self._solve(Evidence.of(self.release_), designs))
        coef = coefficients[:, int(constant) :]
        intercept = coefficients[:, 0] if constant else np.zeros(len(coefficients))
        self.coef_ = coef if self._several_targets else coef[0]
        self.intercept_ = intercept if self._several_targets else float(intercept[0])
        return self

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of X, which are clamped to the bounds and filled as in ``fit``. Not protected."""
        return self._treated(X) @ self.coef_.T + self.intercept_

    def _check_parameters(self) -> None:
        """Raise for a parameter that could not be used after the budget was spent."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ModelError(f"fit_intercept is {self.fit_intercept!r} and must be True or False.")

    @abstractmethod
    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        """The coefficients of each design, in own units."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # no useful budget gives R2 > 0.5 on scikit-learn's 200 rows of 10 columns
        return tags


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLinearRegression(PrivateLinearModel):
    """Least squares from one private release.

    ``epsilon``, ``delta``, ``bounds`` and ``target_bounds`` have no usable default: all are the custodian's choice, and the
    bounds must not come from the data. ``bounds`` is (lower, upper), in numbers or in one number per column, a dict of
    such pairs by name, or a dpgram.Schema; ``target_bounds`` likewise for y. ``neighbours`` is "replace" (when left out)
    or "add-remove", which protects the number of rows too. ``random_state`` None is the operating system's secure source;
    a number makes the fit NOT PRIVATE. ``ledger`` keeps account of what fits have spent. ``estimator`` is the point
    estimate, as in dpgram.regress. Every fit spends again, each fold of a cross-validation included.

    >>> import numpy as np, warnings
    >>> warnings.simplefilter("ignore")
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(50_000, 2))
    >>> model = PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4))
    >>> model.fit(X, X @ [1.0, -2.0]).coef_.round()
    array([ 1., -2.])
    """

    estimator: str = "shrunk"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimator not in ESTIMATORS:
            raise ModelError(f"estimator is {self.estimator!r} and must be one of {', '.join(ESTIMATORS)}.")

    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        return [fit_linear(evidence, design, self.estimator) for design in designs]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateRidge(PrivateLinearModel):
    """Ridge regression from one private release: scikit-learn's Ridge on the clamped rows, but for the noise.

    ``alpha`` penalises the coefficients in own units, as there. None adds, in scaled units (every column's bounds at
    -1 and 1), what the smallest eigenvalue lacks to the size of the privacy noise: a fair choice when nothing is known. Other parameters as
    in PrivateLinearRegression."""

    alpha: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha is not None:
            check_penalty("alpha", self.alpha)

    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        return [ridge(evidence, design, self.alpha) for design in designs]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLasso(PrivateLinearModel):
    """Lasso, or an elastic net when ``l1_ratio`` < 1, from one private release: scikit-learn's on the clamped rows, but for
    the noise.

    ``alpha``, ``l1_ratio``, ``max_iter`` and ``tol`` mean what they mean there. The solver works on the release, so alpha may be
    changed at no cost: see ``refit_from_release``. Other parameters as in PrivateLinearRegression."""

    alpha: float = 1.0
    l1_ratio: float = 1.0
    max_iter: int = 10_000
    tol: float = 1e-6

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalty("alpha", self.alpha)
        check_penalty("l1_ratio", self.l1_ratio, most=1.0)
        check_penalty("tol", self.tol)
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise ModelError(f"max_iter is {self.max_iter!r} and must be a whole number of at least 1.")

    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        solve = partial(elastic_net, penalty=self.alpha, l1_ratio=self.l1_ratio, max_iter=self.max_iter, tol=self.tol)
        solved = [solve(evidence, design) for design in designs]
        self.n_iter_ = max(iterations for _, iterations in solved)
        return [coefficients for coefficients, _ in solved]
