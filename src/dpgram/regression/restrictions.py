"""Linear restrictions and contrasts of coefficients, as people write them: "a - b = 0", {"a": 1, "b": -1}, or rows of numbers.

Text is read, never run: names of coefficients are found as they stand, longest first, and the rest is arithmetic."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from dpgram.errors import ModelError, suggestion

Array = np.ndarray

LONGEST = 10_000  # characters of one text
SHOWN = 30  # names in a message
SMALLEST, LARGEST = 1e-50, 1e50  # of weights: beyond, squares of them leave double precision
NAME = re.compile(r"[^\W\d][\w .]*(\[[^\[\]]*\])?")  # what looks like a coefficient's name
WORD = r"[\w\]]"  # what a name must not go on with


@dataclass(frozen=True, eq=False)
class Restrictions:
    """``matrix @ coefficients = values``, one row for each, with a name for each."""

    matrix: Array  # (k, p)
    values: Array  # (k,)
    texts: tuple[str, ...]

    def names(self, coefficients: Sequence[str]) -> tuple[str, ...]:
        """The coefficients that the restrictions are about."""
        return tuple(name for name, used in zip(coefficients, np.any(self.matrix, axis=0).tolist(), strict=True) if used)

    def once(self) -> Restrictions:
        """Without those that were asked for before."""
        first = {
            (*row, value): place
            for place, (row, value) in reversed(list(enumerate(zip(self.matrix, self.values, strict=True))))
        }
        places = sorted(first.values())
        return Restrictions(self.matrix[places], self.values[places], tuple(self.texts[place] for place in places))


def restrictions(asked: object, names: Sequence[str], groups: Mapping[str, Sequence[int]]) -> Restrictions:
    """What ``asked`` stands for, of coefficients called ``names``. A name of ``groups`` alone stands for all of its coefficients."""
    match asked:
        case str():
            made = _Text(asked, names, groups).read()
        case Mapping():
            made = [_contrast(asked, names)]
        case tuple() if len(asked) == 2 and not any(isinstance(one, str | Mapping) for one in asked):
            return _of_numbers(asked[0], asked[1], names)
        case _ if isinstance(asked, Iterable):
            listed = list(asked)
            if listed and not any(isinstance(one, str | Mapping) for one in listed):
                return _of_numbers(listed, 0.0, names)
            made = []
            for one in listed:
                more = restrictions(one, names, groups) if isinstance(one, str | Mapping) else _unread(one)
                made += zip(more.matrix, more.values, more.texts, strict=True)
        case _:
            _unread(asked)
    if not made:
        raise ModelError("no restriction is given. Name a coefficient, or write one such as 'a = b'.")
    rows, values, texts = zip(*made, strict=True)
    for row, text in zip(rows, texts, strict=True):
        if not np.any(row):
            raise ModelError(f"{text!r} is about no coefficient: everything in it cancels. Leave it out.")
    return _of_usual_size(Restrictions(np.array(rows), np.array(values), tuple(texts)))


def is_equation(asked: object, names: Sequence[str], groups: Mapping[str, Sequence[int]]) -> bool:
    """Whether a text, or one of a list, says what a combination is equal to. An equals sign in a coefficient's name does not count."""
    if isinstance(asked, list | tuple):
        return any(is_equation(one, names, groups) for one in asked)
    return isinstance(asked, str) and "=" in _Text(asked, names, groups).marked()


def _of_usual_size(asked: Restrictions) -> Restrictions:
    """``asked``, where double precision has room for the squares of its numbers."""
    for row, value, text in zip(asked.matrix, asked.values, asked.texts, strict=True):
        weight = float(np.abs(row).max())
        if not SMALLEST <= weight <= LARGEST or abs(value) > LARGEST:
            raise ModelError(
                f"the restriction {text!r} has numbers of a size that cannot be computed with: write it with weights between "
                f"{SMALLEST:g} and {LARGEST:g}, and a value of at most {LARGEST:g}."
            )
    return asked


Restriction = tuple[Array, float, str]


