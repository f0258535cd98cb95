"""The conversation with a mechanism: its questions go to the engine, the sums back, and the ledger hears first of what is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpgram.engines.base import Pass, WholeProgress
from dpgram.errors import EmptyTableError, MechanismError, TableError
from dpgram.ledger.base import Drawn, Ledger, Protected, Reservation, RoundLedger, takes_protected
from dpgram.ledger.file import FileLedger
from dpgram.mechanisms.conversation import (
    CountsQuestion,
    Drawing,
    GramAnswer,
    Mechanism,
    Outcome,
    Question,
    Task,
    hold,
    known_cost,
)
from dpgram.rows.coins import Coins
from dpgram.sampling.base import EXACT, Matrix, RandomSource, exact_gram
from dpgram.terms.budget import Budget, Neighbours, warn_of_delta
from dpgram.terms.schema import Schema


def count_public(rows_pass: Pass, schema: Schema, budget: Budget, ledger: Ledger | None) -> int:
    """The number that is public: of rows, or of units where they have ids. To be asked for where neighbours are by REPLACE.

    It spends nothing. But a query may fail for what some row holds, so one that fails is paid for, as it is where rows are summed: else
    whoever writes queries could put questions to the rows, free of charge and without an end."""
    failure: Exception | None = None
    try:
        public = rows_pass.count() if schema.unit_id is None else rows_pass.count_units()
        if public == 0:
            failure = EmptyTableError("rows" if schema.unit_id is None else "units")
    except Exception as error:
        failure = error
    if failure is not None:  # after the handler has ended: a ledger that is full must not have the failure hang on its error
        if ledger is not None and rows_pass.rows_of == "result":
            what = "release whose rows could not be counted"
            ledger.reserve(budget, schema.neighbours, what, unit=schema.unit, **_protected(ledger, schema))
        raise failure
    return public


@dataclass(repr=False, eq=False)
class Custody:
    """Keeps the sums of one release between the engine and the mechanism.

    ``task.rows`` is the number of rows where it is public and was counted before: every pass must find as many. ``task.units`` is that of
    units, likewise; their rows were counted then."""

    _pass: Pass
    _progress: WholeProgress
    _schema: Schema
    _mechanism: Mechanism
    _task: Task
    _rng: RandomSource
    _ledger: Ledger | None

    def __post_init__(self) -> None:
        self._asked = 0
        self._read = False  # whether the table was read before
        self._samples: dict[float, Pass] = {}  # rows in memory, by how much of the table they are: one sample at most
        self._drawn = Drawn()
        self._away = False  # whether the mechanism waits for us: what fails then does not follow from what it drew
        self.rows = self._task.rows  # where the number is public; None where it is protected, whatever a pass counts
        self.units = self._task.units  # likewise
        self.reservation: Reservation | None = None
        # Notes each round, where there are several and the ledger keeps account of them.
        self._rounds = self._ledger if self._mechanism.several and isinstance(self._ledger, RoundLedger) else None

    def hold(self) -> Outcome:
        """The mechanism's outcome. An error, or an interrupt, carries a note that names what stays reserved in the ledger."""
        try:
            outcome = hold(self._mechanism.start(self._task, self._rng), self._answer, self._announce)
        except BaseException as error:
            if self.reservation is not None and self._mechanism.several:
                failed = isinstance(error, Exception) and not self._away and self._drawn.number > 0
                error.add_note(self._what_stays(mechanism_failed=failed))
            raise
        self._progress.end()
        return outcome

    def _answer(self, question: Question) -> GramAnswer:
        self._asked += 1
        self._away = True
        if self._asked > 1 and not self._mechanism.several:
            raise MechanismError(
                f"{self._mechanism.name} asks several times without declaring it. This is a bug in dpgram: please report it."
            )
        if self._asked == 1:
            self.reservation = self._reserved()
            self._count_units()
        self._progress.begin(self._asked, question.questions if self._mechanism.several else 1, self._passes_left(question))
        rows_pass, counted = (self._pass, None) if question.sample is None else self._kept(question.sample)
        if isinstance(question, CountsQuestion):
            total = rows_pass.counts(question.bins)
        else:
            if question.learnt is not None and question.learnt != self._schema.learnt:
                rows_pass = rows_pass.under(replace(self._schema, learnt=question.learnt))
            total = rows_pass.gram(question.row_bound, question.through, question.scales)
        if question.sample is None:
            counted = total.rows
        if counted is not None and self._schema.neighbours is Neighbours.REPLACE and self._schema.unit_id is None:
            self._check_rows(counted)
        gram, *outer = self._matrices(total)
        self._away = False
        return GramAnswer(gram, self.rows, tuple(outer))

    def _matrices(self, total: Any) -> list[Matrix]:
        """The sum at every scale, in the arithmetic of the noise."""
        if self._rng.arithmetic == EXACT:
            whole, exponent = total.in_whole_numbers()
            return [exact_gram(each, exponent) for each in (whole if whole.ndim == 3 else [whole])]
        scaled = total.in_scaled_units()
        return [*scaled] if scaled.ndim == 3 else [scaled]

    def _kept(self, sample: float) -> tuple[Pass, int | None]:
        """The rows that lie in memory, and how many the table has if it was read for that, as it is at the first question for them.

        Who is among them, and how many they are, is known to nobody else."""
        rows = None
        if sample not in self._samples:
            coins = None if sample == 1.0 else Coins(self._rng.key(), sample)
            self._samples[sample], rows = self._pass.kept(coins)
        return self._samples[sample], rows

    def _count_units(self) -> None:
        """Before the first sum: count the rows of each unit, unless that was done before. By REPLACE the number of units is public."""
        if self._schema.unit_id is None:
            return
        units = self._pass.count_units() if self._task.units is None else self._task.units
        if self._schema.neighbours is Neighbours.REPLACE:
            self.units = units
            _check_public_rows(units, self._task.budget, "units")

    def _check_rows(self, counted: int) -> None:
        """The number of rows is public: every reading of the table must find as many."""
        if not self._read:
            self.rows = counted if self.rows is None else self.rows
            _check_public_rows(self.rows, self._task.budget)
        self._read = True
        if counted != self.rows:
            raise TableError(
                f"{self._pass.where} was changed between two passes. Run again when nothing writes to it. A CSV file or a database "
                f"result is read only once if you leave out cache=False (--no-cache)."
            )

    def _passes_left(self, question: Question) -> float | None:
        """How many passes there will be from here on, this one included, where that is not one for every question."""
        if question.sample is None:
            return 1.0 if any(sample < 1.0 for sample in self._samples) else None  # the last round, after a sample
        if question.sample in self._samples:
            return None if question.sample == 1.0 else math.inf  # a sample takes no time worth showing
        return 2.0  # the other one is the last round, or all that is read from memory

    def _reserved(self) -> Reservation | None:
        """The budget of the whole release, set aside before any row is summed."""
        if self._ledger is None:
            return None
        schema = self._schema
        what = _in_words(self._mechanism.name, schema, self._rng.private)
        cost = known_cost(self._mechanism, self._task)
        reserve = self._ledger.reserve if self._rounds is None else partial(self._rounds.reserve, by_rounds=True)
        known = _protected(self._ledger, schema)
        return reserve(self._task.budget, schema.neighbours, what, unit=schema.unit, cost=cost, **known)

    def _announce(self, drawing: Drawing) -> None:
        """Before a round is drawn: it is in the ledger when this returns, unless it was reserved as one that is never given back."""
        drawn = Drawn(drawing.number, drawing.rounds, drawing.spent)
        self._away = True
        if self.reservation is not None and self._rounds is not None:
            self._rounds.note_round(self.reservation, drawn)
        self._drawn = drawn
        self._away = False

    def _what_stays(self, *, mechanism_failed: bool) -> str:
        assert self.reservation is not None
        number, drawn = self.reservation.number, self._drawn
        stays = f"Line {number} of the ledger stays reserved and counts as spent"
        if not isinstance(self._ledger, RoundLedger) or (drawn.rounds and drawn.number == drawn.rounds):
            return f"{stays}."
        if mechanism_failed:  # Theorem 3 of composition.md asks that what was drawn has no part in the end
            why = "The mechanism itself failed, and that may depend on what it drew. Leave the line as it is."
            return f"{stays}. It drew {drawn.in_words}. {why}"
        how = f"ledger.settle({number})"
        if isinstance(self._ledger, FileLedger):
            how = f"`dpgram ledger settle {number} --ledger {self._ledger.path}`"
        return f"{stays}. It drew {drawn.in_words}. Use {how} to give back the rounds that were not drawn."


def _in_words(mechanism: str, schema: Schema, private: bool) -> str:
    """What a ledger says of a release."""
    claim = ", valid only if the custodian's claim holds" if mechanism == "noisy-inverse" else ""
    units = f", units by id, at most {schema.most_rows:,} rows of each" if schema.unit_id is not None else ""
    seeded = "" if private else ", NOT PRIVATE: noise from a seed"
    return f"{mechanism} release of {len(schema.columns)} columns{units}{claim}{seeded}"


def _protected(ledger: Ledger, schema: Schema) -> dict[str, Any]:
    """Which rows are one unit, for a ledger that keeps it."""
    return {"protected": Protected(schema.unit_id, schema.most_rows)} if takes_protected(ledger) else {}


def _check_public_rows(rows: int, budget: Budget, what: str = "rows") -> None:
    """Under REPLACE the number of rows, or of units, is public, so it may be spoken of."""
    if rows == 0:
        raise EmptyTableError(what)
    warn_of_delta(budget, rows, what, stacklevel=8)
