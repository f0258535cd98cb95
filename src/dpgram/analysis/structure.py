"""Structure from a release: partial correlations with intervals, and the graph of those that the graphical lasso keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from dpgram.analysis.matrices import told
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.moments import hidden_columns, unrelated_penalty
from dpgram.inference.partial import Partials
from dpgram.inference.partial import partial_correlations as partials_of
from dpgram.regression.graph import Sparse, graphical_lasso
from dpgram.regression.moments import moments
from dpgram.report.figures import draw_matrix, mark
from dpgram.report.structure import draw_graph, graph_summary, pairs_summary
from dpgram.report.summary import Summarised, Summary, data_frame

Array = np.ndarray

SHOWN = 20  # pairs in a summary


@dataclass(frozen=True, eq=False, repr=False)
class PartialCorrelations(Summarised, Partials):
    """Partial correlations of some columns, with standard errors and confidence intervals that include the privacy noise.

    ``dpgram.partial_correlations`` makes it from a release. It prints as a table of pairs. Arrays are matrices in the order of ``names``.

    Attributes
    ----------
    names : tuple of str
        Names of the columns. A categorical column has one name for each level except the reference.
    estimate : numpy.ndarray
        Correlation of each pair of columns, given all the other columns of ``names``. The bias that noise would cause is removed.
    sampling, privacy, clipping : numpy.ndarray
        Parts of the standard errors. Their squares add up to the square of ``se``.
    lower, upper : numpy.ndarray
        Ends of the confidence intervals. They are -1 and 1 if the release says nothing about a pair.
    p_value : numpy.ndarray
        P-values of the tests that a partial correlation is zero.
    identified : numpy.ndarray
        Whether the release says anything about a pair at this budget.
    confidence : float
        Confidence level of the intervals.
    release : GramRelease
        The release that it was computed from.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> found = dpgram.partial_correlations(made)
    >>> bool(found.lower[0, 1] < found.estimate[0, 1] < found.upper[0, 1])
    True
    """

    confidence: float
    release: GramRelease
    design_effect: float | None

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """One dict for each pair of columns, with its numbers."""
        return [self._pair(i, j) for i in range(len(self.names)) for j in range(i + 1, len(self.names))]

    def _pair(self, i: int, j: int) -> dict[str, Any]:
        numbers = {
            "partial": self.estimate,
            "se": self.se,
            "se_sampling": self.sampling,
            "se_privacy": self.privacy,
            "se_clipping": self.clipping,
            "p_value": self.p_value,
            "lower": self.lower,
            "upper": self.upper,
        }
        told_of = {name: float(matrix[i, j]) for name, matrix in numbers.items()}
        columns = self.release.schema.encoded
        first, second = (columns[self.release.schema.places[self.names[k]][0]].column for k in (i, j))
        known = {"identified": bool(self.identified[i, j]), "same_column": first == second}
        return {"first": self.names[i], "second": self.names[j], **told_of, **known}

    def to_dict(self) -> dict[str, Any]:
        """Return all pairs as plain data, ready for JSON.

        Returns
        -------
        dict
            Names, one entry for each pair, the budget, and notes.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> len(dpgram.partial_correlations(made).to_dict()["pairs"])
        3
        """
        evidence = Evidence.of(self.release).assuming(self.design_effect)
        data = told(self.release, self.names, clipping=evidence.tails is None, evidence=evidence)
        if evidence.tails is not None:
            data["notes"].append(
                "Rows far from the others were clipped. The part 'clipping' of a standard error says how far this could have moved the "
                "partial correlation, and the interval includes it."
            )
        unknown = sum(not pair["identified"] for pair in self.pairs)
        if unknown:
            data["notes"].append(
                f"{unknown} of {len(self.pairs)} pairs are not identified at this budget. The noise is too large to say anything about "
                f"them, so their intervals are [-1, 1]. Use fewer columns or a larger budget."
            )
        return {"names": list(self.names), "confidence": self.confidence, "pairs": self.pairs, **data}

    def to_frame(self) -> Any:
        """Return all pairs as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per pair, indexed by both names.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> list(dpgram.partial_correlations(made).to_frame().index)
        [('age', 'pressure'), ('age', 'smoker'), ('pressure', 'smoker')]
        """
        return data_frame(self.pairs, index=["first", "second"])

    def summary(self, pairs: int | None = None) -> Summary:
        """Summarise the pairs that stand furthest from zero in a table.

        Parameters
        ----------
        pairs : int, optional
            How many pairs to show. By default 20, or all if there are fewer.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Raises
        ------
        ModelError
            If the number of pairs is not valid.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.partial_correlations(made).summary()).splitlines()[0].strip())
        Private partial correlations
        """
        return pairs_summary(self.to_dict(), _shown("pairs", pairs))

    def plot(self, ax: Any = None) -> Any:
        """Draw the partial correlations as a heat map.

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
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.partial_correlations(made).plot(Figure().subplots()).get_title()
        'Private partial correlations'
        """
        return draw_matrix(self.names, self.estimate.tolist(), f"Private partial correlations{mark(self.release.private)}", ax)


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Summarised):
    """Which pairs of columns have a partial correlation, by the graphical lasso.

    ``dpgram.graph`` makes it from a release. Two columns without an edge are taken to be unrelated, given all the other columns. It prints
    as a table of edges.

    Attributes
    ----------
    names : tuple of str
        Names of the columns. A categorical column has one name for each level except the reference.
    penalty : float
        The penalty, like ``alpha`` of scikit-learn's ``graphical_lasso`` on the correlations.
    precision : numpy.ndarray
        The penalised inverse of the correlation matrix. It is exactly zero where two columns have no edge.
    partial : PartialCorrelations
        The partial correlations without the penalty, with their intervals.
    release : GramRelease
        The release that it was computed from.
    hidden : tuple of str
        Names of columns that have no edges because the noise may be all there is of their variance, such as rare levels.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> dpgram.graph(made).names
    ('age', 'pressure', 'smoker')
    """

    names: tuple[str, ...]
    penalty: float
    sparse: Sparse
    by_default: bool  # whether the penalty follows from noise and sampling
    partial: PartialCorrelations
    release: GramRelease
    hidden: tuple[str, ...] = ()

    @property
    def precision(self) -> Array:
        """The penalised inverse of the correlation matrix."""
        return self.sparse.precision

    @cached_property
    def edges(self) -> list[dict[str, Any]]:
        """One dict for each edge, from the strongest to the weakest: its penalised partial correlation, and the one without a penalty."""
        kept = self.sparse.partial
        found = [
            {**self.partial._pair(i, j), "penalised": float(kept[i, j])}
            for i in range(len(self.names))
            for j in range(i + 1, len(self.names))
            if kept[i, j] != 0
        ]
        return sorted(found, key=lambda edge: -abs(edge["penalised"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as plain data, ready for JSON.

        Returns
        -------
        dict
            Names, the penalty, the penalised precision matrix, one entry for each edge, the budget, and notes.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> sorted(dpgram.graph(made).to_dict()["edges"][0])[:3]
        ['first', 'identified', 'lower']
        """
        data, count = self.partial.to_dict(), len(self.names)
        notes = data["notes"]
        if self.by_default:
            notes.append(
                "The penalty follows from the size of the noise and of sampling: if no column were related to another, there would be "
                "no edge with a probability of about 95 %."
            )
        if self.hidden:
            notes.append(
                f"The noise may be all there is of the variance of {', '.join(self.hidden)}, as with rare levels and constants. So nothing "
                f"is known about their edges, and the graph shows none."
            )
        if any(edge["same_column"] for edge in self.edges):
            notes.append(
                "Levels of one categorical column exclude each other, so an edge between them says nothing more. The picture draws it in "
                "grey."
            )
        if not self.sparse.converged:
            notes.append("The solver did not reach its tolerance. Use a larger penalty.")
        return {
            **data,
            "penalty": self.penalty,
            "possible": count * (count - 1) // 2,
            "hidden": list(self.hidden),
            "precision": self.precision.tolist(),
            "edges": self.edges,
            "notes": notes,
        }

    def to_frame(self) -> Any:
        """Return the edges as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per edge, indexed by both names.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.graph(made).to_frame().index.names
        FrozenList(['first', 'second'])
        """
        empty: dict[str, list] = {name: [] for name in ("first", "second", "penalised")}
        return data_frame(self.edges or empty, index=["first", "second"])

    def summary(self, edges: int | None = None) -> Summary:
        """Summarise the strongest edges in a table.

        Parameters
        ----------
        edges : int, optional
            How many edges to show. By default 20, or all if there are fewer.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Raises
        ------
        ModelError
            If the number of edges is not valid.

        Examples
        --------
        >>> import dpgram
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> print(str(dpgram.graph(made).summary()).splitlines()[0].strip())
        Private graph of partial correlations
        """
        return graph_summary(self.to_dict(), _shown("edges", edges))

    def plot(self, ax: Any = None) -> Any:
        """Draw the graph: columns on a circle, and a line for each edge.

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
        >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
        >>> schema = dpgram.Schema(unit="person", columns=columns)
        >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> dpgram.graph(made, penalty=0.1).plot(Figure().subplots()).get_title()
        'Private graph of partial correlations, penalty 0.1'
        """
        return draw_graph(self.to_dict(), ax)