def _unread(asked: object) -> Any:
    raise ModelError(
        f"a restriction is {type(asked).__name__}, and must be a text such as 'a - b = 0', a dict such as {{'a': 1, 'b': -1}}, a list of "
        f"such, or an array with one number for each coefficient."
    )


def _listed(names: Sequence[str]) -> str:
    """The names, or the first of many."""
    return ", ".join(names) if len(names) <= SHOWN else f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN:,} more"


def _place(name: object, names: Sequence[str]) -> int:
    if name in names:
        return list(names).index(name)  # type: ignore[arg-type]
    raise _unnamed(name, names)


def _unnamed(name: object, names: Sequence[str]) -> ModelError:
    close = suggestion(name, names) if isinstance(name, str) else ""
    return ModelError(f"this fit has no coefficient {name!r}.{close} Its coefficients are {_listed(names)}.")


def _contrast(weights: Mapping[Any, Any], names: Sequence[str]) -> Restriction:
    if not weights:
        raise ModelError(f"the dict of weights is empty. Give a weight for a coefficient, such as {{{names[-1]!r}: 1}}.")
    row = np.zeros(len(names))
    for name, weight in weights.items():
        place = _place(name, names)
        if isinstance(weight, bool) or not isinstance(weight, Real) or not np.isfinite(float(weight)):
            raise ModelError(f"the weight of {name!r} is {weight!r} and must be a finite number.")
        row[place] = float(weight)
    if not row.any():
        raise ModelError("all weights in the dict are zero. Give at least one that is not.")
    return row, 0.0, _in_words(row, names)


def _in_words(row: Array, names: Sequence[str]) -> str:
    """A combination of coefficients as text."""
    parts = [f"{weight:+g}*{name}" for name, weight in zip(names, row, strict=True) if weight]
    text = " ".join(f"{part[0]} {part[1:]}" for part in parts).replace(" 1*", " ")
    return text.removeprefix("+ ") or "0"


def _of_numbers(matrix: Any, values: Any, names: Sequence[str]) -> Restrictions:
    try:
        rows = np.atleast_2d(np.asarray(matrix, dtype=float))
        wanted = np.broadcast_to(np.asarray(values, dtype=float), (len(rows),)) if rows.ndim == 2 else None
    except (TypeError, ValueError):
        wanted = None
    if wanted is None or rows.shape[1] != len(names) or not (np.isfinite(rows).all() and np.isfinite(wanted).all()):
        raise ModelError(
            f"a restriction in numbers needs one finite number for each of the {len(names)} coefficients, which are {_listed(names)}, "
            f"and with a tuple (rows, values) as many values as rows."
        )
    made = [
        (row, value, _in_words(row, names) + (f" = {value:g}" if value else ""))
        for row, value in zip(rows, wanted, strict=True)
    ]
    for row, _, text in made:
        if not row.any():
            raise ModelError(f"{text!r} is about no coefficient: all its numbers are zero. Leave it out.")
    return _of_usual_size(Restrictions(rows, wanted.copy(), tuple(text for *_, text in made)))


