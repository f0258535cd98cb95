"""Coverage of 95 % confidence sets with instruments, in made-up tables whose coefficients are known.

Each table has an endogenous regressor x, two exogenous regressors, and one or three instruments. x and the errors share a part, so that
least squares is wrong. How much of x the instruments explain decides how strong they are. Each release has its own rows and noise.

Some tables also have a category among the exogenous regressors, one level of which has a handful of rows and a large effect."""

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
RARE = 10  # rows of a rare level, on average
TRUTH = {"(intercept)": 1.0, "w0": 0.3, "w1": -0.2, "x": 0.5}
LEVELS = {"g[b]": 0.2, "g[c]": 3.0}  # the last one is rare: two standard deviations of y
SHARED = 0.6  # correlation of the errors with what x has besides instruments and exogenous regressors


@dataclass(frozen=True)
class Cell:
    """What is measured together."""

    mechanism: str
    epsilon: float
    strength: str
    instruments: int
    rows: int = ROWS
    rare: int = 0  # rows of a rare level, on average; 0 where there is no category

    @property
    def formula(self) -> str:
        return f"y ~ w0 + w1 {'+ g ' if self.rare else ''}+ [x ~ {' + '.join(f'z{k}' for k in range(self.instruments))}]"

    @property
    def truth(self) -> dict[str, float]:
        """The coefficients, x last."""
        exogenous = {name: value for name, value in TRUTH.items() if name != "x"}
        return {**exogenous, **(LEVELS if self.rare else {}), "x": TRUTH["x"]}


@dataclass(frozen=True)
class Coverage:
    """Of the sets of one cell. Coverage is the share of releases whose set contains the true coefficient."""

    mechanism: str
    epsilon: float
    strength: str
    instruments: int
    rows: int
    rare: int
    releases: int
    f: float  # median strength, noise counted
    wald: float  # coverage of x by Wald's interval
    auto: float  # ... by the set that is the default
    exogenous: float  # ... of the other coefficients, by theirs; without that of a rare level
    by_test: float  # share of releases whose default set for x is Anderson and Rubin's
    unbounded: float  # share of releases whose default set for x has no end on some side
    rejected: float  # share of releases in which valid instruments are found to disagree; NaN for one instrument


def cells() -> list[Cell]:
    return [Cell(*each) for each in product(MECHANISMS, EPSILONS, STRENGTHS, INSTRUMENTS)]


def rare_cells() -> list[Cell]:
    return [Cell(*each, instruments=1, rare=RARE) for each in product(MECHANISMS, EPSILONS, STRENGTHS)]


def table(cell: Cell, rng: np.random.Generator) -> dict[str, Array]:
    z, w, u = (rng.standard_normal((k, cell.rows)) for k in (cell.instruments, 2, 1))
    x = STRENGTHS[cell.strength] * z.sum(axis=0) / np.sqrt(cell.instruments) + 0.5 * w[0] + 0.8 * u[0]
    x += 0.6 * rng.standard_normal(cell.rows)
    errors = SHARED * u[0] + np.sqrt(1 - SHARED**2) * rng.standard_normal(cell.rows)
    y = TRUTH["(intercept)"] + TRUTH["x"] * x + TRUTH["w0"] * w[0] + TRUTH["w1"] * w[1] + errors
    numbers = {"x": x, "w0": w[0], "w1": w[1], **{f"z{k}": z[k] for k in range(cell.instruments)}}
    if not cell.rare:
        return {"y": y, **numbers}
    share = cell.rare / cell.rows
    level = rng.choice(3, cell.rows, p=[0.5, 0.5 - share, share])
    return {"y": y + np.array([0.0, *LEVELS.values()])[level], **numbers, "g": np.array(["a", "b", "c"])[level]}


def made(cell: Cell, seed: int) -> GramRelease:
    drawn = table(cell, np.random.default_rng([seed, cell.instruments]))
    columns = [
        dpgram.Categorical(name, ["a", "b", "c"]) if name == "g" else dpgram.Numeric(name, -BOUND, BOUND) for name in drawn
    ]
    schema = dpgram.Schema(unit="person", columns=columns)
    return dpgram.release(drawn, schema, epsilon=cell.epsilon, delta=DELTA, mechanism=cell.mechanism, insecure_seed=seed)


def coverage(cell: Cell, releases: int = RELEASES, first: int = 0) -> Coverage:
    """Whether a value is in a set is asked of the test behind it, which is quicker than to find the ends of the set."""
    lines: list[list[float]] = []
    truth = np.array(list(cell.truth.values()))
    others = [place for place, name in enumerate(cell.truth) if name not in ("x", "g[c]")]
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
        lines.append([test.strength, by_wald[-1], inside[-1], inside[others].mean(), by_test, without_end, rejected])
    numbers = np.array(lines, dtype=float)
    names = ("wald", "auto", "exogenous", "by_test", "unbounded", "rejected")
    means = dict(zip(names, numbers[:, 1:].mean(axis=0).tolist(), strict=True))
    return Coverage(**vars(cell), releases=releases, f=float(np.median(numbers[:, 0])), **means)
