"""The CUDA kernels of one exact sum: which there are for how many columns, compiled when first used, and started.

Up to 64 encoded columns one kernel does all (gram.cu, with a map mapped.cu): sums stay in registers of a warp. Up to 200, bounded
grid points are written (points.cu, with a map images.cu) and one kernel sums them (wide.cu), with sums in registers of a block. Above, the
library does the products."""

from __future__ import annotations

import math
import warnings
import weakref
from functools import cached_property, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from dpgram.engines.nvrtc import Kernel, KernelError
from dpgram.engines.pytorch import Device, Tensor, torch
from dpgram.engines.scaling import Scaling
from dpgram.errors import SlowDeviceWarning
from dpgram.terms.public_map import PublicMap

if TYPE_CHECKING:
    from dpgram.engines.device_sum import DeviceSum

Array = np.ndarray

MOST_FUSED = 64  # encoded columns whose sums a warp can hold in registers
# For 1 to 8 bands of 8 columns: groups of rows in flight, threads of a block, blocks that share a multiprocessor. The fastest on an H200.
SHAPES = {
    "gram": [(8, 256, 3), (8, 128, 4), (8, 128, 2), (8, 128, 2), (4, 128, 2), (4, 256, 1), (2, 128, 2), (2, 128, 2)],
    "mapped": [(4, 128, 4), (2, 128, 5), (4, 128, 2), (2, 128, 3), (2, 128, 2), (2, 128, 2), (2, 64, 4), (1, 64, 4)],
}
MOST_WIDE = 200  # encoded columns whose sums a block can hold in registers
WIDE_THREADS, WIDE_ROWS = 480, 32  # of a block
IMAGE_THREADS, IMAGE_ROWS, IMAGE_BLOCKS = 128, 64, 2  # of a block, of a block, and blocks that share a multiprocessor
POINTS_THREADS = 256
ROWS_PER_BLOCK = 2**21  # of threads; its 64-bit sums have room for twice as many
SOURCES = {
    "gram": ("cells.cu", "mma.cu", "tiles.cu", "gram.cu"),
    "mapped": ("cells.cu", "mma.cu", "tiles.cu", "bounds.cu", "mapped.cu"),
    "images": ("cells.cu", "mma.cu", "bounds.cu", "images.cu"),
    "wide": ("cells.cu", "mma.cu", "wide.cu"),
    "settle": ("cells.cu", "mma.cu", "wide.cu"),
    "grid_points": ("cells.cu", "points.cu"),
}
CELL_TYPES = {
    "float64": "double",
    "float32": "float",
    "float16": "half_bits",
    "bfloat16": "bfloat_bits",
    "int64": "i64",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint64": "u64",
    "uint32": "unsigned",
    "uint16": "unsigned short",
    "uint8": "unsigned char",
    "bool": "unsigned char",
}


