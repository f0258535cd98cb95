"""Linear combinations of coefficients: estimates, standard errors, intervals and tests, one row for each. Fits make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpgram.inference.hypotheses import Tested
from dpgram.regression.restrictions import Restrictions
from dpgram.report.contrasts import contrast_summary
from dpgram.report.summary import Summarised, Summary, data_frame, labelled, labelled_ends, origin

if TYPE_CHECKING:
    from dpgram.analysis.fitted import Fitted

Array = np.ndarray


class Spread(NamedTuple):
    """Standard errors, and their parts."""

    se: Array
    sampling: Array
    privacy: Array
    clipping: Array


@dataclass(frozen=True)
class JointTest:
    """A test of one or several linear restrictions on the coefficients.

    Attributes
    ----------
    name : str
        What was tested.
    coefficients : tuple of str
        Names of the coefficients that the restrictions are about.
    statistic : float
        The chi-square statistic.
    degrees : int
        Its degrees of freedom: the number of restrictions that were tested. For an Anderson-Rubin test, the number of instruments beyond
        those needed is added.
    p_value : float
        The p-value. It comes from an F distribution if the noise of the release has few degrees of freedom.
    restrictions : int
        The number of restrictions that were asked for. It is larger than ``degrees`` if the release says too little about some of them, or
        about some of their combinations. These take no part in the test.
    """

    name: str
    coefficients: tuple[str, ...]
    statistic: float
    degrees: int
    p_value: float
    restrictions: int

    @classmethod
    def of(cls, asked: Restrictions, coefficients: Sequence[str], name: str, found: Tested) -> JointTest:
        """What was ``found`` about restrictions on ``coefficients``."""
        return cls(name, asked.names(coefficients), found.statistic, found.degrees, found.p_value, len(asked.texts))

    @property
    def pvalue(self) -> float:
        """The p-value, under the name that statsmodels gives it."""
        return self.p_value

    @property
    def df_num(self) -> int:
        """The degrees of freedom, under the name that statsmodels gives them."""
        return self.degrees


@dataclass(frozen=True, eq=False, repr=False)
class Contrasts(Summarised):
    """Linear combinations of coefficients, each with its own test. ``fit.t_test`` and ``fit.lincom`` make them.

    Names follow statsmodels. Numbers by name are pandas series, or dicts without pandas.

    Attributes
    ----------
    fit : Fit or IVFit
        The regression.
    asked : Restrictions
        The combinations, and the values that they are tested against.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("weight", 0, 200), dpgram.Numeric("pressure", 50, 250)]
    >>> table = {"age": [30, 50, 70] * 10_000, "weight": [60, 80, 70] * 10_000, "pressure": [105, 125, 125] * 10_000}
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> made = dpgram.release(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian-noise")
    >>> tested = dpgram.regress(made, "pressure", ["age", "weight"]).t_test("age - weight = 0")
    >>> list(tested.conf_int().columns)
    [0, 1]
    """

    fit: Fitted
    asked: Restrictions

    @property
    def names(self) -> tuple[str, ...]:
        """The combinations, as they were asked for."""
        return self.asked.texts

    @property
    def effect(self) -> Any:
        """The combinations of ``fit.params``, by name."""
        return labelled(self.names, self._effect)

    @property
    def _effect(self) -> Array:
        return self.fit.effects_of(self.asked.matrix)

    @property
    def sd(self) -> Any:
        """Standard errors, by name. They include the privacy noise, the sampling of rows, and the clipping of long rows."""
        return labelled(self.names, self._known.se)

    @cached_property
    def _known(self) -> Spread:
        return self.fit.spread_of(self.asked.matrix)

    @property
    def tvalue(self) -> Any:
        """The distance from the tested value in standard errors, by name."""
        return labelled(self.names, self._z)

    @property
    def _z(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self._effect - self.asked.values) / self._known.se

    @property
    def pvalue(self) -> Any:
        """P-values, by name. Each comes from the same test as the interval, as those of coefficients do."""
        return labelled(self.names, self._p_values)

    @cached_property
    def _p_values(self) -> Array:
        return self.fit.p_values_of(self.asked)

    def conf_int(self, alpha: float | None = None, *, confidence: float | None = None) -> Any:
        """Confidence intervals of the combinations, in the shape of statsmodels.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level. By default that of the fit.
        confidence : float, optional
            The confidence level, instead of ``alpha``.

        Returns
        -------
        pandas.DataFrame or dict
            Lower ends in column 0 and upper ends in column 1. Both are infinite if the release says nothing about the combination. With
            instruments, a set can lack one end, and both are NaN if it is empty.
        """
        made = self.fit.intervals_of(self.asked.matrix, alpha, confidence)
        return labelled_ends(self.names, made.lower, made.upper)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, ready for JSON. Infinite ends of intervals are None."""
        made = self.fit.intervals_of(self.asked.matrix)
        sets = made.sets or [None] * len(self.names)
        columns = zip(
            self.names, self._effect, self.asked.values, *self._known, self._z, self._p_values, made.lower, made.upper,
            made.method, sets, strict=True,
        )  # fmt: skip
        return {
            "target": self.fit.target,
            "confidence": self.fit.confidence,
            "contrasts": [
                {
                    "name": name,
                    "effect": float(effect),
                    "tested_value": float(value),
                    "se": float(se),
                    "se_sampling": float(sampling),
                    "se_privacy": float(privacy),
                    "se_clipping": float(clipping),
                    "z": _finite(z),
                    "p_value": float(p),
                    "lower": _finite(low),
                    "upper": _finite(high),
                    "identified": bool(np.isfinite(low) and np.isfinite(high)),
                    "interval": method,
                    **({} if pieces is None else {"set": [[_finite(low), _finite(high)] for low, high in pieces]}),
                }
                for name, effect, value, se, sampling, privacy, clipping, z, p, low, high, method, pieces in columns
            ],
            **origin(self.fit.release),
            "private": self.fit.release.private,
        }

    def summary_frame(self, alpha: float | None = None) -> Any:
        """Return the table as a pandas data frame, with the columns of statsmodels.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level. By default that of the fit.

        Returns
        -------
        pandas.DataFrame
            One row for each combination.
        """
        made = self.fit.intervals_of(self.asked.matrix, alpha)
        rows = {
            "contrast": list(self.names),
            "coef": self._effect,
            "std err": self._known.se,
            "z": self._z,
            "P>|z|": self._p_values,
            "Conf. Int. Low": made.lower,
            "Conf. Int. Upp.": made.upper,
        }
        return data_frame(rows, index="contrast")

    def summary(self) -> Summary:
        """Return the combinations as a table. It prints as text, and as HTML in a notebook."""
        return contrast_summary(self.to_dict())


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def contrasts_data(fit: Fitted, asked: str) -> dict[str, Any]:
    """Restrictions each by itself, as ``Contrasts.to_dict`` gives them, and of several the test of all together."""
    data, joint = fit.t_test(asked).to_dict(), None
    if len(data["contrasts"]) > 1:
        joint = joint_data(fit.wald_test(asked))
    return {**data, "joint_test": joint}


def joint_data(test: JointTest) -> dict[str, Any]:
    """A test as plain data."""
    return {
        "name": test.name,
        "chi_square": test.statistic,
        "degrees": test.degrees,
        "p_value": test.p_value,
        "restrictions": test.restrictions,
    }
