"""Finds and loads the compiled kernel. Without one, or with DPGRAM_KERNEL=numpy, NumPy does the same work to the same bits."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import c_double, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

import numpy as np

from dpgram.errors import BoundBrokenError, OptionError

Array = np.ndarray

CHOICE = "DPGRAM_KERNEL"
FILE = Path(__file__).parent / "_kernel.so"
CELLS = ("f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")  # in the order of kernel.h
TIMES = {unit: len(CELLS) + place for place, unit in enumerate(("s", "ms", "us", "ns"))}  # ticks since 1970, by their unit
BITS = len(CELLS) + len(TIMES)
ONE, NUMBER, TRUTH, LEVEL, ABSENT = range(5)
NO_LEVEL = 2**16 - 1  # a cell of a LEVEL that is in none of them
ROWS_PER_TOTAL = 2**22  # at most: 2^22 products of at most 2^40 stay below 2^63
INSTRUCTIONS = ("plain", "AVX2", "AVX-512")


# One encoded column of some rows: ``struct column`` of kernel.h.
COLUMN = np.dtype(
    [
        ("data", np.uintp),
        ("stride", np.int64),
        ("valid", np.uintp),
        ("first_valid", np.int64),
        ("cells", np.int32),
        ("rule", np.int32),
        ("drop", np.int32),
        ("lower", np.float64),
        ("upper", np.float64),
        ("centre", np.float64),
        ("half", np.float64),
        ("fill", np.float64),
        ("level", np.float64),
    ],
    align=True,
)


# ``struct map`` of kernel.h.
MAP = np.dtype(
    [
        *((name, np.uintp) for name in ("panels", "spans", "scales")),
        *((name, np.int64) for name in ("fours", "threes", "outer")),
    ],
    align=True,
)


class MapPanels:
    """A public map and the scales of its clip, laid out for the kernel: panels of four rows, and of three so that few rows are left over.

    Its numbers are whole ones times the power of two of their row, which float64 holds exactly."""

    def __init__(self, whole: Array, exponents: Array, scales: Sequence[float] = (1.0,)):
        dim = len(whole)
        count = -(-dim // 4)
        threes = min(4 * count - dim, count)
        heights = [4] * (count - threes) + [3] * threes
        padded = np.zeros((sum(heights), dim))
        padded[:dim] = np.ldexp(whole.astype(np.float64), -exponents[:, None].astype(np.int32))
        panels = np.split(padded, np.cumsum(heights)[:-1])
        used = [(panel != 0).any(axis=0) for panel in panels]
        self._panels = np.concatenate([panel.T.ravel() for panel in panels])
        self._spans = np.array([(row.argmax(), (dim - row[::-1].argmax()) * row.any()) for row in used])
        self._scales = np.array(scales[1:])
        places = (held.ctypes.data for held in (self._panels, self._spans, self._scales))
        self.table = np.array([(*places, count - threes, threes, len(self._scales))], dtype=MAP)


ARGUMENTS: dict[str, tuple] = {  # of the kernel's functions, as dispatch.c and units.c declare them
    "dpgram_scratch": (c_int32, c_int32),
    "dpgram_add": (c_int32, c_void_p, c_int32, c_int64, c_double, c_void_p, c_void_p, c_void_p, c_void_p),
    "dpgram_points": (c_int32, c_void_p, c_int32, c_int64, c_int64, c_double, c_void_p, c_void_p, c_int64),
    "dpgram_add_sums": (c_int32, c_void_p, c_void_p),
    "dpgram_levels": (c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_int64, c_void_p),
    "dpgram_siphash": (c_void_p, c_void_p, c_int64, c_void_p),
    "dpgram_number_keys": (c_void_p, c_int32, c_void_p, c_int64, c_int64, c_void_p),
    "dpgram_text_keys": (c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_int64, c_void_p, c_void_p),
    "dpgram_units_new": (c_int64, c_void_p),
    "dpgram_units_free": (c_void_p,),
    "dpgram_units_size": (c_void_p, c_void_p),
    "dpgram_counting_new": (c_void_p,),
    "dpgram_counting_free": (c_void_p,),
    "dpgram_units_add": (c_void_p, c_void_p, c_int64),
    "dpgram_counting_finish": (c_void_p,),
    "dpgram_units_counts": (c_void_p, c_void_p, c_int64, c_void_p, c_void_p),
}


class Kernel:
    """The compiled functions. Python's lock is free while they run."""

    def __init__(self, file: Path, isa: int | None = None):
        library = ctypes.CDLL(str(file))
        complete = all(hasattr(library, function) for function in (*ARGUMENTS, "dpgram_layouts"))
        if not complete or library.dpgram_layouts(c_int64(COLUMN.itemsize), c_int64(MAP.itemsize)) != 0:
            raise OSError(f"{file} was compiled for another version of dpgram: install dpgram again.")
        library.dpgram_scratch.restype = c_int64
        library.dpgram_units_new.restype = library.dpgram_counting_new.restype = c_void_p
        for function, types in ARGUMENTS.items():
            getattr(library, function).argtypes = types
        self.functions = library
        self.isa = library.dpgram_best_isa() if isa is None else isa

    def scratch(self, dim: int, scales: int = 1) -> Array:
        """Room for ``add`` to work in, for one thread."""
        return np.empty(self.functions.dpgram_scratch(dim, scales - 1))

    def add(
        self,
        columns: Array,
        rows: int,
        largest_square: int,
        scratch: Array,
        total: Array,
        through: MapPanels | None = None,
        factors: Array | None = None,
    ) -> None:
        """Add the Gram of the rows, at most ROWS_PER_TOTAL, to the upper triangle of ``total``, (columns, columns) in int64.

        They are multiplied by ``through``, where it is given, before they are shrunk to ``largest_square``, and after that by ``factors``,
        one for each row. Of a map with several scales ``total`` holds a matrix for each."""
        mapped = None if through is None else through.table.ctypes.data
        parts = _one_for_each(rows, factors)
        table, room, sums = columns.ctypes.data, scratch.ctypes.data, total.ctypes.data
        if self.functions.dpgram_add(self.isa, table, len(columns), rows, largest_square, _begin(parts), mapped, room, sums):
            raise BoundBrokenError

    def points(
        self, columns: Array, rows: int, largest_square: float, out: Array | None = None, factors: Array | None = None
    ) -> Array:
        """The rows as grid points, (columns, rows), each with a sum of squares of at most ``largest_square``, then times its factor.

        ``out`` may hold more rows, and a multiple of 8; it is overwritten."""
        if out is None:
            out = np.empty((len(columns), max(8, -(-rows // 8) * 8)))
        parts = _one_for_each(rows, factors)
        table, points = columns.ctypes.data, out.ctypes.data
        room = out.shape[1]
        if self.functions.dpgram_points(self.isa, table, len(columns), 0, rows, largest_square, _begin(parts), points, room):
            raise BoundBrokenError
        return out[:, :rows]

    def add_sums(self, sums: Array, total: Array) -> None:
        """Add whole numbers in float64 to the upper triangle of ``total``, both (columns, columns)."""
        self.functions.dpgram_add_sums(len(total), sums.ctypes.data, total.ctypes.data)

    def levels(self, places: tuple[int, int, int], rows: int, levels: Array) -> Array:
        """``levels[place]`` for each of some cells, the last of them where a cell is missing; uint16.

        ``places`` are the addresses of whole numbers of 32 bits and of validity bits, zero if no cell is missing, and the place of the
        first such bit. One that is no place among the levels but the last is an IndexError."""
        found = np.empty(rows, np.uint16)
        if self.functions.dpgram_levels(*places, rows, levels.ctypes.data, len(levels) - 1, found.ctypes.data):
            raise IndexError
        return found


def _one_for_each(rows: int, factors: Array | None) -> Array | None:
    """The factors as the kernel reads them; None where there are none."""
    if factors is not None and factors.shape != (rows,):
        raise ValueError("there must be one factor for each row.")
    return None if factors is None else np.ascontiguousarray(factors, dtype=np.float64)


def _begin(array: Array | None) -> int | None:
    return None if array is None else array.ctypes.data


@cache
def kernel() -> Kernel | None:
    """The kernel of this installation, or None where it has none or DPGRAM_KERNEL=numpy asks to do without."""
    asked = os.environ.get(CHOICE, "")
    if asked not in ("", "numpy"):
        raise OptionError(f"{CHOICE} in the environment is {asked!r} and must be numpy, or left out for the compiled kernel.")
    if asked == "numpy":
        return None
    if FILE.is_file():
        return Kernel(FILE)
    sent = getattr(getattr(__spec__, "loader", None), "kernel", b"")  # on a worker to which a driver has sent this code
    return _in_memory(sent) if sent else None


def _in_memory(library: bytes) -> Kernel | None:
    """The kernel in a file that has no name and goes with the process; None where this machine cannot load it."""
    try:
        place = os.memfd_create("dpgram-kernel")
        with os.fdopen(place, "wb", closefd=False) as file:
            file.write(library)
        return Kernel(Path(f"/proc/self/fd/{place}"))
    except (AttributeError, OSError):  # another system, or another C library: NumPy gives the same bits
        return None


def kernel_name() -> str:
    """What does the sums here, in words."""
    compiled = kernel()
    return "NumPy" if compiled is None else f"compiled ({INSTRUCTIONS[compiled.isa]})"
