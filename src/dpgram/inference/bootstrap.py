"""Parametric bootstrap through the mechanism: fitted rows, the same noise again, the same estimate again.

How far a refitted estimate lies from the model it was drawn from, in its own standard errors, has a law that is simulated; its
quantile replaces the normal or Student's one where it is larger. Draws come from a seeded generator: nothing here needs protection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.inference.intervals import Intervals, check_confidence, quantile, uncertainty
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.mechanisms.gaussian_sketch import draw_sketch
from dpgram.mechanisms.inverse_wishart import draw_posterior
from dpgram.mechanisms.noisy_inverse import bounded_inverse
from dpgram.regression.channel import channel, effective_rows
from dpgram.regression.design import Design
from dpgram.regression.fit import solve_there
from dpgram.regression.repair import repaired_there
from dpgram.sampling.base import RandomSource
from dpgram.sampling.seeded import SeededSource
from dpgram.sampling.variates import bartlett_factor
from dpgram.terms.noise import (
    InverseWishartSample,
    NoiseModel,
    NoisyInverse,
    SymmetricGaussian,
    WhitenedGaussian,
    WishartSample,
)

Array = np.ndarray

DRAWS = 500


def bootstrap(release: GramRelease, plan: Design, confidence: float, *, draws: int = DRAWS, seed: int = 0) -> Intervals:
    """Intervals around the debiased estimate, as many standard errors wide as refits of simulated releases need."""
    check_confidence(confidence)
    rng = SeededSource(seed)
    fitted, turn = repaired_there(release)
    rows = max(effective_rows(release), len(fitted) + 1.0)
    root, truth = np.linalg.cholesky(fitted / rows), solve_there(fitted, turn, plan)
    far = np.empty((draws, len(truth)))
    for k in range(draws):
        half = root @ bartlett_factor(len(fitted), rows, rng)
        seen = channel(released_again(release, half @ half.T, turn, rng), plan)
        far[k] = np.abs(seen.to_own @ seen.estimate + seen.base - truth) / uncertainty(seen).se
    seen = channel(release, plan)
    estimate = seen.to_own @ seen.estimate + seen.base
    # The fitted matrix was made positive definite, so simulated regressions are better conditioned than the one at hand may be: their
    # quantile alone is too small where noise has few degrees of freedom.
    reach = np.maximum(np.quantile(far, confidence, axis=0), quantile(confidence, seen.degrees)) * uncertainty(seen).se
    return Intervals(estimate - reach, estimate + reach, ("bootstrap",) * len(truth), confidence)


def released_again(release: GramRelease, gram: Array, turn: Array, rng: RandomSource) -> GramRelease:
    """A release with noise of the same kind and size of the table whose Gram is ``gram`` for columns that ``turn`` makes of its own.

    Only the last round is drawn again where there are several: intervals do not look at the others."""
    noise = release.noise
    if not isinstance(noise, WhitenedGaussian):
        return replace(release, gram=pass_through(noise, gram, rng))
    last, sd = noise.last, noise.last.sd_off_diagonal
    there = last.through @ turn.T
    drawn = replace(last, gram=add_symmetric_noise(last.kept * (there @ gram @ there.T), sd, np.sqrt(2) * sd, rng))
    return replace(release, noise=WhitenedGaussian((*noise.rounds[:-1], drawn)))


def pass_through(noise: NoiseModel, gram: Array, rng: RandomSource) -> Array:
    """A release of ``gram`` with noise of the same kind and size."""
    match noise:
        case SymmetricGaussian():
            lifted = gram + noise.shift * np.eye(len(gram))
            return add_symmetric_noise(lifted, noise.sd_off_diagonal, noise.sd_diagonal, rng)
        case WishartSample():
            return draw_sketch(gram, noise.shift, noise.degrees_of_freedom, rng)
        case InverseWishartSample():
            return noise.multiple * draw_posterior(gram, noise.shift, noise.degrees_of_freedom, rng)
        case NoisyInverse():
            off, on = noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse
            return np.linalg.inv(add_symmetric_noise(bounded_inverse(gram, noise.floor), off, on, rng))
        case WhitenedGaussian():
            last, sd = noise.last, noise.last.sd_off_diagonal
            there = add_symmetric_noise(last.kept * (last.through @ gram @ last.through.T), sd, np.sqrt(2) * sd, rng)
            return np.linalg.solve(last.through, np.linalg.solve(last.through, there / last.kept).T)
