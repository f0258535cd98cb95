"""Regressions written as formulas, such as ``arr_delay ~ dep_delay*carrier + I(distance**2) - 1``.

No row is needed, and no code in the formula is run. Each term is a weighted sum of products of a row's values, and the release has columns
of which it is a combination, or the formula is refused with the words that a custodian needs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from dpgram.errors import ModelError
from dpgram.regression.algebra import ONE, Polynomial, exact
from dpgram.regression.coding import coded
from dpgram.regression.design import Design, DesignColumn, assemble, check_target, check_unit, encoded_parts, feature_places
from dpgram.regression.formula_parser import parse
from dpgram.regression.formula_terms import Factor, Part, read_code, read_name
from dpgram.regression.instruments import Instrumented
from dpgram.regression.meaning import Released, Weights, level, released
from dpgram.regression.needed import underived
from dpgram.terms.columns import Categorical
from dpgram.terms.derived import LARGEST_EXPONENT
from dpgram.terms.schema import MOST_ENCODED_COLUMNS, Schema

NOT_A_NAME = "a formula cannot name the column '1', because 1 means the intercept. Pass target and features as names instead."
Term = tuple[Factor, ...]
"""The factors of a product; of a main effect there is one."""


def is_formula(text: object) -> bool:
    """Whether ``text`` is a formula rather than the name of a column."""
    return isinstance(text, str) and "~" in text


def has_instruments(formula: str) -> bool:
    """Whether a ``~`` of ``formula`` is in square brackets, as in ``y ~ w + [x ~ z]``."""
    _check_text(formula, "y ~ x")
    inside = False
    for token in parse(formula, "get_tokens")[0]:
        match token.kind.name, token.token:
            case "CONTEXT", "[" | "]" as bracket:
                inside = bracket == "["
            case "OPERATOR", symbols if inside and "~" in symbols:
                return True
    return False


def designs(schema: Schema, formula: str) -> list[Design]:
    """One design for each target on the left of ``formula``, all with the features on its right.

    A category stands for all its levels but the reference, unless something that its levels add up to is not in the formula, as in
    formulaic, patsy and R. Without an intercept numbers go through the origin of their own units."""
    _check_text(formula, "y ~ x")
    columns = released(schema)
    targets, features, constant = _sides(columns, formula)
    explained = [_target(columns, term) for term in targets]
    for target in explained:
        for term in features:
            if any(part.meaning == target.meaning for part in _all_parts(term)):
                raise ModelError(f"{target.name!r} is the target, so it cannot be a feature too. Remove `{_text(term)}`.")
    parts = _parts(columns, features, constant)
    labels = [_columns(columns, [target], target.name, target.name)[0] for target in explained]
    return [assemble(schema, label, parts, constant) for label in labels]


def instrumented(schema: Schema, formula: str) -> Instrumented:
    """The regression with instruments that ``formula`` asks for, such as ``y ~ w + [x ~ z]``, as linearmodels writes it.

    Outside the brackets are the target and the exogenous regressors, inside the endogenous regressors and their instruments."""
    _check_text(formula, IV_EXAMPLE)
    outer, inner = _bracketed(formula)
    _check_both_sides(formula, outer, inner)
    columns = released(schema)
    targets, exogenous, constant = _sides(columns, outer)
    endogenous, excluded, _ = _sides(columns, inner, constant=False)
    if len(targets) > 1:
        raise ModelError(f"the formula {formula!r} has {len(targets)} targets. Write one formula for each target.")
    target = _target(columns, targets[0])
    groups = {"an exogenous regressor": exogenous, "an endogenous regressor": endogenous, "an instrument": excluded}
    roles = {target.meaning: "the target"}
    for role, terms in groups.items():
        for part in (part for term in terms for part in _all_parts(term)):
            if roles.setdefault(part.meaning, role) != role:
                raise ModelError(
                    f"{part.name!r} is {roles[part.meaning]}, so it cannot be {role} too. {_advice(roles[part.meaning], role)}"
                )
    if not excluded:
        raise ModelError(f"the formula {formula!r} names no instrument. Write it as '{IV_EXAMPLE}'.")
    regressors, instruments = (_parts(columns, [*exogenous, *others], constant) for others in (endogenous, excluded))
    known = {part.name for part in _parts(columns, exogenous, constant)}
    extra, used = ([part.name for part in parts if part.name not in known] for parts in (regressors, instruments))
    if len(used) < len(extra):
        raise ModelError(
            f"there are {len(extra)} endogenous regressors ({', '.join(extra)}) but only {len(used)} instrument{'s' * (len(used) > 1)} "
            f"({', '.join(used)}). "
            f"Name at least as many instruments as endogenous regressors."
        )
    (label,) = _columns(columns, [target], target.name, target.name)
    return Instrumented(
        assemble(schema, label, regressors, constant), assemble(schema, label, instruments, constant), tuple(extra), tuple(used)
    )


def _check_both_sides(formula: str, outer: str, inner: str) -> None:
    """Raise where something is missing: of parts of a formula, the words would not say of which formula."""
    left, tilde, right = inner.partition("~")
    missing = {
        "names no target": not outer.partition("~")[0].strip(),
        "has no ~ in its square brackets": not tilde,
        "names no endogenous regressor": left.strip() in ("", "0", "1"),
        "names no instrument": not right.strip(),
    }
    for words, is_missing in missing.items():
        if is_missing:
            raise ModelError(f"the formula {formula!r} {words}. Write it as '{IV_EXAMPLE}'.")


IV_EXAMPLE = "y ~ w + [x ~ z]"
_ADVICE = {
    "an exogenous regressor": "Remove it.",
    "an endogenous regressor": "Name it once: inside the brackets, left of the ~, if it is endogenous.",
    "an instrument": "An exogenous regressor is its own instrument. Name only instruments that are not in the regression.",
}


def _advice(first: str, second: str) -> str:
    if second != "an instrument" or first == "an exogenous regressor":
        return _ADVICE[second]
    return "Name only instruments that are not in the regression."


def _bracketed(formula: str) -> tuple[str, str]:
    """The formula without its part in square brackets, and that part."""
    marks = [token for token in parse(formula, "get_tokens")[0] if token.kind.name == "CONTEXT" and token.token in ("[", "]")]
    if not marks:
        raise ModelError(
            f"the formula {formula!r} has no endogenous regressor with instruments. Write them in square brackets, as in "
            f"'{IV_EXAMPLE}', or use regress for a regression without instruments."
        )
    if [token.token for token in marks] != ["[", "]"]:
        raise ModelError(
            f"the formula {formula!r} must have one part in square brackets. Write all endogenous regressors and all instruments in it, "
            f"as in 'y ~ w + [x1 + x2 ~ z1 + z2]'."
        )
    before, after = formula[: marks[0].source_start].rstrip(), formula[marks[1].source_start + 1 :].lstrip()
    if before.endswith("+"):
        before = before[:-1]
    elif before.endswith("~"):
        before = f"{before} 1"
    else:
        raise ModelError(f"the formula {formula!r} has square brackets in the wrong place. Write it as '{IV_EXAMPLE}'.")
    if after and after[0] not in "+-":
        raise ModelError(f"the formula {formula!r} has {after!r} after the square brackets. Put a + between them.")
    return f"{before} {after}", formula[marks[0].source_start + 1 : marks[1].source_start]


def _check_text(formula: object, example: str) -> None:
    if not isinstance(formula, str):
        raise ModelError(f"the formula is a {type(formula).__name__} and must be text, such as '{example}'.")


def _sides(columns: Released, formula: str, *, constant: bool = True) -> tuple[list[Term], list[Term], bool]:
    """Targets, features, and whether there is an intercept, which is left alone where there is to be no ``constant``."""
    if constant and is_formula(formula) and not formula.partition("~")[2].strip():
        raise ModelError(
            f"the formula {formula!r} has nothing on its right side: write the features there, or 1 for the intercept alone."
        )
    targets, features, ones, removed = _terms(columns, formula, _sources_of_targets(columns, formula))
    _check_removed(removed, features)
    if constant and ones and not columns.schema.intercept:
        raise ModelError("the release was made without an intercept column. Add - 1 to the formula.")
    return targets, features, ones


def _sources_of_targets(columns: Released, formula: str) -> set[str]:
    """The declared columns whose cells decide the targets. Every name in the formula is read, also of what is removed again."""
    schema, side = columns.schema, 0
    sources: set[str] = set()
    before = ""
    for token in parse(formula, "get_tokens")[0]:
        match token.kind.name, token.token:
            case "OPERATOR", "." if "1" in schema.all_names:
                raise ModelError(NOT_A_NAME)
            case "OPERATOR", symbols if "|" in symbols:
                raise ModelError(f"the formula {formula!r} has several parts, separated by |. Write one formula for each part.")
            case "OPERATOR", symbols:
                side = 1 if "~" in symbols else side
            case "CONTEXT", "[" | "]":
                raise ModelError(
                    f"the formula {formula!r} has square brackets. Write a level in backquotes, as in `c[a]`. For a regression with "
                    f"instruments, use iv."
                )
            case "VALUE", text if text != "1" and before not in ("**", "^"):
                raise ModelError(
                    f"the formula {formula!r} contains the value {text}. The only values allowed are 0 and 1, for the intercept."
                )
            case "NAME", "1":
                raise ModelError(NOT_A_NAME)
            case ("NAME" | "PYTHON") as kind, text:
                factor = (read_name if kind == "NAME" else read_code)(columns, text)
                if not side:
                    sources |= {
                        atom.column for part in factor.parts for monomial in part.meaning.weights for atom, _ in monomial
                    }
        before = token.token
    if not side:
        raise ModelError(f"the formula {formula!r} has no ~ between target and features. Write it as 'y ~ x'.")
    return sources


def _terms(columns: Released, formula: str, without: set[str]) -> tuple[list[Term], list[Term], bool, list[Term]]:
    """Targets, features, whether there is an intercept, and what is removed though it is not there.

    The ``.`` stands for all columns that do not come from the cells of those in ``without``. Features are in the order of formulaic and
    R: main effects first, then products of two, and so on."""
    schema = columns.schema
    own = [j for j, e in enumerate(schema.encoded) if e.column in without or e.name in without]
    available = list(dict.fromkeys(schema.encoded[j].column for j in feature_places(schema, None, own)))
    sides, removed = parse(formula, "get_terms", context={"__formulaic_variables_available__": available})
    left, right = ([*getattr(sides, side, ())] for side in ("lhs", "rhs"))
    ones = [any(not _factors(term) for term in side) for side in (left, right)]
    if ones[0] or not left:
        arithmetic = " Put arithmetic into I(), as in 'I(1 - y) ~ x'." if re.search("[-+*/]", formula.partition("~")[0]) else ""
        raise ModelError(f"the formula {formula!r} has no target on its left side. Write it as 'y ~ x'.{arithmetic}")
    right.sort(key=lambda term: len(_factors(term)))
    targets, features, gone = ([_read(columns, term) for term in side if _factors(term)] for side in (left, right, removed))
    return targets, features, ones[1], gone


def _factors(term: Any) -> list[Any]:
    """The factors of formulaic's term, but for the number one."""
    return [factor for factor in term.factors if factor.eval_method.name != "LITERAL"]


