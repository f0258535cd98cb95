"""What every fitted regression can do: tests of its coefficients, and tables of it for papers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpgram.analysis.contrasts import Contrasts, JointTest, Spread
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.inference.intervals import Intervals
from dpgram.regression.design import Design
from dpgram.regression.restrictions import Restrictions, is_equation, restrictions

Array = np.ndarray

Hypothesis = str | Mapping[str, float] | Sequence[Any] | Array
"""Linear restrictions, as ``Fitted.t_test`` says."""


class Fitted(ABC):
    """A fitted regression."""

    release: GramRelease
    design: Design
    confidence: float

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.design.target

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, in order."""
        return self.design.names

    @abstractmethod
    def effects_of(self, matrix: Array) -> Array:
        """Return linear combinations of ``params``. For further computations; see ``t_test``.

        Parameters
        ----------
        matrix : numpy.ndarray
            One row for each combination, with a weight for each coefficient in the order of ``names``.

        Returns
        -------
        numpy.ndarray
            One number for each combination.
        """

    @abstractmethod
    def spread_of(self, matrix: Array) -> Spread:
        """Return standard errors of linear combinations of ``params``. For further computations; see ``t_test``.

        Parameters
        ----------
        matrix : numpy.ndarray
            One row for each combination, with a weight for each coefficient in the order of ``names``.

        Returns
        -------
        Spread
            The standard errors ``se``, and their parts ``sampling``, ``privacy`` and ``clipping``.
        """

    @abstractmethod
    def intervals_of(self, matrix: Array, alpha: float | None = None, confidence: float | None = None) -> Intervals:
        """Return intervals of linear combinations of the coefficients. For further computations; see ``t_test``.

        Parameters
        ----------
        matrix : numpy.ndarray
            One row for each combination, with a weight for each coefficient in the order of ``names``.
        alpha : float, optional
            One minus the confidence level, as in statsmodels.
        confidence : float, optional
            Confidence level. By default that of the fit.

        Returns
        -------
        Intervals
            Ends ``lower`` and ``upper``, and the ``method`` of each.
        """

    @abstractmethod
    def p_values_of(self, asked: Restrictions) -> Array:
        """Return p-values of restrictions, each by itself. For further computations; see ``t_test``.

        Parameters
        ----------
        asked : Restrictions
            The restrictions.

        Returns
        -------
        numpy.ndarray
            One p-value for each restriction.
        """

    @abstractmethod
    def _jointly(self, asked: Restrictions, name: str) -> JointTest:
        """The test of restrictions together."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain data, ready for JSON."""

    def t_test(self, r_matrix: Hypothesis) -> Contrasts:
        """Test linear restrictions on the coefficients, each by itself.

        Parameters
        ----------
        r_matrix : str, dict, array or list
            The restrictions:

            - a text such as ``"age - weight = 0"``, ``"age = 0.5"`` or ``"age = weight, smoker = 0"``. Without ``=``, zero is tested. Names
              are written as in ``names``, with backquotes around them if you like.
            - a dict with a weight for each coefficient, such as ``{"age": 1, "weight": -1}``. Zero is tested.
            - an array with one number for each coefficient, or one row of these for each restriction.
            - a tuple of such an array and the values to test.
            - a list of texts and dicts.

        Returns
        -------
        Contrasts
            One row for each restriction: ``effect``, ``sd``, ``tvalue``, ``pvalue``, ``conf_int()`` and ``summary()``.

        Raises
        ------
        ModelError
            If the fit has no such coefficient, or if a restriction is not linear.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("weight", 0, 200), dpgram.Numeric("pressure", 50, 250)]
        >>> table = {"age": [30, 50, 70] * 10_000, "weight": [60, 80, 70] * 10_000, "pressure": [105, 125, 125] * 10_000}
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> made = dpgram.release(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age", "weight"])
        >>> fit.t_test("age = weight, age = 0").names
        ('age = weight', 'age')
        """
        return Contrasts(self, self._asked(r_matrix))

    def lincom(self, combination: str | Mapping[str, float]) -> Contrasts:
        """Return a linear combination of the coefficients, with its standard error and confidence interval.

        The name is that of Stata's command. ``t_test`` gives the same numbers, and takes several combinations.

        Parameters
        ----------
        combination : str or dict
            A sum such as ``"age + 10*weight"``, without ``=``, or a dict with a weight for each coefficient.

        Returns
        -------
        Contrasts
            The combination, in one row.

        Raises
        ------
        ModelError
            If the fit has no such coefficient, or if this is not one combination. ``t_test`` takes text with ``=``.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("weight", 0, 200), dpgram.Numeric("pressure", 50, 250)]
        >>> table = {"age": [30, 50, 70] * 10_000, "weight": [60, 80, 70] * 10_000, "pressure": [105, 125, 125] * 10_000}
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> made = dpgram.release(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age", "weight"])
        >>> lower, upper = fit.lincom({"age": 10, "weight": 10}).conf_int().iloc[0]
        >>> bool(lower < upper)
        True
        """
        asked = self._asked(combination)
        if len(asked.texts) != 1 or asked.values[0] != 0 or is_equation(combination, self.names, dict(self.design.groups)):
            given = " ".join(repr(combination).split())
            raise ModelError(f"lincom takes one combination without '=', such as 'age + 10*weight'. Use t_test for {given}.")
        return Contrasts(self, asked)

    def wald_test(self, r_matrix: Hypothesis) -> JointTest:
        """Test several linear restrictions on the coefficients together.

        Parameters
        ----------
        r_matrix : str, dict, array or list
            The restrictions, as in ``t_test``. The name of a categorical column stands for all its levels.

        Returns
        -------
        JointTest
            The test, with its ``statistic``, ``degrees`` of freedom and ``p_value``.

        Raises
        ------
        ModelError
            If the fit has no such coefficient, if a restriction is not linear, or if restrictions repeat or contradict each other.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("weight", 0, 200), dpgram.Numeric("pressure", 50, 250)]
        >>> table = {"age": [30, 50, 70] * 10_000, "weight": [60, 80, 70] * 10_000, "pressure": [105, 125, 125] * 10_000}
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> made = dpgram.release(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.regress(made, "pressure", ["age", "weight"]).wald_test("age = weight, age = 0").degrees
        2
        """
        asked = self._asked(r_matrix)
        return self._jointly(asked, ", ".join(asked.texts))

    def _asked(self, asked: Hypothesis) -> Restrictions:
        return restrictions(asked, self.names, dict(self.design.groups))

    def to_latex(self, *, caption: str | None = None, label: str | None = None, **style: Any) -> str:
        """Return the coefficients as a LaTeX table with one column, as ``dpgram.compare(fit).to_latex()`` does.

        ``fit.summary().to_latex()`` is the whole summary. The document needs the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Caption of the table. With a caption or a label it is a floating table.
        label : str, optional
            Label to refer to the table.
        **style
            How the table looks: ``stars``, ``below``, ``digits``, ``fixed`` and ``extra``, as in ``Comparison.summary``.

        Returns
        -------
        str
            LaTeX text, with all names escaped.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> "toprule" in dpgram.regress(made, "pressure", ["age"]).to_latex(stars=False)
        True
        """
        return self._compared().to_latex(caption=caption, label=label, **style)

    def to_markdown(self, **style: Any) -> str:
        """Return the coefficients as a Markdown table with one column, as ``dpgram.compare(fit).to_markdown()`` does.

        ``fit.summary().to_markdown()`` is the whole summary.

        Parameters
        ----------
        **style
            How the table looks: ``stars``, ``below``, ``digits``, ``fixed`` and ``extra``, as in ``Comparison.summary``.

        Returns
        -------
        str
            Markdown text with a pipe table, with all names escaped.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.regress(made, "pressure", ["age"]).to_markdown().splitlines()[2]
        '|  | pressure |'
        """
        return self._compared().to_markdown(**style)

    def _compared(self) -> Any:
        from dpgram.analysis.compare import Comparison  # which holds fits

        return Comparison({self.target: self})
