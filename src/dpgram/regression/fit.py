"""Coefficients of a linear model from a release: every estimator by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import IndefiniteGramError, ModelError
from dpgram.linalg.shrinkage import positive_moments
from dpgram.linalg.symmetric import smallest_eigenvalue
from dpgram.regression.channel import Channel, additive_form, channel, turned
from dpgram.regression.design import Design
from dpgram.regression.penalised import elastic_net, ridge
from dpgram.regression.repair import repaired_there
from dpgram.terms.noise import WhitenedGaussian

Array = np.ndarray

PSEUDO_COEFFICIENTS = 4.0  # how much the expected size of coefficients counts, beside what is seen of them
GRID = np.linspace(-9.0, 7.0, 81)  # of the logarithm of a coefficient's variance, about the expected one


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of one regression by one estimator, in the columns' own units."""

    target: str
    names: tuple[str, ...]
    coefficients: Array
    estimator: str
    design: Design

    @property
    def by_name(self) -> dict[str, float]:
        return dict(zip(self.names, self.coefficients.tolist(), strict=True))


@dataclass(frozen=True)
class Estimator:
    """One line of the list: how coefficients come from a release, and which options they take."""

    fit: Callable[..., Array]
    summary: str
    options: tuple[str, ...] = ()


def fit_linear(release: GramRelease, plan: Design, estimator: str, **options: float | None) -> LinearFit:
    """The coefficients of the regression ``plan`` by the named estimator; options that are None were not given."""
    chosen = find_estimator(estimator)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in chosen.options:
            taken = f"it takes {', '.join(chosen.options)}" if chosen.options else "it takes no options"
            raise ModelError(f"{estimator} has no option {name!r}: {taken}.")
    try:
        found = chosen.fit(release, plan, **given)
    except np.linalg.LinAlgError:  # only where there is no noise to speak of: with it, no matrix is exactly singular
        raise ModelError(
            f"the columns of this regression of {plan.target!r} are exactly dependent in the release: leave one out."
        ) from None
    return LinearFit(plan.target, plan.names, found, estimator, plan)


def find_estimator(name: object) -> Estimator:
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelError(f"there is no estimator {name!r}: use one of {', '.join(ESTIMATORS)}.")
    return ESTIMATORS[name]


def shrunk(seen: Channel) -> Array:
    """The coefficients with the smallest mean square error to be expected, in own units.

    The best linear prediction of b from what was observed, direction by direction, under b ~ N(0, tau^2): the gain counts with
    its mean and mean square given the whole spectrum and that it is positive; tau^2 is averaged over its posterior, whose
    prior is about ``scale`` with the weight of a few coefficients, so that a few directions full of noise cannot make
    everything vanish."""
    mean, square = positive_moments(seen.expected, seen.gain_sd)
    square = square + seen.others
    noise = seen.label * seen.weight
    log_size = np.log(seen.scale) + GRID
    size = np.exp(log_size)[:, None]
    total = size * square + noise
    fitted = -0.5 * np.sum(np.log(total) + seen.observed**2 / total, axis=1)
    prior = -0.5 * PSEUDO_COEFFICIENTS * (log_size + np.exp(-GRID))
    chance = np.exp(fitted + prior - np.max(fitted + prior))
    factor = np.sum(chance[:, None] * size * mean / total, axis=0) / np.sum(chance)
    return seen.to_own @ (factor * seen.observed) + seen.base


def debiased(seen: Channel) -> Array:
    """The coefficients that intervals are built around: the bias of inverting a noisy matrix is removed. In own units."""
    return seen.to_own @ seen.estimate + seen.base


def solve_there(gram: Array, turn: Array, plan: Design) -> Array:
    """The same in other coordinates: ``gram`` is that of columns which ``turn`` makes of the plan's. No digits are lost where ``turn``
    is badly conditioned and ``gram`` is not."""
    there = turned(plan, turn)
    q, triangle = np.linalg.qr(there.regressors)
    features = q.T @ gram
    found = np.linalg.solve(features @ q, features @ there.label)
    return plan.to_own_units @ np.linalg.solve(triangle, found) + plan.offset


def solve(gram: Array, plan: Design) -> Array:
    """Ordinary least squares with the matrix ``gram``, in own units."""
    features = plan.regressors.T @ gram
    return plan.to_own_units @ np.linalg.solve(features @ plan.regressors, features @ plan.label) + plan.offset


def _log_det(release: GramRelease, plan: Design) -> Array:
    return solve_there(*repaired_there(release), plan)


def _plain(release: GramRelease, plan: Design) -> Array:
    if isinstance(release.noise, WhitenedGaussian):
        gram, noise, turn = additive_form(release)
        q = np.linalg.qr(turn @ plan.regressors)[0]
        if (smallest := smallest_eigenvalue(q.T @ gram @ q)) <= 0:
            raise IndefiniteGramError(smallest=smallest, noise=noise.sd_off_diagonal)
        return solve_there(gram, turn, plan)
    smallest = smallest_eigenvalue(plan.regressors.T @ release.gram @ plan.regressors)
    if smallest <= 0:
        raise IndefiniteGramError(smallest=smallest, noise=release.noise.sd_off_diagonal)
    return solve(release.gram, plan)


ESTIMATORS: dict[str, Estimator] = {
    "shrunk": Estimator(
        lambda release, plan: shrunk(channel(release, plan, together=True)),
        "smallest mean square error: the default, for prediction",
    ),
    "debiased": Estimator(lambda release, plan: debiased(channel(release, plan)), "no bias from the noise: for inference"),
    "log-det": Estimator(_log_det, "the matrix made positive definite as a whole, then solved"),
    "plain": Estimator(_plain, "solved with the matrix as released; may have no answer"),
    "ridge": Estimator(ridge, "a penalty on squares: given, or the size of the noise", ("penalty",)),
    "lasso": Estimator(elastic_net, "a penalty on absolute values: coefficients become zero", ("penalty",)),
    "elastic-net": Estimator(
        lambda release, plan, penalty=None, l1_ratio=0.5: elastic_net(release, plan, penalty, l1_ratio),
        "both penalties",
        ("penalty", "l1_ratio"),
    ),
}
