"""Whom a release protects and how much each row counts, in words: units, weights, missing cells, and what is public of their numbers."""

from __future__ import annotations

from dpgram.artifact.release import GramRelease
from dpgram.report.fact import Fact, Group, Planned
from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import DROP_ROW
from dpgram.terms.schema import Schema
from dpgram.terms.words import Point

ROWS_OF = {"table": "one row", "result": "one row of the result of a query, lazy frame or stream"}
ALL_ROWS_OF = {"table": "all rows", "result": "all rows in the result of a query, lazy frame or stream"}
ASSUMED = {
    "table": "each {unit} has one row. This is not checked. A {unit} with several rows is protected less",
    "result": (
        "each {unit} has one row in the result. This is not checked. A {unit} with several rows is protected less. A join can multiply "
        "rows, and an aggregate can mix the rows of several in one"
    ),
}
MIXED = ". An aggregate in the query can still mix the rows of several in one"
MOST_NAMES = 6  # of columns in one line
PUBLIC = "public under these neighbours"


def relation_in_words(schema: Schema) -> str:
    """Which tables count as neighbours."""
    if schema.unit_id is None:
        return schema.neighbours.in_words
    if schema.neighbours is Neighbours.REPLACE:
        differ = f"tables that differ in all rows of one {schema.unit}, which are replaced by the rows of another"
        return f"{differ}; the number of units is public"
    return f"tables that differ by all rows of one {schema.unit}, which are added or removed; the number of units is protected"


def unit_facts(of: GramRelease | Planned) -> list[Fact]:
    """Whom the guarantee is about, and whether that is assumed or enforced."""
    schema, group, point = of.schema, Group.GUARANTEE, Point.UNIT
    unit, has_ids = schema.unit, schema.unit_id is not None
    words = f"{ALL_ROWS_OF[of.rows_of]} of one {unit}" if has_ids else f"{ROWS_OF[of.rows_of]}: {unit}"
    assumed = None if has_ids else ASSUMED[of.rows_of].format(unit=unit)
    enforced = _enforced(schema, of.rows_of) if has_ids else None
    return [
        Fact(group, point, ("unit",), "unit of privacy", unit, words),
        Fact(group, point, ("rows_of",), "", of.rows_of),
        Fact(group, point, ("unit_assumption",), "assumed" if assumed else "", assumed),
        Fact(group, point, ("unit_enforced",), "enforced" if enforced else "", enforced),
        Fact(group, point, ("unit_id",), "", schema.unit_id),
        Fact(group, point, ("rows_per_unit",), "", schema.rows_per_unit),
    ]


def _enforced(schema: Schema, rows_of: str) -> str:
    most = f"{schema.most_rows:,} rows" if schema.most_rows > 1 else "one row"
    weighed = " of the largest weight" if schema.weight else ""
    return (
        f"all rows of one {schema.unit} together count as at most {most}{weighed}. The column {schema.unit_id!r} says whose row it is. "
        f"Its ids are not published. Rows without an id do not count{MIXED if rows_of == 'result' else ''}"
    )


def number_facts(of: GramRelease | Planned) -> list[Fact]:
    """How many rows and units there are, where that is public."""
    schema, group, point = of.schema, Group.GUARANTEE, Point.NEIGHBOURS
    has_ids, replaced = schema.unit_id is not None, schema.neighbours is Neighbours.REPLACE
    if isinstance(of, Planned):
        units = Fact(group, point, (), "number of units", "will be public" if replaced else "stays protected")
        rows = Fact(group, point, (), "rows", "will be public" if replaced and not has_ids else "stay protected")
        return [units, rows] if has_ids else [rows]
    partly = ". Some of them may not count: see below" if schema.counts_partly else ""
    all_rows = "protected" if of.rows is None else f"{of.rows:,} ({PUBLIC}){partly}"
    all_units = "protected" if of.units is None else f"{of.units:,} ({PUBLIC})"
    return [
        Fact(group, point, ("units",), "number of units" if has_ids else "", of.units, all_units),
        Fact(group, point, ("rows",), "rows", of.rows, all_rows),
    ]


def counting_facts(schema: Schema) -> list[Fact]:
    """How much each row counts, and where the declared bounds come from."""
    group, weight, largest = Group.COUNTING, schema.weight, schema.largest_weight
    dropping = [column.name for column in schema.columns if column.missing == DROP_ROW]
    where = "" if len(dropping) == len(schema.columns) else f" in {_listed(dropping)}"
    weighed = (
        f"a row counts in proportion to column {weight!r}. The largest weight is {largest:.15g}. Larger ones count as this, and noise is "
        f"added as for rows with this weight. Rows with a negative weight or none do not count"
        if weight
        else ""
    )
    return [
        Fact(group, Point.BOUNDS, ("weight",), "weights" if weight else "", weight, weighed),
        Fact(group, Point.BOUNDS, ("largest_weight",), "", largest),
        Fact(
            group,
            Point.BIAS,
            ("dropped_if_missing",),
            "missing cells" if dropping else "",
            dropping,
            f"a row with a missing cell{where} does not count",
        ),
        Fact(group, Point.BOUNDS, ("provenance",), "provenance" if schema.provenance else "", schema.provenance or None),
    ]


def _listed(names: list[str]) -> str:
    if len(names) > MOST_NAMES:
        return f"one of {len(names)} columns, which are named below,"
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def public_numbers(release: GramRelease) -> list[str]:
    """What of the table's size is public, in words."""
    numbers = {"the number of rows": release.rows, "the number of units": release.units}
    return [words for words, number in numbers.items() if number is not None]


def protected_numbers(release: GramRelease) -> list[str]:
    """What of the table's size is protected, in words."""
    schema = release.schema
    if schema.neighbours is Neighbours.ADD_REMOVE:
        numbers = "the number of rows" if schema.unit_id is None else "the number of units and the number of rows"
    elif schema.unit_id is not None:
        numbers = "the number of rows, and how many rows each unit has"
    elif schema.counts_partly:
        numbers = "the number of rows that count"
    else:
        return []
    entry = "; the intercept's entry is a noisy estimate of how many rows count, in which clipped rows count for less"
    return [numbers + (entry if schema.intercept else "")]
