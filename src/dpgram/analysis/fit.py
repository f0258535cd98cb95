"""A fitted regression, with two sets of coefficients.

``params`` are the debiased coefficients. Standard errors, intervals and tests are about them. ``estimates`` are the coefficients of the
chosen estimator, by default ``shrunk``. They predict best and have no intervals of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from dpgram.analysis.contrasts import JointTest, Spread, joint_data
from dpgram.analysis.fitted import Fitted, Hypothesis
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.bootstrap import Simulated
from dpgram.inference.goodness import Goodness, goodness
from dpgram.inference.hypotheses import jointly, p_values
from dpgram.inference.intervals import (
    BOOTSTRAP,
    BY_CHANNEL,
    METHODS,
    Intervals,
    Uncertainty,
    check_confidence,
    predictions,
    uncertainty,
)
from dpgram.regression.channel import Channel, channel
from dpgram.regression.design import Design, made_up, unmarked, yes_or_no
from dpgram.regression.fit import debiased, fit_linear, shrunk
from dpgram.regression.restrictions import Restrictions
from dpgram.report.figures import draw_coefficients
from dpgram.report.summary import (
    Summary,
    cautions,
    clipping_notes,
    data_frame,
    framed_rows,
    labelled,
    labelled_ends,
    made_up_notes,
    origin,
    rows_that_counted,
    summarise,
)
from dpgram.terms.words import visible

Array = np.ndarray

LINEAR_PROBABILITY = (
    "{target} is 0 or 1, so this is a linear probability model. A coefficient is the change of the probability that {target} is 1, if the "
    "feature is larger by one unit. Predictions can be below 0 or above 1. The errors do not have one variance, although the intervals "
    "assume it, so intervals can be too narrow or too wide. docs/yes-no.md shows by how much, and explains logits."
)


class Fit(Fitted):
    """One fitted linear regression, with standard errors and confidence intervals that include the privacy noise.

    ``dpgram.regress`` makes it from a release, and it costs no budget. Names follow statsmodels: ``params``, ``bse``, ``conf_int``,
    ``summary``. Everything is computed when it is first used.

    Numbers by name are pandas series, as in statsmodels, and ``conf_int`` is a data frame. Without pandas they are dicts.

    There are two sets of coefficients. Read ``params`` to interpret the model: they are debiased, and standard errors, intervals and tests
    are about them. ``estimates`` are the coefficients of the chosen estimator, and ``predict`` uses them.

    Attributes
    ----------
    release : GramRelease
        The release that the fit was computed from.
    estimator : str
        Name of the estimator behind ``estimates``.
    intervals : str
        Method of the confidence intervals.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> fit = dpgram.regress(made, "pressure", ["age"])
    >>> float(fit.params["age"].round(1))
    0.5
    >>> lower, upper = fit.conf_int().loc["age"]
    >>> bool(lower < fit.params["age"] < upper)
    True
    """

    def __init__(
        self,
        release: GramRelease,
        design: Design,
        *,
        estimator: str = "shrunk",
        intervals: str = "auto",
        confidence: float = 0.95,
        design_effect: float | None = None,
        coefficients: Array | None = None,
        **options: float | None,
    ):
        confidence = check_confidence(confidence)
        _check_method(intervals)
        self.release, self.design, self._evidence = release, design, Evidence.of(release).assuming(design_effect)
        self.estimator, self.intervals, self.confidence = estimator, intervals, float(confidence)
        if coefficients is None:
            coefficients = fit_linear(self._evidence, design, estimator, **options)
        self.coefficients: Array = coefficients  # in the columns' own units
        self._made: dict[tuple[str, float], Intervals] = {}

    @property
    def counted_rows(self) -> tuple[float, float]:
        """Number of rows that counted, and its standard error. The error is 0 if the number is public and every row counted as one.

        A row counts for less if its weight is small, if its unit has many rows, or if it was clipped to the row bound. A row with a missing
        cell does not count where the schema says "drop-row".
        """
        return self._evidence.counted

    @property
    def design_effect(self) -> float:
        """Factor by which units and weights increase the sampling variance: the worst case, unless ``regress`` was given another."""
        return self._evidence.design_effect

    @property
    def effective_rows(self) -> float:
        """Effective sample size: the number of rows that counted, divided by the design effect."""
        return self._evidence.effective_rows

    @property
    def estimates(self) -> Any:
        """Coefficients of the chosen estimator, by name. ``predict`` uses them."""
        return self._named(self.coefficients)

    @property
    def params(self) -> Any:
        """Debiased coefficients, by name. Standard errors, intervals and tests are about them."""
        return self._named(self._debiased)

    @property
    def shrunk(self) -> Any:
        """Coefficients with the smallest expected error, by name. They do not depend on the chosen estimator."""
        return self._named(self._shrunk)

    @cached_property
    def _shrunk(self) -> Array:
        if self.estimator == "shrunk":
            return self.coefficients
        return shrunk(channel(self._evidence, self.design, together=True))

    @cached_property
    def channel(self) -> Channel:
        """What the release says about this regression, as ``dpgram.regression.channel`` describes it. For further computations."""
        return channel(self._evidence, self.design)

    @cached_property
    def _debiased(self) -> Array:
        return debiased(self.channel)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Covariance of ``params``, split into the parts that are due to privacy noise, sampling of rows, and clipping of long rows."""
        return uncertainty(self.channel)

    def cov_params(self) -> Array:
        """Covariance matrix of ``params``.

        It includes the privacy noise, the sampling of rows, and the clipping of long rows.

        Returns
        -------
        numpy.ndarray
            Matrix of shape (p, p), in the order of ``names``.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> fit.cov_params().shape
        (2, 2)
        """
        return self.uncertainty.covariance

    @property
    def bse(self) -> Any:
        """Standard errors of ``params``, by name. They include the privacy noise, the sampling of rows, and the clipping of long rows."""
        return self._named(self.uncertainty.se)

    @property
    def bse_privacy(self) -> Any:
        """Part of the standard errors that is due to the privacy noise, by name."""
        return self._named(np.sqrt(np.diag(self.uncertainty.noise)))

    @property
    def bse_sampling(self) -> Any:
        """Part of the standard errors that is due to the sampling of rows, by name."""
        return self._named(np.sqrt(np.diag(self.uncertainty.sampling)))

    @property
    def bse_clipping(self) -> Any:
        """Part of the standard errors that is due to the clipping of long rows, by name.

        It is zero if the release has no information about clipped rows. The squares of the three parts add up to the square of ``bse``.
        """
        return self._named(np.sqrt(np.diag(self.uncertainty.clipping)))

    @property
    def tvalues(self) -> Any:
        """``params`` divided by their standard errors, by name."""
        return self._named(self._debiased / self.uncertainty.se)

    @property
    def pvalues(self) -> Any:
        """P-values of the tests that each coefficient is zero, by name.

        A p-value and its interval come from the same test, so they agree at every confidence level, and so do ``t_test``, ``lincom`` and
        ``joint_test`` of the same coefficient. For a Wald interval this is the z test. For a Fieller interval it is the test that the
        interval inverts.
        """
        return self._named(self._p_values)

    @cached_property
    def _p_values(self) -> Array:
        return p_values(self.channel, np.zeros(len(self.names)), method=self.intervals, simulated=self._simulated)

    def conf_int(self, alpha: float | None = None, *, confidence: float | None = None, method: str | None = None) -> Any:
        """Confidence intervals of ``params``, in the shape of statsmodels.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level, 0.5 at most. By default that of the fit.
        confidence : float, optional
            The confidence level, instead of ``alpha``.
        method : {"auto", "wald", "fieller", "bootstrap"}, optional
            Method of the intervals, as in ``regress``. By default that of the fit.

        Returns
        -------
        pandas.DataFrame or dict
            One row per coefficient, indexed by name. Column 0 has the lower ends and column 1 the upper ends. Both are infinite if the
            coefficient is not identified at this budget. Without pandas, a dict of pairs (lower, upper), by name.

        Raises
        ------
        ModelError
            If the confidence level or the method is not valid, or if both ``alpha`` and ``confidence`` are given.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> lower, upper = fit.conf_int(alpha=0.01).loc["age"]
        >>> bool(lower < fit.params["age"] < upper)
        True
        """
        if alpha is not None:
            confidence = confidence_of(alpha, confidence)
        made = self._intervals(confidence, method)
        return labelled_ends(self.names, made.lower, made.upper)

    def ends(self) -> tuple[Array, Array]:
        """Lower and upper ends of the confidence intervals as arrays, in the order of ``names``.

        They are those of ``conf_int``, without labels, for programs that fit many regressions.

        Returns
        -------
        tuple of numpy.ndarray
            The lower and the upper ends.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> lower, upper = dpgram.regress(made, "pressure", ["age"]).ends()
        >>> bool((lower < upper).all())
        True
        """
        made = self._intervals()
        return made.lower, made.upper

    def _intervals(self, confidence: float | None = None, method: str | None = None) -> Intervals:
        level, how = self.confidence if confidence is None else confidence, self.intervals if method is None else method
        if (how, level) not in self._made:
            self._made[how, level] = self._intervals_by(how, level)
        return self._made[how, level]

    def _intervals_by(self, how: str, level: float, combinations: Array | None = None) -> Intervals:
        level = check_confidence(level)
        _check_method(how)
        if how == BOOTSTRAP:
            return self._refits.intervals(self.channel, level, combinations)
        return BY_CHANNEL[how](self.channel, level, combinations)

    @cached_property
    def _refits(self) -> Simulated:
        return Simulated.of(self._evidence, self.design)

    @property
    def _simulated(self) -> Simulated | None:
        return self._refits if self.intervals == BOOTSTRAP else None

    def intervals_of(self, matrix: Array, alpha: float | None = None, confidence: float | None = None) -> Intervals:
        if alpha is not None:
            confidence = confidence_of(alpha, confidence)
        return self._intervals_by(self.intervals, self.confidence if confidence is None else confidence, matrix)

    def effects_of(self, matrix: Array) -> Array:
        return matrix @ self.channel.own(self.channel.estimate)

    def spread_of(self, matrix: Array) -> Spread:
        known = self.uncertainty.of(matrix)
        return Spread(known.se, *(np.sqrt(np.diag(part)) for part in (known.sampling, known.noise, known.clipping)))

    def p_values_of(self, asked: Restrictions) -> Array:
        return p_values(self.channel, asked.values, asked.matrix, method=self.intervals, simulated=self._simulated)

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Names of the coefficients about which the release says nothing at this budget. Their intervals are infinite."""
        return tuple(n for n, known in zip(self.names, self._intervals().identified, strict=True) if not known)

    @cached_property
    def goodness(self) -> Goodness:
        """Residual variance and R-squared, each with a confidence interval."""
        return goodness(self._evidence, self.design, self.confidence)

    @property
    def rsquared(self) -> float | None:
        """Share of the target's variance that the features explain. None if the variance cannot be told from the noise."""
        return self.goodness.r_squared

    def joint_test(self, coefficients: Hypothesis) -> JointTest:
        """Test that several coefficients are all zero.

        It is the same test as ``wald_test``, and takes the same restrictions.

        Parameters
        ----------
        coefficients : str, sequence of str, or dict
            Names of features or of single coefficients. A categorical column stands for all its levels. A dict with a weight for each
            coefficient is one combination.

        Returns
        -------
        JointTest
            The test, with its ``statistic``, ``degrees`` of freedom and ``p_value``.

        Raises
        ------
        ModelError
            If the fit has no such coefficient.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> fit.joint_test("age").p_value < 0.001
        True
        """
        asked = self._asked(coefficients)
        listed = (
            coefficients
            if isinstance(coefficients, list | tuple) and all(isinstance(c, str) for c in coefficients)
            else [coefficients]
        )
        name = " + ".join(map(str, listed)) if all(isinstance(c, str) for c in listed) else ", ".join(asked.texts)
        return self._jointly(asked, name)

    @cached_property
    def joint_tests(self) -> tuple[JointTest, ...]:
        """One test for each feature with several coefficients, and one of all slopes if there are several features."""
        return tuple(self._jointly(self._zero(places), name) for name, places in self.design.tested)

    def _zero(self, places: Sequence[int]) -> Restrictions:
        """That the coefficients at ``places`` are zero."""
        return Restrictions(np.eye(len(self.names))[list(places)], np.zeros(len(places)), tuple(self.names[j] for j in places))

    def _jointly(self, asked: Restrictions, name: str) -> JointTest:
        once = asked.once()
        found = jointly(self.channel, once.values, once.matrix, method=self.intervals, simulated=self._simulated)
        return JointTest.of(once, self.names, name, found)

    def predict(self, frame: Any, *, interval: str | None = None, confidence: float | None = None) -> Any:
        """Predict the target for new rows.

        The rows are your own, and nothing about them is protected. They are encoded as in the release: numbers are clamped to the declared
        bounds, and missing cells are filled. Where the release dropped rows with a missing cell, the prediction for such a row is NaN.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, or dict of lists
            The rows. Columns that the model does not use can be left out.
        interval : {"mean", "observation"}, optional
            Also return intervals: for the mean of all rows with these features, or for one new row.
        confidence : float, optional
            Confidence level of the intervals. By default that of the fit.

        Returns
        -------
        numpy.ndarray or dict of numpy.ndarray
            The predictions by ``estimates``. With ``interval``, a dict of four arrays: ``prediction``, ``debiased`` (the prediction by
            ``params``), and ``lower`` and ``upper``, the ends of an interval around ``debiased``. The ends are infinite for a row that the
            release says too little about.

        Raises
        ------
        ModelError
            If a column is missing or cannot be read, or if ``interval`` or ``confidence`` is not valid.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> float(fit.predict({"age": [40]}).round()[0])
        110.0
        >>> sorted(fit.predict({"age": [40]}, interval="mean"))
        ['debiased', 'lower', 'prediction', 'upper']
        """
        from dpgram.analysis.frames import own_features  # brings Arrow along, which a fit alone does not need

        features = own_features(self.release.schema, self.design, frame)
        predicted = features @ self.coefficients
        if interval is None:
            return predicted
        if interval not in ("mean", "observation"):
            raise ModelError(f'interval is {interval!r} and must be "mean" or "observation".')
        level = self.confidence if confidence is None else check_confidence(confidence)
        residual = self.goodness.residual_variance if interval == "observation" else 0.0
        centre, reach = predictions(self.channel, features, residual, level)
        return {"prediction": predicted, "debiased": centre, "lower": centre - reach, "upper": centre + reach}

    def marginal_effects(self, column: str, *, at: Mapping[str, Any] | None = None, confidence: float | None = None) -> Any:
        """Marginal effects of a column, where the model also has products, powers or logarithms of it.

        For a number, this is the derivative of the expected target: by how much it changes per unit. For a truth value or a category, it is
        the difference between true and false, or between a level and the reference level.

        Parameters
        ----------
        column : str
            A declared column that the model uses.
        at : dict, optional
            Values of declared columns at which the effect is computed, such as ``{"age": [30, 50], "sex": "f"}``. Lists give one effect for
            each combination. The columns that are left out are at their means.
        confidence : float, optional
            Confidence level of the intervals. By default that of the fit.

        Returns
        -------
        MarginalEffects
            The effects with standard errors and intervals. The means count as known: their own noise is not in the standard errors.

        Raises
        ------
        ModelError
            If the model does not use the column, if it has an interval or a part of a date of it, or if a value is not valid.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)]
        >>> schema = dpgram.Schema(unit="person", columns=columns, derived=[dpgram.Power("age_squared", "age")])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [99, 115, 139] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=20.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age", "age_squared"])
        >>> [round(one.effect) for one in fit.marginal_effects("age", at={"age": [50]}).effects]
        [1]
        """
        from dpgram.analysis.margins import marginal_effects  # which brings moments along

        return marginal_effects(self, column, at, self.confidence if confidence is None else confidence)

    def summary(self) -> Summary:
        """Summarise the fit in a table like that of statsmodels.

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
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> print(str(fit.summary()).splitlines()[0].strip())
        Private linear regression of pressure
        """
        return summarise(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain data, ready for JSON.

        Returns
        -------
        dict
            Coefficients with standard errors and intervals, R-squared, joint tests, the budget, and notes. Infinite ends of intervals
            are None.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> sorted(fit.to_dict()["coefficients"])
        ['(intercept)', 'age']
        """
        made, good = self._intervals(), self.goodness
        known = self.uncertainty
        parts = (np.sqrt(np.diag(part)) for part in (known.sampling, known.noise, known.clipping))
        numbers = np.column_stack([self._debiased, self.coefficients, known.se, *parts, self._p_values]).tolist()
        coefficients = {
            name: {
                "coefficient": value,
                self.estimator: estimate,
                "se": se,
                "se_sampling": se_sampling,
                "se_privacy": se_privacy,
                "se_clipping": se_clipping,
                "z": value / se if se > 0 else None,
                "p_value": p,
                "lower": _finite(low),
                "upper": _finite(high),
                "identified": bool(np.isfinite(low) and np.isfinite(high)),
                "interval": method,
            }
            for name, (value, estimate, se, se_sampling, se_privacy, se_clipping, p), low, high, method in zip(
                self.names, numbers, made.lower, made.upper, made.method, strict=True
            )
        }
        return {
            "target": self.target,
            "estimator": self.estimator,
            "intervals": self.intervals,
            "confidence": self.confidence,
            "coefficients": coefficients,
            "r_squared": good.r_squared,
            "r_squared_interval": list(good.r_squared_interval),
            "residual_variance": good.residual_variance,
            "residual_variance_interval": [_finite(end) for end in good.residual_variance_interval],
            "joint_tests": [joint_data(test) for test in self.joint_tests],
            **origin(self.release),
            **rows_that_counted(self._evidence),
            "design_effect": self.design_effect,
            "effective_rows": self.effective_rows,
            "degrees_of_freedom": None if np.isinf(self.channel.degrees) else self.channel.degrees,
            "private": self.release.private,
            "notes": list(self.notes),
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about these numbers. The summary prints these notes below its tables."""
        release = self.release
        notes = cautions(release)
        if yes_or_no(release.schema, self.design):
            notes.append(LINEAR_PROBABILITY.format(target=self.target))
        if self.not_identified:
            notes.append(
                f"Not identified at this budget: {', '.join(self.not_identified)}. The noise is too large to say anything about them, so "
                f"their intervals are infinite. Use fewer features or a larger budget."
            )
        for name, source in unmarked(release.schema, self.design):
            notes.append(
                f"{name} is filled in where a cell of {source} is missing, which can bias its coefficient. Add {source}[missing] to the "
                f"features, which marks these rows."
            )
        notes += made_up_notes(made_up(release.schema, self.design))
        made = self._intervals()
        tested = zip(self.names, made.method, made.identified, strict=True)
        by_test = [name for name, method, identified in tested if identified and method == "fieller"]
        if by_test and self.intervals == "auto":
            notes.append(
                f"Weakly identified: {', '.join(by_test)}. Their intervals contain all values that a test does not reject (Fieller)."
            )
        for test in self.joint_tests:
            if test.degrees < test.restrictions:
                notes.append(
                    f"The joint test of {test.name} is about {test.degrees} of {test.restrictions} combinations of its coefficients. The "
                    f"release says too little about the others."
                )
        return tuple(notes + clipping_notes(release, self._evidence))

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
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> float(fit.to_frame().loc["age", "coefficient"].round(1))
        0.5
        """
        return data_frame(framed_rows(self.to_dict()), index="name")

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficients with their confidence intervals.

        The intercept is left out, because its scale is different.

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
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> fit.plot(Figure().subplots()).get_title()
        'Regression of pressure'
        """
        return draw_coefficients(self.to_dict(), ax)

    def _named(self, values: Array) -> Any:
        return labelled(self.names, values)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        mark = "" if self.release.private else ", NOT PRIVATE"
        return visible(f"Fit({self.target} ~ {' + '.join(self.names)}, estimator={self.estimator}{mark})")


def _check_method(method: object) -> None:
    if method not in METHODS:
        raise ModelError(f"intervals is {method!r} and must be one of {', '.join(METHODS)}.")


def confidence_of(alpha: float, confidence: float | None) -> float:
    """The confidence level that ``alpha`` asks for."""
    if confidence is not None:
        raise ModelError("alpha and confidence are both given, and say the same thing. Leave one of them out.")
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0 < float(alpha) <= 0.5:
        raise ModelError(
            f"alpha is {alpha!r} and must be a number above 0, and 0.5 at most, such as 0.05 for 95 % intervals. "
            f"To give the confidence level itself, write confidence=0.95."
        )
    return 1 - float(alpha)


def _finite(end: float) -> float | None:
    return float(end) if np.isfinite(end) else None
