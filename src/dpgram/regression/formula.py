"""Regressions written as formulas, such as ``arr_delay ~ dep_delay + carrier - 1``.

The parser is formulaic's. It only reads the text: no row is needed and no code in the formula is run."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from dpgram.errors import MissingExtraError, ModelError
from dpgram.regression.design import Design, DesignColumn, assemble, feature_places
from dpgram.regression.formula_terms import Term, read_code, read_name, underivable
from dpgram.terms.schema import Schema

NOT_A_NAME = "a formula cannot name the column '1', because 1 means the intercept. Pass target and features as names instead."


def is_formula(text: object) -> bool:
    """Whether ``text`` is a formula rather than the name of a column."""
    return isinstance(text, str) and "~" in text


def designs(schema: Schema, formula: str) -> list[Design]:
    """One design for each target on the left of ``formula``, all with the features on its right.

    A category stands for all its levels but the reference. Without an intercept the first category has all its levels, as
    in formulaic, patsy and R, and numbers go through the origin of their own units."""
    if not isinstance(formula, str):
        raise ModelError(f"the formula is a {type(formula).__name__} and must be text, such as 'y ~ x'.")
    left, right = _written(schema, formula)
    targets, features, constant = _terms(schema, formula, without={term.column for term in left})
    _check_dropped(right, features)
    if constant and not schema.intercept:
        raise ModelError("the release was made without an intercept column. Add - 1 to the formula.")
    explained = [_target(schema, term) for term in targets]
    for term in features:
        for target in explained:
            if target.name in term.names:
                raise ModelError(f"{target.name!r} is the target, so it cannot be a feature too. Remove `{term.text}`.")
    parts = _parts(schema, features, constant)
    return [assemble(schema, target, parts, constant) for target in explained]


def _parse(formula: str, step: str, **options: object) -> Any:
    """What formulaic's parser makes of ``formula`` at ``step``; whatever it raises becomes one line."""
    if find_spec("formulaic") is None:
        raise MissingExtraError(package="formulaic", extra="formulas", purpose="a formula")
    from formulaic.parser import DefaultFormulaParser

    try:
        parsed = getattr(DefaultFormulaParser(), step)(formula, **options)
        return list(parsed) if step == "get_tokens" else parsed
    except Exception as failure:  # its own errors, those of Python's parser, and a few that are neither
        words = failure.msg if isinstance(failure, SyntaxError) else str(failure)
        why = next(iter(words.splitlines()), "").rstrip(".") or type(failure).__name__
        raise ModelError(f"the formula {formula!r} cannot be parsed: {why}.") from failure


def _written(schema: Schema, formula: str) -> tuple[list[Term], list[Term]]:
    """All terms written left and right of the ``~``, those to be dropped too.

    Interactions are refused at this step and not among the parsed terms, because there ``x**2`` has become a plain ``x``,
    and a large power would take for ever to multiply out."""
    sides: tuple[list[Term], list[Term]] = ([], [])
    side = 0
    for token in _parse(formula, "get_tokens"):
        match token.kind.name, token.token:
            case "OPERATOR", "." if "1" in schema.all_names:
                raise ModelError(NOT_A_NAME)
            case "OPERATOR", symbols if symbols != ".":
                other = symbols.strip("~+-")
                if "|" in other:
                    raise ModelError(
                        f"the formula {formula!r} has several parts, separated by |. Write one formula for each part."
                    )
                if other:
                    raise underivable(schema, f"an interaction (`{'%in%' if other == 'in' else other}` between terms)")
                side = 1 if "~" in symbols else side
            case "CONTEXT", "[" | "]":
                raise ModelError(f"the formula {formula!r} has square brackets. Write a level in backquotes, as in `c[a]`.")
            case "VALUE", text if text != "1":
                raise ModelError(
                    f"the formula {formula!r} contains the value {text}. The only values allowed are 0 and 1, for the intercept."
                )
            case "NAME", "1":
                raise ModelError(NOT_A_NAME)
            case "NAME", name:
                sides[side].append(read_name(schema, name))
            case "PYTHON", code:
                sides[side].append(read_code(schema, code))
    if not side:
        raise ModelError(f"the formula {formula!r} has no ~ between target and features. Write it as 'y ~ x'.")
    return sides


def _terms(schema: Schema, formula: str, without: set[str]) -> tuple[list[Term], list[Term], bool]:
    """Targets, features, and whether there is an intercept.

    The ``.`` stands for all columns that do not come from the cells of those in ``without``."""
    own = [j for j, e in enumerate(schema.encoded) if e.column in without]
    available = list(dict.fromkeys(schema.encoded[j].column for j in feature_places(schema, None, own)))
    sides = _parse(formula, "get_terms", context={"__formulaic_variables_available__": available})
    terms: list[list[Term]] = []
    ones: list[bool] = []
    for side in (getattr(sides, "lhs", ()), getattr(sides, "rhs", ())):
        factors = [term.factors[0] for term in side]  # one each: interactions were refused
        columns = [factor for factor in factors if factor.eval_method.name != "LITERAL"]
        terms.append(
            [(read_code if factor.eval_method.name == "PYTHON" else read_name)(schema, factor.expr) for factor in columns]
        )
        ones.append(len(columns) < len(factors))
    if ones[0] or not terms[0]:
        raise ModelError(f"the formula {formula!r} has no target on its left side. Write it as 'y ~ x'.")
    return terms[0], terms[1], ones[1]


def _check_dropped(written: list[Term], features: list[Term]) -> None:
    """Refuse ``C(c) - c`` and ``c - `c[b]```: formulaic compares terms as texts, so nothing would be dropped in silence."""
    for dropped in written:
        for kept in features:
            if dropped not in features and set(dropped.names) & set(kept.names):
                raise ModelError(
                    f"`{dropped.text}` is removed, but `{kept.text}` contains it and stays. Remove `{kept.text}` instead, exactly as "
                    f"it is written, and add the levels that you want one by one."
                )


def _target(schema: Schema, term: Term) -> DesignColumn:
    if len(term.names) > 1:
        choices = ", ".join(f"`{name}`" for name in term.names)
        raise ModelError(f"{term.column!r} has several columns, so it cannot be a target. Name one of them: {choices}.")
    return term.parts(schema, all_levels=True)[0]


def _parts(schema: Schema, features: list[Term], constant: bool) -> list[DesignColumn]:
    """The columns of the fit, in the order of the formula. They are checked to be independent: no column stands twice, and
    all levels of a category, which add up to one, stand only where nothing else does."""
    parts: list[DesignColumn] = []
    spanned = constant  # whether the constants are already in the fit
    for term in features:
        whole = term.reference is not None
        for part in term.parts(schema, all_levels=whole and not spanned):
            if part.name in (p.name for p in parts):
                raise ModelError(f"feature {part.name!r} is named twice. Name it once.")
            parts.append(part)
        spanned = spanned or whole
    adding_up = ["the intercept"] if constant else []
    names = {part.name for part in parts}
    for category in dict.fromkeys(part.column for part in parts):
        levels = read_name(schema, category)
        if levels.reference is not None and names.issuperset(levels.names):
            adding_up.append(f"all levels of {category!r}")
    if len(adding_up) > 1:
        raise ModelError(
            f"{' and '.join(adding_up)} cannot be used together, because each adds up to one. Leave out a level"
            f"{', or remove the intercept with - 1' if constant else ''}."
        )
    return parts
