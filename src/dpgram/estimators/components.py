"""Private principal components and covariance that take the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.covariance import log_likelihood
from sklearn.utils.validation import check_is_fitted

from dpgram.analysis.matrices import covariance, pca
from dpgram.errors import ModelError, RowsShapeError
from dpgram.estimators.base import PrivateEstimator
from dpgram.estimators.intake import PerRow, feature_columns
from dpgram.evidence.evidence import Evidence
from dpgram.regression.moments import moments, principal_components
from dpgram.report.summary import Summary

Array = np.ndarray


@dataclass(kw_only=True, repr=False, eq=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Private principal components with the interface of scikit-learn.

    Without noise the components are those of scikit-learn's ``PCA`` on the clamped rows. Every ``fit`` makes one private release and spends
    epsilon and delta.

    Parameters
    ----------
    n_components : int, optional
        How many components to keep. By default all.
    epsilon : float
        Epsilon of the privacy budget of one fit. It has no default, because the choice is yours.
    delta : float
        Delta of the privacy budget. Choose it well below 1/(number of rows). It has no default either.
    bounds : tuple, dict or Schema
        Bounds of the columns of X: (lower, upper) as two numbers or as two sequences with one number per column, or a dict of such
        pairs by column name, or a ``dpgram.Schema``. Take them from the domain, never from the data. Cells are clamped to them.
        A row with a missing cell does not count, unless a schema says otherwise.
    mechanism : str
        Name of the mechanism. "auto" takes the one that ``dpgram.plan`` expects to be best.
    mechanism_options : dict, optional
        Options of the mechanism.
    neighbours : {"replace", "add-remove"}, optional
        Which tables the guarantee makes hard to tell apart. "add-remove" protects the number of rows too. By default "replace".
    row_bound : float, optional
        Largest norm of an encoded row, in scaled units. Longer rows are clipped to it.
    rows_per_unit : int, optional
        How many rows of one group count in full. It is needed if ``fit`` gets ``groups``. If a group has more rows, all of them count, each
        with less weight.
    largest_weight : float, optional
        The largest weight that a row can have. It is needed if ``fit`` gets ``sample_weight``. Noise is added as if every row had it.
    random_state : int, optional
        Seed for tests. A fit with a seed is NOT PRIVATE. By default the noise comes from the operating system's secure source.
    ledger : Ledger, optional
        Ledger that keeps the total of all fits within a budget.

    Attributes
    ----------
    components_ : numpy.ndarray
        One component per row.
    explained_variance_ : numpy.ndarray
        Variance of each component.
    explained_variance_ratio_ : numpy.ndarray
        Share of the total variance of each component.
    mean_ : numpy.ndarray
        Means of the columns.
    n_components_ : int
        Number of components that were kept.
    release_ : GramRelease
        The private release. Every other regression on these columns can be computed from it at no cost.
    private_ : bool
        False if ``random_state`` was set. The fit then protects nobody.
    schema_ : Schema
        What was declared, with the names of the columns.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> import dpgram
    >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
    >>> model = dpgram.PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
    >>> abs(model.fit(X * [1.0, 0.1]).components_).round().tolist()
    [[1.0, 0.0]]
    """

    n_components: int | None = field(default=None, kw_only=False)

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Make one private release of X, and compute its components from it.

        Every call spends epsilon and delta again.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The rows.
        y : ignored
            Not used.
        groups : array of shape (rows,), optional
            Whose row each one is, such as the ids of people. The release then protects all rows of a group together. Rows without a group
            do not count.
        sample_weight : array of shape (rows,), optional
            Weights of the rows. One that is larger than ``largest_weight`` counts as that. Rows with a negative weight or none do not
            count.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        SchemaError
            If the bounds are missing or do not fit the columns, or if ``rows_per_unit`` or ``largest_weight`` is needed.
        BudgetError
            If epsilon, delta or random_state is missing or out of range.
        BudgetSpentError
            If not enough budget is left in the ledger.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> model.fit(X).n_components_
        1
        """
        features = feature_columns(self, X, reset=True)
        per_row = PerRow.of(groups, sample_weight, features)
        declared = self._declare(features, {}, per_row)
        columns = len(declared.coefficients)
        kept = columns if self.n_components is None else self.n_components
        if isinstance(kept, bool) or not isinstance(kept, int | np.integer) or not 1 <= kept <= columns:
            raise ModelError(f"n_components is {kept!r} and must be a whole number from 1 to {columns}, or None for all.")
        of = moments(Evidence.of(self._spend(declared, features, {}, per_row)), declared.coefficients)
        of_all = principal_components(of)
        variances = of_all.variances * of.rows / max(of.rows - 1, 1.0)  # divisor n - 1, as there
        self.n_components_ = int(kept)
        self.components_ = of_all.loadings[:kept]
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = variances[:kept] / variances.sum()
        self.mean_ = of.mean
        return self

    def summary(self) -> Summary:
        """Summarise the components in a table. It costs no budget.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> print(str(model.fit(X).summary()).splitlines()[0].strip())
        Private principal components (of the covariance, in own units)
        """
        check_is_fitted(self)
        return pca(self.release_, self._declaration.coefficients).summary(self.n_components_)

    def transform(self, X: Any) -> Array:
        """Express rows in the coordinates of the components.

        Cells are clamped to the bounds as in ``fit``. A row that would not count there, because a cell is missing, is NaN. The result
        depends on these rows and is NOT protected.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The rows.

        Returns
        -------
        numpy.ndarray
            One row per row of X, one column per component.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> model.fit(X).transform(X).shape
        (50000, 1)
        """
        return (self._treated(X) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: Any) -> Array:
        """Convert coordinates of the components back to the columns' own units.

        Parameters
        ----------
        X : array of shape (rows, components)
            Coordinates, as ``transform`` returns them. The result is protected only if they are.

        Returns
        -------
        numpy.ndarray
            The rows in the columns' own units.

        Raises
        ------
        RowsShapeError
            If X does not have one column per component.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivatePCA(1, epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> model.fit(X).inverse_transform([[0.5]]).shape
        (1, 2)
        """
        check_is_fitted(self)
        scores = np.asarray(X, dtype=float)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise RowsShapeError(f"X must have two dimensions, and {self.n_components_} columns, one for each component.")
        return scores @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateCovariance(PrivateEstimator):
    """Private covariance with the interface of scikit-learn.

    Without noise the covariance is that of scikit-learn's ``EmpiricalCovariance`` on the clamped rows. It is positive definite, however
    large the noise is. Every ``fit`` makes one private release and spends epsilon and delta.

    Parameters
    ----------
    epsilon : float
        Epsilon of the privacy budget of one fit. It has no default, because the choice is yours.
    delta : float
        Delta of the privacy budget. Choose it well below 1/(number of rows). It has no default either.
    bounds : tuple, dict or Schema
        Bounds of the columns of X: (lower, upper) as two numbers or as two sequences with one number per column, or a dict of such
        pairs by column name, or a ``dpgram.Schema``. Take them from the domain, never from the data. Cells are clamped to them.
        A row with a missing cell does not count, unless a schema says otherwise.
    mechanism : str
        Name of the mechanism. "auto" takes the one that ``dpgram.plan`` expects to be best.
    mechanism_options : dict, optional
        Options of the mechanism.
    neighbours : {"replace", "add-remove"}, optional
        Which tables the guarantee makes hard to tell apart. "add-remove" protects the number of rows too. By default "replace".
    row_bound : float, optional
        Largest norm of an encoded row, in scaled units. Longer rows are clipped to it.
    rows_per_unit : int, optional
        How many rows of one group count in full. It is needed if ``fit`` gets ``groups``. If a group has more rows, all of them count, each
        with less weight.
    largest_weight : float, optional
        The largest weight that a row can have. It is needed if ``fit`` gets ``sample_weight``. Noise is added as if every row had it.
    random_state : int, optional
        Seed for tests. A fit with a seed is NOT PRIVATE. By default the noise comes from the operating system's secure source.
    ledger : Ledger, optional
        Ledger that keeps the total of all fits within a budget.

    Attributes
    ----------
    covariance_ : numpy.ndarray
        Covariance matrix.
    location_ : numpy.ndarray
        Means of the columns.
    precision_ : numpy.ndarray
        Inverse of the covariance matrix.
    correlation_ : numpy.ndarray
        Correlation matrix.
    release_ : GramRelease
        The private release. Every other regression on these columns can be computed from it at no cost.
    private_ : bool
        False if ``random_state`` was set. The fit then protects nobody.
    schema_ : Schema
        What was declared, with the names of the columns.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> import dpgram
    >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
    >>> model = dpgram.PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
    >>> model.fit(X).covariance_.diagonal().round(1).tolist()
    [0.3, 0.3]
    """

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Make one private release of X, and compute its means and covariances from it.

        Every call spends epsilon and delta again.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The rows.
        y : ignored
            Not used.
        groups : array of shape (rows,), optional
            Whose row each one is, such as the ids of people. The release then protects all rows of a group together. Rows without a group
            do not count.
        sample_weight : array of shape (rows,), optional
            Weights of the rows. One that is larger than ``largest_weight`` counts as that. Rows with a negative weight or none do not
            count.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        SchemaError
            If the bounds are missing or do not fit the columns, or if ``rows_per_unit`` or ``largest_weight`` is needed.
        BudgetError
            If epsilon, delta or random_state is missing or out of range.
        BudgetSpentError
            If not enough budget is left in the ledger.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> model.fit(X).location_.shape
        (2,)
        """
        features = feature_columns(self, X, reset=True)
        per_row = PerRow.of(groups, sample_weight, features)
        declared = self._declare(features, {}, per_row)
        of = moments(Evidence.of(self._spend(declared, features, {}, per_row)), declared.coefficients)
        self.location_ = of.mean
        self.covariance_ = of.covariance
        self.precision_ = of.precision
        self.correlation_ = of.correlation
        return self

    def summary(self, kind: str = "covariance") -> Summary:
        """Summarise means, standard deviations and one of the matrices in a table, with standard errors. It costs no budget.

        Parameters
        ----------
        kind : {"covariance", "correlation", "partial"}
            Which matrix. "partial" is the correlation of two columns given all the others.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Raises
        ------
        ModelError
            If there is no such kind.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> print(str(model.fit(X).summary("correlation")).splitlines()[0].strip())
        Private correlation
        """
        check_is_fitted(self)
        return covariance(self.release_, self._declaration.coefficients).summary(kind)

    def get_precision(self) -> Array:
        """Return the inverse of the covariance matrix.

        Returns
        -------
        numpy.ndarray
            ``precision_``.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> model.fit(X).get_precision().shape
        (2, 2)
        """
        check_is_fitted(self)
        return self.precision_

    def mahalanobis(self, X: Any) -> Array:
        """Squared Mahalanobis distance of each row from ``location_``.

        It is NaN for a row that would not count in ``fit``, because a cell is missing. The result depends on these rows and is NOT
        protected.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The rows.

        Returns
        -------
        numpy.ndarray
            One distance per row.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> model.fit(X).mahalanobis(X).shape
        (50000,)
        """
        apart = self._treated(X) - self.location_
        return np.einsum("ij,jk,ik->i", apart, self.precision_, apart)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean Gaussian log-likelihood of rows.

        Rows that would not count in ``fit``, because a cell is missing, are left out. The result depends on these rows and is NOT
        protected.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The rows.
        y : ignored
            Not used.

        Returns
        -------
        float
            The mean log-likelihood.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateCovariance(epsilon=1, delta=1e-6, bounds=(-1, 1), mechanism="gaussian-noise")
        >>> bool(model.fit(X).score(X) < 0)
        True
        """
        apart = self._treated(X) - self.location_
        apart = apart[~np.isnan(apart).any(axis=1)]
        return float(log_likelihood(apart.T @ apart / max(len(apart), 1), self.precision_))
