"""FileLedger: the account of one dataset, in a SQLite file that outlives the process.

Statement: whatever is reserved stays within the declared (epsilon, delta), whoever reserves at the same time and whoever is killed when: by
composition where budgets are not chosen by what earlier releases showed, by plain sums in any case (composition.md). A reservation is
on disk before it is returned (write-ahead log, full synchronisation), so before any row is summed and any noise drawn; one that was never
committed counts as spent. Of a release of several rounds each is on disk before it is drawn, and after ``settle`` no further one can be:
the rounds on disk are then all that count, which holds where nobody settled it for what they showed. Lines are only ever added, and
are chained by hash."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import msgspec

from dpgram.accounting.compose import Cost, GaussianCost, PlainCost
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.accounting.total import Spending
from dpgram.errors import LedgerError, LedgerFullError
from dpgram.ledger.base import Drawn, Protected, Reservation, check_next_round, check_protected, check_relation, check_settled
from dpgram.ledger.lines import (
    FIRST,
    FORMAT,
    MOST_CHARACTERS,
    Committed,
    KnownCost,
    Line,
    Opened,
    Reserved,
    RoundNoted,
    Settled,
    chained,
    check_numbers,
)
from dpgram.terms.budget import SMALLEST_EPSILON, Budget, Neighbours

APPLICATION = 0x64706C67  # "dplg", in the file's header
SIDE_FILES = ("-wal", "-shm", "-journal")  # how the names of files end that SQLite keeps beside it
WAIT = 60.0  # seconds for other writers
TOO_LONG = f"has more than {MOST_CHARACTERS:,} characters"
NOTHING_ADDED = "The ledger is unchanged, and nothing was released."
TABLE = """
create table lines (number integer primary key autoincrement, text blob not null, hash text not null);
create trigger lines_stay before update on lines begin select raise(abort, 'lines are only added'); end;
create trigger lines_remain before delete on lines begin select raise(abort, 'lines are only added'); end;
"""


@dataclass(frozen=True, kw_only=True)
class Entry(Reservation):
    """One release in the ledger: what was reserved for it, and what became of it."""

    time: str
    cost: Cost
    committed: str | None = None  # when; None: reserved, and then the release failed or is still under way; it counts as spent
    drawn: Drawn | None = None  # the rounds noted so far, where the release notes them
    settled: str | None = None  # when; from then on only ``drawn`` counts
    protected: Protected | None = None  # what was taken for one unit; None where nobody said so
    sha256: str | None = None  # of the release's file; None where nobody said so

    @property
    def counted(self) -> tuple[Budget, Cost] | None:
        """What counts as spent: all that was reserved, or, of a release that was settled, the rounds drawn; None where none was."""
        if self.settled is None or self.drawn is None:
            return self.budget, self.cost
        budget = self.drawn.budget(self.budget)
        return None if budget is None or self.drawn.spent is None else (budget, self.drawn.spent)


@dataclass(frozen=True)
class Account:
    """What a ledger says at one moment."""

    opened: Opened  # the first line: how much may be spent, on what, for which relation and unit
    entries: tuple[Entry, ...]
    lines: int  # in the file, of all kinds
    seal: str  # the hash of the last line: note it elsewhere, and a ledger whose end was cut off is noticed

    @property
    def total(self) -> Budget:
        return Budget(self.opened.epsilon, self.opened.delta)

    @property
    def spending(self) -> Spending:
        counted = [entry.counted for entry in self.entries if entry.counted is not None]
        return Spending(tuple(budget for budget, _ in counted), tuple(cost for _, cost in counted))

    def fits(self, asked: Budget, cost: Cost) -> bool:
        more = self.spending.plus(asked, cost)
        return more.fits(self.total) if self.opened.composition == "composed" else more.fits_plainly(self.total)


class FileLedger:
    """A ledger in a file: it keeps all releases of one dataset within a single budget.

    Create it once with ``FileLedger.create`` or `dpgram ledger open`. Then pass it, or its path, to every release of the dataset.
    Several processes and threads can use one ledger at the same time.

    Parameters
    ----------
    path : str or Path
        The file of an existing ledger.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpgram import Budget, FileLedger, Neighbours
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flights.sqlite"
    >>> ledger = FileLedger.create(path, epsilon=3.0, delta=1e-6, unit="flight", dataset="flights-2013")
    >>> ledger.commit(ledger.reserve(Budget(1.0, 1e-7), Neighbours.REPLACE, "first release", unit="flight"))
    >>> len(ledger.account().entries)
    1
    """

    def __init__(self, path: str | Path):
        self.path = Path(path).absolute()  # another working folder later on must not mean another ledger

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        epsilon: float,
        delta: float,
        unit: str,
        dataset: str,
        neighbours: Neighbours | str = Neighbours.REPLACE,
        composition: str = "composed",
        mixed_units: bool = False,
    ) -> FileLedger:
        """Create the ledger of a dataset. Do it once per dataset.

        Parameters
        ----------
        path : str or Path
            The file to create. It must not exist.
        epsilon, delta : float
            What all releases together may cost.
        unit : str
            Whom a release protects, as the schema says, such as "person".
        dataset : str
            A public name for the dataset, such as "visits-2026".
        neighbours : Neighbours or str
            "replace" or "add-remove", as the schema says.
        composition : {"composed", "plain"}
            How costs are added. "composed" uses exact privacy curves where they are known, so more releases are possible.
            "plain" adds epsilons and deltas.
        mixed_units : bool
            Whether releases may differ in their ``unit_id``, or some have none. Then it is up to you that a unit means the same in
            all of them.

        Returns
        -------
        FileLedger
            The new ledger.

        Raises
        ------
        LedgerError
            If the file exists or cannot be written, or if an argument is wrong.
        BudgetError
            If epsilon or delta is out of range.
        """
        total = Budget(epsilon, delta)
        relation = Neighbours.named(neighbours, LedgerError)
        path = Path(path)
        if composition not in ("composed", "plain"):
            raise LedgerError(f'composition is {composition!r} and must be "composed" or "plain".')
        for name, text in (("unit", unit), ("dataset", dataset)):
            if not isinstance(text, str) or not text.strip():
                raise LedgerError(
                    f"{name} is {text!r} and must be a name, such as {'person' if name == 'unit' else 'visits-2026'!r}."
                )
        opened = Opened(
            format=FORMAT,
            time=_now(),
            dataset=dataset,
            epsilon=total.epsilon,
            delta=total.delta,
            neighbours=relation.value,
            unit=unit,
            composition=composition,  # type: ignore[arg-type]
            mixed_units=mixed_units,
        )
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        for leftover in SIDE_FILES:
            if (other := path.with_name(path.name + leftover)).exists():
                raise LedgerError(
                    f"{other} exists and belongs to an earlier ledger. Restore that ledger, or choose another place."
                )
        try:
            draft.touch(mode=0o600, exist_ok=False)
            with cls(draft)._connected() as database:
                mode = database.execute("pragma journal_mode = wal").fetchone()[0]
                database.execute(f"pragma application_id = {APPLICATION}")
                database.executescript(TABLE)
                _append(database, FIRST, 1, opened)
            if mode != "wal":
                raise LedgerError(
                    f"{path} is on a disk that several writers cannot share safely, such as a network share. Use a local disk."
                )
            os.link(draft, path)  # whole, and only where nothing is
        except FileExistsError:
            raise LedgerError(f"{path} exists. A ledger is created only once. Use this one, or choose another place.") from None
        except OSError as error:
            raise LedgerError(f"a ledger cannot be created at {path}: {error.strerror}. Choose another place.") from None
        finally:
            draft.unlink(missing_ok=True)
        return cls(path)

    def reserve(
        self,
        budget: Budget,
        neighbours: Neighbours,
        what: str,
        *,
        unit: str | None = None,
        cost: Cost | None = None,
        by_rounds: bool = False,
        protected: Protected | None = None,
    ) -> Reservation:
        """Set budget aside for a release. It is on disk when this returns, and counts as spent from then on.

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
            Whom the release protects. It must be the ledger's own.
        cost : Cost, optional
            What is known of the release's privacy curve besides the budget.
        by_rounds : bool
            Whether every round of the release will be recorded before it is drawn.
        protected : Protected, optional
            Which rows the release takes for one unit. It must be as in the ledger's other releases.

        Returns
        -------
        Reservation
            The entry in the ledger. Pass it to ``commit`` when the release is made.

        Raises
        ------
        BudgetSpentError
            If not enough budget is left.
        LedgerError
            If the release does not belong to this ledger, or if the file cannot be used.
        """
        known = PlainCost(budget.epsilon, budget.delta) if cost is None else cost
        with self._alone() as (database, account):
            check_relation(Neighbours(account.opened.neighbours), neighbours)
            if unit is not None and unit != account.opened.unit:
                raise LedgerError(
                    f"the ledger protects one {account.opened.unit!r}, but the release's schema says unit = {unit!r}. Their costs "
                    f"cannot be added. Use one ledger for each, or the same unit for both."
                )
            if protected is not None and not account.opened.mixed_units:
                spent = (entry.protected for entry in account.entries if entry.counted is not None)
                check_protected(account.opened.unit, (each for each in spent if each is not None), protected)
            if not account.fits(budget, known):
                raise LedgerFullError(
                    asked=(budget.epsilon, budget.delta),
                    total=(account.total.epsilon, account.total.delta),
                    left=what_fits(account, budget, known),
                    releases=len(account.entries),
                )
            line = Reserved(
                time=_now(),
                epsilon=budget.epsilon,
                delta=budget.delta,
                cost=KnownCost.of(known),
                what=what,
                by_rounds=by_rounds,
                unit_id=None if protected is None else protected.unit_id,
                rows_per_unit=None if protected is None else protected.rows_per_unit,
            )
            seal = _append_for_good(database, account, line)
        return Reservation(account.lines + 1, budget, what, seal)

    def note_round(self, reservation: Reservation, drawn: Drawn) -> None:
        """Record that a round is about to be drawn. It is on disk when this returns.

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
        with self._alone("The round was not drawn.") as (database, account):
            entry = _of(account, reservation)
            check_next_round(entry.drawn, drawn, entry.budget, ended=bool(entry.committed or entry.settled))
            assert drawn.spent is not None, "checked"
            spent = KnownCost.of(drawn.spent)
            line = RoundNoted(time=_now(), number=entry.number, round=drawn.number, rounds=drawn.rounds, spent=spent)
            _append_for_good(database, account, line)

    def settle(self, number: int) -> Drawn:
        """Give back the rounds that a failed release never drew.

        Use it for a release of several rounds that ended early. The rounds that were drawn, or were about to be, stay spent.
        A release that is still running stops at its next round.

        Parameters
        ----------
        number : int
            Line of the release, as `dpgram ledger show` prints it.

        Returns
        -------
        Drawn
            The rounds that stay spent.

        Raises
        ------
        LedgerError
            If there is no such release, or if nothing of it can be given back.
        """
        with self._alone() as (database, account):
            entry = next((entry for entry in account.entries if entry.number == number), None)
            if entry is None:
                raise LedgerError(f"line {number} of {self.path} is not a release. `dpgram ledger show` lists the releases.")
            drawn = check_settled(number, entry.drawn, committed=bool(entry.committed), settled=bool(entry.settled))
            _append_for_good(database, account, Settled(time=_now(), number=number))
        return drawn

    def commit(self, reservation: Reservation, *, sha256: str | None = None) -> None:
        """Record that a release was made.

        Parameters
        ----------
        reservation : Reservation
            What ``reserve`` of this ledger returned.
        sha256 : str, optional
            SHA-256 of the release's file, in hexadecimal digits.

        Raises
        ------
        LedgerError
            If the reservation is from another ledger, or if it was already committed or settled.
        """
        otherwise = "The release was made and its budget counts as spent, but the ledger still shows it as reserved."
        with self._alone(otherwise) as (database, account):
            entry = _of(account, reservation)
            if entry.committed:
                raise LedgerError("this reservation is already committed. Reserve again for another release.")
            if entry.settled:
                raise LedgerError(
                    "this reservation was settled while its release was running. The rounds that were drawn count as spent, but the "
                    "release is not recorded as made."
                )
            line = Committed(time=_now(), number=reservation.number, sha256=sha256)
            _append(database, account.seal, account.lines + 1, line)
            database.execute("commit")

    def account(self) -> Account:
        """Read the ledger: what may be spent, and every release.

        Returns
        -------
        Account
            The contents of the ledger at this moment.

        Raises
        ------
        LedgerError
            If the file is missing, or if its lines were changed.
        """
        with self._connected() as database:
            database.execute("begin")  # one state of the file, whoever adds a line between its two questions
            return self._read(database)

    def _read(self, database: sqlite3.Connection) -> Account:
        seal, opened, entries, number = FIRST, None, {}, 0
        for number, (written, text, hash_) in enumerate(
            database.execute("select number, text, hash from lines order by number"), 1
        ):
            line = self._line(text, number)
            if written != number or chained(seal, number, bytes(text)) != hash_ or (opened is None) != isinstance(line, Opened):
                self._broken(number)
            seal = hash_
            match line:
                case Opened():
                    opened = line
                    if line.format != FORMAT:
                        known = f"this version of dpgram reads format {FORMAT}"
                        raise LedgerError(f"{self.path} has format {line.format}, but {known}. Update dpgram.")
                case Reserved():
                    asked, drawn = Budget(line.epsilon, line.delta), Drawn() if line.by_rounds else None
                    told = None if line.rows_per_unit is None else Protected(line.unit_id, line.rows_per_unit)
                    cost = line.cost.cost()
                    entries[number] = Entry(
                        number, asked, line.what, hash_, time=line.time, cost=cost, drawn=drawn, protected=told
                    )
                case _ if line.number not in entries:
                    self._broken(number)
                case RoundNoted():
                    drawn = Drawn(line.round, line.rounds, line.spent.cost())
                    entries[line.number] = replace(entries[line.number], drawn=drawn)
                case Settled():
                    entries[line.number] = replace(entries[line.number], settled=line.time)
                case Committed():
                    entries[line.number] = replace(entries[line.number], committed=line.time, sha256=line.sha256)
        last = database.execute("select seq from sqlite_sequence where name = 'lines'").fetchone()
        if opened is None or last is None or last[0] != number:
            self._broken(number + 1)
        return Account(opened, tuple(entries.values()), number, seal)

    def _line(self, text: bytes, number: int) -> Line:
        try:
            if not isinstance(text, bytes):  # a text or a number in the database
                raise TypeError
            if len(text) > MOST_CHARACTERS:
                raise LedgerError(f"line {number} of {self.path} {TOO_LONG}. The file was changed. Restore it from a copy.")
            line: Line = msgspec.json.decode(text, type=Line)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            raise LedgerError(
                f"{self.path} contains a line that this version cannot read. If a newer dpgram wrote it, update dpgram. Otherwise the "
                f"file was changed or damaged. Restore it from a copy."
            ) from None
        try:
            check_numbers(line)
        except ValueError as error:
            raise LedgerError(
                f"line {number} of {self.path} is none that dpgram wrote: {str(error).rstrip('.')}. The file was changed. "
                f"Restore it from a copy, and release nothing until then."
            ) from None
        return line

    def _broken(self, number: int) -> NoReturn:
        raise LedgerError(
            f"{self.path} is inconsistent at line {number}: a line was changed, removed or inserted. The spent budget is no longer "
            f"known. Restore the file from a copy, and release nothing until then."
        )

    @contextmanager
    def _alone(self, otherwise: str = NOTHING_ADDED) -> Iterator[tuple[sqlite3.Connection, Account]]:
        """The account as it stands, in a transaction: no other writer can add a line before its end."""
        with self._connected(otherwise) as database:
            database.execute("begin immediate")
            yield database, self._read(database)

    @contextmanager
    def _connected(self, otherwise: str = NOTHING_ADDED) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each operation, so that threads, forks and copies cannot disturb each other."""
        if not self.path.is_file():
            raise LedgerError(f"there is no ledger at {self.path}. Create one with `dpgram ledger open` or FileLedger.create.")
        try:
            # The path is absolute: SQLite may read a relative name such as "file:x" or ":memory:" as something else than this file.
            database = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}.") from None
        try:
            database.execute("pragma synchronous = full")
            yield database
        except sqlite3.Error as error:
            problem = str(error)
        else:
            return
        finally:
            database.close()  # an open transaction is rolled back
        raise LedgerError(f"the ledger {self.path} cannot be used: {problem}. {otherwise}")

    def __repr__(self) -> str:
        return f"FileLedger({str(self.path)!r})"


def what_fits(account: Account, asked: Budget, cost: Cost) -> float:
    """The largest epsilon, from below, that a release of this kind may still have at the delta it asked for; zero where none fits."""

    def fits(epsilon: float) -> bool:
        smaller = Budget(epsilon, asked.delta)
        gaussian = isinstance(cost, GaussianCost)
        return account.fits(smaller, GaussianCost(calibrate_mu(smaller)) if gaussian else PlainCost(epsilon, asked.delta))

    low, high = 0.0, asked.epsilon
    while high - low > 1e-3 * asked.epsilon and high > SMALLEST_EPSILON * 2:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return float(f"{low:.3g}") if low and fits(float(f"{low:.3g}")) else low


def _append(database: sqlite3.Connection, seal: str, number: int, line: Line) -> str:
    text = msgspec.json.encode(line)
    if len(text) > MOST_CHARACTERS:
        raise LedgerError(f"the new line of the ledger {TOO_LONG}. Say in fewer words what is released. {NOTHING_ADDED}")
    seal = chained(seal, number, text)
    database.execute("insert into lines (text, hash) values (?, ?)", (text, seal))
    return seal


def _append_for_good(database: sqlite3.Connection, account: Account, line: Line) -> str:
    """Append a line to the file itself, not to its log alone: somebody may copy the file without the log. The new seal."""
    seal = _append(database, account.seal, account.lines + 1, line)
    database.execute("commit")
    database.execute("pragma wal_checkpoint(truncate)")
    return seal


def _of(account: Account, reservation: Reservation) -> Entry:
    """The reservation's entry."""
    entry = next((entry for entry in account.entries if entry.number == reservation.number), None)
    if entry is None or entry.seal != reservation.seal:
        raise LedgerError(
            "this reservation is not in the ledger. It belongs to another ledger, or this one was restored from a copy that is older "
            "than the reservation. Reserve again whatever was released since then, before you release anything else."
        )
    return entry


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
