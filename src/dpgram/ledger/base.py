"""What every ledger offers: reserve before noise is drawn, commit after it.

A crash between the two must err towards "spent": what was reserved counts, whether it was committed or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dpgram.accounting.compose import Cost
from dpgram.terms.budget import Budget, Neighbours


@dataclass(frozen=True)
class Reservation:
    """A place in a ledger, from before the noise was drawn."""

    number: int  # its place in the ledger, from 1
    budget: Budget
    what: str  # in words; public facts only
    seal: str = ""  # the hash of its line, where the ledger is a file


@runtime_checkable
class Ledger(Protocol):
    """Keeps account of what releases of one table have cost together.

    A copy must stand for the same account: scikit-learn deep-copies the parameters of an estimator for every fit."""

    def reserve(
        self, budget: Budget, neighbours: Neighbours, what: str, *, unit: str | None = None, cost: Cost | None = None
    ) -> Reservation:
        """Set ``budget`` aside, or raise BudgetSpentError. From here on it counts as spent.

        ``unit`` is whom the release protects, ``cost`` what is known of its curve besides the budget."""
        ...

    def commit(self, reservation: Reservation) -> None:
        """Record that the release was made."""
        ...
