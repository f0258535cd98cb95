"""Runs a study over tables in several processes, and keeps what is done: stopped at any time, it goes on where it was."""

from __future__ import annotations

import csv
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from experiments.real.tables import Table, load

Line = TypeVar("Line")
Cell = tuple[str, str]  # a table, and a variant of the study
Found = tuple[Cell, list]
Measure = Callable[[Table, int, str], list[Line]]
"""(the table, how many releases, the variant) -> its lines."""


def run_all(
    kind: type[Line],
    measure: Measure[Line],
    cells: Sequence[Cell],
    releases: int,
    folder: Path,
    done: Callable[[str], None],
    processes: int | None = None,
) -> list[Line]:
    """Lines of all ``cells``. Those that ``folder`` holds with as many releases are not measured again."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {cell: folder / f"{'-'.join(cell)}-{releases}.csv".replace(" ", "-") for cell in cells}
    left = [cell for cell in cells if not files[cell].exists()]
    for cell in cells:
        if files[cell].exists():
            done(" ".join(cell))
    for cell, lines in _all_measured(partial(_measured, measure, releases), left, processes or os.cpu_count() or 1):
        write(files[cell], kind, lines)
        done(" ".join(cell))
    return [line for cell in cells for line in read(files[cell], kind)]


def _measured(measure: Measure[Line], releases: int, cell: Cell) -> Found:
    name, variant = cell
    return cell, measure(load(name), releases, variant)


def _all_measured(one: Callable[[Cell], Found], cells: Sequence[Cell], processes: int) -> Iterator[Found]:
    """What ``one`` finds for each of ``cells``, in the order in which they are done. Whoever stops listening ends the processes."""
    if min(processes, len(cells)) <= 1:
        yield from map(one, cells)
        return
    # Processes that are started, not forked: threads of Arrow and BLAS do not live through a fork.
    with multiprocessing.get_context("spawn").Pool(min(processes, len(cells)), initializer=_let_the_parent_stop) as pool:
        yield from pool.imap_unordered(one, cells)


def _let_the_parent_stop() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def write(file: Path, kind: type, lines: Sequence[Any]) -> None:
    """The lines as CSV, whole or not at all. Numbers have four digits, so that a rerun on another machine differs in few of them."""
    beside = file.with_suffix(".part")
    with beside.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(field.name for field in fields(kind))
        for line in lines:
            writer.writerow(_text(value) for value in asdict(line).values())
    beside.replace(file)


def read(file: Path, kind: type[Line]) -> list[Line]:
    """The lines that ``write`` wrote."""
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    with file.open(newline="") as lines:
        return [kind(**{name: _value(types[name], text) for name, text in line.items()}) for line in csv.DictReader(lines)]


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _value(kind: str, text: str) -> object:
    if kind.startswith("tuple"):
        return tuple(map(float, text.split()))
    return {"str": str, "int": int, "float": float}[kind](text)
