"""Self-tests whose right answers are known: from whole numbers, from the literature, or from bits that every machine must give.

They take a fraction of a second. They find a broken installation (a kernel for another machine, a library that flushes small numbers to
zero, a damaged python-flint), not a mistake in dpgram: its test suite is for those."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.native import library
from dpgram.native.library import COLUMN, INSTRUCTIONS, NUMBER, Kernel, MapPanels
from dpgram.rows.clip import GRID, clip, largest_square, mapped
from dpgram.rows.gram_sum import integer_gram
from dpgram.terms.budget import Budget
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales, first_scales

Array = np.ndarray
DIM, ROWS = 7, 1000  # of the made-up table; the kernel multiplies four columns of a map at a time, and three
FREE, TIGHT = math.sqrt(DIM), 0.75  # row bounds: no row is longer than the first, nearly every row is longer than the second
RANDOM_BYTES = 1 << 16
MOST_SDS = 7.5  # of the count of ones among random bits: a fair source is further off in 1 of 10^13 runs


class SelfTestError(Exception):
    """A self-test gave a wrong answer."""


@dataclass(frozen=True)
class Result:
    """What a self-test found."""

    name: str
    passed: bool
    words: str


def expect(right: object, what: str) -> None:
    """Raise unless ``right``."""
    if not right:
        raise SelfTestError(what)


def floating_point() -> str:
    """Proofs about sums and rounding assume IEEE 754 arithmetic; a library compiled with -ffast-math can switch parts of it off."""
    tiny, one, half_step = (
        np.array([5e-324]),
        np.ones(1),
        np.array([2.0**-53]),
    )  # arrays, so that nothing is computed beforehand
    expect((tiny * one)[0] > 0, "numbers below 2.2e-308 are flushed to zero")
    to_even = (one + half_step == one) & (one + 3 * half_step == one + 4 * half_step)
    expect(to_even.all(), "sums are not rounded to the nearest float")
    return "rounds to nearest and keeps the smallest numbers"


def gram_sums() -> str:
    """Sums over made-up rows, by NumPy and by every instruction set of the kernel, against Python's whole numbers."""
    cells = made_up_cells()
    whole = [[int(cell * GRID) for cell in column] for column in cells]
    right = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in whole] for one in whole]
    expect(integer_gram(clip(cells, FREE).points).tolist() == right, "NumPy sums whole numbers inexactly")
    shrunk = clip(cells, TIGHT).points
    lengths = [sum(int(point) ** 2 for point in row) for row in shrunk.T]
    expect(max(lengths) <= largest_square(TIGHT), "a clipped row is longer than its bound")
    kernels = installed_kernels()
    for compiled in kernels:
        name = INSTRUCTIONS[compiled.isa]
        expect(kernel_sum(compiled, cells, FREE).tolist() == right, f"the kernel ({name}) sums whole numbers inexactly")
        same = (kernel_sum(compiled, cells, TIGHT) == integer_gram(shrunk)).all()
        expect(same, f"the kernel ({name}) clips rows otherwise than NumPy")
    return f"exact in {', '.join(['NumPy', *(INSTRUCTIONS[each.isa] for each in kernels)])}"


def made_up_cells() -> Array:
    """From -1 to 1, on the grid; rows are columns."""
    steps = np.arange(DIM)[:, None] * 104_729 + np.arange(ROWS)[None, :] * 7_919
    return (steps % (2 * GRID + 1) - GRID) / GRID


def mapped_sums() -> str:
    """The same for rows that are multiplied by a public map first, as whitened-noise does: short ones against Python's whole numbers, long
    ones, at one scale and at several, by the kernel against NumPy."""
    cells = made_up_cells()
    numbers = np.arange(1, DIM**2 + 1).reshape(DIM, DIM) * 611_953 % 2**21 - 2**20
    short, long = (PublicMap(numbers, np.full(DIM, bits)) for bits in (25, 12))
    images = [
        [_cut(sum(a * int(b * GRID) for a, b in zip(one, row, strict=True)), 25) for row in cells.T] for one in numbers.tolist()
    ]
    right = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in images] for one in images]
    expect(integer_gram(mapped(cells, 1.0, short).points).tolist() == right, "NumPy maps rows inexactly")
    kernels = installed_kernels()
    for compiled in kernels:
        name = INSTRUCTIONS[compiled.isa]
        found = kernel_sum(compiled, cells, 1.0, short)
        expect(found.tolist() == right, f"the kernel ({name}) maps rows inexactly")
        for bound, scales in ((TIGHT, ONE_CLIP), (1.0, first_scales(3))):
            rows = mapped(cells, bound, long, scales)
            same = kernel_sum(compiled, cells, bound, long, scales) == [
                integer_gram(part) for part in (rows.points, *rows.outer)
            ]
            expect(np.all(same), f"the kernel ({name}) clips mapped rows otherwise than NumPy")
    return f"exact in {', '.join(['NumPy', *(INSTRUCTIONS[each.isa] for each in kernels)])}"


