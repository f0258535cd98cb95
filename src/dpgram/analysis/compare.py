"""Several fitted models side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpgram.analysis.fitted import Fitted
from dpgram.errors import ModelError
from dpgram.report.figures import draw_comparison
from dpgram.report.models import TableStyle, model_table
from dpgram.report.summary import Summarised, Summary, data_frame, framed_rows


class Comparison(Summarised):
    """Several fits side by side: coefficients with standard errors, R-squared and residual sd.

    ``dpgram.compare`` makes it. It prints as a table.

    Attributes
    ----------
    models : dict
        The fits, by name.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> small, large = dpgram.regress(made, "pressure", []), dpgram.regress(made, "pressure", ["age"])
    >>> dpgram.compare({"mean only": small, "age": large}).names
    ('(intercept)', 'age')
    """

    def __init__(self, models: Mapping[str, Fitted]):
        self.models = dict(models)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all coefficients, each once, in the order of the models."""
        return tuple(dict.fromkeys(name for fit in self.models.values() for name in fit.names))

    def summary(
        self,
        *,
        stars: bool = True,
        below: str = "se",
        digits: int = 5,
        fixed: Sequence[str] = (),
        extra: Mapping[str, Sequence[Any]] | None = None,
    ) -> Summary:
        """Print the models in one table: a column for each model, with standard errors in brackets.

        Parameters
        ----------
        stars : bool
            Whether stars mark small p-values.
        below : {"se", "interval"}
            What stands in brackets below a coefficient: its standard error, or its confidence interval.
        digits : int
            How many significant digits numbers have.
        fixed : sequence of str
            Categorical columns whose levels are not listed. One row says which models have all of them, some of them, or none.
        extra : dict, optional
            Further rows, by their names: a list with one entry for each model.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.

        Raises
        ------
        ModelError
            If a parameter is not valid.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> print(str(dpgram.compare(fit).summary()).splitlines()[0].strip())
        Private linear regressions
        """
        style = TableStyle(stars, below, digits, fixed, {} if extra is None else extra)
        columns = {
            model: {column: [fit.names[j] for j in places] for column, places in fit.design.groups}
            for model, fit in self.models.items()
        }
        partial = {
            model: {
                column
                for column, names in columns[model].items()
                if len(names) < len(fit.release.schema.places.get(column, ()))
            }
            for model, fit in self.models.items()
        }
        return model_table(self.to_dict(), columns, style, partial)

    def to_latex(self, *, caption: str | None = None, label: str | None = None, **style: Any) -> str:
        """Return the table in LaTeX, in the look of ``etable`` of the R package fixest.

        The document needs the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Caption of the table. With a caption or a label it is a floating table.
        label : str, optional
            Label to refer to the table.
        **style
            How the table looks, as in ``summary``.

        Returns
        -------
        str
            LaTeX text, with all names escaped.

        Raises
        ------
        ModelError
            If a parameter is not valid.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> dpgram.compare(fit).to_latex(stars=False).splitlines()[2:5]
        ['\\\\begin{tabular}{lc}', '\\\\toprule', ' & (1) pressure \\\\\\\\']
        """
        return self.summary(**style).to_latex(caption=caption, label=label)

    def to_markdown(self, **style: Any) -> str:
        """Return the table in Markdown.

        Parameters
        ----------
        **style
            How the table looks, as in ``summary``.

        Returns
        -------
        str
            Markdown text with a pipe table, with all names escaped.

        Raises
        ------
        ModelError
            If a parameter is not valid.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> dpgram.compare({"model": fit}).to_markdown().splitlines()[2]
        '|  | model |'
        """
        return self.summary(**style).to_markdown()

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, ready for JSON.

        Returns
        -------
        dict
            ``models``: each fit as its ``to_dict`` gives it, by name. ``same_release``: whether all fits come from one release.

        Examples
        --------
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
        >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
        >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
        >>> fit = dpgram.regress(made, "pressure", ["age"])
        >>> dpgram.compare(fit).to_dict()["same_release"]
        True
        """
        releases = [fit.release for fit in self.models.values()]
        return {
            "models": {name: fit.to_dict() for name, fit in self.models.items()},
            "same_release": all(one is releases[0] or one == releases[0] for one in releases),
        }

    def to_frame(self) -> Any:
        """Return all coefficients as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per model and coefficient, indexed by both.

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
        >>> list(dpgram.compare({"age": fit}).to_frame().index)
        [('age', '(intercept)'), ('age', 'age')]
        """
        rows = [{"model": model, **row} for model, fit in self.models.items() for row in framed_rows(fit.to_dict())]
        return data_frame(rows, index=["model", "name"])

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficients of all models with their confidence intervals.

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
        >>> dpgram.compare(fit, fit).plot(Figure().subplots()).get_title()
        'Coefficients side by side'
        """
        return draw_comparison(self.to_dict(), ax)


def compare(*fits: Fitted | Iterable[Fitted] | Mapping[str, Fitted]) -> Comparison:
    """Put several fits side by side.

    Least squares and regressions with instruments can stand in one table. A row then says which is which, and another has the F statistic
    of the first stage.

    Parameters
    ----------
    *fits : Fit or IVFit, list of these, or dict of these
        The fits, as ``compare(a, b)``, ``compare([a, b])`` or ``compare({"small": a, "large": b})``. The names in a dict become the
        headings of the columns. Otherwise the fits are numbered.

    Returns
    -------
    Comparison
        The fits in one table. It prints as text, and as HTML in a notebook.

    Raises
    ------
    ModelError
        If there is no fit, or something that is not a fit.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> small, large = dpgram.regress(made, "pressure", []), dpgram.regress(made, "pressure", ["age"])
    >>> list(dpgram.compare(small, large).models)
    ['(1) pressure', '(2) pressure']
    """
    if len(fits) == 1 and isinstance(fits[0], Mapping):
        models = dict(fits[0])
    else:
        one = fits[0] if len(fits) == 1 and not isinstance(fits[0], Fitted) else fits
        if not isinstance(one, Iterable):
            raise ModelError(f"compare got a {type(one).__name__}, but it needs fits, as in compare(first, second).")
        models = {f"({k}) {getattr(fit, 'target', '')}": fit for k, fit in enumerate(one, 1)}
    if not models or not all(isinstance(fit, Fitted) for fit in models.values()):
        raise ModelError("compare needs one or more fits, which dpgram.regress and dpgram.iv return.")
    return Comparison(models)
