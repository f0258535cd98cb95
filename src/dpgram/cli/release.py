"""dpgram release"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpgram import curator
from dpgram.artifact.atomic import check_writable
from dpgram.cli.app import note
from dpgram.cli.dry_run import show_without_release
from dpgram.cli.options import Calibration, Delta, OptionTexts, given_options, with_flags
from dpgram.cli.output import print_json, working_bar
from dpgram.errors import OptionError, OutputError
from dpgram.mechanisms.registry import AUTO, TABLE_ROWS
from dpgram.report.fact import Planned
from dpgram.report.facts import label_data
from dpgram.sampling.base import FLOAT
from dpgram.sampling.choose import chosen, exact_seconds
from dpgram.terms.budget import Budget
from dpgram.terms.schema import Schema

WORTH_SAYING = 2.0  # seconds


@with_flags
def release(
    data: str,
    /,
    *,
    schema: Path,
    epsilon: float,
    delta: Delta,
    out: Path | None = None,
    mechanism: str = AUTO,
    calibration: Calibration = "exact",
    table_rows: int | None = None,
    query: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    option: OptionTexts = (),
    ledger: Path | None = None,
    cache: Path | None = None,
    no_cache: bool = False,
    memory: float = curator.KEPT_MEGABYTES,
    arithmetic: str | None = None,
    insecure_seed: int | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    json: bool = False,
    **options: Any,
) -> None:
    """Write a private Gram release of DATA to OUT. Epsilon and delta are your choice, so they have no default.

    Args:
        data: CSV, Parquet or Arrow: a file, a folder or a glob; a DuckDB file, `duckdb:`, a postgresql:// URI,
            or a Spark table such as spark:sales.visits.
        schema: TOML file that declares the columns; `dpgram schema draft` writes one to fill in.
        epsilon: Privacy budget; smaller is more private.
        out: Where to write the release, a JSON file.
        mechanism: How noise is added: auto takes what `dpgram plan` expects to be best, and says what it took;
            `dpgram calibrate --help` names all. Options of a mechanism need its name.
        table_rows: A public number of rows for auto, whitened-noise and --dry-run.
            Under neighbours = "replace" a release counts its own;
            under "add-remove" auto chooses by it, and whitened-noise without an intercept needs it.
        query: A database's answer to this SQL is the table; its text stays out of the release.
        device: Sum the rows there with PyTorch, such as cuda.
        threads: How many threads read and sum; by default one per core.
        ledger: The account of the dataset (`dpgram ledger open`): the budget is set aside there before any row is summed.
        cache: A folder for rows that do not fit into --memory. CSV and what a database answers are read once, also where a
            mechanism has several rounds: the declared columns are kept until the release is made, in memory, and beyond it
            encrypted in a file without a name that is gone when the command ends. By default the system's temporary folder.
        no_cache: Keep no rows: CSV is read, and a database asked, again for every round.
        memory: How many MB of rows may be kept in memory.
        arithmetic: exact (rounded once; the default up to 200 columns, and beyond where it takes a minute at most) or float
            (leakage through floating-point rounding is not excluded).
        insecure_seed: Draw the noise from this seed, for tests and experiments only: the release is then NOT PRIVATE and says so.
        overwrite: Replace OUT if it exists.
        dry_run: Show the label as far as it is known, and with --table-rows a forecast. DATA is not opened, and nothing is spent.
            Under neighbours = "replace" auto chooses by --table-rows, and needs it here.
        json: Print the release's label as JSON, as `dpgram inspect --json` does."""
    if no_cache and cache is not None:
        raise OptionError("--cache names a folder for rows that --no-cache forbids to keep: pass one of the two.")
    declared = Schema.load(schema)
    budget = Budget(epsilon, delta)
    width = len(declared.encoded)
    taken = chosen(arithmetic, width, private=insecure_seed is None)
    given = given_options(option, {**options, TABLE_ROWS: table_rows})
    table_rows = given.pop(TABLE_ROWS, None)  # an argument of its own, by whichever name it was given
    if dry_run:
        planned = Planned(
            schema=declared,
            budget=budget,
            mechanism=mechanism,
            calibration=calibration,
            rows_of="table" if query is None else "result",
            arithmetic={"float": FLOAT}.get(taken, taken),  # as the release will say it
            private=insecure_seed is None,
        )
        show_without_release(planned, given, table_rows, json=json)
        return
    if out is None:
        raise OutputError("--out is not given: say where to write the release, or pass --dry-run to make none.")
    check_writable(out)  # before anything is spent
    if any(_same_file(out, other) for other in (data, schema)):
        raise OutputError(f"{out} is the table or the schema itself: choose another place for the release.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists, and a release that was paid for is not replaced: pass --overwrite to do it.")
    if taken == "exact" and exact_seconds(width) >= WORTH_SAYING:
        note(f"exact arithmetic on {width} columns takes about {exact_seconds(width):.0f} s after every pass over the rows")
    with working_bar("reading") as progress:
        made = curator.release(
            data,
            declared,
            epsilon=epsilon,
            delta=delta,
            mechanism=mechanism,
            calibration=calibration,
            table_rows=table_rows,
            query=query,
            device=device,
            threads=threads,
            arithmetic=arithmetic,
            insecure_seed=insecure_seed,
            ledger=ledger,
            out=out,
            cache=False if no_cache else cache,
            memory=memory,
            progress=progress,
            **given,
        )
    if json:
        print_json(label_data(made))
    noise = f"noise sd {made.noise.sd_off_diagonal:.4g} off the diagonal (scaled units)"
    note(f"{len(made.columns)} columns, {noise}, written to {out}")
    if made.choice:
        note(f"{made.mechanism} was chosen: {made.choice}")
    if ledger is None:
        note("not recorded in a ledger: pass --ledger to keep account of what this dataset has spent")
    if not made.private:
        note("NOT PRIVATE: the noise came from a seed, and whoever knows it can subtract the noise.")


def _same_file(out: Path, other: str | Path) -> bool:
    """Whether ``other`` is the file ``out``; what cannot be a path, such as a long URI, is not."""
    try:
        return out.samefile(other)
    except (OSError, ValueError):
        return False
