"""The published attacks on noise in floating point, in our words: each is given published numbers and two candidates for the true ones.

They answer 0 or 1, the candidate they believe in, or None where both are possible, or neither is. All look at the same thing from different
sides: a sampler of floats cannot reach every float, and which ones it can reach moves with the true value.

- ``by_inverting_laplace`` (Mironov 2012): noise that is b ln(u) of a 53-bit uniform u takes few of the floats around it.
- ``by_inverting_pairs`` (Jin and others 2022): two normal numbers come from two uniform ones, and can be traced back to them.
- ``by_precision`` (Haney and others 2022): a sum is no finer than its terms; a fine number says that the true value is small.
- ``LearnedBits``: whatever else the lowest bits tell; learned from releases of both tables, for mechanisms that are no plain sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

UNIT = 2.0**-53  # the step of a uniform number of 53 bits
NEAR = np.arange(-8, 9)  # how many steps around the place where an inverted number should be are tried


def verdict(possible: tuple[bool, bool]) -> int | None:
    """The one candidate that is possible; None where that settles nothing."""
    return None if possible[0] == possible[1] else int(possible[1])


def by_inverting_laplace(published: Array, candidates: tuple[Array, Array], scale: float) -> int | None:
    """Which candidate all published numbers can be reached from, by Laplace noise through inversion."""
    return verdict(tuple(bool(laplace_reaches(published, true, scale).all()) for true in candidates))  # type: ignore[arg-type]


def laplace_reaches(published: Array, true: Array, scale: float) -> Array:
    """For each number whether true + (+-scale) ln(u) is that very float for some u of 53 bits."""
    noise = published - true
    middle = np.rint(np.exp(-np.abs(noise) / scale) / UNIT)
    steps = np.clip(middle[:, None] + NEAR, 1, 2**53)
    again = true[:, None] - np.sign(noise)[:, None] * scale * np.log(steps * UNIT)
    return (again == published[:, None]).any(axis=1)


@dataclass(frozen=True)
class PairSampler:
    """How two normal numbers are made of two uniform ones, and back."""

    forward: Callable[[Array, Array], tuple[Array, Array]]
    backward: Callable[[Array, Array], tuple[Array, Array]]
    step: Callable[[Array], Array]  # how far apart the uniform numbers lie, near the given ones


def by_inverting_pairs(
    published: Array, candidates: tuple[Array, Array], sd: Array, pairs: Iterable[tuple[int, int]], sampler: PairSampler
) -> int | None:
    """Which candidate all ``pairs`` of published numbers can be reached from, by normal noise of standard deviations ``sd``."""
    first, second = np.array(list(pairs)).T
    return verdict(tuple(bool(pairs_reach(published, true, sd, first, second, sampler).all()) for true in candidates))  # type: ignore[arg-type]


def pairs_reach(published: Array, true: Array, sd: Array, first: Array, second: Array, sampler: PairSampler) -> Array:
    """For each pair whether its two numbers come, to the last bit, from one pair of uniform numbers that the sampler can draw."""
    standard = (published.astype(np.longdouble) - true) / sd
    u, v = sampler.backward(standard[first], standard[second])
    u, v = u[:, None, None], v[:, None, None]
    du, dv = sampler.step(u), sampler.step(v)
    x, y = sampler.forward(
        ((np.rint(u / du) + NEAR[:, None]) * du).astype(float), ((np.rint(v / dv) + NEAR[None, :]) * dv).astype(float)
    )
    again = [
        true[at][:, None, None] + sd[at][:, None, None] * z == published[at][:, None, None]
        for at, z in ((first, x), (second, y))
    ]
    return (again[0] & again[1]).any(axis=(1, 2))


def _turned(x: Array, y: Array) -> tuple[Array, Array]:
    """The uniform numbers behind Box and Muller's r cos, r sin."""
    turn = np.arctan2(y, x) / (2 * np.longdouble(math.pi) + np.longdouble(1.2246467991473532e-16) * 2)  # pi to 64 bits
    return np.exp(-(x * x + y * y) / 2), np.where(turn < 0, turn + 1, turn)


