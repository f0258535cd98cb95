"""What was noticed and what was not, and why the rest does no harm."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from experiments.mutants.forks import RESULTS
from experiments.mutants.mutations import Mutant

REASONS = Path(__file__).with_name("reasons.toml")
MOST = 0.05  # the share that may go unnoticed of the mistakes that change what the program does
HEAD = "| where | planted | that change nothing | noticed | not noticed | share not noticed |\n|---|---:|---:|---:|---:|---:|"


def read_results() -> dict[str, dict]:
    """The last result of each mistake, by its name."""
    if not RESULTS.exists():
        return {}
    return {result["name"]: result for result in map(json.loads, RESULTS.read_text().splitlines())}


def noticed(result: dict) -> bool:
    return result["outcome"] not in {"survived", "not run by any test"}


@dataclass(frozen=True)
class Reason:
    """Why nothing notices a mistake. ``same``: because the program does what it did, but for its speed, so that nothing could."""

    file: str
    before: str
    after: str
    why: str
    same: bool


def read_reasons() -> dict[str, Reason]:
    """By the name of a mistake."""
    return {name: Reason(**entry) for name, entry in tomllib.loads(REASONS.read_text(encoding="utf-8")).items()}


@dataclass(frozen=True)
class Report:
    """Mistakes with their results; ``reasons`` by the name of a mistake."""

    results: tuple[dict, ...]
    missing: int  # mistakes that were not planted yet
    known: int  # mistakes that could be planted
    reasons: dict[str, Reason]

    @classmethod
    def of(cls, planted: list[Mutant], results: dict[str, dict], *, known: int) -> Report:
        here = tuple(results[each.name] for each in planted if each.name in results)
        return cls(here, len(planted) - len(here), known, read_reasons())

    @property
    def survivors(self) -> list[dict]:
        return sorted((r for r in self.results if not noticed(r)), key=lambda r: (r["file"], r["line"]))

    @property
    def surviving_share(self) -> float:
        return _share(*self._counts()[""])

    def unexplained(self) -> list[str]:
        """A line for each mistake that nothing noticed and that has no reason."""
        return [
            f"{r['name']} {r['file']}:{r['line']} {r['outcome']}\n  - {r['before'].strip()}\n  + {r['after'].strip()}"
            for r in self.survivors
            if r["name"] not in self.reasons
        ]

    def _counts(self) -> dict[str, tuple[int, int, int]]:
        """By room, and under "" of all: how many were planted, how many of them change nothing, and how many others nothing noticed."""
        counts = {room: [0, 0, 0] for room in ["", *sorted({_room(r) for r in self.results})]}
        for result in self.results:
            for room in ("", _room(result)):
                counts[room][0] += 1
                if not noticed(result):
                    reason = self.reasons.get(result["name"])
                    counts[room][1 if reason is not None and reason.same else 2] += 1
        return {room: (planted, same, alive) for room, (planted, same, alive) in counts.items()}

    def words(self) -> str:
        planted, same, _ = self._counts()[""]
        return (
            f"Of {self.known:,} mistakes, {planted:,} were planted, chosen by a hash. {same} of them change nothing but the speed. "
            f"Of the others, {1 - self.surviving_share:.1%} were noticed."
        )

    def table(self) -> str:
        counts = self._counts()
        rows = [(room or "all", *counts[room]) for room in [*(room for room in counts if room), ""]]
        return "\n".join(
            [
                HEAD,
                *(
                    f"| {room} | {planted} | {same} | {planted - same - alive} | {alive} | {_share(planted, same, alive):.1%} |"
                    for room, planted, same, alive in rows
                ),
            ]
        )

    def survivors_table(self) -> str:
        rows = [
            f"| {r['file'].removeprefix('src/dpgram/')} | {_code(r['before'])} | {_code(r['after'])} | {self._why(r)} |"
            for r in self.survivors
        ]
        return "\n".join(["| file | line | mistake | why nothing notices |\n|---|---|---|---|", *rows])

    def _why(self, result: dict) -> str:
        reason = self.reasons.get(result["name"])
        return "" if reason is None else f"{'the same: ' if reason.same else ''}{reason.why}"


def _share(planted: int, same: int, alive: int) -> float:
    return alive / max(1, planted - same)


def _room(result: dict) -> str:
    return "/".join(result["file"].split("/")[2:3])


def _code(lines: str) -> str:
    """Lines of code in a cell of a table."""
    text = " ".join(lines.split()).replace("|", "\\|")
    return f"`{text}`" if text else ""
