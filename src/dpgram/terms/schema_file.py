"""The schema as a TOML file: strict reading, plain writing, and a draft to fill in."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpgram.errors import SchemaError
from dpgram.terms.columns import COLUMN_KINDS, Declaration
from dpgram.terms.derived import DERIVED_KINDS

if TYPE_CHECKING:
    from dpgram.terms.schema import Schema

KINDS: dict[str, dict[str, Any]] = {
    "columns": {kind.kind: kind for kind in COLUMN_KINDS},
    "derived": {kind.kind: kind for kind in DERIVED_KINDS},
}
OPTIONAL = ("unit_id", "rows_per_unit", "weight", "largest_weight", "provenance")  # written only where they are given
TOP = ("unit", "neighbours", "row_bound", "intercept", "missing", *OPTIONAL, "columns", "derived", "learnt")

MOST_CHARACTERS = 4_000_000  # of a file; the largest schema that is possible takes half of it
# Keys with points between them, where tables lie within each other: Python reads them in time and memory that grow with their square.
DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)++""")
MOST_POINTS = 40  # a text may have some, too
MOST_LEVELS = 8  # tables and lists within each other
NESTED = f"At most {MOST_LEVELS} tables or lists can be within each other, and a schema needs four"
MOST_DECLARED = 4096  # every column makes an encoded column or more, and a schema has at most so many
LARGEST = 10**300


def read(path: Path) -> dict:
    """The plain contents of a TOML file, or a SchemaError that says where it stops making sense."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MOST_CHARACTERS + 1)
        if len(text) > MOST_CHARACTERS:
            problem = f"has more than {MOST_CHARACTERS:,} characters, which no schema needs"
        elif any(keys[0].count(".") > MOST_POINTS for keys in DOTTED.finditer(text)):
            problem = f"is nested too deeply: more than {MOST_POINTS} names are joined by points. {NESTED}"
        else:
            return tomllib.loads(text)
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except RecursionError:
        problem = f"is nested too deeply. {NESTED}"
    except UnicodeDecodeError:
        problem = "is not UTF-8 text. Save it as UTF-8"
    except tomllib.TOMLDecodeError as error:
        hint = ". A value is empty. Fill it in" if "Invalid value" in str(error) else ""
        problem = f"is not valid TOML: {error}{hint}"
    except ValueError:  # of Python's own: a whole number of thousands of digits
        problem = "contains a whole number with far too many digits. Write it as a decimal fraction, such as 1e6"
    raise SchemaError(f"schema file {path} {problem}.")


def checked_fields(fields: object) -> dict[str, Any]:
    """The fields of a Schema, with every key known, and every column and derived column of a known kind."""
    if not isinstance(fields, dict):
        raise SchemaError(f"a schema must be a table of fields, but this is a {type(fields).__name__}.")
    _check_sizes(fields)
    _refuse_unknown(fields, TOP, "the schema")
    if "unit" not in fields:
        raise SchemaError('unit is missing. Say in words what one row is, such as unit = "visit".')
    read: dict[str, Any] = {"columns": [], **fields}
    for section, kinds in KINDS.items():
        tables = fields.get(section, [])
        called = next(iter(kinds.values())).called
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise SchemaError(f"{section} must be a list of tables. Write each {called} under [[{section}]].")
        read[section] = tuple(_declaration(t, called, i, kinds) for i, t in enumerate(tables, 1))
    return read


def _check_sizes(fields: dict) -> None:
    """Raise where lists or tables are nested too deeply, or a number or the number of declarations is beyond everything, before more is
    made of them."""
    level: list[Any] = [fields]
    for _ in range(MOST_LEVELS):
        level = [one for each in level for one in (each.values() if isinstance(each, dict) else each)]
        if any(isinstance(one, int) and abs(one) > LARGEST for one in level):
            raise SchemaError(
                f"the schema contains a whole number above {LARGEST:.0e}, which is too large for double precision. Shorten it."
            )
        level = [one for one in level if isinstance(one, dict | list | tuple)]
    if level:
        raise SchemaError(f"the schema is nested too deeply. {NESTED}.")
    for section in KINDS:
        listed = fields.get(section)
        if isinstance(listed, list) and len(listed) > MOST_DECLARED:
            raise SchemaError(
                f"the schema has {len(listed):,} {section}, but at most {MOST_DECLARED:,} are possible. Declare fewer."
            )
        for one in listed if isinstance(listed, list) else ():
            many = one.get("categories") if isinstance(one, dict) else None
            if isinstance(many, list) and len(many) > MOST_DECLARED + 1:
                raise SchemaError(
                    f"column {str(one.get('name'))[:40]!r} has {len(many):,} categories, but at most {MOST_DECLARED:,} are possible. "
                    f"Declare fewer, and allow other values."
                )


def _declaration(fields: dict, called: str, number: int, kinds: dict[str, Any]) -> Any:
    """One column, or one derived column."""
    name = fields.get("name")
    if not name:
        raise SchemaError(f"{called} number {number} has no name.")
    where = f"{called} {name!r}"
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        given = "blank" if kind in (None, "") else repr(kind)
        raise SchemaError(f"{where}: kind is {given} and must be one of {', '.join(kinds)}.")
    known = {f.name: f for f in dataclasses.fields(kinds[kind])}
    _refuse_unknown(fields, ("kind", *known), f"{where} ({kind})")
    for field in known.values():
        if field.default is dataclasses.MISSING and field.name not in fields:
            raise SchemaError(f"{where}: {field.name} is blank, but a {kind} column needs it. Fill it in.")
    return kinds[kind](**{k: v for k, v in fields.items() if k != "kind"})


def _refuse_unknown(fields: dict, known: Iterable[str], where: str) -> None:
    for key in fields:
        if key not in known:
            raise SchemaError(f"{where} has an unknown key {key!r}. The keys it can have are {', '.join(known)}.")


def plain_fields(schema: Schema) -> dict:
    """The schema as dicts and lists; what was left out stays out."""
    top: dict[str, object] = {"unit": schema.unit, "neighbours": schema.neighbours.value, "intercept": schema.intercept}
    if schema.row_bound is not None:
        top["row_bound"] = schema.row_bound
    top |= {name: value for name in OPTIONAL if (value := getattr(schema, name)) not in (None, "")}
    top["columns"] = _plain(schema.columns)
    if schema.derived:  # a schema without them reads the same in versions that do not know them
        top["derived"] = _plain(schema.derived)
    if schema.learnt:
        top["learnt"] = {name: list(interval) for name, interval in schema.learnt.items()}
    return top


def _plain(declarations: Iterable[Any]) -> list[dict[str, object]]:
    listed = [{"kind": one.kind, **dataclasses.asdict(one)} for one in declarations]
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in one.items() if v is not None} for one in listed]


def declaration_lines(one: Declaration) -> list[str]:
    """One column, or one derived column, as lines of TOML. What has its default is left out."""
    defaults = {f.name: f.default for f in dataclasses.fields(one)}
    (fields,) = _plain([one])
    written = {"name": one.name, "kind": one.kind} | {k: v for k, v in fields.items() if k == "kind" or v != defaults[k]}
    return [f"{key} = {toml_value(value)}" for key, value in written.items()]


def toml_value(value: object) -> str:
    """A value in TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(value) if isinstance(value, str) else repr(value)