def _cut(number: int, bits: int) -> int:
    """Over a power of two, rounded towards zero."""
    return number >> bits if number >= 0 else -(-number >> bits)


def installed_kernels() -> list[Kernel]:
    """The compiled kernel once for each instruction set that this machine can run; none where there is no kernel."""
    if not library.FILE.is_file():
        return []
    return [Kernel(library.FILE, isa) for isa in range(Kernel(library.FILE).isa + 1)]


def kernel_sum(
    compiled: Kernel, cells: Array, row_bound: float, through: PublicMap | None = None, scales: Scales = ONE_CLIP
) -> Array:
    """The Gram sum of rows that are columns of ``cells``, in grid units, by the compiled kernel; at several scales one of each."""
    table = np.zeros(len(cells), dtype=COLUMN)
    table["data"], table["stride"] = [column.ctypes.data for column in cells], cells.itemsize
    table["rule"], table["lower"], table["upper"], table["half"] = NUMBER, -1, 1, 1
    total = np.zeros((len(scales), len(cells), len(cells)), dtype=np.int64)
    panels = None if through is None else MapPanels(through.whole, through.exponents, scales)
    room = compiled.scratch(len(cells), len(scales))
    compiled.add(table, cells.shape[1], largest_square(row_bound), room, total, panels)
    whole = np.triu(total) + np.triu(total, 1).transpose(0, 2, 1)
    return whole if len(scales) > 1 else whole[0]


def exact_arithmetic() -> str:
    """Real numbers against whole ones, and noise from a seed against the bits that every machine must give."""
    from flint import arb

    from dpgram.sampling.exact import ExactSource
    from dpgram.sampling.reals import below, refine

    expect(refine(lambda bits: below(arb(2).sqrt(), -200)) == math.isqrt(2 << 400), "the square root of 2 is wrong")
    pi = 3_141_592_653_589_793_238_462_643_383_279  # the first 31 digits
    expect(refine(lambda bits: below(arb.pi() * 10**30, 0)) == pi, "pi is wrong")
    for first_bits in (64, 128, 1024):
        source = ExactSource(20, first_bits=first_bits)
        root = source.normal(3.0, (3, 3))
        drawn = source.publish(root @ root.mT, 2.0**-20) * 2**20
        expect(drawn.tolist() == SEEDED, f"noise from a seed has other bits ({first_bits} bits of precision)")
    return "noise has the known bits, at every precision"


SEEDED = [  # what ``exact_arithmetic`` draws, in units of 2^-20
    [8830399.0, 1337921.0, 1707764.0],
    [1337921.0, 11200435.0, -12242004.0],
    [1707764.0, -12242004.0, 18744788.0],
]


def calibration() -> str:
    """The noise of a budget against published numbers, and from the private side."""
    budget = Budget(1.0, 1e-6)
    mu = calibrate_mu(budget)
    expect(round(1 / mu, 4) == 4.2247, f"epsilon 1 and delta 1e-6 need noise of 4.2247 sensitivities, not {1 / mu:.6g}")
    expect(gaussian_delta(1.0, mu) <= budget.delta, "the calibrated noise does not meet its budget")
    expect(math.isclose(gaussian_delta(1.0, 1.0), 0.12693673750664397, rel_tol=1e-12), "the Gaussian privacy curve is wrong")
    return "meets the known privacy curve"


def randomness() -> str:
    """The operating system's source must give different bits each time, and about as many ones as zeros."""
    first, second = os.urandom(RANDOM_BYTES), os.urandom(RANDOM_BYTES)
    expect(first != second, "the operating system's source repeated itself")
    ones = int(np.unpackbits(np.frombuffer(first + second, np.uint8)).sum())
    bits = 16 * RANDOM_BYTES
    expect(abs(ones - bits / 2) <= MOST_SDS * math.sqrt(bits) / 2, "the operating system's source favours one bit")
    return "the operating system's cryptographic source (os.urandom)"


SELF_TESTS: dict[str, Callable[[], str]] = {
    "floating point": floating_point,
    "Gram sums": gram_sums,
    "mapped sums": mapped_sums,
    "exact arithmetic": exact_arithmetic,
    "calibration": calibration,
    "randomness": randomness,
}


def run_self_tests() -> list[Result]:
    """Every self-test. Whatever one of them raises is a failure of it, and the others go on."""
    return [_run(name, test) for name, test in SELF_TESTS.items()]


def _run(name: str, test: Callable[[], str]) -> Result:
    try:
        return Result(name, True, test())
    except SelfTestError as error:
        return Result(name, False, str(error))
    except Exception as error:
        return Result(name, False, f"{type(error).__name__}: {error}")
