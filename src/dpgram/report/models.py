"""Several fits in one table, a column for each: what ``Summary`` then shows as text, HTML, LaTeX or Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from dpgram.errors import ModelError, suggestion
from dpgram.report.summary import WHOLE_LINE, Block, Summary, counted, number, probability

LIMITS = (0.05, 0.01, 0.001)  # a star for each that a p-value is below
BELOW = ("se", "interval")


@dataclass(frozen=True)
class TableStyle:
    """How a table of models looks."""

    stars: bool = True
    below: str = "se"  # what is printed below a coefficient
    digits: int = 5  # significant ones
    fixed: Sequence[str] = ()  # columns with levels that get one row instead of one for each level
    extra: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # further rows: a text for each model

    def __post_init__(self) -> None:
        if not isinstance(self.stars, bool):
            raise ModelError(f"stars is {self.stars!r} and must be True or False.")
        if self.below not in BELOW:
            raise ModelError(f'below is {self.below!r} and must be "se" or "interval".')
        if isinstance(self.digits, bool) or not isinstance(self.digits, Integral) or not 1 <= self.digits <= 15:
            raise ModelError(f"digits is {self.digits!r} and must be a whole number from 1 to 15.")
        if isinstance(self.fixed, str) or not isinstance(self.fixed, Iterable):
            raise ModelError(f"fixed is {self.fixed!r} and must be a list of columns, such as ['carrier'].")

    def check(self, columns: Iterable[str], models: int) -> None:
        """Raise where a fixed column is in no model, or an extra row has not one text for each model."""
        known = sorted(set(columns))
        for name in self.fixed:
            if name not in known:
                hint = suggestion(str(name), known)
                raise ModelError(f"fixed names {name!r}, but no model has such a column.{hint} Name a column of a model.")
        for label, texts in self.extra.items():
            if isinstance(texts, str) or len(texts) != models:
                raise ModelError(f"the extra row {label!r} needs a list with {models} entries, one for each model.")


def model_table(
    data: dict, columns: Mapping[str, Mapping[str, Sequence[str]]], style: TableStyle, partial: Mapping[str, Collection[str]]
) -> Summary:
    """Fits side by side, as ``Comparison.to_dict`` gives them, for each model the coefficients of each column in ``columns``.

    A model has only some levels of the columns in ``partial``."""
    models = data["models"]
    style.check((name for groups in columns.values() for name in groups), len(models))
    hidden = {name for groups in columns.values() for column in style.fixed for name in groups.get(column, ())}
    names = dict.fromkeys(name for fit in models.values() for name in fit["coefficients"] if name not in hidden)
    rows: list[list[str]] = []
    for name in names:
        entries = [fit["coefficients"].get(name) for fit in models.values()]
        rows.append([name, *("" if c is None else _number(c["coefficient"], style) + _stars(c, style) for c in entries)])
        rows.append(["", *("" if c is None else _below(c, style) for c in entries)])
    rules = [len(rows)]
    if style.fixed:
        rows += [
            [
                f"{column}, all levels",
                *("some" if column in partial[m] else "yes" if column in columns[m] else "no" for m in models),
            ]
            for column in style.fixed
        ]
        rules.append(len(rows))
    rows += [[label, *map(str, texts)] for label, texts in style.extra.items()]
    fits = models.values()
    rows.append(["target", *(fit["target"] for fit in fits)])
    if any(_has_instruments(f) for f in fits):
        rows.append(["estimator", *(f["estimator"].upper() if _has_instruments(f) else "OLS" for f in fits)])
        rows.append(["First-stage F", *(_number(f["strength"], style) if _has_instruments(f) else "" for f in fits)])
    if any(f.get("overidentification") for f in fits):
        tests = [f.get("overidentification") for f in fits]
        rows.append(["P, instruments agree", *("" if test is None else probability(test["p_value"]) for test in tests)])
    rows.append(["R-squared", *("" if f.get("r_squared") is None else f"{f['r_squared']:.3f}" for f in fits)])
    rows.append(["Residual sd", *(_number(f["residual_variance"] ** 0.5, style) for f in fits)])
    rows.append(["Observations", *("protected" if f["rows"] is None else f"{f['rows']:,}" for f in fits)])
    rows.append(["Rows that counted", *(counted(f) for f in fits)])
    rows.append(["epsilon", *(f"{f['epsilon']:g}" for f in fits)])
    return Summary("Private linear regressions", [], [Block(["", *models], rows, tuple(rules))], _notes(data, style))


def _notes(data: dict, style: TableStyle) -> list[str]:
    models = data["models"].values()
    rows = [c for fit in models for c in fit["coefficients"].values()]
    levels = sorted({f"{fit['confidence']:.4g}" for fit in models})
    below = "standard errors" if style.below == "se" else f"confidence intervals ({' and '.join(levels)})"
    notes = [f"Debiased coefficients, with {below} in brackets. These include sampling, privacy noise and clipping."]
    if style.stars:
        notes.append("*** p<0.001, ** p<0.01, * p<0.05.")
    if any(not c["identified"] and "set" not in c for c in rows):
        notes.append(f"(not id.): {WHOLE_LINE}, so the interval is infinite.")
    if any(_has_instruments(fit) for fit in models):
        notes.append(
            "2SLS, LIML: stars and confidence sets come from the Anderson-Rubin test, except where the instruments are strong. F includes "
            "the privacy noise."
        )
    weak = [name for name, fit in data["models"].items() if fit.get("strength_word") == "weak"]
    if weak:
        notes.append(
            f"WEAK INSTRUMENTS in {', '.join(weak)}: F is below 10. Coefficients and standard errors can be far off there. Read the "
            f"confidence sets."
        )
    if any(c.get("set") == [] for c in rows):
        notes.append("(empty): the confidence set is empty, because no value agrees with all instruments.")
    if style.below == "se" and any(c.get("set") and not c["identified"] for c in rows):
        notes.append("(no end): the confidence set has no end, at least on one side.")
    if not data["same_release"]:
        notes.append("These fits come from different releases. Each release has its own noise and its own budget.")
    return notes + sorted({note for fit in models for note in fit["notes"] if note.startswith(("NOT PRIVATE", "CONDITIONAL"))})


def _end(value: float | None, style: TableStyle, without: str) -> str:
    return without if value is None else _number(value, style)


def _number(value: float, style: TableStyle) -> str:
    return number(value) if style.digits == 5 else f"{value:.{style.digits}g}"


def _has_instruments(fit: dict) -> bool:
    return "instruments" in fit


def _stars(c: dict, style: TableStyle) -> str:
    told = bool(c.get("set", c["identified"]))
    return "*" * sum(c["p_value"] < limit for limit in LIMITS) if told and style.stars else ""


def _below(c: dict, style: TableStyle) -> str:
    if c.get("set") == []:
        return "(empty)"
    if "set" in c and style.below == "interval":
        return " or ".join(f"[{_end(low, style, '-inf')}, {_end(high, style, 'inf')}]" for low, high in c["set"])
    if "set" in c and not c["identified"]:
        return "(no end)"
    if not c["identified"]:
        return "(not id.)"
    if style.below == "se":
        return f"({_number(c['se'], style)})"
    return f"[{_number(c['lower'], style)}, {_number(c['upper'], style)}]"
