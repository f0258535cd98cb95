"""Which rows are in a sample: a secret coin for each, thrown by its place in the table.

Statement: the coins of different places are independent, each is heads with probability ``share`` exactly, and none depends on any cell,
where SHAKE-256 with a secret key is a random function. What a table's rows are, and how many, has no part in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from dpgram.errors import MechanismError

Array = np.ndarray

COIN_BITS = 16
BLOCK_ROWS = 2**15  # coins that are thrown at once
KEY_BYTES = 32


@dataclass(frozen=True, repr=False)
class Coins:
    """The coins of one release. Whoever knows the key knows who is in the sample: it is never published, and prints no number."""

    key: bytes
    share: float  # a multiple of 2^-16

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES or not 0 < self.share <= 1 or (self.share * 2**COIN_BITS) % 1:
            raise MechanismError(
                f"a sample takes each row with a probability that is a multiple of 2^-{COIN_BITS}, by a secret key."
            )

    def chosen(self, part: int, first: int, rows: int) -> Array:
        """Which of ``rows`` rows of the table's ``part`` are in the sample, by their places after ``first``, the place of the first."""
        blocks = range(first // BLOCK_ROWS, -(-(first + rows) // BLOCK_ROWS))
        thrown = np.concatenate([np.empty(0, dtype=np.intp), *(self._heads(part, block) for block in blocks)])
        return thrown[(thrown >= first) & (thrown < first + rows)] - first

    def _heads(self, part: int, block: int) -> Array:
        place = part.to_bytes(8) + block.to_bytes(8)
        words = np.frombuffer(hashlib.shake_256(self.key + place).digest(BLOCK_ROWS * COIN_BITS // 8), dtype="<u2")
        return np.flatnonzero(words < round(self.share * 2**COIN_BITS)) + block * BLOCK_ROWS

    def __repr__(self) -> str:
        return f"Coins(share={self.share:g}, key=<secret>)"
