"""Runs the grid: Gram matrices first, kept under build/, then every technique on each, into one CSV."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.sheffet2015 import whitened
from experiments.sheffet2015.grams import gram
from experiments.sheffet2015.settings import EXTRA, MULTIPLE, Cell
from experiments.sheffet2015.techniques import EXACT_CURVE, Result, results


def make_grams(wanted: Sequence[Cell], folder: Path, device: str) -> dict:
    """Generate and sum those tables that are not there yet. Returns where the tables in ``folder`` were made and how long it took."""
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    missing = [cell for cell in wanted if not _file(folder, cell).exists()]
    with progress() as bar:
        task = bar.add_task("tables", total=len(missing))
        for cell in missing:
            total, beta = gram(*cell, device=device)
            _save(_file(folder, cell), total, beta)
            bar.advance(task)
    record = folder / "made.json"
    if missing:
        seconds = round(time.perf_counter() - begun, 1)
        record.write_text(
            json.dumps({"tables": len(missing), "tables_made_on": whitened.described(device), "tables_seconds": seconds})
        )
    return json.loads(record.read_text()) if record.exists() else {}


def run_techniques(
    wanted: Sequence[Cell], folder: Path, workers: int | None = None, *, only_whitened: bool = False
) -> list[Result]:
    """All errors, sorted, from the Gram matrices and whitened releases in ``folder``; or those of whitened releases alone."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    errors: list[Result] = []
    work = whitened_results if only_whitened else _one
    with progress() as bar, ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        task = bar.add_task("releases and regressions", total=len(wanted))
        for done in as_completed([pool.submit(work, cell, folder) for cell in wanted]):
            errors += done.result()
            bar.advance(task)
    return sorted(errors, key=astuple)


def _one(cell: Cell, folder: Path) -> list[Result]:
    return [*results(*cell, *load_gram(folder, cell), _extras(cell)), *whitened_results(cell, folder)]


def whitened_results(cell: Cell, folder: Path) -> list[Result]:
    """The errors of the whitened release of one table, and of least squares on the rows that it takes."""
    setting, exponent, repetition = cell
    return [
        Result(setting.name, exponent, repetition, epsilon, EXACT_CURVE if epsilon else "", technique, extra, error)
        for epsilon, technique, extra, error in whitened.errors(cell, folder, _extras(cell))
    ]


def _extras(cell: Cell) -> tuple[int, ...]:
    return EXTRA if cell[0].name == MULTIPLE.name else (0,)


def load_gram(folder: Path, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    with np.load(_file(folder, cell)) as saved:
        return saved["gram"], saved["beta"]


def write_results(errors: Sequence[Result], path: Path) -> None:
    """One line per error, six digits; whole or not at all."""
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f.name for f in fields(Result)])
        writer.writerows([*astuple(r)[:-1], f"{r.error:.6g}"] for r in errors)
    partial.replace(path)


def read_results(path: Path) -> list[Result]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Result(
                row["setting"],
                int(row["exponent"]),
                int(row["repetition"]),
                float(row["epsilon"]),
                row["calibration"],
                row["technique"],
                int(row["extra"]),
                float(row["error"]),
            )
            for row in csv.DictReader(file)
        ]


def progress() -> Progress:
    """A bar on standard error; nothing where that is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _file(folder: Path, cell: Cell) -> Path:
    setting, exponent, repetition = cell
    return folder / f"{setting.name}-{exponent:02d}-{repetition:02d}.npz"


def _save(path: Path, total: np.ndarray, beta: np.ndarray) -> None:
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, gram=total, beta=beta)
    partial.replace(path)
