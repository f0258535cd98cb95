"""SessionLedger: the account of one table for as long as the process lives.

Statement: whatever is reserved adds up to at most the declared (epsilon, delta), so by plain composition all releases that
went through the ledger are together private to that budget, for the ledger's neighbour relation. Of a release that ended early and was
settled, the rounds that were noted count.

Budgets are read as the decimals they print as and added as fractions: ten releases of 0.1 are exactly 1, in any order. A
float and its shortest decimal differ by half a unit in the last place, a part in 10^16; mechanisms are calibrated a part in
10^9 below their delta. Sums are shown rounded up, what is left rounded down."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

from dpgram.accounting.compose import Cost
from dpgram.accounting.total import Spending, decimal, rounded_down, rounded_up
from dpgram.errors import BudgetSpentError, LedgerError
from dpgram.ledger.base import Drawn, Reservation, check_next_round, check_relation, check_settled
from dpgram.terms.budget import Budget, Neighbours


@dataclass(frozen=True)
class SessionEntry:
    """One line of the ledger."""

    reservation: Reservation
    committed: bool  # False: reserved, and then the release failed or is still under way; it counts as spent
    drawn: Drawn | None = None  # the rounds noted so far, where the release notes them
    settled: bool = False  # from then on only ``drawn`` counts

    @property
    def counted(self) -> Budget | None:
        """What counts as spent; None where the release was settled before its first round."""
        reserved = self.reservation.budget
        return reserved if not self.settled or self.drawn is None else self.drawn.budget(reserved)


class SessionLedger:
    """An account of (``epsilon``, ``delta``) for one table, in memory. Releases beyond it are refused before noise is drawn.

    Safe to share between threads. A copy is the same ledger: scikit-learn copies an estimator's parameters for every fold of
    a cross-validation, and a copy with a fresh budget would be no account at all. For the same reason it cannot be pickled,
    so other processes (``n_jobs=2``) cannot have it.

    >>> ledger = SessionLedger(epsilon=1.0, delta=1e-6)
    >>> ledger.commit(ledger.reserve(Budget(0.1, 1e-7), Neighbours.REPLACE, "first look"))
    >>> ledger
    SessionLedger(spent epsilon 0.1 of 1, delta 1e-07 of 1e-06; 1 release, neighbours=replace)
    """

    def __init__(self, epsilon: float, delta: float, *, neighbours: Neighbours | str = Neighbours.REPLACE):
        self._total = Budget(epsilon, delta)
        self._neighbours = Neighbours.named(neighbours, LedgerError)
        self._entries: list[SessionEntry] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

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
        """Set ``budget`` aside, or raise BudgetSpentError. Budgets are added plainly, whatever is known of the release's curve."""
        self._check_process()
        check_relation(self._neighbours, neighbours)
        with self._lock:
            left_epsilon, left_delta = self._left()
            if decimal(budget.epsilon) > left_epsilon or decimal(budget.delta) > left_delta:
                raise BudgetSpentError(
                    asked=(budget.epsilon, budget.delta),
                    left=(rounded_down(left_epsilon), rounded_down(left_delta)),
                    releases=len(self._entries),
                )
            reservation = Reservation(len(self._entries) + 1, budget, what)
            self._entries.append(SessionEntry(reservation, committed=False, drawn=Drawn() if by_rounds else None))
        return reservation

    def _check_process(self) -> None:
        """Raise in a forked copy, which would allow the whole budget once more."""
        if os.getpid() != self._process:
            raise LedgerError("this ledger belongs to another process: a copy in a fork would allow its whole budget again.")

    def commit(self, reservation: Reservation) -> None:
        """Record that the release was made; a reservation is committed once, in the ledger that gave it."""
        self._check_process()
        with self._lock:
            place = self._place(reservation)
            if self._entries[place].committed or self._entries[place].settled:
                raise LedgerError("this reservation is already committed or settled: reserve again for another release.")
            self._entries[place] = replace(self._entries[place], committed=True)

    def note_round(self, reservation: Reservation, drawn: Drawn) -> None:
        """Record that a round is about to be drawn."""
        self._check_process()
        with self._lock:
            entry = self._entries[place := self._place(reservation)]
            check_next_round(entry.drawn, drawn, reservation.budget, ended=entry.committed or entry.settled)
            self._entries[place] = replace(entry, drawn=drawn)

    def settle(self, number: int) -> Drawn:
        """Give back the rounds of reservation ``number`` that were never noted, and return those that were.

        None can be drawn afterwards."""
        self._check_process()
        with self._lock:
            if not 1 <= number <= len(self._entries):
                raise LedgerError(f"the ledger has no reservation {number}.")
            entry = self._entries[number - 1]
            drawn = check_settled(number, entry.drawn, committed=entry.committed, settled=entry.settled)
            self._entries[number - 1] = replace(entry, settled=True)
        return drawn

    def _place(self, reservation: Reservation) -> int:
        place = reservation.number - 1
        if not 0 <= place < len(self._entries) or self._entries[place].reservation is not reservation:
            raise LedgerError("this reservation is of another ledger: commit it where it was made.")
        return place

    @property
    def total(self) -> Budget:
        return self._total

    @property
    def neighbours(self) -> Neighbours:
        return self._neighbours

    @property
    def entries(self) -> tuple[SessionEntry, ...]:
        with self._lock:
            return tuple(self._entries)

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) that counts as spent, rounded up; (0, 0) at the start, hence no Budget."""
        with self._lock:
            epsilon, delta = self._sums()
        return rounded_up(epsilon), rounded_up(delta)

    @property
    def left(self) -> tuple[float, float]:
        """(epsilon, delta) that a further release may cost at most, rounded down."""
        with self._lock:
            left_epsilon, left_delta = self._left()
        return rounded_down(left_epsilon), rounded_down(left_delta)

    def _left(self) -> tuple[Fraction, Fraction]:
        epsilon, delta = self._sums()
        return decimal(self._total.epsilon) - epsilon, decimal(self._total.delta) - delta

    def _sums(self) -> tuple[Fraction, Fraction]:
        return Spending(tuple(entry.counted for entry in self._entries if entry.counted is not None)).plain

    def __copy__(self) -> SessionLedger:
        return self

    def __deepcopy__(self, memo: dict) -> SessionLedger:
        return self

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "a SessionLedger cannot be pickled: two copies would each allow the whole budget. Fit with n_jobs=None or in "
            "threads; to save a fitted estimator, call estimator.set_params(ledger=None) first."
        )

    def __repr__(self) -> str:
        epsilon, delta = self.spent
        releases = len(self.entries)
        return (
            f"SessionLedger(spent epsilon {epsilon:g} of {self._total.epsilon:g}, delta {delta:g} of {self._total.delta:g}; "
            f"{releases} release{'' if releases == 1 else 's'}, neighbours={self._neighbours.value})"
        )
