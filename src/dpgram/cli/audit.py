"""dpgram audit"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpgram.audits.run import Audit
from dpgram.audits.run import audit as run_audit
from dpgram.cli.app import note
from dpgram.cli.calibrate import asked_task
from dpgram.cli.options import given_options
from dpgram.cli.output import print_json, print_table, working_bar
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT
from dpgram.report.figures import check_figure_path, draw_trade_off, save_figure
from dpgram.sampling.secure import SecureSource
from dpgram.terms.budget import Budget

BROKEN = 1
NEEDED = {"noisy-inverse": {"rho": 3.0}, "inverse-wishart": {"degrees_of_freedom": 20.0}}  # where a mechanism has no default


def audit(
    name: str,
    /,
    *,
    epsilon: float = 1.0,
    delta: float = 0.01,
    dim: int = 2,
    row_bound: float = 1.0,
    neighbours: str = "replace",
    calibration: str = EXACT,
    draws: int = 100_000,
    confidence: float = 0.999,
    random: int = 0,
    option: tuple[str, ...] = (),
    json: Annotated[bool, Parameter(negative="")] = False,
    plot: Path | None = None,
) -> int:
    """Attack mechanism NAME on its worst neighbours, and compare what is found with what is claimed.

    Parameters
    ----------
    name
        The mechanism.
    epsilon
        The budget that it is calibrated for.
    delta
        The budget that it is calibrated for. Counting shows little at a small one: 0.01 needs some 100,000 draws, 0.001 some 2,000,000.
    dim
        Number of columns. Two are enough for the worst case, and fastest.
    row_bound
        Largest norm B of a row.
    neighbours
        replace or add-remove.
    calibration
        exact, or paper for the printed formulas of Sheffet 2015.
    draws
        Releases of each of the two tables.
    confidence
        Of all lower bounds together.
    random
        Random pairs of neighbours to try besides the worst ones.
    option
        An option of the mechanism, as NAME=VALUE; may be repeated.
    json
        Print JSON.
    plot
        Figure of the trade-off curves (.png, .svg or .pdf).
    """
    if plot is not None:
        check_figure_path(plot)
    mechanism = registry.find(name)
    options = {**NEEDED.get(name, {}), **given_options(option)}
    task = asked_task(name, Budget(epsilon, delta), neighbours, dim, row_bound, calibration, options)
    with working_bar("drawing") as advance:
        found = run_audit(
            mechanism,
            task,
            SecureSource(),
            draws=draws,
            confidence=confidence,
            searches=random,
            progress=_teller(advance),
        )
    if json:
        print_json([_plain(result) for result in found])
    else:
        _print(found, f"{name} ({calibration}), d = {dim}, {neighbours}, delta {delta:g}, {draws} releases of each table")
    if plot is not None:
        save_figure(plot, lambda ax: draw_trade_off([result.to_dict() for result in found], ax), rows=13)
        note(f"wrote {plot}")
    broken = [result.pair for result in found if result.broken]
    note(f"refuted on: {', '.join(broken)}." if broken else "not refuted.")
    return BROKEN if broken else 0


def _teller(advance: Callable[[float], None] | None) -> Callable[[str, float], None]:
    """Says which pair is at work, once, and moves the bar where there is one."""
    seen: list[str] = []

    def tell(pair: str, share: float) -> None:
        if pair not in seen:
            seen.append(pair)
            note(f"pair {len(seen)}: {pair}")
        if advance is not None:
            advance(share)

    return tell


def _plain(result: Audit) -> dict:
    """For JSON, which knows no infinity."""
    return {key: None if value in (float("inf"), float("-inf")) else value for key, value in result.to_dict().items()}


def _print(found: list[Audit], title: str) -> None:
    header = ["neighbours", "claimed", "proven", "counted", "by shape", "power", ""]
    rows = [
        (
            result.pair,
            f"{result.claimed_epsilon:.4g}",
            f"{result.proven_epsilon:.4g}",
            f"{result.counted_epsilon:.4g}",
            f"{result.shaped_epsilon:.4g}",
            f"{result.power:.0%}",
            "REFUTED" if result.broken else "",
        )
        for result in found
    ]
    caption = (
        "Epsilon at delta: as claimed, by the proven curve of the parameters in use, and two lower bounds from the draws: counted, "
        f"and by the shape of the proven curve. Confidence {1 - (1 - found[0].confidence) * len(found):.4g} for all of them together."
    )
    print_table(title, header, rows, caption=caption)
