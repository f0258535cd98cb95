"""What a mechanism did to the true Gram matrix G. Mechanisms write it, files hold it, ``evidence`` reads it; nobody else asks which it is.

A new shape of noise is a frozen dataclass here or elsewhere that names its ``shape``, and a reader of it (``evidence.Evidence``). Its
fields are numbers, (d, d) arrays, dataclasses of such, or tuples of all these: then release files can hold it. For people it says what was
done to the matrix (``words``), and what its ``numbers`` are called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from dpgram.terms.scales import ONE_CLIP
from dpgram.terms.words import COMMON, SCALED, Words

Array = np.ndarray
Limits = Mapping[str, tuple[float, float]]

LATER = {"later": True}  # of a field that older files lack: they mean its default
MANY_COLUMNS = 64  # above, a release keeps of rounds what is read from them, and its file packs matrices
ANY_SIZE = 1e-70, 1e70  # of a number that describes noise: its fourth power is still a float
ADDED = {name: replace(COMMON[name], early=False) for name in ("sd_off_diagonal", "sd_diagonal")}
WEAKEST = {name: replace(words, unit=f"{words.unit}, in the weakest directions") for name, words in ADDED.items()}

SHAPES: dict[str, type[NoiseModel]] = {}
"""Every shape of noise by the name that it has in files."""


class NoiseModel:
    """What every shape of noise says of itself: its size along the weakest directions, the public multiple of the identity that is still
    in the matrix (``shift``), and words for a label."""

    shape: ClassVar[str]  # its name in files
    words: ClassVar[str] = "Random numbers were drawn, by the law of the mechanism."
    numbers: ClassVar[Mapping[str, Words]] = WEAKEST
    added_to: ClassVar[str] = ""  # "matrix" or its "inverse", where noise was added to one of them; else it multiplies
    even: ClassVar[bool] = False  # whether it is the same in all columns

    sd_off_diagonal: float
    sd_diagonal: float
    shift: float
    degrees_of_freedom: float = math.inf  # where noise multiplies
    rounds: tuple[Round, ...] = ()  # where the matrix came about in several
    pooled: Pooled | None = None  # what they say together, where only the last is kept

    @classmethod
    def limits(cls, dim: int) -> Limits:
        """The least and the most that a field can be, where that is not ``ANY_SIZE``: what is beyond was changed in its file."""
        return {}

    def spread(self, dim: int) -> tuple[Array, float]:
        """L and t, where noise was added to the matrix: it is at most L N L', N of sd t off the diagonal and sqrt(2) times that on it."""
        raise NotImplementedError

    @classmethod
    def sum_of(cls, noises: Sequence[Self], weights: Sequence[float]) -> Self:
        """The noise of a sum with these weights, where it was added to the same columns, or to the inverse."""
        raise NotImplementedError

    def __init_subclass__(cls, *, shape: str = "", **rest: object) -> None:
        super().__init_subclass__(**rest)
        if shape:
            cls.shape = shape
            SHAPES[shape] = cls


@dataclass(frozen=True)
class SymmetricGaussian(NoiseModel, shape="symmetric-gaussian"):
    """The release is G + shift I + N, with symmetric N independent of the data, Gaussian or close to it.

    Entries above the diagonal have sd ``sd_off_diagonal``, those on it ``sd_diagonal``; where that is sqrt(2) times the former,
    N is of the Gaussian orthogonal ensemble. Both are named, because a bare "sigma" once cost a peer its guarantee."""

    words = "Random numbers that do not depend on the data were added to every entry of the matrix."
    numbers = ADDED
    added_to = "matrix"
    even = True

    sd_off_diagonal: float
    sd_diagonal: float
    shift: float = 0.0

    @classmethod
    def orthogonal(cls, sd_off_diagonal: float, *, shift: float = 0.0) -> SymmetricGaussian:
        return cls(sd_off_diagonal, math.sqrt(2) * sd_off_diagonal, shift)

    def spread(self, dim: int) -> tuple[Array, float]:
        return np.eye(dim), max(self.sd_off_diagonal, self.sd_diagonal / math.sqrt(2))

    @classmethod
    def sum_of(cls, noises: Sequence[SymmetricGaussian], weights: Sequence[float]) -> SymmetricGaussian:
        """Without shifts, which are public and can be taken off before."""
        return cls(_sd_of_sum(noises, weights, "sd_off_diagonal"), _sd_of_sum(noises, weights, "sd_diagonal"))


