"""The tables of the study and of the replication, between markers of docs/controls.md and docs/replication.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.controls.replication import Held, Line
from experiments.controls.study import PARTS, Coverage
from experiments.markers import fill_page


def update(root: Path, coverages: Sequence[Coverage], published: Sequence[Line], held: Sequence[Held]) -> None:
    fill_page(root / "docs/controls.md", {"coverage of controls": coverage_table(coverages)})
    fill_page(
        root / "docs/replication.md",
        {name: published_table([line for line in published if line.table == name]) for name in ("wages", "inspections")}
        | {"held": held_table(held)},
    )


def coverage_table(lines: Sequence[Coverage]) -> str:
    """A row for each table, mechanism and epsilon: coverage of each part, and how many of its intervals are infinite."""
    by = {(line.table, line.mechanism, line.epsilon, line.part): line for line in lines}
    rows = []
    for table, mechanism, epsilon in dict.fromkeys(key[:3] for key in by):
        cells = [by[table, mechanism, epsilon, part] for part in PARTS]
        shown = [f"{cell.coverage:.1%}" + (f" ({cell.infinite:.0%} infinite)" if cell.infinite else "") for cell in cells]
        rows.append([table, f"`{mechanism}`", f"{epsilon:g}", *shown])
    return _markdown(["table", "mechanism", "epsilon", *(f"{part}s" for part in PARTS)], rows)


def published_table(lines: Sequence[Line]) -> str:
    head = ["column", "coefficient", "published (s.e.)", "private (s.e.)", "95 % interval"]
    rows = [
        [
            line.column,
            f"`{line.name}`",
            f"{line.published} ({line.published_se})",
            f"{line.private:.4g} ({line.private_se:.2g})",
            f"{line.lower:.4g} to {line.upper:.4g}",
        ]
        for line in lines
    ]
    return _markdown(head, rows)


def held_table(lines: Sequence[Held]) -> str:
    mechanisms = list(dict.fromkeys(line.mechanism for line in lines))
    by = {(line.table, line.name, line.mechanism): line for line in lines}
    rows = [
        [table, f"`{name}`", *(f"{(one := by[table, name, m]).held} of {one.releases}" for m in mechanisms)]
        for table, name in dict.fromkeys(key[:2] for key in by)
    ]
    return _markdown(["table", "coefficient", *(f"`{m}`" for m in mechanisms)], rows)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
