"""The one module on both sides of the wall: source -> engine -> mechanism -> artifact. It orders calls, computes nothing.

A plan is made here too, because it may be given a public sample in any form of a table; it reads no other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from dpgram.accounting.compose import Cost
from dpgram.artifact.atomic import check_writable
from dpgram.artifact.release import GramRelease
from dpgram.encoding.types import likely_kind
from dpgram.engines.base import Pass, WholeProgress
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_header, open_pass
from dpgram.errors import (
    EmptyTableError,
    LargeDeltaWarning,
    LedgerError,
    MechanismError,
    ModelError,
    OneShotError,
    OutputError,
    PlanError,
    SchemaError,
    TableError,
)
from dpgram.ledger.base import Drawn, Ledger, Reservation, RoundLedger
from dpgram.ledger.file import FileLedger
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import Drawing, GramAnswer, GramQuestion, Mechanism, Outcome, Task, hold, plain_cost
from dpgram.planning.assumed import Assumptions, assumed_rows, default_target
from dpgram.planning.choice import AUTO, TABLE_ROWS, WIDEST, Choice, check_hint
from dpgram.planning.curves import Quantity, smallest
from dpgram.planning.ground import Ground, ground
from dpgram.planning.plan import SAMPLE_WORDS, Plan, make_plan
from dpgram.sampling.base import EXACT, RandomSource, exact_gram
from dpgram.sampling.choose import source_for
from dpgram.sources.base import check_header
from dpgram.sources.cache import cache_folder
from dpgram.sources.open import open_source
from dpgram.terms import schema_file
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema
from dpgram.version import __version__

Array = np.ndarray


def release(
    table: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = "gaussian-noise",
    calibration: str = "exact",
    table_rows: int | None = None,
    columns: Sequence[str] | None = None,
    query: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    arithmetic: str | None = None,
    insecure_seed: int | None = None,
    ledger: Ledger | str | Path | None = None,
    out: str | Path | None = None,
    cache: str | Path | bool | None = None,
    progress: Callable[[float], None] | None = None,
    **options: float | str,
) -> GramRelease:
    """One private release of the Gram matrix of ``table``, which costs (``epsilon``, ``delta``).

    ``table`` is a path to CSV, Parquet or Arrow (a file, a folder, a glob), a pandas or polars frame, a polars LazyFrame,
    anything that offers an Arrow stream, a NumPy structured array, a dict of arrays or PyTorch tensors, a two-dimensional
    array or tensor whose names are given by ``columns``, or a database (a DuckDB file, ``duckdb:``, ``postgresql://...``, an open
    connection) whose answer to ``query`` is the table, a Spark DataFrame, or a Spark table's name, such as
    "spark:sales.visits" ("spark:" with a ``query``; docs/spark.md). ``device`` is where PyTorch sums the rows, such as "cuda"; a tensor is
    summed where it lies (docs/gpu.md). ``threads`` is how many threads read and sum, by default one per core.

    ``arithmetic`` is "exact", where what is published is the mechanism's real-valued result, rounded once (the default up to 200
    columns, and beyond where it takes a minute at most), or "float", where leakage through floating-point rounding is not
    excluded. ``insecure_seed`` draws the noise from a seed, for tests and experiments: the release is then marked as not private,
    and arithmetic is "float" unless asked for otherwise.

    ``ledger`` keeps account, a SessionLedger, a FileLedger or the path of one: the budget is reserved there when the mechanism is
    calibrated and asks for its first sum, before any row is read, and a ledger that has too little left raises BudgetSpentError.
    ``out`` is where the release is saved, before it is committed in the ledger. ``calibration`` is "exact", or "paper" for
    Sheffet's printed formulas; ``options`` are the mechanism's own, such as ``sketch_rows``. ``progress`` is called with the
    fraction that has been read, of all passes together.

    A mechanism of several rounds reads the table once for each, so a stream that can be read once is refused before anything is
    read, unless ``cache`` names a folder (True: the system's for temporary files): there the declared columns of a stream or of a query's
    result are kept while the release is made, in a file without a name that only this user can read.

    ``mechanism`` "auto" takes the one that ``plan`` expects to be best under default assumptions, for ``table_rows`` rows, a public
    number; left out, the table's own where that is public. It costs nothing, and the choice stands on the label."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema: use dpgram.Schema.load(path).")
    if isinstance(ledger, str | Path):
        ledger = FileLedger(ledger)
        ledger.account()  # is there, and hangs together
    if ledger is not None and not isinstance(ledger, Ledger):
        raise LedgerError(f"ledger is a {type(ledger).__name__} and must be a ledger, such as dpgram.SessionLedger(1.0, 1e-6).")
    if out is not None:
        check_writable(Path(out))  # before anything is spent
        if isinstance(ledger, FileLedger) and _belongs_to(ledger.path, Path(out)):
            raise OutputError(f"{out} is the ledger itself: choose another place for the release.")
    budget = Budget(epsilon, delta)
    named = None if mechanism == AUTO else registry.find(mechanism)
    if table_rows is not None and named is not None and TABLE_ROWS not in named.options:
        raise MechanismError(f"table_rows is a hint for mechanism='auto', and {mechanism!r} takes none: leave it out.")
    if named is None:
        check_hint(schema, table_rows, options)
    folder = None if cache is None or cache is False else cache_folder(cache)
    whole = WholeProgress(progress)
    rows_pass = open_pass(
        table,
        schema,
        columns=columns,
        query=query,
        device=device,
        threads=threads,
        cache=folder if named is None or named.several else None,
        progress=whole,
    )
    choice = None
    if named is None:
        choice = Choice(_assumed_ground(schema), budget, calibration, table_rows, rereadable=rows_pass.rereadable)
    chosen = named or choice.mechanism  # type: ignore[union-attr]
    hint = {TABLE_ROWS: table_rows} if TABLE_ROWS in chosen.options else {}
    task = registry.schema_task(chosen, budget, schema, calibration, {**options, **hint})
    rng = source_for(arithmetic, task.dim, insecure_seed)
    if chosen.several and not rows_pass.rereadable:
        raise OneShotError(where=rows_pass.where, mechanism=chosen.name)
    custody = _Custody(rows_pass, whole, schema, chosen, task, rng, ledger)
    outcome = custody.hold()
    rows, reservation = custody.rows, custody.reservation
    if choice is not None:
        chosen = choice.mechanism
    made = GramRelease(
        schema=schema,
        gram=outcome.gram,
        rows=rows,
        rows_of=rows_pass.rows_of,
        row_bound=task.row_bound,
        budget=budget,
        mechanism=chosen.name,
        calibration=calibration,
        choice="" if choice is None else choice.in_words,
        condition=outcome.condition,
        parameters=outcome.parameters,
        noise=outcome.noise,
        randomness=rng.description,
        private=rng.private,
        arithmetic=rng.arithmetic,
        grid=outcome.grid,
        ledger_entry=f"{reservation.number}:{reservation.seal}" if reservation is not None and reservation.seal else None,
        library_version=__version__,
    )
    if out is not None:
        _save(made, Path(out))
    if ledger is not None and reservation is not None:
        ledger.commit(reservation)
    return made


class _Custody:
    """Carries a mechanism's questions to the engine and the sums back, and tells the ledger what is about to be drawn."""

    def __init__(
        self,
        rows_pass: Pass,
        progress: WholeProgress,
        schema: Schema,
        mechanism: Mechanism,
        task: Task,
        rng: RandomSource,
        ledger: Ledger | None,
    ):
        self._pass, self._progress, self._schema = rows_pass, progress, schema
        self._mechanism, self._task, self._rng, self._ledger = mechanism, task, rng, ledger
        self._asked, self._drawn = 0, Drawn()
        self._away = False  # whether the mechanism waits for us: what fails then does not follow from what it drew
        self.rows: int | None = None
        self.reservation: Reservation | None = None

    def hold(self) -> Outcome:
        """The mechanism's outcome. An error, or an interrupt, carries a note that names what stays reserved in the ledger."""
        try:
            with self._pass.one_state() if self._mechanism.several else nullcontext():
                outcome = hold(self._mechanism.start(self._task, self._rng), self._answer, self._announce)
        except BaseException as error:
            if self.reservation is not None and self._mechanism.several:
                failed = isinstance(error, Exception) and not self._away and self._drawn.number > 0
                error.add_note(self._what_stays(mechanism_failed=failed))
            raise
        self._progress.end()
        return outcome

    def _answer(self, question: GramQuestion) -> GramAnswer:
        self._asked, self._away = self._asked + 1, True
        if self._asked > 1 and not self._mechanism.several:
            raise MechanismError(f"{self._mechanism.name} asks more than once and does not say so: this is a bug, report it.")
        if self.reservation is None:
            self.reservation = self._reserved()
        self._progress.begin(self._asked, question.questions if self._mechanism.several else 1)
        mapped = () if question.through is None else (question.through,)
        total = self._pass.gram(question.row_bound, *mapped)
        if self._schema.neighbours is Neighbours.REPLACE:
            if self.rows is None:
                self.rows = total.rows
                _check_public_rows(self.rows, self._task.budget)
            if total.rows != self.rows:
                raise TableError(
                    f"{self._pass.where} was changed between two passes over it: run it again when nothing writes to it, or pass cache= "
                    f"(--cache), by which a query's result is read once."
                )
        gram = exact_gram(*total.in_whole_numbers()) if self._rng.arithmetic == EXACT else total.in_scaled_units()
        self._away = False
        return GramAnswer(gram, self.rows)

    def _reserved(self) -> Reservation | None:
        """The budget of the whole release, set aside before any row is read."""
        if self._ledger is None:
            return None
        what, schema = _in_words(self._mechanism.name, self._schema, self._rng.private), self._schema
        known = known_cost(self._mechanism, self._task)
        if self._mechanism.several and isinstance(self._ledger, RoundLedger):
            return self._ledger.reserve(
                self._task.budget, schema.neighbours, what, unit=schema.unit, cost=known, by_rounds=True
            )
        return self._ledger.reserve(self._task.budget, schema.neighbours, what, unit=schema.unit, cost=known)

    def _announce(self, drawing: Drawing) -> None:
        """Before a round is drawn: it is in the ledger when this returns, unless it was reserved as one that is never given back."""
        drawn, self._away = Drawn(drawing.number, drawing.rounds, drawing.spent), True
        if self.reservation is not None and self._mechanism.several and isinstance(self._ledger, RoundLedger):
            self._ledger.note_round(self.reservation, drawn)
        self._drawn, self._away = drawn, False

    def _what_stays(self, *, mechanism_failed: bool) -> str:
        assert self.reservation is not None
        number, drawn = self.reservation.number, self._drawn
        stays = f"Line {number} of the ledger stays reserved, and counts as spent"
        if not isinstance(self._ledger, RoundLedger) or (drawn.rounds and drawn.number == drawn.rounds):
            return f"{stays}."
        if mechanism_failed:  # Theorem 3 of composition.md asks that what was drawn has no part in the end
            why = "The mechanism itself failed, which may follow from what it drew: leave the line as it is."
            return f"{stays}; {drawn.in_words} drawn. {why}"
        command = (
            f"`dpgram ledger settle {number} --ledger {self._ledger.path}`" if isinstance(self._ledger, FileLedger) else ""
        )
        how = command or f"ledger.settle({number})"
        return f"{stays}; {drawn.in_words} drawn. {how} gives back the rounds that were not drawn."


def automatic_choice(
    schema: Schema, budget: Budget, calibration: str, rows: int, options: Mapping[str, object]
) -> tuple[str, str]:
    """The mechanism that "auto" takes for so many rows of a table that can be read again, and why."""
    check_hint(schema, rows, options)
    choice = Choice(_assumed_ground(schema), budget, calibration, rows, rereadable=True)
    return choice.mechanism.name, choice.in_words


def _assumed_ground(schema: Schema) -> Ground | None:
    """Assumed rows and the regression that "auto" looks at; None where a schema has nothing to regress on, or is very wide."""
    if len(schema.encoded) > WIDEST:
        return None
    target = default_target(schema)
    try:
        return ground(schema, assumed_rows(schema, Assumptions(), target), target)
    except (ModelError, PlanError):
        return None


def plan(
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float,
    table_rows: int | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    mechanisms: Sequence[str] | None = None,
    calibration: str = "exact",
    assumptions: Assumptions | None = None,
    sample: object = None,
    sample_is_public: bool = False,
    target_width: float | None = None,
    solve: Quantity = "epsilon",
    **options: float | str,
) -> Plan:
    """What a release of a table of ``table_rows`` rows would give, from public facts alone: no private row is read, nothing is spent.

    The regression looked at is that of ``target`` (by default the first number) on ``features`` (all others). What rows look like is
    taken from ``assumptions``, or from a ``sample`` in any form that ``release`` takes, which must be public: ``sample_is_public`` says so.
    With ``target_width`` the smallest epsilon (``solve`` "epsilon") or number of rows ("rows") is found for which the typical 95 %
    interval is that narrow, and the plan is made for it. ``options`` go to the mechanisms that have them."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema: use dpgram.Schema.load(path).")
    named = default_target(schema) if target is None else target
    if sample is None:
        guess = Assumptions() if assumptions is None else assumptions
        rows, words, data = assumed_rows(schema, guess, named), guess.in_words, guess.to_dict()
    else:
        _check_sample(sample_is_public, assumptions)
        rows, data = encoded_rows(sample, schema), None
        words = SAMPLE_WORDS.format(rows=f"{len(rows):,}")
    found, answer = ground(schema, rows, named, features), None
    if target_width is not None:
        answer = smallest(
            found,
            solve,
            target_width,
            delta,
            epsilon=epsilon,
            rows=table_rows,
            mechanisms=mechanisms,
            calibration=calibration,
            options=options,
        )
        if answer.value is not None:
            epsilon, table_rows = (answer.value, table_rows) if solve == "epsilon" else (epsilon, int(answer.value))
    if epsilon is None or table_rows is None:
        missing = "epsilon" if epsilon is None else "table_rows"
        unanswered = f"{answer.in_words} " if answer else ""
        raise PlanError(f"{unanswered}{missing} is not given: a forecast needs it.")
    return make_plan(
        found,
        Budget(epsilon, delta),
        table_rows,
        assumed=words,
        assumptions=data,
        mechanisms=mechanisms,
        calibration=calibration,
        options=options,
        answer=answer,
    )


def _check_sample(public: bool, assumptions: Assumptions | None) -> None:
    if not public:
        raise PlanError(
            "a sample is given without the word that it is public (sample_is_public, --sample-is-public). A plan costs no budget, so "
            "it must not look at private rows: numbers chosen by looking at them give them away. Use a published "
            "table or made-up rows, or leave the sample out."
        )
    if assumptions is not None:
        raise PlanError("both a sample and assumptions are given, and the sample would replace them: give one of the two.")


def encoded_rows(table: object, schema: Schema) -> Array:
    """The rows of ``table`` in scaled units, (rows, encoded columns): clamped and filled as a release does it, but NOT protected.

    For the custodian's own use of a fitted model on rows, such as ``predict`` of an estimator."""
    return LocalPass(open_source(table), schema).encoded()


def draft_schema(table: object, *, query: str | None = None) -> str:
    """A schema for ``table`` to fill in, as TOML: names, and kinds where the format declares types, but never a value.

    ``query`` is asked of a database, as in ``release``."""
    source = open_header(table, query=query)
    check_header(source)
    declared = ((f.name, None if f.name in source.untyped else likely_kind(f.type)) for f in source.columns if f.name)
    return schema_file.draft(declared)


def _belongs_to(ledger: Path, out: Path) -> bool:
    """Whether ``out`` is the ledger's file, or one that SQLite keeps beside it."""
    return out.resolve().name.removesuffix("-wal").removesuffix("-shm").removesuffix("-journal") == ledger.resolve().name and (
        out.resolve().parent == ledger.resolve().parent
    )


def _save(made: GramRelease, out: Path) -> None:
    """Save what was drawn; where that fails, say that it was paid for."""
    try:
        made.save(out)
    except OutputError as error:
        problem = str(error)
    else:
        return
    line = "" if made.ledger_entry is None else f" Line {made.ledger_entry.partition(':')[0]} of the ledger stays reserved."
    raise OutputError(f"{problem} The noise was drawn, so the budget counts as spent.{line}")


def known_cost(mechanism: Mechanism, task: Task) -> Cost:
    """What is known of the release's curve before any row is read; where it follows the number of rows, its budget alone."""
    try:
        return mechanism.cost(task, mechanism.calibrate(task))
    except MechanismError:
        return plain_cost(task, {})


def _in_words(mechanism: str, schema: Schema, private: bool) -> str:
    """What a ledger says of a release."""
    claim = ", on a claim of the custodian's" if mechanism == "noisy-inverse" else ""
    return f"{mechanism} release of {len(schema.columns)} columns{claim}{'' if private else ', NOT PRIVATE: noise from a seed'}"


def _check_public_rows(rows: int, budget: Budget) -> None:
    """Under REPLACE the number of rows is public, so it may be spoken of."""
    if rows == 0:
        raise EmptyTableError
    if budget.delta > 1 / rows:
        warnings.warn(
            f"delta is {budget.delta:g}, above 1/(number of rows) = {1 / rows:.3g}: such a budget allows publishing a few "
            f"rows outright. Use a delta well below {1 / rows:.1g}.",
            LargeDeltaWarning,
            stacklevel=6,
        )
