"""How a row is shared between sums at several scales, in floats: what rows/clip.py does in whole numbers. For tables that are made up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

Array = np.ndarray


def weights(squares: Array, scales: Sequence[float], switch: float) -> Array:
    """What z z' is multiplied with in the sum of each scale, in its own units, for rows z of these squared lengths; scales come first.

    A row of squared length s <= 1 is in the first sum alone. A longer one adds cos t of length to it and sin t to that of the first scale
    R with s <= ``switch`` R, where cos t + R sin t = s; the longest count as ``switch`` of the last scale. At one scale rows are shrunk to
    length one.

    >>> weights(np.array([0.5, 3.2]), (1.0, 4.0), 0.8) * [0.5, 3.2]
    array([[0.5, 0.8],
           [0. , 0.6]])
    """
    out = np.zeros((len(scales), *squares.shape))
    out[0] = 1 / np.maximum(squares, 1.0)
    if len(scales) == 1:
        return out
    lengths, below = np.minimum(squares, switch * scales[-1]), 1.0
    for place, scale in enumerate(scales[1:], 1):
        mine = (lengths > below) & (lengths <= switch * scale)
        s, total, below = lengths[mine], 1 + scale**2, switch * scale
        root = np.sqrt(total - s**2)
        out[0, mine] = (s + scale * root) / total / squares[mine]
        out[place, mine] = (scale * s - root) / total / squares[mine]
    return out


def grams(blocks: Iterable[Array], scales: Sequence[float], switch: float) -> list[Array]:
    """The sum of z z' at each scale, in its own units, over the mapped rows of all ``blocks``."""
    totals: list[Array] = []
    for z in blocks:
        shares = weights(np.einsum("ij,ij->i", z, z), scales, switch)
        sums = [(z[share > 0] * share[share > 0, None]).T @ z[share > 0] for share in shares]
        totals = [total + more for total, more in zip(totals, sums, strict=True)] if totals else sums
    return totals
