"""``regress`` and ``penalty_path``: from a release and the name of a target, or a formula, to fitted models or a path of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dpgram.analysis.compare import Comparison, compare
from dpgram.analysis.fit import Fit
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import Design, Target, design
from dpgram.regression.formula import designs, is_formula
from dpgram.regression.penalised import penalty_path as path_of
from dpgram.report.figures import draw_path, mark
from dpgram.report.summary import Summarised, Summary, data_frame
from dpgram.terms.schema import Schema
from dpgram.terms.words import visible

Array = np.ndarray


class Fits(Summarised, tuple[Fit, ...]):
    """Several fits from one release, as a tuple.

    ``dpgram.regress`` returns it for several targets. It prints as one table with all fits side by side.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> fits = dpgram.regress(made, ["age", "pressure"])
    >>> [fit.target for fit in fits]
    ['age', 'pressure']
    """

    def compare(self) -> Comparison:
        """Put the fits side by side.

        Returns
        -------
        Comparison
            The fits, named by their targets. They are numbered if two fits have the same target.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> list(dpgram.regress(made, ["age", "pressure"]).compare().models)
        ['age', 'pressure']
        """
        by_target = {fit.target: fit for fit in self}
        return compare(by_target if len(by_target) == len(self) else self)  # numbered where two have one target

    def summary(self) -> Summary:
        """Print the fits in one table: a column for each, with standard errors in brackets.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.regress(made, ["age", "pressure"]).summary()).splitlines()[0].strip())
        Private linear regressions
        """
        return self.compare().summary()


def regress(
    release: GramRelease,
    target: Target | Sequence[Target],
    features: Sequence[str] | None = None,
    *,
    estimator: str = "shrunk",
    intervals: str = "auto",
    confidence: float = 0.95,
    intercept: bool | None = None,
    penalty: float | None = None,
    l1_ratio: float | None = None,
    design_effect: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Fit | Fits:
    """Fit linear regressions from a release.

    It needs no rows and costs no budget, so you can fit as many regressions as you like. Coefficients are in the columns' own units. Their
    standard errors and confidence intervals include the privacy noise.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    target : str, dict, or list of these
        The column to explain, or a formula such as ``"arr_delay ~ dep_delay + carrier"``. A dict of columns and weights stands for their
        weighted sum. A list gives one fit for each entry.
    features : sequence of str, optional
        The columns that explain the target. A categorical column stands for all its levels except the reference. A single level is written
        as ``"carrier[AA]"``. By default all columns, except those that share a source column with the target.
    estimator : str
        How ``Fit.estimates`` are computed, which ``Fit.predict`` uses. ``Fit.params`` and the intervals are always debiased.

        - "shrunk" has the smallest expected error at any budget.
        - "debiased" removes the bias that comes from inverting a noisy matrix.
        - "log-det" makes the released matrix positive definite, and then solves.
        - "plain" solves with the matrix as it was released. This fails if the matrix is not positive definite.
        - "ridge", "lasso" and "elastic-net" use a penalty.

    intervals : {"auto", "wald", "fieller", "bootstrap"}
        Method of the confidence intervals. "auto" uses Wald intervals, and Fieller intervals for weakly identified coefficients.
    confidence : float
        Confidence level of the intervals.
    intercept : bool, optional
        Whether to fit an intercept. By default there is one if the release has one.
    penalty : float, optional
        Penalty for "ridge", "lasso" and "elastic-net", like ``alpha`` in scikit-learn. By default it follows from the size of the noise.
    l1_ratio : float, optional
        Mix of the two penalties for "elastic-net", as in scikit-learn. By default 0.5.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance. By default it is the worst case: the number of rows per unit,
        as if all errors of a unit were the same, times a factor for the weights. Use 1 if the errors of a unit's rows are independent.
    progress : callable, optional
        Called with the share of the regressions that are done.

    Returns
    -------
    Fit or Fits
        One fit, or a tuple of fits if there are several targets.

    Raises
    ------
    UnknownColumnError
        If the release has no such column.
    IndefiniteGramError
        If the estimator is "plain" and the released matrix is not positive definite.
    ModelError
        If the regression cannot be fitted for another reason. The message says why.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> fit = dpgram.regress(made, "pressure", ["age"])
    >>> float(fit.params["age"].round(1))
    0.5

    The same regression as a formula:

    >>> dpgram.regress(made, "pressure ~ age").names
    ('(intercept)', 'age')
    """
    schema = Evidence.of(release).schema
    targets = [target] if isinstance(target, str | Mapping) or not isinstance(target, Sequence) else list(target)
    several = targets != [target]
    if not targets:
        raise ModelError("the list of targets is empty. Name at least one target.")
    asked = [each for one in targets for each in asked_designs(schema, one, features, intercept)]
    inference: dict[str, Any] = {"intervals": intervals, "confidence": confidence, "design_effect": design_effect}
    options: dict[str, Any] = {"estimator": estimator, "penalty": penalty, "l1_ratio": l1_ratio, **inference}
    fits = []
    for done, each in enumerate(asked, 1):
        fits.append(Fit(release, each, **options))
        if progress is not None:
            progress(done / len(asked))
    return Fits(fits) if several or len(fits) > 1 else fits[0]


@dataclass(frozen=True, eq=False, repr=False)
class PenaltyPath:
    """Coefficients for a list of penalties, from the largest penalty to the smallest.

    ``dpgram.penalty_path`` makes it from a release.

    Attributes
    ----------
    target : str
        Name of the target.
    names : tuple of str
        Names of the coefficients.
    penalties : numpy.ndarray
        The penalties, of shape (k,).
    coefficients : numpy.ndarray
        The coefficients at each penalty, of shape (k, p), in the columns' own units.
    private : bool
        False if the noise of the release came from a seed.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> path = dpgram.penalty_path(made, "pressure", ["age"], penalties=5)
    >>> path.coefficients.shape
    (5, 2)
    """

    target: str
    names: tuple[str, ...]
    penalties: Array  # (k,)
    coefficients: Array  # (k, p)
    private: bool

    def at(self, penalty: float) -> dict[str, float]:
        """Return the coefficients at the penalty of the path that is nearest to a given one.

        Parameters
        ----------
        penalty : float
            The penalty to look up.

        Returns
        -------
        dict
            The coefficients, by name.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> round(dpgram.penalty_path(made, "pressure", ["age"]).at(0.01)["age"], 1)
        0.5
        """
        place = int(np.argmin(np.abs(np.log(self.penalties / max(penalty, np.finfo(float).tiny)))))
        return dict(zip(self.names, self.coefficients[place].tolist(), strict=True))

    def to_frame(self) -> Any:
        """Return the path as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per penalty, one column per coefficient.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.penalty_path(made, "pressure", ["age"], penalties=5).to_frame().shape
        (5, 2)
        """
        columns = zip(self.names, self.coefficients.T, strict=True)
        return data_frame({"penalty": self.penalties, **dict(columns)}, index="penalty")

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficients against the penalty.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. By default on a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.penalty_path(made, "pressure", ["age"]).plot(Figure().subplots()).get_title()
        'Path of pressure'
        """
        title = f"Path of {self.target}{mark(self.private)}"
        return draw_path(self.names, self.penalties.tolist(), self.coefficients.tolist(), title, ax)

    def __repr__(self) -> str:
        return visible(
            f"PenaltyPath({self.target} ~ {' + '.join(self.names)}, {len(self.penalties)} penalties){mark(self.private)}"
        )


