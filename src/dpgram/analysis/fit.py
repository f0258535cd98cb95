"""A fitted regression: two columns of coefficients, with uncertainty around one of them.

``params`` are the debiased coefficients; intervals, standard errors and tests are about them, so an interval always holds its
number. ``estimates`` are those of the chosen estimator (``shrunk`` by default), which predict best and have no interval of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.bootstrap import bootstrap
from dpgram.inference.goodness import Goodness, goodness
from dpgram.inference.intervals import BY_CHANNEL, METHODS, Intervals, Uncertainty, check_confidence, predictions, uncertainty
from dpgram.inference.pivot import JointTest, joint_test, p_value, single_p_values
from dpgram.regression.channel import Channel, channel
from dpgram.regression.design import Design
from dpgram.regression.fit import debiased, fit_linear, shrunk
from dpgram.report.figures import draw_coefficients
from dpgram.report.summary import Summary, cautions, data_frame, framed_rows, origin, summarise
from dpgram.terms.schema import INTERCEPT

Array = np.ndarray


class Fit:
    """The regression of one target, from a release alone. Everything is computed when it is first asked for."""

    def __init__(
        self,
        release: GramRelease,
        design: Design,
        *,
        estimator: str = "shrunk",
        intervals: str = "auto",
        confidence: float = 0.95,
        **options: float | None,
    ):
        check_confidence(confidence)
        _check_method(intervals)
        self.release, self.design, self._evidence = release, design, Evidence.of(release)
        self.estimator, self.intervals, self.confidence = estimator, intervals, float(confidence)
        self.coefficients = fit_linear(self._evidence, design, estimator, **options)  # in the columns' own units
        self._made: dict[tuple[str, float], Intervals] = {}

    @property
    def target(self) -> str:
        return self.design.target

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return self.design.names

    @property
    def estimates(self) -> dict[str, float]:
        """Coefficients of the chosen estimator by name: what ``predict`` uses."""
        return self._named(self.coefficients)

    @property
    def params(self) -> dict[str, float]:
        """Debiased coefficients by name. What intervals and tests are about."""
        return self._named(self._debiased)

    @cached_property
    def shrunk(self) -> dict[str, float]:
        """Coefficients of least expected error, by name, whatever estimator was chosen."""
        if self.estimator == "shrunk":
            return self.estimates
        return self._named(shrunk(channel(self._evidence, self.design, together=True)))

    @cached_property
    def channel(self) -> Channel:
        """What the release says about this regression; see dpgram.regression.channel."""
        return channel(self._evidence, self.design)

    @cached_property
    def _debiased(self) -> Array:
        return debiased(self.channel)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        return uncertainty(self.channel)

    def cov_params(self) -> Array:
        """Covariance of ``params``: privacy noise, the sampling of rows and the clipping of long ones together."""
        return self.uncertainty.covariance

    @property
    def bse(self) -> dict[str, float]:
        """Standard errors of ``params``: privacy noise, the sampling of rows and the clipping of long ones together."""
        return self._named(self.uncertainty.se)

    @property
    def bse_privacy(self) -> dict[str, float]:
        """The part of the standard errors that comes from the privacy noise."""
        return self._named(np.sqrt(np.diag(self.uncertainty.noise)))

    @property
    def bse_sampling(self) -> dict[str, float]:
        """The part that comes from the sampling of rows."""
        return self._named(np.sqrt(np.diag(self.uncertainty.sampling)))

    @property
    def bse_clipping(self) -> dict[str, float]:
        """The part that comes from long rows that were shrunk, as far as the release does not show what they hold.

        The squares of the three parts add up to the square of the whole."""
        return self._named(np.sqrt(np.diag(self.uncertainty.clipping)))

    @property
    def tvalues(self) -> dict[str, float]:
        """``params`` over their standard errors."""
        return self._named(self._debiased / self.uncertainty.se)

    @cached_property
    def pvalues(self) -> dict[str, float]:
        """That each coefficient is zero: by z where the interval is Wald's, by the test behind it where it is Fieller's.

        So a p-value and its interval say the same. Where Fieller's set has a gap around zero, the interval spans it and p says no more."""
        made = self._intervals()
        by_z = np.array([p_value(z**2, 1, self.channel.degrees) for z in self._debiased / self.uncertainty.se])
        by_test = np.array([method == "fieller" for method in made.method])
        if not by_test.any():
            return self._named(by_z)
        tested = single_p_values(self.channel)
        within = (made.lower <= 0) & (made.upper >= 0)
        return self._named(np.where(by_test, np.where(within, np.maximum(tested, 1 - self.confidence), tested), by_z))

    def conf_int(self, confidence: float | None = None, method: str | None = None) -> dict[str, tuple[float, float]]:
        """(lower, upper) of ``params`` by name. Infinite on both sides where a coefficient is not identified at this budget."""
        made = self._intervals(confidence, method)
        return {n: (float(a), float(b)) for n, a, b in zip(self.names, made.lower, made.upper, strict=True)}

    def _intervals(self, confidence: float | None = None, method: str | None = None) -> Intervals:
        level, how = self.confidence if confidence is None else confidence, self.intervals if method is None else method
        check_confidence(level)
        _check_method(how)
        if (how, level) not in self._made:
            by_channel = BY_CHANNEL.get(how)
            made = by_channel(self.channel, level) if by_channel else bootstrap(self._evidence, self.design, level)
            self._made[how, level] = made
        return self._made[how, level]

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Coefficients about which the release says nothing at this budget: their interval is the whole line."""
        return tuple(n for n, known in zip(self.names, self._intervals().identified, strict=True) if not known)

    @cached_property
    def goodness(self) -> Goodness:
        return goodness(self._evidence, self.design, self.confidence)

    @property
    def rsquared(self) -> float | None:
        """The share of the target's variance that is explained; None where the noise leaves it no variance of its own."""
        return self.goodness.r_squared

    def joint_test(self, coefficients: str | Sequence[str]) -> JointTest:
        """The test that all of ``coefficients`` are zero: a declared column stands for all its levels."""
        asked = [coefficients] if isinstance(coefficients, str) else list(coefficients)
        known = {name: (place,) for place, name in enumerate(self.names)} | dict(self.design.groups)
        places: list[int] = []
        for name in asked:
            if name not in known:
                raise ModelError(
                    f"there is no coefficient {name!r}: name a feature of this fit or one of {', '.join(self.names)}."
                )
            places += known[name]
        return joint_test(self.channel, self.names, list(dict.fromkeys(places)), name=" + ".join(map(str, asked)))

    @cached_property
    def joint_tests(self) -> tuple[JointTest, ...]:
        """One test for each feature with several coefficients, and one of all slopes where there are several."""
        tests = [joint_test(self.channel, self.names, places, name=n) for n, places in self.design.groups if len(places) > 1]
        slopes = [j for j, name in enumerate(self.names) if name != INTERCEPT]
        if len(slopes) > 1 and len(self.design.groups) > 1:
            tests.append(joint_test(self.channel, self.names, slopes, name="all features"))
        return tuple(tests)

    def predict(self, frame: Any, *, interval: str | None = None, confidence: float | None = None) -> Any:
        """Predictions for the rows of ``frame``, by ``estimates``, as an array.

        ``interval`` "mean" or "observation" gives instead a dict of arrays: ``prediction`` as above, ``debiased``, and around the latter
        ``lower`` and ``upper`` for the mean of such rows or for one new row. Both are infinite for rows that lie mostly in directions that
        are not identified at this budget."""
        from dpgram.analysis.frames import own_features  # brings Arrow along, which a fit alone does not need

        features = own_features(self.release.schema, self.design, frame)
        predicted = features @ self.coefficients
        if interval is None:
            return predicted
        if interval not in ("mean", "observation"):
            raise ModelError(f'interval is {interval!r} and must be "mean" or "observation".')
        level = self.confidence if confidence is None else confidence
        check_confidence(level)
        residual = self.goodness.residual_variance if interval == "observation" else 0.0
        centre, reach = predictions(self.channel, features, residual, level)
        return {"prediction": predicted, "debiased": centre, "lower": centre - reach, "upper": centre + reach}

    def summary(self) -> Summary:
        """A table in the manner of statsmodels; prints as text, and as HTML in a notebook."""
        return summarise(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON; an infinite end of an interval is None."""
        made, good = self._intervals(), self.goodness
        params, estimates, pvalues = self.params, self.estimates, self.pvalues
        se, se_sampling, se_privacy, se_clipping = self.bse, self.bse_sampling, self.bse_privacy, self.bse_clipping
        coefficients = {
            name: {
                "coefficient": params[name],
                self.estimator: estimates[name],
                "se": se[name],
                "se_sampling": se_sampling[name],
                "se_privacy": se_privacy[name],
                "se_clipping": se_clipping[name],
                "z": params[name] / se[name] if se[name] > 0 else None,
                "p_value": pvalues[name],
                "lower": _finite(low),
                "upper": _finite(high),
                "identified": bool(np.isfinite(low) and np.isfinite(high)),
                "interval": method,
            }
            for name, low, high, method in zip(self.names, made.lower, made.upper, made.method, strict=True)
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
            "joint_tests": [
                {"name": t.name, "chi_square": t.statistic, "degrees": t.degrees, "p_value": t.p_value}
                for t in self.joint_tests
            ],
            **origin(self.release),
            "effective_rows": self.channel.rows,
            "degrees_of_freedom": None if np.isinf(self.channel.degrees) else self.channel.degrees,
            "private": self.release.private,
            "notes": list(self.notes),
        }

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about these numbers, in words."""
        release = self.release
        notes = cautions(release)
        if self.not_identified:
            notes.append(
                f"Not identified at this budget: {', '.join(self.not_identified)}. Use fewer features or a larger budget."
            )
        methods = self._intervals().method
        by_test = [n for n, m in zip(self.names, methods, strict=True) if m == "fieller" and n not in self.not_identified]
        if by_test and self.intervals == "auto":
            notes.append(f"Weakly identified, interval by test inversion (Fieller): {', '.join(by_test)}.")
        if self.channel.rows < 0.98 * (release.rows or np.inf) and release.row_bound < release.schema.largest_norm:
            notes.append("Rows longer than the row bound were shrunk to it; a bias from that is not in the intervals.")
        if self._evidence.kept is not None:
            notes.append(self._evidence.shrinking)
        return tuple(notes)

    def to_frame(self) -> Any:
        """The table of coefficients as a pandas data frame, indexed by name. Ends of an interval may be infinite."""
        return data_frame(framed_rows(self.to_dict()), index="name")

    def plot(self, ax: Any = None) -> Any:
        """Coefficients with their intervals, on a matplotlib axis, which is returned."""
        return draw_coefficients(self.to_dict(), ax)

    def _named(self, values: Array) -> dict[str, float]:
        return dict(zip(self.names, values.tolist(), strict=True))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        mark = "" if self.release.private else ", NOT PRIVATE"
        return f"Fit({self.target} ~ {' + '.join(self.names)}, estimator={self.estimator}{mark})"


def _check_method(method: object) -> None:
    if method not in METHODS:
        raise ModelError(f"intervals is {method!r} and must be one of {', '.join(METHODS)}.")


def _finite(end: float) -> float | None:
    return float(end) if np.isfinite(end) else None
