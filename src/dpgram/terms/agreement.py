"""Whether several schemas declare the same table, where they differ, and the one schema that stands for all of them.

Learnt intervals and provenance may differ: intervals are only units, and provenance is a remark. So may the order of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from dpgram.terms.columns import Declaration
from dpgram.terms.schema import LONGEST_PROVENANCE, Schema

ALIKE = ("unit", "neighbours", "intercept", "unit_id", "rows_per_unit", "weight", "largest_weight")
LONGEST = 60  # characters of a value in a sentence
BETWEEN = " / "  # of the provenances of several schemas


def differences(first: Schema, second: Schema) -> list[str]:
    """Where two schemas differ, as parts of a sentence in which theirs are called the first and the second."""
    found = [*_of_fields(first, second), *_of_columns(first, second)]
    ours, theirs = first.effective_row_bound, second.effective_row_bound
    return found or ([f"row_bound is {_in_both(ours, theirs)}"] if ours != theirs else [])  # else it follows from the columns


def _of_fields(first: Schema, second: Schema) -> Iterator[str]:
    for name in ALIKE:
        ours, theirs = getattr(first, name), getattr(second, name)
        if ours != theirs:
            yield f"{name} is {_in_both(ours, theirs)}"


def _of_columns(first: Schema, second: Schema) -> Iterator[str]:
    for ours, theirs in ((first.columns, second.columns), (first.derived, second.derived)):
        here, there = ({one.name: one for one in declared} for declared in (ours, theirs))
        for name in (*here, *(name for name in there if name not in here)):
            if name not in here or name not in there:
                yield f"column {name!r} is only in the {'first' if name in here else 'second'}"
            elif here[name] != there[name]:
                yield _of_declarations(here[name], there[name])


def _of_declarations(first: Declaration, second: Declaration) -> str:
    if first.kind != second.kind:
        return f"column {first.name!r} is {first.kind} in the first and {second.kind} in the second"
    for field in fields(first):
        ours, theirs = getattr(first, field.name), getattr(second, field.name)
        if ours != theirs:
            return f"{field.name} of column {first.name!r} is {_in_both(ours, theirs)}"
    return f"column {first.name!r} is declared differently"


def _in_both(ours: object, theirs: object) -> str:
    return f"{_shown(ours)} in the first and {_shown(theirs)} in the second"


def _shown(value: object) -> str:
    if value is None:
        return "not given"
    plain = getattr(value, "value", value)  # of an enumeration
    text = f"{plain:.15g}" if isinstance(plain, float) else repr(plain)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def agreed(schemas: Sequence[Schema]) -> Schema:
    """One schema for all: the first, with learnt intervals that span those of every one, so the order of schemas moves no unit."""
    spans: dict[str, tuple[float, float]] = {}
    for schema in schemas:
        for name, (lower, upper) in schema.learnt.items():
            low, high = spans.get(name, (lower, upper))
            spans[name] = min(low, lower), max(high, upper)
    told = BETWEEN.join(dict.fromkeys(part for schema in schemas for part in schema.provenance.split(BETWEEN) if part))
    provenance = told if len(told) <= LONGEST_PROVENANCE else f"{told[: LONGEST_PROVENANCE - 3]}..."
    return replace(schemas[0], learnt=spans, provenance=provenance)
