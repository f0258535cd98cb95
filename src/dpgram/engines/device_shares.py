"""What rows of cells on a device count as, and how many of them lie in public bins: the same bits as rows/ makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpgram.engines.pytorch import Device, Tensor, torch
from dpgram.engines.scaling import Scaling
from dpgram.rows.gram_sum import LIMB_BITS, LIMB_MASK

Array = np.ndarray

ROWS_PER_CARRY = 2**22  # each adds less than 2^40 to a number of 63 bits


def in_parts(cells: Tensor, scaling: Scaling, factors: Tensor | None, rows: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The cells with their factors, as ``counting`` gives them: all at once where no row is left out, else so many rows at a time."""
    if factors is None and _none_is_missing(cells, scaling):
        yield cells, None
        return
    for start in range(0, len(cells), rows):
        some = slice(start, start + rows)
        yield cells[some], counting(cells[some], scaling, None if factors is None else factors[some])


def _none_is_missing(cells: Tensor, scaling: Scaling) -> bool:
    """Whether that is seen at once. The sum is finite where all cells are, unless it overflows, and takes little time."""
    return not scaling.dropping_truth and (
        not scaling.dropping or not cells.is_floating_point() or bool(torch.isfinite(cells.sum()))
    )


def counting(cells: Tensor, scaling: Scaling, factors: Tensor | None) -> Tensor | None:
    """The factors, zero besides where a row with a missing cell does not count; None where all rows count in full."""
    there = _there(cells, scaling)
    if there is None or bool(there.all()):
        return factors
    return there.to(torch.float64) if factors is None else torch.where(there, factors, 0.0)


def _there(cells: Tensor, scaling: Scaling) -> Tensor | None:
    """Which rows miss no cell that they need; None where none can."""
    there = None
    if scaling.dropping and cells.is_floating_point():
        # Whether the least and the largest are finite says it of all of them: both are NaN where one is.
        some = cells if len(scaling.dropping) == cells.shape[1] else cells[:, list(scaling.dropping)]
        least, largest = some.aminmax(dim=1)
        there = torch.isfinite(least) & torch.isfinite(largest)
    for place in scaling.dropping_truth:
        told = (cells[:, place] == 0) | (cells[:, place] == 1)
        there = told if there is None else there & told
    return there


class DeviceCounts:
    """Counts the cells of rows in bins: ``inner`` are the bins' edges by the column of the cells. See rows/bin_counts.py."""

    def __init__(self, inner: Mapping[int, Sequence[float]], device: Device):
        self._edges = {place: torch.tensor(edges, dtype=torch.float64, device=device) for place, edges in inner.items()}
        self._counts = [torch.zeros((2, len(edges) + 1), dtype=torch.int64, device=device) for edges in self._edges.values()]

    def add(self, cells: Tensor, factors: Tensor | None) -> None:
        """Count rows, whose ``factors`` are one where there are none. A cell that is not finite is missing."""
        if factors is None:
            self._add(cells, None)
            return
        for some, own in zip(cells.split(ROWS_PER_CARRY), factors.split(ROWS_PER_CARRY), strict=True):
            self._add(some, own)

    def _add(self, cells: Tensor, factors: Tensor | None) -> None:
        units = None if factors is None else (factors * factors).mul_(float(2**LIMB_BITS)).floor_().to(torch.int64)
        for (place, edges), counts in zip(self._edges.items(), self._counts, strict=True):
            wide = cells[:, place].to(torch.float64)
            there = torch.isfinite(wide)
            whole = there if factors is None else there & (factors == 1.0)
            counts[0] += torch.bincount(torch.bucketize(wide[whole], edges, right=True), minlength=len(edges) + 1)
            if units is not None:
                shared = there & ~whole
                counts[1].index_add_(0, torch.bucketize(wide[shared], edges, right=True), units[shared])
                counts[0] += counts[1] >> LIMB_BITS
                counts[1] &= LIMB_MASK

    def total(self) -> tuple[Array, Array]:
        """Counts of all columns, one after the other, and the parts of one more, in units of 2^-40."""
        whole, part = torch.cat(self._counts, dim=1).cpu().numpy()
        return whole, part
