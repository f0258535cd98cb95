"""What a fitted regression says of its own uncertainty. All of it is computed from the release and costs no budget."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpgram.analysis.fit import Fit
from dpgram.errors import ModelError, UnidentifiedWarning
from dpgram.regression.design import Design
from dpgram.terms.schema import INTERCEPT

if TYPE_CHECKING:
    from dpgram.report.summary import Summary

Array = np.ndarray


class WithIntervals:
    """Confidence intervals and a summary of a linear model with ``coef_`` and ``intercept_``."""

    release_: Any
    coef_: Array
    intercept_: Any
    fit_intercept: bool

    @property
    def _designs(self) -> list[Design]:
        """The regression of each target."""
        raise NotImplementedError

    @property
    def _estimator_name(self) -> str:
        """What the coefficients are called in a summary."""
        raise NotImplementedError

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Confidence intervals of the coefficients, as statsmodels returns them.

        They include the privacy noise, the sampling of rows, and the clipping of long rows. They are about the coefficients of least
        squares, without a penalty. ``coef_`` is shrunk, or penalised, and can lie outside of its interval. It costs no budget.

        Parameters
        ----------
        alpha : float
            One minus the confidence level. This is not the penalty of a ridge or a lasso.

        Returns
        -------
        numpy.ndarray
            Lower and upper ends, of shape (coefficients, 2): the intercept first if there is one, then the columns of X in their order.
            With several targets, of shape (targets, coefficients, 2). Both ends are infinite if the coefficient is not identified at this
            budget.

        Raises
        ------
        ModelError
            If ``alpha`` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4))
        >>> intervals = model.fit(X, X @ [1.0, -2.0]).conf_int()
        >>> intervals.shape
        (3, 2)
        >>> bool(0.9 < intervals[1, 0] < intervals[1, 1] < 1.1)
        True
        """
        ends = np.array([np.column_stack(fit.ends()) for fit in self._fits(alpha)])
        return ends if self.coef_.ndim > 1 else ends[0]

    def summary(self, target: str | None = None, *, alpha: float = 0.05) -> Summary:
        """Summarise the fit in a table like that of statsmodels.

        It shows the coefficients of least squares with standard errors, tests and confidence intervals, and ``coef_`` beside them. It costs
        no budget.

        Parameters
        ----------
        target : str, optional
            Which target, by its name, such as "y0". Needed if there are several.
        alpha : float
            One minus the confidence level. This is not the penalty of a ridge or a lasso.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Raises
        ------
        ModelError
            If there are several targets and none is named, if there is no such target, or if ``alpha`` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, warnings
        >>> import dpgram
        >>> warnings.simplefilter("ignore", dpgram.DpgramWarning)  # every fit spends budget
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(50_000, 2))
        >>> model = dpgram.PrivateLinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 4))
        >>> print(str(model.fit(X, X @ [1.0, -2.0]).summary()).splitlines()[0].strip())
        Private linear regression of y
        """
        fits = {fit.target: fit for fit in self._fits(alpha)}
        if target is None and len(fits) == 1:
            target = next(iter(fits))
        if target not in fits:
            found = "no target is named" if target is None else f"there is no target {target!r}"
            raise ModelError(f"{found}, but the targets are {', '.join(fits)}. Name one of them.")
        return fits[target].summary()

    def _fits(self, alpha: float) -> list[Fit]:
        """The regression of each target, with the present coefficients."""
        check_is_fitted(self)
        if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0 < alpha < 1:
            raise ModelError(f"alpha is {alpha!r} and must be a number between 0 and 1, such as 0.05 for 95 % intervals.")
        slopes, constants = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        whole = np.column_stack([constants, slopes]) if self.fit_intercept else slopes
        common = {"estimator": self._estimator_name, "confidence": 1 - float(alpha)}
        return [
            Fit(self.release_, design, coefficients=own, **common) for design, own in zip(self._designs, whole, strict=True)
        ]

    def _warn_of_noise(self) -> None:
        """Warn of each target about which the release says nothing."""
        for fit in self._fits(0.05):
            if {*fit.names} - {INTERCEPT} <= {*fit.not_identified}:
                warnings.warn(
                    f"no coefficient of {fit.target!r} is identified at this budget: the noise is so large that the confidence interval of "
                    f"every column is infinite, and coef_ says nothing about the data. Use a larger epsilon, more rows or fewer columns. "
                    f"dpgram.plan forecasts this before anything is spent.",
                    UnidentifiedWarning,
                    stacklevel=3,  # the caller of fit
                )
