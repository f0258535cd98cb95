"""Lines for the schema that come from no value: kinds, and rules for missing and undeclared cells. Never bounds, never categories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from dpgram.checking.findings import MOSTLY, MUCH_MISSING, merged, rule_for_missing
from dpgram.checking.result import Suggestion
from dpgram.checking.tally import UNDECLARED, ColumnTally, reason_of
from dpgram.errors import SchemaError
from dpgram.terms import schema_file
from dpgram.terms.columns import INDICATOR, Boolean, Categorical
from dpgram.terms.schema import LONGEST_PROVENANCE, Schema

if TYPE_CHECKING:
    from dpgram.checking.result import Check

LOOKED_AT = "The rows were looked at with dpgram check."
WHY_NO_BOUNDS = (
    "No bounds and no categories are suggested, because those would come from values. The schema is published, so a bound that was "
    "taken from the rows would tell everyone about the person who has that value. Take them from what you know of the domain."
)
BLANKS = {"numeric": ("lower", "upper"), "date": ("lower", "upper"), "categorical": ("categories",), "boolean": ()}


def suggestions(schema: Schema, tallies: Iterable[ColumnTally], *, changes: bool) -> tuple[Suggestion, ...]:
    """All of them, column by column; last, if the schema is likely to change, the line that says that the rows were looked at."""
    own = [each for tally in tallies for each in _of_column(tally)]
    said = Suggestion(
        None,
        f"provenance = {schema_file.quoted(_appended(schema.provenance))}",
        "the schema is changed after a look at the rows",
    )
    return (*own, *([said] if own or changes else []))


def _of_column(tally: ColumnTally) -> Iterator[Suggestion]:
    column, name = tally.column, tally.column.name
    kind = _likely(tally)
    if kind:
        yield Suggestion(name, f'kind = "{kind}"', f"most cells are of that kind; declared is {column.kind}")
        return
    share = tally.missing / max(1, tally.cells)
    if MUCH_MISSING < share < 1 and column.missing not in (INDICATOR, "level") and not isinstance(column, Boolean):
        why = "many cells are missing: with this rule they are kept apart from the others"
        if (rule := rule_for_missing(column)) == INDICATOR:
            why += ". Use drop-row if regressions should explain this column"
        yield Suggestion(name, f'missing = "{rule}"', why)
    if isinstance(column, Categorical) and not column.other and tally.found["undeclared"]:
        yield Suggestion(
            name, "other = true", "some cells are not among the categories: with this rule they have a level of their own"
        )
    for code, times in merged(tally.found).items():
        reason = reason_of(tally, code)
        if times and code not in UNDECLARED and reason.kind in ("", column.kind):
            yield Suggestion(name, f"# format: some cells are {reason.words}", reason.do)


def _likely(tally: ColumnTally) -> str:
    """The kind that most of the cells have, where it is another than the declared one; else nothing."""
    held = tally.cells - tally.missing
    kinds: dict[str, int] = {}
    for code, times in tally.found.items():
        if kind := reason_of(tally, code).kind:
            kinds[kind] = kinds.get(kind, 0) + times
    best = max(kinds, key=lambda kind: kinds[kind], default="")
    return best if best and best != tally.column.kind and kinds[best] > MOSTLY * held else ""


def with_provenance(schema: Schema) -> Schema:
    """The schema, whose provenance says that the rows were looked at. Raises SchemaError if there is no room for it."""
    if len(appended := _appended(schema.provenance)) > LONGEST_PROVENANCE:
        raise SchemaError(
            f"provenance has no room for the sentence {LOOKED_AT!r}. Shorten it: at most {LONGEST_PROVENANCE} characters are allowed."
        )
    return replace(schema, provenance=appended)


def _appended(provenance: str) -> str:
    if LOOKED_AT in provenance:
        return provenance
    said = provenance.rstrip()
    return f"{said}{'.' * (bool(said) and said[-1] not in '.!?')} {LOOKED_AT}".strip()


def suggested_toml(check: Check) -> str:
    """The schema of a check as TOML, with the suggested kinds and, as comments, the other suggested lines."""
    fields = schema_file.plain_fields(with_provenance(check.schema))
    lines = [
        "# Written by dpgram check, which looked at the rows. Bounds and categories are yours: they come from the domain.",
        "",
    ]
    for key, value in fields.items():
        if key not in ("columns", "derived", "learnt"):
            lines.append(f"{key} = {schema_file.toml_value(value)}")
    for section in ("columns", "derived"):
        for entry in fields.get(section, ()):
            lines += ["", f"[[{section}]]", *_entry(entry, [s for s in check.suggestions if s.column == entry["name"]])]
    if learnt := fields.get("learnt"):
        lines += [
            "",
            "[learnt]",
            *(f"{schema_file.quoted(name)} = {schema_file.toml_value(ends)}" for name, ends in learnt.items()),
        ]
    return "\n".join(lines) + "\n"


def _entry(entry: dict, suggested: list[Suggestion]) -> Iterator[str]:
    """The lines of one column; where another kind is suggested, what that needs is blank."""
    kinds = [s for s in suggested if s.line.startswith("kind = ")]
    if not kinds:
        yield from (f"{key} = {schema_file.toml_value(value)}" for key, value in entry.items())
        yield from (f"{s.line}. {s.why}" if s.line.startswith("#") else f"# suggested: {s.line}  # {s.why}" for s in suggested)
        return
    kind = kinds[0].line.partition('"')[2].rstrip('"')
    yield from (f"name = {schema_file.quoted(entry['name'])}", f'kind = "{kind}"  # was {entry["kind"]}: {kinds[0].why}')
    yield from (
        f"{blank} = {'[]' if blank == 'categories' else schema_file.quoted('')}  # fill in from the domain"
        for blank in BLANKS[kind]
    )
