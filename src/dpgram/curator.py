"""The one module on both sides of the wall: source -> choice -> ledger -> mechanism <-> engine -> artifact. It orders calls, computes
nothing.

A plan is ordered here too, because a public sample is read as a table is; it reads nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpgram.artifact.atomic import check_writable
from dpgram.artifact.files import file_hash, signed
from dpgram.artifact.place import reserved, save_paid
from dpgram.artifact.release import GramRelease
from dpgram.artifact.signature import read_signing_key
from dpgram.custody import Custody, count_public
from dpgram.encoding.types import likely_kind
from dpgram.engines.base import WholeProgress
from dpgram.engines.encoded import counting_rows
from dpgram.engines.encoded import encoded_rows as encoded_rows  # for estimators, which reach rows through here alone
from dpgram.engines.open import open_header, open_pass
from dpgram.errors import MechanismError, OneShotError, SchemaError
from dpgram.ledger.base import Ledger, takes_sha256
from dpgram.ledger.open import check_apart, open_ledger
from dpgram.mechanisms import registry
from dpgram.mechanisms.registry import AUTO, TABLE_ROWS
from dpgram.mechanisms.whitening import KEPT_MEGABYTES, MEMORY, MORE_ROUNDS
from dpgram.sampling.choose import source_for
from dpgram.sources.base import check_header
from dpgram.sources.cache import Keep
from dpgram.sources.query import warn_of_limit
from dpgram.terms import schema_file
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.schema import Schema
from dpgram.version import __version__

if TYPE_CHECKING:
    from dpgram.planning.answers import Width
    from dpgram.planning.assumed import Assumptions
    from dpgram.planning.curves import Quantity
    from dpgram.planning.plan import Plan


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
    overwrite: bool = False,
    sign: str | Path | None = None,
    cache: str | Path | bool | None = None,
    memory: float = KEPT_MEGABYTES,
    progress: Callable[[float], None] | None = None,
    **options: float | str,
) -> GramRelease:
    """Make one private release of a table: its Gram matrix with noise.

    The release costs ``epsilon`` and ``delta`` once. All regressions from it are free.

    Parameters
    ----------
    table : path, frame, array, database or Spark table
        The rows. It can be one of these:

        - a CSV, Parquet or Arrow file, a folder of such files, or a glob
        - a pandas or polars DataFrame, a polars LazyFrame, or any object with an Arrow stream
        - a NumPy structured array, or a dict of arrays or PyTorch tensors
        - a two-dimensional array or tensor, with the names in ``columns``
        - a DuckDB file, "duckdb:", a "postgresql://..." URI, or an open connection, with a ``query``
        - a Spark DataFrame, or the name of a Spark table such as "spark:sales.visits"
    schema : Schema
        What is declared about the table. It is published with the release.
    epsilon, delta : float
        The privacy budget of this release.
    mechanism : str
        How noise is added. "auto" takes the mechanism that ``plan`` expects to be best.
        It costs no budget, and the label says what was chosen.
    calibration : {"exact", "paper"}
        "exact" uses proven privacy curves. "paper" uses the printed formulas of Sheffet (2015).
    table_rows : int, optional
        A public number of rows, for "auto" and "whitened-noise". By default it is the table's own number where that is public.
    columns : sequence of str, optional
        Column names of a two-dimensional array or tensor.
    query : str, optional
        SQL for a database. Its result is the table. The text is not published.
    device : str, optional
        Where PyTorch sums the rows, such as "cuda". By default tensors are summed on their own device, and other tables on the CPU.
    threads : int, optional
        How many threads read and sum. By default one per core.
    arithmetic : {"exact", "float"}, optional
        "exact" computes the noise in real numbers and rounds once, so floating-point rounding leaks nothing. "float" is faster, but gives
        no such promise. The default is "exact" up to 200 columns, and beyond that if it takes at most a minute.
    insecure_seed : int, optional
        Draw the noise from this seed, for tests only. The release is then not private, and its label says so.
    ledger : SessionLedger, FileLedger or path, optional
        The ledger of the dataset. The budget is reserved there before any row is summed.
    out : path, optional
        Save the release to this file. Space for it is taken before the noise is drawn. It is saved before the ledger records it as made.
    overwrite : bool
        Whether to replace the file ``out`` if it exists. Without it an existing file is an error.
    sign : path, optional
        Sign the release with the private key in this file, which ``dpgram keys new`` makes. The key is read before anything is spent.
    cache : path or bool, optional
        Folder for rows that do not fit into ``memory``. CSV files, query results and streams are read once, and their declared columns are
        kept until the release is made. What does not fit is encrypted, in a file without a name. By default it is the system's temporary
        folder. With False no rows are kept, and such tables are read again for every round.
    memory : float
        How many megabytes of rows may be kept in memory. Counting the rows of units may take as many, and 1,000 in any case.
    progress : callable, optional
        Called with the fraction of the work that is done.
    **options : float or str
        Options of the mechanism, such as ``sketch_rows``. "auto" takes none.

    Returns
    -------
    GramRelease
        The noisy Gram matrix with its privacy label.

    Raises
    ------
    TableError
        If the table cannot be read or does not fit the schema. The message contains no cell and no count.
    BudgetSpentError
        If not enough budget is left in the ledger. Nothing was released.
    MechanismError
        If the mechanism is unknown, or cannot be used with these options.
    KeyFileError
        If the file ``sign`` holds no usable key. This is checked before anything is spent.
    OutputError
        If ``out`` exists or cannot be written. This is checked before anything is spent.
    UnsavedReleaseError
        If ``out`` could not be written after the noise was drawn. The error names the file to which the release was saved instead, and
        holds the release itself.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("smoker")])
    >>> table = {"age": [31.0, 45.0, 62.0], "smoker": [True, False, False]}
    >>> made = dpgram.release(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    >>> made.columns
    ('(intercept)', 'age', 'smoker')
    """
    _check_schema(schema)
    key = None if sign is None else read_signing_key(sign)  # before anything is spent
    account = open_ledger(ledger)
    if out is not None:
        check_apart(account, Path(out))
        check_writable(Path(out), overwrite=overwrite)  # before anything is spent
    budget = Budget(epsilon, delta)
    chosen = None if mechanism == AUTO else registry.find(mechanism)
    if chosen is None:
        from dpgram.planning.choose import check_hint, choose  # slow to import, and who names a mechanism needs none of it

        check_hint(table_rows, options)
    elif table_rows is not None and TABLE_ROWS not in chosen.options:
        raise MechanismError(f"table_rows is given, but mechanism {mechanism!r} does not use it. Leave it out.")
    keep = Keep.of(cache, memory)
    whole = WholeProgress(progress)
    has_units = schema.unit_id is not None  # whose rows are counted in a pass of its own
    rows_pass = open_pass(
        table,
        schema,
        columns=columns,
        query=query,
        device=device,
        threads=threads,
        keep=keep if chosen is None or chosen.several or has_units else None,
        memory=memory,
        progress=whole,
    )
    if query is not None:
        warn_of_limit(query, by_units=has_units, stacklevel=3)  # before anything is spent
    with ExitStack() as one_state:
        counted, choice = None, ""
        if chosen is None:
            if table_rows is None and rows_pass.rereadable and schema.neighbours is Neighbours.REPLACE:
                one_state.enter_context(rows_pass.one_state())  # all passes from here on are over the rows that are counted
                counted = count_public(rows_pass, schema, budget, account)
            rows = table_rows if counted is None else counted * schema.most_rows
            chosen, choice = choose(schema, rows, budget, calibration, rereadable=rows_pass.rereadable)
        if (chosen.several or has_units) and not rows_pass.rereadable:
            raise OneShotError(where=rows_pass.where, mechanism=chosen.name, units=has_units)
        own = {name: value for name, value in {TABLE_ROWS: table_rows, MEMORY.name: memory}.items() if name in chosen.options}
        task = registry.schema_task(chosen, budget, schema, calibration, {**options, **own})
        rng = source_for(arithmetic, task.dim, insecure_seed)
        if (chosen.several or has_units) and counted is None:
            one_state.enter_context(rows_pass.one_state())
            if TABLE_ROWS in chosen.options and schema.neighbours is Neighbours.REPLACE:
                counted = count_public(rows_pass, schema, budget, account)  # by which it knows how many rows to keep in memory
        draft = None
        if out is not None:
            rounds = MORE_ROUNDS if chosen.several else 0
            draft = one_state.enter_context(reserved(Path(out), schema, rounds=rounds, overwrite=overwrite))
        task = replace(task, units=counted) if has_units else replace(task, rows=counted)
        custody = Custody(rows_pass, whole, schema, chosen, task, rng, account)
        outcome = custody.hold()
        reservation = custody.reservation
        made = GramRelease(
            schema=replace(schema, learnt=outcome.learnt) if outcome.learnt else schema,
            gram=outcome.gram,
            rows=custody.rows,
            units=custody.units,
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
        made = signed(made, key)
        unsaved = None if draft is None else save_paid(made, draft)
        try:
            if account is not None and reservation is not None and (unsaved is None or unsaved.fallback is not None):
                known = {"sha256": file_hash(made)} if draft is not None and takes_sha256(account) else {}
                account.commit(reservation, **known)
        finally:
            if unsaved is not None:
                raise unsaved
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
    """Forecast what a release would give: errors, confidence intervals and detectable effects of every mechanism.

    It reads no private row and spends no budget. Use it to choose the budget, the mechanism and the row bound before a release.

    Parameters
    ----------
    schema : Schema
        What is declared about the table.
    epsilon : float, optional
        The budget of the release. Leave it out if ``target_width`` is given and ``solve`` is "epsilon".
    delta : float
        The budget of the release.
    table_rows : int, optional
        Number of rows. Use the table's own number if it is public, and a public guess if it is protected.
    target : str, optional
        The column to explain. By default the first numeric or date column.
    features : sequence of str, optional
        The columns that explain it. By default all others.
    mechanisms : sequence of str, optional
        The mechanisms to compare. By default all, except "noisy-inverse" without its option ``rho``.
    calibration : {"exact", "paper"}
        "exact" uses proven privacy curves. "paper" uses the printed formulas of Sheffet (2015).
    assumptions : Assumptions, optional
        Public guesses about the rows.
    sample : table, optional
        A public table with the same columns, to be used instead of assumptions. It can have any form that ``release`` takes.
    sample_is_public : bool
        Confirms that the sample is public. Without it the sample is not read.
    target_width : float or dict, optional
        Find the smallest epsilon or number of rows for which the 95 % interval of a typical coefficient is this narrow.
        A dict such as ``{"age": 0.1}`` gives the widths of single coefficients.
    solve : {"epsilon", "rows"}
        What to find for ``target_width``.
    **options : float or str
        Options for the mechanisms that have them.

    Returns
    -------
    Plan
        The forecast of every mechanism, best first.

    Raises
    ------
    PlanError
        If something that the forecast needs is missing or out of range.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("income", 0, 100), dpgram.Numeric("age", 0, 100)])
    >>> made = dpgram.plan(schema, epsilon=1.0, delta=1e-6, table_rows=10_000, mechanisms=["gaussian-noise"])
    >>> made.forecast.target
    'income'
    """
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
        sample=None if sample is None else counting_rows(sample, schema),
        target_width=target_width,
        solve=solve,
        options=options,
    )


def draft_schema(table: object, *, query: str | None = None) -> str:
    """Write a schema for a table, to be filled in.

    It contains the column names. It also contains their kinds if the format declares types. It never contains a value.
    Fill in bounds and categories from what you know of the domain.

    Parameters
    ----------
    table : path, frame, array, database or Spark table
        The table, in any form that ``release`` takes. No row of it is used.
    query : str, optional
        SQL for a database, as in ``release``.

    Returns
    -------
    str
        The schema as TOML. Save it to a file, fill in the blanks, and read it with ``Schema.load``.

    Raises
    ------
    TableError
        If the table cannot be opened.

    Examples
    --------
    >>> import numpy as np
    >>> import dpgram
    >>> text = dpgram.draft_schema({"age": np.array([31.0, 45.0])})
    >>> 'name = "age"' in text, "31" in text
    (True, False)
    """
    source = open_header(table, query=query)
    check_header(source)
    declared = ((f.name, None if f.name in source.untyped else likely_kind(f.type)) for f in source.columns if f.name)
    return schema_file.draft(declared)


def _check_schema(schema: object) -> None:
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema. Use dpgram.Schema.load(path).")
