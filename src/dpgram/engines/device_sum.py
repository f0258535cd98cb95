"""Cells on a device to an exact sum: only the sum, d by d, comes back.

On a CUDA device kernels of our own do all of it up to 200 columns, and all but the products above (kernels.py); anywhere else PyTorch's own
operations do the same. Each is the arithmetic of rows/encode.py and rows/clip.py, operation by operation, so the bits are the same.
What PyTorch does behind one operator was looked at: dividing by a number instead of a
tensor would multiply by its reciprocal, which rounds otherwise. Powers of two are made from their bits, which leaves nothing to round:
2.0 to the power of a tensor of integers is single precision in PyTorch, and ends long before these do.

Rows that do not count are left out. Those that count as a share of one are multiplied by their factors by PyTorch's operations, on every
device: sums are exact, so those of the other rows are made apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np

from dpgram.engines.kernels import Kernels, has_kernels, padded
from dpgram.engines.pytorch import Device, Tensor, torch
from dpgram.engines.scaling import Scaling
from dpgram.errors import BoundBrokenError, InexactDeviceError
from dpgram.rows.clip import GRID, JUST_BELOW_ONE, LEAST_POWER, MAPPED_BITS, MOST_TOGETHER, check_map, largest_square
from dpgram.rows.gram_sum import BLOCK_ROWS, LIMB_BITS, LIMB_MASK, GramSum
from dpgram.terms.public_map import PublicMap, digest_of
from dpgram.terms.scales import ONE_CLIP, SWITCH, Scales

Array = np.ndarray

POINTS_BYTES = 2**28  # grid points held for a matrix product on a device
MAPPED_BYTES = 3 * 2**26  # the same where they are then multiplied by a map, which takes another array of that size
EAGER_BYTES = 2**25  # the same where PyTorch's operations make them, which takes several too
MOST_SPILLS = 2**20  # each adds less than 2^40 to a low limb of 63 bits
FRACTION_BITS, EXPONENT_OF_ONE = 52, 1023  # of float64


class DeviceSum:
    """The exact sum over the rows that it is given, multiplied by ``through`` where it is given, kept on ``device`` until it is asked
    for; at several ``scales`` one for each."""

    def __init__(
        self,
        scaling: Scaling,
        row_bound: float,
        device: Device,
        through: PublicMap | None = None,
        scales: Scales = ONE_CLIP,
    ):
        check_map(through, scaling.dim, row_bound, scales)
        self._scaling, self._row_bound, self._device = scaling, row_bound, device
        self._most = float(largest_square(row_bound))
        self._rows, self._spills = 0, 0
        # Whether the cells' own points are shrunk: those of a map are after it, and else no row may be able to exceed the bound.
        self._clips = through is None and self._most < scaling.dim * GRID**2
        self._through = through
        self._scales, self._digest = scales, digest_of(through, scales)
        shape = (2, len(scales), scaling.dim, scaling.dim)
        self._state = torch.zeros(math.prod(shape) + 1, dtype=torch.int64, device=device)
        self._limbs, self._broken = self._state[:-1].view(shape), self._state[-1:]
        self._kernels = Kernels(self) if has_kernels(device, scaling) else None
        self._fused, self._wide = (self._kernels.fused, self._kernels.wide) if self._kernels is not None else (False, False)
        self._map = None
        if through is not None and not self._fused and not self._wide:
            self._map = _DeviceMap(through, scaling.dim if self._kernels is None else scaling.padded, device)
        if not self._fused and not self._wide:
            _check_exact_products(device)

    def add(self, cells: Tensor, factors: Tensor | None = None) -> None:
        """Add the rows of ``cells``, (rows, columns) on the device, with any strides. May raise with cells in the message.

        ``factors`` in [0, 1] say what each row counts as, as in rows/shares.py; all count in full where there are none."""
        self._rows += len(cells)
        if factors is None:
            self._add_whole(cells)
            return
        whole = factors == 1.0
        self._add_whole(cells[whole])
        shared = (factors > 0.0) & ~whole
        self._add_shared(cells[shared], factors[shared])

    def _add_whole(self, cells: Tensor) -> None:
        if len(cells) == 0:
            return
        if self._fused and self._kernels is not None:
            self._kernels.add(cells)
            return
        if self._wide and self._kernels is not None and self._through is not None:
            self._kernels.add_mapped(cells, MAPPED_BYTES)
            return
        make: Callable[[Tensor], Tensor] = self._points if self._kernels is None else self._kernels.points
        held = EAGER_BYTES if self._kernels is None else POINTS_BYTES if self._map is None else MAPPED_BYTES
        for part in cells.split(self._rows_in(held)):
            if self._wide and self._kernels is not None:  # no name for the points: they are let go of before the next are made
                self._kernels.add_points(make(part))
            else:
                self._add_points(make(part), self._map)

    def _add_shared(self, cells: Tensor, factors: Tensor) -> None:
        """Add rows that count as less than one."""
        if len(cells) == 0:
            return
        _check_exact_products(self._device)
        rows = self._rows_in(EAGER_BYTES)
        for part, own in zip(cells.split(rows), factors.split(rows), strict=True):
            self._add_points(self._points(part), self._plain_map, own)

    def _rows_in(self, held: int) -> int:
        return BLOCK_ROWS * min(2**10, max(1, held // (8 * BLOCK_ROWS * self._scaling.dim)))

    def _add_points(self, points: Tensor, through: _DeviceMap | None, factors: Tensor | None = None) -> None:
        if through is None:
            self._add_product(_times(points, factors))
        elif len(self._scales) == 1:
            self._add_product(_times(self._shrunk(through.images(points)[0]), factors))
        else:
            for place, each in enumerate(self._shared(*through.images(points), factors)):
                self._add_product(each, place)

    def total(self) -> GramSum:
        """The sum over all rows added so far."""
        if self._kernels is not None:
            self._kernels.settle()
        words = self._state.clone().cpu().numpy()  # of its own, on a device or not
        if words[-1]:
            raise BoundBrokenError
        high, low = words[:-1].reshape(self._limbs.shape if len(self._scales) > 1 else self._limbs[:, 0].shape)
        high += low >> LIMB_BITS  # in place, because fresh memory costs more than the sums
        low &= LIMB_MASK
        return GramSum(high=high, low=low, rows=self._rows, row_bound=self._row_bound, through=self._digest)

    def spilled(self, times: int) -> None:
        """Count additions to the low limbs, and carry before they could overflow."""
        self._spills += times
        if self._spills > MOST_SPILLS:
            self._carry()
            self._spills = times

    def _carry(self) -> None:
        self._limbs[0] += self._limbs[1] >> LIMB_BITS
        self._limbs[1] &= LIMB_MASK

    def _add_product(self, points: Tensor, place: int = 0) -> None:
        """Add points' points for whole-number points: blocks of 4096 rows have sums below 2^53, hence exact in any order."""
        whole = len(points) // BLOCK_ROWS * BLOCK_ROWS
        dim = self._scaling.dim
        blocks, rest = points[:whole].view(-1, BLOCK_ROWS, points.shape[1]), points[whole:]
        sums = (rest.T @ rest).to(torch.int64)
        if whole:
            sums += torch.bmm(blocks.transpose(1, 2), blocks).to(torch.int64).sum(0)
        self.spilled(1)
        self._limbs[0, place] += sums[:dim, :dim] >> LIMB_BITS
        self._limbs[1, place] += sums[:dim, :dim] & LIMB_MASK

    def _points(self, cells: Tensor) -> Tensor:
        """Bounded grid points by PyTorch's operations, one correctly rounded step at a time."""
        scaling = self._scaling
        x = torch.zeros((len(cells), scaling.dim), dtype=torch.float64, device=cells.device)
        here = [i for i, place in enumerate(scaling.places) if place >= 0]
        x[:, here] = cells[:, [scaling.places[i] for i in here]].to(torch.float64)
        lower, upper, fill, centre, half, truth = self._declared
        missing = ~torch.isfinite(x)
        if scaling.truth.any():
            missing |= truth.bool() & (x != 0) & (x != 1)
        x = torch.minimum(torch.maximum(torch.where(missing, fill, x), lower), upper)
        x = x.sub_(centre).div_(half).clamp_(-1.0, 1.0)
        points = x.mul_(float(GRID)).trunc_()
        return self._shrunk(points) if self._clips else points

    def _shrunk(self, points: Tensor) -> Tensor:
        squares = points.square().sum(1)  # whole numbers below 2^53: exact in any order
        over = squares > self._most
        most = torch.full_like(squares, self._most)  # a number here would be multiplied by a reciprocal
        factor = torch.where(over, (most / squares).sqrt() * JUST_BELOW_ONE, torch.ones_like(squares))
        points.mul_(factor.unsqueeze(1)).trunc_()  # a factor of one changes nothing
        self._broken |= (points.square().sum(1) > self._most).any().to(torch.int64)
        return points

    def _shared(self, points: Tensor, powers: Tensor, factors: Tensor | None) -> list[Tensor]:
        """What is for each of several scales, as in rows/clip.py: of all rows for the first, of long ones for the others; last each row is
        multiplied by its factor."""
        squares = points.square().sum(1)
        powers = powers.clamp(min=LEAST_POWER)
        lengths = squares * GRID**-2.0 / (powers * powers)
        long = (lengths > 1.0).nonzero().squeeze(1)
        scales = torch.tensor(self._scales[1:], dtype=torch.float64, device=points.device)
        steps = scales * SWITCH
        lengths, squares, rows = lengths[long].clamp(max=SWITCH * self._scales[-1]), squares[long], points[long]
        place = torch.searchsorted(steps, lengths)
        scale = scales[place]
        total = 1.0 + scale * scale
        root = (total - lengths * lengths).sqrt()
        shares = (lengths + scale * root) / total, (scale * lengths - root) / total
        parts = [
            (rows * ((share * float(GRID**2) / squares).sqrt() * JUST_BELOW_ONE).unsqueeze(1)).trunc_() for share in shares
        ]
        one, other = (part.square().sum(1) * GRID**-2.0 for part in parts)
        self._broken |= (~(one * one + other * other <= MOST_TOGETHER)).any().to(torch.int64)
        points[long] = parts[0]
        outer = _times(parts[1], None if factors is None else factors[long])
        return [_times(points, factors), *(outer[place == k] for k in range(len(steps)))]

    @cached_property
    def _plain_map(self) -> _DeviceMap | None:
        """The map for points that PyTorch's operations make, which have no columns of padding."""
        if self._through is None or (self._map is not None and self._kernels is None):
            return self._map
        return _DeviceMap(self._through, self._scaling.dim, self._device)

    @cached_property
    def _declared(self) -> Tensor:
        """What is declared of each column, on the device, (fields, columns)."""
        of = self._scaling
        fields = np.array([of.lower, of.upper, of.fill, of.centre, of.half, of.truth], dtype=np.float64)
        return torch.from_numpy(fields).to(self._device)


