"""What was noticed and what was not, and why the rest does no harm."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from experiments.mutants.forks import RESULTS
from experiments.mutants.mutations import Mutant

REASONS = Path(__file__).with_name("reasons.toml")
MOST = 0.05  # the share of mistakes that may go unnoticed


def read_results() -> dict[str, dict]:
    """The last result of each mistake, by its name."""
    if not RESULTS.exists():
        return {}
    return {result["name"]: result for result in map(json.loads, RESULTS.read_text().splitlines())}


def noticed(result: dict) -> bool:
    return result["outcome"] not in {"survived", "not run by any test"}


def read_reasons() -> dict[str, dict[str, str]]:
    """By the name of a mistake: its file, its lines before and after, and why nothing notices it."""
    return tomllib.loads(REASONS.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Report:
    """Mistakes with their results; ``reasons`` by the name of a mistake."""

    results: tuple[dict, ...]
    missing: int  # mistakes that were not planted yet
    known: int  # mistakes that could be planted
    reasons: dict[str, str]

    @classmethod
    def of(cls, planted: list[Mutant], results: dict[str, dict], *, known: int) -> Report:
        reasons = {name: entry["why"] for name, entry in read_reasons().items()}
        here = tuple(results[each.name] for each in planted if each.name in results)
        return cls(here, len(planted) - len(here), known, reasons)

    @property
    def survivors(self) -> list[dict]:
        return sorted((r for r in self.results if not noticed(r)), key=lambda r: (r["file"], r["line"]))

    @property
    def surviving_share(self) -> float:
        return len(self.survivors) / max(1, len(self.results))

    def unexplained(self) -> list[str]:
        """A line for each mistake that nothing noticed and that has no reason."""
        return [
            f"{r['name']} {r['file']}:{r['line']} {r['outcome']}\n  - {r['before'].strip()}\n  + {r['after'].strip()}"
            for r in self.survivors
            if r["name"] not in self.reasons
        ]

    def words(self) -> str:
        noticed_share, planted = 1 - self.surviving_share, len(self.results)
        return (
            f"Of {self.known:,} mistakes, {planted:,} were planted, chosen by a hash. {noticed_share:.1%} of them were noticed."
        )

    def table(self) -> str:
        planted = Counter(_room(r) for r in self.results)
        alive = Counter(_room(r) for r in self.survivors)
        rows = [(room, count, count - alive[room], alive[room]) for room, count in sorted(planted.items())]
        rows.append(("all", len(self.results), len(self.results) - len(self.survivors), len(self.survivors)))
        head = "| where | planted | noticed | not noticed | share not noticed |\n|---|---:|---:|---:|---:|"
        return "\n".join(
            [head, *(f"| {room} | {all_} | {seen} | {not_} | {not_ / all_:.1%} |" for room, all_, seen, not_ in rows)]
        )

    def survivors_table(self) -> str:
        rows = [
            f"| {r['file'].removeprefix('src/dpgram/')} | {_code(r['before'])} | {_code(r['after'])} | {self.reasons.get(r['name'], '')} |"
            for r in self.survivors
        ]
        return "\n".join(["| file | line | mistake | why nothing notices |\n|---|---|---|---|", *rows])


def _room(result: dict) -> str:
    return "/".join(result["file"].split("/")[2:3])


def _code(lines: str) -> str:
    """Lines of code in a cell of a table."""
    text = " ".join(lines.split()).replace("|", "\\|")
    return f"`{text}`" if text else ""
