"""``lda``: linear discriminant analysis of a categorical or yes-or-no target, from a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgram.analysis.matrices import told
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.discriminant import Classes, classes
from dpgram.regression.design import check_target, check_unit, encoded_parts, feature_places, level_names
from dpgram.report.summary import Summarised, Summary, data_frame
from dpgram.report.yes_no import lda_summary
from dpgram.terms.columns import Boolean, Categorical

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Discriminant(Summarised, Classes):
    """A linear discriminant analysis: shares and means of the classes, scores that classify rows, and error rates.

    ``dpgram.lda`` makes it from a release, and it costs no budget. It prints as a table.

    Attributes
    ----------
    target : str
        Name of the target.
    classes : tuple of str
        Names of the classes. Those of a Boolean column are "0" and "1".
    names : tuple of str
        Names of the features.
    priors : numpy.ndarray
        Share of the rows in each class.
    means : numpy.ndarray
        Means of the features in each class, of shape (classes, features), in own units.
    covariance : numpy.ndarray
        Covariance of the features within classes.
    distance, distance_lower, distance_upper : numpy.ndarray
        Mahalanobis distances between the means of the classes, with confidence intervals.
    error_rate : float
        Share of rows that are put into the wrong class, if features are normal in each class with the same covariance.
    error_interval : tuple of float
        Confidence interval of the error rate.
    confidence : float
        Confidence level of the intervals.
    release : GramRelease
        The release that it was computed from.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> found = dpgram.lda(made, "ward", ["age"])
    >>> found.means[:, 0].round().tolist()
    [30.0, 40.0, 70.0]
    """

    target: str
    classes: tuple[str, ...]
    names: tuple[str, ...]
    confidence: float
    release: GramRelease
    design_effect: float | None

    def predict_proba(self, frame: Any) -> Array:
        """Predict the probability of each class, for new rows.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, or dict of lists
            The rows, as in ``Fit.predict``.

        Returns
        -------
        numpy.ndarray
            Probabilities of shape (rows, classes).

        Raises
        ------
        ModelError
            If the frame lacks a column, or a cell cannot be read.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.lda(made, "ward").predict_proba({"age": [20, 75]}).shape
        (2, 3)
        """
        from dpgram.analysis.frames import encoded_frame  # brings Arrow along, which the classes alone do not need

        schema = self.release.schema
        places = [schema.places[name][0] for name in self.names]
        encoded = [schema.encoded[j] for j in places]
        scaled = encoded_frame(schema, frame, {name for e in encoded for name in e.sources})[:, places]
        own = np.array([e.centre for e in encoded]) + np.array([e.half for e in encoded]) * scaled
        scores = own @ self.coef.T + self.intercept
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        return chance / chance.sum(axis=1, keepdims=True)

    def predict(self, frame: Any) -> Array:
        """Predict the most probable class, for new rows.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, or dict of lists
            The rows, as in ``Fit.predict``.

        Returns
        -------
        numpy.ndarray
            Names of classes.

        Raises
        ------
        ModelError
            If the frame lacks a column, a cell cannot be read, or a row lacks a cell that it needs.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.lda(made, "ward").predict({"age": [20, 75]}).tolist()
        ['a', 'c']
        """
        chance = self.predict_proba(frame)
        if np.isnan(chance).any():
            raise ModelError("some rows lack a cell that the discriminant needs, so they have no class. Leave these rows out.")
        return np.array(self.classes)[np.argmax(chance, axis=1)]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON.

        Returns
        -------
        dict
            Classes, means, coefficients, reference levels, distances with intervals, error rates, the budget, and notes. Infinite
            distances are None.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.lda(made, "ward").to_dict()["classes"]
        ['a', 'b', 'c']
        """
        pairs = [
            {
                "first": self.classes[a],
                "second": self.classes[b],
                "distance": float(self.distance[a, b]),
                "lower": float(self.distance_lower[a, b]),
                "upper": float(upper) if np.isfinite(upper := self.distance_upper[a, b]) else None,
                "error_rate": float(self.pair_errors[a, b]),
            }
            for a in range(len(self.classes))
            for b in range(a + 1, len(self.classes))
        ]
        return {
            "target": self.target,
            "classes": list(self.classes),
            "names": list(self.names),
            "references": self._references(),
            "confidence": self.confidence,
            "priors": self.priors.tolist(),
            "means": self.means.tolist(),
            "covariance": self.covariance.tolist(),
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
            "pairs": pairs,
            "error_rate": self.error_rate,
            "error_interval": list(self.error_interval),
            **told(self.release, self.names, evidence=Evidence.of(self.release).assuming(self.design_effect)),
        }

    def _references(self) -> dict[str, str]:
        """The reference level of the target and of each category among the features, by column."""
        schema = self.release.schema
        used = dict.fromkeys(schema.encoded[schema.places[name][0]].column for name in self.names)
        categories = [column for column in schema.columns if isinstance(column, Categorical) and column.name in used]
        return {self.target: self.classes[0], **{column.name: column.levels[0] for column in categories}}

    def to_frame(self) -> Any:
        """Return the scores of the classes as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per class: its share, its intercept, and its slopes.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> list(dpgram.lda(made, "ward").to_frame().columns)
        ['share', '(intercept)', 'age']
        """
        numbers = {"class": self.classes, "share": self.priors, "(intercept)": self.intercept}
        return data_frame({**numbers, **dict(zip(self.names, self.coef.T, strict=True))}, index="class")

    def summary(self) -> Summary:
        """Summarise classes, scores, distances and error rates in tables.

        Returns
        -------
        Summary
            The tables. They print as text, and as HTML in a notebook.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.lda(made, "ward").summary()).splitlines()[0].strip())
        Private linear discriminant analysis of ward
        """
        return lda_summary(self.to_dict())