def _read(columns: Released, term: Any) -> Term:
    factors = _factors(term)
    if len(factors) > LARGEST_EXPONENT:
        raise ModelError(f"the formula has a product of {len(factors)} terms, but no release has products of so many.")
    return tuple((read_code if factor.eval_method.name == "PYTHON" else read_name)(columns, factor.expr) for factor in factors)


def _text(term: Term) -> str:
    return ":".join(factor.text for factor in term)


def _all_parts(term: Term) -> Iterable[Part]:
    """Every column that a term could have, the references of its categories too."""
    return _products([factor.parts for factor in term], _text(term))


def _products(parts: Sequence[Sequence[Part]], text: str) -> list[Part]:
    """The products of columns, one of each factor, in formulaic's order: the first factor's change fastest."""
    if math.prod(map(len, parts)) > MOST_ENCODED_COLUMNS:
        raise ModelError(f"`{text}` would make more than {MOST_ENCODED_COLUMNS:,} columns. Use single levels.")
    made = []
    for chosen in itertools.product(*reversed(parts)):
        some = chosen[::-1]
        made.append(
            Part(":".join(part.name for part in some), reduce(Polynomial.__mul__, (part.meaning for part in some), ONE))
        )
    return made


def _check_removed(removed: Iterable[Term], features: Sequence[Term]) -> None:
    """Refuse ``C(c) - c`` and ``c - `c[b]```: formulaic compares terms as texts, so nothing would be removed in silence."""
    for gone in removed:
        meanings = {part.meaning for part in _all_parts(gone)}
        for kept in features:
            if kept != gone and any(part.meaning in meanings for part in _all_parts(kept)):
                raise ModelError(
                    f"`{_text(gone)}` is removed, but `{_text(kept)}` contains it and stays. Remove `{_text(kept)}` instead, exactly as "
                    f"it is written, and add the levels that you want one by one."
                )


