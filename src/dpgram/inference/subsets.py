"""What many submodels of one regression would do, computed side by side: the same numbers as ``channel`` and ``uncertainty``, in arrays.

An exhaustive search looks at tens of thousands of submodels. One by one each costs a millisecond of overhead; stacked, those of
one size are a few array operations. Only what the search needs is computed: nothing is taken back to own units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.inference.intervals import noise_variances
from dpgram.linalg.shrinkage import debiased_gain
from dpgram.regression.channel import TINY, additive_form, effective_rows, turned
from dpgram.regression.design import Design
from dpgram.terms.noise import InverseWishartSample, SymmetricGaussian, WishartSample

Array = np.ndarray

Noise = SymmetricGaussian | WishartSample | InverseWishartSample

CHUNK = 4096  # submodels at once: bounds the memory


@dataclass(frozen=True, eq=False)
class Risks:
    """For each submodel, in scaled units of the label."""

    error_squares: Array  # (k,) what is left over, unbiased
    variance: Array  # (k,) of the errors, floored at zero
    noise: Array  # (k,) what the privacy noise in the coefficients adds to the squared errors of prediction
    coefficients: int


@dataclass(frozen=True, eq=False)
class Stacked:
    """k channels of p coefficients each; the names are those of ``Channel``."""

    observed: Array  # (k, p), as all that is not said otherwise
    gain: Array
    weight: Array
    label: Array  # (k, 1)
    spread: float
    debiased: Array
    per_row: Array
    explains: Array
    unexplained: Array  # (k,)

    @property
    def estimate(self) -> Array:
        return self.observed / self.debiased

    def error_squares(self) -> Array:
        variance = self.label * self.weight / self.debiased**2
        return self.unexplained - np.sum(self.explains * (self.estimate**2 - variance), axis=-1)


def largest_size(release: GramRelease) -> int:
    """How many coefficients a submodel of this release may have at most."""
    noise = release.noise
    return int(noise.degrees_of_freedom) - 4 if isinstance(noise, WishartSample) else len(release.columns)


def risks(release: GramRelease, plan: Design, places: Array) -> Risks:
    """The risks of the submodels that keep the coefficients ``places`` (k, p) of ``plan``, no two alike in a row."""
    gram, noise, turn = additive_form(release)
    rows, there = effective_rows(release), turned(plan, turn)
    parts = [_risks(gram, noise, there, places[start : start + CHUNK], rows) for start in range(0, len(places), CHUNK)]
    left, variance, spent = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Risks(left, variance, spent, places.shape[1])


def _risks(gram: Array, noise: Noise, plan: Design, places: Array, rows: float) -> tuple[Array, Array, Array]:
    seen, unit = _stacked(gram, noise, plan, places)
    left = seen.error_squares()
    variance = np.maximum(left, 0.0) / max(rows - places.shape[1], 1.0)
    diagonal = noise_variances(seen)
    spent = np.sum((diagonal + seen.spread * (seen.weight * seen.estimate) ** 2) / seen.per_row, axis=-1)
    return unit * left, unit * variance, unit * spent


def _stacked(gram: Array, noise: Noise, plan: Design, places: Array) -> tuple[Stacked, Array]:
    """The channels, and the squared length of what is left of the label beside the regressors."""
    k, p = places.shape
    axes = np.linalg.qr(plan.regressors[:, places].transpose(1, 0, 2))[0] if p else np.empty((k, len(gram), 0))
    rest = plan.label - np.einsum("kdp,kp->kd", axes, np.einsum("kdp,d->kp", axes, plan.label))
    unit = np.sum(rest**2, axis=1)
    rest = rest / np.sqrt(unit)[:, None]
    values, turn = np.linalg.eigh(axes.transpose(0, 2, 1) @ gram @ axes) if p else (np.empty((k, 0)), np.empty((k, 0, 0)))
    cross = np.einsum("kpq,kp->kq", turn, np.einsum("kdp,kd->kp", axes, rest @ gram))
    square = np.sum((rest @ gram) * rest, axis=1)
    return _through(noise, values, cross, square, len(gram)), unit


def _through(noise: Noise, values: Array, cross: Array, square: Array, dim: int) -> Stacked:
    """What the noise model makes of eigenvalues and cross products: see ``regression.channel``."""
    p = values.shape[1]
    if isinstance(noise, SymmetricGaussian):
        gain, spread, weight = values - noise.shift, noise.sd_off_diagonal**2, np.ones_like(values)
        debiased = debiased_gain(gain, weight, spread)
        label = np.full((len(values), 1), spread)
        return Stacked(cross, gain, weight, label, spread, debiased, debiased, debiased, square - noise.shift)
    values = np.maximum(values, TINY)
    left = np.maximum(square - np.sum(cross**2 / values, axis=1), TINY)
    degrees = noise.degrees_of_freedom
    if isinstance(noise, WishartSample):
        weight = (degrees - p - 1) / (degrees * values)
        left = left * degrees / (degrees - p)
        conditional, label, spread = left, left / (degrees - p - 1), noise.shift**2 / (degrees - p - 3)
    else:
        degrees = degrees - dim + p
        weight = noise.multiple / (degrees * values)
        left = left / noise.multiple
        conditional, label, spread = left * max(degrees - 1, 1.0), left, noise.shift**2 / degrees
    gain = 1 - noise.shift * weight
    debiased = debiased_gain(gain, weight, spread)
    return Stacked(
        cross / values,
        gain,
        weight,
        label[:, None],
        spread,
        debiased,
        debiased * weight,
        debiased * noise.shift,
        conditional - noise.shift,
    )
