"""Numbers that can be read, but may mean something else: codes for a missing value, and points that may separate thousands."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.encoding.cells import as_text

Array = np.ndarray
MISSING_CODES = np.array([sign * (10.0**k - 1) for k in range(2, 8) for sign in (-1, 1)] + [-9.0, -88.0, -888.0, -77.0, -777.0])
MANY_CODES = 0.005  # of the cells of a column
GROUPED = r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$"  # a number of thousands begins with another digit than 0
ENOUGH_POINTS = 20  # cells


class Codes:
    """Numbers such as -999 that lie outside the bounds.

    Other numbers may be outside as well, and one of them may happen to look like a code. So codes count if they are many, and most of what
    lies beyond their bound, or if they are farther from all other numbers than these are from each other."""

    def __init__(self, lower: float, upper: float):
        self._lower, self._upper = lower, upper
        self._codes: Counter[float] = Counter()
        self._cells = self._below = self._above = 0  # the last two without codes
        self._lowest, self._highest = np.inf, -np.inf  # likewise

    def add(self, values: Array) -> None:
        """Count the numbers of a column, none of them missing."""
        outside = (values < self._lower) | (values > self._upper)
        codes = outside.copy()
        codes[outside] = np.isin(values[outside], MISSING_CODES)
        self._codes.update(values[codes].tolist())
        others = values[~codes]
        self._cells += len(values)
        self._below += int((others < self._lower).sum())
        self._above += int((others > self._upper).sum())
        self._lowest = min(self._lowest, others.min(initial=np.inf))
        self._highest = max(self._highest, others.max(initial=-np.inf))

    @property
    def cells(self) -> int:
        """How many cells are likely to hold a code."""
        below = {code: times for code, times in self._codes.items() if code < self._lower}
        above = {code: times for code, times in self._codes.items() if code > self._upper}
        return self._likely(below, self._below) + self._likely(above, self._above)

    def _likely(self, codes: dict[float, int], others: int) -> int:
        times = sum(codes.values())
        if times > max(MANY_CODES * self._cells, others):
            return times
        apart = self._highest - self._lowest
        return sum(n for code, n in codes.items() if not self._lowest - apart <= code <= self._highest + apart)


class Points:
    """Texts such as 12.345, as long as all texts with a point are like that, and most of them would lie within the bounds as 12345."""

    def __init__(self, lower: float, upper: float):
        self._lower, self._upper = lower, upper
        self._possible = True
        self._pointed = self._within = 0

    def add(self, texts: pa.Array, values: Array) -> None:
        """Count the texts of cells, and the numbers that they were read as. Ordinary decimals are seen as such in the first batch."""
        if not self._possible:
            return
        text = as_text(texts.filter(pa.array(~np.isnan(values))))
        pointed = pc.match_substring(text, ".")
        some = pc.utf8_trim_whitespace(text.filter(pointed))
        self._possible = pc.all(pc.match_substring_regex(some, GROUPED)).as_py() is not False
        thousands = 1000 * values[~np.isnan(values)][np.asarray(pointed)]
        self._pointed += len(some)
        self._within += int(((thousands >= self._lower) & (thousands <= self._upper)).sum())

    @property
    def cells(self) -> int:
        """How many cells have a point that may separate thousands."""
        likely = self._possible and self._pointed >= ENOUGH_POINTS and 2 * self._within > self._pointed
        return self._pointed if likely else 0
