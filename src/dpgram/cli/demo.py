"""dpgram demo"""

from __future__ import annotations

from pathlib import Path

from dpgram.cli.app import note
from dpgram.cli.output import print_table
from dpgram.demo import script
from dpgram.report.summary import number


def demo(*, out: Path = Path("demo"), epsilon: float = script.EPSILON, delta: float = script.DELTA) -> None:
    """Try dpgram on the bundled table of flights: one private release, three regressions from it, one figure, one page.

    Args:
        out: Folder for the release, the figure, the page, the table and its schema. It is created if needed.
        epsilon: Epsilon of the privacy budget.
        delta: Delta of the privacy budget."""
    result = script.run(out, epsilon=epsilon, delta=delta)
    made = result.release
    note(f"One release of {made.rows} flights, {len(made.columns)} columns: epsilon {epsilon:g}, delta {delta:g}.")
    for panel in result.panels:
        rows = [
            (name, *map(number, numbers))
            for name, *numbers in zip(
                panel.names, panel.private, panel.se, panel.lower, panel.upper, panel.non_private, strict=True
            )
        ]
        print_table(f"Regression of {panel.target}", ["", "private", "std err", "[0.025", "0.975]", "non-private"], rows)
    note("The non-private column can be shown only because these data are public.")
    for path, what in result.written:
        note(f"wrote {path}: {what}")
