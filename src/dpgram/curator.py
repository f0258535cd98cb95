"""The one module on both sides of the wall: source -> choice -> ledger -> mechanism <-> engine -> artifact. It orders calls, computes
nothing.

A plan is ordered here too, because a public sample is read as a table is; it reads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpgram.artifact.atomic import check_writable
from dpgram.artifact.release import GramRelease
from dpgram.custody import Custody, count_rows
from dpgram.encoding.types import likely_kind
from dpgram.engines.base import WholeProgress
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_header, open_pass
from dpgram.errors import MechanismError, OneShotError, OutputError, SchemaError
from dpgram.ledger.base import Ledger
from dpgram.ledger.open import check_apart, open_ledger
from dpgram.mechanisms import registry
from dpgram.mechanisms.registry import AUTO, TABLE_ROWS
from dpgram.mechanisms.whitening import KEPT_MEGABYTES, MEMORY
from dpgram.sampling.choose import source_for
from dpgram.sources.base import check_header
from dpgram.sources.cache import Keep
from dpgram.sources.open import open_source
from dpgram.terms import schema_file
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema
from dpgram.version import __version__

if TYPE_CHECKING:
    from dpgram.planning.answers import Width
    from dpgram.planning.assumed import Assumptions
    from dpgram.planning.curves import Quantity
    from dpgram.planning.plan import Plan

Array = np.ndarray


def release(
    table: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = AUTO,
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
    memory: float = KEPT_MEGABYTES,
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
    calibrated and asks for its first sum, before any row is summed, and a ledger that has too little left raises BudgetSpentError.
    ``out`` is where the release is saved, before it is committed in the ledger. ``calibration`` is "exact", or "paper" for
    Sheffet's printed formulas; ``options`` are the mechanism's own, such as ``sketch_rows``. ``progress`` is called with the
    fraction that has been read, of all passes together.

    A mechanism of several rounds reads the table once or twice, some tables once for each round. CSV, what a database or a lazy frame
    answers, and streams are read once all the same: their declared columns are kept until the release is made, up to ``memory`` MB in
    memory, and beyond that in an encrypted file that has no name, in the folder ``cache`` (by default the system's for temporary files).
    With ``cache=False`` nothing is kept: they are read again, and a stream, which can be read once, is refused before anything is read.

    ``mechanism`` "auto", the default, takes the one that ``plan`` expects to be best under default assumptions, for ``table_rows`` rows, a
    public number; left out, the table's own where that is public, which is found out before anything is reserved. It costs nothing, takes
    no options, and the choice stands on the label."""
    _check_schema(schema)
    account = open_ledger(ledger)
    if out is not None:
        check_writable(Path(out))  # before anything is spent
        check_apart(account, Path(out))
    budget = Budget(epsilon, delta)
    chosen = None if mechanism == AUTO else registry.find(mechanism)
    if chosen is None:
        from dpgram.planning.choose import check_hint, choose  # slow to import, and who names a mechanism needs none of it

        check_hint(table_rows, options)
    elif table_rows is not None and TABLE_ROWS not in chosen.options:
        raise MechanismError(f"table_rows is a hint for mechanism='auto', and {mechanism!r} takes none: leave it out.")
    keep = Keep.of(cache, memory)
    whole = WholeProgress(progress)
    rows_pass = open_pass(
        table,
        schema,
        columns=columns,
        query=query,
        device=device,
        threads=threads,
        keep=keep if chosen is None or chosen.several else None,
        progress=whole,
    )
    with ExitStack() as one_state:
        counted, choice = None, ""
        if chosen is None:
            if table_rows is None and rows_pass.rereadable and schema.neighbours is Neighbours.REPLACE:
                one_state.enter_context(rows_pass.one_state())  # all passes from here on are over the rows that are counted
                counted = count_rows(rows_pass, schema, budget, account)
            rows = table_rows if counted is None else counted
            chosen, choice = choose(schema, rows, budget, calibration, rereadable=rows_pass.rereadable)
        if chosen.several and not rows_pass.rereadable:
            raise OneShotError(where=rows_pass.where, mechanism=chosen.name)
        own = {name: value for name, value in {TABLE_ROWS: table_rows, MEMORY.name: memory}.items() if name in chosen.options}
        task = registry.schema_task(chosen, budget, schema, calibration, {**options, **own})
        rng = source_for(arithmetic, task.dim, insecure_seed)
        if chosen.several and counted is None:
            one_state.enter_context(rows_pass.one_state())
            if TABLE_ROWS in chosen.options and schema.neighbours is Neighbours.REPLACE:
                counted = count_rows(rows_pass, schema, budget, account)  # by which it knows how many rows to keep in memory
        custody = Custody(rows_pass, whole, schema, chosen, replace(task, rows=counted), rng, account)
        outcome = custody.hold()
    reservation = custody.reservation
    made = GramRelease(
        schema=replace(schema, learnt=outcome.learnt) if outcome.learnt else schema,
        gram=outcome.gram,
        rows=custody.rows,
        rows_of=rows_pass.rows_of,
        row_bound=task.row_bound,
        budget=budget,
        mechanism=chosen.name,
        calibration=calibration,
        choice=choice,
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
    if account is not None and reservation is not None:
        account.commit(reservation)
    return made


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
    target_width: Width | None = None,
    solve: Quantity = "epsilon",
    **options: float | str,
) -> Plan:
    """What a release of a table of ``table_rows`` rows would give, from public facts alone: no private row is read, nothing is spent.

    The regression looked at is that of ``target`` (by default the first number) on ``features`` (all others). What rows look like is
    taken from ``assumptions``, or from a ``sample`` in any form that ``release`` takes, which must be public: ``sample_is_public`` says so.
    With ``target_width`` the smallest epsilon (``solve`` "epsilon") or number of rows ("rows") is found for which the typical 95 %
    interval is that narrow, or that of each coefficient in a dict such as ``{"age": 0.1}``, and the plan is made for it.
    ``options`` go to the mechanisms that have them."""
    from dpgram.planning.plan import check_sample, make_plan  # slow to import, and a release needs none of it

    _check_schema(schema)
    if sample is not None:
        check_sample(sample_is_public, assumptions)
    return make_plan(
        schema,
        epsilon=epsilon,
        delta=delta,
        rows=table_rows,
        target=target,
        features=features,
        mechanisms=mechanisms,
        calibration=calibration,
        assumptions=assumptions,
        sample=None if sample is None else encoded_rows(sample, schema),
        target_width=target_width,
        solve=solve,
        options=options,
    )


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


def _check_schema(schema: object) -> None:
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema: use dpgram.Schema.load(path).")


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
