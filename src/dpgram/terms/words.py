"""How numbers are told to people: a name in plain words, a unit, and the question of an evaluation that they answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

# Control characters but the line's end, marks that turn the direction of text around, and one that stands for nothing.
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
SCALED = "in scaled units"  # in which every column spans at most [-1, 1]


Point = IntEnum(
    "Point",
    "EPSILON DELTA UNIT NEIGHBOURS COMPARISON COMPOSITION MECHANISM BOUNDS ACCURACY BIAS QUERIES TRUST IMPLEMENTATION SECURITY COLLECTION",
)
"""The points at which NIST SP 800-226 asks a guarantee to be evaluated, in its order and from 1 to 15."""


def visible(text: str) -> str:
    """``text`` with control characters as text, since names and provenance come from files of others: a terminal obeys none of them.

    >>> visible("a name" + chr(27) + "[2J")
    'a name\\\\x1b[2J'
    """
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def number(value: float, among: Mapping[str, float] | None = None) -> str:
    """Six digits; of a whole number all."""
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def percent(share: float, among: Mapping[str, float] | None = None) -> str:
    return f"{100 * share:.1f} %"


def about(share: float) -> str:
    """A share that is roughly known.

    >>> about(0.0052), about(0.00002)
    ('about 0.5 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if share < 0.001 else f"about {percent(share)}"


@dataclass(frozen=True)
class Words:
    """What a number of a mechanism, or of its noise, is called."""

    name: str  # empty for what only scripts read
    unit: str = ""
    show: Callable[[float, Mapping[str, float]], str] = number  # of the value, among all numbers beside it
    point: Point = Point.MECHANISM
    early: bool = False  # told before the release only: afterwards the noise tells it
    protected: bool = False  # computed from rows, with noise


COMMON = {  # what several mechanisms have
    "delta_at_epsilon": Words("true delta at this epsilon", point=Point.COMPARISON),
    "mu": Words("mu of Gaussian differential privacy", point=Point.COMPARISON),
    "frobenius_sensitivity": Words("sensitivity", "in Frobenius norm", point=Point.BOUNDS),
    "sd_off_diagonal": Words("noise sd off the diagonal", SCALED, early=True),
    "sd_diagonal": Words("noise sd on the diagonal", SCALED, early=True),
    "floor": Words("ridge, divided by the squared row bound"),
}


def words_of(name: str, words: Mapping[str, Words]) -> Words:
    """What ``name`` is called; where nobody says, by its name."""
    return words.get(name) or COMMON.get(name) or Words(name.replace("_", " "))
