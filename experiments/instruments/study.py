"""Coverage of 95 % confidence sets with instruments, in made-up tables whose coefficients are known.

Each table has an endogenous regressor x, two exogenous regressors, and one or three instruments. x and the errors share a part, so that
least squares is wrong. How much of x the instruments explain decides how strong they are. Each release has its own rows and noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease
from dpgram.evidence.evidence import Evidence
from dpgram.inference.anderson_rubin import AUTO, WALD, Test, chosen, p_values
from dpgram.regression.formula import instrumented
from dpgram.regression.instruments import conditions, estimate

Array = np.ndarray

MECHANISMS = ("gaussian-noise", "whitened-noise")
EPSILONS = (0.3, 1.0, 3.0)
STRENGTHS = {"weak": 0.05, "strong": 0.5}  # what the instruments together move x by, in their standard deviations
INSTRUMENTS = (1, 3)
ROWS, DELTA, BOUND = 20_000, 1e-6, 6.0
RELEASES = 100
TRUTH = {"(intercept)": 1.0, "w0": 0.3, "w1": -0.2, "x": 0.5}
SHARED = 0.6  # correlation of the errors with what x has besides instruments and exogenous regressors


@dataclass(frozen=True)
class Cell:
    """What is measured together."""

    mechanism: str
    epsilon: float
    strength: str
    instruments: int
    rows: int = ROWS

    @property
    def formula(self) -> str:
        return f"y ~ w0 + w1 + [x ~ {' + '.join(f'z{k}' for k in range(self.instruments))}]"


@dataclass(frozen=True)
class Coverage:
    """Of the sets of one cell. Coverage is the share of releases whose set contains the true coefficient."""

    mechanism: str
    epsilon: float
    strength: str
    instruments: int
    rows: int
    releases: int
    f: float  # median strength, noise counted
    wald: float  # coverage of x by Wald's interval
    auto: float  # ... by the set that is the default
    exogenous: float  # ... of the other coefficients, by theirs
    by_test: float  # share of releases whose default set for x is Anderson and Rubin's
    unbounded: float  # share of releases whose default set for x has no end on some side
    rejected: float  # share of releases in which valid instruments are found to disagree; NaN for one instrument


def cells() -> list[Cell]:
    return [Cell(*each) for each in product(MECHANISMS, EPSILONS, STRENGTHS, INSTRUMENTS)]


def table(cell: Cell, rng: np.random.Generator) -> dict[str, Array]:
    z, w, u = (rng.standard_normal((k, cell.rows)) for k in (cell.instruments, 2, 1))
    x = STRENGTHS[cell.strength] * z.sum(axis=0) / np.sqrt(cell.instruments) + 0.5 * w[0] + 0.8 * u[0]
    x += 0.6 * rng.standard_normal(cell.rows)
    errors = SHARED * u[0] + np.sqrt(1 - SHARED**2) * rng.standard_normal(cell.rows)
    y = TRUTH["(intercept)"] + TRUTH["x"] * x + TRUTH["w0"] * w[0] + TRUTH["w1"] * w[1] + errors
    return {"y": y, "x": x, "w0": w[0], "w1": w[1], **{f"z{k}": z[k] for k in range(cell.instruments)}}


def made(cell: Cell, seed: int) -> GramRelease:
    drawn = table(cell, np.random.default_rng([seed, cell.instruments]))
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric(name, -BOUND, BOUND) for name in drawn])
    return dpgram.release(drawn, schema, epsilon=cell.epsilon, delta=DELTA, mechanism=cell.mechanism, insecure_seed=seed)


def coverage(cell: Cell, releases: int = RELEASES, first: int = 0) -> Coverage:
    """Whether a value is in a set is asked of the test behind it, which is quicker than to find the ends of the set."""
    lines: list[list[float]] = []
    truth = np.array(list(TRUTH.values()))
    for seed in range(first, first + releases):
        evidence = Evidence.of(release := made(cell, seed))
        seen = conditions(evidence, instrumented(release.schema, cell.formula))
        test = Test(seen, estimate(seen))
        inside = p_values(test, AUTO, truth) >= 0.05
        by_wald = p_values(test, WALD, truth) >= 0.05
        by_test = chosen(test, AUTO)[-1]
        over = test.overidentification()
        rejected = np.nan if over is None else float(over.p_value < 0.05)
        without_end = by_test and test.unbounded(0.95)
        lines.append([test.strength, by_wald[-1], inside[-1], inside[:-1].mean(), by_test, without_end, rejected])
    numbers = np.array(lines, dtype=float)
    names = ("wald", "auto", "exogenous", "by_test", "unbounded", "rejected")
    means = dict(zip(names, numbers[:, 1:].mean(axis=0).tolist(), strict=True))
    return Coverage(**vars(cell), releases=releases, f=float(np.median(numbers[:, 0])), **means)
