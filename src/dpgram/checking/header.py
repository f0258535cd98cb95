"""What the names of a table's columns say, before any row is read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dpgram.errors import TableError
from dpgram.sources.base import Source, check_header
from dpgram.terms.schema import Schema


@dataclass(frozen=True)
class Header:
    """Which columns that the schema names are there, and which others are."""

    there: tuple[str, ...]  # once each: they can be read
    absent: tuple[str, ...]
    twice: tuple[str, ...]
    unused: tuple[str, ...]
    nearly: dict[str, str]  # by the name of an absent column: one of the table that differs only in case or white space
    withheld: bool  # whether the other names are not told, because they may be somebody's cells

    @classmethod
    def of(cls, source: Source, schema: Schema) -> Header:
        times = Counter(source.columns.names)
        named = schema.read_names
        absent = tuple(name for name in named if not times[name])
        withheld = (len(absent) == len(named) and not source.typed_by_format) or _looks_like_a_row(source)
        others = tuple(name for name in times if name and name not in named)
        alike = {name.strip().casefold(): name for name in others}
        return cls(
            there=tuple(name for name in named if times[name] == 1),
            absent=absent,
            twice=tuple(name for name in named if times[name] > 1),
            unused=() if withheld else others,
            nearly={name: alike[name.strip().casefold()] for name in absent if name.strip().casefold() in alike},
            withheld=withheld,
        )


def _looks_like_a_row(source: Source) -> bool:
    try:
        check_header(source)
    except TableError:
        return True
    return False
