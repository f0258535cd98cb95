"""Seeded releases by name: every mechanism, both neighbour relations, both calibrations, options, exact arithmetic."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dpgram
from tests.golden.tables import ADD_REMOVE, REPLACE, TABLES

OPTIONS: dict[str, dict[str, Any]] = {  # of a size that a table of a thousand rows stands above, at epsilon = 5
    "gaussian-noise": {},
    "wishart-noise": {},
    "gaussian-sketch": {"sketch_rows": 100},
    "gaussian-sketch-adaptive": {"sketch_rows": 100},
    "inverse-wishart": {"degrees_of_freedom": 90},
    "inverse-wishart-adaptive": {"degrees_of_freedom": 90},
    "noisy-inverse": {"rho": 1.0},
    "whitened-noise": {},
}

DRAWN_AGAIN = {  # by the bootstrap: one of each shape of noise
    REPLACE: ("gaussian-noise", "gaussian-sketch", "inverse-wishart", "noisy-inverse"),
    ADD_REMOVE: ("whitened-noise",),
}
SHOWN = {  # on a page: shapes of noise again, and wishart-noise, whose shift is taken off
    REPLACE: ("gaussian-noise", "wishart-noise", "gaussian-sketch", "inverse-wishart", "noisy-inverse", "whitened-noise"),
    ADD_REMOVE: ("whitened-noise",),
}


@dataclass(frozen=True)
class Setting:
    """One seeded release: what ``dpgram.release`` is called with."""

    table: str
    mechanism: str
    neighbours: str = REPLACE
    epsilon: float = 5.0
    calibration: str = "exact"
    arithmetic: str | None = None
    seed: int = 7
    declared: dict[str, Any] = field(default_factory=dict)  # besides what the table's schema says
    options: dict[str, Any] = field(default_factory=dict)
    answers: bool = False  # whether regressions and moments of it are kept too
    page: bool = False  # and what the page makes of it
    bootstrap: bool = False  # and intervals by simulation
    page_bootstrap: bool = False  # that a page brings along
    everywhere: bool = (
        True  # False where the matrix that is drawn from has equal eigenvalues, whose vectors LAPACK may turn as it likes
    )

    @property
    def to_the_bit(self) -> bool:
        """Whether the released matrix is the same to the bit on any machine: seen with four kinds of BLAS kernels.

        The others are drawn by, or mapped back with, a factorisation; of whitened rounds maps and sums are equal all the same,
        because maps are rounded before they are used."""
        if self.arithmetic == "exact":
            return self.mechanism not in ("noisy-inverse", "whitened-noise")
        return self.mechanism == "gaussian-noise" and self.options.get("repair") != "psd"

    def release(self, cells: object = None, **changes: Any) -> dpgram.GramRelease:
        """A fresh release, of ``cells`` instead of the table's own where they are given."""
        table = TABLES[self.table]
        # Looks at columns came later: these numbers are those of the rounds alone, and doors.json.gz has some with looks.
        looks = {"looks": "none"} if self.mechanism == "whitened-noise" else {}
        return dpgram.release(
            cells_of(self.table) if cells is None else cells,
            table.schema(neighbours=self.neighbours, **self.declared),
            epsilon=self.epsilon,
            delta=1e-6,
            mechanism=self.mechanism,
            calibration=self.calibration,
            arithmetic=self.arithmetic,
            insecure_seed=self.seed,
            **{**looks, **self.options, **changes},
        )


@functools.cache
def cells_of(table: str) -> dict:
    return TABLES[table].cells()