def penalty_path(
    release: GramRelease,
    target: Target,
    features: Sequence[str] | None = None,
    *,
    l1_ratio: float = 1.0,
    penalties: int = 60,
    intercept: bool | None = None,
) -> PenaltyPath:
    """Compute lasso coefficients for many penalties from a release.

    Use it to see in which order features enter the model. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    target : str or dict
        The column to explain, or a formula, as in ``regress``.
    features : sequence of str, optional
        The columns that explain it, as in ``regress``.
    l1_ratio : float
        1 for the lasso. A smaller number gives an elastic net, as in scikit-learn.
    penalties : int
        How many penalties to use. The largest one makes all slopes zero.
    intercept : bool, optional
        Whether to fit an intercept. By default there is one if the release has one.

    Returns
    -------
    PenaltyPath
        The penalties, like ``alpha`` in scikit-learn, and the coefficients at each of them.

    Raises
    ------
    ModelError
        If the path cannot be computed. The message says why.
    MissingExtraError
        If scikit-learn is not installed.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> path = dpgram.penalty_path(made, "pressure", ["age"])
    >>> float(path.coefficients[0, 1])  # at the largest penalty
    0.0
    """
    evidence = Evidence.of(release)
    if isinstance(penalties, bool) or not isinstance(penalties, Integral) or penalties < 1:
        raise ModelError(f"penalties is {penalties!r} and must be a whole number of at least 1.")
    asked = asked_designs(evidence.schema, target, features, intercept)
    if len(asked) > 1:
        raise ModelError("a path has one target, but the formula has several. Write one formula for each target.")
    path = path_of(evidence, asked[0], l1_ratio=l1_ratio, penalties=int(penalties))
    return PenaltyPath(asked[0].target, asked[0].names, *path, private=release.private)


def asked_designs(schema: Schema, target: Target, features: Sequence[str] | None, intercept: bool | None) -> list[Design]:
    """What a target or a formula asks for; a formula may name several targets."""
    if isinstance(target, str) and is_formula(target) and target not in (*schema.encoded_names, *schema.all_names):
        if features is not None or intercept is not None:
            raise ModelError("a formula already says which features and intercept to use. Leave out features and intercept.")
        return designs(schema, target)
    return [design(schema, target, features, intercept)]