def _target(columns: Released, term: Term) -> Part:
    parts = list(_all_parts(term))
    if len(parts) > 1:
        choices = ", ".join(f"`{part.name}`" for part in parts)
        raise ModelError(f"{term[0].column!r} has several columns, so it cannot be a target. Name one of them: {choices}.")
    weights, _ = columns.combination(parts[0].meaning)
    check_target(columns.schema, parts[0].name, list(weights))
    return parts[0]


def _parts(columns: Released, features: Sequence[Term], constant: bool) -> list[DesignColumn]:
    """The columns of the fit, in the order of the formula. No column stands twice, and all levels of a category, which add up to one,
    stand only where nothing else does."""
    parts: list[DesignColumn] = []
    seen: dict[Polynomial, str] = {}
    factors = {factor.text: factor for term in features for factor in term}
    texts = [[(factor.text, factor.reference is not None) for factor in term] for term in features]
    for term, products in zip(features, coded(texts, constant), strict=True):
        group = term[0].column if len(term) == 1 else _text(term)
        made = [one for product in products for one in _coded_parts(factors, product, _text(term))]
        made += term[0].marks if len(term) == 1 else ()
        for part in made:
            if part.meaning in seen:
                same = f" `{part.name}` is the same." if part.name != seen[part.meaning] else ""
                raise ModelError(f"feature {seen[part.meaning]!r} is named twice.{same} Name it once.")
            if part.name in seen.values():
                raise ModelError(f"two features would be called {part.name!r}. Leave one of them out.")
            seen[part.meaning] = part.name
        parts += _columns(columns, made, group, _text(term))
    _check_sums(columns.schema, seen, constant)
    return parts


