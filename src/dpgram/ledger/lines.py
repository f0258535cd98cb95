"""The lines of a ledger: what was opened, reserved, drawn by rounds, committed and settled, each chained to the one before it by a hash.

A line that was changed, removed or put in between breaks the chain. That the last lines were cut off shows in the numbers that SQLite
keeps, and in the seal: the hash of the last line, which the officer may note elsewhere."""

from __future__ import annotations

import hashlib
import math
from dataclasses import astuple, fields
from typing import Literal

import msgspec

from dpgram.accounting.compose import Cost, GaussianCost, PlainCost, SamplingCost
from dpgram.terms.budget import Budget

FORMAT = 1
MOST_ROUNDS = 10_000
MOST_CHARACTERS = 100_000  # of a line; one that dpgram writes has a few hundred
FIRST = "0" * 64  # what the first line is chained to
COSTS: dict[str, type[Cost]] = {"gaussian": GaussianCost, "sampling": SamplingCost, "plain": PlainCost}


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    pass


class Opened(_Strict, tag_field="line", tag="opened"):
    """The account: how much may be spent, on what, for which relation and unit."""

    format: int
    time: str
    dataset: str
    epsilon: float
    delta: float
    neighbours: Literal["replace", "add-remove"]
    unit: str
    composition: Literal["composed", "plain"]
    mixed_units: bool = False  # releases may take other rows for one unit, at the custodian's word


class KnownCost(_Strict):
    """What is known of a release's privacy curve."""

    kind: Literal["gaussian", "sampling", "plain"]
    numbers: tuple[float, ...]

    @classmethod
    def of(cls, cost: Cost) -> KnownCost:
        kind = next(kind for kind, class_ in COSTS.items() if isinstance(cost, class_))
        return cls(kind=kind, numbers=astuple(cost))  # type: ignore[arg-type]

    def cost(self) -> Cost:
        """The cost. Raises ValueError, in words, where the numbers are none of its kind."""
        needed = [field.name for field in fields(COSTS[self.kind])]
        if len(self.numbers) != len(needed):
            named = ", ".join(needed)
            raise ValueError(
                f"a cost of kind {self.kind!r} has {len(self.numbers)} numbers, but it needs {len(needed)} ({named})"
            )
        if not all(math.isfinite(number) and number >= 0 for number in self.numbers):
            raise ValueError(f"a cost of kind {self.kind!r} has a number that is negative or not finite")
        return COSTS[self.kind](*self.numbers)


class Reserved(_Strict, tag_field="line", tag="reserved"):
    """Set aside before any row was read: spent, whatever happened afterwards."""

    time: str
    epsilon: float
    delta: float
    cost: KnownCost
    what: str
    by_rounds: bool = False  # every round is noted before it is drawn
    unit_id: str | None = None  # the column of ids by which units are enforced
    rows_per_unit: int | None = None  # that count in full; None where nobody said so, as in lines of older versions


class RoundNoted(_Strict, tag_field="line", tag="drawing"):
    """Round ``round`` of ``rounds`` of the release that reservation ``number`` pays for is about to be drawn.

    ``spent`` is what it and the rounds before it cost together."""

    time: str
    number: int
    round: int
    rounds: int
    spent: KnownCost


class Settled(_Strict, tag_field="line", tag="settled"):
    """The release of reservation ``number`` ended early: from here on only the rounds that were noted count."""

    time: str
    number: int


class Committed(_Strict, tag_field="line", tag="committed"):
    """The release that reservation ``number`` paid for was made."""

    time: str
    number: int
    sha256: str | None = None  # of its file; None where it was not written to one, and in lines of older versions


Line = Opened | Reserved | RoundNoted | Settled | Committed


def check_numbers(line: Line) -> None:
    """Raise ValueError, in words, where a line's numbers are none that a ledger writes."""
    match line:
        case Opened() | Reserved():
            Budget(line.epsilon, line.delta)
    match line:
        case Reserved():
            line.cost.cost()
            if line.rows_per_unit is not None and line.rows_per_unit < 1:
                raise ValueError(f"rows_per_unit is {line.rows_per_unit} and must be 1 or more")
        case RoundNoted():
            line.spent.cost()
            if not 1 <= line.round <= line.rounds <= MOST_ROUNDS:
                raise ValueError(f"it notes round {line.round} of {line.rounds}")


def chained(previous: str, number: int, text: bytes) -> str:
    """The hash of a line, which stands for all lines before it as well."""
    return hashlib.sha256(f"{previous} {number} ".encode() + text).hexdigest()
