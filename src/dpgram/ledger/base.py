"""What every ledger offers: reserve before noise is drawn, commit after it.

A crash between the two must err towards "spent": what was reserved counts, whether it was committed or not. A release of several rounds
notes each of them before it is drawn; if it ended early, what was not noted can be given back, once and by somebody who asks for it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dpgram.accounting.compose import Cost, composed_delta, composed_epsilon
from dpgram.errors import LedgerError
from dpgram.terms.budget import SMALLEST_EPSILON, Budget, Neighbours


@dataclass(frozen=True)
class Reservation:
    """A place in a ledger, from before the noise was drawn."""

    number: int  # its place in the ledger, from 1
    budget: Budget
    what: str  # in words; public facts only
    seal: str = ""  # the hash of its line, where the ledger is a file


@dataclass(frozen=True)
class Protected:
    """What a release takes for one unit: all rows of one id, or a single row where rows have no ids."""

    unit_id: str | None  # the column of ids; None: that a unit has one row is assumed, not enforced
    rows_per_unit: int = 1  # how many rows of an id count in full

    @property
    def in_words(self) -> str:
        if self.unit_id is None:
            return "one row per unit assumed"
        return f"enforced by {self.unit_id}, {self.rows_per_unit:,} row{'' if self.rows_per_unit == 1 else 's'}"


def takes_protected(ledger: Ledger) -> bool:
    """Whether ``reserve`` of this ledger wants to know it. One of somebody's own need not."""
    return "protected" in inspect.signature(ledger.reserve).parameters


def takes_sha256(ledger: Ledger) -> bool:
    """Whether ``commit`` of this ledger wants the hash of the release's file. One of somebody's own need not."""
    return "sha256" in inspect.signature(ledger.commit).parameters


@runtime_checkable
class Ledger(Protocol):
    """Keeps account of what releases of one table have cost together.

    A copy must stand for the same account: scikit-learn deep-copies the parameters of an estimator for every fit."""

    def reserve(
        self, budget: Budget, neighbours: Neighbours, what: str, *, unit: str | None = None, cost: Cost | None = None
    ) -> Reservation:
        """Set ``budget`` aside, or raise BudgetSpentError. It counts as spent from now on.

        ``unit`` is whom the release protects. ``cost`` is what is known of its privacy curve besides the budget."""
        ...

    def commit(self, reservation: Reservation) -> None:
        """Record that the release was made."""
        ...


@runtime_checkable
class RoundLedger(Ledger, Protocol):
    """A ledger that also keeps account of a release's rounds. Any other counts a release that ended early in full."""

    def reserve(
        self,
        budget: Budget,
        neighbours: Neighbours,
        what: str,
        *,
        unit: str | None = None,
        cost: Cost | None = None,
        by_rounds: bool = False,
    ) -> Reservation:
        """Set ``budget`` aside, as every ledger does; ``by_rounds`` says that every round will be noted before it is drawn."""
        ...

    def note_round(self, reservation: Reservation, drawn: Drawn) -> None:
        """Record that a round is about to be drawn. It is kept when this returns."""
        ...

    def settle(self, number: int) -> Drawn:
        """Give back the rounds of reservation ``number`` that were never noted, and return those that were.

        None can be drawn afterwards."""
        ...


@dataclass(frozen=True)
class Drawn:
    """The rounds of a release that were drawn, or were about to be: the first ``number`` of ``rounds``, which is 0 before the first."""

    number: int = 0
    rounds: int = 0
    spent: Cost | None = None  # what they cost together

    @property
    def in_words(self) -> str:
        return f"{self.number} of {self.rounds} rounds" if self.rounds else "no round"

    def budget(self, reserved: Budget) -> Budget | None:
        """An (epsilon, delta), with the delta that was ``reserved``, for which the rounds drawn are private; None where none was."""
        if self.spent is None:
            return None
        epsilon = composed_epsilon(reserved.delta, [self.spent])
        return Budget(min(reserved.epsilon, max(SMALLEST_EPSILON, epsilon)), reserved.delta)


def check_relation(counted: Neighbours, released: Neighbours) -> None:
    """Raise unless the ledger counts for the relation that the release is for."""
    if released is not counted:
        raise LedgerError(
            f"the ledger is for neighbours = {counted.value!r}, but the release is for {released.value!r}. Their costs cannot be added. "
            f"Use one ledger for each, or the same neighbours for both."
        )


def check_protected(unit: str, known: Iterable[Protected], released: Protected) -> None:
    """Raise unless the release takes the same rows for one ``unit`` as the releases that are ``known``."""
    other = next((each for each in known if each.unit_id != released.unit_id), None)
    if other is not None:
        told = [
            f"ids in {one.unit_id!r}" if one.unit_id is not None else "no ids, so one row each" for one in (other, released)
        ]
        raise LedgerError(
            f"in this ledger units have {told[0]}, but in the release they have {told[1]}, so their costs cannot be added for one "
            f"{unit!r}: use the same unit_id in the schema, or another ledger, or open one with mixed_units=True (--mixed-units) if both "
            f"mean the same."
        )


def check_next_round(before: Drawn | None, drawn: Drawn, reserved: Budget, *, ended: bool) -> None:
    """Raise unless ``drawn`` is the round after ``before``, within what was ``reserved`` by rounds for a release that has not ``ended``."""
    if before is None:
        raise LedgerError("this reservation is for a release that does not record its rounds. Reserve it with by_rounds=True.")
    if ended:
        raise LedgerError("this release was already committed or settled, so no further round can be drawn. Release again.")
    if drawn.number != before.number + 1 or drawn.rounds < drawn.number or drawn.spent is None:
        raise LedgerError(
            "rounds must be recorded one by one, each with its cost. This is a bug in the mechanism: please report it."
        )
    if composed_delta(reserved.epsilon, [drawn.spent]) > reserved.delta * (1 + 1e-9):
        raise LedgerError(
            "the round would cost more than was reserved, so it was not drawn. This is a bug in the mechanism: please report it."
        )


def check_settled(number: int, drawn: Drawn | None, *, committed: bool, settled: bool) -> Drawn:
    """The rounds drawn of a release that ended early; raises where nothing can be given back."""
    if committed:
        raise LedgerError(f"line {number} is a finished release, so none of its budget can be given back.")
    if settled:
        raise LedgerError(f"line {number} was settled already. A line can be settled only once.")
    if drawn is None:
        raise LedgerError(
            f"line {number} is a release of a single round, and nobody can know whether its noise was drawn. So its budget stays spent."
        )
    if drawn.rounds and drawn.number == drawn.rounds:
        raise LedgerError(
            f"line {number} had begun its last round, so all of its budget is spent and nothing can be given back."
        )
    return drawn
