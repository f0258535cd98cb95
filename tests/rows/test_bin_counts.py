"""Counts by slots are those of a search, number by number."""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.mechanisms.ranges import _closer, _logarithmic
from dpgram.rows import bin_counts
from dpgram.rows.bin_counts import _Edges

LARGEST, SMALLEST = np.finfo(float).max, 5e-324
EDGES = {
    "none": (),
    "one": (0.5,),
    "logarithmic": _logarithmic(-4.0, 4.0),
    "far from zero": _logarithmic(1e6, 1e6 + 1e-3),
    "closer": _closer(_logarithmic(-4.0, 4.0), 0.1, 0.2, (-4.0, 4.0)),
    "as wide as floats": (-LARGEST, -1.0, 0.0, LARGEST),  # their distance is no float
    "as narrow as floats": (0.0, SMALLEST, 2 * SMALLEST),
    "neighbours": (1.0, np.nextafter(1.0, 2.0), 2.0),
    "many": tuple(np.linspace(-1, 1, 9_999)),
}


def numbers(edges: np.ndarray) -> np.ndarray:
    """Edges, the floats beside them, the largest and smallest there are, and some between and beyond."""
    rng = np.random.default_rng(0)
    beside = [np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)] if len(edges) else []
    middle, spread = (np.mean(edges / 2) * 2, np.std(edges / LARGEST) * LARGEST) if len(edges) else (0.0, 1.0)
    wide = [middle + spread * rng.normal(size=5_000), rng.normal(size=5_000), LARGEST * rng.uniform(-1, 1, 100)]
    return np.concatenate([edges, *beside, *wide, [-LARGEST, LARGEST, 0.0, -0.0, SMALLEST, -SMALLEST]])


def searched(cells: np.ndarray, edges: np.ndarray) -> list[int]:
    """The definition: an edge belongs to the bin above it."""
    bins = (cells[:, None] >= edges).sum(axis=1)
    return [int((bins == place).sum()) for place in range(len(edges) + 1)]


def agrees(name: str) -> bool:
    edges = np.array(EDGES[name], dtype=float)
    with np.errstate(all="ignore"):
        cells = numbers(edges)
        cells = cells[np.isfinite(cells)]
        return _Edges(edges).counted(cells).tolist() == searched(cells, edges)


@pytest.mark.parametrize("name", EDGES)
def test_counts_are_those_of_a_search(name):
    assert agrees(name)


@pytest.mark.parametrize("name", ["logarithmic", "closer", "neighbours"])
def test_a_slot_with_an_edge_that_is_not_searched_would_be_seen(name, monkeypatch):
    monkeypatch.setattr(bin_counts.np, "isin", lambda slots, _: np.zeros(len(slots), dtype=bool))
    assert not agrees(name)
