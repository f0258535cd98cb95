"""dpgram schema draft"""

from __future__ import annotations

from dpgram import curator


def draft(data: str, /) -> None:
    """Write a schema for DATA to standard output, to be filled in.

    It holds the column names, and kinds where the format declares types, but never a value. Bounds and categories stay
    blank: declare them from what is known of the domain, not from the data.

    Parameters
    ----------
    data
        CSV, Parquet or Arrow: a file, a folder or a glob.
    """
    print(curator.draft_schema(data), end="")
