"""Several releases together: the sum of what each of them says, in coordinates where the noise of the sum is at most even.

Every part says L M L' of its rows, with even noise in M and a public L, as evidence of its own. The sum of them has noise of several
shapes; ``linalg.spreads`` finds the coordinates in which one even noise is enough for all directions, and exactly right where the shapes
are multiples of each other. So intervals hold, and are too wide only where parts have noise of very different shapes.

Clipping is undone for each part by itself. What long rows hold beyond the clip is summed scale by scale: the sum of all matrices of a last
round, each times its scale, is linear in the rows. Of the same rows every matrix has the weight of its part."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np

from dpgram.artifact.combined import CombinedNoise
from dpgram.evidence.additive import Additive
from dpgram.evidence.evidence import Evidence, View
from dpgram.evidence.rounds import RoundsEvidence, SomeColumns
from dpgram.linalg.rounds import pooled
from dpgram.linalg.spreads import OneShape, one_shape
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import Round, SymmetricGaussian
from dpgram.terms.scales import first_scales

Array = np.ndarray


class CombinedEvidence(RoundsEvidence, reads=CombinedNoise):
    """The sum of several releases, read as one round whose map makes its noise even."""

    below_the_edge = (
        "These are eigenvalues in coordinates where the noise of all parts together is the same in every direction. Directions below the "
        "edge may contain only noise."
    )

    noise: CombinedNoise  # type: ignore[assignment]

    @cached_property
    def parts(self) -> tuple[Evidence, ...]:
        return tuple(Evidence.of(part) for part in self.noise.parts)

    def _maps(self, views: Sequence[View]) -> list[Array]:
        """L of each view, in common units."""
        return [
            into if view.turn is None else into @ view.turn.T for into, view in zip(self.noise.rescaled, views, strict=True)
        ]

    def _shape(self, views: Sequence[View]) -> OneShape:
        weighed = [w * _sd(view.law) for w, view in zip(self.noise.weights, views, strict=True)]
        return one_shape(self._maps(views), weighed)

    def _sum(self, shape: OneShape, matrices: Sequence[Array]) -> Array:
        return shape.sum([w * matrix for w, matrix in zip(self.noise.weights, matrices, strict=True)])

    @cached_property
    def _alone(self) -> OneShape:
        return self._shape([part.alone for part in self.parts])

    @cached_property
    def alone(self) -> View:
        matrix = self._sum(self._alone, [_unshifted(part.alone) for part in self.parts])
        size = self._clip
        law = Additive(SymmetricGaussian.orthogonal(1 / size))
        return View(matrix / size, law, np.sqrt(size) * self._alone.turn)

    @cached_property
    def _clip(self) -> float:
        """The square of a row that the parts clip to length one, in coordinates where noise is one: about, where they differ.

        Lengths are told by it, so that a trace counts rows as it does in a last round."""
        rounds = [part for part in self.parts if isinstance(part, RoundsEvidence)]
        own = sum(float(np.trace(part.last.gram)) for part in rounds)
        if not own > 0:
            return 1.0
        whole = sum(
            float(np.vdot(way @ part.last.gram, way))
            for way, part in zip(self._alone.ways, self.parts, strict=True)
            if isinstance(part, RoundsEvidence)
        )
        return whole / own if whole > 0 else 1.0

    @property
    def _through(self) -> Array:
        return self._alone.through / np.sqrt(self._clip)

    @cached_property
    def last(self) -> Round:
        """The last rounds of all parts as one: rows as they were clipped, and what long ones hold beyond that."""
        rounds, size = [_last(part) for part in self.parts], self._clip
        scales = first_scales(max(len(each.scales) for each in rounds))
        none = np.zeros_like(self.gram)
        outer = [
            self._sum(self._alone, [each.outer[k] if k < len(each.outer) else none for each in rounds]) / size
            for k in range(len(scales) - 1)
        ]
        first = self._sum(self._alone, [each.gram for each in rounds]) / size
        ratios = [each.sd_off_diagonal / _sd(part.alone.law) for each, part in zip(rounds, self.parts, strict=True)]
        rows = [max(part.rows, 1.0) for part in self.parts]
        kept = float(np.average([each.kept for each in rounds], weights=np.multiply(self.noise.weights, rows)))
        return Round(self._through, first, self._alone.largest(ratios) / size, kept, tuple(outer), scales)

    @cached_property
    def weighed(self) -> View:
        matrix = self._sum(self._alone, [part.weighed.matrix for part in self.parts])
        return View(matrix / self._clip, self.law, self.alone.turn)

    @cached_property
    def _pooled(self) -> tuple[Array | None, Array, float]:
        """Of the same rows, with weights by direction; of disjoint ones, the sum."""
        views = [part.together for part in self.parts]
        if self.noise.same_rows:
            maps = self._maps(views)
            through, matrix, sd = pooled(
                [(np.linalg.inv(each), _unshifted(view), _sd(view.law)) for each, view in zip(maps, views, strict=True)]
            )
        else:
            shape = self._shape(views)
            through, matrix, sd = shape.through, self._sum(shape, [_unshifted(view) for view in views]), 1.0
        return np.linalg.solve(self.last.through.T, through.T).T, matrix, sd

    @property
    def shrinking(self) -> str:
        return super().shrinking if any(part.shrinking for part in self.parts) else ""

    @property
    def never_shrunk(self) -> bool:
        return all(part.never_shrunk for part in self.parts)

    @cached_property
    def counted(self) -> tuple[float, float]:
        return self._added([part.counted for part in self.parts])

    @property
    def weighed_rows(self) -> tuple[float, float]:
        return self._added([part.weighed_rows for part in self.parts])

    def _added(self, counts: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Counts of rows of all parts together, and the standard deviation of their noise."""
        weights = np.array(self.noise.weights)
        numbers, sds = np.array(counts).T
        return float(weights @ numbers), float(np.linalg.norm(weights * sds))

    def published_again(self, gram: Array, rng: RandomSource) -> Array:
        there = self._through @ self.repaired_there[1].T  # type: ignore[union-attr]
        return self.law.again(there @ gram @ there.T, rng)

    def among(self, places: list[int]) -> Evidence | None:
        return SomeColumns(self, places, self._fitted, 1.0)

    def with_published(self, matrices: Array) -> Self:
        """The evidence, had these been what the parts say together, in the coordinates of ``alone``."""
        drawn = copy.copy(self)
        drawn.alone, drawn.tails = View(matrices, self.law, self.alone.turn), None
        return drawn


def _last(part: Evidence) -> Round:
    """The last round of a part, in the coordinates of ``alone``; where there were none, its matrix as one whose rows were not clipped."""
    if isinstance(part, RoundsEvidence):
        return part.last
    return Round(np.eye(len(part.gram)), part.weighed.matrix, _sd(part.law), kept=1.0)


def _unshifted(view: View) -> Array:
    return view.matrix - view.law.shift * np.eye(len(view.matrix)) if view.law.shift else view.matrix


def _sd(law: object) -> float:
    """The sd of even noise that is enough for a law's: off the diagonal, and sqrt(2) times that on it."""
    noise = law.noise  # type: ignore[attr-defined]
    return max(noise.sd_off_diagonal, noise.sd_diagonal / float(np.sqrt(2)))
