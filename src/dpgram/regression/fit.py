"""Coefficients of a linear model from the evidence of a release: every estimator by name."""

from __future__ import annotations

from collections.abc import Callable

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


def fit_linear(evidence: Evidence, design: Design, estimator: str, **options: float | None) -> Array:
    """The coefficients of the regression ``design`` by the named estimator, in own units; options that are None were not given."""
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise ModelError(f"there is no estimator named {estimator!r}. Use one of {', '.join(ESTIMATORS)}.")
    fit, known = ESTIMATORS[estimator]
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            taken = f"Its options are {', '.join(known)}" if known else "It has no options"
            raise ModelError(f"estimator {estimator!r} has no option {name!r}. {taken}.")
    try:
        return fit(evidence, design, **given)
    except np.linalg.LinAlgError:  # only where there is no noise to speak of: with it, no matrix is exactly singular
        raise ModelError(
            f"the columns of this regression of {design.target!r} are exactly dependent in the release. Leave one column out."
        ) from None


def shrunk(seen: Channel) -> Array:
    """The coefficients with the smallest mean square error to be expected, in own units.

    The best linear prediction of b from what was observed, direction by direction, under b ~ N(0, tau^2): the gain counts with
    its mean and mean square given the whole spectrum and that it is positive; tau^2 is averaged over its posterior, whose
    prior is about ``scale`` with the weight of a few coefficients, so that a few directions full of noise cannot make
    everything vanish. Of a stack, those of each."""
    gain, others = seen.expected
    mean, square = positive_moments(gain, seen.gain_sd)
    square = square + others
    noise = seen.label * seen.weight
    log_size = np.log(seen.scale)[..., None] + GRID
    size = np.exp(log_size)
    total = size[..., None] * square[..., None, :] + noise[..., None, :]
    over = 1 / total
    explained = (over @ seen.observed[..., None] ** 2)[..., 0]
    likely = -0.5 * (np.log(total).sum(axis=-1) + explained + PSEUDO_COEFFICIENTS * (log_size + PRIOR))
    chance = np.exp(likely - likely.max(axis=-1, keepdims=True))
    factor = mean * ((chance * size)[..., None, :] @ over)[..., 0, :] / chance.sum(axis=-1, keepdims=True)
    return seen.own(factor * seen.observed)


def debiased(seen: Channel) -> Array:
    """The coefficients that intervals are built around: the bias of inverting a noisy matrix is removed. In own units."""
    return seen.own(seen.estimate)


def solve(gram: Array, design: Design, turn: Array | None = None) -> Array:
    """Ordinary least squares with the matrix ``gram``, in own units; of columns that ``turn`` makes of the design's where it is given.

    No digits are lost where ``turn`` is badly conditioned and ``gram`` is not."""
    if turn is None:
        features = design.regressors.T @ gram
        return design.to_own_units @ np.linalg.solve(features @ design.regressors, features @ design.label) + design.offset
    q, triangle = np.linalg.qr(turn @ design.regressors)
    features = q.T @ gram
    along = np.linalg.solve(features @ q, features @ (turn @ design.label))
    return design.to_own_units @ np.linalg.solve(triangle, along) + design.offset


def _log_det(evidence: Evidence, design: Design) -> Array:
    matrix, turn = evidence.repaired_there
    return solve(matrix, design, turn)


def _plain(evidence: Evidence, design: Design) -> Array:
    view = evidence.plain
    basis = design.regressors if view.turn is None else np.linalg.qr(view.turn @ design.regressors)[0]
    smallest = smallest_eigenvalue(basis.T @ view.matrix @ basis)
    if smallest <= 0:
        raise IndefiniteGramError(smallest=smallest, noise=view.law.sd_off_diagonal)
    return solve(view.matrix, design, view.turn)


# How coefficients come from the evidence, and which options they take.
ESTIMATORS: dict[str, tuple[Callable[..., Array], tuple[str, ...]]] = {
    # The smallest mean square error: the default, for prediction.
    "shrunk": (lambda evidence, design: shrunk(channel(evidence, design, together=True)), ()),
    # No bias from the noise: for inference.
    "debiased": (lambda evidence, design: debiased(channel(evidence, design)), ()),
    # The matrix made positive definite as a whole, then solved; or solved as released, which may have no answer.
    "log-det": (_log_det, ()),
    "plain": (_plain, ()),
    # A penalty on squares, given or the size of the noise; on absolute values, which makes coefficients zero; or both.
    "ridge": (ridge, ("penalty",)),
    "lasso": (lambda evidence, design, penalty=None: elastic_net(evidence, design, penalty)[0], ("penalty",)),
    "elastic-net": (
        lambda evidence, design, penalty=None, l1_ratio=0.5: elastic_net(evidence, design, penalty, l1_ratio)[0],
        ("penalty", "l1_ratio"),
    ),
}
