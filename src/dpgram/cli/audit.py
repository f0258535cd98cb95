"""dpgram audit"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from dpgram import curator
from dpgram.audits.fresh import faults_of_processes
from dpgram.audits.laws.base import in_words
from dpgram.audits.laws.registry import find, law_of
from dpgram.audits.run import Audit
from dpgram.audits.run import audit as run_audit
from dpgram.cli.app import note
from dpgram.cli.calibrate import asked_task
from dpgram.cli.options import Calibration, Flag, Json, Relation, Several, given_options
from dpgram.cli.output import print_json, print_table, working_bar
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import EXACT_CURVE, Task
from dpgram.report.figures import check_figure_path, draw_trade_off, save_figure
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource
from dpgram.terms.budget import Budget
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema

BROKEN = 1
COLUMNS = tuple(Numeric(name, -1, 1, missing="midpoint") for name in "ab")  # no row is dropped
# Of tables of one row, from cells to the bounded row whose Gram sum a mechanism protects.
CELLS = ((1.0, -1.0), (1e300, -1e300), (2.0, 2.0), (math.inf, 1.0), (math.nan, -7.0), (-0.5, 0.1))
EPSILON, DELTA, SLACK = 1e6, 0.01, 0.02  # a budget so large that the noise is a thousandth of a row: what was summed shows
UNIT_CELLS = (
    ((1.0, 1.0),),
    ((1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)),
    ((1e300, math.nan), (math.inf, -1.0)),
)  # of one unit, in turn
MOST_COUNTED = 1000  # rows per unit: larger tables would take long, and show no more
FAR = 12.0  # standard deviations, which noise does not add to a trace
DRAWS = {"float": 100_000, "exact": 3_000}  # an exact release takes about a millisecond


def audit(
    name: str,
    /,
    *,
    epsilon: float | None = None,
    delta: float = 0.01,
    dim: int = 2,
    row_bound: float = 1.5,
    neighbours: Relation = "replace",
    calibration: Calibration = EXACT_CURVE,
    rows_per_unit: int | None = None,
    arithmetic: str = "float",
    draws: int | None = None,
    confidence: float = 0.999,
    random: int = 1,
    option: Several = (),
    json: Json = False,
    plot: Path | None = None,
    overwrite: Flag = False,
) -> int:
    """Attack mechanism NAME on its worst neighbours, and compare what is found with what is claimed.

    Args:
        name: The mechanism. Or looks, for the noisy counts that whitened-noise makes before its first round.
        epsilon: Epsilon of the budget. By default 1, or 0.9 with --calibration paper, or 8 for looks, which get a few per cent of it.
        delta: Delta of the budget. A smaller delta needs more draws: 0.01 needs about 100,000, and 0.001 about 2,000,000.
        dim: Number of columns. Two are enough for the worst case, and are the fastest.
        row_bound: Largest norm of a row. Avoid 1, because it would hide a mistake between the bound and its square.
        rows_per_unit: Tables that differ in a whole unit with so many rows, for mechanisms that protect all rows of a unit together.
        arithmetic: float draws many releases at once, and also tests a few hundred single ones in both arithmetics. exact draws every
            release by itself in exact arithmetic, which is slower.
        draws: Releases of each of the two tables. By default 100,000, or 3,000 in exact arithmetic.
        confidence: Confidence level of all lower bounds together.
        random: How many random pairs of tables to try besides the worst ones.
        option: An option of the mechanism as NAME=VALUE. May be repeated. Without it, several settings are audited.
        plot: Draw the trade-off curves to this file (.png, .svg or .pdf).
        overwrite: Replace the figure if it exists."""
    check_figure_path(plot, overwrite=overwrite)
    if arithmetic not in DRAWS:
        raise MechanismError(f"arithmetic is {arithmetic!r} and must be 'exact' or 'float'.")
    mechanism, draws = find(name), DRAWS[arithmetic] if draws is None else draws
    budget = Budget((law_of(name).epsilon if calibration == EXACT_CURVE else 0.9) if epsilon is None else epsilon, delta)
    tasks = [asked_task(mechanism, budget, neighbours, dim, row_bound, calibration, given_options(option, {}), rows_per_unit)]
    if not option:
        tasks = [replace(tasks[0], options=each) for each in law_of(name).settings(tasks[0].neighbours, dim, calibration)]
    audits: list[tuple[Task, list[Audit]]] = []
    for task in tasks:
        with working_bar("drawing") as advance:
            results = run_audit(
                mechanism,
                task,
                ExactSource() if arithmetic == "exact" else SecureSource(),
                draws=draws,
                confidence=1 - (1 - confidence) / len(tasks),
                searches=random,
                others=() if arithmetic == "exact" else (SecureSource(), ExactSource()),
                progress=_teller(advance, task),
            )
        audits.append((task, results))
    strange = faults_of_processes(name, tasks[0]) + faults_of_rows()
    strange += [] if rows_per_unit is None else faults_of_units(min(rows_per_unit, MOST_COUNTED))
    if json:
        print_json([_plain(result, task) for task, results in audits for result in results])
    else:
        for task, results in audits:
            how = ", ".join(filter(None, [calibration, in_words(task.options)]))
            units = "" if rows_per_unit is None else f", {rows_per_unit} rows per unit"
            title = f"{name} ({how}), d = {dim}, {neighbours}{units}, delta {delta:g}"
            _print(results, f"{title}, {draws} releases of each table, {arithmetic} arithmetic")
    if plot is not None:
        save_figure(
            plot, lambda ax: draw_trade_off([result.to_dict() for result in audits[0][1]], ax), rows=13, overwrite=overwrite
        )
        note(f"wrote {plot}")
    for task, results in audits:
        for result in results:
            if result.broken:
                told = ": " if result.faults else ""
                strange.append(f"{_named(result.pair, task)}{told}{'; '.join(result.faults)}")
    for words in strange:
        note(f"refuted on {words}.")
    if not strange:
        note("not refuted.")
    return BROKEN if strange else 0


def _named(pair: str, task: Task) -> str:
    return f"{pair} ({in_words(task.options)})" if task.options else pair


def _teller(advance: Callable[[float], None] | None, task: Task) -> Callable[[str, float], None]:
    """Says which pair is at work, once, and moves the bar where there is one."""
    seen: list[str] = []

    def tell(pair: str, share: float) -> None:
        if pair not in seen:
            seen.append(pair)
            note(f"pair {len(seen)}: {_named(pair, task)}")
        if advance is not None:
            advance(share)

    return tell


def _plain(result: Audit, task: Task) -> dict:
    """For JSON, which knows no infinity."""
    told = {"options": dict(task.options), **result.to_dict()}
    return {key: None if value in (float("inf"), float("-inf")) else value for key, value in told.items()}


def _print(audits: list[Audit], title: str) -> None:
    header = ["neighbours", "claimed", "proven", "this pair", "counted", "by shape", "power", ""]
    rows = [
        (
            result.pair,
            f"{result.claimed_epsilon:.4g}",
            f"{result.proven_epsilon:.4g}",
            f"{result.pair_epsilon:.3g}",
            f"{result.counted_epsilon:.4g}",
            f"{result.shaped_epsilon:.4g}",
            f"{result.power:.0%}",
            "REFUTED" if result.broken else "",
        )
        for result in audits
    ]
    caption = (
        "All columns show epsilon at this delta. claimed: as promised. proven: by the proven curve. this pair: of these two tables, "
        "estimated. counted and by shape: lower bounds from the draws, by counting and by the shape of the proven curve."
    )
    print_table(title, header, rows, caption=caption)


def faults_of_rows() -> list[str]:
    """What releases of tables of one row say about its norm: whatever stands in its cells, it is at most the row bound.

    The mechanism is Gaussian noise, whose standard deviation is here some 0.0007 B^2; the trace may exceed B^2 by twenty times as much.
    Then it is one of several rounds, where a row's norm is at most one after every map."""
    faults = []
    for row_bound in (None, 0.7):
        schema = Schema(unit="row", columns=COLUMNS, row_bound=row_bound)
        for cells in CELLS:
            table = {name: np.array([cell]) for name, cell in zip("ab", cells, strict=True)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about cells out of bounds, which are meant
                plain, rounds = (
                    curator.release(table, schema, epsilon=EPSILON, delta=DELTA, mechanism=name)
                    for name in ("gaussian-noise", "whitened-noise")
                )
            if not np.trace(plain.gram) <= schema.effective_row_bound**2 * (1 + SLACK):
                faults.append("a row that is longer than the row bound")
            far = FAR * math.sqrt(2 * len(rounds.gram))
            matrices = ((m, each.sd_off_diagonal) for each in rounds.noise.rounds for m in (each.gram, *each.outer))
            if not all(np.trace(matrix) <= 1 + far * sd for matrix, sd in matrices):
                faults.append("a row that is longer than one after a map")
    return list(dict.fromkeys(faults))


def faults_of_units(rows_per_unit: int) -> list[str]:
    """What releases of tables of one unit, with one row more than count in full or many more, say about all its rows together."""
    faults = []
    schema = Schema(unit="person", columns=COLUMNS, unit_id="who", rows_per_unit=rows_per_unit)
    for cells, rows in product(UNIT_CELLS, (rows_per_unit + 1, 7 * rows_per_unit)):
        table = {name: np.resize([row[place] for row in cells], rows) for place, name in enumerate("ab")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a table of one unit, which is meant
            plain, rounds = (
                curator.release({**table, "who": np.full(rows, 7)}, schema, epsilon=EPSILON, delta=DELTA, mechanism=name)
                for name in ("gaussian-noise", "whitened-noise")
            )
        if not np.trace(plain.gram) <= rows_per_unit * schema.effective_row_bound**2 * (1 + SLACK):
            faults.append("a unit that counts as more than its rows per unit")
        far = FAR * math.sqrt(2 * len(rounds.gram))
        matrices = ((m, each.sd_off_diagonal) for each in rounds.noise.rounds for m in (each.gram, *each.outer))
        if not all(np.trace(matrix) <= rows_per_unit + far * sd for matrix, sd in matrices):
            faults.append("a unit that counts as more than its rows per unit after a map")
    return list(dict.fromkeys(faults))
