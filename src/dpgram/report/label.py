"""The privacy label: what was promised, to whom, by which mechanism, and what in the file is public or protected."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from dpgram.artifact.release import GramRelease
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.columns import Boolean, Categorical, Column, Date, Numeric
from dpgram.terms.derivation import Derived
from dpgram.terms.derived import DatePart, Interval, Log1p, Power
from dpgram.terms.products import Product
from dpgram.terms.schema import Schema

ASSUMED = {
    "table": "one row per {unit} is assumed, not enforced: a {unit} with several rows is protected less",
    "result": (
        "one row of the result per {unit} is assumed, not enforced: a {unit} that appears in several rows of it is protected less "
        "(a join can multiply rows, an aggregate mixes the rows of several in one)"
    ),
}
ROW = {"table": "one row: {unit}", "result": "one row of the result of a query, lazy frame or stream: {unit}"}


def label_data(release: GramRelease) -> dict:
    """The label as plain data, for ``--json``."""
    return {
        "private": release.private,
        "epsilon": release.budget.epsilon,
        "delta": release.budget.delta,
        "neighbours": release.neighbours.value,
        "neighbours_in_words": release.neighbours.in_words,
        "unit": release.schema.unit,
        "rows_of": release.rows_of,
        "unit_assumption": ASSUMED[release.rows_of].format(unit=release.schema.unit),
        "rows": release.rows,
        "mechanism": release.mechanism,
        "chosen_by": release.choice or None,
        "calibration": release.calibration,
        "conditional": release.condition or None,
        "parameters": release.parameters,
        "exact_parameters": {name: str(value) for name, value in release.exact_parameters.items()},
        "noise": {
            "sd_off_diagonal": release.noise.sd_off_diagonal,
            "sd_diagonal": release.noise.sd_diagonal,
            "shift": release.noise.shift,
            "units": "scaled units, in which every column spans at most [-1, 1]",
            **_rounds(release),
        },
        "row_bound": release.row_bound,
        "randomness": release.randomness,
        "arithmetic": release.arithmetic,
        "grid": release.grid,
        "ledger_entry": release.ledger_entry,
        "bounds": {column.name: {"kind": column.kind, "declared": declared(column)} for column in release.schema.columns},
        "derived": {d.name: {"kind": d.kind, "computed": computed(d, release.schema)} for d in release.schema.derived},
        "encoded_columns": list(release.columns),
        "public": public_parts(release),
        "protected": protected_parts(release),
        "library_version": release.library_version,
        "format": release.format,
    }


def label_sections(release: GramRelease) -> list[tuple[str, list[tuple[str, str]]]]:
    """The label as titled lists of (what, value), for people."""
    unit, noise = release.schema.unit, release.noise
    where = "everywhere" if noise.everywhere else "along the weakest directions"
    return [
        (
            "Guarantee" if release.private else "NOT PRIVATE: the noise came from a seed, so it can be subtracted",
            [
                ("epsilon", f"{release.budget.epsilon:g}"),
                ("delta", f"{release.budget.delta:g}"),
                ("neighbours", f"{release.neighbours.value}: {release.neighbours.in_words}"),
                ("unit of privacy", ROW[release.rows_of].format(unit=unit)),
                ("assumed", ASSUMED[release.rows_of].format(unit=unit)),
                *([("CONDITIONAL", release.condition)] if release.condition else []),
                ("charged to", paid_by(release)),
                ("rows", "protected" if release.rows is None else f"{release.rows} (public)"),
            ],
        ),
        (
            "Mechanism",
            [
                ("name", release.mechanism),
                *([("chosen by", release.choice)] if release.choice else []),
                ("calibration", release.calibration),
                *((name, f"{value:.6g}") for name, value in release.parameters.items()),
                *_bound(release),
                (
                    "noise sd",
                    f"{noise.sd_off_diagonal:.6g} off the diagonal, {noise.sd_diagonal:.6g} on it, in scaled units, {where}",
                ),
                ("randomness", release.randomness),
                ("arithmetic", _arithmetic(release)),
            ],
        ),
        *column_sections(release.schema),
        (
            "What is in the file",
            [
                *(("public", part) for part in public_parts(release)),
                *(("protected", part) for part in protected_parts(release)),
            ],
        ),
        ("Made by", [("dpgram", release.library_version), ("file format", str(release.format))]),
    ]


def _rounds(release: GramRelease) -> dict:
    """What each round did, where there were several."""
    if not release.noise.rounds:
        return {}
    return {"rounds": [{"sd_off_diagonal": r.sd_off_diagonal, "kept": r.kept} for r in release.noise.rounds]}


def _bound(release: GramRelease) -> list[tuple[str, str]]:
    """What limits a row."""
    if not release.noise.rounds:
        return [("row bound", f"{release.row_bound:.6g} (scaled units; longer rows are shrunk to it)")]
    kept = f"a row's squares count for {release.noise.rounds[-1].kept:.1%} on average in the last round, as far as the release can tell"
    return [
        ("rounds", f"{len(release.noise.rounds)}, each with rows whitened by what those before it published"),
        ("row bound", f"1 for whitened rows (longer ones are shrunk to it; {kept})"),
    ]


def paid_by(release: GramRelease) -> str:
    """Which account paid for the release."""
    if release.ledger_entry is None:
        return "no ledger; what other releases of the same rows cost is not known here"
    number, _, seal = release.ledger_entry.partition(":")
    return f"line {number} of the custodian's ledger ({seal[:16]})"


def column_sections(schema: Schema) -> list[tuple[str, list[tuple[str, str]]]]:
    """What is declared about the columns, and how others are computed from them."""
    derived = [(d.name, f"{d.kind}, {computed(d, schema)}") for d in schema.derived]
    return [
        ("Declared columns", [(column.name, f"{column.kind}, {declared(column)}") for column in schema.columns]),
        *([("Derived columns", derived)] if derived else []),
    ]


@dataclass(frozen=True)
class Planned:
    """What is known of a release before it is made."""

    schema: Schema
    budget: Budget
    mechanism: str
    calibration: str
    parameters: dict[str, float]  # empty where they follow the number of rows
    condition: str
    choice: str
    rows_of: str
    arithmetic: str
    private: bool
    several: bool = False  # whether it reads the table several times


def planned_data(planned: Planned) -> dict:
    """The label of a release that was not made, as plain data."""
    schema = planned.schema
    return {
        "private": planned.private,
        "epsilon": planned.budget.epsilon,
        "delta": planned.budget.delta,
        "neighbours": schema.neighbours.value,
        "neighbours_in_words": schema.neighbours.in_words,
        "unit": schema.unit,
        "rows_of": planned.rows_of,
        "unit_assumption": ASSUMED[planned.rows_of].format(unit=schema.unit),
        "mechanism": planned.mechanism,
        "chosen_by": planned.choice or None,
        "calibration": planned.calibration,
        "conditional": planned.condition or None,
        "parameters": planned.parameters,
        "row_bound": schema.effective_row_bound,
        "arithmetic": planned.arithmetic,
        "bounds": {column.name: {"kind": column.kind, "declared": declared(column)} for column in schema.columns},
        "derived": {d.name: {"kind": d.kind, "computed": computed(d, schema)} for d in schema.derived},
        "encoded_columns": list(schema.encoded_names),
    }


def planned_sections(planned: Planned) -> list[tuple[str, list[tuple[str, str]]]]:
    """The same for people."""
    schema = planned.schema
    public = schema.neighbours is Neighbours.REPLACE
    later = [("parameters", "follow the number of rows, and are known when the rows are read")]
    return [
        (
            "Guarantee of the release to be made" if planned.private else "NOT PRIVATE: the noise would come from a seed",
            [
                ("epsilon", f"{planned.budget.epsilon:g}"),
                ("delta", f"{planned.budget.delta:g}"),
                ("neighbours", f"{schema.neighbours.value}: {schema.neighbours.in_words}"),
                ("unit of privacy", ROW[planned.rows_of].format(unit=schema.unit)),
                ("assumed", ASSUMED[planned.rows_of].format(unit=schema.unit)),
                *([("CONDITIONAL", planned.condition)] if planned.condition else []),
                ("rows", "will be public" if public else "stay protected"),
            ],
        ),
        (
            "Mechanism",
            [
                ("name", planned.mechanism),
                *([("chosen by", planned.choice)] if planned.choice else []),
                ("calibration", planned.calibration),
                *([(name, f"{value:.6g}") for name, value in planned.parameters.items()] or later),
                *_planned_bound(planned),
                ("arithmetic", planned.arithmetic),
            ],
        ),
        *column_sections(schema),
    ]


def _planned_bound(planned: Planned) -> list[tuple[str, str]]:
    """What will limit a row, and how often the table will be read."""
    if not planned.several:
        return [("row bound", f"{planned.schema.effective_row_bound:.6g} (scaled units; longer rows are shrunk to it)")]
    again = "it must be one that can be read again, or be kept in a cache while the release is made"
    if "rounds" in planned.parameters:
        rounds, mu = int(planned.parameters["rounds"]), planned.parameters["mu"]
        shares = [(planned.parameters[f"round_{k}_mu"] / mu) ** 2 for k in range(1, rounds + 1)]
        split = f"; shares of mu^2: {', '.join(f'{share:.1%}' for share in shares)}" if rounds > 1 else ""
        times = "once" if rounds == 1 else f"{rounds} times, once for each round"
        told = f"the table is read {times}{split}"
    else:
        told = "the table is read for each round; how many there are follows the number of rows, which the first pass counts"
    return [
        ("passes", told),
        ("table", again),
        ("row bound", "1 for whitened rows (longer ones are shrunk to it; how much that leaves, the release says)"),
    ]


def _arithmetic(release: GramRelease) -> str:
    """What the arithmetic means for the guarantee."""
    if release.arithmetic != "exact":
        return f"{release.arithmetic}; leakage through floating-point rounding is not excluded"
    on = "" if release.grid is None else f" to multiples of 2^{math.frexp(release.grid)[1] - 1}"
    return f"exact: the mechanism's real numbers, rounded once{on}, so the guarantee is that of the numbers in the file"


def declared(column: Column) -> str:
    """What was declared about a column, in words."""
    match column:
        case Numeric():
            missing = _number(column.missing) if isinstance(column.missing, float) else "the midpoint"
            return f"clamped to [{_number(column.lower)}, {_number(column.upper)}]; missing cells become {missing}"
        case Categorical():
            listed = ", ".join(json.dumps(c, ensure_ascii=False) for c in column.categories)
            other = "; undeclared values become level 'other'" if column.other else "; undeclared values count as missing"
            missing = "a level of their own" if column.missing == "level" else "the reference"
            return f"one of {listed}, the first is the reference{other}; missing cells become {missing}"
        case Boolean():
            return f"0 or 1; missing cells become {int(column.missing)}"
        case Date():
            missing = "the midpoint" if column.missing == "midpoint" else column.missing
            span = f"clamped to [{column.lower}, {column.upper}]"
            return f"{span}, in days since 1970-01-01 (UTC); missing cells become {missing}"


def _number(value: float) -> str:
    """A declared number with all of its digits: the label must not state another bound."""
    return f"{value:.15g}"


def computed(derived: Derived, schema: Schema) -> str:
    """How a derived column was computed from the clamped cells of declared ones, in words."""
    match derived:
        case Product():
            formula = " times ".join(derived.of)
        case Power():
            formula = f"{derived.of} to the power {derived.exponent}"
        case Log1p():
            formula = f"log(1 + {derived.of})"
        case Interval():
            below, above = ("" if end is None else f"{end}" for end in (derived.lower, derived.upper))
            formula = f"1 where {below + ' <= ' if below else ''}{derived.of}{' < ' + above if above else ''}, else 0"
        case DatePart():
            week = " (Monday is 1)" if derived.part == "weekday" else ""
            formula = f"{derived.part.replace('_', ' ')}{week} of {derived.of}, in UTC{', by levels' if derived.levels else ''}"
    made = schema.made[derived.name]
    if made.is_number:
        missing = "the midpoint" if derived.missing in (None, "midpoint") else _number(made.fill[0])  # type: ignore[attr-defined]
        return f"{formula}, within [{_number(made.lower)}, {_number(made.upper)}]; where a parent is missing, {missing}"
    own_level = len(made.fill) > 1 and any(made.fill)
    return f"{formula}; where a parent is missing, {'a level of its own' if own_level else int(made.fill[0])}"


def public_parts(release: GramRelease) -> list[str]:
    parts = [
        "the schema: names, kinds, bounds, categories, derived columns, unit",
        "budget, mechanism, noise scale and row bound",
    ]
    return [*parts, "the number of rows"] if release.rows is not None else parts


def protected_parts(release: GramRelease) -> list[str]:
    parts = ["the Gram matrix, which carries noise; every number computed from it is protected too"]
    if release.noise.rounds:
        parts.append("the matrices of all rounds, which carry noise, and the maps and shares that were made of them")
    if "first_stage_value" in release.parameters:
        parts.append("what the first stage returned (first_stage_value), and the parameters that were chosen by it")
    if release.neighbours is Neighbours.ADD_REMOVE:
        parts.append("the number of rows, of which the intercept's entry is a noisy estimate (shrunk rows count for less)")
    return parts
