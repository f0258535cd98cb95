"""What one factor of a formula stands for: a declared column, one level of a category, a category with its reference, or code.

Code in a formula, such as ``C(carrier, Treatment("AA"))`` or ``I(age**2)``, is read as a syntax tree and never run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dpgram.errors import ModelError, UnknownColumnError
from dpgram.regression.algebra import Polynomial
from dpgram.regression.design import level_names, no_such_feature, with_reference
from dpgram.regression.expressions import Expression, level_place
from dpgram.regression.meaning import Released, level, part_is
from dpgram.terms.columns import Categorical, Date, bounds
from dpgram.terms.dates import part_range
from dpgram.terms.schema import INTERCEPT


@dataclass(frozen=True)
class Part:
    """One column of a factor: its name in a table of coefficients, and its meaning."""

    name: str
    meaning: Polynomial


@dataclass(frozen=True)
class Factor:
    """A main effect, or a factor of an interaction. A whole category has all its levels, of which the one at the place ``reference`` is
    left out beside an intercept; ``reference`` is None for everything that is not a whole category."""

    text: str  # as it stands in the formula
    column: str  # what a joint test of its columns is called
    parts: tuple[Part, ...]
    reference: int | None = None
    marks: tuple[Part, ...] = ()  # indicators of missing cells, which go with a main effect


def read_name(released: Released, name: str) -> Factor:
    """The factor written as the bare, or backquoted, ``name``."""
    schema = released.schema
    if name == INTERCEPT:
        raise ModelError(f"a formula does not name {name!r}. The intercept is there, unless the formula has - 1.")
    column = schema.by_name.get(name)
    if isinstance(column, Categorical):
        return _levels(name, column, 0)
    category = with_reference(schema, name)
    if category is not None and name not in schema.encoded_names:  # no column of its own, yet a combination of columns
        return Factor(name, category.name, (Part(name, level(category, 0)),))
    if name not in schema.places:
        if ".dt." in name:  # formulaic takes it for a name
            return read_code(released, name)
        raise no_such_feature(schema, name)
    encoded = [(schema.encoded[j], released.meanings[j]) for j in schema.places[name]]
    alone = len(encoded) == 1
    parts = tuple(Part(e.name, meaning) for e, meaning in encoded if alone or not e.absent)
    marks = tuple(Part(e.name, meaning) for e, meaning in encoded if e.absent and not alone)
    return Factor(name, encoded[0][0].column or name, parts, marks=marks)


def read_code(released: Released, code: str) -> Factor:
    """The factor written as Python code."""
    quoted: dict[str, str] = {}  # backquoted names are no Python, so an identifier stands in for each

    def stand_in(match: re.Match[str]) -> str:
        # formulaic puts `c` for every c of the code once one of them is quoted, even within words: take the quotes off again
        return match[1] if match[1].isidentifier() else quoted.setdefault(match[1], f"_quoted_{len(quoted)}")

    try:
        tree = ast.parse(re.sub("`([^`]*)`", stand_in, code), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ModelError(f"`{code}` cannot be read. Use backquotes only around the name of a column.") from None
    original = {identifier: name for name, identifier in quoted.items()}
    expression = Expression(released, code, original)
    match tree:
        case ast.Name(name):
            return read_name(released, original.get(name, name))
        case ast.Call(ast.Name("C"), [column, *contrast], keywords):
            given = contrast + [k.value for k in keywords if k.arg in ("contrast", "contrasts")]
            if len(given) > 1 or len(given) != len(contrast) + len(keywords):
                raise ModelError(f"`{code}` cannot be read. C takes a column, and optionally a treatment contrast. {_HOW}")
            return _category(released, expression, code, column, original, given[0] if given else None)
        case ast.Call(ast.Name("Q")):
            raise ModelError(f"`{code}` is the spelling of another package. Write the name in backquotes, such as `my column`.")
        case ast.Subscript(ast.Name(name)) if name in released.schema.all_names:
            raise ModelError(
                f"`{code}` looks like code. Write a level in backquotes, as the release names it, such as `{name}[...]`."
            )
    return Factor(code, code, (Part(code, expression.read(tree)),))


_HOW = 'Choose a reference level as in C(carrier, contr.treatment("AA")).'


def _levels(text: str, category: Categorical, reference: int) -> Factor:
    parts = tuple(Part(name, level(category, place)) for place, name in enumerate(level_names(category)))
    return Factor(text, category.name, parts, reference)


def _category(
    released: Released, expression: Expression, code: str, of: ast.expr, original: dict[str, str], contrast: ast.expr | None
) -> Factor:
    schema = released.schema
    match of:
        case ast.Name(identifier):
            name = original.get(identifier, identifier)
        case ast.Attribute(ast.Attribute(ast.Name(identifier), "dt"), part):
            return _date_levels(released, expression, code, original.get(identifier, identifier), part, contrast)
        case _:
            raise ModelError(f"`{code}` cannot be read. C takes the name of a categorical column, or a part of a date.")
    category = schema.by_name.get(name)
    if isinstance(category, Categorical):
        chosen = _treatment(code, contrast)
        return _levels(code, category, 0 if chosen is None else level_place(category, chosen))
    if name in schema.all_names:
        raise ModelError(
            f"`{code}` makes a category of {name!r}, but the schema does not declare it as categorical. Write {name!r} itself."
        )
    raise UnknownColumnError(name=name, known=schema.all_names)


def _date_levels(
    released: Released, expression: Expression, code: str, name: str, part: str, contrast: ast.expr | None
) -> Factor:
    """A part of a date as a category, with pandas' values as its levels."""
    ours, shift, _ = expression.date_part(name, part)
    date = released.schema.by_name[name]
    assert isinstance(date, Date)
    low, high = part_range(ours, *bounds(date))
    text = f"{name}.dt.{part}"
    category = Categorical(text, tuple(range(low + shift, high + shift + 1)))
    chosen = _treatment(code, contrast)
    parts = tuple(Part(f"{text}[{value + shift}]", part_is(date, ours, value)) for value in range(low, high + 1))
    return Factor(code, text, parts, 0 if chosen is None else level_place(category, chosen))


def _treatment(code: str, contrast: ast.expr | None) -> object | None:
    """The reference that a contrast names; None when it names none. The spellings of formulaic, patsy and statsmodels."""
    match contrast:
        case None | ast.Name("Treatment") | ast.Attribute(ast.Name("contr"), "treatment"):
            return None
        case ast.Call(ast.Name("Treatment") | ast.Attribute(ast.Name("contr"), "treatment"), args, keywords):
            given = args + [k.value for k in keywords if k.arg in ("base", "reference")]
            if len(given) <= 1 and len(given) == len(args) + len(keywords):
                try:
                    return ast.literal_eval(given[0]) if given else None
                except (ValueError, TypeError):
                    pass  # a name or an expression, not a level
    raise ModelError(f"the contrast of `{code}` cannot be used. Only treatment contrasts with one level are supported. {_HOW}")
