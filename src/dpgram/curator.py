"""The one module on both sides of the wall: source -> engine -> mechanism -> artifact. It orders calls, computes nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dpgram.accounting.compose import Cost
from dpgram.artifact.atomic import check_writable
from dpgram.artifact.release import GramRelease
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_header, open_pass
from dpgram.errors import EmptyTableError, LargeDeltaWarning, LedgerError, MechanismError, SchemaError
from dpgram.ledger.base import Ledger, Reservation
from dpgram.ledger.file import FileLedger
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, Mechanism, Task, hold, plain_cost
from dpgram.rows.types import likely_kind
from dpgram.sampling.base import EXACT, exact_gram
from dpgram.sampling.choose import source_for
from dpgram.sources.base import check_header
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
    columns: Sequence[str] | None = None,
    query: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    arithmetic: str | None = None,
    insecure_seed: int | None = None,
    ledger: Ledger | str | Path | None = None,
    out: str | Path | None = None,
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
    fraction of the table that has been read."""
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema: use dpgram.Schema.load(path).")
    if isinstance(ledger, str | Path):
        ledger = FileLedger(ledger)
        ledger.account()  # is there, and hangs together
    if ledger is not None and not isinstance(ledger, Ledger):
        raise LedgerError(f"ledger is a {type(ledger).__name__} and must be a ledger, such as dpgram.SessionLedger(1.0, 1e-6).")
    if out is not None:
        check_writable(Path(out))  # before anything is spent
    budget = Budget(epsilon, delta)
    chosen = registry.find(mechanism)
    task = registry.task(
        chosen, budget, schema.neighbours, len(schema.encoded), schema.effective_row_bound, calibration, options
    )
    rng = source_for(arithmetic, task.dim, insecure_seed)
    rows_pass = open_pass(table, schema, columns=columns, query=query, device=device, threads=threads, progress=progress)
    rows: int | None = None
    reservation: Reservation | None = None

    def answer(question: GramQuestion) -> GramAnswer:
        nonlocal rows, reservation
        if ledger is not None and reservation is None:
            what = _in_words(chosen.name, schema, rng.private)
            reservation = ledger.reserve(budget, schema.neighbours, what, unit=schema.unit, cost=known_cost(chosen, task))
        total = rows_pass.gram(question.row_bound)
        if schema.neighbours is Neighbours.REPLACE:
            rows = total.rows
            _check_public_rows(rows, budget)
        return GramAnswer(exact_gram(*total.in_whole_numbers()) if rng.arithmetic == EXACT else total.in_scaled_units(), rows)

    outcome = hold(chosen.start(task, rng), answer)
    made = GramRelease(
        schema=schema,
        gram=outcome.gram,
        rows=rows,
        rows_of=rows_pass.rows_of,
        row_bound=task.row_bound,
        budget=budget,
        mechanism=chosen.name,
        calibration=calibration,
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
        made.save(out)
    if ledger is not None and reservation is not None:
        ledger.commit(reservation)
    return made


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


def known_cost(mechanism: Mechanism, task: Task) -> Cost:
    """What is known of the release's curve before any row is read; where it follows the number of rows, its budget alone."""
    try:
        return mechanism.cost(task, mechanism.calibrate(task))
    except MechanismError:
        return plain_cost(task, {})


def _in_words(mechanism: str, schema: Schema, private: bool) -> str:
    """What a ledger says of a release."""
    return f"{mechanism} release of {len(schema.columns)} columns{'' if private else ', NOT PRIVATE: noise from a seed'}"


def _check_public_rows(rows: int, budget: Budget) -> None:
    """Under REPLACE the number of rows is public, so it may be spoken of."""
    if rows == 0:
        raise EmptyTableError
    if budget.delta > 1 / rows:
        warnings.warn(
            f"delta is {budget.delta:g}, above 1/(number of rows) = {1 / rows:.3g}: such a budget allows publishing a few "
            f"rows outright. Use a delta well below {1 / rows:.1g}.",
            LargeDeltaWarning,
            stacklevel=5,
        )
