"""Which derived columns would have to be declared so that a release has what a formula asks for, and the error that says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpgram.errors import ModelError, SchemaError, UnderivedError
from dpgram.regression.algebra import LEVEL, LOG, LOG1P, NUMBER, PART, STEP, TRUTH, Atom, Monomial, Polynomial
from dpgram.regression.meaning import Released, part_number
from dpgram.terms.columns import DROP_ROW, INDICATOR, Categorical, Date, Numeric
from dpgram.terms.dates import iso_of_days, part_of_days
from dpgram.terms.derived import LARGEST_EXPONENT, DatePart, Derived, Interval, Log, Log1p, Power, Product
from dpgram.terms.elementary import log, log1p, power
from dpgram.terms.schema import Schema
from dpgram.terms.schema_file import declaration_lines

SHOWN = 12  # derived columns that a message lists
KINDS = (
    f"Such a column is a product of two columns, a power up to {LARGEST_EXPONENT}, log or log1p of a column, an interval, or a part of a "
    f"date."
)


class Undeclarable(Exception):
    """Why no derived column has a meaning; caught here."""


def underived(released: Released, what: str, left: Polynomial) -> ModelError:
    """The error for ``what``, of which the release lacks ``left``."""
    nearly = "".join(
        f" {name!r} of this release is the same except in rows where a cell of {parent!r} is missing: write {name!r} if it will do."
        for name, (meaning, parent) in released.differing.items()
        if set(left.weights) & set(meaning.weights)
    )
    try:
        needed = declarations(released.schema, left)
    except Undeclarable as why:
        return no_such_column(released, what, f"{why}{nearly}")
    written = "; ".join(", ".join(declaration_lines(one)) for one in needed)
    return UnderivedError(
        f"the formula contains `{what}`, which cannot be computed from the release. Ask the custodian to declare it before the release, "
        f"as a derived column under [[derived]] in the schema: {written}. 'dpgram schema suggest-derived' writes these lines."
        f"{nearly}{listed_derived(released.schema)}",
        needed=needed,
    )


def no_such_column(released: Released, what: str, why: str) -> ModelError:
    """The error for what no derived column computes, and ``why``, in sentences."""
    return UnderivedError(
        f"the formula contains `{what}`, which cannot be computed from the release. {why} Ask the custodian to add such a column to "
        f"the table itself.{listed_derived(released.schema)}"
    )


def listed_derived(schema: Schema) -> str:
    """What each derived column computes."""
    if not schema.derived:
        return ""
    shown = [f"{column.name!r} = {column.expression}" for column in schema.derived[:SHOWN]]
    more = f" and {len(schema.derived) - SHOWN} more" if len(schema.derived) > SHOWN else ""
    return f" The derived columns of this release are {', '.join(shown)}{more}."


def declarations(schema: Schema, left: Polynomial) -> tuple[Derived, ...]:
    """Derived columns of which ``left`` is a combination, with new names. Raises Undeclarable where there are none."""
    made: list[Derived] = []
    by_sources: dict[tuple, list[Monomial]] = {}
    for monomial in left.weights:
        kinds = tuple(sorted({(atom.kind, atom.column) for atom, _ in monomial}))
        by_sources.setdefault(kinds, []).append(monomial)
    for kinds, monomials in by_sources.items():
        match kinds:
            case ((kind, name),) if kind == NUMBER:
                made += [_power(schema, name, monomial[0][1]) for monomial in monomials]
            case ((kind, name),) if kind in (LOG, LOG1P) and all(monomial[0][1] == 1 for monomial in monomials):
                made.append(_log(schema, name, kind))
            case ((kind, name),) if kind == STEP:
                made += _intervals(schema, name, left, monomials)
            case ((kind, name),) if kind == PART:
                made += _parts(schema, name, left, monomials)
            case ((first, one), (second, other)) if one != other and {first, second} <= {NUMBER, TRUTH, LEVEL}:
                made += _products(schema, monomials)
            case _:
                raise Undeclarable(f"No derived column computes it. {KINDS}")
    taken = {*schema.all_names, *schema.encoded_names}
    named: list[Derived] = []
    for column in made:
        named.append(_renamed(column, taken))
        taken.add(named[-1].name)
        try:
            column.made(schema.by_name)
        except SchemaError as problem:
            raise Undeclarable(f"A derived column cannot compute it: {problem}") from None
    return tuple(named)


def _renamed(one: Derived, taken: set[str]) -> Derived:
    name, number = one.name, 2
    while name in taken:
        name, number = f"{one.name}_{number}", number + 1
    return replace(one, name=name)


def _fill(schema: Schema, name: str) -> float | None:
    """What stands for a missing cell that a derived column must agree with; None where none does."""
    column = schema.by_name[name]
    assert isinstance(column, Numeric | Date)
    return None if column.missing in (DROP_ROW, INDICATOR) else column.fill


def _power(schema: Schema, name: str, exponent: int) -> Power:
    if exponent > LARGEST_EXPONENT:
        raise Undeclarable(f"No derived column has a power above {LARGEST_EXPONENT}.")
    fill = _fill(schema, name)
    called = {2: f"{name}_squared", 3: f"{name}_cubed"}.get(exponent, f"{name}_power_{exponent}")
    return Power(called, name, exponent, **({} if fill is None else {"missing": float(power(fill, exponent))}))


def _log(schema: Schema, name: str, kind: str) -> Log | Log1p:
    made, function = (Log, log) if kind == LOG else (Log1p, log1p)
    fill = _fill(schema, name)
    return made(f"{kind}_{name}", name, **({} if fill is None else {"missing": float(function(np.array([fill]))[0])}))


def _intervals(schema: Schema, name: str, left: Polynomial, monomials: Sequence[Monomial]) -> list[Interval]:
    """One for two steps of opposite weights, up and down; else one for each step."""
    column = schema.by_name[name]
    assert isinstance(column, Numeric | Date)
    steps: list[tuple[Any, Fraction]] = sorted((monomial[0][0].which, left.weights[monomial]) for monomial in monomials)
    together = len(steps) == 2 and steps[0][1] == -steps[1][1]
    ends: list[tuple[Any, Any]] = (
        [(steps[0][0], steps[1][0])] if together else [(at, None) if weight > 0 else (None, at) for at, weight in steps]
    )
    fill = _fill(schema, name)
    made = []
    for low, high in ends:
        written = [None if end is None else iso_of_days(end) if isinstance(column, Date) else end for end in (low, high)]
        words = [
            f"{word}_{_word(_plain(end))}" for word, end in zip(("from", "below"), written, strict=True) if end is not None
        ]
        missing = fill is not None and (low is None or low <= fill) and (high is None or fill < high)
        made.append(Interval("_".join([name, *words]), name, written[0], written[1], missing=missing))
    return made


def _plain(end: object) -> str:
    text = str(int(end)) if isinstance(end, float) and end.is_integer() else str(end)
    return f"minus_{text[1:]}" if text.startswith("-") else text


def _parts(schema: Schema, name: str, left: Polynomial, monomials: Sequence[Monomial]) -> list[DatePart]:
    """The part as a number where that is enough, else its levels."""
    column = schema.by_name[name]
    assert isinstance(column, Date)
    made = []
    for part in sorted({monomial[0][0].which[0] for monomial in monomials}):  # type: ignore[index]
        whole = {m: w for m, w in part_number(column, part).weights.items() if m}
        own = {m: left.weights[m] for m in monomials if m in whole}
        is_number = len(own) == len(whole) and len({own[m] / whole[m] for m in own}) == 1 and len(whole) > 1
        fill = _fill(schema, name)
        missing: dict = {}
        if fill is not None:
            value = part_of_days(part, fill)
            missing = {"missing": float(value)} if is_number else {}
        made.append(DatePart(f"{name}_{part}", name, part, levels=not is_number, **missing))
    return made


def _products(schema: Schema, monomials: Iterable[Monomial]) -> list[Product]:
    """Of two columns: whole categories where all of their levels are wanted, else single levels."""
    order = [NUMBER, TRUTH, LEVEL]
    atoms = [tuple(sorted((a for a, _ in monomial), key=lambda a: order.index(a.kind))) for monomial in monomials]
    if any(power > 1 for monomial in monomials for _, power in monomial) or any(len(pair) != 2 for pair in atoms):
        raise Undeclarable(f"No derived column computes it. {KINDS}")
    for one in {atom.column for pair in atoms for atom in pair}:
        column = schema.by_name[one]
        filled = column.missing != DROP_ROW and not (isinstance(column, Categorical) and column.missing == "level")
        if filled and not isinstance(column, Categorical) and column.fill != 0:
            raise Undeclarable(
                f"A product would be another number where a cell of {one!r} is missing. The custodian can declare both the product and "
                f'missing = "drop-row" for {one!r}.'
            )
    first, second = atoms[0]
    whole = len(atoms) == _count(schema, first) * _count(schema, second)
    pairs = [tuple(_factor_name(schema, atom, whole=whole) for atom in pair) for pair in (atoms[:1] if whole else atoms)]
    return [Product("_by_".join(_word(name) for name in pair), pair) for pair in pairs]  # type: ignore[arg-type]


def _count(schema: Schema, atom: Atom) -> int:
    column = schema.by_name[atom.column]
    return len(column.levels) - 1 if isinstance(column, Categorical) else 1


def _factor_name(schema: Schema, atom: Atom, *, whole: bool) -> str:
    column = schema.by_name[atom.column]
    if isinstance(column, Categorical) and not whole:
        return f"{column.name}[{column.levels[atom.which]}]"  # type: ignore[call-overload]
    return column.name


def _word(name: str) -> str:
    """Without signs that would need backquotes."""
    return re.sub(r"\W+", "_", name).strip("_")