class _Text:
    """Restrictions in one text, with commas between them."""

    def __init__(self, text: str, names: Sequence[str], groups: Mapping[str, Sequence[int]]):
        if len(text) > LONGEST:
            raise ModelError(
                f"a restriction has {len(text):,} characters. At most {LONGEST:,} are read: use a dict or an array."
            )
        self._text, self._names, self._groups = text, names, groups
        self._symbols: dict[str, str] = {}

    def read(self) -> list[Restriction]:
        marked = self.marked()
        made: list[Restriction] = []
        for part in _apart(marked):
            if not part.strip():
                raise self._refused("there is nothing between two commas, or at an end")
            if "==" in part:
                raise self._refused("it has '==' where one '=' is wanted")
            sides = part.split("=")
            if not all(side.strip() for side in sides):
                raise self._refused("there is nothing on one side of '='")
            told = " ".join(self._told(part).split())
            if len(sides) == 1 and (group := self._groups.get(told)) is not None and told not in self._names:
                made += [
                    (row, 0.0, self._names[place])
                    for place, row in zip(group, np.eye(len(self._names))[list(group)], strict=True)
                ]
                continue
            read = [self._side(side) for side in sides]
            if len(read) == 1:
                read.append((np.zeros(len(self._names)), 0.0))
            for left, right in pairwise(read):
                text = told if len(sides) <= 2 else f"{told} ({len(made) + 1})"
                made.append((left[0] - right[0], right[1] - left[1], text.removesuffix(" = 0")))
        return made

    def marked(self) -> str:
        """The text with a plain identifier in place of each name."""
        known = sorted({*self._names, *self._groups}, key=len, reverse=True)
        either = "|".join(re.escape(name) for name in known)
        pattern = re.compile(rf"`({either})`|(?<!{WORD})({either})(?!\w|\[)")

        def symbol(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            self._symbols.setdefault(name, f"_{len(self._symbols)}_")
            return self._symbols[name]

        return pattern.sub(symbol, self._text)

    def _told(self, marked: str) -> str:
        """What was written, of a piece of the marked text."""
        names = {symbol: name for name, symbol in self._symbols.items()}
        return re.sub(r"_\d+_", lambda found: names.get(found[0], found[0]), marked).strip()

    def _refused(self, why: str) -> ModelError:
        return ModelError(
            f"the restriction {self._text!r} cannot be read: {why}. Write sums of coefficients, such as 'a - 2*b = 0.5', with commas "
            f"between restrictions. The coefficients are {_listed(self._names)}."
        )

    def _side(self, code: str) -> tuple[Array, float]:
        try:
            tree = ast.parse(code.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self._unknown(self._told(code)) from None
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused
                return self._value(tree)
        except RecursionError:
            raise self._refused("it is nested too deeply") from None

    def _value(self, node: ast.expr) -> tuple[Array, float]:
        nothing = np.zeros(len(self._names))
        match node:
            case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                try:
                    return nothing, self._finite(float(value))
                except OverflowError:
                    raise self._refused("a number in it is too large") from None
            case ast.Name(identifier):
                return self._coefficient(identifier), 0.0
            case ast.UnaryOp(ast.USub(), operand):
                row, value = self._value(operand)
                return -row, -value
            case ast.UnaryOp(ast.UAdd(), operand):
                return self._value(operand)
            case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
                (one, first), (other, second) = self._value(left), self._value(right)
                sign = 1 if isinstance(operator, ast.Add) else -1
                return one + sign * other, self._finite(first + sign * second)
            case ast.BinOp(left, ast.Mult(), right):
                (one, first), (other, second) = self._value(left), self._value(right)
                if one.any() and other.any():
                    raise self._refused("it multiplies coefficients with each other, so it is not linear")
                return self._finite(one * second + other * first), self._finite(first * second)
            case ast.BinOp(left, ast.Div(), right):
                (one, first), (other, second) = self._value(left), self._value(right)
                if other.any() or second == 0:
                    raise self._refused("it divides by a coefficient or by zero")
                return self._finite(one / second), self._finite(first / second)
        raise self._unknown(self._told(ast.unparse(node)))

    def _unknown(self, piece: str) -> ModelError:
        """Of what is no sum: it may be meant as a name."""
        if NAME.fullmatch(piece):
            return _unnamed(piece, self._names)
        return self._refused(f"{piece!r} is not a sum of coefficients and numbers")

    def _finite(self, value: Any) -> Any:
        if not np.all(np.isfinite(value)):
            raise self._refused("a number in it is too large")
        return value

    def _coefficient(self, identifier: str) -> Array:
        name = next((name for name, symbol in self._symbols.items() if symbol == identifier), identifier)
        if name in self._groups and name not in self._names:
            levels = ", ".join(self._names[place] for place in self._groups[name])
            raise self._refused(f"{name!r} has several coefficients. Name one of {levels}")
        return np.eye(len(self._names))[_place(name, self._names)]


def _apart(text: str) -> list[str]:
    """The pieces between commas that are not within brackets."""
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return pieces
