"""Columns in words: what was declared about one, and how one was computed from others."""

from __future__ import annotations

import json

from dpgram.terms.columns import Boolean, Categorical, Column, Date, Numeric
from dpgram.terms.derived import DatePart, Derived, Interval, Log1p, Power, Product
from dpgram.terms.schema import Schema


def declared(column: Column) -> str:
    """What was declared about a column, in words."""
    match column:
        case Numeric():
            missing = _number(column.missing) if isinstance(column.missing, float) else "the midpoint"
            return f"clamped to [{_number(column.lower)}, {_number(column.upper)}]; missing cells become {missing}"
        case Categorical():
            listed = ", ".join(json.dumps(c, ensure_ascii=False) for c in column.categories)
            other = (
                "; values that are not listed become level 'other'"
                if column.other
                else "; values that are not listed count as missing"
            )
            missing = "a level of their own" if column.missing == "level" else "the reference"
            return f"one of {listed}; the first is the reference{other}; missing cells become {missing}"
        case Boolean():
            return f"0 or 1; missing cells become {int(column.missing)}"
        case Date():
            missing = "the midpoint" if column.missing == "midpoint" else column.missing
            span = f"clamped to [{column.lower}, {column.upper}]"
            return f"{span}, in days since 1970-01-01 (UTC); missing cells become {missing}"


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
