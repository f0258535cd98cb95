"""Covariances, correlations and principal components from a release, as results to print, plot or convert to a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.moments import MomentErrors, moment_errors
from dpgram.regression.moments import Components, Moments, moments, principal_components
from dpgram.report.figures import draw_matrix, draw_shares, mark
from dpgram.report.summary import (
    Summarised,
    Summary,
    cautions,
    components_summary,
    data_frame,
    matrix_summary,
    origin,
    rows_that_counted,
)
from dpgram.terms.columns import INDICATOR

Array = np.ndarray

KINDS = ("covariance", "correlation", "partial")


@dataclass(frozen=True, eq=False, repr=False)
class Covariance(Summarised, Moments):
    """Means, covariances and correlations of some columns, with standard errors.

    ``dpgram.covariance`` makes it from a release. All numbers are in the columns' own units. It prints as a table.

    Attributes
    ----------
    names : tuple of str
        Names of the columns. A categorical column has one name for each level except the reference.
    rows : float
        Number of rows that counted. It is a noisy estimate if the number of rows is protected, or if a row can count for less than one.
    mean : numpy.ndarray
        Means of the columns.
    covariance : numpy.ndarray
        Covariance matrix. It is positive definite, however large the noise is.
    half : numpy.ndarray
        Half the range of each column, which is one scaled unit.
    release : GramRelease
        The release that it was computed from.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> result = dpgram.covariance(made)
    >>> result.mean.round().tolist()
    [50.0, 115.0]
    """

    release: GramRelease

    @cached_property
    def errors(self) -> MomentErrors:
        """Standard errors of ``mean``, ``covariance`` and ``correlation``. They include the privacy noise and the sampling of rows."""
        return moment_errors(Evidence.of(self.release), self)

    def matrix(self, kind: str = "covariance") -> Array:
        """Return one of the matrices by its name.

        Parameters
        ----------
        kind : {"covariance", "correlation", "partial"}
            Which matrix. "partial" is the correlation of two columns given all the others.

        Returns
        -------
        numpy.ndarray
            The matrix, in the order of ``names``.

        Raises
        ------
        ModelError
            If there is no such kind.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.covariance(made).matrix("correlation").shape
        (2, 2)
        """
        if kind not in KINDS:
            raise ModelError(f"kind is {kind!r} and must be one of {', '.join(KINDS)}.")
        return {"covariance": self.covariance, "correlation": self.correlation, "partial": self.partial_correlation}[kind]

    def to_frame(self, kind: str = "covariance") -> Any:
        """Return one of the matrices as a pandas data frame.

        Parameters
        ----------
        kind : {"covariance", "correlation", "partial"}
            Which matrix, as in ``matrix``.

        Returns
        -------
        pandas.DataFrame
            The matrix, with the names as index and columns.

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
        >>> list(dpgram.covariance(made).to_frame("correlation").columns)
        ['age', 'pressure']
        """
        return data_frame({"": self.names, **dict(zip(self.names, self.matrix(kind).T, strict=True))}, index="")

    def to_dict(self) -> dict[str, Any]:
        """Return all matrices, means and standard errors as plain data, ready for JSON.

        Returns
        -------
        dict
            Names, means, matrices, standard errors, the budget, and notes.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.covariance(made).to_dict()["names"]
        ['age', 'pressure']
        """
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "correlation": self.correlation.tolist(),
            "partial_correlation": self.partial_correlation.tolist(),
            "se_mean": self.errors.mean.tolist(),
            "se_covariance": self.errors.covariance.tolist(),
            "se_correlation": self.errors.correlation.tolist(),
            **told(self.release, self.names),
        }

    def summary(self, kind: str = "covariance") -> Summary:
        """Summarise means, standard deviations and one of the matrices in a table.

        Parameters
        ----------
        kind : {"covariance", "correlation", "partial"}
            Which matrix, as in ``matrix``.

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
        >>> print(str(dpgram.covariance(made).summary("correlation")).splitlines()[0].strip())
        Private correlation
        """
        return matrix_summary(self.to_dict(), kind, self.matrix(kind).tolist())

    def plot(self, kind: str = "correlation", ax: Any = None) -> Any:
        """Draw the correlations as a heat map.

        Parameters
        ----------
        kind : {"correlation", "partial"}
            Which matrix, as in ``matrix``. Covariances have no common scale, so they cannot be drawn.
        ax : matplotlib.axes.Axes, optional
            Where to draw. By default on a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        ModelError
            If the kind cannot be drawn.
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.covariance(made).plot(ax=Figure().subplots()).get_title()
        'Private correlations'
        """
        if kind == "covariance":
            raise ModelError(
                'covariances have no common scale, so they cannot be drawn. Use kind="correlation" or kind="partial".'
            )
        titles = {"correlation": "Private correlations", "partial": "Private partial correlations"}
        return draw_matrix(self.names, self.matrix(kind).tolist(), titles.get(kind, "") + mark(self.release.private), ax)


@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents(Summarised, Components):
    """Principal components of some columns, from the largest variance to the smallest.

    ``dpgram.pca`` makes it from a release. It prints as a table.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    variances : numpy.ndarray
        Variance of each component.
    loadings : numpy.ndarray
        One component per row, each a unit vector over ``names``. Its largest entry in absolute value is positive.
    standardised : bool
        Whether the components are those of the correlations.
    release : GramRelease
        The release that they were computed from.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> components = dpgram.pca(made, standardise=True)
    >>> bool(components.shares[0] > 0.9)
    True
    """

    release: GramRelease

    def to_frame(self) -> Any:
        """Return the components as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per component: its variance, its share of the variance, and its loadings.

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
        >>> list(dpgram.pca(made).to_frame().columns)
        ['variance', 'share', 'age', 'pressure']
        """
        numbers = {"component": range(1, len(self.shares) + 1), "variance": self.variances, "share": self.shares}
        return data_frame({**numbers, **dict(zip(self.names, self.loadings.T, strict=True))}, index="component")

    def to_dict(self) -> dict[str, Any]:
        """Return the components as plain data, ready for JSON.

        Returns
        -------
        dict
            Names, variances, shares, loadings, the budget, and notes.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.pca(made).to_dict()["names"]
        ['age', 'pressure']
        """
        return {
            "names": list(self.names),
            "standardised": self.standardised,
            "variances": self.variances.tolist(),
            "shares": self.shares.tolist(),
            "loadings": self.loadings.tolist(),
            **told(self.release, self.names),
        }

    def summary(self, components: int | None = None) -> Summary:
        """Summarise the first components in a table.

        Parameters
        ----------
        components : int, optional
            How many components to show. By default six, or all if there are fewer.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Raises
        ------
        ModelError
            If the number of components is not valid.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.pca(made).summary(components=1)).splitlines()[0].strip())
        Private principal components (of the covariance, in own units)
        """
        count = 6 if components is None else components
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ModelError(f"components is {components!r} and must be a whole number of at least 1.")
        return components_summary(self.to_dict(), int(count))

    def plot(self, ax: Any = None) -> Any:
        """Draw the share of the variance of each component.

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
        >>> dpgram.pca(made).plot(Figure().subplots()).get_title()
        'Private principal components'
        """
        return draw_shares(self.shares.tolist(), f"Private principal components{mark(self.release.private)}", ax)


def covariance(release: GramRelease, columns: Sequence[str] | None = None) -> Covariance:
    """Compute means, covariances and correlations from a release.

    All numbers are in the columns' own units, with standard errors. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    columns : sequence of str, optional
        The columns to use. A categorical column stands for all its levels except the reference. By default all columns.

    Returns
    -------
    Covariance
        The result. It prints as a table.

    Raises
    ------
    ModelError
        If the release has no such column, or was made without an intercept.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> result = dpgram.covariance(made, ["age", "pressure"])
    >>> result.mean.round().tolist()
    [50.0, 115.0]
    >>> bool(result.correlation[0, 1] > 0.8)
    True
    """
    return Covariance(**vars(moments(Evidence.of(release), columns)), release=release)


def pca(release: GramRelease, columns: Sequence[str] | None = None, *, standardise: bool = False) -> PrincipalComponents:
    """Compute principal components from a release.

    It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    columns : sequence of str, optional
        The columns to use, as in ``covariance``. By default all columns.
    standardise : bool
        Use the correlations instead of the covariances. Do this if columns have different units.

    Returns
    -------
    PrincipalComponents
        The components, from the largest variance to the smallest. They print as a table.

    Raises
    ------
    ModelError
        If the release has no such column, or was made without an intercept.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> dpgram.pca(made, standardise=True).loadings[0].round(2).tolist()
    [0.71, 0.71]
    """
    components = principal_components(moments(Evidence.of(release), columns), standardise=standardise)
    return PrincipalComponents(**vars(components), release=release)


def told(
    release: GramRelease, names: Sequence[str], *, clipping: bool = True, evidence: Evidence | None = None
) -> dict[str, Any]:
    """What every result about these columns says of the release that it comes from, with notes; of clipping where no error counts it."""
    notes, evidence = cautions(release), evidence or Evidence.of(release)
    filled = [column.name for column in release.schema.columns if column.missing == INDICATOR and column.name in names]
    if filled:
        notes.append(
            f"Missing cells of {' and '.join(filled)} count as the middle of the declared bounds, also in means and variances. See "
            f"{' and '.join(f'{name}[missing]' for name in filled)} for how many there are."
        )
    if clipping and evidence.kept is not None:  # whatever share was kept: a few long rows can be much of a variance
        notes.append(
            "Rows far from the others were clipped, so they count for less in means and variances. The standard errors do not include the "
            "bias that this can cause."
        )
    of_rows = {**rows_that_counted(evidence), "design_effect": evidence.design_effect}
    return {**origin(release), **of_rows, "private": release.private, "condition": release.condition or None, "notes": notes}
