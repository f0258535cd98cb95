"""Coefficients of a linear model from the evidence of a release: every estimator by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpgram.errors import IndefiniteGramError, ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.linalg.shrinkage import positive_moments
from dpgram.linalg.symmetric import smallest_eigenvalue
from dpgram.regression.channel import Channel, channel
from dpgram.regression.design import Design
from dpgram.regression.penalised import elastic_net, ridge

Array = np.ndarray

PSEUDO_COEFFICIENTS = 4.0  # how much the expected size of coefficients counts, beside what is seen of them
GRID = np.linspace(-9.0, 7.0, 81)  # of the logarithm of a coefficient's variance, about the expected one
PRIOR = np.exp(-GRID)


@dataclass(frozen=True)
class Estimator:
    """One line of the list: how coefficients come from the evidence, and which options they take."""

    fit: Callable[..., Array]
    summary: str
    options: tuple[str, ...] = ()


def fit_linear(evidence: Evidence, plan: Design, estimator: str, **options: float | None) -> Array:
    """The coefficients of the regression ``plan`` by the named estimator, in own units; options that are None were not given."""
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise ModelError(f"there is no estimator {estimator!r}: use one of {', '.join(ESTIMATORS)}.")
    chosen = ESTIMATORS[estimator]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in chosen.options:
            taken = f"it takes {', '.join(chosen.options)}" if chosen.options else "it takes no options"
            raise ModelError(f"{estimator} has no option {name!r}: {taken}.")
    try:
        return chosen.fit(evidence, plan, **given)
    except np.linalg.LinAlgError:  # only where there is no noise to speak of: with it, no matrix is exactly singular
        raise ModelError(
            f"the columns of this regression of {plan.target!r} are exactly dependent in the release: leave one out."
        ) from None


def shrunk(seen: Channel) -> Array:
    """The coefficients with the smallest mean square error to be expected, in own units.

    The best linear prediction of b from what was observed, direction by direction, under b ~ N(0, tau^2): the gain counts with
    its mean and mean square given the whole spectrum and that it is positive; tau^2 is averaged over its posterior, whose
    prior is about ``scale`` with the weight of a few coefficients, so that a few directions full of noise cannot make
    everything vanish."""
    gain, others = seen.expected
    mean, square = positive_moments(gain, seen.gain_sd)
    square = square + others
    noise = seen.label * seen.weight
    log_size = np.log(seen.scale) + GRID
    size = np.exp(log_size)
    total = size[:, None] * square + noise
    over = 1 / total
    likely = -0.5 * (np.log(total).sum(axis=1) + over @ seen.observed**2 + PSEUDO_COEFFICIENTS * (log_size + PRIOR))
    chance = np.exp(likely - likely.max())
    factor = mean * ((chance * size) @ over) / chance.sum()
    return seen.own(factor * seen.observed)


def debiased(seen: Channel) -> Array:
    """The coefficients that intervals are built around: the bias of inverting a noisy matrix is removed. In own units."""
    return seen.own(seen.estimate)


def solve(gram: Array, plan: Design, turn: Array | None = None) -> Array:
    """Ordinary least squares with the matrix ``gram``, in own units; of columns that ``turn`` makes of the plan's where it is given.

    No digits are lost where ``turn`` is badly conditioned and ``gram`` is not."""
    if turn is None:
        features = plan.regressors.T @ gram
        return plan.to_own_units @ np.linalg.solve(features @ plan.regressors, features @ plan.label) + plan.offset
    q, triangle = np.linalg.qr(turn @ plan.regressors)
    features = q.T @ gram
    along = np.linalg.solve(features @ q, features @ (turn @ plan.label))
    return plan.to_own_units @ np.linalg.solve(triangle, along) + plan.offset


def _log_det(evidence: Evidence, plan: Design) -> Array:
    matrix, turn = evidence.repaired_there
    return solve(matrix, plan, turn)


def _plain(evidence: Evidence, plan: Design) -> Array:
    view = evidence.plain
    basis = plan.regressors if view.turn is None else np.linalg.qr(view.turn @ plan.regressors)[0]
    smallest = smallest_eigenvalue(basis.T @ view.matrix @ basis)
    if smallest <= 0:
        raise IndefiniteGramError(smallest=smallest, noise=view.law.sd_off_diagonal)
    return solve(view.matrix, plan, view.turn)


ESTIMATORS: dict[str, Estimator] = {
    "shrunk": Estimator(
        lambda evidence, plan: shrunk(channel(evidence, plan, together=True)),
        "smallest mean square error: the default, for prediction",
    ),
    "debiased": Estimator(lambda evidence, plan: debiased(channel(evidence, plan)), "no bias from the noise: for inference"),
    "log-det": Estimator(_log_det, "the matrix made positive definite as a whole, then solved"),
    "plain": Estimator(_plain, "solved with the matrix as released; may have no answer"),
    "ridge": Estimator(ridge, "a penalty on squares: given, or the size of the noise", ("penalty",)),
    "lasso": Estimator(elastic_net, "a penalty on absolute values: coefficients become zero", ("penalty",)),
    "elastic-net": Estimator(
        lambda evidence, plan, penalty=None, l1_ratio=0.5: elastic_net(evidence, plan, penalty, l1_ratio),
        "both penalties",
        ("penalty", "l1_ratio"),
    ),
}
