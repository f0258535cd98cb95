"""Noise in several rounds, each on rows whitened by what the rounds before it published.

The matrix is L M L' with M of additive noise and a public L, so a regression with it is one with M on the columns L'X and the label L'y.
There b = 0 is the regression that L L' itself gives: what the rounds before the last knew. Rows that were shrunk make M fall short of I by
less than it should; ``linalg.rounds.unshrunk`` makes up for it. Intervals read the last round alone, whose noise is exactly Gaussian.
Estimates read all rounds that tell of the same rows, pooled."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from dpgram.evidence.additive import Additive
from dpgram.evidence.evidence import Evidence, View
from dpgram.evidence.law import Law
from dpgram.evidence.tails import Tails
from dpgram.linalg.clipped import rows_before_clipping
from dpgram.linalg.rounds import WIDEST, in_own_columns, look, looks, pooled_there
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import Round, SymmetricGaussian, WhitenedGaussian
from dpgram.terms.words import about

Array = np.ndarray

STRENGTH_ALONE, STRENGTH = 0.25, 0.1  # of the prior towards large determinants: after one round, after several


class RoundsEvidence(Evidence, reads=WhitenedGaussian):
    """The last round, or all that count, in whitened coordinates: the released matrix has lost digits if the map is badly conditioned."""

    below_the_edge = (
        "These are eigenvalues in whitened coordinates. There the noise is the same in every direction, and rows vary about equally. "
        "Directions below the edge may contain only noise."
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
    def _turn(self) -> Array:
        """Of the last round."""
        return turn_of(self.last.through)

    @cached_property
    def alone(self) -> View:
        _, matrix, sd = look(self.last, self.rows_summed, white=self.noise.several)
        return _view(matrix, sd, self._turn)

    @cached_property
    def together(self) -> View:
        half, matrix, sd = self._pooled
        return _view(matrix, sd, self._turn if half is None else np.linalg.solve(half.T, self._turn))

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
    def _pooled(self) -> tuple[Array | None, Array, float]:
        """H, a noisy H T G T' H' and the sd of its noise, T the last round's map, by all rounds that count; H is None for the identity."""
        if (kept := self.noise.pooled) is not None:
            return kept.half, kept.gram, kept.sd_off_diagonal
        counted = looks(self.noise.rounds, self.rows_summed, widest=WIDEST)
        _, matrix, sd = counted[-1]
        return (None, matrix, sd) if len(counted) == 1 else (*pooled_there(counted), sd)

    @property
    def clear(self) -> Array:
        return np.stack([self._clear_at(k) for k in range(len(self.last.outer))]) if self.tails is not None else super().clear

    def _clear_at(self, place: int) -> Array:
        """What one of the outer matrices shows beyond doubt; of many columns that takes its time, so each is made when it is asked for."""
        if place not in self._clear:
            assert self.tails is not None
            half, shape = self._pooled[0], self.alone.matrix / self.tails.size
            shown = self.tails.clear(place, shape)
            self._clear[place] = shown if half is None or not shown.any() else half @ shown @ half.T
        return self._clear[place]

    @cached_property
    def _clear(self) -> dict[int, Array]:
        return {}

    def together_with(self, counted: Array | None = None) -> View:
        outer = range(0 if self.tails is None else len(self.last.outer))
        clear = [each for k in outer if (counted is None or counted[k]) and (each := self._clear_at(k)).any()]
        if not clear:
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
        half = self._pooled[0]
        return in_own_columns(there, self.last.through if half is None else half @ self.last.through, rows=known)

    @property
    def never_shrunk(self) -> bool:
        """Rows that were shrunk in whitened coordinates are as many as were drawn; ``weighed_rows`` says what they weigh."""
        return not self.schema.counts_partly

    @property
    def fewest_rows(self) -> float | Array:
        """A mapped row has norm one at most."""
        return np.linalg.trace(self.last.gram)

    def count_sd(self, count: float) -> float:
        """Of the noise, and of how much the clipping took of the count; that may be as much again where no outer matrix shows it."""
        if not self.last.outer:
            return math.hypot(self._weighed_sd, (1 - self.last.kept) * count)
        return rows_before_clipping(self.last, white=self.noise.several)[1]

    @property
    def weighed_rows(self) -> tuple[float, float]:
        if not self.intercept or (self.public_rows is not None and self.last.kept >= 1.0):
            return self.counted
        return max(float(self.gram[0, 0]), 1.0), self._weighed_sd

    @property
    def _weighed_sd(self) -> float:
        """Standard deviation of the noise in the intercept's own entry."""
        return float(math.sqrt(2) * self.last.sd_off_diagonal / self.last.kept * np.sum(self._turn[:, 0] ** 2))

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

    def among(self, places: list[int]) -> Evidence | None:
        last = self.last
        _, mean, sd = look(replace(last, gram=last.kept * self._fitted), self.rows_summed, white=self.noise.several)
        level = self.law.sd_off_diagonal
        return SomeColumns(self, places, level / sd * mean, level / last.sd_off_diagonal * last.kept)

    @property
    def _fitted(self) -> Array:
        """``repaired_there``, in the coordinates of the last round."""
        fitted, turn = self.repaired_there
        there = self.last.through @ turn.T  # type: ignore[union-attr]
        return there @ fitted @ there.T

    def with_published(self, matrices: Array) -> Self:
        """The evidence, had the last round published these. Each is multiplied by what makes their noise equal, which changes no
        regression."""
        drawn_again, before = super().with_published(self.gram), self.noise.rounds[:-1]
        drawn_again.noise = replace(self.noise, rounds=(*before, replace(self.last, gram=matrices, outer=())))
        drawn = [look(replace(self.last, gram=matrix), self.rows_summed, white=self.noise.several) for matrix in matrices]
        level = np.stack([self.law.sd_off_diagonal / sd * matrix for _, matrix, sd in drawn])
        drawn_again.alone = View(level, self.law, self.alone.turn)
        drawn_again.counted = self.counted
        return drawn_again


