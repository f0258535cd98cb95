"""All that is to be said of a release, as one list: the label, the page, JSON and a dry run are renderings of it.

A fact has a name in plain words, a value with its unit, and the point of NIST SP 800-226 that it answers. It is found by its key or its
group, never by its name. What a mechanism's parameters and its noise are called they say themselves (``terms.words``)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from dpgram.artifact.combined import CombinedRelease, leaves_of
from dpgram.artifact.release import GramRelease
from dpgram.mechanisms.conversation import Mechanism
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.report.columns import computed, declared, scaled
from dpgram.report.combined import SPENDS_NOTHING, combination_facts, what_it_does
from dpgram.report.counting import (
    counting_facts,
    number_facts,
    protected_numbers,
    public_numbers,
    relation_in_words,
    unit_facts,
)
from dpgram.report.fact import Fact, Group, Planned, Rounds
from dpgram.report.notes import notes
from dpgram.report.signed import signature_data, signature_words
from dpgram.terms.schema import Schema
from dpgram.terms.words import SCALED, Point, Words, words_of

OF_ROUND = re.compile(r"round_(\d+)_(.+)")
SEEDED = "the noise comes from a seed, so anyone who knows the seed can subtract it"
CALIBRATIONS = {
    "exact": "exact: noise from the mechanism's privacy curve, or from a proven bound on it, rounded towards more privacy",
    "paper": "paper: noise from the printed formulas of Sheffet (2015)",
}


def facts(of: GramRelease | Planned) -> list[Fact]:
    """Everything known about a release, or about one that is planned."""
    known = MECHANISMS.get(of.mechanism)
    parts = len(of.leaves) if isinstance(of, CombinedRelease) else 1
    said = notes(of.schema, of.budget, int(of.parameters.get("rounds", 1)), known.proof if known else "", parts)
    more = [Fact(Group.NOTES, point, (), name, text) for point, name, text in said]
    before = [*_guarantee(of), *_mechanism(of)]
    about_rows = [*counting_facts(of.schema), *_columns(of.schema)]
    if isinstance(of, Planned):
        return [*before, *about_rows, *more]
    return [*before, *_noise(of), *about_rows, *_file(of), *more]


def label_data(of: GramRelease | Planned) -> dict[str, Any]:
    """The label as plain data, for ``--json``."""
    data: dict[str, Any] = {"parameters": {}, "bounds": {}, "derived": {}}
    for fact in facts(of):
        place = data
        for step in fact.key[:-1]:
            place = place.setdefault(step, {})
        if fact.key:
            place[fact.key[-1]] = fact.value
    return data


def label_groups(of: GramRelease | Planned) -> list[tuple[str, list[Fact]]]:
    """The label for people, in groups with titles; what holds of every release alike is left to the page."""
    listed = [fact for fact in facts(of) if fact.name and fact.group is not Group.NOTES]
    groups = {group: [fact for fact in listed if fact.group is group] for group in dict.fromkeys(fact.group for fact in listed)}
    return [(_title(group, of), members) for group, members in groups.items()]


def pairs(listed: list[Fact]) -> list[tuple[str, str]]:
    """Facts as (what, value), with a line for each thing said."""
    return [(fact.name, line) for fact in listed for line in fact.lines]


def _title(group: Group, of: GramRelease | Planned) -> str:
    if group is not Group.GUARANTEE:
        return group.value
    if not of.private:
        return f"NOT PRIVATE: {SEEDED}"
    return group.value if isinstance(of, GramRelease) else "Guarantee of the release to be made"


def _guarantee(of: GramRelease | Planned) -> list[Fact]:
    group, relation, differ, budget = Group.GUARANTEE, of.schema.neighbours.value, relation_in_words(of.schema), of.budget
    return [
        Fact(Group.NOTES, Point.IMPLEMENTATION, ("private",), "" if of.private else "NOT PRIVATE", of.private, SEEDED),
        Fact(group, Point.EPSILON, ("epsilon",), "epsilon", budget.epsilon, f"{budget.epsilon:g}"),
        Fact(group, Point.DELTA, ("delta",), "delta", budget.delta, f"{budget.delta:g}"),
        Fact(group, Point.NEIGHBOURS, ("neighbours",), "neighbours", relation, f"{relation}: {differ}"),
        Fact(group, Point.NEIGHBOURS, ("neighbours_in_words",), "", differ),
        *unit_facts(of),
        Fact(group, Point.MECHANISM, ("conditional",), "CONDITIONAL" if of.condition else "", of.condition or None),
        *(combination_facts(of) if isinstance(of, CombinedRelease) else []),
        *_account(of),
        *number_facts(of),
    ]


def _account(of: GramRelease | Planned) -> list[Fact]:
    if isinstance(of, Planned):
        return []
    if isinstance(of, CombinedRelease):
        return [Fact(Group.GUARANTEE, Point.COMPOSITION, ("ledger_entry",), "charged to", None, SPENDS_NOTHING)]
    account = "no ledger, so the cost of other releases of the same rows is not known here"
    if of.ledger_entry is not None:
        line, _, seal = of.ledger_entry.partition(":")
        account = f"line {line} of the custodian's ledger ({seal[:16]})"
    return [Fact(Group.GUARANTEE, Point.COMPOSITION, ("ledger_entry",), "charged to", of.ledger_entry, account)]


def _mechanism(of: GramRelease | Planned) -> list[Fact]:
    group, known = Group.MECHANISM, MECHANISMS.get(of.mechanism)
    made = of if isinstance(of, GramRelease) else None
    does = what_it_does(of) if isinstance(of, CombinedRelease) else known.summary if known else ""
    makers = {of.mechanism} if made is None else {leaf.mechanism for leaf in leaves_of(made)}
    maker = MECHANISMS.get(next(iter(makers))) if len(makers) == 1 else None
    words = words_of("row_bound", maker.words if maker else {})
    bound = f"{words.show(of.row_bound, of.parameters)} {words.unit or SCALED}; longer rows are clipped to it"
    return [
        Fact(group, Point.MECHANISM, ("mechanism",), "mechanism", of.mechanism),
        *([Fact(group, Point.MECHANISM, (), "what it does", does)] if does else []),
        Fact(group, Point.MECHANISM, ("chosen_by",), "chosen by" if of.choice else "", of.choice or None),
        Fact(group, Point.COMPARISON, ("calibration",), "calibration", of.calibration, CALIBRATIONS.get(of.calibration, "")),
        *parameter_facts(known, of.parameters, made=made is not None),
        *_passes(known, of),
        Fact(group, Point.BOUNDS, ("row_bound",), "row bound", of.row_bound, bound),
        *([Fact(group, Point.IMPLEMENTATION, ("randomness",), "randomness", made.randomness)] if made else []),
        Fact(group, Point.IMPLEMENTATION, ("arithmetic",), "arithmetic", of.arithmetic, _arithmetic(of)),
    ]


def parameter_facts(mechanism: Mechanism | None, parameters: Mapping[str, float], *, made: bool) -> list[Fact]:
    """The parameters in the mechanism's own words; those of rounds are for scripts, and people have a table of them."""
    words, listed = mechanism.words if mechanism else {}, []
    for name, value in parameters.items():
        called = words_of(name, words)
        told = called.name if not OF_ROUND.fullmatch(name) and not (called.early and made) else ""
        table = _table(words, parameters) if name == "rounds" else None
        text = called.show(value, parameters)
        listed.append(Fact(Group.MECHANISM, called.point, ("parameters", name), told, value, text, called.unit, table))
    later = "depend on the number of rows, so they are known only when the rows are read"
    return listed if made or listed else [Fact(Group.MECHANISM, Point.MECHANISM, (), "parameters", later)]


