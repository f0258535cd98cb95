"""What a fact about a release is, and what is known of one that is only planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import Any

from dpgram.terms.budget import Budget
from dpgram.terms.schema import Schema
from dpgram.terms.words import Point, number


class Group(Enum):
    """Where facts stand together, with the title above them."""

    GUARANTEE = "Guarantee"
    MECHANISM = "Mechanism"
    NOISE = "Noise"
    COUNTING = "How rows count"
    COLUMNS = "Declared columns"
    DERIVED = "Derived columns"
    FILE = "What is in the file"
    MADE = "Made by"
    NOTES = "Notes"  # what holds of every release alike; on the page only


@dataclass(frozen=True)
class Rounds:
    """What each round did, as a table of values and how they read; the first column is the round's number."""

    header: tuple[str, ...]
    rows: tuple[tuple[tuple[float, str], ...], ...]
    caption: str

    @property
    def short(self) -> list[tuple[str, ...]]:
        """Rounds that follow each other with the same share in one line, with the smallest and the largest of what differs."""
        lines = []
        for _, run in groupby(self.rows, key=lambda row: row[1:2]):
            place, *cells = [" to ".join(dict.fromkeys((min(each)[1], max(each)[1]))) for each in zip(*run, strict=True)]
            lines.append((f"{place}, each" if " " in place else place, *cells))
        return lines


@dataclass(frozen=True)
class Fact:
    """One thing to know about a release."""

    group: Group
    point: Point
    key: tuple[str, ...]  # where it stands in JSON; empty for what only people read
    name: str  # in plain words; empty for what only scripts read
    value: Any  # plain data
    words: str = ""  # what people read, where the value and its unit do not say it
    unit: str = ""
    rounds: Rounds | None = None

    @property
    def lines(self) -> list[str]:
        """What people read, one line for each thing said."""
        if isinstance(self.value, list) and not self.words:
            return self.value
        text = self.words or (number(self.value) if isinstance(self.value, float | int) else str(self.value))
        return [f"{text} {self.unit}".rstrip()]


@dataclass(frozen=True)
class Planned:
    """What is known of a release before it is made: what a release has too, by the same names."""

    schema: Schema
    budget: Budget
    mechanism: str
    calibration: str
    rows_of: str
    arithmetic: str
    private: bool
    parameters: dict[str, float] = field(default_factory=dict)  # empty where they follow the number of rows
    condition: str = ""
    choice: str = ""

    @property
    def row_bound(self) -> float:
        return self.schema.effective_row_bound
