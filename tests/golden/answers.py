"""What an analyst is told from a release, as numbers: regressions of every kind, predictions, tests, paths, subsets, moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

import dpgram
from tests.golden.releases import Setting
from tests.golden.tables import TABLES, Table

ESTIMATORS = ("shrunk", "log-det", "debiased", "plain", "ridge", "lasso", "elastic-net")
PENALTIES = {
    "ridge": {"penalty": 0.05},
    "lasso": {"penalty": 0.02},
    "elastic-net": {"penalty": 0.02, "l1_ratio": 0.3},
}
WORDS = {"notes", "condition", "assumed", "why", "refused", "no_row_bounds", "in_words"}  # sentences, which may be written anew
ORIGIN = {"epsilon", "delta", "neighbours", "mechanism", "rows", "private"}  # of every answer, and of no interest in each


def attempt(question: Callable[[], Any]) -> Any:
    """What a question gives, as plain data; of an error its type."""
    try:
        return plain(question())
    except dpgram.DpgramError as problem:
        return {"error": type(problem).__name__}


def plain(value: Any) -> Any:
    """Lists, dicts, numbers, names; no sentences. Infinite and missing numbers are words, as JSON has none."""
    if isinstance(value, pd.DataFrame):  # intervals
        return {name: plain(ends) for name, ends in zip(value.index, value.to_numpy(), strict=True)}
    if isinstance(value, Mapping | pd.Series):
        return {str(key): plain(one) for key, one in value.items() if key not in WORDS}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else str(float(value))
    return value


def answers(setting: Setting, release: dpgram.GramRelease) -> dict:
    """All that is kept of one release, by topic."""
    table = TABLES[setting.table]
    return {
        "fits": fits(table, release),
        "estimates": estimates(table, release),
        "intervals": intervals(table, release),
        "tests": attempt(lambda: tests(table, release)),
        "predictions": predictions(table, release),
        "paths": paths(table, release),
        "selections": selections(table, release),
        "moments": moments(table, release),
    }


def simulated(setting: Setting, release: dpgram.GramRelease) -> dict:
    """Intervals by the bootstrap, which take half a second."""
    return attempt(lambda: dpgram.regress(release, TABLES[setting.table].target, intervals="bootstrap").conf_int())


def _fit(fit: dpgram.Fit) -> dict:
    """Everything that a fit says of itself but words, and the covariance of its coefficients."""
    return {**{name: one for name, one in fit.to_dict().items() if name not in ORIGIN}, "covariance": fit.cov_params()}


def fits(table: Table, release: dpgram.GramRelease) -> dict:
    """Of all features, of a few, by a formula, without the constant, of a weighted sum, at another level, several at once, side by side."""
    other = next(name for name in table.shown if name != table.target)
    few = list(table.features)

    def side_by_side() -> dict:
        pair = {"few": dpgram.regress(release, table.target, few), "formula": dpgram.regress(release, table.formula)}
        found = dpgram.compare(pair)
        models = {name: model["r_squared"] for name, model in found.to_dict()["models"].items()}
        return {"names": list(found.names), "same_release": found.to_dict()["same_release"], "r_squared": models}

    return {
        "all": attempt(lambda: _fit(dpgram.regress(release, table.target))),
        "few": attempt(lambda: _fit(dpgram.regress(release, table.target, few, confidence=0.8))),
        "formula": attempt(lambda: _fit(dpgram.regress(release, table.formula, estimator="log-det", intervals="wald"))),
        "no constant": attempt(lambda: _fit(dpgram.regress(release, table.target, few, intercept=False))),
        "no feature": attempt(lambda: _fit(dpgram.regress(release, table.target, []))),
        "weighted": attempt(
            lambda: _fit(dpgram.regress(release, {table.target: 1.0, other: -2.0}, [f for f in few if f != other]))
        ),
        "several": attempt(lambda: [fit.params for fit in dpgram.regress(release, [table.target, other])]),
        "side by side": attempt(side_by_side),
    }


def estimates(table: Table, release: dpgram.GramRelease) -> dict:
    """Coefficients by every estimator, with the penalty that it chooses and with one that is given."""
    found = {}
    for name in ESTIMATORS:
        found[name] = attempt(lambda name=name: dpgram.regress(release, table.target, estimator=name).estimates)
    for name, options in PENALTIES.items():
        found[f"{name}, penalty given"] = attempt(
            lambda name=name, options=options: dpgram.regress(release, table.target, estimator=name, **options).estimates
        )
    found["shrunk beside another"] = attempt(lambda: dpgram.regress(release, table.target, estimator="debiased").shrunk)
    return found


def intervals(table: Table, release: dpgram.GramRelease) -> dict:
    def of(method: str, level: float) -> dict:
        return attempt(
            lambda: dpgram.regress(release, table.target, list(table.features)).conf_int(confidence=level, method=method)
        )

    asked = (("wald", 0.6), ("fieller", 0.9))  # fits have "auto"
    return {f"{method} {level:g}": of(method, level) for method, level in asked}


def tests(table: Table, release: dpgram.GramRelease) -> dict:
    fit = dpgram.regress(release, table.target)
    asked = {"together": list(table.joint), **{name: name for name in fit.names[:3]}}
    found = {name: fit.joint_test(which) for name, which in asked.items()}
    return {name: {"chi_square": one.statistic, "degrees": one.degrees, "p_value": one.p_value} for name, one in found.items()}


def predictions(table: Table, release: dpgram.GramRelease) -> dict:
    """For new rows; some have cells beyond their bounds, missing cells, levels that nobody declared."""

    def of(features: list[str] | None, **options: Any) -> Any:
        return attempt(lambda: dpgram.regress(release, table.target, features).predict(table.new, **options))

    few = list(table.features)
    return {
        "plain": of(None),
        "mean": of(None, interval="mean"),
        "few": of(few),
        "few, mean": of(few, interval="mean", confidence=0.9),
        "few, observation": of(few, interval="observation"),
    }


def paths(table: Table, release: dpgram.GramRelease) -> dict:
    def of(ratio: float) -> dict:
        path = dpgram.penalty_path(release, table.target, l1_ratio=ratio, penalties=5)
        return {"penalties": path.penalties, "coefficients": path.coefficients}

    return {f"l1_ratio {ratio:g}": attempt(lambda ratio=ratio: of(ratio)) for ratio in (1.0, 0.5)}


def selections(table: Table, release: dpgram.GramRelease) -> dict:
    def of(features: list[str] | None, **options: Any) -> dict:
        found = dpgram.select(release, table.target, features, **options)
        return {"chosen": found.chosen, "steps": [(step.features, step.criterion) for step in found.steps]}

    return {
        "forward": attempt(lambda: of(None)),
        "best of few": attempt(lambda: of(list(table.features), method="best")),
        "at most two": attempt(lambda: of(None, largest=2)),
    }


def moments(table: Table, release: dpgram.GramRelease) -> dict:
    def covariance() -> dict:
        found = dpgram.covariance(release, list(table.shown)).to_dict()
        return {name: one for name, one in found.items() if name not in ORIGIN}

    def components(standardise: bool) -> dict:
        found = dpgram.pca(release, list(table.shown), standardise=standardise).to_dict()
        return {name: one for name, one in found.items() if name not in ORIGIN}

    return {
        "covariance": attempt(covariance),
        "components": attempt(lambda: components(False)),
        "standardised": attempt(lambda: components(True)),
    }
