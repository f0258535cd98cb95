"""dpgram schema draft"""

from __future__ import annotations

from dpgram import curator


def draft(data: str, /) -> None:
    """Write a schema for DATA to standard output, to be filled in.

    Parameters
    ----------
    data
        CSV, Parquet or Arrow: a file, a folder or a glob.
    """
    print(curator.draft_schema(data), end="")