def _coded_parts(factors: dict[str, Factor], product: Iterable[tuple[str, bool]], text: str) -> list[Part]:
    chosen = []
    for name, reduced in product:
        factor = factors[name]
        chosen.append([part for place, part in enumerate(factor.parts) if not (reduced and place == factor.reference)])
    return _products(chosen, text)


def _check_sums(schema: Schema, seen: dict[Polynomial, str], constant: bool) -> None:
    places = {meaning: place for place, meaning in enumerate(seen)}
    whole: dict[int, str] = {}
    for column in schema.columns:
        if isinstance(column, Categorical) and level(column, 0) in places:
            levels = [level(column, place) for place in range(len(column.levels))]
            if places.keys() >= set(levels):
                whole[min(places[one] for one in levels)] = f"all levels of {column.name!r}"
    adding_up = [*(["the intercept"] if constant else []), *(whole[place] for place in sorted(whole))]
    if len(adding_up) > 1:
        raise ModelError(
            f"{' and '.join(adding_up)} cannot be used together, because each adds up to one. Leave out a level"
            f"{', or remove the intercept with - 1' if constant else ''}."
        )


def _columns(columns: Released, parts: Sequence[Part], group: str, text: str) -> list[DesignColumn]:
    """The combinations of released columns that ``parts`` are. Where there are none, an error for the whole term, which is ``text``."""
    found = [columns.combination(part.meaning) for part in parts]
    for part, (_, left) in zip(parts, found, strict=True):
        if part.meaning.is_constant:
            raise ModelError(f"`{part.name}` is {float(part.meaning.number):g} in every row. Leave it out.")
        if set(left.weights) == {()}:
            raise ModelError(
                f"`{part.name}` is computed from the intercept column, because it is a reference level or has a constant in it. But the "
                f"release was made without an intercept column. Name the other levels one by one, or leave the constant out."
            )
    lacking = [left for _, left in found if left.weights]
    if lacking:
        together = Polynomial({monomial: Fraction(1) for left in lacking for monomial in left.weights if monomial})
        raise underived(columns, text, lacking[0] if len(lacking) == 1 else together)
    return [_column(columns.schema, part.name, group, weights) for part, (weights, _) in zip(parts, found, strict=True)]


def _column(schema: Schema, name: str, group: str, weights: Weights) -> DesignColumn:
    """A combination of released columns, with ``weights`` in their own units."""
    shift = weights.pop(0, Fraction(0)) if schema.intercept else Fraction(0)
    used = encoded_parts(schema, weights)
    if list(weights.values()) == [1] and not shift:
        return used[0]._replace(name=name, column=group)
    if shift == 1 and all(
        weight == -1 and (one.centre, one.half) == (0, 1) for weight, one in zip(weights.values(), used, strict=True)
    ):
        return DesignColumn(name, group, {0: 1.0, **dict.fromkeys(weights, -1.0)})  # a reference level, which is 0 or 1
    try:
        own = [float(weight) for weight in weights.values()]
        centre = float(shift + sum(weight * exact(one.centre) for weight, one in zip(weights.values(), used, strict=True)))
    except OverflowError:
        own, centre = [math.inf], 0.0
    half = sum(abs(weight) * one.half for weight, one in zip(own, used, strict=False))
    check_unit(name, half)
    scaled = {j: weight * one.half / half for j, weight, one in zip(weights, own, used, strict=True)}
    return DesignColumn(name, group, scaled, centre, half)
