"""Ours: one release of the table's Gram matrix, and every regression from it; k costs nothing.

Guarantee: (epsilon, delta), exactly calibrated, once for all regressions. Neighbours: one row replaced. Two lines of the comparison for
each of two mechanisms, one look at the rows and several rounds: the whole table, released without knowing which regressions will be asked,
and only the columns that the k regressions need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import dpgram
from benchmarks.peers.questions import Answers, Array, Method, Questions, Regression
from benchmarks.peers.tables import Table


def fitted(release: dpgram.GramRelease, regression: Regression) -> Array:
    """The default estimator's coefficients, in scaled units and the order of ``regression.names``."""
    fit = dpgram.regress(release, regression.target, list(regression.features))
    units = {e.name: (e.centre, e.half) for e in release.schema.encoded}
    centre, half = units[regression.target]
    slopes = {name: value * units[name][1] / half for name, value in fit.estimates.items()}
    shift = sum(value * units[name][0] for name, value in fit.estimates.items() if name != "(intercept)")
    slopes["(intercept)"] = (fit.estimates["(intercept)"] + shift - centre) / half
    return np.array([slopes[name] for name in regression.names])


def answers(table: Table, columns: Sequence[str], questions: Questions, rng: np.random.Generator, mechanism: str) -> Answers:
    """From one release of ``columns``."""
    release = dpgram.release(
        table.frame,
        table.schema_of(columns),
        epsilon=questions.budget.epsilon,
        delta=questions.budget.delta,
        mechanism=mechanism,
        insecure_seed=int(rng.integers(2**31)),
    )
    return [fitted(release, regression) for regression in questions.asked]


def whole_table(mechanism: str = "gaussian-noise"):
    def answer(questions: Questions, rng: np.random.Generator) -> Answers:
        table: Table = questions.table
        return answers(table, table.schema.names, questions, rng, mechanism)

    return answer


def needed_columns(mechanism: str = "gaussian-noise"):
    def answer(questions: Questions, rng: np.random.Generator) -> Answers:
        """One release for every k of the regressions asked, or for all of them where k is larger."""
        table: Table = questions.table
        fitted: Answers = []
        for start in range(0, len(questions.asked), questions.k):
            group = questions.asked[start : start + questions.k]
            used = {name for r in group for name in (r.target, *r.features)}
            part = Questions(table, group, questions.k, questions.budget)
            fitted += answers(table, [name for name in table.schema.names if name in used], part, rng, mechanism)
        return fitted

    return answer


WHOLE = Method(
    name="one Gram",
    paper="dpgram, gaussian-noise, default estimator",
    cost="one Gaussian mechanism for all regressions",
    setting="the schema's row bound; the whole table in one release",
    answer=whole_table(),
    any_k=True,
    draws=8,
)
NEEDED = Method(
    name="one Gram, needed columns",
    paper="dpgram, gaussian-noise, default estimator",
    cost="one Gaussian mechanism for all regressions",
    setting="a release of the columns that the k regressions use",
    answer=needed_columns(),
    draws=3,
)
WHITENED = Method(
    name="one whitened release",
    paper="dpgram, whitened-noise, default estimator",
    cost="one Gaussian mechanism per round, composed exactly, for all regressions",
    setting="the whole table; rounds, shares and clips by the mechanism's public rules",
    answer=whole_table("whitened-noise"),
    any_k=True,
    draws=8,
)
WHITENED_NEEDED = Method(
    name="one whitened release, needed columns",
    paper="the same",
    cost="the same",
    setting="a release of the columns that the k regressions use",
    answer=needed_columns("whitened-noise"),
    draws=3,
)
