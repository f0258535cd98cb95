"""Uniform random numbers as endless streams of bits, of which as many are drawn as somebody asks for."""

from __future__ import annotations

import hashlib
import os
from itertools import count

import numpy as np
from flint import arb

Array = np.ndarray

WORD = 8  # bytes


class SecureBits:
    """Independent fair bits for numbers that are told apart by their place, from the operating system's cryptographic source."""

    def places(self, numbers: int) -> list[int]:
        """Places of so many new numbers."""
        return [0] * numbers  # what it gives has no place and cannot be had again

    def more(self, places: list[int], known: int, width: int) -> bytes:
        """The next ``width`` bytes of each number, of which ``known`` bytes were drawn before."""
        return os.urandom(width * len(places))


class SeededBits:
    """Bits from a seed, for tests: the same for each number, however many are asked for at a time. Not private."""

    def __init__(self, seed: int):
        self._seed = seed
        self._next = count()

    def places(self, numbers: int) -> list[int]:
        return [next(self._next) for _ in range(numbers)]

    def more(self, places: list[int], known: int, width: int) -> bytes:
        streams = (hashlib.shake_256(f"{self._seed}:{place}".encode()) for place in places)
        return b"".join(stream.digest(known + width)[known:] for stream in streams)


BitSource = SecureBits | SeededBits


class Uniforms:
    """Independent uniform numbers in (0, 1), each an endless stream of bits of which the first are known."""

    def __init__(self, numbers: int, source: BitSource):
        self._source, self._places = source, source.places(numbers)
        self._numbers, self._bytes = [0] * numbers, 0

    def balls(self, bits: int) -> list[arb]:
        """A ball of radius at most 2^-bits / 2 around each number."""
        self._reveal((bits + 7) // 8)
        return [_between(number, 8 * self._bytes) for number in self._numbers]

    def _reveal(self, needed: int) -> None:
        """Draw more where fewer than ``needed`` bytes of each number are known; what is known stays."""
        width = needed - self._bytes
        if width <= 0:
            return
        fresh = self._source.more(self._places, self._bytes, width)
        self._numbers = [
            (number << 8 * width) | int.from_bytes(fresh[place * width : (place + 1) * width], "big")
            for place, number in enumerate(self._numbers)
        ]
        self._bytes = needed


class LazyUniforms:
    """Independent uniform numbers as those of ``Uniforms``, each revealed by itself: most of them are asked for 64 bits, or for none."""

    def __init__(self, numbers: int, source: BitSource):
        self._source, self._places = source, source.places(numbers)
        self._words, self._drawn = np.zeros(numbers, dtype=np.uint64), np.zeros(numbers, dtype=bool)
        self._further: dict[int, bytes] = {}  # what is known beyond the first word

    def words(self, which: Array) -> Array:
        """The first 64 bits of these numbers, of which none stands there twice."""
        new = which[~self._drawn[which]]
        fresh = self._source.more([self._places[number] for number in new], 0, WORD)
        self._words[new], self._drawn[new] = np.frombuffer(fresh, ">u8"), True
        return self._words[which]

    def ball(self, number: int, bits: int) -> arb:
        """A ball of radius at most 2^-bits / 2 around one number."""
        first, further = int(self.words(np.array([number]))[0]), self._further.get(number, b"")
        width = (bits + 7) // 8 - WORD - len(further)
        if width > 0:
            further += self._source.more([self._places[number]], WORD + len(further), width)
            self._further[number] = further
        return _between((first << 8 * len(further)) | int.from_bytes(further, "big"), 8 * (WORD + len(further)))


def _between(number: int, bits: int) -> arb:
    """The ball of all numbers between ``number`` and the next whole number, over 2^bits."""
    return arb((2 * number + 1, -bits - 1), (1, -bits - 1))