def _sd_of_sum(noises: Sequence[NoiseModel], weights: Sequence[float], name: str) -> float:
    """The standard deviation ``name`` of a sum of independent noise."""
    return math.hypot(*(weight * getattr(noise, name) for noise, weight in zip(noises, weights, strict=True)))


@dataclass(frozen=True)
class _Draw(NoiseModel):
    """One random matrix around the scale matrix G + shift I, with noise that multiplies.

    ``floor`` is a public lower bound on the eigenvalues of the scale matrix; there the noise is smallest."""

    numbers: ClassVar[Mapping[str, Words]] = {
        "degrees_of_freedom": Words("degrees of freedom of the draw"),
        "floor": Words("lower bound on eigenvalues before the draw", SCALED),
        **WEAKEST,
    }

    degrees_of_freedom: float = field()  # one for each of many draws, where they are made at once
    shift: float
    floor: float

    @classmethod
    def limits(cls, dim: int) -> Limits:
        return {"degrees_of_freedom": (1.0, 1e70)}

    @property
    def sd_off_diagonal(self) -> float:  # type: ignore[override]
        return self.floor / np.sqrt(self.degrees_of_freedom)

    @property
    def sd_diagonal(self) -> float:  # type: ignore[override]
        return math.sqrt(2) * self.sd_off_diagonal


@dataclass(frozen=True)
class WishartSample(_Draw, shape="wishart-sample"):
    """The release is W / degrees_of_freedom with W Wishart of the scale matrix: unbiased for it, always definite."""

    words = "The matrix of a sketch: of random mixtures of the rows and of artificial rows. The noise is multiplicative."


@dataclass(frozen=True)
class InverseWishartSample(_Draw, shape="inverse-wishart-sample"):
    """The release is ``multiple`` times a draw of the inverse-Wishart law of the scale matrix: always definite.

    With multiple = degrees_of_freedom - d - 1 it is unbiased for the scale matrix."""

    words = "One draw from a posterior distribution around the true matrix. The noise is multiplicative."

    multiple: float

    @classmethod
    def limits(cls, dim: int) -> Limits:
        return {"degrees_of_freedom": (float(dim), 1e70)}


@dataclass(frozen=True)
class NoisyInverse(NoiseModel, shape="noisy-inverse"):
    """The release is the inverse of G^-1 + N, with symmetric Gaussian N of these scales; it may be indefinite.

    ``floor`` is the lower bound on the eigenvalues of G that the custodian claimed."""

    words = "Random numbers were added to the inverse of the matrix, whose smallest eigenvalue is claimed, not checked."
    added_to = "inverse"
    numbers: ClassVar[Mapping[str, Words]] = {
        "sd_off_diagonal_of_inverse": Words("noise sd of the inverse off the diagonal"),
        "sd_diagonal_of_inverse": Words("noise sd of the inverse on the diagonal"),
        "floor": Words("claimed smallest eigenvalue", SCALED),
        **WEAKEST,
    }

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

    @classmethod
    def sum_of(cls, noises: Sequence[NoisyInverse], weights: Sequence[float]) -> NoisyInverse:
        """Of the mean of inverses, all with the same claim."""
        off, on = (_sd_of_sum(noises, weights, f"sd_{place}_of_inverse") for place in ("off_diagonal", "diagonal"))
        return cls(off, on, noises[0].floor)


