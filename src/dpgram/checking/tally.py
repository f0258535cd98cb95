"""What is counted of one column, a batch at a time: cells that are missing, clamped, undeclared or unreadable, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from dpgram.checking import amounts, reasons
from dpgram.checking.doubtful import Codes, Points
from dpgram.checking.reasons import READ, Reason
from dpgram.encoding.cells import as_numbers, as_text, levels_of, plain
from dpgram.encoding.encode import Cells, cells_of
from dpgram.encoding.types import as_bytes, check_type, is_date, is_number, is_text
from dpgram.errors import ColumnTypeError
from dpgram.terms.columns import DROP_ROW, Boolean, Categorical, Column, Date, Numeric, bounds

Array = np.ndarray
MOST_COMPARED = 2000  # different texts of a column whose spelling is compared with the categories: it takes long


class ColumnTally:
    """Counts the cells of a declared column, all batches together."""

    def __init__(self, column: Column, given: pa.DataType, *, untyped: bool):
        self.column = column
        self.refused: ColumnTypeError | None = None if untyped else _refusal(column, given)
        inner = given.value_type if pt.is_dictionary(given) else given
        self.known = is_text(inner) or is_number(inner) or is_date(inner) or pt.is_boolean(inner) or pt.is_null(inner)
        self._readable = self.refused is None or is_text(inner)  # text is looked at as that of a CSV file would be
        self.rules = _rules(column)
        self.cells = self.missing = self.below = self.above = 0
        self.found: Counter[str] = Counter()  # by the code of a reason
        self.levels = np.zeros(len(column.categories) if isinstance(column, Categorical) else 0, dtype=np.int64)
        self.nearly = np.zeros(len(self.levels), dtype=bool)  # levels that some cell spells otherwise
        self._doubtful = (Codes(*bounds(column)), Points(*bounds(column))) if isinstance(column, Numeric) else None
        self._lowest, self._highest = np.inf, -np.inf
        self._misspelt: dict[str, int] = {}  # by text: the place of the category that it is close to, or -1

    @property
    def undeclared(self) -> int:
        """Cells that hold something which is not among the categories."""
        return sum(times for code, times in self.found.items() if code in UNDECLARED)

    @property
    def unreadable(self) -> int:
        """Cells that hold something which is not of the declared kind."""
        return sum(times for code, times in self.found.items() if code not in UNDECLARED | READ)

    @property
    def constant(self) -> bool:
        """Whether all rows that count have the same cell. Cells that were not read are filled with another, unless they drop their row."""
        unread = self.missing + self.undeclared + self.unreadable
        alike = self._lowest == self._highest and self.cells - unread > 1
        return alike and (unread == 0 or self.column.missing == DROP_ROW)

    def add(self, given: Cells) -> Array:
        """Count the cells. Returns them as ``cells_of`` does. May raise with cells in the message: call it quietly."""
        cells = plain(pa.array(np.ascontiguousarray(given)) if isinstance(given, np.ndarray) else given)
        if is_text(cells.type):
            cells = as_bytes(cells)  # of views Arrow takes none
        self.cells += len(cells)
        if not self.known:
            return np.full(len(cells), np.nan)
        values = cells_of(self.column, cells) if self._readable else np.full(len(cells), np.nan)
        if isinstance(self.column, Categorical):
            self._add_levels(cells)
        else:
            self._explain(self.rules, cells, np.isnan(values))
        self._add_range(values)
        if self._doubtful is not None:
            codes, points = self._doubtful
            codes.add(values[~np.isnan(values)])
            if is_text(cells.type):
                points.add(cells, values)
            self.found["codes"], self.found["thousands-points"] = codes.cells, points.cells  # of all batches together
        return values

    def _add_range(self, values: Array) -> None:
        there = values[~np.isnan(values)]
        if isinstance(self.column, Numeric | Date):
            lower, upper = bounds(self.column)
            outside = there[(there < lower) | (there > upper)]
            self.below += int((outside < lower).sum())
            self.above += int((outside > upper).sum())
        if len(there):
            self._lowest, self._highest = min(self._lowest, there.min()), max(self._highest, there.max())

    def _add_levels(self, cells: pa.Array) -> None:
        """Count the levels of a categorical column, and why cells have none."""
        column = self.column
        assert isinstance(column, Categorical)
        if not self._readable:
            rules = self.rules if column.matches_numbers else reasons.OTHERS
            self._explain(rules, cells, np.ones(len(cells), dtype=bool))
            return
        place, present = levels_of(cells, column.categories)
        self.levels += np.bincount(place[~np.isnan(place)].astype(np.int64), minlength=len(self.levels))
        outside = np.isnan(place) & present
        if column.matches_numbers:
            self.found["undeclared"] += int(outside.sum())
            self._explain(self.rules, cells, ~present)
            return
        self._explain(self.rules, cells, np.isnan(place) & ~present)  # empty, or not UTF-8
        texts, times = _each(as_text(cells.filter(pa.array(outside))))
        nothing = np.asarray(reasons.says_nothing(reasons.plain_words(texts)))
        self.found["none-words"] += int(times[nothing].sum())
        texts, times = texts.filter(pa.array(~nothing)), times[~nothing]
        for code in (*WRITTEN, "misspelt"):
            places = self._misspelt_places(texts) if code == "misspelt" else _places(WRITTEN[code], texts, column)
            near = places >= 0
            self.found[code] += int(times[near].sum())
            self.nearly[places[near]] = True
            texts, times = texts.filter(pa.array(~near)), times[~near]
        self.found += reasons.explained(reasons.OTHERS, reasons.plain_words(texts), times)

    def _misspelt_places(self, texts: pa.Array) -> Array:
        """Which category each text is close to; -1 for none. Numbers and dates are close to each other by nature: they count as close to
        none."""
        words = reasons.plain_words(texts).to_pylist()
        declared = reasons.plain_words(_declared(self.column)).to_pylist()
        for word in words:
            if word not in self._misspelt and len(self._misspelt) < MOST_COMPARED:
                spelt = not any(letter.isdigit() for letter in word)
                close = get_close_matches(word, declared, n=1, cutoff=0.8) if spelt else []
                self._misspelt[word] = declared.index(close[0]) if close else -1
        return np.array([self._misspelt.get(word, -1) for word in words], dtype=np.int64)

    def _explain(self, rules: dict[str, Reason], cells: pa.Array, unread: Array) -> None:
        """Count cells that were not read: as missing, or by why."""
        if not unread.any():
            return
        some = cells.filter(pa.array(unread))
        infinite = int(np.isinf(_floats(some)).sum()) if pt.is_floating(some.type) else 0
        self.found["not-finite"] += infinite
        text = as_text(some)
        garbled = _garbled(some, text)
        self.found["not-utf8"] += garbled
        texts, times = _each(reasons.plain_words(text))
        nothing = np.asarray(reasons.says_nothing(texts))
        self.missing += len(some) - int(times[~nothing].sum()) - infinite - garbled
        self.found += reasons.explained(rules, texts.filter(pa.array(~nothing)), times[~nothing])


UNDECLARED = frozenset([*reasons.LEVELS, *reasons.OTHERS])


def _refusal(column: Column, given: pa.DataType) -> ColumnTypeError | None:
    """Why a release would refuse a column of this type; None if it would not."""
    try:
        check_type(column, given)
    except ColumnTypeError as error:
        return error
    return None


def _rules(column: Column) -> dict[str, Reason]:
    """The reasons that cells of a column can have, by code, in the order in which they are tried."""
    match column:
        case Date():
            return reasons.DAYS
        case Boolean():
            return reasons.TRUTHS
        case Categorical() if not column.matches_numbers:
            return {**reasons.LEVELS, **reasons.OTHERS}
        case Categorical():
            return {**amounts.NUMBERS, "text": amounts.TEXT_FOR_CODES, "undeclared": reasons.OTHERS["undeclared"]}
    return amounts.NUMBERS


def reason_of(tally: ColumnTally, code: str) -> Reason:
    """The words of a code that was found in a column."""
    return tally.rules.get(code) or reasons.COMMON.get(code) or amounts.NUMBERS[code]


def _each(texts: pa.Array) -> tuple[pa.Array, Array]:
    """Every text once, and how often it occurs. Nulls are left out."""
    counted = texts.drop_null().value_counts()
    return counted.field("values"), np.asarray(counted.field("counts"))


def _floats(cells: pa.Array) -> Array:
    return np.asarray(cells.cast(pa.float64()).fill_null(0.0))


def _garbled(cells: pa.Array, text: pa.Array) -> int:
    """How many cells hold bytes that are no text."""
    if not is_text(cells.type):
        return 0
    return int(pc.sum(pc.and_(pc.greater(pc.binary_length(cells).fill_null(0), 0), text.is_null())).as_py() or 0)


def _places(written: Callable[[pa.Array], pa.Array], texts: pa.Array, column: Column) -> Array:
    """Which category each text is, once both are ``written`` alike; -1 for none."""
    found = pc.index_in(written(texts), value_set=written(_declared(column)), skip_nulls=True)
    return np.asarray(found.fill_null(-1), dtype=np.int64)


def _declared(column: Column) -> pa.Array:
    assert isinstance(column, Categorical)
    return pa.array(column.categories, pa.large_string())


def _as_form(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(reasons.in_one_form(texts))


def _without_quotes(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim(texts, characters=reasons.QUOTES)


def _as_number(texts: pa.Array) -> pa.Array:
    return pa.array(as_numbers(texts), from_pandas=True)


WRITTEN: dict[str, Callable[[pa.Array], pa.Array]] = {
    "white-space": pc.utf8_trim_whitespace,
    "case": pc.utf8_lower,
    "case-and-white-space": reasons.plain_words,
    "other-form": _as_form,
    "in-quotes": _without_quotes,
    "written-otherwise": _as_number,
}  # how texts that are not among the categories may differ from them, in the order in which it is tried
