"""What is measured of yes-or-no targets.

Public tables: slopes of ``dpgram.logit`` without noise over those of ``statsmodels.Logit``, for slopes that Logit tells from zero
(|z| > 3), and how far predicted probabilities are apart on average over the rows: without noise, and with that of releases by
whitened-noise.

Coverage: rows of two normal groups with one covariance, whose logit and linear probability model are known, so that 95 % intervals can be
compared with the truth."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.terms.columns import Boolean, Numeric
from dpgram.terms.noise import SymmetricGaussian
from dpgram.terms.schema import Schema
from experiments.coverage.releases import make_release
from experiments.coverage.rounds import release_rows
from experiments.real.tables import Table

Array = np.ndarray
DELTA = 1e-6
EPSILONS = (0.3, 1.0, 3.0)
MECHANISMS = ("gaussian-noise", "whitened-noise")
SHARES = (0.3, 0.05)
RELEASES, SAMPLES, ROWS = 5, 100, 10_000
TOLD = 3.0  # standard errors from zero: slopes whose ratio means something

# Two groups of four features: the covariance of a fixed draw, means that make effects of a middling size.
_DRAW = np.random.default_rng(0).normal(size=(4, 4)) * 0.4 + np.eye(4)
COVARIANCE = 0.04 * (_DRAW @ _DRAW.T) / np.sqrt(np.outer(*2 * [np.diag(_DRAW @ _DRAW.T)]))
APART = np.array([0.1, -0.05, 0.0, 0.05])
SCHEMA = Schema(unit="row", columns=[*(Numeric(f"x{j}", -1, 1, missing="midpoint") for j in range(4)), Boolean("y")])


@dataclass(frozen=True)
class Compared:
    """One public table: how ``dpgram.logit`` compares with maximum likelihood."""

    table: str
    rows: int
    share: float
    distance: float
    skewness: float  # the largest of a feature's, in absolute value
    lowest_ratio: float  # of slopes
    highest_ratio: float
    lowest_robust: (
        float  # of the linear probability model's slopes: robust standard errors (HC1) over those that assume one variance
    )
    highest_robust: float
    apart: float  # mean absolute difference of probabilities
    apart_noisy: tuple[float, ...]  # the same from releases, for each epsilon


@dataclass(frozen=True)
class Coverage:
    """Shares of simulated samples whose 95 % interval contains the truth."""

    share: float
    mechanism: str
    epsilon: float
    slopes: float
    intercept: float
    identified: float  # share of slopes with a finite interval
    width: float  # median, of slopes, in units of what sampling alone would need
    linear: float  # slopes of the linear probability model
    refused: float  # share of releases that have no logit


def silent(table: Table) -> GramRelease:
    """A release of the table whose noise is next to nothing."""
    rows, schema = table.rows, table.schema
    made = make_release(
        rows.T @ rows, schema=schema, rows=len(rows), row_bound=schema.largest_norm, epsilon=1.0, mechanism="gaussian-noise",
        seed=0, delta=DELTA,
    )  # fmt: skip
    return replace(made, gram=rows.T @ rows, noise=SymmetricGaussian.orthogonal(1e-7))


def compared(table: Table, releases: int = RELEASES) -> Compared:
    """The table's logit by both ways."""
    from statsmodels.api import OLS, Logit

    (target,) = table.targets
    fit = dpgram.logit(silent(table), target)
    names = [name for name in fit.names if name != "(intercept)"]
    own = own_rows(table, names)
    y = table.rows[:, table.schema.places[target][0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        likely = Logit(y, own).fit(disp=0, maxiter=200)
        linear = OLS(y, own)
        robust = (linear.fit(cov_type="HC1").bse / linear.fit().bse)[1:]
    chance = likely.predict(own)
    told = np.abs(likely.tvalues[1:]) > TOLD
    ratios = (np.array([fit.params[name] for name in names]) / likely.params[1:])[told]
    features = own[:, 1:]
    skewness = np.mean((features - features.mean(axis=0)) ** 3, axis=0) / features.std(axis=0) ** 3
    noisy = []
    for epsilon in EPSILONS:
        apart = []
        for seed in range(releases):
            made = release_rows(
                table.rows, schema=table.schema, row_bound=table.schema.largest_norm, epsilon=epsilon, seed=seed, delta=DELTA,
                half_ranges=table.schema.half_ranges,
            )  # fmt: skip
            try:
                found = dpgram.logit(made, target)
            except ModelError:
                continue
            apart.append(np.mean(np.abs(chances(found, own) - chance)))
        noisy.append(float(np.median(apart)) if apart else math.nan)
    return Compared(
        table.name,
        len(y),
        float(y.mean()),
        fit.to_dict()["distance"],
        float(np.max(np.abs(skewness))),
        float(ratios.min()) if told.any() else math.nan,
        float(ratios.max()) if told.any() else math.nan,
        float(robust.min()),
        float(robust.max()),
        float(np.mean(np.abs(chances(fit, own) - chance))),
        tuple(noisy),
    )


def own_rows(table: Table, names: list[str]) -> Array:
    """(n, 1 + features) in own units, the intercept first."""
    places = [table.schema.places[name][0] for name in names]
    encoded = [table.schema.encoded[j] for j in places]
    own = np.array([e.centre for e in encoded]) + np.array([e.half for e in encoded]) * table.rows[:, places]
    return np.column_stack([np.ones(len(own)), own])


def chances(fit: dpgram.Logit, own: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(own @ np.array(list(fit.params.to_numpy())), -500, 500)))


def truth(share: float) -> tuple[Array, Array]:
    """The coefficients of the logit and of the linear probability model, the intercept first. The group of zeros has mean zero."""
    p, q = share, 1 - share
    beta = np.linalg.solve(COVARIANCE, APART)
    alpha = math.log(p / q) - APART @ beta / 2
    s = 1 / (APART @ beta + 1 / (p * q))
    slopes = s * beta
    return np.concatenate([[alpha], beta]), np.concatenate([[p - p * APART @ slopes], slopes])


def sample(share: float, seed: int, rows: int = ROWS) -> Array:
    """Encoded rows: the intercept, four features, the target. Bounds are 5 standard deviations out."""
    rng = np.random.default_rng([seed, int(1000 * share)])
    y = rng.random(rows) < share
    x = rng.normal(size=(rows, 4)) @ np.linalg.cholesky(COVARIANCE).T + np.where(y[:, None], APART, 0.0)
    return np.column_stack([np.ones(rows), np.clip(x, -1, 1), y])


def released(rows: Array, schema: Schema, mechanism: str, epsilon: float, seed: int) -> GramRelease:
    given = {"schema": schema, "row_bound": schema.largest_norm, "epsilon": epsilon, "seed": seed, "delta": DELTA}
    if mechanism == "whitened-noise":
        return release_rows(rows, half_ranges=schema.half_ranges, **given)
    return make_release(rows.T @ rows, rows=len(rows), mechanism=mechanism, **given)


def coverage(share: float, mechanism: str, epsilon: float, samples: int = SAMPLES) -> Coverage:
    logit, linear = truth(share)
    alone = np.sqrt(np.diag(np.linalg.inv(COVARIANCE)) * (1 / (share * (1 - share)) + APART @ logit[1:]) / ROWS)
    hits, known, widths, of_linear = [], [], [], []
    for seed in range(samples):
        made = released(sample(share, seed), SCHEMA, mechanism, epsilon, seed)
        ends = np.asarray(dpgram.regress(made, "y").conf_int())
        of_linear.append((ends[1:, 0] <= linear[1:]) & (linear[1:] <= ends[1:, 1]))
        try:
            lower, upper = np.asarray(dpgram.logit(made, "y").conf_int()).T
        except ModelError:
            continue
        hits.append((lower <= logit) & (logit <= upper))
        known.append(np.isfinite(lower) & np.isfinite(upper))
        widths.append((upper - lower)[1:] / (2 * 1.96 * alone))
    right, finite = np.array(hits), np.array(known)
    return Coverage(
        share,
        mechanism,
        epsilon,
        float(right[:, 1:].mean()),
        float(right[:, 0].mean()),
        float(finite[:, 1:].mean()),
        float(np.median(widths)),
        float(np.mean(of_linear)),
        1 - len(hits) / samples,
    )