def lda(
    release: GramRelease,
    target: str,
    features: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    design_effect: float | None = None,
) -> Discriminant:
    """Compute a linear discriminant analysis from a release.

    It tells classes apart by the features: each class has a linear score, and a row belongs to the class with the largest score. It costs
    no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    target : str
        A categorical column, whose levels are the classes, or a Boolean column.
    features : sequence of str, optional
        The columns that tell the classes apart, as in ``regress``. By default all columns, except those that share a source column with
        the target.
    confidence : float
        Confidence level of the intervals.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance, as in ``regress``.

    Returns
    -------
    Discriminant
        The classes. They print as tables.

    Raises
    ------
    UnknownColumnError
        If the release has no such column.
    ModelError
        If the target is neither categorical nor Boolean, or if the noise hides a class.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Categorical("ward", ["a", "b", "c"])]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> table = {"age": [20, 40, 30, 50, 60, 80] * 8_000, "ward": ["a", "a", "b", "b", "c", "c"] * 8_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> found = dpgram.lda(made, "ward", ["age"])
    >>> found.classes
    ('a', 'b', 'c')
    >>> bool(found.distance[0, 2] > found.distance[0, 1])
    True
    """
    evidence = Evidence.of(release).assuming(design_effect)
    schema = evidence.schema
    if not evidence.intercept:
        raise ModelError("a discriminant needs the intercept column, but the release was made without one.")
    if target not in schema.all_names:
        raise UnknownColumnError(name=str(target), known=schema.all_names)
    column = schema.by_name.get(target)
    if not isinstance(column, Categorical | Boolean):
        raise ModelError(f"{target!r} is neither categorical nor Boolean, so it has no classes. Name a column with levels.")
    check_target(schema, target)
    indicators = encoded_parts(schema, (j for j in schema.places[target] if not schema.encoded[j].absent))
    places = feature_places(schema, features, list(schema.places[target]))
    if not places:
        raise ModelError("a discriminant needs at least one feature. Name one.")
    for j in places:
        check_unit(schema.encoded[j].name, schema.encoded[j].half)
    words = column.levels if isinstance(column, Categorical) else ("0", "1")
    listed = level_names(column) if isinstance(column, Categorical) else tuple(f"{target} = {word}" for word in words)
    found = classes(evidence, indicators, places, listed, confidence)
    names = tuple(schema.encoded[j].name for j in places)
    return Discriminant(
        **vars(found),
        target=target,
        classes=tuple(words),
        names=names,
        confidence=float(confidence),
        release=release,
        design_effect=design_effect,
    )
