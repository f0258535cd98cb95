"""``logit``: coefficients of a logit for a yes-or-no target, from a release, by the discriminant route."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dpgram.analysis.fit import Fit, confidence_of
from dpgram.analysis.regress import asked_designs
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import Intervals, check_confidence
from dpgram.inference.logit import Logistic, intervals, logistic, probabilities
from dpgram.inference.pivot import p_value
from dpgram.regression.design import Design, Target, in_own_units, mirrored_indicator, yes_or_no
from dpgram.report.figures import draw_logit
from dpgram.report.summary import (
    Summarised,
    Summary,
    coefficient_rows,
    data_frame,
    labelled,
    labelled_ends,
    origin,
    rows_that_counted,
)
from dpgram.report.yes_no import logit_summary
from dpgram.terms.schema import INTERCEPT, Schema

Array = np.ndarray

RARE = 0.1  # of the rows: with fewer on one side, groups have seldom the same covariance
FAR = 2.0  # Mahalanobis' distance of the groups: beyond it the logit depends much on normal tails


class Logit(Summarised):
    """A fitted logit, with standard errors and confidence intervals that include the privacy noise.

    ``dpgram.logit`` makes it from a release, and it costs no budget. Coefficients come from the linear regression of the 0/1 target
    (Haggstrom 1983). They are those of a logit if the features are normal in both groups, with the same covariance. Elsewhere they are an
    approximation: docs/yes-no.md shows how good it is. It prints as a table.

    Attributes
    ----------
    release : GramRelease
        The release that it was computed from.
    linear : Fit
        The linear probability model that it was computed from.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
    >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> fit = dpgram.logit(made, "ill ~ age")
    >>> bool(fit.params["age"] > 0)
    True
    """

    def __init__(self, release: GramRelease, design: Design, *, confidence: float, design_effect: float | None):
        self.release, self.design, self.confidence = release, design, check_confidence(confidence)
        self.linear = Fit(release, design, confidence=self.confidence, design_effect=design_effect)
        self._evidence = Evidence.of(release).assuming(design_effect)
        self._made: Logistic = logistic(self._evidence, design)

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.design.target

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, in order."""
        return self.design.names

    @property
    def params(self) -> Any:
        """Coefficients by name: by how much the log odds change if a feature is larger by one unit."""
        return self._named(self._made.estimate)

    @property
    def odds_ratios(self) -> Any:
        """By what the odds are multiplied if a feature is larger by one unit, by name. The intercept is left out."""
        slopes = [place for place, name in enumerate(self.names) if name != INTERCEPT]
        return labelled([self.names[place] for place in slopes], np.exp(self._made.estimate[slopes]))

    @property
    def share(self) -> float:
        """Share of the rows where the target is 1."""
        return self._made.share

    @property
    def bse(self) -> Any:
        """Standard errors, by name. They include the privacy noise, the sampling of rows, and the clipping of long rows."""
        return self._named(np.sqrt(np.diag(self._made.covariance)))

    def cov_params(self) -> Array:
        """Covariance matrix of ``params``.

        Returns
        -------
        numpy.ndarray
            Matrix of shape (p, p), in the order of ``names``.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.logit(made, "ill ~ age").cov_params().shape
        (2, 2)
        """
        return self._made.covariance

    @cached_property
    def pvalues(self) -> Any:
        """P-values of the tests that each coefficient is zero, by name.

        A slope is zero if it is zero in the linear probability model, so its p-value is the one that ``regress`` has.
        """
        z = self._made.estimate[0] / np.sqrt(self._made.covariance[0, 0])
        tested = {**dict(self.linear.pvalues), INTERCEPT: p_value(float(z) ** 2, 1, self.linear.channel.degrees)}
        unknown = self.not_identified  # their intervals contain zero
        ps = [max(tested[name], 1 - self.confidence) if name in unknown else tested[name] for name in self.names]
        return self._named(np.array(ps))

    def conf_int(self, alpha: float | None = None, *, confidence: float | None = None) -> Any:
        """Confidence intervals of ``params``.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level. By default that of the fit.
        confidence : float, optional
            The confidence level, instead of ``alpha``.

        Returns
        -------
        pandas.DataFrame
            Lower ends in column 0 and upper ends in column 1, one row for each coefficient. Both are infinite if the coefficient is not
            identified at this budget. Without pandas, a dict of pairs.

        Raises
        ------
        ModelError
            If the confidence level is not valid, or if both ``alpha`` and ``confidence`` are given.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.logit(made, "ill ~ age")
        >>> lower, upper = fit.conf_int(alpha=0.01).loc["age"]
        >>> bool(lower < fit.params["age"] < upper)
        True
        """
        made = self._intervals(confidence if alpha is None else confidence_of(alpha, confidence))
        return labelled_ends(self.names, made.lower, made.upper)

    def _intervals(self, confidence: float | None = None) -> Intervals:
        level = self.confidence if confidence is None else check_confidence(confidence)
        return intervals(self.linear.channel, self._made, level)

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Names of the coefficients about which the release says nothing at this budget. Their intervals are infinite."""
        return tuple(n for n, known in zip(self.names, self._intervals().identified, strict=True) if not known)

    def predict(self, frame: Any, *, interval: bool = False, confidence: float | None = None) -> Any:
        """Predict the probability that the target is 1, for new rows.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, or dict of lists
            The rows, as in ``Fit.predict``. Columns that the model does not use can be left out.
        interval : bool
            Also return confidence intervals of the probabilities.
        confidence : float, optional
            Confidence level of the intervals. By default that of the fit.

        Returns
        -------
        numpy.ndarray or dict of numpy.ndarray
            The probabilities. With intervals, a dict with ``probability``, ``lower`` and ``upper``. The ends are 0 and 1 where the
            release says nothing.

        Raises
        ------
        ModelError
            If the frame lacks a column, or a cell cannot be read.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.logit(made, "ill ~ age")
        >>> probability = fit.predict({"age": [20, 55, 90]})
        >>> bool(probability[0] < 0.1 and probability[2] > 0.9)
        True
        >>> sorted(fit.predict({"age": [40]}, interval=True))
        ['lower', 'probability', 'upper']
        """
        from dpgram.analysis.frames import own_features  # brings Arrow along, which a fit alone does not need

        level = self.confidence if confidence is None else check_confidence(confidence)
        features = own_features(self.release.schema, self.design, frame)
        found, lower, upper = probabilities(self.linear.channel, self._made, features, level)
        return {"probability": found, "lower": lower, "upper": upper} if interval else found

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain data, ready for JSON.

        Returns
        -------
        dict
            Coefficients with standard errors, intervals and odds ratios, the budget, and notes. Infinite ends of intervals are None.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> sorted(dpgram.logit(made, "ill ~ age").to_dict()["coefficients"])
        ['(intercept)', 'age']
        """
        made, of = self._intervals(), self._made
        se = {
            "se": of.covariance,
            "se_sampling": of.sampling,
            "se_privacy": of.noise,
            "se_clipping": of.clipping,
        }
        coefficients = {}
        for j, name in enumerate(self.names):
            known = bool(made.identified[j])
            odds = name != INTERCEPT and known
            coefficients[name] = {
                "coefficient": float(of.estimate[j]),
                **{key: float(np.sqrt(max(matrix[j, j], 0.0))) for key, matrix in se.items()},
                "p_value": float(self.pvalues[name]),
                "lower": float(made.lower[j]) if known else None,
                "upper": float(made.upper[j]) if known else None,
                "identified": known,
                "odds_ratio": _odds(of.estimate[j]) if odds else None,
                "odds_ratio_lower": _odds(made.lower[j]) if odds else None,
                "odds_ratio_upper": _odds(made.upper[j]) if odds else None,
            }
        return {
            "target": self.target,
            "method": "discriminant",
            "confidence": self.confidence,
            "coefficients": coefficients,
            "share": of.share,
            "share_se": of.share_se,
            "distance": float(np.sqrt(of.distance)),
            **origin(self.release),
            **rows_that_counted(self._evidence),
            "design_effect": self._evidence.design_effect,
            "effective_rows": self._evidence.effective_rows,
            "private": self.release.private,
            "notes": list(self.notes),
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about these numbers. The summary prints these notes below its table."""
        notes = [
            note
            for note in self.linear.notes
            if note.startswith(("NOT PRIVATE", "CONDITIONAL", "Missing cells", "Rows longer"))
        ]
        if self.not_identified:
            notes.append(
                f"Not identified at this budget: {', '.join(self.not_identified)}. The noise is too large to say anything about them, so "
                f"their intervals are infinite. Use fewer features or a larger budget."
            )
        if not RARE <= self.share <= 1 - RARE:
            notes.append(
                f"{self.target} is {1 if self.share < 0.5 else 0} in few rows. For rare outcomes these coefficients can differ much from "
                f"those of a logit, and the interval does not say so."
            )
        if self._made.distance > FAR**2:
            notes.append(
                "The two groups lie far apart. For large effects these coefficients can differ much from those of a logit, and the "
                "interval does not say so."
            )
        if self._evidence.kept is not None:
            notes.append(self._evidence.shrinking)
        return tuple(notes)

    def to_frame(self) -> Any:
        """Return the table of coefficients as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per coefficient, indexed by name. Ends of an interval can be infinite.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> list(dpgram.logit(made, "ill ~ age").to_frame().index)
        ['(intercept)', 'age']
        """
        ends = {"lower": -np.inf, "upper": np.inf}
        rows = [
            {key: ends.get(key, np.nan) if value is None else value for key, value in row.items()}
            for row in coefficient_rows(self.to_dict())
        ]
        return data_frame(rows, index="name")

    def summary(self) -> Summary:
        """Summarise the fit in a table.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.logit(made, "ill ~ age").summary()).splitlines()[0].strip())
        Private logit of ill
        """
        return logit_summary(self.to_dict())

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficients with their confidence intervals. The intercept is left out.

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
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
        >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.logit(made, "ill ~ age").plot(Figure().subplots()).get_title()
        'Logit of ill'
        """
        return draw_logit(self.to_dict(), ax)

    def _named(self, values: Array) -> Any:
        return labelled(self.names, values)


