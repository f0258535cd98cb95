"""The privacy loss of a release: ln of how much likelier it is on the first table of a pair than on the second.

No test tells two tables apart better than one that cuts this number somewhere (Neyman and Pearson), so it is what an audit looks at. Each
function takes many releases at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr

from dpgram.audits.laws import published, rounds_of
from dpgram.audits.neighbours import Pair, Rows
from dpgram.linalg.symmetric import smallest_eigenvalue
from dpgram.mechanisms.conversation import PAPER, Outcome, Parameters, Task
from dpgram.mechanisms.inverse_wishart import multiple_of
from dpgram.mechanisms.noisy_inverse import bounded_inverse

Array = np.ndarray
Loss = Callable[[Outcome], Array]
"""The losses of an outcome that holds many releases."""


def privacy_loss(mechanism: str, task: Task, found: Parameters, pair: Pair) -> Loss | None:
    """The loss of releases by ``mechanism`` with the parameters ``found``; None where its law is not written down here."""
    makers = {
        "gaussian-noise": _gaussian_noise,
        "noisy-inverse": _noisy_inverse,
        "wishart-noise": _wishart_noise,
        "gaussian-sketch": _sketch,
        "inverse-wishart": _posterior,
        "gaussian-sketch-adaptive": _sketch_adaptive,
        "inverse-wishart-adaptive": _posterior_adaptive,
        "whitened-noise": _rounds,
    }
    return makers[mechanism](task, found, pair) if mechanism in makers else None


def pair_epsilon(first: Array, second: Array, delta: float) -> float:
    """The epsilon at ``delta`` of the law on this pair of tables, estimated from the losses of releases of both.

    delta(epsilon) is the mean of (1 - e^(epsilon - loss))+ on either table, the loss turned round on the second."""

    def allowed(epsilon: float) -> bool:
        return all(np.mean(-np.expm1(np.minimum(epsilon - losses, 0.0))) <= delta for losses in (first, -second))

    low, high = 0.0, 1.0
    while not allowed(high) and high < 64:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if allowed(middle) else (middle, high)
    return high if high < 64 else math.inf


def _gaussian(released: Array, first: Array, second: Array, off: float, on: float) -> Array:
    """The loss of symmetric matrices with independent normal noise around ``first`` or ``second``, which may be another for each."""
    dim = first.shape[-1]
    precision = np.full((dim, dim), 0.5 / off**2)  # each entry off the diagonal stands there twice
    np.fill_diagonal(precision, 1 / on**2)
    weights = precision * (first - second)
    return np.einsum("nij,ij->n" if weights.ndim == 2 else "nij,nij->n", released - (first + second) / 2, weights)


def _rounds(task: Task, found: Parameters, pair: Pair) -> Loss:
    """The sum over rounds, each with the map that was published before it."""
    one, other = pair.first, pair.second
    assert isinstance(one, Rows) and isinstance(other, Rows)  # noqa: PT018

    def loss(many: Outcome) -> Array:
        return sum(
            (
                _gaussian(
                    each.gram,
                    one.gram(each.through),
                    other.gram(each.through),
                    each.sd_off_diagonal,
                    math.sqrt(2) * each.sd_off_diagonal,
                )
                for each in rounds_of(many)
            ),
            np.zeros(len(many.gram)),
        )

    return loss


def _scales(found: Parameters) -> tuple[float, float]:
    return found["sd_off_diagonal"], found["sd_diagonal"]


def _gaussian_noise(task: Task, found: Parameters, pair: Pair) -> Loss:
    return lambda many: _gaussian(many.gram, pair.first, pair.second, *_scales(found))


def _noisy_inverse(task: Task, found: Parameters, pair: Pair) -> Loss:
    first, second = (bounded_inverse(gram, found["claimed_floor"]) for gram in (pair.first, pair.second))
    return lambda many: _gaussian(np.linalg.inv(many.gram), first, second, *_scales(found))


def _wishart_noise(task: Task, found: Parameters, pair: Pair) -> Loss:
    m = (found["degrees_of_freedom"] - task.dim - 1) / 2
    step = float(np.trace(pair.first - pair.second)) / (2 * found["scale"])

    def loss(many: Outcome) -> Array:
        noisy = many.gram + published(many, "shift_removed")[:, None, None] * np.eye(task.dim)
        one, other = (_log_det(noisy - gram) for gram in (pair.first, pair.second))
        both = np.isfinite(one) & np.isfinite(other)  # otherwise one of the tables cannot have led here
        inside = m * (np.where(both, one, 0.0) - np.where(both, other, 0.0)) + step
        return np.where(both, inside, np.where(np.isfinite(one), np.inf, -np.inf))

    return loss


def _log_det(matrices: Array) -> Array:
    """ln det of each matrix, -infinity where it is not positive definite."""
    values = np.linalg.eigvalsh(matrices)
    with np.errstate(all="ignore"):
        return np.where(values[:, 0] > 0, np.log(np.maximum(values, 0.0)).sum(axis=1), -np.inf)


def _wishart(draws: Array, first: Array, second: Array, ridge: Array, r: Array) -> Array:
    """The loss of Wishart draws of scales ``first`` + ridge I or ``second`` + ridge I, with ``r`` degrees of freedom."""
    (a, log_a), (b, log_b) = (_inverse(gram, ridge) for gram in (first, second))
    return -np.einsum("nij,nij->n", a - b, draws) / 2 - r / 2 * (log_a - log_b)


def _inverse(gram: Array, ridge: Array) -> tuple[Array, Array]:
    """Inverse and ln det of gram + ridge I, for every ridge."""
    values, vectors = np.linalg.eigh(gram)
    lifted = np.maximum(values, 0.0) + np.maximum(
        ridge[:, None], 1e-12
    )  # a wrong release may have left out a ridge that it needs
    return np.einsum("ik,nk,jk->nij", vectors, 1 / lifted, vectors), np.log(lifted).sum(axis=1)


def _inverse_wishart(draws: Array, first: Array, second: Array, nu: Array, ridge: Array) -> Array:
    """The same for inverse-Wishart draws."""
    (_, log_a), (_, log_b) = (_inverse(gram, ridge) for gram in (first, second))
    return -np.einsum("ij,nij->n", first - second, np.linalg.inv(draws)) / 2 + nu / 2 * (log_a - log_b)


def _sketch(task: Task, found: Parameters, pair: Pair) -> Loss:
    return lambda many: _sketch_loss(many, pair)


def _sketch_loss(many: Outcome, pair: Pair) -> Array:
    ridge, r = published(many, "w_squared"), published(many, "sketch_rows")
    return _wishart(many.gram * r[:, None, None], pair.first, pair.second, ridge, r)


def _posterior(task: Task, found: Parameters, pair: Pair) -> Loss:
    return lambda many: _posterior_loss(many, pair)


def _posterior_loss(many: Outcome, pair: Pair) -> Array:
    psi, nu = published(many, "psi"), published(many, "degrees_of_freedom")
    multiple = multiple_of(nu, len(pair.first))
    return _inverse_wishart(many.gram / multiple[:, None, None], pair.first, pair.second, nu, psi)


def _sketch_adaptive(task: Task, found: Parameters, pair: Pair) -> Loss:
    first_stage = _first_stage(task, found, pair)
    return lambda many: first_stage(many) + _sketch_loss(many, pair)


def _posterior_adaptive(task: Task, found: Parameters, pair: Pair) -> Loss:
    first_stage = _first_stage(task, found, pair)
    return lambda many: first_stage(many) + _posterior_loss(many, pair)


def _first_stage(task: Task, found: Parameters, pair: Pair) -> Loss:
    """The loss of the released smallest eigenvalue: its noise is cut above at the offset (under "exact") and below at zero."""
    scale, offset = found["first_stage_scale"], found["first_stage_offset"]
    normal = "first_stage_mu" in found
    top = math.inf if task.calibration == PAPER else offset
    true = [max(0.0, smallest_eigenvalue(gram)) for gram in (pair.first, pair.second)]

    def log_law(
        s: Array, value: float
    ) -> Array:  # ln of the density, or, at zero, of all that lies below; up to what both tables share
        z = (s - value + offset) / scale
        if normal:
            density, tail = -z * z / 2, log_ndtr(z) + math.log(math.sqrt(2 * math.pi) * scale)
        else:
            density = -np.abs(z)
            tail = np.where(z < 0, z, np.log(np.maximum(2 - np.exp(-np.maximum(z, 0.0)), 1e-300))) + math.log(scale)
        slack = 1e-9 * (abs(value) / scale + 1)  # rounding of the eigenvalue must not look like an impossible release
        highest = top / scale
        whole = (
            log_ndtr(highest) + math.log(math.sqrt(2 * math.pi) * scale)
            if normal
            else math.log(scale * (2 - math.exp(-highest)))
        )
        return np.where(s > 0, np.where(z <= highest + slack, density, -np.inf), np.where(z <= highest, tail, whole))

    def loss(many: Outcome) -> Array:
        s = published(many, "first_stage_value")
        one, other = (log_law(s, value) for value in true)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(one) & np.isneginf(other), 0.0, one - other)

    return loss
