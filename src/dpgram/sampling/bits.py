"""Uniform random numbers as endless streams of bits, of which as many are drawn as somebody asks for."""

from __future__ import annotations

import hashlib
import os
from itertools import count

from flint import arb


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
        exponent = -8 * self._bytes - 1
        return [arb((2 * number + 1, exponent), (1, exponent)) for number in self._numbers]

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
