"""The comparison: every method on the same regressions, at the same budgets, for growing k.

Of k regressions a fixed sample is fitted and scored: a peer's fits do not depend on each other once the budget is split, so the mean over
the sample estimates the mean over all k, and lines over k compare the same regressions. Noise is drawn from the same seeds for every k."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from benchmarks.peers.questions import Array, Method, NotInstalledError, Questions, Regression
from benchmarks.peers.tables import Table, ask, diamonds, flights, paper
from dpgram.terms.budget import Budget

KS = (1, 4, 16, 64, 256)
EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-6
NON_PRIVATE = "non-private"


@dataclass(frozen=True)
class Plan:
    """What is run: names of tables with what makes them, and how much of everything."""

    tables: tuple[Callable[[], Table], ...]
    ks: tuple[int, ...] = KS
    epsilons: tuple[float, ...] = EPSILONS
    regressions: int = 8
    repetitions: int = 2
    seed: int = 1


FULL = Plan((lambda: paper(2**14), lambda: paper(2**17), flights, diamonds))
QUICK = Plan((lambda: paper(2**12), lambda: flights(20_000)), ks=(1, 16), epsilons=(1.0,), regressions=3, repetitions=1)


@dataclass(frozen=True)
class Cell:
    """Scores of one method over all regressions and repetitions.

    ``lost`` is the share of the variance that least squares explains and the method does not, 1 at most; ``unexplained`` is 1 - R^2 on
    rows held out, 1 at most; ``off`` is the relative error of the coefficients."""

    table: str
    rows: int
    columns: int
    epsilon: float
    delta: float
    k: int
    method: str
    runs: int
    mean_lost: float
    median_lost: float
    mean_unexplained: float
    median_unexplained: float
    median_off: float


def run(plan: Plan, methods: Sequence[Method], say: Callable[[str], None]) -> Iterator[Cell]:
    """Cell by cell; ``say`` hears what comes next, and which table cannot be made here."""
    for make in plan.tables:
        try:
            table = make()
        except NotInstalledError as error:
            say(f"LEFT OUT: {error}")
            continue
        asked = ask(table, plan.regressions, plan.seed)
        yield _cell(table, asked, 0.0, 0, NON_PRIVATE, [[r.least_squares for r in asked]])
        for method in methods:
            say(f"{table.name}: {method.name}")
            for epsilon in plan.epsilons:
                cell = None
                for k in plan.ks:
                    if cell is None or not method.any_k:
                        cell = measured(table, asked, method, Budget(epsilon, DELTA), k, plan.repetitions)
                    yield replace(cell, k=k)


def measured(table: Table, asked: Sequence[Regression], method: Method, budget: Budget, k: int, repetitions: int) -> Cell:
    runs = []
    for repetition in range(repetitions * method.draws):
        rng = np.random.default_rng(
            [zlib.crc32(f"{table.name} {method.name}".encode()), round(100 * budget.epsilon), repetition]
        )
        runs.append(method.answer(Questions(table, asked, k, budget), rng))
    return _cell(table, asked, budget.epsilon, k, method.name, runs)


def _cell(table: Table, asked: Sequence[Regression], epsilon: float, k: int, method: str, runs: list[list[Array]]) -> Cell:
    pairs = [(r, b) for answers in runs for r, b in zip(asked, answers, strict=True)]
    lost = [min(1.0, r.lost(b)) for r, b in pairs]
    unexplained = [min(1.0, table.unexplained(r, b)) for r, b in pairs]
    off = [np.linalg.norm((b - r.least_squares)[1:]) / np.linalg.norm(r.least_squares[1:]) for r, b in pairs]
    return Cell(
        table=table.name,
        rows=table.rows.shape[1],
        columns=table.rows.shape[0],
        epsilon=epsilon,
        delta=DELTA,
        k=k,
        method=method,
        runs=len(pairs),
        mean_lost=float(np.mean(lost)),
        median_lost=float(np.median(lost)),
        mean_unexplained=float(np.mean(unexplained)),
        median_unexplained=float(np.median(unexplained)),
        median_off=float(np.median(off)),
    )


def merged(old: Sequence[Cell], new: Sequence[Cell], order: Sequence[str]) -> list[Cell]:
    """``old`` with the cells of ``new`` in place of those of the same methods: tables as they were, methods in ``order``."""
    redone = {c.method for c in new}
    ranks = {name: place for place, name in enumerate([NON_PRIVATE, *order])}
    tables = {name: place for place, name in enumerate(dict.fromkeys(c.table for c in [*old, *new]))}
    kept = [c for c in old if c.method not in redone and c.method in ranks]
    return sorted([*kept, *new], key=lambda c: (tables[c.table], ranks[c.method], c.epsilon, c.k))


def write(file: Path, cells: Sequence[Cell]) -> None:
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([f.name for f in fields(Cell)])
        for cell in cells:
            values = [getattr(cell, f.name) for f in fields(Cell)]
            writer.writerow([f"{v:.4g}" if isinstance(v, float) else v for v in values])


def read(file: Path) -> list[Cell]:
    kinds = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(Cell)}
    with file.open(newline="") as lines:
        return [Cell(**{name: kinds[name](value) for name, value in line.items()}) for line in csv.DictReader(lines)]
