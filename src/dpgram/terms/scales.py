"""Scales: the squared lengths at which mapped rows are clipped, where a round sums them at several. They are public.

A long row is shared between the matrix of the first scale and that of one other, so that all of them together move no further by one row
than a single matrix does (proofs/whitened_noise.md)."""

from __future__ import annotations

RATIO = 4.0  # of a scale to the one before it; a power of two, so that products with scales are exact
SWITCH = 0.8  # of a scale: a row whose square is larger goes to the next one, and the longest count as this much of the last
MOST_SCALES = 8
ONE_CLIP = (1.0,)

Scales = tuple[float, ...]
"""1, 4, 16, ...: in units of the clip, which is one in mapped coordinates."""


def first_scales(count: int) -> Scales:
    """The first ``count`` of them."""
    return tuple(RATIO**k for k in range(count))


def scales_up_to(longest: float) -> Scales:
    """All that squared lengths of at most ``longest`` can reach, eight at most; the first one always.

    >>> scales_up_to(0.5), scales_up_to(17.0)
    ((1.0,), (1.0, 4.0, 16.0))
    """
    return ONE_CLIP + tuple(scale for scale in first_scales(MOST_SCALES)[1:] if scale <= longest)
