"""Runs the grid: Gram matrices first, kept under build/, then every technique on each, into one CSV."""

from __future__ import annotations

import csv
import json
import os
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.sheffet2015.grams import gram
from experiments.sheffet2015.settings import EXTRA, MULTIPLE, SETTINGS, Setting
from experiments.sheffet2015.techniques import Result, results

Cell = tuple[Setting, int, int]


def cells(largest: int, repetitions: int) -> list[Cell]:
    """Every table of both settings with at most 2^largest rows, small ones first."""
    listed = [(s, k, r) for s in SETTINGS for k in s.exponents if k <= largest for r in range(repetitions)]
    return sorted(listed, key=lambda cell: cell[1])


def make_grams(wanted: Sequence[Cell], folder: Path, device: str) -> dict:
    """Generate and sum those tables that are not there yet. Returns where the tables in ``folder`` were made and how long it took."""
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    missing = [cell for cell in wanted if not _file(folder, cell).exists()]
    with progress() as bar:
        task = bar.add_task("tables", total=len(missing))
        for cell in missing:
            found, beta = gram(*cell, device=device)
            _save(_file(folder, cell), found, beta)
            bar.advance(task)
    record = folder / "made.json"
    if missing:
        seconds = round(time.perf_counter() - begun, 1)
        record.write_text(json.dumps({"tables": len(missing), "tables_made_on": _described(device), "tables_seconds": seconds}))
    return json.loads(record.read_text()) if record.exists() else {}


def _described(device: str) -> str:
    if device == "cpu":
        return f"CPU ({platform.machine()}), NumPy {np.__version__}"
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return f"{name}, PyTorch {torch.__version__}"


def run_techniques(wanted: Sequence[Cell], folder: Path, workers: int | None = None) -> list[Result]:
    """All errors, sorted, from the tables in ``folder``."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found: list[Result] = []
    with progress() as bar, ProcessPoolExecutor(workers or os.cpu_count()) as pool:
        task = bar.add_task("releases and regressions", total=len(wanted))
        for done in as_completed([pool.submit(_one, cell, folder) for cell in wanted]):
            found += done.result()
            bar.advance(task)
    return sorted(found, key=astuple)


def _one(cell: Cell, folder: Path) -> list[Result]:
    extras = EXTRA if cell[0].name == MULTIPLE.name else (0,)
    return list(results(*cell, *load_gram(folder, cell), extras))


def load_gram(folder: Path, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    with np.load(_file(folder, cell)) as saved:
        return saved["gram"], saved["beta"]


def write_results(found: Sequence[Result], path: Path) -> None:
    """One line per error, six digits; whole or not at all."""
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f.name for f in fields(Result)])
        writer.writerows([*astuple(r)[:-1], f"{r.error:.6g}"] for r in found)
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


def _save(path: Path, found: np.ndarray, beta: np.ndarray) -> None:
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, gram=found, beta=beta)
    partial.replace(path)
