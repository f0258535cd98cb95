"""Mistakes by name, and the type of the error that each one meets. What an error says may be written anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpgram
from tests.golden.plans import planned
from tests.golden.releases import SETTINGS, Setting, cells_of
from tests.golden.tables import ADD_REMOVE, REPLACE, small_schema


def _refused(**changes: Any) -> Callable[[dpgram.GramRelease], object]:
    """A release that is not made; ``changes`` are to a setting that would be."""
    return lambda _: SETTINGS["gaussian-noise/replace"].release(**changes)


def _made(mechanism: str, neighbours: str = REPLACE, **options: Any) -> Callable[[dpgram.GramRelease], object]:
    return lambda _: Setting("small", mechanism, neighbours, options=options).release()


REFUSALS: dict[str, Callable[[dpgram.GramRelease], object]] = {
    "no such column": lambda made: dpgram.regress(made, "nobody"),
    "no such feature": lambda made: dpgram.regress(made, "y", ["nobody"]),
    "no such estimator": lambda made: dpgram.regress(made, "y", estimator="best"),
    "no such interval": lambda made: dpgram.regress(made, "y", intervals="narrow"),
    "level beyond one": lambda made: dpgram.regress(made, "y", confidence=1.5),
    "target among features": lambda made: dpgram.regress(made, "y", ["y", "x"]),
    "nothing to regress on": lambda made: dpgram.regress(made, "y", [], intercept=False),
    "no target": lambda made: dpgram.regress(made, []),
    "not a release": lambda made: dpgram.regress({}, "y"),  # type: ignore[arg-type]
    "penalty below zero": lambda made: dpgram.regress(made, "y", estimator="ridge", penalty=-1.0),
    "penalty for least squares": lambda made: dpgram.regress(made, "y", penalty=1.0),
    "formula with a function": lambda made: dpgram.regress(made, "y ~ log(x)"),
    "formula and features": lambda made: dpgram.regress(made, "y ~ x", ["b"]),
    "no such coefficient": lambda made: dpgram.regress(made, "y").joint_test("nobody"),
    "frame without a column": lambda made: dpgram.regress(made, "y").predict({"x": [1.0]}),
    "no such prediction": lambda made: dpgram.regress(made, "y", ["x"]).predict({"x": [1.0]}, interval="both"),
    "no such method": lambda made: dpgram.select(made, "y", method="backward"),
    "no such moments": lambda made: dpgram.covariance(made, ["nobody"]),
    "no such matrix": lambda made: dpgram.covariance(made).matrix("precision"),
    "no penalties": lambda made: dpgram.penalty_path(made, "y", penalties=0),
    "nothing to compare": lambda made: dpgram.compare(),
    "not a file": lambda made: dpgram.load("nowhere.json"),
    "no such mechanism": _made("best"),
    "no such option": _made("gaussian-noise", sketch_rows=5),
    "word for a number": _made("gaussian-sketch", sketch_rows="many"),
    "no claim": _made("noisy-inverse"),
    "degrees left open": _made("inverse-wishart", ADD_REMOVE),
    "gauss under add-remove": _made("gaussian-sketch-adaptive", ADD_REMOVE, first_stage="gauss"),
    "no such repair": _made("gaussian-noise", repair="well"),
    "auto with options": _made("auto", sketch_rows=5),
    "rows for a mechanism that takes none": _refused(table_rows=5),
    "column that is not there": _refused(cells={"x": [1.0]}),
    "no rows": _refused(cells={"x": [], "y": [], "c": [], "b": []}),
    "plan without epsilon": lambda made: dpgram.plan(small_schema(), delta=1e-6, table_rows=100),
    "plan by a sample of nobody knows what": lambda made: planned(small_schema(), sample=cells_of("small")),
    "plan of no such mechanism": lambda made: planned(small_schema(), mechanisms=["best"]),
    "plan of no rows": lambda made: planned(small_schema(), table_rows=0),
    "budget of nothing": lambda made: dpgram.release({}, small_schema(), epsilon=0.0, delta=1e-6),
    "bounds the wrong way": lambda made: dpgram.Numeric("x", 1, 0),
    "schema of no columns": lambda made: dpgram.Schema(unit="person", columns=[]),
    "estimator without a budget": lambda made: dpgram.PrivateRidge(bounds=(0, 1), target_bounds=(0, 1)).fit([[0.0]], [0.0]),
}


def refusals(made: dpgram.GramRelease) -> dict[str, str]:
    """The type of every error by the name of the mistake."""
    found = {}
    for name, mistake in REFUSALS.items():
        try:
            mistake(made)
            found[name] = "nothing"
        except dpgram.DpgramError as problem:
            found[name] = type(problem).__name__
    return found
