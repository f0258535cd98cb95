"""Releases as uniform numbers: what the proof says of their noise, turned into numbers that are independent and uniform where it holds.

The noise on a Gram is normal; a Wishart draw, divided by the root of its scale matrix, has Bartlett's factor (normal below the diagonal,
chi-square roots on it); the smallest eigenvalue of the adaptive mechanisms has a cut law of its own. The laws are written down here once
more, from the proofs, and share no code with the samplers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import gammainc, ndtr

from dpgram.mechanisms.conversation import PAPER, Outcome, Parameters, Task
from dpgram.terms.noise import Round, WhitenedGaussian

Array = np.ndarray
Uniforms = Callable[[Outcome], Array]
"""(releases, numbers): uniform and independent where the releases follow the proven law."""


def uniforms(mechanism: str, task: Task, found: Parameters, gram: Any) -> Uniforms | None:
    """The map for releases of a table with the Gram sum ``gram``, or of these rows; None for a mechanism whose law is not written
    down here."""
    makers: dict[str, Callable[[Task, Parameters, Any], Uniforms]] = {
        "gaussian-noise": _gaussian_noise,
        "noisy-inverse": _noisy_inverse,
        "wishart-noise": _wishart_noise,
        "gaussian-sketch": _sketch,
        "inverse-wishart": _posterior,
        "gaussian-sketch-adaptive": _adaptive(_sketch),
        "inverse-wishart-adaptive": _adaptive(_posterior),
        "whitened-noise": _rounds,
    }
    if mechanism not in makers:
        return None
    made = makers[mechanism](task, found, gram)
    return lambda many: np.clip(np.nan_to_num(made(many), nan=0.0), 0.0, 1.0)


def published(many: Outcome, name: str) -> Array:
    """A published number, one for each release."""
    return np.broadcast_to(many.parameters[name], len(many.gram))


def rounds_of(many: Outcome) -> tuple[Round, ...]:
    """What was published in each round of a release of several."""
    assert isinstance(many.noise, WhitenedGaussian)
    return many.noise.rounds


def _normal(noise: Array, found: Mapping[str, float]) -> Array:
    rows, columns = np.triu_indices(noise.shape[-1])
    sd = np.where(rows == columns, found["sd_diagonal"], found["sd_off_diagonal"])
    return ndtr(noise[:, rows, columns] / sd)


def _rounds(task: Task, found: Parameters, table: Any) -> Uniforms:
    """The noise of every round, whose map is as published; its sds are those of the calibration, where that knows how many there are."""

    def made(many: Outcome) -> Array:
        numbers = []
        for place, each in enumerate(rounds_of(many), 1):
            off = found.get(f"round_{place}_sd_off_diagonal", each.sd_off_diagonal)
            sds = {"sd_off_diagonal": off, "sd_diagonal": math.sqrt(2) * off}
            numbers.append(_normal(each.gram - table.gram(each.through), sds))
        return np.hstack(numbers)

    return made


def _gaussian_noise(task: Task, found: Parameters, gram: Array) -> Uniforms:
    return lambda many: _normal(many.gram - gram, found)


def _noisy_inverse(task: Task, found: Parameters, gram: Array) -> Uniforms:
    inverse = np.linalg.inv(gram)  # the tables of an audit keep the claim
    return lambda many: _normal(np.linalg.inv(many.gram) - inverse, found)


def _bartlett(wishart: Array, degrees: Array) -> Array:
    """The numbers in Bartlett's factor of Wishart matrices of identity scale; zeros where a matrix is not positive definite.

    Of fewer degrees than columns only as many columns are looked at: they are a Wishart matrix of full rank."""
    dim = min(wishart.shape[-1], max(1, int(np.min(degrees))))
    wishart = wishart[:, :dim, :dim]
    good = np.linalg.eigvalsh(np.where(np.isfinite(wishart), wishart, 0.0))[:, 0] > 0
    factor = np.linalg.cholesky(np.where(good[:, None, None], wishart, np.eye(dim)))
    below = np.tril_indices(dim, -1)
    on = np.diagonal(factor, axis1=-2, axis2=-1) ** 2
    chi = gammainc((degrees[:, None] - np.arange(dim)) / 2, on / 2)
    return np.where(good[:, None], np.hstack([ndtr(factor[:, *below]), chi]), 0.0)


def _wishart_noise(task: Task, found: Parameters, gram: Array) -> Uniforms:
    def made(many: Outcome) -> Array:
        noise = many.gram - gram + published(many, "shift_removed")[:, None, None] * np.eye(task.dim)
        return _bartlett(noise / found["scale"], np.full(len(noise), found["degrees_of_freedom"]))

    return made


def _roots(gram: Array, ridge: Array) -> Array:
    """R with R R' = gram + ridge I, for each ridge; any root will do. A singular one, which no right release has, is kept regular."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values + ridge[:, None], 1e-12))[:, None, :]


def _sketch(task: Task, found: Parameters, gram: Array) -> Uniforms:
    def made(many: Outcome) -> Array:
        r = published(many, "sketch_rows")
        root = _roots(gram, published(many, "w_squared"))
        half = np.linalg.solve(root, many.gram * r[:, None, None])
        return _bartlett(_symmetric(np.linalg.solve(root, half.mT)), r)

    return made


def _posterior(task: Task, found: Parameters, gram: Array) -> Uniforms:
    def made(many: Outcome) -> Array:
        nu, root = published(many, "degrees_of_freedom"), _roots(gram, published(many, "psi"))
        multiple = np.where(nu > task.dim + 1, nu - task.dim - 1, nu)
        return _bartlett(_symmetric(root.mT @ np.linalg.inv(many.gram / multiple[:, None, None]) @ root), nu)

    return made


def _symmetric(matrices: Array) -> Array:
    return (matrices + matrices.mT) / 2


def _adaptive(second: Callable[[Task, Parameters, Array], Uniforms]) -> Callable[[Task, Parameters, Array], Uniforms]:
    """Both stages: the smallest eigenvalue first, then the draw that follows from it."""

    def both(task: Task, found: Parameters, gram: Array) -> Uniforms:
        below, draw = _first_stage(task, found, gram), second(task, found, gram)
        rng = np.random.default_rng(np.frombuffer(gram.tobytes(), np.uint32))  # one table's must not repeat the other's

        def made(many: Outcome) -> Array:
            s = published(many, "first_stage_value")
            first = below(s)
            first = np.where(s > 0, first, first * rng.random(len(s)))  # zero stands for all that lies below
            return np.column_stack([first, draw(many)])

        return made

    return both


def _first_stage(task: Task, found: Parameters, gram: Array) -> Callable[[Array], Array]:
    """The distribution function of the released smallest eigenvalue, where that is positive."""
    scale, offset = found["first_stage_scale"], found["first_stage_offset"]
    smallest = max(0.0, float(np.linalg.eigvalsh(gram)[0]))

    def plain(z: Array) -> Array:
        if "first_stage_mu" in found:
            return ndtr(z / scale)
        return np.where(z < 0, np.exp(np.minimum(z, 0.0) / scale) / 2, 1 - np.exp(-np.maximum(z, 0.0) / scale) / 2)

    top = 1.0 if task.calibration == PAPER else float(plain(np.array(offset)))
    slack = 1e-9 * (smallest + scale)

    def below(s: Array) -> Array:
        share = plain(s - smallest + offset) / top
        return share if task.calibration == PAPER else np.where(s - smallest > slack, 1.0, np.minimum(share, 1.0))

    return below
