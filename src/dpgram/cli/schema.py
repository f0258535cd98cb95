"""dpgram schema draft"""

from __future__ import annotations

from dpgram import curator


def draft(data: str, /, *, query: str | None = None) -> None:
    """Write a schema for DATA to standard output, to be filled in.

    Args:
        data: CSV, Parquet or Arrow: a file, a folder or a glob; a DuckDB file, `duckdb:`, a postgresql:// URI,
            or a Spark table such as spark:sales.visits.
        query: A database's answer to this SQL is the table."""
    print(curator.draft_schema(data, query=query), end="")