def _box_muller(u: Array, v: Array) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):
        radius = np.sqrt(-2 * np.log(u))
    angle = 2 * np.pi * v
    return radius * np.cos(angle), radius * np.sin(angle)


BOX_MULLER = PairSampler(_box_muller, _turned, lambda u: np.full(u.shape, UNIT))
FINE_BOX_MULLER = PairSampler(_box_muller, _turned, lambda u: np.spacing(u.astype(float)))  # uniform numbers are any floats

_log = np.frompyfunc(math.log, 1, 1)  # C's logarithm, as NumPy's own vectors may round otherwise


def _polar(u: Array, v: Array) -> tuple[Array, Array]:
    square = u * u + v * v
    inside = (square > 0) & (square < 1)
    square = np.where(inside, square, 0.5)
    factor = np.where(inside, np.sqrt(-2.0 * _log(square).astype(float) / square), np.nan)
    return factor * v, factor * u


def _unpolar(x: Array, y: Array) -> tuple[Array, Array]:
    square = np.exp(-(x * x + y * y) / 2)
    factor = np.sqrt(-2 * np.log(square) / square)
    return y / factor, x / factor


POLAR = PairSampler(_polar, _unpolar, lambda u: np.full(u.shape, 2 * UNIT))  # Marsaglia's, as in NumPy's RandomState


def by_precision(published: Array, candidates: tuple[Array, Array]) -> int:
    """Which candidate every published number can be reached from by adding a float: a float is no finer than its size allows.

    Where both are possible it takes the larger one, which would have made the numbers coarse."""
    found = verdict(tuple(bool(precision_allows(published, true).all()) for true in candidates))  # type: ignore[arg-type]
    return found if found is not None else int(np.abs(candidates[1]).sum() > np.abs(candidates[0]).sum())


def precision_allows(published: Array, true: Array) -> Array:
    """For each number whether it is as coarse as a sum of ``true`` and a float must be.

    The noise is published - true up to rounding, so a multiple of the spacing of floats there; the sum is a multiple of that or of
    the lowest bit of ``true``, whichever is finer."""
    noise = np.abs(published - true)
    finest = np.minimum(lowest_bit(true), np.spacing(noise * (1 - 2.0**-50)))
    return lowest_bit(published) >= finest


def lowest_bit(numbers: Array) -> Array:
    """The value of the last bit that is set; infinite for zero."""
    mantissa, exponent = np.frexp(numbers)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    with np.errstate(over="ignore"):
        return np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(float), exponent - 53))


class LearnedBits:
    """Tells two tables apart by the lowest bits of what is published, after seeing releases of both."""

    def __init__(self, first: Array, second: Array):
        """``first`` and ``second``: (releases, numbers) of the two tables."""
        self._weights = [
            [np.log(_histogram(mine, size) / _histogram(others, size)) for mine, others in zip(a.T, b.T, strict=True)]
            for (a, size), (b, _) in zip(_low_bits(first), _low_bits(second), strict=True)
        ]

    def __call__(self, published: Array) -> Array:
        """0 or 1 for each release."""
        evidence = sum(
            weights[cells]
            for (features, _), known in zip(_low_bits(published), self._weights, strict=True)
            for cells, weights in zip(features.T, known, strict=True)
        )
        return np.where(evidence > 0, 0, 1)


def _low_bits(numbers: Array) -> list[tuple[Array, int]]:
    """Features, each with the number of values that it takes: the place of the lowest bit, and the last three of 53 bits."""
    place = np.log2(np.minimum(lowest_bit(numbers), 2.0**40)).astype(int)
    last = np.abs(np.frexp(numbers)[0] * 2.0**53).astype(np.int64) & 7
    return [(np.clip(place + 80, 0, 119), 120), (last, 8)]


def _histogram(cells: Array, size: int) -> Array:
    return np.bincount(cells, minlength=size) + 0.5
