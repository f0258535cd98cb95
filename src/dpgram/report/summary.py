"""Fits as text and HTML, in tables like those of statsmodels (a header, a table of coefficients, tests, notes), and as data frames."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import MissingExtraError
from dpgram.evidence.evidence import Evidence
from dpgram.report.columns import value_of_missing
from dpgram.report.markup import latex, markdown
from dpgram.terms.columns import Column
from dpgram.terms.words import visible

Array = np.ndarray

WHOLE_LINE = "not identified at this budget"
RIGHT = " style='text-align:right'"
RULE = " style='border-top:1px solid'"


@dataclass(frozen=True)
class Block:
    """One table: cells as text, the first column to the left, the others to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    rules: Sequence[int] = ()  # places of rows with a line above them


@dataclass(frozen=True, repr=False)
class Summary:
    """A result as a table for people. ``print`` shows it as text, and a notebook as HTML.

    Attributes
    ----------
    title : str
        The first line.
    facts : sequence of (str, str)
        The header: names and values.
    blocks : sequence of Block
        The tables.
    notes : sequence of str
        The notes below the tables.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    blocks: Sequence[Block]
    notes: Sequence[str]

    def __str__(self) -> str:
        blocks = [_columns(block) for block in self.blocks]
        width = max([80, *(len(line) for lines in blocks for line in lines)])
        lines = [self.title.center(width).rstrip(), *(["=" * width] if self.facts else [])]
        half = width // 2 - 1
        for k in range(0, len(self.facts), 2):
            pair = [f"{name + ':':<19}{value:>{half - 19}}" for name, value in self.facts[k : k + 2]]
            lines.append("  ".join(pair).rstrip())
        for block, text in zip(self.blocks, blocks, strict=True):
            lines += ["=" * width, text[0]]
            for place, line in enumerate(text[1:]):
                lines += [*(["-" * width] if place == 0 or place in block.rules else []), line]
        lines.append("=" * width)
        for note in self.notes:
            lines += textwrap.wrap(note, width, subsequent_indent="  ")
        return visible("\n".join(lines))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<div class='dpgram'><b>{html.escape(self.title)}</b>"]
        if self.facts:
            parts.append(f"<table>{''.join(f'<tr>{_cells(fact)}</tr>' for fact in self.facts)}</table>")
        for block in self.blocks:
            body = "".join(
                f"<tr{RULE if place in block.rules else ''}><th style='text-align:left'>{html.escape(name)}</th>"
                f"{_cells(cells, RIGHT)}</tr>"
                for place, (name, *cells) in enumerate(block.rows)
            )
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in block.header)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<p>{html.escape(note)}</p>" for note in self.notes]
        return "".join(parts) + "</div>"

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return the tables in LaTeX.

        The document needs the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Caption of the table. With a caption or a label it is a floating table.
        label : str, optional
            Label to refer to the table.

        Returns
        -------
        str
            LaTeX text, with all names escaped.
        """
        return latex(self, caption=caption, label=label)

    def to_markdown(self) -> str:
        """Return the title, the tables and the notes in Markdown.

        Returns
        -------
        str
            Markdown text with pipe tables, with all names escaped.
        """
        return markdown(self)


def _cells(texts: Iterable[str], style: str = "") -> str:
    return "".join(f"<td{style}>{html.escape(text)}</td>" for text in texts)


def _columns(block: Block) -> list[str]:
    table = [list(block.header), *(list(row) for row in block.rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(block.header))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in table
    ]


