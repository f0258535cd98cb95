"""From counts to findings in words. Shares come from the rows; examples in the words do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dpgram.checking.collinear import collinear
from dpgram.checking.header import Header
from dpgram.checking.result import ColumnShares, Finding
from dpgram.checking.tally import ColumnTally, reason_of
from dpgram.checking.units import UnitCounts, UnitTally
from dpgram.checking.whole import WholeTally
from dpgram.errors import ColumnTypeError
from dpgram.rows.gram_sum import GramSum
from dpgram.terms.columns import DROP_ROW, INDICATOR, Categorical, Column, Date, Numeric
from dpgram.terms.schema import Schema
from dpgram.terms.words import percent

MUCH_MISSING = 0.05  # of the cells of a column, or of rows that are dropped
MUCH_OUTSIDE = 0.005  # of the cells that are clamped, of rows that are clipped, of units with too many rows
MOSTLY = 0.5
FEW_LARGE = 0.01  # of the weights
MOST_NAMED = 8  # categories or columns in one sentence

FIX_BOUNDS = (
    "Compare the declared bounds with what you know of the domain. The unit may differ, such as grams for kilograms. Do not take new "
    "bounds from the rows."
)
KEEP_OR_RAISE = (
    "Keep rows_per_unit if that is what you want: a small number keeps the noise small. If you raise it, take the number from what you "
    "know of the domain, not from the rows."
)
FILLED = {
    DROP_ROW: "so their rows do not count",
    "midpoint": "and count as the middle of the bounds",
    "reference": "and count as the reference",
    False: "and count as false",
    True: "and count as true",
}


AS_WEIGHT = {"missing": "weight-missing", "clamped-lower": "weight-negative", "clamped-upper": "weight-above"}


def told(share: float) -> str:
    """A share in words. One that is not quite nothing does not look so."""
    return "less than 0.1 %" if 0 < share < 0.001 else percent(share)


def header_findings(header: Header, schema: Schema) -> Iterator[Finding]:
    """Columns that are not there, or there twice."""
    for name in header.absent:
        near = header.nearly.get(name)
        do = f"Correct the name in the schema: the table has a column {near!r}." if near else "Correct the name in the schema."
        yield Finding(name, "absent", None, "this column is named in the schema, but is not in the table", do)
    for name in header.twice:
        yield Finding(name, "twice", None, "this column is in the table more than once", "Rename the others in the source.")
    if header.withheld:
        yield Finding(
            None, "no-header", None, "the first line of the file may be a row of data, so its names are not shown here",
            "Add a line of column names to the file, spelt as in the schema.",
        )  # fmt: skip


def shares_of(tally: ColumnTally) -> ColumnShares:
    """The line of a column in the table of shares."""
    column, cells = tally.column, max(1, tally.cells)
    bounded, levels = isinstance(column, Numeric | Date), isinstance(column, Categorical)
    return ColumnShares(
        name=column.name,
        kind=column.kind,
        missing=tally.missing / cells,
        below=tally.below / cells if bounded else None,
        above=tally.above / cells if bounded else None,
        undeclared=tally.undeclared / cells if levels else None,
        unreadable=tally.unreadable / cells,
    )


def column_findings(tally: ColumnTally) -> Iterator[Finding]:
    """All that is to be said about one column."""
    column, name, cells = tally.column, tally.column.name, max(1, tally.cells)
    if tally.refused is not None:
        words = (
            f"this column is declared {column.kind}, but the table stores {tally.refused.found}, so a release will refuse it"
        )
        yield Finding(name, "wrong-kind", None, words, "Convert it in the source, or declare another kind.")
    for code, times in merged(tally.found).most_common():
        intended = code.startswith("undeclared") and isinstance(column, Categorical) and column.other
        if times and not intended:
            reason = reason_of(tally, code)
            yield Finding(name, code, times / cells, f"{told(times / cells)} of the cells are {reason.words}", reason.do)
    yield from _missing_finding(tally)
    for side, times in (("lower", tally.below), ("upper", tally.above)):
        if times > MUCH_OUTSIDE * cells:
            words = f"{told(times / cells)} of the cells lie beyond the {side} bound, and are moved to it"
            yield Finding(name, f"clamped-{side}", times / cells, words, FIX_BOUNDS)
    if tally.constant:
        yield Finding(
            name,
            "constant",
            None,
            "this column has the same value in all rows, so no regression can use it",
            "Remove it from the schema.",
        )
    elif isinstance(column, Categorical) and tally.levels.any():
        never = [
            repr(category)
            for category, times, nearly in zip(column.categories, tally.levels, tally.nearly, strict=True)
            if not times and not nearly  # how it is spelt was told above
        ]
        if never:
            words = f"no row has the declared categor{'y' if len(never) == 1 else 'ies'} {_some(never)}"
            do = "Check how it is spelt. If it is just rare, keep it."
            if len(never) > 1:
                do = "Check how they are spelt. If they are just rare, keep them."
            yield Finding(name, "empty-category", None, words, do)


def merged(found: Counter[str]) -> Counter[str]:
    """Dates that can be read in two ways are read as the others of their column, where these agree."""
    merged = Counter(found)
    sure = [code for code in ("day-first", "month-first") if found[code]]
    if found["day-or-month"] and len(sure) == 1:
        merged[sure[0]] += merged.pop("day-or-month")
    return merged


def _missing_finding(tally: ColumnTally) -> Iterator[Finding]:
    column, share = tally.column, tally.missing / max(1, tally.cells)
    kept_apart = column.missing in (INDICATOR, "level")
    if share <= (MOSTLY if kept_apart else MUCH_MISSING):
        return
    words, do = f"{told(share)} of the cells are missing", "Check whether the column is worth its noise."
    if not kept_apart:
        words += f", {FILLED.get(column.missing, 'and count as the declared value')}"
        rule = rule_for_missing(column)
        do = "Remove the column." if column.missing == rule else f'Remove the column, or declare missing = "{rule}".'
        if rule == INDICATOR:
            drops = "Keep drop-row" if column.missing == DROP_ROW else 'Declare "drop-row" instead'
            do += f" {drops} if regressions should explain this column."  # one with an indicator can be no target
    if tally.missing == tally.cells:
        do = "Correct the source, or remove the column."
    yield Finding(column.name, "missing", share, words, do)


def rule_for_missing(column: Column) -> str:
    """What keeps the missing cells of a column apart from the others, or their rows."""
    return {"categorical": "level", "boolean": DROP_ROW}.get(column.kind, INDICATOR)


def whole_findings(whole: WholeTally) -> Iterator[Finding]:
    """All that is to be said about rows as a whole, and about columns together."""
    rows = max(1, whole.rows)
    if not whole.rows:
        yield Finding(None, "no-rows", None, "the table has no rows", "Check the source.")
        return
    if whole.dropped > MUCH_MISSING * rows:
        worst = whole.dropped_for.most_common(1)[0][0]
        words = (
            f"{told(whole.dropped / rows)} of the rows are dropped for a missing or unreadable cell, most of them for {worst}"
        )
        do = f"Correct the cells of {worst}, remove it from the schema, or declare another rule for its missing cells."
        yield Finding(None, "dropped-rows", whole.dropped / rows, words, do)
    if whole.clipped > MUCH_OUTSIDE * rows:
        words = f"{told(whole.clipped / rows)} of the rows are longer than the row bound, and are clipped to it"
        yield Finding(None, "clipped-rows", whole.clipped / rows, words, "Declare a larger row_bound, or leave it out.")
    gram, schema = whole.gram, whole.schema
    if gram is None or schema is None:
        return
    if gram.rows <= len(schema.encoded):
        words = "there are no more rows that count than columns of the Gram matrix, so collinear columns cannot be told"
        yield Finding(None, "few-rows", None, words, "Declare fewer columns.")
    yield from _collinear_findings(gram, schema)


def _collinear_findings(gram: GramSum, schema: Schema) -> Iterator[Finding]:
    """One for each column of which something follows from others: of a categorical column that may be several levels."""
    together: dict[str, tuple[dict[str, None], dict[str, None]]] = {}  # by column: what follows, and from what, in order
    for places in collinear(gram, schema.intercept):
        *others, last = (schema.encoded[place] for place in places)
        follows, given = together.setdefault(str(last.column), ({}, {}))
        follows[last.name] = None
        given.update(dict.fromkeys(each.name for each in others))
    for column, (follows, given) in together.items():
        which = "this column follows" if [*follows] == [column] else f"{_some([*follows])} follow{'s' * (len(follows) == 1)}"
        words = f"{which} exactly from {_some([*given])}, so a regression cannot use them together"
        yield Finding(column, "collinear", None, words, "Remove one of them from the schema.")


def _some(names: list[str]) -> str:
    """The names, as far as one sentence can hold them."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def refusal(error: ColumnTypeError) -> Finding:
    """What is to be said about a column of ids or weights that a release will refuse."""
    words = f"this column is the {error.kind}, and needs {error.needed}, but the table stores {error.found}, so a release will refuse it"
    return Finding(error.column, "wrong-kind", None, words, "Convert it in the source.")


