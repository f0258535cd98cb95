"""What a mechanism did to the true Gram matrix G. Mechanisms write it, files hold it, ``evidence`` reads it; nobody else asks which it is.

A new shape of noise is a frozen dataclass here or elsewhere that names its ``shape``, and a reader of it (``evidence.Evidence``). Its
fields are numbers, (d, d) arrays, or tuples of dataclasses of such: then release files can hold it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

Array = np.ndarray
Facts = tuple[tuple[str, str], ...]

SHAPES: dict[str, type[NoiseModel]] = {}
"""Every shape of noise by the name that it has in files."""


class NoiseModel:
    """What every shape of noise says of itself: its size along the weakest directions, the public multiple of the identity that is still
    in the matrix (``shift``), and words for a label."""

    shape: ClassVar[str]  # its name in files
    everywhere: ClassVar[bool] = False  # whether the noise has one size in all directions
    words: ClassVar[str]  # what was done, in a sentence or two

    sd_off_diagonal: float
    sd_diagonal: float
    shift: float
    degrees_of_freedom: float = math.inf  # where noise multiplies
    rounds: tuple[Round, ...] = ()  # where the matrix came about in several

    def __init_subclass__(cls, *, shape: str = "", **rest: object) -> None:
        super().__init_subclass__(**rest)
        if shape:
            cls.shape = shape
            SHAPES[shape] = cls

    @property
    def facts(self) -> Facts:
        """The kind of noise and its scale, as pairs of a name and a text."""
        raise NotImplementedError

    @property
    def _weakest(self) -> str:
        return f"{self.sd_off_diagonal:.6g} off the diagonal, {self.sd_diagonal:.6g} on it"


@dataclass(frozen=True)
class SymmetricGaussian(NoiseModel, shape="symmetric-gaussian"):
    """The release is G + shift I + N, with symmetric N independent of the data, Gaussian or close to it.

    Entries above the diagonal have sd ``sd_off_diagonal``, those on it ``sd_diagonal``; where that is sqrt(2) times the former,
    N is of the Gaussian orthogonal ensemble. Both are named, because a bare "sigma" once cost a peer its guarantee."""

    everywhere = True
    words = "Random numbers were added to every entry of the Gram matrix (sums of squares and products of columns)."

    sd_off_diagonal: float
    sd_diagonal: float
    shift: float = 0.0

    @classmethod
    def orthogonal(cls, sd_off_diagonal: float, *, shift: float = 0.0) -> SymmetricGaussian:
        return cls(sd_off_diagonal, math.sqrt(2) * sd_off_diagonal, shift)

    @property
    def facts(self) -> Facts:
        return (
            ("kind", "added, independent of the data"),
            ("sd off the diagonal", f"{self.sd_off_diagonal:.6g}"),
            ("sd on the diagonal", f"{self.sd_diagonal:.6g}"),
        )


@dataclass(frozen=True)
class _Draw(NoiseModel):
    """One random matrix around the scale matrix G + shift I, with noise that multiplies.

    ``floor`` is a public lower bound on the eigenvalues of the scale matrix; there the noise is smallest."""

    law: ClassVar[str]

    degrees_of_freedom: float = field()
    shift: float
    floor: float

    @property
    def sd_off_diagonal(self) -> float:  # type: ignore[override]
        return self.floor / math.sqrt(self.degrees_of_freedom)

    @property
    def sd_diagonal(self) -> float:  # type: ignore[override]
        return math.sqrt(2) * self.sd_off_diagonal

    @property
    def facts(self) -> Facts:
        return (
            ("kind", f"one draw of a {self.law} matrix: noise that multiplies"),
            ("degrees of freedom", f"{self.degrees_of_freedom:.6g}"),
            ("smallest eigenvalue", f"at least {self.floor:.6g} before the draw"),
            ("sd along the weakest directions", self._weakest),
        )


@dataclass(frozen=True)
class WishartSample(_Draw, shape="wishart-sample"):
    """The release is W / degrees_of_freedom with W Wishart of the scale matrix: unbiased for it, always definite."""

    law = "Wishart"
    words = "The matrix is that of random mixtures of the rows and of artificial ones: a sketch. Its noise is part of the draw."


@dataclass(frozen=True)
class InverseWishartSample(_Draw, shape="inverse-wishart-sample"):
    """The release is ``multiple`` times a draw of the inverse-Wishart law of the scale matrix: always definite.

    With multiple = degrees_of_freedom - d - 1 it is unbiased for the scale matrix."""

    law = "inverse-Wishart"
    words = "The matrix is one draw from a posterior distribution around the true one. Its noise is part of the draw."

    multiple: float


@dataclass(frozen=True)
class NoisyInverse(NoiseModel, shape="noisy-inverse"):
    """The release is the inverse of G^-1 + N, with symmetric Gaussian N of these scales; it may be indefinite.

    ``floor`` is the lower bound on the eigenvalues of G that the custodian claimed."""

    words = "Random numbers were added to the inverse of the Gram matrix, under a claim about its smallest eigenvalue."

    sd_off_diagonal_of_inverse: float
    sd_diagonal_of_inverse: float
    floor: float
    shift: float = 0.0

    @property
    def sd_off_diagonal(self) -> float:  # type: ignore[override]
        """To first order, along directions where G equals its floor."""
        return self.sd_off_diagonal_of_inverse * self.floor**2

    @property
    def sd_diagonal(self) -> float:  # type: ignore[override]
        return self.sd_diagonal_of_inverse * self.floor**2

    @property
    def facts(self) -> Facts:
        return (
            ("kind", "added to the inverse of the matrix"),
            ("sd off the diagonal of the inverse", f"{self.sd_off_diagonal_of_inverse:.6g}"),
            ("sd on its diagonal", f"{self.sd_diagonal_of_inverse:.6g}"),
            ("claimed smallest eigenvalue", f"{self.floor:.6g}"),
        )


@dataclass(frozen=True, eq=False)
class Round:
    """One noisy Gram of rows that were mapped to z = ``through`` a, shrunk to ||z|| <= 1: ``gram`` is the sum of z z' plus symmetric
    Gaussian noise of sd ``sd_off_diagonal`` off the diagonal and sqrt(2) times that on it."""

    through: Array  # (d, d), public: made of earlier rounds
    gram: Array  # (d, d)
    sd_off_diagonal: float
    kept: float  # the average share of a row's square that the shrinking left, as far as the release can tell; in (0, 1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Round):
            return NotImplemented
        same = np.array_equal(self.through, other.through) and np.array_equal(self.gram, other.gram)
        return same and (self.sd_off_diagonal, self.kept) == (other.sd_off_diagonal, other.kept)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class WhitenedGaussian(NoiseModel, shape="whitened-gaussian"):
    """The release came about in several rounds, each with rows whitened by what the rounds before it published.

    The matrix that is released is that of the last round, T^-1 M T^-T / kept with T = ``through`` and M = ``gram`` of that round; so its
    noise is Gaussian under a public congruence: T^-1 N T^-T / kept. Earlier rounds carry noise that is independent of it, and
    tell of the same rows, shrunk otherwise."""

    words = (
        "The rows were read several times. Each time they were first multiplied by a matrix made of earlier, published results, so "
        "that no direction drowns in noise, then shrunk to norm 1, and random numbers were added to every entry of their Gram "
        "matrix. The guarantee is that of all rounds together."
    )
    shift = 0.0

    rounds: tuple[Round, ...] = field()

    @property
    def last(self) -> Round:
        return self.rounds[-1]

    @property
    def sd_off_diagonal(self) -> float:  # type: ignore[override]
        """Along the weakest direction, where the map stretches most."""
        return float(self.last.sd_off_diagonal / np.linalg.norm(self.last.through, 2) ** 2 / self.last.kept)

    @property
    def sd_diagonal(self) -> float:  # type: ignore[override]
        return math.sqrt(2) * self.sd_off_diagonal

    @property
    def facts(self) -> Facts:
        sds = "; ".join(f"{r.sd_off_diagonal:.6g}" for r in self.rounds)
        return (
            ("kind", "added in several rounds, each to rows whitened by what the rounds before it published"),
            ("rounds", f"{len(self.rounds)}; all of them are in the file"),
            ("sd off the diagonal", f"{sds} (whitened rows of norm 1)"),
            ("sd on the diagonal", "sqrt(2) times that"),
            ("what a row's squares count for", f"about {self.last.kept:.1%} on average, in the last round"),
            ("sd along the weakest direction", self._weakest),
        )
