"""Noise in several rounds, each on rows whitened by what the rounds before it published.

The matrix is L M L' with M of additive noise and a public L, so a regression with it is one with M on the columns L'X and the label L'y.
There b = 0 is the regression that L L' itself gives: what the rounds before the last knew. Rows that were shrunk make M fall short of I by
less than it should; ``linalg.rounds.unshrunk`` makes up for it. Intervals read the last round alone, whose noise is exactly Gaussian.
Estimates read all rounds that tell of the same rows, pooled."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from dpgram.evidence.additive import Additive
from dpgram.evidence.evidence import Evidence, View
from dpgram.evidence.law import Law
from dpgram.evidence.tails import Tails
from dpgram.linalg.rounds import WIDEST, Look, in_own_columns, look, looks, pooled
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import Round, SymmetricGaussian, WhitenedGaussian
from dpgram.terms.words import about

Array = np.ndarray

STRENGTH_ALONE, STRENGTH = 0.25, 0.1  # of the prior towards large determinants: after one round, after several


class RoundsEvidence(Evidence, reads=WhitenedGaussian):
    """The last round, or all that count, in whitened coordinates: the released matrix has lost digits if the map is badly conditioned."""

    below_the_edge = (
        "These are eigenvalues in whitened coordinates, where noise is even and rows vary about as much in every direction: "
        "what lies below the edge may hold nothing but noise."
    )

    noise: WhitenedGaussian

    @property
    def last(self) -> Round:
        return self.noise.last

    @property
    def kept(self) -> float:  # type: ignore[override]
        return self.last.kept

    @cached_property
    def law(self) -> Law:
        return self.alone.law

    @cached_property
    def alone(self) -> View:
        return _view(look(self.last, self.rows_summed, white=self.noise.several))

    @cached_property
    def together(self) -> View:
        return _view(self._pooled)

    @cached_property
    def tails(self) -> Tails | None:
        return Tails.of(self.last, self.alone.matrix, self.law.sd_off_diagonal)

    @property
    def shrinking(self) -> str:
        if self.tails is None:
            return (
                f"Rows far from the others were clipped, and count for less. On average, {self.kept:.0%} of a row's squared length is "
                f"left. If the data have long tails, variances and R-squared are too small. If the relation is not linear, coefficients "
                f"are biased too. The intervals do not include this bias."
            )
        return (
            f"According to the noisy release, {about(min(self.tails.rows / self.rows, 1.0))} of the rows were clipped, which removed "
            f"{about(self.tails.share)} of the sum of squares. The part 'clipping' of a standard error says how far this could have moved "
            f"the coefficient, and the interval includes it. R-squared and the residual sd are those of the clipped rows."
        )

    @property
    def lifted(self) -> View:
        return self.together

    @cached_property
    def weighed(self) -> View:
        return View(self.last.gram / self.last.kept, self.law, self.alone.turn)

    @cached_property
    def _pooled(self) -> Look:
        if (kept := self.noise.pooled) is not None:
            return kept.half @ self.last.through, kept.gram, kept.sd_off_diagonal
        return pooled(looks(self.noise.rounds, self.rows_summed, widest=WIDEST))

    @cached_property
    def clear(self) -> Array:
        if self.tails is None:
            return super().clear
        there = np.linalg.solve(self.last.through.T, self._pooled[0].T).T
        return there @ self.tails.clear(self.alone.matrix / self.tails.size) @ there.T

    def together_with(self, counted: Array | None = None) -> View:
        clear = self.clear if counted is None else self.clear[counted]
        if not clear.any():
            return self.together
        return View(self.together.matrix + np.sum(clear, axis=0), self.together.law, self.together.turn)

    @cached_property
    def repaired_there(self) -> tuple[Array, Array | None]:
        return self._repaired_there(self.together), self.together.turn

    def _repaired_there(self, view: View) -> Array:
        return view.law.repaired(view.matrix, strength=STRENGTH if self.noise.several else STRENGTH_ALONE)

    @cached_property
    def repaired(self) -> Array:
        """A positive definite estimate of the true Gram. Where rows were shrunk, their public number fixes the scale."""
        return self._own(self.repaired_there[0])

    @property
    def whole(self) -> Array:
        view = self.together_with()
        return self.repaired if view is self.together else self._own(self._repaired_there(view))

    def _own(self, there: Array) -> Array:
        known = self.public_rows if self.public_rows and self.last.kept < 1.0 and self.intercept else None
        return in_own_columns(there, self._pooled[0], rows=known)

    @property
    def never_shrunk(self) -> bool:
        """Rows that were shrunk in whitened coordinates are as many as were drawn; ``weighed_rows`` says what they weigh."""
        return True

    @property
    def fewest_rows(self) -> float | Array:
        """A mapped row has norm one at most."""
        return np.linalg.trace(self.last.gram)

    def count_sd(self, count: float) -> float:
        turn = turn_of(self.last.through)
        return float(math.sqrt(2) * self.last.sd_off_diagonal / self.last.kept * np.sum(turn[:, 0] ** 2))

    @property
    def weighed_rows(self) -> tuple[float, float]:
        if not self.intercept or self.last.kept >= 1.0:
            return self.counted
        count = max(float(self.gram[0, 0]), 1.0)
        return count, self.count_sd(count)

    def seen_by_noise(self, forms: Array) -> Array:
        """By the last round alone: what earlier rounds add to sums of products makes them better than this says."""
        return forms @ self.alone.turn.T  # type: ignore[union-attr]

    def weighing(self, u: Array) -> float:
        there = self.alone.turned(u)
        return float(there @ (self.weighed.matrix - self.alone.matrix) @ there)

    def published_again(self, gram: Array, rng: RandomSource) -> Array:
        """The last round: intervals do not look at the others."""
        last, (_, turn) = self.last, self.repaired_there
        there = last.through @ turn.T  # type: ignore[union-attr]
        sd = last.sd_off_diagonal
        return Additive(SymmetricGaussian.orthogonal(sd)).again(last.kept * (there @ gram @ there.T), rng)

    def with_published(self, matrices: Array) -> Self:
        """The evidence, had the last round published these. Each is multiplied by what makes their noise equal, which changes no
        regression."""
        drawn_again, before = super().with_published(self.gram), self.noise.rounds[:-1]
        drawn_again.noise = replace(self.noise, rounds=(*before, replace(self.last, gram=matrices, outer=())))
        drawn = [look(replace(self.last, gram=matrix), self.rows_summed, white=self.noise.several) for matrix in matrices]
        level = np.stack([self.law.sd_off_diagonal / sd * matrix for _, matrix, sd in drawn])
        drawn_again.alone = View(level, self.law, self.alone.turn)
        return drawn_again


def turn_of(through: Array) -> Array:
    """T^-T of a map T: combinations of columns, in the coordinates of mapped rows."""
    return np.linalg.solve(through.T, np.eye(len(through)))


def _view(of: Look) -> View:
    through, matrix, sd = of
    return View(matrix, Additive(SymmetricGaussian.orthogonal(sd)), turn_of(through))
