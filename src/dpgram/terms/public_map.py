"""PublicMap: a matrix that rows are multiplied with before they are clipped, exact in fixed point.

It is made of what was published already, so anybody may know it. Its entries are whole numbers over a power of two of their row, and
small enough that a product with a row of grid points is a whole number below 2^53: every engine, in whatever order it adds, gets the
same bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from dpgram.errors import MechanismError
from dpgram.terms.scales import ONE_CLIP, Scales

Array = np.ndarray

MOST_COLUMNS = 2048  # squares of mapped points, below 2^42 each, then add up to less than 2^53
ROW_BITS = 32  # sums of absolute values of a row stay below 2^33, and products with points of 2^20 below 2^53
MOST_EXPONENT = 900  # far from where float64 ends, on both sides
WORD = np.dtype("<i8")
SMALLEST, LARGEST = 1e-250, 1e250  # of a row's largest entry: exponents then stay well within that


@dataclass(frozen=True, eq=False)
class PublicMap:
    """z_i = sum_j whole_ij a_j / 2^exponents_i, in exact arithmetic."""

    whole: Array  # (d, d) int64; every row's absolute values add up to at most 2^33
    exponents: Array  # (d,) int64

    def __post_init__(self) -> None:
        dim = len(self.whole)
        if self.whole.shape != (dim, dim) or self.exponents.shape != (dim,) or not 1 <= dim <= MOST_COLUMNS:
            raise MechanismError(
                f"a public map is {self.whole.shape} with exponents {self.exponents.shape}: it must be square, with one exponent a "
                f"row, and of at most {MOST_COLUMNS} columns."
            )
        if self.whole.dtype != np.int64 or self.exponents.dtype != np.int64:
            raise MechanismError("a public map is made of int64 numbers.")
        most = 2 ** (ROW_BITS + 1)
        within = ((self.whole >= -most) & (self.whole <= most)).all()  # first, because the least of int64 has no absolute value
        within = within and (np.abs(self.whole).sum(axis=1) <= most).all()
        if not within or not ((self.exponents >= -MOST_EXPONENT) & (self.exponents <= MOST_EXPONENT)).all():
            raise MechanismError("a public map has numbers too large for exact sums: make it with PublicMap.near.")
        for name, numbers in (("whole", self.whole.copy()), ("exponents", self.exponents.copy())):
            numbers.setflags(write=False)  # what was checked stays as it is
            object.__setattr__(self, name, numbers)

    @classmethod
    def near(cls, matrix: Array) -> PublicMap:
        """The map closest to ``matrix``, row by row to about 32 bits."""
        if not np.isfinite(matrix).all():
            raise MechanismError("a public map needs finite numbers.")
        largest = np.abs(matrix).max(axis=1, initial=0.0)
        if ((largest > 0) & ((largest < SMALLEST) | (largest > LARGEST))).any():
            raise MechanismError(
                f"the rows of a public map need a largest entry between {SMALLEST:.0e} and {LARGEST:.0e}, or zero."
            )
        size = np.abs(matrix).sum(axis=1)
        power = np.frexp(np.where(size > 0, size, 1.0))[1].astype(np.int64)  # size < 2^power
        exponents = ROW_BITS - power
        whole = np.rint(np.ldexp(matrix, exponents[:, None].astype(np.int32))).astype(np.int64)
        return cls(whole, exponents)

    @property
    def matrix(self) -> Array:
        """The map in float64, which holds it exactly."""
        return self.whole * np.ldexp(1.0, -self.exponents)[:, None]

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that tell maps apart: sums over rows that went through different ones are not added."""
        return blake2b(self.to_bytes(), digest_size=8).hexdigest()

    def to_bytes(self) -> bytes:
        """The map as a worker elsewhere gets it: rows of whole numbers, then exponents, little-endian."""
        return self.whole.astype(WORD).tobytes() + self.exponents.astype(WORD).tobytes()

    @classmethod
    def from_bytes(cls, sent: bytes) -> PublicMap:
        """The map that ``to_bytes`` was made of."""
        words = np.frombuffer(sent, WORD).astype(np.int64)
        dim = math.isqrt(len(words))  # d^2 + d of them
        return cls(words[: dim * dim].reshape(dim, dim), words[dim * dim :])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublicMap):
            return NotImplemented
        return np.array_equal(self.whole, other.whole) and np.array_equal(self.exponents, other.exponents)

    __hash__ = None  # type: ignore[assignment]


def digest_of(through: PublicMap | None, scales: Scales = ONE_CLIP) -> str:
    """The map's digest, with the number of scales where there are several; of no map it is empty."""
    return "" if through is None else through.digest + (f"/{len(scales)}" if len(scales) > 1 else "")
