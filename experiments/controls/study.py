"""Coverage of the intervals that ``dpgram.controls`` gives.

A table stands for a population. Rows are drawn from it with replacement and released, and the intervals of every step, change and
contribution are compared with what least squares gives on the whole table without noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import dpgram
from dpgram.terms.noise import SymmetricGaussian
from experiments.controls.tables import Table

EPSILONS = (0.3, 1.0, 3.0)
MECHANISMS = ("gaussian-noise", "whitened-noise")
DELTA = 1e-6
ROWS, RELEASES = 20_000, 100
PARTS = ("coefficient", "change", "contribution")


@dataclass(frozen=True)
class Coverage:
    """The share of 95 % intervals that hold the truth, over releases and steps, and the share that is infinite."""

    table: str
    mechanism: str
    epsilon: float
    part: str
    intervals: int
    coverage: float
    infinite: float
    too_wide: float  # median standard error, over the sd of the estimates about the truth: of the finite ones


def found(made: dpgram.GramRelease, table: Table) -> dict[str, np.ndarray]:
    """(k, 4) value, standard error, lower and upper end of every number, by part."""
    result = dpgram.controls(made, table.target, table.coefficient, table.groups)
    return {
        "coefficient": np.array([(s.coefficient, s.se, s.lower, s.upper) for s in result.steps]),
        "change": np.array([(s.change, s.change_se, s.change_lower, s.change_upper) for s in result.steps[1:]], dtype=float),
        "contribution": np.array([(c.amount, c.se, c.lower, c.upper) for c in result.contributions]),
    }


def truth(table: Table) -> dict[str, np.ndarray]:
    """The same numbers of the whole table, with next to no noise."""
    made = dpgram.release(table.frame, table.schema, epsilon=1e6, delta=DELTA, mechanism="gaussian-noise", insecure_seed=0)
    exact = replace(made, noise=SymmetricGaussian.orthogonal(1e-6))
    return {part: numbers[:, 0] for part, numbers in found(exact, table).items()}


def coverage(table: Table, mechanism: str, epsilon: float, releases: int = RELEASES, rows: int = ROWS) -> Iterator[Coverage]:
    true, looks = truth(table), []
    for seed in range(releases):
        rng = np.random.default_rng([seed, round(10 * epsilon)])
        drawn = table.frame.iloc[rng.integers(0, len(table.frame), rows)]
        made = dpgram.release(
            drawn, table.schema, epsilon=epsilon, delta=DELTA, mechanism=mechanism, insecure_seed=seed, threads=1
        )
        looks.append(found(made, table))
    for part in PARTS:
        value, se, lower, upper = np.moveaxis(np.stack([look[part] for look in looks]), 2, 0)
        finite = np.isfinite(lower) & np.isfinite(upper)
        holds = (lower <= true[part]) & (true[part] <= upper)
        apart = np.where(finite, value - true[part], np.nan)
        with np.errstate(all="ignore"):
            spread = np.sqrt(np.nanmean(apart**2, axis=0))
            ratio = np.nanmedian(np.where(finite, se, np.nan), axis=0) / spread
        yield Coverage(
            table.name,
            mechanism,
            epsilon,
            part,
            int(finite.size),
            float(np.mean(holds[finite])),
            float(1 - finite.mean()),
            float(np.nanmean(ratio)),
        )
