"""How the commands print: tables and JSON to standard output, progress to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dpgram.errors import ModelError
from dpgram.terms.words import CONTROLS, visible

if TYPE_CHECKING:
    from dpgram.report.summary import Summary

FORMATS = ("text", "latex", "markdown")
WIDTH = 120  # where standard output is no terminal


class _Output(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit with code 1


def console() -> Console:
    return _Output(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", *, words: Sequence[str] = ()
) -> None:
    """A table whose first column is text and whose others are numbers; where ``words`` names columns, these are the text.

    Text is folded where the table is too wide, and numbers are not."""
    folded = set(words or header[:1])
    table = Table(title=Text(visible(title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    for place, name in enumerate(header):
        table.add_column(Text(visible(name)), justify="right" if place else "left", no_wrap=name not in folded, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    out = console()
    out.print(table)
    if caption:
        out.print(Text(visible(caption), style="dim"))


def print_pairs(title: str, pairs: Sequence[tuple[str, str]]) -> None:
    """A titled list of names and what is said about them."""
    table = Table(
        title=Text(visible(title)), title_justify="left", box=None, show_header=False, pad_edge=False, title_style="bold"
    )
    table.add_column(no_wrap=True, style="cyan", min_width=16)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(visible(name)), Text(visible(value)))
    out = console()
    out.print(table)
    out.print()


def print_json(data: object) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    print(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # JSON's own way to write them


def print_text(text: object) -> None:
    """Something that prints as a table of its own."""
    print(visible(str(text)))


def print_table_as(summary: Summary, format: str) -> None:
    """A summary as text, LaTeX or Markdown."""
    renderings = {"text": summary.__str__, "latex": summary.to_latex, "markdown": summary.to_markdown}
    check_table_format(format)
    print_text(renderings[format]())


def check_table_format(format: str) -> None:
    """Raise if tables cannot be printed so, before anything else is done."""
    if format not in FORMATS:
        raise ModelError(f"--format is {format!r} and must be one of {', '.join(FORMATS)}.")


def same_file(out: Path, other: str | Path) -> bool:
    """Whether ``other`` is the file ``out``; what cannot be a path, such as a long URI, is not."""
    try:
        return out.samefile(other)
    except (OSError, ValueError):
        return False


@contextmanager
def working_bar(word: str) -> Iterator[Callable[[float], None] | None]:
    """A progress bar on standard error, where that is a terminal. Shows the fraction, never a count.

    Until a fraction is known, which for a database is never, it only shows that something happens."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[percent]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar, bar.add_task(word, total=None, percent=""), word)


class Bar:
    """A bar that is called with a fraction, and told which pass over the table begins."""

    def __init__(self, bar: Progress, task: TaskID, word: str):
        self._bar, self._task, self._word = bar, task, word

    def __call__(self, fraction: float) -> None:
        self._bar.update(self._task, total=1.0, completed=fraction, percent=f"{fraction:4.0%}")

    def begin(self, number: int, of: int | None) -> None:
        """Pass ``number`` begins, of so many where that is known."""
        self._bar.update(self._task, description=f"{self._word}, round {number}{f' of {of}' if of else ''}")
