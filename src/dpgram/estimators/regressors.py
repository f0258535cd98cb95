"""Private linear regressions that take the rows themselves: least squares, ridge, lasso.

X and y are clamped to the declared bounds, rows with a missing cell do not count, and one release of all columns pays for the fit.
``coef_`` and ``intercept_`` are computed from the release alone, in the columns' own units. ``predict`` treats new rows as ``fit``
does. Its result, and any score, depends on those rows and is not protected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from dpgram.errors import ModelError
from dpgram.estimators.base import PrivateEstimator
from dpgram.estimators.intake import PerRow, feature_columns, target_columns
from dpgram.estimators.intervals import WithIntervals
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import Design
from dpgram.regression.design import design as design_of
from dpgram.regression.fit import fit_linear
from dpgram.regression.penalised import check_penalty, elastic_net, ridge

Array = np.ndarray

ESTIMATORS = ("shrunk", "debiased", "log-det")  # "plain" may have no answer, and would say so when the budget is spent


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLinearModel(RegressorMixin, MultiOutputMixin, WithIntervals, PrivateEstimator, ABC):
    """A linear model of one or several targets y on X. Subclasses say how coefficients are computed from a release."""

    target_bounds: Any = None
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Make one private release of X and y, and fit the model from it.

        Every call spends epsilon and delta again.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The features.
        y : array, series or data frame
            The target, or several targets as columns.
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
        >>> model = dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4), mechanism="gaussian-noise")
        >>> model.fit(X, X @ [1.0, -2.0]).coef_.round().tolist()
        [1.0, -2.0]
        """
        self._check_parameters()
        features = feature_columns(self, X, reset=True)
        targets, several = target_columns(y, features)
        per_row = PerRow.of(groups, sample_weight, features)
        declared = self._declare(features, targets, per_row, self.target_bounds)
        self._spend(declared, features, targets, per_row)
        self._several_targets = several
        self.refit_from_release()
        self._warn_of_noise()
        return self

    def refit_from_release(self) -> Self:
        """Compute the coefficients again from ``release_``, with the present parameters.

        Use it to try other penalties after one fit. It costs no budget. Parameters of the release, such as the budget, the bounds and the
        mechanism, stay as they were.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateRidge(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4), mechanism="gaussian-noise")
        >>> small = model.fit(X, X @ [1.0, -2.0]).coef_
        >>> bool(abs(model.set_params(alpha=1e6).refit_from_release().coef_[1]) < abs(small[1]))
        True
        """
        check_is_fitted(self)
        self._check_parameters()
        constant = bool(self.fit_intercept)
        coefficients = np.array(self._solve(Evidence.of(self.release_), self._designs))
        coef = coefficients[:, int(constant) :]
        intercept = coefficients[:, 0] if constant else np.zeros(len(coefficients))
        self.coef_ = coef if self._several_targets else coef[0]
        self.intercept_ = intercept if self._several_targets else float(intercept[0])
        return self

    def predict(self, X: Any) -> Array:
        """Predict the target for new rows.

        Cells are clamped to the bounds as in ``fit``. A row that would not count there, because a cell is missing, has no prediction: it is
        NaN. The predictions depend on these rows and are NOT protected.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The features.

        Returns
        -------
        numpy.ndarray
            One prediction per row, or one per row and target.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4), mechanism="gaussian-noise")
        >>> model.fit(X, X @ [1.0, -2.0]).predict([[1.0, -1.0]]).round().tolist()
        [3.0]
        """
        return self._treated(X) @ self.coef_.T + self.intercept_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R-squared of the predictions for rows.

        Rows with a missing cell are left out, as in ``fit``. The result depends on these rows and is NOT protected.

        Parameters
        ----------
        X : array or data frame of shape (rows, columns)
            The features.
        y : array, series or data frame
            The target, or several targets as columns.
        sample_weight : array of shape (rows,), optional
            Weights of the rows.

        Returns
        -------
        float
            R-squared.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4), mechanism="gaussian-noise")
        >>> round(model.fit(X, X @ [1.0, -2.0]).score(X, X @ [1.0, -2.0]), 1)
        1.0
        """
        predicted, known = self.predict(X), np.asarray(y, dtype=float)
        there = np.isfinite(predicted.reshape(len(predicted), -1)).all(axis=1) & np.isfinite(known.reshape(len(known), -1)).all(
            axis=1
        )
        weights = None if sample_weight is None else np.asarray(sample_weight)[there]
        return float(r2_score(known[there], predicted[there], sample_weight=weights))

    @property
    def _designs(self) -> list[Design]:
        """The regression of each target. Columns are scaled as in the release, which may have learnt how."""
        schema, names = self.release_.schema, self._declaration.coefficients
        return [design_of(schema, target, names, bool(self.fit_intercept)) for target in self._declaration.targets]

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
    """Private least squares with the interface of scikit-learn.

    Every ``fit`` makes one private release and spends epsilon and delta. This includes each fold of a cross-validation.

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
    target_bounds : tuple or dict
        Bounds of y, in the same forms. Leave it out if ``bounds`` is a schema that declares y.
    fit_intercept : bool
        Whether to fit an intercept.
    estimator : {"shrunk", "debiased", "log-det"}
        How coefficients are computed from the release, as in ``dpgram.regress``.
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
    coef_ : numpy.ndarray
        Coefficients, in the columns' own units.
    intercept_ : float or numpy.ndarray
        Intercept. It is 0.0 without one.
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
    >>> model = dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4))
    >>> model.fit(X, X @ [1.0, -2.0]).coef_.round().tolist()
    [1.0, -2.0]
    """

    estimator: str = "shrunk"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimator not in ESTIMATORS:
            raise ModelError(f"estimator is {self.estimator!r} and must be one of {', '.join(ESTIMATORS)}.")

    @property
    def _estimator_name(self) -> str:
        return self.estimator

    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        return [fit_linear(evidence, design, self.estimator) for design in designs]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateRidge(PrivateLinearModel):
    """Private ridge regression with the interface of scikit-learn.

    Without noise the coefficients are those of scikit-learn's ``Ridge`` on the clamped rows. Every ``fit`` makes one private release and
    spends epsilon and delta.

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
    target_bounds : tuple or dict
        Bounds of y, in the same forms. Leave it out if ``bounds`` is a schema that declares y.
    fit_intercept : bool
        Whether to fit an intercept.
    alpha : float, optional
        Penalty on the squared coefficients, as in scikit-learn. By default it follows from the size of the privacy noise, and is zero if
        the data stand clearly above the noise.
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
    coef_ : numpy.ndarray
        Coefficients, in the columns' own units.
    intercept_ : float or numpy.ndarray
        Intercept. It is 0.0 without one.
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
    >>> model = dpgram.PrivateRidge(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4), mechanism="gaussian-noise")
    >>> model.fit(X, X @ [1.0, -2.0]).coef_.round().tolist()
    [1.0, -2.0]
    """

    alpha: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha is not None:
            check_penalty("alpha", self.alpha)

    @property
    def _estimator_name(self) -> str:
        return "ridge"

    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        # Weights are divided by the largest one before rows are summed, and scikit-learn's penalty is for weights as they are.
        whole = self.schema_.largest_weight or 1.0
        return [ridge(evidence, design, None if self.alpha is None else self.alpha / whole) for design in designs]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLasso(PrivateLinearModel):
    """Private lasso, or elastic net, with the interface of scikit-learn.

    Without noise the coefficients are those of scikit-learn on the clamped rows. Every ``fit`` makes one private release and spends epsilon
    and delta. The solver works on the release, so ``refit_from_release`` tries another ``alpha`` at no cost.

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
    target_bounds : tuple or dict
        Bounds of y, in the same forms. Leave it out if ``bounds`` is a schema that declares y.
    fit_intercept : bool
        Whether to fit an intercept.
    alpha : float
        Penalty, as in scikit-learn.
    l1_ratio : float
        1 for the lasso. A smaller number gives an elastic net, as in scikit-learn.
    max_iter : int
        Largest number of iterations of the solver.
    tol : float
        Tolerance of the solver.
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
    coef_ : numpy.ndarray
        Coefficients, in the columns' own units.
    intercept_ : float or numpy.ndarray
        Intercept. It is 0.0 without one.
    n_iter_ : int
        Number of iterations of the solver.
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
    >>> model = dpgram.PrivateLasso(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4), alpha=0.01, mechanism="gaussian-noise")
    >>> model.fit(X, X @ [1.0, -2.0]).coef_.round().tolist()
    [1.0, -2.0]
    """

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

    @property
    def _estimator_name(self) -> str:
        return "lasso" if self.l1_ratio == 1 else "elastic-net"

    def _solve(self, evidence: Evidence, designs: list[Design]) -> list[Array]:
        solve = partial(elastic_net, penalty=self.alpha, l1_ratio=self.l1_ratio, max_iter=self.max_iter, tol=self.tol)
        solved = [solve(evidence, design) for design in designs]
        self.n_iter_ = max(iterations for _, iterations in solved)
        return [coefficients for coefficients, _ in solved]