def draft(columns: Iterable[tuple[str, str | None]]) -> str:
    """A schema to fill in, as TOML: (name, kind) pairs, where an unknown kind is None and an unusable one starts with "!".

    It holds names and kinds only. Bounds and categories stay blank: they come from the domain, not from the data."""
    parts = [_DRAFT_HEAD]
    for name, kind in columns:
        if kind is not None and kind.startswith("!"):
            parts.append(f"# {quoted(name)} is left out: {kind[1:]}.\n")
            continue
        lines = ["[[columns]]", f"name = {quoted(name)}"]
        lines += [f'kind = "{kind}"'] if kind else ['kind = ""            # numeric, categorical, boolean or date']
        lines += _DRAFTS.get(kind or "", _DRAFT_ANY)
        parts.append("\n".join(lines) + "\n")
    return "\n".join([*parts, _DRAFT_TAIL])


def quoted(text: str) -> str:
    """A TOML basic string: quotes, backslashes and control characters escaped."""
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or 127 <= ord(c) < 160 else "\\" + c if c in '"\\' else c for c in text)
    return f'"{escaped}"'


_DRAFTS = {
    "boolean": ['missing = false      # a missing cell counts as this; or true, or "drop-row": its row does not count'],
    "numeric": [
        'lower = ""           # smallest possible value',
        'upper = ""           # largest possible value',
        'missing = "drop-row" # a row with a missing cell does not count; or "indicator" (a column of its own), "midpoint", a number',
    ],
    "categorical": [
        "categories = []      # all possible values, the reference first",
        'missing = "reference" # a missing cell counts as this; or "level" (one of its own), "drop-row": its row does not count',
    ],
    "date": [
        'lower = ""           # first possible date, such as 2013-01-01',
        'upper = ""           # last possible date; a date without a time means midnight',
        'missing = "drop-row" # a row with a missing cell does not count; or "indicator" (a column of its own), "midpoint", a date',
    ],
}
_DRAFT_ANY = [
    "# numeric:      lower = 0",
    "#               upper = 100",
    '# categorical:  categories = ["a", "b"]',
    "# date:         lower = 2013-01-01",
    "#               upper = 2014-01-01",
    'missing = "drop-row" # a row with a missing cell does not count; or, by kind:',
    '# numeric, date: "indicator" (a column of its own), "midpoint", or a value',
    '# categorical:  "reference", or "level" (one of its own)',
    "# boolean:      false or true",
]
_DRAFT_TAIL = """\
# Declare interactions and transforms here too. They are computed from the columns above, and cannot be added after the release.
# [[derived]]
# name = "age_squared"
# kind = "power"       # or product, log, log1p, interval, date-part: see docs/schema.md
# of = "age"
# exponent = 2
"""
_DRAFT_HEAD = """\
# Schema for dpgram. Fill in the blanks.
# Everything that you declare here is published with the release, so keep secrets out of it. Comments are not published.
# Take bounds and categories from the domain: what is possible, not what is usual. Never look them up in the data, because that would
# leak. If you are unsure, declare wide bounds: the mechanism whitened-noise copes with bounds that are far too wide.
# Remove the columns that you do not want to release.

unit = ""              # whom a release protects, in words: "person", "visit", "flight"; without a unit_id that is one row
neighbours = "replace" # or "add-remove", which also protects the number of rows
intercept = true
# row_bound = 2.5      # rows with a larger norm are clipped, in scaled units; leave it out to clip no row

# If a unit can have several rows, name the column that says whose row it is, and remove it below. Its ids are never published.
# unit_id = "person_id"
# rows_per_unit = 5    # all rows of a unit together count as at most so many; the noise grows with it
# If rows have survey weights, name their column.
# weight = "weight"
# largest_weight = 4   # by the survey's design; the noise is that of rows with this weight
# provenance = ""      # where the bounds come from, and whether you looked at the rows; published
"""
