"""dpgram release"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpgram import curator
from dpgram.artifact.atomic import check_writable
from dpgram.artifact.signature import read_signing_key
from dpgram.cli.app import note
from dpgram.cli.dry_run import show_without_release
from dpgram.cli.options import Calibration, Delta, Flag, OptionTexts, given_options, with_flags
from dpgram.cli.output import print_json, same_file, working_bar
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
    sign: Path | None = None,
    cache: Path | None = None,
    no_cache: Flag = False,
    memory: float = curator.KEPT_MEGABYTES,
    arithmetic: str | None = None,
    insecure_seed: int | None = None,
    overwrite: Flag = False,
    dry_run: Flag = False,
    json: Flag = False,
    **options: Any,
) -> None:
    """Write a private Gram release of DATA to OUT. Epsilon and delta are your choice, so they have no default.

    Args:
        data: The table. A CSV, Parquet or Arrow file, a folder of files or a glob. Or a DuckDB file, 'duckdb:', a postgresql:// URI, or a
            Spark table such as spark:sales.visits.
        schema: TOML file that declares the columns. 'dpgram schema draft' writes one to fill in.
        epsilon: Epsilon of the privacy budget. Smaller is more private.
        out: The file to write, in JSON. Required unless --dry-run is given.
        mechanism: How noise is added. auto takes the mechanism that 'dpgram plan' expects to be best. 'dpgram calibrate --help' lists all.
            Name a mechanism to use its options.
        table_rows: A public number of rows. Give it with --dry-run, or if the schema has neighbours = "add-remove". Otherwise the rows are
            counted.
        query: SQL for a database. Its result is the table. The text is not published.
        device: Sum the rows on this PyTorch device, such as cuda.
        threads: How many threads read and sum the rows. By default one per core.
        ledger: Record the release in this ledger, which 'dpgram ledger open' creates. The budget is reserved before any row is summed.
        sign: Sign the release with the private key in this file, which 'dpgram keys new' makes. The key is read before anything is spent.
        cache: Folder for rows that do not fit into --memory. They are encrypted, in a file without a name that is gone when the command
            ends. By default the system's temporary folder.
        no_cache: Keep no rows. A CSV file is then read again, and a database asked again, for every round.
        memory: How many megabytes of rows may be kept in memory. Counting the rows of units may take as many, and 1,000 in any case.
        arithmetic: exact rounds only once, so floating-point rounding leaks nothing. float is faster, but does not promise this. By default
            exact up to 200 columns, and beyond that if it takes at most a minute.
        insecure_seed: Draw the noise from this seed, for tests only. The release is then NOT PRIVATE, and its label says so.
        overwrite: Replace OUT if it exists.
        dry_run: Only show what the label would say, and a forecast if --table-rows is given. DATA is not opened and nothing is spent.
        json: Print the privacy label as JSON, as 'dpgram inspect --json' does."""
    if no_cache and cache is not None:
        raise OptionError("--cache and --no-cache contradict each other. Pass one of the two.")
    declared = Schema.load(schema)
    budget = Budget(epsilon, delta)
    width = len(declared.encoded)
    taken = chosen(arithmetic, width, private=insecure_seed is None)
    given = given_options(option, {**options, TABLE_ROWS: table_rows})
    table_rows = given.pop(TABLE_ROWS, None)  # an argument of its own, by whichever name it was given
    if sign is not None:
        read_signing_key(sign)  # a dry run tells whether it can be used, too
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
        raise OutputError("--out is not given. Say where to write the release, or pass --dry-run to make none.")
    if sign is not None and same_file(out, sign):
        raise OutputError(f"{out} is the key itself. Choose another place for the release.")
    if any(same_file(out, other) for other in (data, schema)):
        raise OutputError(f"{out} is the table or the schema itself. Choose another place for the release.")
    check_writable(out, overwrite=overwrite)  # before anything is said or spent
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
            overwrite=overwrite,
            sign=sign,
            cache=False if no_cache else cache,
            memory=memory,
            progress=progress,
            **given,
        )
    if json:
        print_json(label_data(made))
    noise = f"noise standard deviation {made.noise.sd_off_diagonal:.4g} off the diagonal, in scaled units"
    note(f"wrote {out}: {len(made.columns)} columns, {noise}")
    if made.choice:
        note(f"{made.mechanism} was chosen: {made.choice}")
    if made.signature is not None:
        note(f"signed{made.signature.by and f' by {made.signature.by!r}'}, with key {made.signature.fingerprint}")
    if ledger is None:
        note("not recorded in a ledger: pass --ledger to keep several releases of this dataset within a single budget")
    if not made.private:
        note("NOT PRIVATE: the noise came from a seed, so anyone who knows the seed can subtract it.")