class Summarised:
    """A result that prints as its summary."""

    def summary(self) -> Summary:
        """Return the result as a table."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def origin(release: GramRelease) -> dict[str, Any]:
    """What every result says of the release that it comes from."""
    return {
        "epsilon": release.budget.epsilon,
        "delta": release.budget.delta,
        "neighbours": release.neighbours.value,
        "mechanism": release.mechanism,
        "rows": release.rows,
        "units": release.units,
    }


def rows_that_counted(evidence: Evidence) -> dict[str, Any]:
    """How many rows counted, with a standard error: zero where the number is public, None where it is a lower bound. And why it is one."""
    rows, se = evidence.counted
    schema, why = evidence.schema, []
    if schema.drops_rows:
        why.append("rows with a missing cell do not count where the schema says drop-row")
    if schema.unit_id is not None:
        why.append(f"the rows of a unit count as {schema.most_rows:,} at most")
    if schema.weight is not None:
        why.append("a row counts by its weight, divided by the largest weight")
    if evidence.kept is None and evidence.row_bound < schema.largest_norm:
        why.append("clipped rows count for less")
    note = "a noisy estimate" + "".join(f"; {reason}" for reason in why)
    return {
        "counted_rows": rows,
        "counted_rows_se": None if evidence.counts_at_least else se,
        "counted_rows_note": note if se or evidence.counts_at_least else None,
    }


def counted(data: dict) -> str:
    """The number of rows that counted, in words."""
    rows, se = f"{data['counted_rows']:,.0f}", data["counted_rows_se"]
    if se is None:
        return f"at least about {rows}"
    return f"about {'none' if rows == '1' else rows} (s.e. {se:,.0f})" if se else rows  # no estimate is below one


def cautions(release: GramRelease) -> list[str]:
    """What a reader must know about every number from the release, in words."""
    seeded = (
        [] if release.private else ["NOT PRIVATE: the noise came from a seed, so anyone who knows the seed can subtract it."]
    )
    return seeded + ([f"CONDITIONAL: {release.condition}."] if release.condition else [])


def made_up_notes(columns: Iterable[Column]) -> list[str]:
    """What to know of a regression that explains these columns, of which missing cells count as a value, in words."""
    return [
        f"Missing cells of {column.name} count as {value_of_missing(column)}. If many are missing, this biases all coefficients, and the "
        f"release does not say how many are."
        for column in columns
    ]


def clipping_notes(release: GramRelease, evidence: Evidence) -> list[str]:
    """What clipping of rows means for a regression from the release, in words."""
    notes = []
    if evidence.rows < 0.98 * (evidence.public_rows or math.inf) and release.row_bound < release.schema.largest_norm:
        notes.append(
            "Rows longer than the row bound were clipped to it. The intervals do not include the bias that this can cause."
        )
    if evidence.kept is not None:
        notes.append(evidence.shrinking)
    return notes


def number(value: float | None) -> str:
    """Five significant digits; what is not there is left empty."""
    return "" if value is None else f"{value:.5g}"


def probability(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def coefficient_rows(fit: dict) -> list[dict]:
    """A row for each coefficient of a fit, its name among the fields."""
    return [{"name": name, **fields} for name, fields in fit["coefficients"].items()]


def framed_rows(fit: dict) -> list[dict]:
    """The table with a number in every cell, for a data frame: None becomes the infinite end that it stands for, or NaN of an empty set."""
    rows = coefficient_rows(fit)
    for row in rows:
        empty = row.pop("set", None) == []
        absent = {"lower": math.nan if empty else -math.inf, "upper": math.nan if empty else math.inf, "z": math.nan}
        row.update({key: absent[key] for key, value in row.items() if value is None})
    return rows


@cache
def installed_pandas() -> Any:
    """pandas, imported at first use; None where it is not installed."""
    if find_spec("pandas") is None:
        return None
    import pandas as pd

    return pd


def labelled(names: Sequence[str], values: Array) -> Any:
    """Numbers by name: a pandas series, or a dict where pandas is not installed."""
    pandas = installed_pandas()
    if pandas is None:
        return dict(zip(names, values.tolist(), strict=True))
    return pandas.Series(values.copy(), index=list(names))


def labelled_ends(names: Sequence[str], lower: Array, upper: Array) -> Any:
    """Intervals by name: a data frame with columns 0 and 1, or a dict of pairs where pandas is not installed."""
    pandas, ends = installed_pandas(), np.column_stack([lower, upper])
    if pandas is None:
        return dict(zip(names, map(tuple, ends.tolist()), strict=True))
    return pandas.DataFrame(ends, index=list(names))


def data_frame(data: Sequence[dict] | dict[str, Any], *, index: str | list[str]) -> Any:
    """Rows, or columns by name, as a pandas data frame, for those who have pandas."""
    pandas = installed_pandas()
    if pandas is None:
        raise MissingExtraError(package="pandas", extra="frames", purpose="a data frame")
    return pandas.DataFrame(data).set_index(index)


def summarise(fit: dict) -> Summary:
    """One fit, as ``Fit.to_dict`` gives it."""
    tail = (1 - fit["confidence"]) / 2
    second = fit["estimator"]
    clipped = any(c["se_clipping"] > 0 for c in coefficient_rows(fit))
    sources = ["sampling", "privacy", *(["clipping"] if clipped else [])]
    header = ["", "coef", "std err", *sources, "z", "P>|z|", f"[{tail:.4g}", f"{1 - tail:.4g}]"]
    show_second = second != "debiased"
    rows = [
        [
            c["name"],
            number(c["coefficient"]),
            number(c["se"]),
            *(number(c[f"se_{source}"]) for source in sources),
            "" if c["z"] is None or not c["identified"] else f"{c['z']:.2f}",
            probability(c["p_value"]) if c["identified"] else "",
            number(c["lower"]) if c["identified"] else "-inf",
            number(c["upper"]) if c["identified"] else "inf",
            *([number(c[second])] if show_second else []),
        ]
        for c in coefficient_rows(fit)
    ]
    blocks = [Block(header + ([second] if show_second else []), rows)]
    if fit["joint_tests"]:
        tests = [
            [t["name"], f"{t['chi_square']:.4g}", str(t["degrees"]), probability(t["p_value"])] for t in fit["joint_tests"]
        ]
        blocks.append(Block(["joint test: all coefficients are zero", "chi2", "df", "P>chi2"], tests))
    explained = [
        "coef: debiased coefficients, without the bias that the noise would cause. std err, z, P>|z| and the interval are about them.",
        f"{', '.join(sources[:-1])} and {sources[-1]}: the parts of std err. Their squares add up to its square.",
    ]
    if show_second:
        kind = "with the smallest expected error" if second == "shrunk" else "of this estimator"
        explained.append(f"{second}: coefficients {kind}. predict uses them.")
    if fit["counted_rows_note"] is not None:
        explained.append(f"Rows that counted: {fit['counted_rows_note']}.")
    if fit["design_effect"] != 1:
        explained.append(
            "Design effect: by what units and weights multiply the sampling variance, in the worst case unless it was given. Effective "
            "rows: the rows that counted, divided by it."
        )
    if fit["degrees_of_freedom"] is not None:
        explained.append("Df of noise: intervals and tests use t and F distributions with this many degrees of freedom.")
    return Summary(
        title=f"Private linear regression of {fit['target']}",
        facts=_facts(fit),
        blocks=blocks,
        notes=[*explained, *fit["notes"]],
    )


def _facts(fit: dict) -> list[tuple[str, str]]:
    low, high = fit["r_squared_interval"]
    ends = ["inf" if end is None else number(end**0.5) for end in fit["residual_variance_interval"]]
    squared = "not identified" if fit["r_squared"] is None else f"{fit['r_squared']:.3f} [{low:.3f}, {high:.3f}]"
    facts = [
        ("Target", fit["target"]),
        ("R-squared", squared),
        ("Mechanism", fit["mechanism"]),
        ("Residual sd", f"{number(fit['residual_variance'] ** 0.5)} [{ends[0]}, {ends[1]}]"),
        ("Epsilon, delta", f"{fit['epsilon']:g}, {fit['delta']:g}"),
        ("No. Observations", _observations(fit)),
        ("Neighbours", fit["neighbours"]),
        ("Rows that counted", counted(fit)),
        ("Intervals", fit["intervals"]),
        ("Confidence", f"{fit['confidence']:g}"),
    ]
    if fit["design_effect"] != 1:
        facts += [("Design effect", number(fit["design_effect"])), ("Effective rows", f"{fit['effective_rows']:,.0f}")]
    if fit["units"] is not None:
        facts.append(("No. Units", f"{fit['units']:,}"))
    if fit["degrees_of_freedom"] is not None:
        facts.append(("Df of noise", number(fit["degrees_of_freedom"])))
    return facts


def matrix_summary(data: dict, kind: str, matrix: Sequence[Sequence[float]]) -> Summary:
    """A symmetric matrix with means, standard deviations and standard errors."""
    names = data["names"]
    sds = [data["covariance"][k][k] ** 0.5 for k in range(len(names))]
    facts = zip(data["mean"], data["se_mean"], sds, strict=True)
    tables = [(["", "mean", "std err", "sd"], facts), ([kind, *names], matrix)]
    if kind in ("covariance", "correlation"):
        tables.append((["std err", *names], data[f"se_{kind}"]))
    blocks = [
        Block(header, [[name, *map(number, row)] for name, row in zip(names, rows, strict=True)]) for header, rows in tables
    ]
    return Summary(
        f"Private {'partial correlation' if kind == 'partial' else kind}", release_facts(data), blocks, data["notes"]
    )


def components_summary(data: dict, count: int) -> Summary:
    """Loadings, with what each component explains."""
    shown = range(min(count, len(data["variances"])))
    rows = [[name, *(f"{data['loadings'][k][j]:.3f}" for k in shown)] for j, name in enumerate(data["names"])]
    rows.append(["variance", *(number(data["variances"][k]) for k in shown)])
    rows.append(["share of variance", *(f"{data['shares'][k]:.3f}" for k in shown)])
    of = "the correlations" if data["standardised"] else "the covariance, in own units"
    title = f"Private principal components (of {of})"
    return Summary(title, release_facts(data), [Block(["", *(f"component {k + 1}" for k in shown)], rows)], data["notes"])


def release_facts(data: dict) -> list[tuple[str, str]]:
    """The header of every table that is no regression: what it says of the release."""
    return [
        ("Epsilon, delta", f"{data['epsilon']:g}, {data['delta']:g}"),
        ("No. Observations", _observations(data)),
        ("Mechanism", data["mechanism"]),
        ("Neighbours", data["neighbours"]),
        ("Rows that counted", counted(data)),
        *([("No. Units", f"{data['units']:,}")] if data["units"] is not None else []),
    ]


def _observations(data: dict) -> str:
    return "protected" if data["rows"] is None else f"{data['rows']:,}"
