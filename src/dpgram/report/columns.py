"""Columns in words: what was declared about one, and how one was computed from others."""

from __future__ import annotations

import json

from dpgram.terms.columns import MISSING, Boolean, Categorical, Column, Date, Numeric
from dpgram.terms.derived import DatePart, Derived, Interval, Log, Log1p, Power, Product
from dpgram.terms.schema import Schema


def declared(column: Column) -> str:
    """What was declared about a column, in words."""
    match column:
        case Numeric():
            return f"clamped to [{_number(column.lower)}, {_number(column.upper)}]; {_missing(column)}"
        case Categorical():
            listed = ", ".join(json.dumps(c, ensure_ascii=False) for c in column.categories)
            other = (
                "; values that are not listed become level 'other'"
                if column.other
                else "; values that are not listed count as missing"
            )
            return f"one of {listed}; the first is the reference{other}; {_missing(column)}"
        case Boolean():
            return f"0 or 1; {_missing(column)}"
        case Date():
            return f"clamped to [{column.lower}, {column.upper}], in days since 1970-01-01 (UTC); {_missing(column)}"


def _missing(column: Column) -> str:
    """What became of missing cells, in words."""
    match column.missing:
        case "drop-row":
            return "rows with a missing cell do not count"
        case "indicator":
            return f"missing cells become the midpoint, and 1 in {column.name}[{MISSING}]"
        case "level":
            return "missing cells become a level of their own"
    return f"missing cells become {value_of_missing(column)}"


def value_of_missing(column: Column) -> str | None:
    """The value that missing cells became, in words, where nothing tells them from others."""
    match column.missing:
        case "drop-row" | "indicator" | "level":
            return None
        case "reference" | "midpoint":
            return f"the {column.missing}"
        case float():
            return _number(column.missing)
    return str(int(column.fill)) if isinstance(column, Boolean) else str(column.missing)


def scaled(column: Column, schema: Schema) -> str:
    """The learnt interval of a column, where a release has found that its bounds are wide; else nothing."""
    if column.name not in schema.learnt:
        return ""
    encoded = schema.encoded[schema.places[column.name][0]]
    low, high = schema.learnt[column.name]
    ends = (encoded.centre - encoded.half, encoded.centre + encoded.half)
    found = f"scaled by a learnt interval, which holds most values: [{low:.6g}, {high:.6g}], found under noise"
    return f"; {found}; values outside [{ends[0]:.6g}, {ends[1]:.6g}] are moved to its ends"


def _number(value: float) -> str:
    """A declared number with all of its digits: the label must not state another bound."""
    return f"{value:.15g}"


def computed(derived: Derived, schema: Schema) -> str:
    """How a derived column was computed from the clamped cells of declared ones, in words."""
    match derived:
        case Product():
            formula = " times ".join(derived.of)
        case Power():
            formula = f"{derived.of} to the power {derived.exponent}"
        case Log():
            formula = f"log({derived.of})"
        case Log1p():
            formula = f"log(1 + {derived.of})"
        case Interval():
            below, above = ("" if end is None else f"{end}" for end in (derived.lower, derived.upper))
            formula = f"1 where {below + ' <= ' if below else ''}{derived.of}{' < ' + above if above else ''}, else 0"
        case DatePart():
            week = " (Monday is 1)" if derived.part == "weekday" else ""
            levels = ", one column per level" if derived.levels else ""
            formula = f"{derived.part.replace('_', ' ')}{week} of {derived.of}, in UTC{levels}"
    made = schema.made[derived.name]
    if made.is_number:
        missing = "the midpoint" if derived.missing in (None, "midpoint") else _number(made.fill[0])  # type: ignore[attr-defined]
        return f"{formula}, within [{_number(made.lower)}, {_number(made.upper)}]; {missing} if a cell it uses is missing"
    own_level = len(made.fill) > 1 and any(made.fill)
    return f"{formula}; {'a level of its own' if own_level else int(made.fill[0])} if a cell it uses is missing"