class SomeColumns(Evidence, reads=None):
    """The last round, as regressions on some columns see it: an orthonormal basis Q of what these columns are in its coordinates.

    Noise is even there, so that Q'M Q has the same. What would be published again is near the mean of Q'M Q. How shrinking is undone
    depends on all columns and hardly on the draw, so that it is taken to be that of the mean."""

    def __init__(self, whole: RoundsEvidence, places: list[int], mean: Array, size: float):
        """``mean`` is what the last round would show of the fitted rows, in its coordinates, were there no noise; ``size`` is by what it
        multiplies sums over rows."""
        super().__init__(whole.schema, whole.gram, whole.noise, None, whole.row_bound)
        turn, (fitted, there) = whole.alone.turn, whole.repaired_there
        assert turn is not None
        assert there is not None
        q, self._triangle = np.linalg.qr(turn[:, places])
        onto = there @ (whole.last.through.T @ q)
        self.law, self.counted, self.design_effect = whole.law, whole.counted, whole.design_effect
        self.alone = View(q.T @ whole.alone.matrix @ q, whole.law, self._triangle)
        self.repaired_there = onto.T @ fitted @ onto, self._triangle
        self._mean, self._size = q.T @ mean @ q, size

    def published_again(self, gram: Array, rng: RandomSource) -> Array:
        return self.law.again(self._mean + self._size * (gram - self.repaired_there[0]), rng)

    def with_published(self, matrices: Array) -> Self:
        drawn = copy.copy(self)
        drawn.alone = View(matrices, self.law, self._triangle)
        return drawn


def turn_of(through: Array) -> Array:
    """T^-T of a map T: combinations of columns, in the coordinates of mapped rows."""
    return np.linalg.solve(through.T, np.eye(len(through)))


def _view(matrix: Array, sd: float, turn: Array) -> View:
    return View(matrix, Additive(SymmetricGaussian.orthogonal(sd)), turn)