def unit_findings(units: UnitTally, counts: UnitCounts | None, schema: Schema, rows: int) -> Iterator[Finding]:
    """What is to be said about ids."""
    name, most, rows = schema.unit_id, schema.most_rows, max(1, rows)
    if units.without:
        words = f"{told(units.without / rows)} of the rows have no id, and do not count"
        yield Finding(name, "no-id", units.without / rows, words, "Give each row an id in the source.")
    if units.saying_nothing:
        share = units.saying_nothing / rows
        words = f"{told(share)} of the rows have a word for a missing id, such as NA or a blank, and rows with the same word count as those"
        do = "Leave such ids empty in the source. Rows without an id do not count."
        yield Finding(name, "placeholder-ids", share, f"{words} of one {schema.unit}", do)
    if units.fractions:
        share = units.fractions / rows
        words = f"{told(share)} of the rows have an id with a fraction, such as 7.25, although ids are whole numbers or text"
        do = "Check that this is the column of ids. If it is, store it as text: as numbers, 7.1 and 7.10 are one id."
        yield Finding(name, "fractional-ids", share, words, do)
    if counts is None:
        yield Finding(
            name, "too-many-ids", None, "there are too many different ids to count here", "Check a sample of the units."
        )
        return
    share = counts.above / max(1, counts.units)
    if share > MUCH_OUTSIDE:
        words = f"{told(share)} of the units have more than {most} row{'s' if most > 1 else ''}, so their rows count with less weight"
        yield Finding(name, "rows-per-unit", share, words, KEEP_OR_RAISE)
    crowded, crowd = units.crowded(most)
    if crowd > max(MUCH_OUTSIDE * rows, units.saying_nothing):
        share = crowd / rows
        which = "the same id" if crowded == 1 else f"one of {crowded} ids"
        words = f"{told(share)} of the rows have {which}, and no other id has even a tenth as many rows"
        do = "If they stand for a missing id, such as 0, -1 or 9999, leave such ids empty in the source. Rows without an id do not count."
        yield Finding(name, "crowded-ids", share, words, do)
    if counts.alike:
        share = counts.alike / counts.units
        words = (
            f"{told(share)} of the ids differ from another id only in how they are written, such as in case, white space, leading zeros, a "
            f"decimal point, quotation marks, dashes, characters that cannot be seen or Unicode form, and count as other units"
        )
        yield Finding(
            name,
            "ids-alike",
            share,
            words,
            f"Write each id in one way in the source. Otherwise one {schema.unit} counts as several.",
        )


