"""The table of docs/audits.md, written between its markers, and the figure beside it."""

from __future__ import annotations

from pathlib import Path

from dpgram.report.figures import draw_trade_off, save_figure
from experiments.audits.study import everything, read
from experiments.markers import fill_page

PAGE, RESULTS, FIGURE = Path("docs/audits.md"), Path("experiments/audits/results.json"), Path("docs/images/audits.png")


def update(page: Path, results: Path, draws: int) -> None:
    """Put the table of all settings between the markers of ``page``."""
    fill_page(page, {"audits": table(results, draws)})


def table(results: Path, draws: int) -> str:
    """The best pair of each setting, with what its law allows and what was found."""
    head = ["mechanism", "neighbours", "best pair", "proven", "this pair", "counted", "by shape", "counted / proven", "found"]
    lines = [f"{draws:,} releases of each table.\n", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    stored = read(results)
    for setting in everything():
        audits = stored.get(f"{setting.name}, {draws} draws")
        if not audits:
            continue
        best = max(audits, key=lambda each: each["counted_epsilon"])
        options = setting.name.partition(f"{setting.neighbours.value}")[2].removeprefix(", ")
        cells = [
            f"{setting.mechanism}, {setting.calibration}{', ' if options else ''}{options}",
            setting.neighbours.value,
            best["pair"],
            *(f"{best[name]:.3f}" for name in ("proven_epsilon", "pair_epsilon", "counted_epsilon", "shaped_epsilon")),
            f"{best['counted_epsilon'] / best['proven_epsilon']:.0%}"
            if best["proven_epsilon"]
            else "",  # it holds at epsilon 0
            "REFUTED" if any(each["broken"] for each in audits) else "nothing",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(path: Path, results: Path, draws: int) -> None:
    """The trade-off curves of the first setting."""
    setting = everything()[0]
    audits = read(results)[f"{setting.name}, {draws} draws"]
    save_figure(path, lambda ax: draw_trade_off(audits, ax), rows=13)
