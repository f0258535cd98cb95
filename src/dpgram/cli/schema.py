"""dpgram schema draft"""

from __future__ import annotations

from dpgram import curator


def draft(data: str, /, *, query: str | None = None) -> None:
    """Write a schema for DATA to standard output, to be filled in.

    Args:
        data: The table. A CSV, Parquet or Arrow file, a folder of files or a glob. Or a DuckDB file, 'duckdb:', a postgresql:// URI, or a
            Spark table such as spark:sales.visits.
        query: SQL for a database. Its result is the table."""
    print(curator.draft_schema(data, query=query), end="")