@dataclass(frozen=True, eq=False)
class Round:
    """One noisy Gram of rows that were mapped to z = ``through`` a, clipped to ||z|| <= 1: ``gram`` is the sum of z z' plus symmetric
    Gaussian noise of sd ``sd_off_diagonal`` off the diagonal and sqrt(2) times that on it. A round that only steers may be summed over a
    sample of the rows.

    At several ``scales`` long rows are shared between ``gram`` and one matrix of ``outer``, in units of its scale: the sum of all, each
    times its scale, is the Gram of rows clipped at .8 of the last. Noise of that sd, drawn anew, is in each of them."""

    through: Array  # (d, d), public: made of earlier rounds
    gram: Array  # (d, d)
    sd_off_diagonal: float
    kept: float  # the average share of a row's square that the clipping left, as far as the release can tell; in (0, 1]
    outer: tuple[Array, ...] = ()  # (d, d) for each scale but the first
    scales: tuple[float, ...] = ONE_CLIP  # squared lengths, in units of the clip
    sampled: float = field(default=1.0, metadata=LATER)  # the probability of each row to be in the sum; in (0, 1]

    @classmethod
    def limits(cls, dim: int) -> Limits:
        """As of noise: rows of norm one at most, and noise whose sd is one over the round's mu."""
        return {"sd_off_diagonal": (1e-15, 1e15), "kept": (1e-6, 1.0), "sampled": (2.0**-16, 1.0)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Round):
            return NotImplemented
        if any(getattr(self, name) != getattr(other, name) for name in ("sd_off_diagonal", "kept", "scales", "sampled")):
            return False
        mine, theirs = ((each.through, each.gram, *each.outer) for each in (self, other))
        return all(np.array_equal(one, same) for one, same in zip(mine, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Pooled:
    """What several rounds say together (``linalg.rounds.pooled``): ``gram`` is about H T G T' H for the Gram G of rows, H = ``half`` and
    T = ``through`` of the last round, with noise that is about even, of sd ``sd_off_diagonal`` off the diagonal."""

    half: Array  # (d, d), symmetric, positive definite
    gram: Array  # (d, d)
    sd_off_diagonal: float

    @classmethod
    def limits(cls, dim: int) -> Limits:
        return {"sd_off_diagonal": (1e-15, 1e22)}  # that of a round, over what shrinking left of it

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pooled):
            return NotImplemented
        same = np.array_equal(self.half, other.half) and np.array_equal(self.gram, other.gram)
        return same and self.sd_off_diagonal == other.sd_off_diagonal

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class WhitenedGaussian(NoiseModel, shape="whitened-gaussian"):
    """The release came about in several rounds, each with rows whitened by what the rounds before it published.

    The matrix that is released is that of the last round, T^-1 M T^-T / kept with T = ``through`` and M = ``gram`` of that round; so its
    noise is Gaussian under a public congruence: T^-1 N T^-T / kept. Earlier rounds carry noise that is independent of it, and
    tell of the same rows, clipped otherwise.

    Of more than ``MANY_COLUMNS`` columns ``rounds`` is the last round alone, and ``pooled`` is what estimates read of all of them."""

    words = "Random numbers were added in several rounds. Each round uses rows that were whitened by the rounds before it."
    added_to = "matrix"
    shift = 0.0

    rounds: tuple[Round, ...] = field()
    pooled: Pooled | None = None

    @property
    def several(self) -> bool:
        """Whether rounds came before the last."""
        return len(self.rounds) > 1 or self.pooled is not None

    @property
    def last(self) -> Round:
        return self.rounds[-1]

    def spread(self, dim: int) -> tuple[Array, float]:
        return np.linalg.inv(self.last.through), self.last.sd_off_diagonal / self.last.kept

    @property
    def sd_off_diagonal(self) -> float:  # type: ignore[override]
        """Along the weakest direction, where the map stretches most."""
        return float(self.last.sd_off_diagonal / np.linalg.norm(self.last.through, 2) ** 2 / self.last.kept)

    @property
    def sd_diagonal(self) -> float:  # type: ignore[override]
        return math.sqrt(2) * self.sd_off_diagonal
