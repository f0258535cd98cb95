"""Lists of column names on the command line."""

from __future__ import annotations

from dpgram.terms.schema import Schema


def listed_names(schema: Schema, names: str | None) -> list[str] | None:
    """The names in a comma-separated list, None when there is none. A known name that itself holds commas is found whole."""
    if names is None:
        return None
    known = {*schema.encoded_names, *schema.all_names}
    listed: list[str] = []
    parts = names.split(",") if names else []
    while parts:
        joined = [",".join(parts[:k]) for k in range(len(parts), 0, -1)]
        first = next((name for name in joined if name in known or name.strip() in known), parts[0])
        listed.append(first if first in known else first.strip())
        parts = parts[first.count(",") + 1 :]
    return listed