def logit(
    release: GramRelease,
    target: Target,
    features: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    design_effect: float | None = None,
) -> Logit:
    """Fit a logit of a yes-or-no target from a release, by the discriminant route.

    A release has no rows, so the likelihood of a logit cannot be computed. But if the features are normal in both groups, with the same
    covariance, the coefficients follow from the linear regression of the 0/1 target (Haggstrom 1983). docs/yes-no.md shows where this is
    a good approximation. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    target : str
        A column that is 0 or 1: a Boolean column, a level such as ``"carrier[AA]"``, an ``Interval``, or a formula with such a target.
    features : sequence of str, optional
        The columns that explain the target, as in ``regress``. By default all columns, except those that share a source column with it.
    confidence : float
        Confidence level of the intervals.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance, as in ``regress``.

    Returns
    -------
    Logit
        The fit. It prints as a table.

    Raises
    ------
    UnknownColumnError
        If the release has no such column.
    ModelError
        If the target can be something else than 0 or 1, or if the noise hides its share or its residual variance.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("ill")])
    >>> table = {"age": [30, 40, 50, 60, 50, 60, 70, 80] * 5_000, "ill": [0, 0, 0, 0, 1, 1, 1, 1] * 5_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> fit = dpgram.logit(made, "ill", ["age"])
    >>> fit.names
    ('(intercept)', 'age')
    >>> bool(fit.odds_ratios["age"] > 1)
    True
    """
    schema = Evidence.of(release).schema
    asked = asked_designs(schema, target, features, None)
    if len(asked) > 1:
        raise ModelError("a logit has one target, but the formula has several. Write one formula for each target.")
    check_yes_or_no(schema, asked[0])
    return Logit(release, in_own_units(asked[0]), confidence=confidence, design_effect=design_effect)


def check_yes_or_no(schema: Schema, design: Design) -> None:
    """Raise where the target can be something else than 0 or 1, or where there is no intercept."""
    if (mirrored := mirrored_indicator(schema, design)) is not None:
        raise ModelError(
            f"{design.target!r} is 1 where {mirrored!r} is 0: fit the logit of {mirrored!r} instead, and change the sign of every "
            f"coefficient."
        )
    if not yes_or_no(schema, design):
        raise ModelError(
            f"{design.target!r} can be other than 0 or 1, but a logit needs a target that is 0 or 1: a Boolean column, a level of a "
            f"categorical one such as `carrier[AA]`, or an Interval that the custodian declares."
        )
    if design.names[0] != INTERCEPT:
        if schema.intercept:
            raise ModelError("a logit needs an intercept: leave out the - 1 or 0 that removes it from the formula.")
        raise ModelError(
            "a logit needs an intercept: ask the custodian for a release with an intercept column (intercept = true in the schema)."
        )


def _odds(coefficient: float) -> float | None:
    """The odds ratio; None where it exceeds double precision."""
    with np.errstate(over="ignore"):
        ratio = float(np.exp(coefficient))
    return ratio if np.isfinite(ratio) else None
