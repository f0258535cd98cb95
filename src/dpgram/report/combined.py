"""Whom a combined release protects and by which promise, in words: of disjoint rows each part's own, of the same rows all together."""

from __future__ import annotations

from typing import Any

from dpgram.accounting.compose import Cost, PlainCost, composed_epsilon
from dpgram.artifact.combined import DISJOINT, CombinedRelease, budget_sum
from dpgram.artifact.release import GramRelease
from dpgram.errors import CombineError, MechanismError
from dpgram.mechanisms import registry
from dpgram.report.fact import Fact, Group
from dpgram.report.signed import signature_data
from dpgram.terms.budget import Budget
from dpgram.terms.words import Point, percent

SPENDS_NOTHING = "nothing: to combine releases spends no budget. What paid for each part is told with the part"


def combination_facts(release: CombinedRelease) -> list[Fact]:
    """What is promised to whom, what is only claimed, and every part with its own budget."""
    group, disjoint = Group.GUARANTEE, release.rows_are == DISJOINT
    promise, claim = _of_disjoint(release) if disjoint else _of_same(release)
    composed = None if disjoint else composed_budget(release)
    together = ""
    if composed is not None:
        together = (
            f"epsilon {composed.epsilon:.4g} at delta {composed.delta:g}, by the privacy curves of the parts, if the budget of each was "
            f"chosen without looking at the others"
        )
    return [
        Fact(group, Point.COMPOSITION, ("rows_are",), "", release.rows_are),
        Fact(group, Point.COMPOSITION, ("promise",), "promise", promise),
        Fact(group, Point.COMPOSITION, ("claimed",), "claimed", claim),
        Fact(
            group,
            Point.COMPOSITION,
            ("composed",),
            "composed" if composed else "",
            composed and {"epsilon": composed.epsilon, "delta": composed.delta},
            together,
        ),
        Fact(group, Point.COMPOSITION, (), "parts", _lines(release)),
        Fact(group, Point.COMPOSITION, ("parts",), "", _data(release)),
    ]


def what_it_does(release: CombinedRelease) -> str:
    many = len(release.parts)
    if release.rows_are == DISJOINT:
        return f"adds up the Gram matrices of {many} releases of disjoint rows, each with its own noise"
    return f"takes the mean of {many} releases of the same rows, each weighted by its noise"


def _of_disjoint(release: CombinedRelease) -> tuple[str, str]:
    unit = release.schema.unit
    promise = (
        f"a {unit} is protected by the budget of the part that it is in: tables are neighbours if they differ within one part. Epsilon and "
        f"delta above are the largest of all parts"
    )
    claim = f"no {unit} is in two parts. The custodians say so, and it cannot be checked here. A {unit} in several parts is protected less"
    try:
        total = budget_sum([part.budget for part in release.parts])
    except CombineError:  # of deltas that add up to one or more: nothing is left
        return promise, f"{claim}: the budgets of these parts add up"
    return (
        promise,
        f"{claim}: the budgets of these parts add up, to epsilon {total.epsilon:g} and delta {total.delta:g} for all parts",
    )


def _of_same(release: CombinedRelease) -> tuple[str, str]:
    numbers = " Their numbers of rows agree" if release.rows is not None else " "
    numbers = " Their numbers of units agree" if release.units is not None else numbers
    return (
        "all parts are releases of the same rows, so their epsilons and deltas add up to those above",
        f"all parts are releases of the same rows. The custodian says so, and it cannot be checked here.{numbers}".rstrip(),
    )


def composed_budget(release: CombinedRelease) -> Budget | None:
    """What parts of the same rows cost together by their privacy curves, at the sum of their deltas; None where that is no less."""
    try:
        costs = [cost for part in release.parts for cost in _costs(part)]
    except MechanismError:  # of a mechanism that this version does not know
        return None
    epsilon = composed_epsilon(release.budget.delta, costs)
    return Budget(epsilon, release.budget.delta) if epsilon < release.budget.epsilon else None


def _costs(part: GramRelease) -> list[Cost]:
    if isinstance(part, CombinedRelease) and part.rows_are == DISJOINT:
        return [PlainCost(part.budget.epsilon, part.budget.delta)]
    if isinstance(part, CombinedRelease):
        return [cost for each in part.parts for cost in _costs(each)]
    given = (part.budget, part.neighbours, len(part.columns), part.row_bound, part.calibration)
    return [registry.cost_of(part.mechanism, *given, part.parameters)]


def _lines(release: CombinedRelease) -> list[str]:
    return [f"{place}: {_line(release, place - 1)}" for place in range(1, len(release.parts) + 1)]


def _line(release: CombinedRelease, place: int) -> str:
    part, share = release.parts[place], percent(release.noise_shares[place])
    told = [f"epsilon {part.budget.epsilon:g}, delta {part.budget.delta:g}"]
    if isinstance(part, CombinedRelease):
        rows = "disjoint rows" if part.rows_are == DISJOINT else "the same rows"
        told.append(f"combined of {len(part.parts)} releases of {rows}")
    else:
        told.append(part.mechanism)
    told += [f"{number:,} {what}" for number, what in ((part.rows, "rows"), (part.units, "units")) if number is not None]
    told.append(f"{share} of the noise" if release.rows_are == DISJOINT else f"weight {release.weights[place]:.3g}")
    if part.ledger_entry is not None:
        line, _, seal = part.ledger_entry.partition(":")
        told.append(f"charged to line {line} of a ledger ({seal[:16]})")
    elif not isinstance(part, CombinedRelease):
        told.append("no ledger")
    return ", ".join([*told, *([] if part.private else ["NOT PRIVATE"])])


def _data(release: CombinedRelease) -> list[dict[str, Any]]:
    return [
        {
            "epsilon": part.budget.epsilon,
            "delta": part.budget.delta,
            "mechanism": part.mechanism,
            "private": part.private,
            "rows": part.rows,
            "units": part.units,
            "ledger_entry": part.ledger_entry,
            "signature": signature_data(part),
            "weight": weight,
            "noise_share": share,
            **({"rows_are": part.rows_are, "parts": _data(part)} if isinstance(part, CombinedRelease) else {}),
        }
        for part, weight, share in zip(release.parts, release.weights, release.noise_shares, strict=True)
    ]
