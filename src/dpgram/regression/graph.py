"""The graphical lasso: which pairs of columns have a partial correlation, by scikit-learn's solver on the repaired matrix.

Columns are standardised first, so one penalty suits all. The result is positive definite whatever the noise is, because the matrix that
the solver starts from is."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from dpgram.errors import ModelError
from dpgram.regression.moments import Moments
from dpgram.regression.penalised import check_penalty, check_solver

Array = np.ndarray

TOLERANCE, ITERATIONS = (
    1e-4,
    1000,
)  # of the dual gap, as in scikit-learn; its solver stops after 100 steps, which close columns exceed


@dataclass(frozen=True, eq=False)
class Sparse:
    """The penalised precision matrix of standardised columns, and whether the solver reached its tolerance."""

    precision: Array
    converged: bool

    @property
    def partial(self) -> Array:
        """Partial correlations: exactly zero where two columns have no edge."""
        size = np.sqrt(np.diag(self.precision))
        partial = -self.precision / size[:, None] / size
        np.fill_diagonal(partial, 1.0)
        return partial


def graphical_lasso(of: Moments, penalty: float, shown: Array | None = None) -> Sparse:
    """scikit-learn's ``graphical_lasso`` of the correlations, with alpha = ``penalty``. Columns that are not ``shown`` have no edges."""
    check_penalty("penalty", penalty)
    check_solver("the graphical lasso")
    from sklearn.covariance import graphical_lasso as solve
    from sklearn.exceptions import ConvergenceWarning

    places = np.arange(len(of.names)) if shown is None else np.flatnonzero(shown)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is told in words
            _, precision, costs = solve(
                of.correlation[np.ix_(places, places)],
                alpha=float(penalty),
                tol=TOLERANCE,
                max_iter=ITERATIONS,
                return_costs=True,
            )
    except (FloatingPointError, np.linalg.LinAlgError):
        raise ModelError(
            f"the graphical lasso has no solution at penalty={penalty:.3g}, because some columns nearly follow from others. Use a larger "
            f"penalty, or fewer columns."
        ) from None
    whole = np.eye(len(of.names))
    whole[np.ix_(places, places)] = (precision + precision.T) / 2
    return Sparse(whole, penalty == 0 or abs(costs[-1][1]) < TOLERANCE)
