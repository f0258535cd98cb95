"""What a mechanism asks of a source of randomness."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class RandomSource(Protocol):
    """Draws independent normal and uniform numbers."""

    private: bool  # whether what is drawn cannot be foreseen by anybody
    description: str  # for the label

    def normal(self, scale: float, size: tuple[int, ...]) -> np.ndarray:
        """Independent N(0, scale^2)."""
        ...

    def uniform(self, size: tuple[int, ...]) -> np.ndarray:
        """Independent and uniform on (0, 1), neither end included, as fine near zero as floats are."""
        ...
