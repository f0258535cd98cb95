"""Private principal components and covariance that take the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.covariance import log_likelihood
from sklearn.utils.validation import check_is_fitted

from dpgram.errors import ModelError, RowsShapeError
from dpgram.estimators.base import PrivateEstimator
from dpgram.estimators.intake import feature_columns
from dpgram.evidence.evidence import Evidence
from dpgram.regression.moments import moments, principal_components

Array = np.ndarray


@dataclass(kw_only=True, repr=False, eq=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Principal components from one private release: scikit-learn's PCA on the clamped rows, but for the noise.

    ``components_``, ``explained_variance_``, ``explained_variance_ratio_`` and ``mean_`` are private; ``n_components`` None keeps all of
    them. ``transform`` maps rows, treated as in ``fit``; its result is those rows in other coordinates and is NOT protected.
    Parameters as in PrivateLinearRegression."""

    n_components: int | None = field(default=None, kw_only=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend (epsilon, delta) on one release of X, and take its components. ``y`` is not looked at."""
        features = feature_columns(self, X, reset=True)
        declared = self._declare(features, {})
        columns = len(declared.coefficients)
        kept = columns if self.n_components is None else self.n_components
        if isinstance(kept, bool) or not isinstance(kept, int | np.integer) or not 1 <= kept <= columns:
            raise ModelError(f"n_components is {kept!r} and must be a whole number from 1 to {columns}, or None for all.")
        of = moments(Evidence.of(self._spend(declared, features, {})), declared.coefficients)
        of_all = principal_components(of)
        variances = of_all.variances * of.rows / max(of.rows - 1, 1.0)  # divisor n - 1, as there
        self.n_components_ = int(kept)
        self.components_ = of_all.loadings[:kept]
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = variances[:kept] / variances.sum()
        self.mean_ = of.mean
        return self

    def transform(self, X: Any) -> Array:
        """The rows of X in the coordinates of the components. NOT protected."""
        return (self._treated(X) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: Any) -> Array:
        """Rows in the columns' own units, from coordinates of the components. As protected as X is."""
        check_is_fitted(self)
        scores = np.asarray(X, dtype=float)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise RowsShapeError(f"X must have two dimensions and {self.n_components_} columns, one for each component.")
        return scores @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateCovariance(PrivateEstimator):
    """Covariance from one private release: scikit-learn's EmpiricalCovariance on the clamped rows, but for the noise.

    ``covariance_``, ``location_``, ``precision_`` and ``correlation_`` are private, and positive definite however large the
    noise. ``score`` and ``mahalanobis`` of rows are NOT protected. Parameters as in PrivateLinearRegression."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend (epsilon, delta) on one release of X, and take its moments. ``y`` is not looked at."""
        features = feature_columns(self, X, reset=True)
        declared = self._declare(features, {})
        of = moments(Evidence.of(self._spend(declared, features, {})), declared.coefficients)
        self.location_ = of.mean
        self.covariance_ = of.covariance
        self.precision_ = of.precision
        self.correlation_ = of.correlation
        return self

    def get_precision(self) -> Array:
        """``precision_``, as in sklearn.covariance."""
        check_is_fitted(self)
        return self.precision_

    def mahalanobis(self, X: Any) -> Array:
        """Squared Mahalanobis distance of each row of X from ``location_``. NOT protected."""
        apart = self._treated(X) - self.location_
        return np.einsum("ij,jk,ik->i", apart, self.precision_, apart)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean Gaussian log-likelihood of the rows of X. NOT protected."""
        apart = self._treated(X) - self.location_
        return float(log_likelihood(apart.T @ apart / max(len(apart), 1), self.precision_))
