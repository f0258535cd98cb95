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

from dpgram.accounting.compose import Cost
from dpgram.accounting.total import Spending, decimal, rounded_down, rounded_up
from dpgram.errors import BudgetSpentError, LedgerError
from dpgram.ledger.away import AwayLedger
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
    """A ledger in memory: it keeps several releases of one table within a single budget while the program runs.

    A release that would exceed the budget is refused before noise is drawn. Costs are added plainly. Use ``FileLedger`` if the account
    must outlive the program, or if several processes need it.

    Threads can share the ledger. A copy is the same ledger, so the copies that scikit-learn makes share one budget. In another
    process, or loaded from a file, it accepts no release, and says so.

    Parameters
    ----------
    epsilon, delta : float
        What all releases together may cost.
    neighbours : Neighbours or str
        "replace" or "add-remove", as the schema says.

    Raises
    ------
    BudgetError
        If epsilon or delta is out of range.
    LedgerError
        If ``neighbours`` is unknown.

    Examples
    --------
    >>> from dpgram import Budget, Neighbours, SessionLedger
    >>> ledger = SessionLedger(epsilon=1.0, delta=1e-6)
    >>> ledger.commit(ledger.reserve(Budget(0.1, 1e-7), Neighbours.REPLACE, "first release"))
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
        """Set budget aside for a release. It counts as spent from now on, whatever happens to the release.

        ``dpgram.release`` calls it before any row is summed. Call it yourself to record a cost from outside dpgram.

        Parameters
        ----------
        budget : Budget
            What the release may cost.
        neighbours : Neighbours
            The relation that the release is for. It must be the ledger's own.
        what : str
            What the release is, in words, with public facts only.
        unit : str, optional
            Whom the release protects. This ledger does not check it.
        cost : Cost, optional
            What is known of the release's privacy curve besides the budget. This ledger ignores it and adds budgets plainly.
        by_rounds : bool
            Whether every round of the release will be recorded before it is drawn.

        Returns
        -------
        Reservation
            The entry in the ledger. Pass it to ``commit`` when the release is made.

        Raises
        ------
        BudgetSpentError
            If not enough budget is left.
        LedgerError
            If the release does not belong to this ledger, or if the ledger belongs to another process.
        """
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
            raise LedgerError(
                "this ledger belongs to another process. A copy in a fork would allow the whole budget again. Use a FileLedger."
            )

    def commit(self, reservation: Reservation) -> None:
        """Record that a release was made.

        Parameters
        ----------
        reservation : Reservation
            What ``reserve`` of this ledger returned.

        Raises
        ------
        LedgerError
            If the reservation is from another ledger, or if it was already committed or settled.
        """
        self._check_process()
        with self._lock:
            place = self._place(reservation)
            if self._entries[place].committed or self._entries[place].settled:
                raise LedgerError("this reservation is already committed or settled. Reserve again for another release.")
            self._entries[place] = replace(self._entries[place], committed=True)

    def note_round(self, reservation: Reservation, drawn: Drawn) -> None:
        """Record that a round is about to be drawn. Mechanisms of several rounds call it.

        Parameters
        ----------
        reservation : Reservation
            The release's reservation, made with ``by_rounds``.
        drawn : Drawn
            The rounds up to this one, with their cost.

        Raises
        ------
        LedgerError
            If the release has ended, or if the round is not the next one or costs more than was reserved.
        """
        self._check_process()
        with self._lock:
            entry = self._entries[place := self._place(reservation)]
            check_next_round(entry.drawn, drawn, reservation.budget, ended=entry.committed or entry.settled)
            self._entries[place] = replace(entry, drawn=drawn)

    def settle(self, number: int) -> Drawn:
        """Give back the rounds that a failed release never drew.

        Use it for a release of several rounds that ended early. The rounds that were drawn, or were about to be, stay spent.
        No further round can be drawn afterwards.

        Parameters
        ----------
        number : int
            Number of the reservation, from 1.

        Returns
        -------
        Drawn
            The rounds that stay spent.

        Raises
        ------
        LedgerError
            If there is no such release, or if nothing of it can be given back.
        """
        self._check_process()
        with self._lock:
            if not 1 <= number <= len(self._entries):
                raise LedgerError(f"the ledger has no reservation number {number}.")
            entry = self._entries[number - 1]
            drawn = check_settled(number, entry.drawn, committed=entry.committed, settled=entry.settled)
            self._entries[number - 1] = replace(entry, settled=True)
        return drawn

    def _place(self, reservation: Reservation) -> int:
        place = reservation.number - 1
        if not 0 <= place < len(self._entries) or self._entries[place].reservation is not reservation:
            raise LedgerError("this reservation belongs to another ledger. Commit it in the ledger that made it.")
        return place

    @property
    def total(self) -> Budget:
        """What all releases together may cost."""
        return self._total

    @property
    def neighbours(self) -> Neighbours:
        """The relation that the ledger is for."""
        return self._neighbours

    @property
    def entries(self) -> tuple[SessionEntry, ...]:
        """All releases in the ledger, in order."""
        with self._lock:
            return tuple(self._entries)

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta that are spent, rounded up."""
        with self._lock:
            epsilon, delta = self._sums()
        return rounded_up(epsilon), rounded_up(delta)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta that are left for further releases, rounded down."""
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

    def __reduce__(self) -> tuple[type[AwayLedger], tuple]:
        return AwayLedger, ()  # a copy elsewhere would allow the whole budget again

    def __repr__(self) -> str:
        epsilon, delta = self.spent
        releases = len(self.entries)
        return (
            f"SessionLedger(spent epsilon {epsilon:g} of {self._total.epsilon:g}, delta {delta:g} of {self._total.delta:g}; "
            f"{releases} release{'' if releases == 1 else 's'}, neighbours={self._neighbours.value})"
        )