def weight_findings(weight: ColumnTally, zero: int, large: int) -> Iterator[Finding]:
    """What is to be said about weights, which were counted as a column from 0 to the largest weight; ``zero`` of them are zero, and
    ``large`` of them are above a tenth of the largest weight."""
    name, cells = weight.column.name, max(1, weight.cells)
    if weight.refused is not None:
        yield refusal(weight.refused)
    yield from (each for each in column_findings(weight) if each.code not in (*AS_WEIGHT, "wrong-kind", "constant", "codes"))
    for code, times, words, do in (
        ("weight-missing", weight.missing, "of the weights are missing, and their rows do not count", "Add them in the source."),
        ("weight-negative", weight.below, "of the weights are negative, and count as zero", "Correct them in the source."),
        (
            "weight-above", weight.above, "of the weights are above largest_weight, and count as that",
            "Keep largest_weight if you cut off large weights on purpose. Otherwise take a larger one from the design of the survey.",
        ),
    ):  # fmt: skip
        if times:
            yield Finding(name, code, times / cells, f"{told(times / cells)} {words}", do)
    positive = weight.cells - weight.missing - weight.unreadable - weight.below - zero
    if large < FEW_LARGE * positive:
        share = 1 - large / positive
        words = (
            f"{told(share)} of the weights above zero are less than a tenth of largest_weight. The noise is that of rows with the largest "
            f"weight, so it is large compared with such rows"
        )
        do = (
            "Check that this is the right column, and on the scale of largest_weight. A smaller largest_weight costs little if few weights "
            "are cut off. Take it from the design of the survey, not from the rows."
        )
        yield Finding(name, "weight-small", share, words, do)
    if zero > MOSTLY * cells:
        words = f"{told(zero / cells)} of the weights are zero, so their rows do not count"
        yield Finding(name, "weight-zero", zero / cells, words, "Check that this is the right column.")