def _each_round(parameters: Mapping[str, float]) -> list[dict[str, float]]:
    """What is known of every round, by what it is."""
    rounds: dict[int, dict[str, float]] = {}
    for name, value in parameters.items():
        if match := OF_ROUND.fullmatch(name):
            rounds.setdefault(int(match[1]), {})[match[2]] = value
    return [rounds[place] for place in sorted(rounds)]


def _table(words: Mapping[str, Words], parameters: Mapping[str, float]) -> Rounds | None:
    """The rounds with one column for each thing known of them, in the order in which the mechanism declares its words."""
    rounds = _each_round(parameters)
    if not rounds:
        return None
    ordered = dict.fromkeys([*(name.removeprefix("round_") for name in words), *rounds[0]])
    called = {what: words_of(f"round_{what}", words) for what in ordered if what in rounds[0]}
    shown = {what: one for what, one in called.items() if one.name}
    rows = [
        ((float(k), str(k)), *((each[what], one.show(each[what], parameters)) for what, one in shown.items()))
        for k, each in enumerate(rounds, 1)
    ]
    caption = [f"{one.name}: {one.unit}" for one in shown.values() if one.unit]
    return Rounds(("round", *(one.name for one in shown.values())), tuple(rows), "; ".join(caption))


def _passes(mechanism: Mechanism | None, of: GramRelease | Planned) -> list[Fact]:
    """How often the table will be read, where that is more than once."""
    if isinstance(of, GramRelease) or mechanism is None or not (mechanism.several or of.schema.unit_id):
        return []
    rounds = int(of.parameters.get("rounds", 0))
    if not mechanism.several:
        told = "once"
    elif "sample" in of.parameters:
        told = "twice: once for a sample of rows that early rounds use, and once for the last round"
    elif rounds > 1:
        told = "once if its rows fit into memory, otherwise once for each round and each look at columns"
    else:
        told = "once" if rounds else "once or several times, depending on the number of rows, which is counted first"
    ids = " Before that, the column of ids is read, to count the rows of each unit." if of.schema.unit_id else ""
    again = "CSV files, query results and streams are read once, and kept until the release is made"
    return [Fact(Group.MECHANISM, Point.MECHANISM, (), "passes", f"the table is read {told}.{ids} {again}")]


