"""What one term of a formula stands for: a declared column, one level of a category, or a category with its reference.

Code in a formula, such as ``C(carrier, Treatment("AA"))``, is read as a syntax tree and never run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dpgram.errors import ModelError, UnknownColumnError
from dpgram.regression.design import DesignColumn, encoded_parts, level_names, with_reference
from dpgram.terms.columns import Categorical
from dpgram.terms.schema import INTERCEPT, Schema


@dataclass(frozen=True)
class Term:
    """One main effect. ``names`` are its indicators or columns, for a whole category those of all its levels, of which
    ``reference`` is the one left out beside an intercept; it is None for everything that is not a whole category."""

    text: str  # as it stands in the formula
    column: str
    names: tuple[str, ...]
    reference: str | None = None

    def parts(self, schema: Schema, *, all_levels: bool) -> list[DesignColumn]:
        """The columns of the fit: all levels of a category, or all but the reference."""
        kept = [name for name in self.names if all_levels or name != self.reference]
        return [_part(schema, self, name) for name in kept]


def read_name(schema: Schema, name: str) -> Term:
    """The term written as the bare, or backquoted, ``name``."""
    if name == INTERCEPT:
        raise ModelError(f"a formula does not name {name!r}. The intercept is there, unless the formula has - 1.")
    column = schema.by_name.get(name)
    if isinstance(column, Categorical):
        names = level_names(column)
        return Term(name, name, names, reference=names[0])
    category = with_reference(schema, name)
    if category is not None and name not in schema.encoded_names:  # no column of its own, yet a combination of columns
        return Term(name, category.name, (name,))
    if name not in schema.places:
        raise UnknownColumnError(name=name, known=schema.all_names)
    encoded = [schema.encoded[j] for j in schema.places[name]]
    return Term(name, encoded[0].column or name, tuple(e.name for e in encoded))


def read_code(schema: Schema, code: str) -> Term:
    """The term written as Python code, of which only ``C(column)`` and ``C(column, <treatment contrast>)`` are known."""
    quoted: dict[str, str] = {}  # backquoted names are no Python, so an identifier stands in for each

    def stand_in(match: re.Match[str]) -> str:
        # formulaic puts `c` for every c of the code once one of them is quoted, even within words: take the quotes off again
        return match[1] if match[1].isidentifier() else quoted.setdefault(match[1], f"_quoted_{len(quoted)}")

    try:
        tree = ast.parse(re.sub("`([^`]*)`", stand_in, code), mode="eval").body
    except SyntaxError:
        raise ModelError(f"`{code}` cannot be read. Use backquotes only around the name of a column.") from None
    original = {identifier: name for name, identifier in quoted.items()}
    match tree:
        case ast.Name(name):
            return read_name(schema, original.get(name, name))
        case ast.Call(ast.Name("C"), [ast.Name(name), *contrast], keywords):
            given = contrast + [k.value for k in keywords if k.arg in ("contrast", "contrasts")]
            if len(given) > 1 or len(given) != len(contrast) + len(keywords):
                raise ModelError(f"`{code}` cannot be read. C takes a column, and optionally a treatment contrast. {_HOW}")
            return _category(schema, code, original.get(name, name), given[0] if given else None)
        case ast.Call(ast.Name("Q")):
            raise ModelError(f"`{code}` is the spelling of another package. Write the name in backquotes, such as `my column`.")
        case ast.Subscript(ast.Name(name)) if name in schema.all_names:
            raise ModelError(
                f"`{code}` looks like code. Write a level in backquotes, as the release names it, such as `{name}[...]`."
            )
    raise underivable(schema, f"the transform `{code}`")


def underivable(schema: Schema, what: str) -> ModelError:
    """The error for what would need the rows again."""
    derived = [column.name for column in schema.derived]
    known = f" This release has the derived columns {', '.join(map(repr, derived))}." if derived else ""
    return ModelError(
        f"the formula contains {what}, which cannot be computed from the release. Ask the custodian to declare it as a derived "
        f"column in the schema before the release (see docs/schema.md). Then name that column in the formula.{known}"
    )


_HOW = 'Choose a reference level as in C(carrier, contr.treatment("AA")).'


def _category(schema: Schema, code: str, name: str, contrast: ast.expr | None) -> Term:
    category = schema.by_name.get(name)
    if isinstance(category, Categorical):
        names = level_names(category)
        chosen = _treatment(code, contrast)
        return Term(code, name, names, names[0] if chosen is None else names[_level(category, chosen)])
    if name in schema.all_names:
        raise ModelError(
            f"`{code}` makes a category of {name!r}, but the schema does not declare it as categorical. Write {name!r} itself."
        )
    raise UnknownColumnError(name=name, known=schema.all_names)


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


def _level(category: Categorical, chosen: object) -> int:
    """The place of the level ``chosen`` in a formula. A number is a level of integer categories, never a place."""
    whole = isinstance(chosen, int) and not isinstance(chosen, bool)
    if (isinstance(chosen, str) or (whole and category.matches_numbers)) and str(chosen) in category.levels:
        return category.levels.index(str(chosen))
    written = [level if category.matches_numbers and level.lstrip("-").isdigit() else repr(level) for level in category.levels]
    raise ModelError(f"{chosen!r} is not a level of {category.name!r}. Choose the reference from {', '.join(written)}.")


def _part(schema: Schema, term: Term, name: str) -> DesignColumn:
    """The column ``name``; for the declared reference level the intercept column minus the indicators of all other levels."""
    if name in schema.encoded_names:
        return encoded_parts(schema, schema.places[name])[0]
    if not schema.intercept:
        raise ModelError(
            f"`{term.text}` needs the indicator of the reference level {name!r}, which is computed from the intercept column. But the "
            f"release was made without an intercept column. Name the other levels of {term.column!r} one by one."
        )
    return DesignColumn(name, term.column, {0: 1.0, **dict.fromkeys(schema.places[term.column], -1.0)})
