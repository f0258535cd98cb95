"""dpgram schema draft, suggest-derived"""

from __future__ import annotations

from pathlib import Path

from dpgram.cli.app import note
from dpgram.cli.options import Json, Repeated
from dpgram.cli.output import print_json, print_text


def draft(data: str, /, *, query: str | None = None) -> None:
    """Write a schema for DATA to standard output, to be filled in.

    Args:
        data: The table. A CSV, Parquet or Arrow file, a folder of files or a glob. Or a DuckDB file, 'duckdb:', a postgresql:// URI, or a
            Spark table such as spark:sales.visits.
        query: SQL for a database. Its result is the table."""
    from dpgram import curator  # slow to import: all that reads tables comes with it

    print(curator.draft_schema(data, query=query), end="")


def suggest_derived(
    *,
    schema: Path,
    formula: Repeated = None,
    epsilon: float | None = None,
    delta: float | None = None,
    table_rows: int | None = None,
    json: Json = False,
) -> None:
    """Write the derived columns that wished models need to standard output, as lines for the schema. No table is read.

    Args:
        schema: TOML file that declares the columns.
        formula: A model that somebody will want to fit, such as "wage ~ age*female + I(age**2)", or with instruments
            "wage ~ age + [schooling ~ distance]". May be repeated.
        epsilon: Epsilon of the privacy budget, for a forecast of how much wider intervals become.
        delta: Delta of the privacy budget, for the same forecast.
        table_rows: Number of rows, for the same forecast. It must be public, or a public guess."""
    from dpgram.planning.suggest import suggest_derived as suggest
    from dpgram.terms.schema import Schema

    found = suggest(Schema.load(schema), formula or [], epsilon=epsilon, delta=delta, table_rows=table_rows)
    if json:
        print_json(found.to_dict())
        return
    if found.derived:
        print_text(found.toml.rstrip("\n"))
    for cost in found.costs:
        note(cost)
