"""One figure: what is lost to privacy against k, a panel for each table and epsilon, a line for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.study import NON_PRIVATE, Cell

# Okabe and Ito's colours, told apart with any kind of colour vision; markers and dashes say the same again.
LOOKS = {
    "one whitened release": ("#56B4E9", "*", "-"),
    "one whitened release, needed columns": ("#56B4E9", "*", ":"),
    "one Gram": ("#000000", "o", "-"),
    "one Gram, needed columns": ("#000000", "o", ":"),
    "gradient descent, tuned": ("#0072B2", "s", "-"),
    "gradient descent, untuned": ("#0072B2", "s", ":"),
    "boosted AdaSSP": ("#D55E00", "^", "-"),
    "AdaSSP": ("#E69F00", "v", "--"),
    "TukeyEM": ("#009E73", "D", "-."),
    "diffprivlib": ("#CC79A7", "X", "--"),
}
THICK = ("one whitened release", "one Gram")
OTHER = ("#999999", "P", "-")
LOWEST = 1e-6  # what is smaller is drawn here


def draw(cells: Sequence[Cell], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    private = [c for c in cells if c.method != NON_PRIVATE]
    tables = list(dict.fromkeys(c.table for c in private))
    epsilons = sorted({c.epsilon for c in private})
    methods = list(dict.fromkeys(c.method for c in private))
    figure, axes = plt.subplots(
        len(tables),
        len(epsilons),
        figsize=(1 + 3.4 * len(epsilons), 1.3 + 2.5 * len(tables)),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for i, table in enumerate(tables):
        lowest = max(LOWEST, min(c.mean_lost for c in private if c.table == table))
        for j, epsilon in enumerate(epsilons):
            panel = axes[i][j]
            for method in methods:
                line = sorted(
                    (c.k, max(c.mean_lost, LOWEST))
                    for c in private
                    if (c.table, c.epsilon, c.method) == (table, epsilon, method)
                )
                colour, marker, dashes = LOOKS.get(method, OTHER)
                hollow = "white" if ":" in dashes else colour
                panel.plot(
                    *zip(*line, strict=True),
                    color=colour,
                    marker=marker,
                    linestyle=dashes,
                    markerfacecolor=hollow,
                    markersize=9 if marker == "*" else 5,
                    linewidth=2.2 if method in THICK else 1.4,
                    label=method,
                )
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_ylim(lowest * 0.6, 1.6)
            panel.set_xticks(sorted({c.k for c in private}), [str(k) for k in sorted({c.k for c in private})])
            panel.grid(alpha=0.25)
            panel.set_title(f"{table}, epsilon {epsilon:g}", fontsize=10)
    figure.supxlabel("regressions from one table, k")
    figure.supylabel("share of the explained variance lost to privacy (mean; 1 = no better than the mean)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)
