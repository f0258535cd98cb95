"""The tables of docs/peers.md, written between markers from the study's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.registry import METHODS
from benchmarks.peers.study import NON_PRIVATE, Cell
from experiments.markers import fill_page

OURS = ("one Gram", "one whitened release")


def update(page: Path, cells: Sequence[Cell]) -> None:
    fill_page(
        page,
        {
            "in short": in_short(cells),
            "methods": methods(),
            "tables": tables(cells),
            "lost": lost(cells),
            "wins": wins(cells),
            "whitened wins": wins(cells, OURS[1]),
        },
    )


def in_short(cells: Sequence[Cell], epsilon: float = 1.0, ks: Sequence[int] = (1, 64)) -> str:
    """Mean losses at one epsilon for one and for many regressions, of releases of the whole table and of every peer."""
    private = [c for c in cells if c.method != NON_PRIVATE and c.epsilon == epsilon and "needed" not in c.method]
    lost = {(c.method, c.table, c.k): c.mean_lost for c in private}
    asked = [(table, k) for table in dict.fromkeys(c.table for c in private) for k in ks]
    named = dict.fromkeys(c.method for c in private)
    best = {(table, k): min(lost[method, table, k] for method in named) for table, k in asked}
    lines = [
        f"| lost at epsilon {epsilon:g} | {' | '.join(f'{table}, k = {k}' for table, k in asked)} |",
        "|" + "---|" * (1 + len(asked)),
    ]
    for method in named:
        shown = [_number(lost[method, *one], lost[method, *one] == best[one]) for one in asked]
        lines.append(f"| {method} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def methods() -> str:
    lines = ["| method | from | what it costs | how it was set |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {m.name} | {m.paper} | {m.cost} | {m.setting} |" for m in METHODS)]) + "\n"


def tables(cells: Sequence[Cell]) -> str:
    lines = ["| table | rows fitted | encoded columns | mean R^2 without privacy, rows held out |", "|---|---|---|---|"]
    own = [c for c in cells if c.method == NON_PRIVATE]
    return (
        "\n".join([*lines, *(f"| {c.table} | {c.rows:,} | {c.columns} | {1 - c.mean_unexplained:.3f} |" for c in own)]) + "\n"
    )


def lost(cells: Sequence[Cell]) -> str:
    """Mean losses, k by k; the smallest of a column is bold."""
    private = [c for c in cells if c.method != NON_PRIVATE]
    ks = sorted({c.k for c in private})
    lines = [f"| table | epsilon | method | {' | '.join(f'k = {k}' for k in ks)} | R^2, k = {ks[0]} | R^2, k = {ks[-1]} |"]
    lines.append("|" + "---|" * (5 + len(ks)))
    for table, epsilon in dict.fromkeys((c.table, c.epsilon) for c in private):
        block = {(c.method, c.k): c for c in private if (c.table, c.epsilon) == (table, epsilon)}
        best = {k: min(c.mean_lost for c in block.values() if c.k == k) for k in ks}
        for method in dict.fromkeys(name for name, _ in block):
            shown = [_number(block[method, k].mean_lost, block[method, k].mean_lost == best[k]) for k in ks]
            fits = [f"{1 - block[method, k].mean_unexplained:.3f}" for k in (ks[0], ks[-1])]
            lines.append(f"| {table} | {epsilon:g} | {method} | {' | '.join([*shown, *fits])} |")
    return "\n".join(lines) + "\n"


def wins(cells: Sequence[Cell], ours: str = OURS[0]) -> str:
    """From which k on one release of the whole table has the smaller mean loss, against each peer."""
    private = [c for c in cells if c.method != NON_PRIVATE]
    peers = [name for name in dict.fromkeys(c.method for c in private) if not name.startswith(OURS)]
    lines = [f"| table | epsilon | {' | '.join(peers)} |", "|" + "---|" * (2 + len(peers))]
    for table, epsilon in dict.fromkeys((c.table, c.epsilon) for c in private):
        block = {(c.method, c.k): c.mean_lost for c in private if (c.table, c.epsilon) == (table, epsilon)}
        lines.append(f"| {table} | {epsilon:g} | {' | '.join(_since(block, ours, peer) for peer in peers)} |")
    return "\n".join(lines) + "\n"


def summary(cells: Sequence[Cell]) -> str:
    return "\n".join([lost(cells), *(wins(cells, ours) for ours in OURS if any(c.method == ours for c in cells))])


def _since(block: dict[tuple[str, int], float], ours: str, peer: str) -> str:
    ks = sorted({k for _, k in block})
    losing = [k for k in ks if block[ours, k] > block[peer, k]]
    if not losing:
        return "always"
    later = [k for k in ks if k > losing[-1]]
    return f"from k = {later[0]}" if later else f"not by k = {ks[-1]}"


def _number(value: float, best: bool) -> str:
    text = f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}"
    return f"**{text}**" if best else text
