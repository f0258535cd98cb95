"""The table of docs/plan.md, written between markers from the study's numbers."""

from __future__ import annotations

from pathlib import Path

from experiments.forecast.study import HIGHEST, LOWEST, Cell, read
from experiments.markers import fill_page

PAGE, RESULTS = Path("docs/plan.md"), Path("experiments/forecast/results.csv")


def update(page: Path, results: Path) -> None:
    """Put the table made from ``results`` between the markers in ``page``."""
    fill_page(page, tables(read(results)))


def tables(cells: list[Cell]) -> dict[str, str]:
    return {"study": table(cells)}


def table(cells: list[Cell]) -> str:
    """Ratios of forecast to outcome: a line for each table and epsilon, a column for each mechanism."""
    mechanisms = list(dict.fromkeys(cell.mechanism for cell in cells))
    lines = [f"| table | epsilon | {' | '.join(mechanisms)} |", "|---" * (2 + len(mechanisms)) + "|"]
    for key in dict.fromkeys((cell.table, cell.epsilon) for cell in cells):
        ratios = {cell.mechanism: cell.ratio for cell in cells if (cell.table, cell.epsilon) == key}
        shown = [f"{ratios[name]:.2f}" if name in ratios else "-" for name in mechanisms]
        lines.append(f"| {key[0]} | {key[1]:g} | {' | '.join(shown)} |")
    all_ratios = [cell.ratio for cell in cells]
    within = sum(LOWEST <= ratio <= HIGHEST for ratio in all_ratios)
    said = f"{within} of {len(cells)} ratios lie within [{LOWEST}, {HIGHEST}]; all between {min(all_ratios):.2f} and {max(all_ratios):.2f}."
    where = dict.fromkeys(f"{cell.mechanism} on {cell.table.split(',')[0]}" for cell in outside(cells))
    if where:
        said += f" Those outside: {', '.join(where)}."
    return "\n".join(lines) + f"\n\n{said}\n"


def outside(cells: list[Cell]) -> list[Cell]:
    """The forecasts that did not come true."""
    return [cell for cell in cells if not LOWEST <= cell.ratio <= HIGHEST]
