"""Powers and logarithms from correctly rounded operations alone: the same bits on every machine, for bounds and for cells.

NumPy's own ``log1p`` and ``power`` come from the platform's library, or from vector code that depends on the processor, and
differ in the last bits. Rows would then differ too, if only now and then, where a value falls on another grid point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray

LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # its last 21 bits are zero, so that times an exponent it is exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
SERIES = [2 / (2 * k + 1) for k in range(12)]  # of 2 atanh(s) / s in s^2; the next term is below 2^-65 for |s| < 0.172


def power(x: Any, exponent: int) -> Any:
    """A number, or an array, to a whole power of at least 1, by repeated multiplication: of one sign, it never falls as |x| grows."""
    return math.prod([x] * exponent)


def log1p(x: Array) -> Array:
    """log(1 + x) for x > -1, within four units in the last place; NaN where x is.

    With u = 1 + x rounded and c what the rounding dropped, it is log(u) + c / u; u = 2^e m with m near 1, and
    log(m) = 2 atanh(s) with s = (m - 1) / (m + 1)."""
    u = 1.0 + x
    dropped = np.where(x < 1, x - (u - 1.0), 1.0 - (u - x))
    return _log(u, dropped / u)


def log(x: Array) -> Array:
    """log(x) for x > 0, within four units in the last place; NaN where x is."""
    return _log(x, 0.0)


def _log(u: Array, further: Array | float) -> Array:
    """log(u) + further."""
    mantissa, exponent = np.frexp(u)
    low = mantissa < math.sqrt(0.5)
    mantissa = np.where(low, 2 * mantissa, mantissa)
    exponent = (exponent - low).astype(float)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square, series = s * s, np.full_like(s, SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        series = series * square + coefficient
    return exponent * LN2_HIGH + (s * series + (exponent * LN2_LOW + further))