def _arithmetic(of: GramRelease | Planned) -> str:
    """What the arithmetic means for the guarantee."""
    if of.arithmetic != "exact":
        return f"{of.arithmetic}: floating-point rounding may leak something about the rows"
    grid = of.grid if isinstance(of, GramRelease) else None
    on = "" if grid is None else f" to multiples of 2^{math.frexp(grid)[1] - 1}"
    return f"exact: real numbers, rounded once{on}, so floating-point rounding leaks nothing"


def _noise(release: GramRelease) -> list[Fact]:
    """What was done to the true matrix, with its size, as the law of the noise tells it."""
    law, group, point = release.noise, Group.NOISE, Point.ACCURACY
    values = {name: getattr(law, name) for name in law.numbers}
    told = {name: words.show(values[name], values) for name, words in law.numbers.items()}
    rounds, shift = _each_round(release.parameters), f"{law.shift:.6g} times the identity, subtracted before fitting"
    return [
        Fact(group, point, ("noise", "kind"), "kind", law.words),
        *(Fact(group, point, ("noise", n), w.name, values[n], told[n], w.unit) for n, w in law.numbers.items()),
        Fact(group, point, ("noise", "shift"), "public shift" if law.shift else "", law.shift, shift),
        Fact(group, point, ("noise", "units"), "units", "scaled units, in which every column spans at most [-1, 1]"),
        *([Fact(group, point, ("noise", "rounds"), "", rounds)] if rounds else []),
    ]


def _columns(schema: Schema) -> list[Fact]:
    """What is declared about the columns, and how others are computed from them."""
    told = [(Group.COLUMNS, "bounds", "declared", c.name, c.kind, declared(c) + scaled(c, schema)) for c in schema.columns]
    told += [(Group.DERIVED, "derived", "computed", d.name, d.kind, computed(d, schema)) for d in schema.derived]
    return [
        *(
            Fact(group, Point.BOUNDS, (key, name), name, {"kind": kind, how: text}, f"{kind}, {text}")
            for group, key, how, name, kind, text in told
        ),
        Fact(Group.COLUMNS, Point.BOUNDS, ("encoded_columns",), "", list(schema.encoded_names)),
    ]


def _file(release: GramRelease) -> list[Fact]:
    group, known = Group.FILE, MECHANISMS.get(release.mechanism)
    words = {name: words_of(name, known.words if known else {}) for name in release.parameters}
    public = [
        "the schema: names, kinds, bounds, categories, derived columns and unit",
        "the budget, the mechanism, the noise scale and the row bound",
        *public_numbers(release),
    ]
    protected = ["the Gram matrix, which contains noise, and every number computed from it"]
    if any(OF_ROUND.fullmatch(name) for name in words):
        protected.append("the matrices of all rounds, which contain noise, and the maps and shares computed from them")
    if isinstance(release, CombinedRelease):
        protected.append("the matrices of all parts, which contain noise, and what was computed from them")
    protected += [f"the {one.name}, and the parameters chosen from it" for one in words.values() if one.protected]
    protected += protected_numbers(release)
    exact = {name: str(value) for name, value in release.exact_parameters.items()}
    return [
        Fact(group, Point.COMPOSITION, ("public",), "public", public),
        Fact(group, Point.COMPOSITION, ("protected",), "protected", protected),
        Fact(group, Point.IMPLEMENTATION, ("exact_parameters",), "", exact),
        Fact(group, Point.IMPLEMENTATION, ("grid",), "", release.grid),
        Fact(Group.MADE, Point.IMPLEMENTATION, ("library_version",), "dpgram", release.library_version),
        Fact(Group.MADE, Point.IMPLEMENTATION, ("format",), "file format", release.format),
        Fact(Group.MADE, Point.SECURITY, ("signature",), "signature", signature_data(release), signature_words(release)),
    ]
