"""Regressions with instrumental variables from a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dpgram.analysis.contrasts import JointTest, Spread
from dpgram.analysis.fit import confidence_of
from dpgram.analysis.fitted import Fitted
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.anderson_rubin import (
    AUTO,
    BY_TEST,
    STRONG,
    WEAK,
    ConfidenceSet,
    Diagnostic,
    Test,
    chosen,
    confidence_sets,
    endogeneity,
    jointly,
    p_values,
    standard_errors,
)
from dpgram.inference.intervals import Intervals, check_confidence
from dpgram.regression.design import made_up, unmarked
from dpgram.regression.formula import instrumented
from dpgram.regression.instruments import ESTIMATORS, LIML, Conditions, Estimate, Instrumented, conditions, estimate
from dpgram.regression.restrictions import Restrictions
from dpgram.report.figures import draw_iv
from dpgram.report.instruments import NAMES, summarise_iv
from dpgram.report.summary import (
    Summarised,
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
)

Array = np.ndarray


class IVFit(Summarised, Fitted):
    """One fitted regression with instruments. Standard errors, confidence sets and tests include the privacy noise.

    ``dpgram.iv`` makes it from a release, and it costs no budget. Names follow statsmodels and linearmodels: ``params``, ``bse``,
    ``conf_int``, ``summary``. Everything is computed when it is first used.

    Attributes
    ----------
    release : GramRelease
        The release that the fit was computed from.
    estimator : str
        Name of the estimator: "2sls" or "liml".
    intervals : str
        Method of the confidence sets.
    confidence : float
        Confidence level of the confidence sets.

    Examples
    --------
    >>> import numpy as np, dpgram
    >>> rng = np.random.default_rng(0)
    >>> z, u = rng.uniform(-1, 1, (2, 50_000))
    >>> x = (z + u) / 2
    >>> table = {"y": 0.5 * x - 0.4 * u, "x": x, "z": z}
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> fit = dpgram.iv(made, "y ~ [x ~ z]")
    >>> float(round(fit.params["x"], 1))
    0.5
    >>> fit.weak
    False
    """

    def __init__(
        self,
        release: GramRelease,
        asked: Instrumented,
        *,
        estimator: str = ESTIMATORS[0],
        intervals: str = AUTO,
        confidence: float = 0.95,
        design_effect: float | None = None,
    ):
        confidence = check_confidence(confidence)
        if estimator not in ESTIMATORS:
            raise ModelError(f"there is no estimator named {estimator!r} for instruments. Use one of {', '.join(ESTIMATORS)}.")
        self.release, self.asked, self._evidence = release, asked, Evidence.of(release).assuming(design_effect)
        self.design = asked.design
        self.estimator, self.intervals, self.confidence = estimator, intervals, confidence
        self._conditions: Conditions = conditions(self._evidence, asked, estimator)
        self._estimate: Estimate = estimate(self._conditions, estimator)
        self._test = Test(self._conditions, self._estimate)
        chosen(self._test, intervals)
        self._made: dict[tuple[str, float], tuple[ConfidenceSet, ...]] = {}

    @property
    def endogenous(self) -> tuple[str, ...]:
        """Names of the endogenous regressors."""
        return self.asked.endogenous

    @property
    def instruments(self) -> tuple[str, ...]:
        """Names of the excluded instruments. Exogenous regressors are instruments too, and are not in this list."""
        return self.asked.excluded

    @property
    def params(self) -> Any:
        """Coefficients by name, without the bias that the privacy noise would cause."""
        return self._named(self._coefficients)

    @property
    def _coefficients(self) -> Array:
        return self._conditions.own_units(self._estimate.b)

    @property
    def kappa(self) -> float:
        """The parameter of LIML. It is 1 for two-stage least squares."""
        return self._estimate.kappa

    def cov_params(self) -> Array:
        """Covariance matrix of ``params``. It is reliable only if the instruments are strong.

        Returns
        -------
        numpy.ndarray
            Matrix of shape (p, p), in the order of ``names``.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.iv(made, "y ~ [x ~ z]").cov_params().shape
        (2, 2)
        """
        to_own = self._conditions.to_own
        return to_own @ self._estimate.covariance @ to_own.T

    @property
    def bse(self) -> Any:
        """Standard errors of ``params``, by name. They include the privacy noise, the sampling of rows, and the clipping of long rows."""
        return self._named(self._se(self._estimate.covariance))

    @property
    def bse_privacy(self) -> Any:
        """Part of the standard errors that is due to the privacy noise, by name."""
        return self._named(self._se(self._estimate.noise))

    @property
    def bse_sampling(self) -> Any:
        """Part of the standard errors that is due to the sampling of rows, by name."""
        return self._named(self._se(self._estimate.sampling))

    @property
    def bse_clipping(self) -> Any:
        """Part of the standard errors that is due to the clipping of long rows, by name."""
        return self._named(self._se(self._estimate.clipping))

    def _se(self, covariance: Array, combinations: Array | None = None) -> Array:
        return standard_errors(self._conditions, covariance, combinations)

    @property
    def residual_variance(self) -> float:
        """Variance of the errors, in the target's own units squared, without the privacy noise."""
        return self._estimate.error_variance * self._conditions.unit**2

    @property
    def pvalues(self) -> Any:
        """P-values of the tests that each coefficient is zero, by name. A p-value and its confidence set come from the same test."""
        return self._named(self._p_values)

    @cached_property
    def _p_values(self) -> Array:
        return p_values(self._test, self.intervals)

    def confidence_sets(self, *, confidence: float | None = None, method: str | None = None) -> dict[str, ConfidenceSet]:
        """Return the confidence set of each coefficient.

        Parameters
        ----------
        confidence : float, optional
            Confidence level. By default that of the fit.
        method : {"auto", "wald", "anderson-rubin"}, optional
            Method of the sets, as in ``dpgram.iv``. By default that of the fit.

        Returns
        -------
        dict
            A ``ConfidenceSet`` for each coefficient, by name, with its ``pieces``. A set can be an interval, two half-lines, the whole
            line, or empty. Its ``words`` say which.

        Raises
        ------
        ModelError
            If the confidence level or the method is not valid.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.iv(made, "y ~ [x ~ z]")
        >>> fit.confidence_sets(method="anderson-rubin")["x"].bounded
        True
        """
        return dict(zip(self.names, self._sets(confidence, method), strict=True))

    def _sets(self, confidence: float | None = None, method: str | None = None) -> tuple[ConfidenceSet, ...]:
        level, how = self.confidence if confidence is None else confidence, self.intervals if method is None else method
        if (how, level) not in self._made:
            self._made[how, level] = confidence_sets(self._test, level, how)
        return self._made[how, level]

    def conf_int(self, alpha: float | None = None, *, confidence: float | None = None, method: str | None = None) -> Any:
        """Confidence intervals of the coefficients: the smallest and the largest value of each confidence set.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level. By default that of the fit.
        confidence : float, optional
            The confidence level, instead of ``alpha``.
        method : {"auto", "wald", "anderson-rubin"}, optional
            Method of the sets, as in ``dpgram.iv``. By default that of the fit.

        Returns
        -------
        pandas.DataFrame
            Lower ends in column 0 and upper ends in column 1, one row for each coefficient. Ends are infinite if the set has none, and NaN
            if the set is empty. Without pandas, a dict of pairs.

        Raises
        ------
        ModelError
            If the confidence level or the method is not valid.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> lower, upper = dpgram.iv(made, "y ~ [x ~ z]").conf_int().loc["x"]
        >>> bool(lower < 0.5 < upper)
        True
        """
        if alpha is not None:
            confidence = confidence_of(alpha, confidence)
        sets = self._sets(confidence, method)
        return labelled_ends(self.names, np.array([each.lower for each in sets]), np.array([each.upper for each in sets]))

    def effects_of(self, matrix: Array) -> Array:
        return matrix @ self._coefficients

    def spread_of(self, matrix: Array) -> Spread:
        at = self._estimate
        return Spread(*(self._se(part, matrix) for part in (at.covariance, at.sampling, at.noise, at.clipping)))

    def intervals_of(self, matrix: Array, alpha: float | None = None, confidence: float | None = None) -> Intervals:
        if alpha is not None:
            confidence = confidence_of(alpha, confidence)
        made = confidence_sets(self._test, self.confidence if confidence is None else confidence, self.intervals, matrix)
        lower, upper = (np.array([getattr(each, end) for each in made]) for end in ("lower", "upper"))
        return Intervals(lower, upper, tuple(each.method for each in made), tuple(each.pieces for each in made))

    def p_values_of(self, asked: Restrictions) -> Array:
        return p_values(self._test, self.intervals, asked.values, asked.matrix)

    def _jointly(self, asked: Restrictions, name: str) -> JointTest:
        once = asked.once()
        return JointTest.of(once, self.names, name, jointly(self._test, once.values, once.matrix, self.intervals))

    def predict(self, frame: Any, *, interval: str | None = None, confidence: float | None = None) -> Any:
        """Predict the target for rows whose features are set to given values.

        A prediction is the sum of the features, each times its coefficient. So it says what the target would be on average if somebody set
        the features. It is not the best guess for rows in which the endogenous regressors came about by themselves: their errors are
        related to them, and ``regress`` predicts better there.

        The rows are your own, and nothing about them is protected. They are encoded as in the release, as ``Fit.predict`` says.

        Parameters
        ----------
        frame : pandas, polars or Arrow table, or dict of lists
            The rows. Columns that are not among the regressors, such as instruments, can be left out.
        interval : {"mean"}, optional
            Also return the confidence sets of the predictions. They are made as those of the coefficients. An Anderson-Rubin set takes up
            to a tenth of a second for each row.
        confidence : float, optional
            Confidence level of the sets. By default that of the fit.

        Returns
        -------
        numpy.ndarray or dict of numpy.ndarray
            The predictions. With ``interval``, a dict of three arrays: ``prediction``, and ``lower`` and ``upper``, the smallest and the
            largest value of each confidence set. They are infinite if the set has no end, and NaN if it is empty.

        Raises
        ------
        ModelError
            If a column is missing or cannot be read, or if ``interval`` or ``confidence`` is not valid.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.iv(made, "y ~ [x ~ z]")
        >>> float(fit.predict({"x": [0.4]}).round(1)[0])
        0.2
        >>> sorted(fit.predict({"x": [0.4]}, interval="mean"))
        ['lower', 'prediction', 'upper']
        """
        from dpgram.analysis.frames import own_features  # brings Arrow along, which a fit alone does not need

        if interval not in (None, "mean"):
            raise ModelError(f'interval is {interval!r} and must be "mean": with instruments, only the mean has an interval.')
        features = own_features(self.release.schema, self.design, frame)
        predicted = self.effects_of(features)
        if interval is None:
            return predicted
        ends = np.full((2, len(features)), np.nan)
        counted = ~np.isnan(predicted)
        distinct, which = np.unique(features[counted], axis=0, return_inverse=True)
        made = self.intervals_of(distinct, confidence=confidence)
        ends[:, counted] = np.stack([made.lower, made.upper])[:, which.ravel()]
        return {"prediction": predicted, "lower": ends[0], "upper": ends[1]}

    @cached_property
    def first_stage(self) -> tuple[Diagnostic, ...]:
        """One test for each endogenous regressor: that the excluded instruments say nothing about it. Its ``f`` is the partial F."""
        return tuple(self._test.first_stage(place) for place in self.asked.endogenous_places)

    @property
    def strength(self) -> float:
        """Strength of the instruments: F of the combination of regressors about which they say least, privacy noise included.

        With one endogenous regressor, this is the F statistic of the first stage.
        """
        return self._test.strength

    @property
    def weak(self) -> bool:
        """Whether the instruments are weak: ``strength`` is below 10."""
        return self.strength < WEAK

    @property
    def strength_word(self) -> str:
        """The strength in one word: "weak" below 10, "strong" from 104.7, "moderate" between."""
        return "weak" if self.weak else "strong" if self.strength >= STRONG else "moderate"

    @cached_property
    def overidentification(self) -> Diagnostic | None:
        """Test that all instruments agree about the coefficients. None if there are only as many instruments as endogenous regressors."""
        return self._test.overidentification()

    @cached_property
    def endogeneity(self) -> Diagnostic:
        """Wu-Hausman test that the endogenous regressors are exogenous. If they are, ``regress`` gives smaller standard errors."""
        return endogeneity(self._evidence, self._test)

    @property
    def counted_rows(self) -> tuple[float, float]:
        """Number of rows that counted, and its standard error. The error is 0 if the number is public and every row counted as one."""
        return self._evidence.counted

    @property
    def design_effect(self) -> float:
        """Factor by which units and weights increase the sampling variance: the worst case, unless ``iv`` was given another."""
        return self._evidence.design_effect

    def summary(self) -> Summary:
        """Summarise the fit: coefficients, first stages, and tests of the instruments.

        Returns
        -------
        Summary
            The tables. They print as text, and as HTML in a notebook.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.iv(made, "y ~ [x ~ z]").summary()).splitlines()[0].strip())
        Private regression of y with instruments
        """
        return summarise_iv(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain data, ready for JSON.

        Returns
        -------
        dict
            Coefficients with standard errors and confidence sets, first stages, tests, the budget, and notes. Infinite ends are None.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> sorted(dpgram.iv(made, "y ~ [x ~ z]").to_dict()["coefficients"])
        ['(intercept)', 'x']
        """
        at = self._estimate
        parts = [self._se(part) for part in (at.covariance, at.sampling, at.noise, at.clipping)]
        numbers = np.column_stack([self._coefficients, *parts, self._p_values]).tolist()
        coefficients = {
            name: {
                "coefficient": value,
                "se": se,
                "se_sampling": se_sampling,
                "se_privacy": se_privacy,
                "se_clipping": se_clipping,
                "p_value": p,
                "lower": _finite(made.lower),
                "upper": _finite(made.upper),
                "set": [[_finite(low), _finite(high)] for low, high in made.pieces],
                "identified": made.bounded,
                "interval": made.method,
            }
            for name, (value, se, se_sampling, se_privacy, se_clipping, p), made in zip(
                self.names, numbers, self._sets(), strict=True
            )
        }
        return {
            "target": self.target,
            "endogenous": list(self.endogenous),
            "instruments": list(self.instruments),
            "estimator": self.estimator,
            "kappa": self.kappa,
            "intervals": self.intervals,
            "confidence": self.confidence,
            "coefficients": coefficients,
            "strength": self.strength,
            "strength_word": self.strength_word,
            "first_stage": [_plain(each) for each in self.first_stage],
            "overidentification": None if self.overidentification is None else _plain(self.overidentification),
            "endogeneity": _plain(self.endogeneity),
            "residual_variance": self.residual_variance,
            **origin(self.release),
            **rows_that_counted(self._evidence),
            "design_effect": self.design_effect,
            "degrees_of_freedom": _finite(self._conditions.degrees),
            "private": self.release.private,
            "notes": list(self.notes),
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about these numbers. The summary prints these notes below its tables."""
        notes = [*cautions(self.release), _about_strength(self.strength, self.strength_word)]
        sets = self.confidence_sets()
        empty = [name for name, made in sets.items() if not made.pieces]
        if empty:
            notes += _about_empty(empty, self.overidentification, NAMES[self.estimator])
        for name, made in sets.items():
            if made.pieces and not made.bounded:
                nothing = (
                    ""
                    if len(made.pieces) > 1 or math.isfinite(made.lower) or math.isfinite(made.upper)
                    else (": the release says nothing about it with these instruments at this budget")
                )
                notes.append(f"The confidence set of {name} is {made.words}{nothing}.")
        point = dict(zip(self.names, self._coefficients.tolist(), strict=True))
        outside = [
            name
            for name, made in sets.items()
            if made.method == BY_TEST and made.pieces and not any(a <= point[name] <= b for a, b in made.pieces)
        ]
        if outside:
            because = (
                "the instruments are weak, and other values agree with them better"
                if self.weak
                else f"the instruments do not agree well{'. LIML agrees better with all of them' * (self.estimator != LIML)}"
            )
            notes.append(f"The coefficient of {', '.join(outside)} is outside its confidence set, because {because}.")
        for name, source in unmarked(self.release.schema, self.asked.design):
            notes.append(
                f"{name} is filled in where a cell of {source} is missing, which can bias its coefficient. Add {source}[missing] to the "
                f"exogenous regressors, which marks these rows."
            )
        notes += made_up_notes(made_up(self.release.schema, self.asked.design))
        return tuple(notes + clipping_notes(self.release, self._evidence))

    def to_frame(self) -> Any:
        """Return the table of coefficients as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per coefficient, indexed by name. Ends of a set are infinite if it has none, and NaN if it is empty.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> float(dpgram.iv(made, "y ~ [x ~ z]").to_frame().loc["x", "coefficient"].round(1))
        0.5
        """
        return data_frame(framed_rows(self.to_dict()), index="name")

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficients with their confidence sets.

        The intercept is left out, because its scale is different. A set without an end has an arrow to the edge of the picture. The point
        of a coefficient is hollow if its set is empty, has no end, or does not contain it.

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
        >>> import numpy as np, dpgram
        >>> z, u = np.random.default_rng(0).uniform(-1, 1, (2, 50_000))
        >>> table = {"y": 0.25 * z - 0.15 * u, "x": (z + u) / 2, "z": z}
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.iv(made, "y ~ [x ~ z]").plot(Figure().subplots()).get_title()
        'Regression of y with instruments'
        """
        return draw_iv(self.to_dict(), ax)

    def _named(self, values: Array) -> Any:
        return labelled(self.names, values)


def iv(
    release: GramRelease,
    formula: str,
    *,
    estimator: str = "2sls",
    intervals: str = "auto",
    confidence: float = 0.95,
    design_effect: float | None = None,
) -> IVFit:
    """Fit a linear regression with instrumental variables from a release.

    It needs no rows and costs no budget. Coefficients are in the columns' own units. Standard errors, confidence sets and the F statistic
    of the first stage include the privacy noise.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    formula : str
        The regression, such as ``"lwage ~ exper + [educ ~ distance]"``. In square brackets stand the endogenous regressors, a ``~``, and
        their instruments. Outside stand the target and the exogenous regressors. This is the grammar of linearmodels, with one difference:
        there is an intercept, unless the formula has ``- 1``.
    estimator : {"2sls", "liml"}
        How the coefficients are computed. "2sls" is two-stage least squares. "liml" is less biased if there are many instruments.
    intervals : {"auto", "wald", "anderson-rubin"}
        Method of the confidence sets. "anderson-rubin" is right however weak the instruments are. "auto" uses "wald" for coefficients for
        which the instruments are strong beyond doubt, and "anderson-rubin" for all others.
    confidence : float
        Confidence level of the confidence sets.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance, as in ``regress``. By default it is the worst case.

    Returns
    -------
    IVFit
        The fit.

    Raises
    ------
    UnknownColumnError
        If the release has no such column.
    ModelError
        If the regression cannot be fitted for another reason. The message says why.
    MissingExtraError
        If formulaic is not installed.

    Examples
    --------
    >>> import numpy as np, dpgram
    >>> rng = np.random.default_rng(0)
    >>> z, u = rng.uniform(-1, 1, (2, 50_000))
    >>> x = (z + u) / 2
    >>> table = {"y": 0.5 * x - 0.4 * u, "x": x, "z": z}
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -1, 1) for name in table])
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")

    The error of ``y`` contains ``u``, which ``x`` contains too, so least squares is wrong. The instrument ``z`` is not related to ``u``:

    >>> float(round(dpgram.regress(made, "y ~ x").params["x"], 1))
    0.1
    >>> fit = dpgram.iv(made, "y ~ [x ~ z]")
    >>> float(round(fit.params["x"], 1))
    0.5
    >>> fit.strength_word
    'strong'
    """
    asked = instrumented(Evidence.of(release).schema, formula)
    options: dict[str, Any] = {"intervals": intervals, "confidence": confidence, "design_effect": design_effect}
    return IVFit(release, asked, estimator=estimator, **options)


def _about_strength(strength: float, word: str) -> str:
    f = f"F is {strength:,.{0 if strength >= 1000 else 1}f} with the privacy noise included"
    if word == "weak":
        return (
            f"WEAK INSTRUMENTS: {f}, below {WEAK:g}. Coefficients and standard errors can be far off. Read the confidence sets instead, "
            f"which are right in this case too."
        )
    if word == "moderate":
        return f"The instruments are of moderate strength: {f}, between {WEAK:g} and {STRONG:g}. So prefer the confidence sets to std err."
    return f"The instruments are strong: {f}, at least {STRONG:g}."


def _about_empty(names: Sequence[str], test: Diagnostic | None, estimator: str) -> list[str]:
    assert test is not None  # with as many instruments as coefficients, some value agrees with all of them
    return [
        f"No value of {', '.join(names)} agrees with all instruments, so the confidence set is empty. The test that all instruments agree "
        f"says the same: {_in_words(test)}. At least one instrument is probably not valid, or the effect is not the same for everybody. No "
        f"P is shown, because it would be small for every value and would say nothing about zero.",
        f"To see where instruments disagree, fit with fewer of them: with as many as there are endogenous regressors, no set is empty. Or "
        f'use intervals="wald", for intervals of what {estimator} estimates from all of them together. These intervals are right only if '
        f"all instruments are valid and strong.",
    ]


def _in_words(test: Diagnostic) -> str:
    p = "P < 0.001" if test.p_value < 0.001 else f"P = {test.p_value:.3f}"
    return f"chi2 = {test.statistic:.4g} with {test.degrees} degree{'s' * (test.degrees > 1)} of freedom, {p}"


def _plain(test: Diagnostic) -> dict[str, Any]:
    return {"name": test.name, "f": test.f, "chi_square": test.statistic, "degrees": test.degrees, "p_value": test.p_value}


def _finite(end: float) -> float | None:
    return float(end) if math.isfinite(end) else None
