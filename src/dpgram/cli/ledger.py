"""dpgram ledger: open, show, settle"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dpgram.accounting.total import rounded_up
from dpgram.cli.app import note
from dpgram.cli.options import Json, LedgerFile
from dpgram.cli.output import print_json, print_table
from dpgram.ledger.file import Account, FileLedger

LEDGER = Path("ledger.sqlite")


def open_command(
    *,
    epsilon: float,
    delta: float,
    unit: str,
    dataset: str,
    neighbours: str = "replace",
    composition: str = "composed",
    mixed_units: bool = False,
    ledger: Path = LEDGER,
) -> None:
    """Create the ledger of a dataset, once.

    Args:
        epsilon: The epsilon that all releases together may cost.
        delta: The delta that all releases together may cost.
        unit: Whom a release protects, as the schema says, such as person.
        dataset: A public name for the dataset, such as visits-2026.
        neighbours: Which tables count as neighbours, as the schema says: replace or add-remove.
        composition: How costs are added. composed uses exact privacy curves where they are known, so more releases are possible. plain adds
            epsilons and deltas.
        mixed_units: Allow releases that differ in their unit_id, or of which some have none. Then it is up to you that a unit means the
            same in all of them.
        ledger: The file to create. It must not exist."""
    FileLedger.create(
        ledger,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        dataset=dataset,
        neighbours=neighbours,
        composition=composition,
        mixed_units=mixed_units,
    )
    note(f"created {ledger} for {dataset}: epsilon {epsilon:g}, delta {delta:g}. Pass --ledger {ledger} to `dpgram release`.")


def show(*, ledger: LedgerFile = LEDGER, json: Json = False) -> None:
    """Print what was spent."""
    account = FileLedger(ledger).account()
    data, opened = account_data(account), account.opened
    if json:
        print_json(data)
        return
    by_rounds = any(entry.drawn is not None for entry in account.entries)
    protected = {entry["protected"] or "not recorded" for entry in data["releases"]}
    differ = len(protected) > 1
    units = "" if differ else "".join(f" ({each})" for each in protected)
    print_table(
        f"{opened.dataset}: {opened.neighbours}, one {opened.unit}{units}, opened {opened.time}",
        ["line", "time", "release", *["unit"] * differ, "epsilon", "delta", "curve", "state", *["rounds"] * by_rounds],
        [
            (
                str(entry["number"]),
                entry["reserved"],
                entry["what"],
                *[entry["protected"] or "not recorded"] * differ,
                f"{entry['counts']['epsilon'] if entry['counts'] else 0:g}",
                f"{entry['counts']['delta'] if entry['counts'] else 0:g}",
                entry["known_by"],
                "made" if entry["committed"] else "settled" if entry["settled"] else "RESERVED ONLY",
                *([_rounds(entry["rounds"])] if by_rounds else []),
            )
            for entry in data["releases"]
        ],
        caption=_totals(data),
        words=["time", "release", *["unit"] * differ, "curve", "state"],  # the line is what `settle` asks for
    )


def settle(line: int, /, *, ledger: LedgerFile = LEDGER) -> None:
    """Give back the rounds of the release of LINE that were never drawn.

    Args:
        line: Line of the release, as 'dpgram ledger show' prints it."""
    drawn = FileLedger(ledger).settle(line)
    note(
        f"settled line {line} of {ledger}: the release drew {drawn.in_words}, and from now on only that counts. If it is still running, "
        f"it stops before its next round."
    )


def _rounds(rounds: dict[str, int | None] | None) -> str:
    """How many rounds were drawn, or were about to be."""
    if rounds is None:
        return ""
    return f"{rounds['drawn']} of {rounds['of']}" if rounds["of"] else "none"


def account_data(account: Account) -> dict[str, Any]:
    """The account as plain data."""
    opened, spent, total = account.opened, account.spending, account.total
    plain = spent.plain if spent.asked else (0, 0)
    composed = spent.epsilon(total.delta) if opened.composition == "composed" else None
    return {
        "dataset": opened.dataset,
        "unit": opened.unit,
        "neighbours": opened.neighbours,
        "composition": opened.composition,
        "mixed_units": opened.mixed_units,
        "opened": opened.time,
        "budget": asdict(total),
        "spent": {
            "plain_sum": {"epsilon": rounded_up(plain[0]), "delta": rounded_up(plain[1])},  # type: ignore[arg-type]
            "composed": None if composed is None or math.isinf(composed) else {"epsilon": composed, "delta": total.delta},
        },
        "releases": [
            {
                "number": entry.number,
                "reserved": entry.time,
                "committed": entry.committed,
                "sha256": entry.sha256,
                "settled": entry.settled,
                "rounds": None if entry.drawn is None else {"drawn": entry.drawn.number, "of": entry.drawn.rounds or None},
                "what": entry.what,
                "protected": None if entry.protected is None else entry.protected.in_words,
                "unit_id": None if entry.protected is None else entry.protected.unit_id,
                "rows_per_unit": None if entry.protected is None else entry.protected.rows_per_unit,
                **asdict(entry.budget),
                "counts": entry.counted and asdict(entry.counted[0]),  # None: settled before its first round
                "known_by": type(entry.cost).__name__.removesuffix("Cost").lower(),
            }
            for entry in account.entries
        ],
        "seal": account.seal,
    }


def _totals(data: dict[str, Any]) -> str:
    plain, composed, budget = data["spent"]["plain_sum"], data["spent"]["composed"], data["budget"]
    together = f" Composed: epsilon {composed['epsilon']:.4g} at delta {composed['delta']:g}." if composed else ""
    return (
        f"Plain sum: epsilon {plain['epsilon']:.6g}, delta {plain['delta']:.6g}.{together} Budget: epsilon {budget['epsilon']:g}, "
        f"delta {budget['delta']:g}. A release that is only reserved counts as spent. Seal: {data['seal'][:16]}"
    )
