"""Partial correlations and graphs of them as text, and the picture of a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpgram.report.figures import COLOURS, as_words, mark, new_axis
from dpgram.report.summary import Block, Summary, number, probability, release_facts

Array = np.ndarray

THICKEST = 6.0  # points, of the line of a partial correlation of one
POSITIVE, NEGATIVE = (COLOURS[1], "-"), (COLOURS[0], "--")  # orange and blue, as in heat maps
LIMIT = 1.55  # of the axes, in radii of the circle: room for names


def pairs_summary(data: dict, count: int) -> Summary:
    """The strongest of the pairs: those that stand furthest from zero in units of their standard errors come first."""
    shown = sorted(data["pairs"], key=lambda pair: -abs(pair["partial"]) / pair["se"] if pair["identified"] else 0.0)[:count]
    left = len(data["pairs"]) - len(shown)
    notes = [
        "partial: correlation of the two columns, given all the other columns named here. Without the bias that the noise would cause.",
        *_parts(data["pairs"]),
        *([f"{left} more pairs have smaller z and are left out here. to_frame() and --json have all pairs."] if left else []),
        *data["notes"],
    ]
    return Summary("Private partial correlations", release_facts(data), [_pairs(shown, data)], notes)


def graph_summary(data: dict, count: int) -> Summary:
    """The strongest edges of a graph."""
    shown, left = data["edges"][:count], len(data["edges"]) - count
    facts = [
        *release_facts(data),
        ("Penalty", f"{data['penalty']:.4g}"),
        ("Edges", f"{len(data['edges'])} of {data['possible']}"),
    ]
    notes = [
        "penalised: partial correlation by the graphical lasso. Pairs that are not listed have exactly zero.",
        "partial, std err and the interval: the partial correlation without the penalty.",
        *(_parts(shown) if shown else []),
        *([f"{left} weaker edges are left out here. to_frame() and --json have all edges."] if left > 0 else []),
        *data["notes"],
    ]
    if not data["edges"]:
        notes.insert(0, "No pair of columns has an edge at this penalty.")
    return Summary("Private graph of partial correlations", facts, [_pairs(shown, data, penalised=True)], notes)


def _parts(pairs: Sequence[dict]) -> list[str]:
    sources = ["sampling", "privacy", *(["clipping"] if any(pair["se_clipping"] > 0 for pair in pairs) else [])]
    return [f"{', '.join(sources[:-1])} and {sources[-1]}: the parts of std err. Their squares add up to its square."]


def _pairs(pairs: Sequence[dict], data: dict, *, penalised: bool = False) -> Block:
    tail = (1 - data["confidence"]) / 2
    sources = ["sampling", "privacy", *(["clipping"] if any(pair["se_clipping"] > 0 for pair in pairs) else [])]
    first = ["", *(["penalised"] if penalised else [])]
    rows = [
        [
            f"{pair['first']} - {pair['second']}",
            *([f"{pair['penalised']:.3f}"] if penalised else []),
            f"{pair['partial']:.3f}",
            number(pair["se"]),
            *(number(pair[f"se_{source}"]) for source in sources),
            probability(pair["p_value"]) if pair["identified"] else "",
            f"{pair['lower']:.3f}",
            f"{pair['upper']:.3f}",
        ]
        for pair in pairs
    ]
    return Block([*first, "partial", "std err", *sources, "P>|z|", f"[{tail:.4g}", f"{1 - tail:.4g}]"], rows)


def draw_graph(data: dict, ax: Any = None) -> Any:
    """Columns on a circle, related ones near each other, and a line for each edge: the thicker, the stronger."""
    ax = new_axis(ax)
    names = data["names"]
    angle = dict(zip(names, _angles(names, data["edges"]), strict=True))
    point = {name: (math.cos(a), math.sin(a)) for name, a in angle.items()}
    for edge in sorted(data["edges"], key=lambda each: abs(each["penalised"])):
        (x0, y0), (x1, y1) = point[edge["first"]], point[edge["second"]]
        colour, style = POSITIVE if edge["penalised"] > 0 else NEGATIVE
        colour, style = ("0.8", ":") if edge["same_column"] else (colour, style)
        size = abs(edge["penalised"])
        ax.plot(
            [x0, x1],
            [y0, y1],
            style,
            color=colour,
            lw=0.6 + THICKEST * size,
            alpha=min(0.3 + 2 * size, 1.0),
            zorder=0 if edge["same_column"] else 1,
        )
    joined = {name for edge in data["edges"] for name in (edge["first"], edge["second"])}
    size = 9 if len(names) <= 25 else 7 if len(names) <= 60 else 5
    for name, (x, y) in point.items():
        ax.plot([x], [y], "o", ms=6, color="black" if name in joined else "0.7", zorder=2)
        turn, left = math.degrees(angle[name]), x < -1e-9
        ax.text(
            1.08 * x,
            1.08 * y,
            as_words(name),
            rotation=turn + 180 if left else turn,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            fontsize=size,
            color="black" if name in joined else "0.5",
        )
    kinds = [(*POSITIVE, "positive partial correlation"), (*NEGATIVE, "negative partial correlation")]
    if any(edge["same_column"] for edge in data["edges"]):
        kinds.append(("0.8", ":", "levels of one column"))
    for colour, style, words in kinds:
        ax.plot([], [], style, color=colour, lw=2, label=words)
    ax.set(xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT), aspect="equal")
    ax.axis("off")
    ax.legend(frameon=False, fontsize=8, loc="lower center", ncols=len(kinds))
    ax.set_title(
        as_words(f"Private graph of partial correlations, penalty {data['penalty']:.3g}{mark(data['private'])}"), fontsize=10
    )
    return ax


def _angles(names: Sequence[str], edges: Sequence[dict]) -> list[float]:
    """Equal steps around the circle, in the order in which the two smoothest functions on the graph go around."""
    place = {name: k for k, name in enumerate(names)}
    laplacian = 1e-6 * (len(names) * np.eye(len(names)) - 1)  # so that columns without an edge have a place too
    for edge in edges:
        i, j, weight = place[edge["first"]], place[edge["second"]], abs(edge["penalised"])
        laplacian[[i, j], [i, j]] += weight
        laplacian[[i, j], [j, i]] -= weight
    vectors = np.linalg.eigh(laplacian)[1]
    around = np.arctan2(vectors[:, min(2, len(names) - 1)], vectors[:, 1]) if len(names) > 1 else np.zeros(1)
    rank = np.argsort(np.argsort(around, kind="stable"))
    return (math.pi / 2 - 2 * math.pi * rank / len(names)).tolist()
