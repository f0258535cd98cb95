"""What bounds cost that are declared too wide, on public tables.

How it was measured: every number of a table is declared so many times too wide (``widened``), and the table released by
``whitened-noise`` at epsilon 1, delta 1e-6, under REPLACE. The loss is the share of the explained variance that a release loses: 1 less
the ratio of R², on the table itself, of the released coefficients (default estimator) to that of least squares; at most 1, because
the mean is always there as a guess. Each line is the mean over releases."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import dpgram
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.terms.budget import Budget
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema
from experiments.real.coverage import DELTA, noise_seed
from experiments.real.tables import Table
from experiments.real.truth import least_squares

MECHANISM, EPSILON = "whitened-noise", 1.0
VARIANTS = {"1": 1.0, "10": 10.0, "100": 100.0, "1000": 1000.0, "million": 1e6}  # times too wide


@dataclass(frozen=True)
class Row:
    """One regression under bounds of one width."""

    table: str
    target: str
    width: float  # times what holds all values
    releases: int
    rows: int
    columns: int
    noisy: float  # d^1.5 / (n mu): small where there are rows enough for the budget
    r_squared: float  # of least squares
    loss: float


def measure(table: Table, releases: int, variant: str) -> list[Row]:
    """The lines of one table under bounds of one width."""
    width = VARIANTS[variant]
    truths = {target: least_squares(table, target) for target in table.targets}
    losses: dict[str, list[float]] = {target: [] for target in truths}
    for index in range(releases):
        made = dpgram.release(
            table.data,
            widened(table.schema, width),
            epsilon=EPSILON,
            delta=DELTA,
            mechanism=MECHANISM,
            insecure_seed=noise_seed(table.name, width) + index,
            threads=1,
        )
        for target, truth in truths.items():
            explained = truth.explained(dpgram.regress(made, target).estimates)
            losses[target].append(min(1 - explained / truth.r_squared, 1.0))
    n, d = table.rows.shape
    noisy = d**1.5 / (n * calibrate_mu(Budget(EPSILON, DELTA)))
    return [
        Row(table.name, target, width, releases, n, d, noisy, truth.r_squared, float(np.mean(losses[target])))
        for target, truth in truths.items()
    ]


def widened(schema: Schema, times: float) -> Schema:
    """The schema of somebody who does not know the bounds of numbers within a factor of ``times``.

    What is never negative is still known to be so: zero stays. Other intervals grow to both sides of their middle."""
    return replace(schema, columns=tuple(_wide(c, times) if isinstance(c, Numeric) else c for c in schema.columns))


def _wide(column: Numeric, times: float) -> Numeric:
    if column.lower == 0 or column.upper == 0:
        return replace(column, lower=column.lower * times, upper=column.upper * times)
    more = (times - 1) * (column.upper - column.lower) / 2
    return replace(column, lower=column.lower - more, upper=column.upper + more)
