"""A check in words: a table of shares, the findings, and suggested lines, between two lines that say it is not for publication."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from dpgram.checking.result import NOTICE, Check
from dpgram.checking.suggest import WHY_NO_BOUNDS

WIDTH = 100
SHARES = {
    "rows_dropped": "rows dropped for a missing or unreadable cell",
    "rows_clipped": "rows clipped at the row bound",
    "rows_counting": "rows that count",
    "rows_without_id": "rows without an id",
    "rows_with_placeholder_id": "rows with a word for a missing id",
    "units_above_rows_per_unit": "units with more than rows_per_unit rows",
    "ids_alike": "ids that differ only in how they are written",
    "weights_missing": "weights that are missing",
    "weights_unreadable": "weights that are unreadable",
    "weights_negative": "weights below zero",
    "weights_zero": "weights of zero",
    "weights_above_largest": "weights above largest_weight",
}


def in_words(check: Check) -> str:
    """All of it, as text."""
    return "\n".join(_lines(check))


def _lines(check: Check) -> Iterator[str]:
    rows = "" if check.table_rows is None else f", {check.table_rows:,} row{'' if check.table_rows == 1 else 's'}"
    yield from (NOTICE, "", f"{check.where}{rows}", "")
    if check.columns:
        yield from _table(check)
        yield ""
    for name, words in SHARES.items():
        if (share := check.whole.get(name)) is not None:
            worst = check.whole.get("rows_dropped_most_for") if name == "rows_dropped" else None
            yield f"{words:<46} {_percent(share):>7}{f', most of them for {worst}' if worst else ''}"  # type: ignore[arg-type]
    if check.unused:
        yield from ("", *textwrap.wrap(f"Not in the schema, so not read: {', '.join(check.unused)}.", WIDTH))
    yield ""
    if not check.findings:
        yield "Nothing was found that a release would get wrong."
    else:
        yield f"{len(check.findings)} finding{'s' if len(check.findings) > 1 else ''}"
    for number, each in enumerate(check.findings, 1):
        about = f"{each.column}: " if each.column is not None else ""
        yield from textwrap.wrap(f"{number}. {about}{each.words}. {each.do}", WIDTH, subsequent_indent=" " * 4)
    if check.suggestions:
        yield from ("", "Suggested lines for the schema")
        for one in check.suggestions:
            yield f"  {'' if one.column is None else one.column + ': '}{one.line}"
            if one.column is not None and not one.line.startswith("#"):
                yield from textwrap.wrap(one.why, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
        yield from textwrap.wrap(WHY_NO_BOUNDS, WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield from ("", NOTICE)


def _table(check: Check) -> Iterator[str]:
    """Shares of cells, a line for each column."""
    header = ("column", "kind", "missing", "below", "above", "undeclared", "unreadable")
    rows = [
        (each.name, each.kind, *map(_percent, (each.missing, each.below, each.above, each.undeclared, each.unreadable)))
        for each in check.columns
    ]
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    for row in (header, *rows):
        cells = (f"{cell:<{w}}" if i < 2 else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        yield "  ".join(cells).rstrip()


def _percent(share: float | None) -> str:
    """A share with one digit behind the point. One that is not quite nothing or all does not look so."""
    if share is None:
        return ""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if 0.999 < share < 1 else f"{100 * share:.1f} %"
