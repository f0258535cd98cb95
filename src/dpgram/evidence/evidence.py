"""Evidence: what a release says of its table, computed once for each release and kept."""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.design_effect import check_design_effect, worst_design_effect
from dpgram.evidence.law import Law, bilinear_covariance
from dpgram.sampling.base import RandomSource
from dpgram.terms.noise import NoiseModel
from dpgram.terms.schema import Schema

if TYPE_CHECKING:
    from dpgram.evidence.tails import Tails

Array = np.ndarray

LEAST_SHARE = 0.05  # of the public number of rows, that a noisy count is taken to be at least


@dataclass(frozen=True, eq=False)
class View:
    """A matrix, the law of its noise, and T: the regression of T y on T X with this matrix is that of y on X with the Gram.

    T is None where it is the identity. ``matrix`` and T may be stacks, one of many releases along the first axis."""

    matrix: Array  # (..., d, d)
    law: Law
    turn: Array | None = None

    def turned(self, columns: Array) -> Array:
        """Combinations of columns (..., d, any number) in the coordinates of the matrix."""
        return columns if self.turn is None else self.turn @ columns


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the released matrix from the largest down, less the public shift, and the edge up to which noise alone reaches.

    Edges are those of large random matrices: a few per cent of play at a dozen columns."""

    values: tuple[float, ...]
    edge: float
    hidden: tuple[bool, ...]  # where noise alone could have made it
    words: str


class Evidence:
    """What was published of a table, in the coordinates where its noise is simplest, and what follows from it for every estimate.

    Made by ``Evidence.of(release)``, or ``Evidence.made`` of a matrix that no table made. A kind of noise is a subclass that names the
    noise it reads and its law, ``class Mine(Evidence, reads=MyNoise, by=Additive)``, and says what else is its own."""

    readers: ClassVar[dict[type[NoiseModel], type[Evidence]]] = {}
    law_kind: ClassVar[type[Law]]

    hides_squares: ClassVar[bool] = False  # whether noise may hide the label's own sum of squares too
    below_the_edge: ClassVar[str] = (
        "Directions below the edge may contain only noise. A regression that needs one of them is not identified."
    )
    kept: float | None = None  # the share of a row's squares that counts, where rows were shrunk in whitened coordinates

    def __init_subclass__(cls, *, reads: type[NoiseModel] | None, by: type[Law] | None = None, **rest: object) -> None:
        super().__init_subclass__(**rest)
        if reads is not None:
            Evidence.readers[reads] = cls
        if by is not None:
            cls.law_kind = by

    def __init__(self, schema: Schema, gram: Array, noise: NoiseModel, rows: int | None, row_bound: float):
        self.schema, self.gram, self.noise, self.row_bound = schema, gram, noise, row_bound
        self.most_rows = None if rows is None else float(rows)
        self.public_rows = None if schema.counts_partly else self.most_rows  # where it is public and every row counts

    @staticmethod
    def of(release: GramRelease) -> Evidence:
        """The evidence of a release; the same object as long as the release lives."""
        if not isinstance(release, GramRelease):
            raise ModelError(
                f"release is a {type(release).__name__} and must be a GramRelease. Use dpgram.load(path) to read one."
            )
        kept = _KEPT.get(id(release))
        if kept is None:
            rows = release.rows if release.units is None else release.units * release.schema.most_rows
            kept = _KEPT[id(release)] = Evidence.made(release.schema, release.gram, release.noise, rows, release.row_bound)
            weakref.finalize(release, _KEPT.pop, id(release), None).atexit = False
        return kept

    @staticmethod
    def made(schema: Schema, gram: Array, noise: NoiseModel, rows: int | None, row_bound: float | None = None) -> Evidence:
        """The evidence of a published matrix with its noise; ``rows`` where it is public how many rows can have counted at most."""
        bound = schema.effective_row_bound if row_bound is None else row_bound
        return Evidence.readers[type(noise)](schema, gram, noise, rows, bound)

    # What the kinds of noise say, each in its way.

    @cached_property
    def law(self) -> Law:
        """The law of the noise, in the coordinates where it is simplest."""
        return self.law_kind(self.noise)

    @cached_property
    def alone(self) -> View:
        """What intervals start from: of several rounds, the last, whose law is known exactly."""
        return View(self.gram, self.law)

    @property
    def together(self) -> View:
        """What estimates start from: of several rounds, all that count. Less noise, whose law is known less well."""
        return self.alone

    def together_with(self, counted: Array | None = None) -> View:
        """``together``, with what rows beyond the clip show beyond doubt at the scales that are ``counted``; at all if that is left out."""
        return self.together

    @property
    def tails(self) -> Tails | None:
        """What rows beyond the clip hold, where the release tells; see ``evidence.tails``."""
        return None

    @property
    def clear(self) -> Array:
        """(K, d, d) what each of the last round's outer matrices shows beyond doubt, in the coordinates of ``together``."""
        return np.empty((0, *self.gram.shape))

    @property
    def shrinking(self) -> str:
        """What became of rows that are long in whitened coordinates, and what that means for a regression, in words."""
        return ""

    @property
    def plain(self) -> View:
        """The matrix as it was released, where it can be solved with."""
        return self.alone

    @property
    def lifted(self) -> View:
        """What a ridge is added to."""
        return self.plain

    @cached_property
    def weighed(self) -> View:
        """Sums of products of rows as they count in the release, without the shift: what means of squares are made of."""
        return View(self.gram - self.noise.shift * np.eye(len(self.gram)), self.law)

    @cached_property
    def repaired_there(self) -> tuple[Array, Array | None]:
        """A positive definite matrix S and T: the regression of T y on T X with S is that of y on X with ``repaired``.

        T is None, for the identity, but where the release came about in rounds: in whitened coordinates no digits are lost."""
        return self.law.repaired(self.gram), None

    @property
    def repaired(self) -> Array:
        """A positive definite estimate of the true Gram: the public shift taken off, small eigenvalues lifted by what the noise allows."""
        return self.repaired_there[0]

    @property
    def whole(self) -> Array:
        """``repaired``, with what rows beyond the clip show beyond doubt: for variances and covariances."""
        return self.repaired

    @property
    def hidden(self) -> bool | Array:
        """Whether the law is not known well enough to say that any gain is not zero."""
        return False

    @property
    def never_shrunk(self) -> bool:
        """Whether every row counts as one."""
        return self.row_bound >= self.schema.largest_norm and not self.schema.counts_partly

    @property
    def fewest_rows(self) -> float | Array:
        """The fewest rows that such a matrix can come from."""
        return (np.linalg.trace(self.gram) - self.gram.shape[-1] * self.noise.shift) / self.row_bound**2

    def count_sd(self, count: float) -> float:
        """Standard deviation of the intercept's own entry, were the effective number of rows ``count``."""
        return self.noise.sd_diagonal

    def seen_by_noise(self, forms: Array) -> Array:
        """Combinations of columns (any number, d) as they meet the noise."""
        return forms

    def weighing(self, u: Array) -> float:
        """What the sum of squares of ``u`` is less, or more, where rows count with the weights that shrinking in whitened coordinates left.

        Coefficients are those of all rows alike, as far as that can be undone; a mean of squares is one of rows as they were weighed."""
        return 0.0

    @property
    def spectrum(self) -> Spectrum:
        """Which directions stand out from the noise."""
        law, matrix = self.alone.law, self.alone.matrix
        values, edge = np.linalg.eigvalsh(matrix)[::-1] - law.shift, law.edge(len(matrix))
        return Spectrum(tuple(values.tolist()), edge, tuple((values <= edge).tolist()), self.below_the_edge)

    def published_again(self, gram: Array, rng: RandomSource) -> Array:
        """What would be published of a table whose Gram is ``gram``, in the coordinates of ``repaired_there``."""
        return self.law.again(gram, rng)

    def with_published(self, matrices: Array) -> Self:
        """The evidence, had these matrices (k, d, d) been published, each by itself."""
        rows = None if self.most_rows is None else int(self.most_rows)
        drawn = type(self)(self.schema, matrices, self.noise, rows, self.row_bound)
        drawn.design_effect = self.design_effect
        return drawn

    def among(self, places: list[int]) -> Evidence | None:
        """What was published of these columns alone, the intercept first where there is one, as evidence of as many columns.

        It is what regressions that use no others see of this evidence, made positive definite as the whole is. None where the noise of some
        columns depends on the others."""
        return None

    # What follows, whatever the noise.

    @property
    def intercept(self) -> bool:
        return self.schema.intercept

    @property
    def rows(self) -> float:
        """How many rows that count in full have the same sum."""
        return self.counted[0]

    @cached_property
    def design_effect(self) -> float:
        """By what the sampling variance of independent rows is multiplied: the worst case, unless an analyst says otherwise."""
        return worst_design_effect(self)

    def assuming(self, design_effect: float | None) -> Self:
        """This evidence with the design effect that an analyst knows; itself where that is None."""
        if design_effect is None:
            return self
        assumed = copy.copy(self)
        assumed.design_effect = check_design_effect(design_effect, self.most_rows)
        return assumed

    @property
    def effective_rows(self) -> float:
        """The number of independent rows, each counted in full, that say as much."""
        return self.rows / self.design_effect

    @cached_property
    def counted(self) -> tuple[float, float]:
        """The number of rows that counted, and the standard deviation of the noise in it.

        The public number where every row counted as one. Else the intercept's own entry, where there is one: rows of a smaller share,
        and those that were shrunk, count for less. It is no more than a public number of rows, or of rows that units can have. Without
        an intercept, the public number; where it is protected, or rows can count for less, the fewest that such a matrix can come from."""
        public = self.public_rows
        if public is not None and (self.never_shrunk or not self.intercept):
            return max(public, 1.0), 0.0
        if self.intercept:
            count = self.gram[..., 0, 0] - self.noise.shift
            least = 1.0 if public is None else LEAST_SHARE * public
            count = np.minimum(np.maximum(count, least), np.inf if self.most_rows is None else self.most_rows)
            return _number(np.maximum(count, 1.0)), _number(self.count_sd(_number(count)))
        return _number(np.maximum(self.fewest_rows, 1.0)), 0.0

    @property
    def counts_at_least(self) -> bool:
        """Whether the number of rows that counted is only known to be at least so large, as far as noise lets one tell."""
        return self.public_rows is None and not self.intercept

    @property
    def weighed_rows(self) -> tuple[float, float]:
        """By what to divide sums of squares to get means, and the standard deviation of the noise in it: the number of rows that counted,
        but where rows were shrunk in whitened coordinates the sum of the weights that this left them."""
        return self.counted

    @property
    def rows_summed(self) -> float | None:
        """The number of rows that a matrix is the sum over, by what is known of it; None where nothing is."""
        return self.rows if self.public_rows is not None or self.intercept else None

    def product(self, a: Array, b: Array) -> float:
        """The sum of products of two combinations of columns, by the matrix as released, less its shift."""
        return float(self.weighed.turned(a) @ self.weighed.matrix @ self.weighed.turned(b))

    def noise_law(self, forms: Array) -> tuple[Array, float, Array]:
        """K, e and ``forms`` as the noise sees them: for combinations of columns a, b, ... and the noise E of their sums of products,

        Cov(a'Eb, c'Ed) = K_ac K_bd + K_ad K_bc + e sum_i a_i b_i c_i d_i."""
        seen = self.seen_by_noise(forms)
        products, excess = self.law.products(seen, self.gram)
        return products, excess, seen

    def quadratic_covariance(self, a: Array, b: Array) -> float:
        """Covariance of a'Ea and b'Eb, E the privacy noise on the sums of products; to first order where it multiplies."""
        return float(self.bilinear_covariance(np.stack([a, b]), np.stack([a, b]))[0, 1])

    def bilinear_covariance(self, left: Array, right: Array) -> Array:
        """(m, m) covariance of l'E r over pairs of rows of ``left`` and ``right`` (m, d); to first order where noise multiplies."""
        return bilinear_covariance(*self.noise_law(np.vstack([left, right])))


def _number(value: float | Array) -> float:
    return value if np.ndim(value) else float(value)  # type: ignore[return-value]


_KEPT: dict[int, Evidence] = {}  # by the release's id, as long as the release lives