class Kernels:
    """The kernels of one sum."""

    def __init__(self, owner: DeviceSum):
        self._sum = weakref.proxy(
            owner
        )  # which holds this: in a circle they would keep device memory until garbage is collected
        self._scaling, self._device = owner._scaling, owner._device
        declared = self._scaling.declared
        if owner._through is not None and self._scaling.dim <= MOST_WIDE:
            declared = np.concatenate([declared, _in_tiles(owner._through).view(np.int64)])
        self._declared = torch.from_numpy(declared).to(self._device)
        self._processors, shared = _sizes(self._device)
        self.fused = self._scaling.dim <= MOST_FUSED
        self.wide = not self.fused and self._scaling.dim <= MOST_WIDE and _shared_bytes(self._side) <= shared
        self._held = 0  # rows of a block that are not settled

    def add(self, cells: Tensor) -> None:
        """One read of the cells, sums in registers."""
        bands, scales, mapped = self._scaling.padded // 8, len(self._sum._scales), self._sum._through is not None
        name = "mapped" if mapped else "gram"
        steps, threads, shared = SHAPES[name][bands - 1]
        shape = {"BANDS": bands, "STEPS": steps, "THREADS": threads, "BLOCKS": shared}
        kernel = self._kernel(name, cells, **shape, **({"SCALES": scales} if mapped else {}))
        most = shared * self._processors
        for part in cells.split(ROWS_PER_BLOCK * most):
            blocks = min(most, math.ceil(len(part) / (4 * steps * (threads // 32))))
            self._sum.spilled(blocks)
            room = (blocks, scales, bands * (bands + 1) // 2, 64) if mapped else 0
            sums = torch.empty(room, dtype=torch.int64, device=self._device)
            kernel(blocks, threads, *self._table(part), self._sum._state, *([sums] if mapped else []))

    def add_points(self, points: Tensor) -> None:
        """Add rows of bounded grid points, which may have columns of padding."""
        self._add_wide(len(points), points, points, points, points)

    def add_mapped(self, cells: Tensor, held: int) -> None:
        """Add rows of cells that are multiplied by a map and bounded first; about ``held`` bytes of them at a time."""
        bands, scales = self._scaling.padded // 8, len(self._sum._scales)
        kernel = self._kernel("images", cells, BANDS=bands, SCALES=scales, THREADS=IMAGE_THREADS, BLOCKS=IMAGE_BLOCKS)
        most = IMAGE_BLOCKS * self._processors
        once = most * IMAGE_ROWS  # rows that all blocks take together
        parts = cells.split(once * max(1, held // (64 * bands * once)))
        inner = self._rows_of(len(parts[0]))
        outer, numbers = inner, inner
        if scales > 1:
            outer = self._rows_of(len(parts[0]))
            numbers = torch.empty((scales, len(parts[0])), dtype=torch.int32, device=self._device)
        for part, counts in zip(parts, torch.zeros((len(parts), scales), dtype=torch.int32, device=self._device), strict=True):
            blocks, made = min(most, math.ceil(len(part) / IMAGE_ROWS)), (outer, numbers, counts)
            kernel(blocks, IMAGE_THREADS, *self._table(part), inner, self._sum._state, *made, shared=_image_bytes(bands))
            self._add_wide(len(part), inner, *made)

    def _add_wide(self, rows: int, inner: Tensor, outer: Tensor, numbers: Tensor, counts: Tensor) -> None:
        tiles = math.ceil(rows / WIDE_ROWS)
        blocks = min(self._processors, tiles)
        held = WIDE_ROWS * math.ceil(tiles / blocks)  # rows of a block, at most
        if self._held + held > ROWS_PER_BLOCK:
            self.settle()
        self._held += held
        kernel, room = self._kernel("wide", inner, **self._wide_shape), self._room
        table = inner, rows, room, room[0].numel(), outer, numbers, counts
        kernel(blocks, WIDE_THREADS, *table, shared=_shared_bytes(self._side))

    def settle(self) -> None:
        """Add to the sum what the threads of ``wide`` hold."""
        if self._held:
            kernel = self._kernel("settle", self._room, **self._wide_shape)
            self._sum.spilled(self._processors)
            for part, room in enumerate(self._room):
                kernel(self._processors, WIDE_THREADS, room, self._scaling.dim, part, self._sum._state)
            self._held = 0

    @property
    def _side(self) -> int:
        return math.ceil(self._scaling.dim / 40)

    @property
    def _wide_shape(self) -> dict[str, int]:
        sizes = {"SIDE": self._side, "PADDED": self._scaling.padded}
        return {**sizes, "THREADS": WIDE_THREADS, "SCALES": len(self._sum._scales)}

    @cached_property
    def _room(self) -> Tensor:
        """What the threads of ``wide`` hold, for each scale."""
        shape = len(self._sum._scales), self._processors, 2 * self._side**2, WIDE_THREADS
        return torch.zeros(shape, dtype=torch.int64, device=self._device)

    def points(self, cells: Tensor) -> Tensor:
        """Bounded grid points, (rows, padded columns)."""
        made = self._rows_of(len(cells))
        kernel = self._kernel("grid_points", cells, THREADS=POINTS_THREADS, BLOCKS=1)
        blocks = min(8 * self._processors, math.ceil(len(cells) / (4 * (POINTS_THREADS // 32))))
        kernel(blocks, POINTS_THREADS, *self._table(cells), made, self._sum._state)
        return made

    def _rows_of(self, count: int) -> Tensor:
        return torch.empty((count, self._scaling.padded), dtype=torch.float64, device=self._device)

    def _table(self, cells: Tensor) -> tuple:
        """Where the cells lie, and what is declared about them."""
        return cells, len(cells), *cells.stride(), self._declared, self._scaling.dim, self._sum._most

    def _kernel(self, name: str, cells: Tensor, **shape: int) -> Kernel:
        scaling = self._scaling
        defines = {
            "CELL": CELL_TYPES[str(cells.dtype).removeprefix("torch.")],
            "CLIP": int(self._sum._clips),
            "TRUTH": int(scaling.truth.any()),
            "FAST_DIVIDE": int(scaling.divides_fast),
            **shape,
        }
        return _compiled(name, tuple(sorted(defines.items())), self._device)


def _in_tiles(through: PublicMap) -> Array:
    """The map's numbers in the order in which mapped.cu and images.cu read them: 4 columns, band of images, image, column.
    images.cu wants an even number of bands."""
    dim = len(through.whole)
    columns = -(-dim // 8) * 8
    images = columns if dim <= MOST_FUSED else -(-dim // 16) * 16
    return padded(through.matrix, images)[:, :columns].reshape(images // 8, 8, columns // 4, 4).transpose(2, 0, 1, 3).ravel()


def padded(matrix: Array, size: int) -> Array:
    """The matrix with rows and columns of zeros behind its own."""
    larger = np.zeros((size, size))
    larger[: len(matrix), : len(matrix)] = matrix
    return larger


def _shared_bytes(side: int) -> int:
    """What wide.cu takes: two tiles of rows, whose pitch is 4 modulo 16."""
    return 2 * WIDE_ROWS * 8 * (40 * side + (12 if side % 2 else 4))


def _image_bytes(bands: int) -> int:
    """What images.cu takes: its struct Memory."""
    return 8 * (3 * 128 * math.ceil(bands / 2) + 2 * 64 * 12 + 3 * 64 * 8 + 2 * 2 * 64 + 9 * 8 * bands)


@lru_cache(maxsize=16)
def _sizes(device: Device) -> tuple[int, int]:
    """Multiprocessors, and the bytes of shared memory that a block can have."""
    found = torch.cuda.get_device_properties(device)
    return found.multi_processor_count, found.shared_memory_per_block_optin


@lru_cache(maxsize=64)
def _compiled(name: str, defines: tuple[tuple[str, object], ...], device: Device) -> Kernel:
    return Kernel(_source(name), name, dict(defines), device)


@lru_cache
def _source(name: str) -> str:
    """CUDA C++ of the kernel of that name."""
    room = resources.files("dpgram.engines")
    return "\n".join(room.joinpath(file).read_text(encoding="utf-8") for file in SOURCES[name])


def has_kernels(device: Device, scaling: Scaling) -> bool:
    """Whether gram.cu runs on the device; a warning where it should and does not."""
    if device.type != "cuda":
        return False
    why = "the declared bounds reach beyond the grid" if not scaling.within_grid else _trouble(device)
    if why:
        warnings.warn(
            f"the kernel for {device} cannot be used ({why}). PyTorch's own operations are used instead. The result is the same, but "
            f"it takes several times longer.",
            SlowDeviceWarning,
            stacklevel=2,
        )
    return why is None


@lru_cache(maxsize=16)
def _trouble(device: Device) -> str | None:
    """Why the kernels do not run on a CUDA device; None if they do. One small kernel is compiled to see it."""
    if torch.version.cuda is None:
        return "this PyTorch is not built for CUDA"
    if torch.cuda.get_device_capability(device) < (8, 0):
        return "products in double precision need compute capability 8.0 or later"
    shape = {"CELL": "double", "BANDS": 1, "STEPS": 1, "CLIP": 1, "TRUTH": 1, "FAST_DIVIDE": 1}
    try:
        _compiled("gram", tuple(sorted({**shape, "THREADS": 32, "BLOCKS": 1}.items())), device)
    except (KernelError, OSError, AttributeError) as error:
        return str(error).splitlines()[0]
    return None