def partial_correlations(
    release: GramRelease,
    columns: Sequence[str] | None = None,
    *,
    confidence: float = 0.95,
    design_effect: float | None = None,
) -> PartialCorrelations:
    """Compute partial correlations from a release, with standard errors and confidence intervals.

    The partial correlation of two columns is their correlation given all the other columns that you name. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    columns : sequence of str, optional
        The columns to use. A categorical column stands for all its levels except the reference. By default all columns.
    confidence : float
        Confidence level of the intervals.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance, as in ``regress``.

    Returns
    -------
    PartialCorrelations
        The result. It prints as a table of pairs.

    Raises
    ------
    ModelError
        If the release has no such column, was made without an intercept, or if there are fewer than two columns.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> found = dpgram.partial_correlations(made, ["age", "pressure"])
    >>> found.names
    ('age', 'pressure')
    """
    evidence = Evidence.of(release).assuming(design_effect)
    found = partials_of(evidence, columns, confidence)
    return PartialCorrelations(**vars(found), confidence=float(confidence), release=release, design_effect=design_effect)


def graph(
    release: GramRelease,
    columns: Sequence[str] | None = None,
    *,
    penalty: float | None = None,
    confidence: float = 0.95,
    design_effect: float | None = None,
) -> Graph:
    """Find which pairs of columns are related given all the others, by the graphical lasso.

    It uses scikit-learn's ``graphical_lasso`` on the correlations of the release. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    columns : sequence of str, optional
        The columns to use, as in ``partial_correlations``. By default all columns.
    penalty : float, optional
        The penalty, like ``alpha`` in scikit-learn. A larger one leaves fewer edges. By default it follows from the size of the noise and
        of sampling: if no column were related to another, there would be no edge with a probability of about 95 %.
    confidence : float
        Confidence level of the intervals in the table of edges.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance, as in ``regress``.

    Returns
    -------
    Graph
        The graph. It prints as a table of edges, and ``plot`` draws it.

    Raises
    ------
    ModelError
        If the graph cannot be computed. The message says why.
    MissingExtraError
        If scikit-learn is not installed.

    Examples
    --------
    >>> import dpgram
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250), dpgram.Boolean("smoker")]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> table = {"age": [30, 50, 70, 50] * 10_000, "pressure": [105, 120, 120, 110] * 10_000, "smoker": [0, 1, 0, 0] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> [(edge["first"], edge["second"]) for edge in dpgram.graph(made, penalty=0.6).edges]
    [('age', 'pressure')]
    """
    evidence = Evidence.of(release).assuming(design_effect)
    found = partial_correlations(release, columns, confidence=confidence, design_effect=design_effect)
    of = moments(evidence, columns)
    shown = ~hidden_columns(evidence, of)
    if shown.sum() < 2:  # nothing is left to be protected from what noise hides
        shown = np.ones_like(shown)
    chosen = unrelated_penalty(evidence, of, shown=shown) if penalty is None else penalty
    sparse = graphical_lasso(of, chosen, shown)
    hidden = tuple(name for name, seen in zip(of.names, shown, strict=True) if not seen)
    return Graph(of.names, float(chosen), sparse, penalty is None, found, release, hidden)


def _shown(name: str, given: object) -> int:
    count = SHOWN if given is None else given
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise ModelError(f"{name} is {given!r} and must be a whole number of at least 1.")
    return int(count)
