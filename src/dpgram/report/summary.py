"""Fits as text and HTML, in tables like those of statsmodels (a header, a table of coefficients, tests, notes), and as data frames."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from dpgram.artifact.release import GramRelease
from dpgram.errors import MissingExtraError

WHOLE_LINE = "not identified at this budget"
RIGHT = " style='text-align:right'"


@dataclass(frozen=True)
class Block:
    """One table: cells as text, the first column to the left, the others to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


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
            pair = [f"{name + ':':<18}{value:>{half - 18}}" for name, value in self.facts[k : k + 2]]
            lines.append("  ".join(pair).rstrip())
        for block in blocks:
            lines += ["=" * width, block[0], "-" * width, *block[1:]]
        lines.append("=" * width)
        for note in self.notes:
            lines += textwrap.wrap(note, width, subsequent_indent="  ")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<div class='dpgram'><b>{html.escape(self.title)}</b>"]
        if self.facts:
            parts.append(f"<table>{''.join(f'<tr>{_cells(fact)}</tr>' for fact in self.facts)}</table>")
        for block in self.blocks:
            body = "".join(
                f"<tr><th style='text-align:left'>{html.escape(name)}</th>{_cells(cells, RIGHT)}</tr>"
                for name, *cells in block.rows
            )
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in block.header)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<p>{html.escape(note)}</p>" for note in self.notes]
        return "".join(parts) + "</div>"


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
    }


def cautions(release: GramRelease) -> list[str]:
    """What a reader must know about every number from the release, in words."""
    seeded = (
        [] if release.private else ["NOT PRIVATE: the noise came from a seed, so anyone who knows the seed can subtract it."]
    )
    return seeded + ([f"CONDITIONAL: {release.condition}."] if release.condition else [])


def number(value: float | None) -> str:
    """Five significant digits; what is not there is left empty."""
    return "" if value is None else f"{value:.5g}"


def probability(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def coefficient_rows(fit: dict) -> list[dict]:
    """A row for each coefficient of a fit, its name among the fields."""
    return [{"name": name, **fields} for name, fields in fit["coefficients"].items()]


def framed_rows(fit: dict) -> list[dict]:
    """The table with a number in every cell, for a data frame: None becomes the infinite end that it stands for."""
    absent = {"lower": -math.inf, "upper": math.inf, "z": math.nan}
    return [{key: absent[key] if value is None else value for key, value in row.items()} for row in coefficient_rows(fit)]


def data_frame(data: Sequence[dict] | dict[str, Any], *, index: str | list[str]) -> Any:
    """Rows, or columns by name, as a pandas data frame, for those who have pandas."""
    if find_spec("pandas") is None:
        raise MissingExtraError(package="pandas", extra="frames", purpose="a data frame")
    import pandas as pd

    return pd.DataFrame(data).set_index(index)


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
    if fit["rows"] is None:
        explained.append("Effective rows: a noisy estimate of the number of rows, in which clipped rows count for less.")
    elif round(fit["effective_rows"]) != fit["rows"]:
        explained.append("Effective rows: an estimate in which clipped rows count for less.")
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
        ("Effective rows", f"{fit['effective_rows']:,.0f}"),
        ("Intervals", fit["intervals"]),
        ("Confidence", f"{fit['confidence']:g}"),
    ]
    if fit["degrees_of_freedom"] is not None:
        facts.append(("Df of noise", number(fit["degrees_of_freedom"])))
    return facts


def compare_models(data: dict) -> Summary:
    """Several fits side by side: coefficient over its standard error in brackets, stars for small p-values."""
    models = data["models"]
    names = list(dict.fromkeys(name for fit in models.values() for name in fit["coefficients"]))
    rows: list[list[str]] = []
    for name in names:
        entries = [fit["coefficients"].get(name) for fit in models.values()]
        rows.append([name, *("" if c is None else number(c["coefficient"]) + _stars(c) for c in entries)])
        rows.append(["", *("" if c is None else f"({number(c['se'])})" if c["identified"] else "(not id.)" for c in entries)])
    rows.append(["target", *(fit["target"] for fit in models.values())])
    rows.append(["R-squared", *("" if f["r_squared"] is None else f"{f['r_squared']:.3f}" for f in models.values())])
    rows.append(["Residual sd", *(number(f["residual_variance"] ** 0.5) for f in models.values())])
    rows.append(["epsilon", *(f"{f['epsilon']:g}" for f in models.values())])
    notes = [
        "Debiased coefficients, with standard errors in brackets. These include sampling, privacy noise and clipping.",
        "*** p<0.001, ** p<0.01, * p<0.05.",
    ]
    if any(not c["identified"] for fit in models.values() for c in fit["coefficients"].values()):
        notes.append(f"(not id.): {WHOLE_LINE}, so the interval is infinite.")
    if not data["same_release"]:
        notes.append("These fits come from different releases. Each release has its own noise and its own budget.")
    notes += sorted(
        {note for fit in models.values() for note in fit["notes"] if note.startswith(("NOT PRIVATE", "CONDITIONAL"))}
    )
    return Summary("Private linear regressions", [], [Block(["", *models], rows)], notes)


def _stars(c: dict) -> str:
    return "*" * sum(c["p_value"] < limit for limit in (0.05, 0.01, 0.001)) if c["identified"] else ""


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
    return Summary(f"Private {'partial correlation' if kind == 'partial' else kind}", _origin(data), blocks, data["notes"])


def components_summary(data: dict, count: int) -> Summary:
    """Loadings, with what each component explains."""
    shown = range(min(count, len(data["variances"])))
    rows = [[name, *(f"{data['loadings'][k][j]:.3f}" for k in shown)] for j, name in enumerate(data["names"])]
    rows.append(["variance", *(number(data["variances"][k]) for k in shown)])
    rows.append(["share of variance", *(f"{data['shares'][k]:.3f}" for k in shown)])
    of = "the correlations" if data["standardised"] else "the covariance, in own units"
    title = f"Private principal components (of {of})"
    return Summary(title, _origin(data), [Block(["", *(f"component {k + 1}" for k in shown)], rows)], data["notes"])


def _origin(data: dict) -> list[tuple[str, str]]:
    return [
        ("Epsilon, delta", f"{data['epsilon']:g}, {data['delta']:g}"),
        ("No. Observations", _observations(data)),
        ("Mechanism", data["mechanism"]),
        ("Neighbours", data["neighbours"]),
    ]


def _observations(data: dict) -> str:
    return "protected" if data["rows"] is None else f"{data['rows']:,}"