def _settings() -> dict[str, Setting]:
    made: dict[str, Setting] = {}
    for neighbours in (REPLACE, ADD_REMOVE):
        for name, options in OPTIONS.items():
            common: dict[str, Any] = {"table": "small", "mechanism": name, "neighbours": neighbours, "options": options}
            made[f"{name}/{neighbours}"] = Setting(
                **common,
                answers=True,
                page=name in SHOWN[neighbours],
                bootstrap=name in DRAWN_AGAIN[neighbours],
            )
            made[f"{name}/{neighbours}/exact-arithmetic"] = Setting(**common, arithmetic="exact", seed=8)
            made[f"{name}/{neighbours}/paper"] = Setting(**common, epsilon=0.5, calibration="paper", seed=9)

    def add(label: str, table: str, mechanism: str, neighbours: str = REPLACE, **rest: Any) -> None:
        options = {} if rest.pop("bare", False) else OPTIONS[mechanism]
        given = rest.pop("options", {})
        made[f"{mechanism}/{neighbours}/{label}"] = Setting(table, mechanism, neighbours, options={**options, **given}, **rest)

    for repair in ("none", "psd", "shift"):
        add(f"repair={repair}", "short", "gaussian-noise", options={"repair": repair}, answers=repair == "shift")
    add("repair=none", "small", "wishart-noise", options={"repair": "none"}, answers=True)
    add("scale", "small", "wishart-noise", options={"scale": 400.0})
    add("degrees", "small", "wishart-noise", ADD_REMOVE, options={"degrees_of_freedom": 60})
    add("usual-size", "small", "gaussian-sketch", bare=True)
    add("usual-size", "small", "gaussian-sketch-adaptive", bare=True)
    add("usual-size", "small", "inverse-wishart", bare=True)
    add("usual-size", "small", "inverse-wishart-adaptive", ADD_REMOVE, bare=True)
    add("gauss", "small", "gaussian-sketch-adaptive", options={"first_stage": "gauss"})
    add("gauss", "small", "inverse-wishart-adaptive", options={"first_stage": "gauss"})
    add("rows-guessed", "small", "whitened-noise", ADD_REMOVE, options={"table_rows": 2000})
    add("low-budget", "small", "whitened-noise", epsilon=0.3, answers=True)
    add("clipped", "small", "gaussian-noise", declared={"row_bound": 1.2}, answers=True)
    add("clipped", "small", "gaussian-sketch", ADD_REMOVE, declared={"row_bound": 1.2})
    add("drowned", "small", "gaussian-noise", ADD_REMOVE, epsilon=0.05, answers=True, page=True)

    add("kinds", "kinds", "gaussian-noise", epsilon=60.0, answers=True, page=True)
    add("kinds", "kinds", "gaussian-noise", ADD_REMOVE, epsilon=8.0, answers=True)
    add("kinds", "kinds", "gaussian-sketch", ADD_REMOVE, epsilon=8.0)
    add("kinds", "kinds", "noisy-inverse", epsilon=20.0, answers=True)
    add("kinds", "kinds", "whitened-noise", epsilon=20.0, answers=True, page=True)
    add("kinds", "kinds", "whitened-noise", ADD_REMOVE, epsilon=8.0)
    for mechanism, neighbours in (("gaussian-noise", ADD_REMOVE), ("gaussian-sketch", REPLACE), ("whitened-noise", REPLACE)):
        shown = mechanism == "whitened-noise"
        add("origin", "origin", mechanism, neighbours, answers=True, page=shown, page_bootstrap=shown)
    add("origin", "origin", "whitened-noise", ADD_REMOVE)
    for mechanism in ("gaussian-noise", "inverse-wishart", "whitened-noise"):
        add("short", "short", mechanism, answers=True, everywhere=mechanism != "inverse-wishart")
    for mechanism in ("gaussian-noise", "wishart-noise", "whitened-noise"):
        add("singular", "singular", mechanism, answers=True)
    add("singular-strong", "singular", "gaussian-noise", ADD_REMOVE, epsilon=500.0, answers=True)
    return made


SETTINGS = _settings()

WORDS = ("library_version", "randomness", "choice")  # of a file: they may be said otherwise


def contents(release: dpgram.GramRelease) -> dict:
    """A release as its own file has it: numbers are written so that they read back to the bit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.json")
        release.save(path)
        return json.loads(path.read_bytes())


def numbers(file: dict) -> dict:
    """What is compared of a file: all of it but words."""
    kept = {name: value for name, value in file.items() if name not in WORDS}
    return {**kept, "mechanism": {name: value for name, value in kept["mechanism"].items() if name != "condition"}}


def loaded(file: dict) -> dpgram.GramRelease:
    """The release in a file with these contents."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.json")
        path.write_text(json.dumps(file))
        return dpgram.load(path)