def _times(points: Tensor, factors: Tensor | None) -> Tensor:
    """The points, which are overwritten: each row multiplied by its factor and rounded towards zero."""
    return points if factors is None else points.mul_(factors.unsqueeze(1)).trunc_()


class _DeviceMap:
    """A public map on a device; see rows/clip.py for what it does to grid points."""

    def __init__(self, through: PublicMap, size: int, device: Device):
        _check_exact_maps(device)
        # Whole numbers times a power of two of their row: products with grid points add up to less than 2^53 of it.
        self._matrix = torch.from_numpy(padded(through.matrix.T, size)).to(device)

    def products(self, points: Tensor) -> Tensor:
        """Grid points times the map: exact."""
        return points @ self._matrix

    def images(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """The mapped rows as whole numbers below 2^21, before the clip, and the powers of two that they were multiplied with."""
        made = self.products(points)
        largest = made.abs().amax(1)
        # The largest entry is at least 2^(e - 1023) and below twice that, so the power wanted is 2^(20 + 1023 - e), or one.
        stored = largest.view(torch.int64) >> FRACTION_BITS
        power = (MAPPED_BITS - 1 + 2 * EXPONENT_OF_ONE - stored).clamp_(max=EXPONENT_OF_ONE)
        powers = (power << FRACTION_BITS).view(torch.float64)
        return made.mul_(powers.unsqueeze(1)).trunc_(), powers


@lru_cache(maxsize=16)
def _check_exact_products(device: Device) -> None:
    """Raise unless a product of whole numbers, as large as they get, comes out exactly.

    Double precision makes it exact; a library told to emulate double precision might not be."""
    rows, columns = np.indices((BLOCK_ROWS, 8))
    points = GRID - (rows * (2 * columns + 1) + columns) % 1021
    exact = points.T @ points
    held = torch.from_numpy(points.astype(np.float64)).to(device)
    plain, batched = held.T @ held, torch.bmm(held.T.unsqueeze(0), held.unsqueeze(0))[0]
    if any(not np.array_equal(product.cpu().numpy(), exact) for product in (plain, batched)):
        raise InexactDeviceError(device=str(device))


@lru_cache(maxsize=16)
def _check_exact_maps(device: Device) -> None:
    """Raise unless a product with a map, whose whole numbers have more bits than rows have, comes out exactly."""
    i, j = np.indices((16, 64))
    whole = (-1) ** j * (97 * i + j)  # less than 2^17 in each row, besides one number of 33 bits, or two of 32 that cancel
    lines = np.arange(16)
    whole[lines, lines] = np.where(lines % 2, 2**32, 2**33) - 2**17 - 2 * lines - 1
    whole[lines, lines + 16] = np.where(lines % 2, 2 * lines + 1 + 2**17 - 2**32, 0)
    rows, columns = np.indices((512, 64))
    points = GRID - (rows * (2 * columns + 1) + columns) % 1021
    product = torch.from_numpy(points.astype(np.float64)).to(device) @ torch.from_numpy(whole.T.astype(np.float64)).to(device)
    if not np.array_equal(product.cpu().numpy(), points @ whole.T):
        raise InexactDeviceError(device=str(device))
