"""What is measured on a panel, for a number m of rows that count of each unit.

Errors: a release of the whole panel, with rows chosen or weighed so that no unit counts for more than m rows. ``keep`` takes m rows of a
unit at random, as a keyed hash of them would. ``weigh`` counts every row of a unit of n rows with the share min(1, m / n). The error is
the distance of the debiased slopes from those of the whole panel without noise, in units of the panel's own standard errors, those that
count whole units (a sandwich over units).

Coverage: units are drawn with replacement, each time as many as the panel has, rows are weighed, noise is added, and a 95 % interval is
compared with the slope that the same weights give on the whole panel. ``worst`` is the default design effect, ``one`` is that of
independent rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease
from dpgram.regression.design import design
from dpgram.regression.fit import solve
from dpgram.terms.noise import SymmetricGaussian
from experiments.units.panels import Panel

Array = np.ndarray
MOST = (1, 3, 5)
EPSILONS = (math.inf, 8.0)
DELTA = 1e-6
RELEASES, RESAMPLES = 40, 100
ALMOST_NONE = 1e-6  # the sd of the noise where epsilon is infinite


@dataclass(frozen=True)
class Error:
    """Root mean square errors of slopes, in standard errors of the whole panel."""

    panel: str
    units: int
    rows: int
    most: int
    epsilon: float
    keep: float
    weigh: float


@dataclass(frozen=True)
class Coverage:
    """The share of slopes within their 95 % intervals, and how wide these are on average, over those of independent rows."""

    panel: str
    units: int
    most: int
    epsilon: float
    worst: float
    one: float
    wider: float
    observed: float  # what the design effect is, by a sandwich over units: the mean over slopes


def shares(panel: Panel, most: int) -> Array:
    return np.minimum(1.0, most / panel.sizes)[panel.units]


def kept(panel: Panel, most: int, rng: np.random.Generator) -> Array:
    """One where a row is among the first m of its unit in a random order."""
    order = np.lexsort((rng.random(len(panel.units)), panel.units))
    starts = np.cumsum(panel.sizes) - panel.sizes
    place = np.arange(len(order)) - starts[panel.units[order]]
    chosen = np.zeros(len(order))
    chosen[order[place < most]] = 1.0
    return chosen


def gram_of(rows: Array, share: Array) -> Array:
    return (rows * share[:, None]).T @ rows


def release_of(panel: Panel, most: int, epsilon: float) -> GramRelease:
    """A release of the panel's schema by units, with the noise of gaussian-noise at this budget; its matrix is to be replaced."""
    table = {name: np.zeros(2) for name in panel.schema.names}
    spent = 8.0 if math.isinf(epsilon) else epsilon
    made = dpgram.release(table, panel.schema, epsilon=spent, delta=DELTA, mechanism="gaussian-noise", insecure_seed=0)
    sd = (
        ALMOST_NONE if math.isinf(epsilon) else most * made.noise.sd_off_diagonal
    )  # a unit moves the sum m times as far as a row
    schema = replace(panel.schema, unit_id="the unit", rows_per_unit=most)
    return replace(made, schema=schema, noise=SymmetricGaussian.orthogonal(sd), rows=None, units=len(panel.sizes))


def noisy(release: GramRelease, gram: Array, rng: np.random.Generator) -> GramRelease:
    draw = rng.normal(scale=release.noise.sd_off_diagonal, size=gram.shape)
    upper = np.triu(draw, 1)
    return replace(release, gram=gram + upper + upper.T + math.sqrt(2) * np.diag(np.diag(draw)))


def slopes_and_errors(panel: Panel, share: Array) -> tuple[Array, Array, Array]:
    """Slopes of least squares with these shares, their standard errors by a sandwich over units, and those of independent rows."""
    plan = design(panel.schema, panel.target, None, None)
    coefficients = solve(gram_of(panel.rows, share), plan)
    x, y = panel.rows @ plan.regressors, panel.rows @ plan.label
    inverse = np.linalg.inv((x * share[:, None]).T @ x)
    left = y - x @ (inverse @ (x.T @ (share * y)))
    scores = np.zeros((len(panel.sizes), x.shape[1]))
    np.add.at(scores, panel.units, x * (share * left)[:, None])
    own = np.diag(plan.to_own_units)[1:]
    by_units = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))[1:]
    by_rows = np.sqrt(np.diag(inverse) * np.sum(share * left**2) / np.sum(share))[1:]
    return coefficients[1:], own * by_units, own * by_rows


def errors(panel: Panel, most: int, epsilon: float, releases: int = RELEASES) -> Error:
    truth, scale, _ = slopes_and_errors(panel, np.ones(len(panel.rows)))
    base, squares = release_of(panel, most, epsilon), np.zeros(2)
    weighed = gram_of(panel.rows, shares(panel, most))
    for seed in range(releases):
        chosen = kept(panel, most, np.random.default_rng([seed, most])) > 0
        for way, gram in enumerate((panel.rows[chosen].T @ panel.rows[chosen], weighed)):
            noise = np.random.default_rng([seed, most, 1])  # the same for both ways
            fit = dpgram.regress(noisy(base, gram, noise), panel.target, estimator="debiased")
            apart = (fit.params.to_numpy()[1:] - truth) / scale
            squares[way] += np.mean(np.minimum(np.abs(apart), 100.0) ** 2)  # what is not identified is far off in any case
    keep, weigh = np.sqrt(squares / releases).tolist()
    return Error(panel.name, len(panel.sizes), len(panel.rows), most, epsilon, keep, weigh)


def coverage(panel: Panel, most: int, epsilon: float, resamples: int = RESAMPLES) -> Coverage:
    share = shares(panel, most)
    truth, by_units, by_rows = slopes_and_errors(panel, share)
    base = release_of(panel, most, epsilon)
    units, dim = len(panel.sizes), panel.rows.shape[1]
    each = np.zeros((units, dim * dim))  # the Gram of every unit
    products = (panel.rows[:, :, None] * (panel.rows * share[:, None])[:, None, :]).reshape(len(panel.rows), -1)
    np.add.at(each, panel.units, products)
    within, wide = {"worst": [], "one": []}, {"worst": [], "one": []}
    for seed in range(resamples):
        rng = np.random.default_rng([seed, most, 2])
        times = np.bincount(rng.integers(0, units, units), minlength=units)
        release = noisy(base, (times @ each).reshape(dim, dim), rng)
        for name, given in (("worst", None), ("one", 1.0)):
            fit = dpgram.regress(release, panel.target, estimator="debiased", design_effect=given)
            ends = fit.conf_int().to_numpy()[1:]
            within[name].append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
            wide[name].append(ends[:, 1] - ends[:, 0])
    both = np.isfinite(wide["worst"]) & np.isfinite(wide["one"])
    wider = float(np.mean(np.array(wide["worst"])[both] / np.array(wide["one"])[both])) if both.any() else math.nan
    observed = float(np.mean((by_units / by_rows) ** 2))
    held = {name: float(np.mean(inside)) for name, inside in within.items()}
    return Coverage(panel.name, units, most, epsilon, **held, wider=wider, observed=observed)
