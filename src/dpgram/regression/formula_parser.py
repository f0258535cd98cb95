"""formulaic's parser, kept within limits: it only reads the text, and no product of terms is multiplied out that no release could have."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from functools import cache, partial, reduce
from importlib.util import find_spec
from typing import Any

from dpgram.errors import MissingExtraError, ModelError

MOST_TERMS = 4096  # as many as a release has columns
PRODUCTS = ("*", ":", "/", "in")


def parse(formula: str, step: str, **options: Any) -> tuple[Any, list[Any]]:
    """What formulaic's parser makes of ``formula`` at ``step``, and the terms that a minus removes though they are not there.

    Whatever it raises becomes one line."""
    if find_spec("formulaic") is None:
        raise MissingExtraError(package="formulaic", extra="formulas", purpose="a formula")
    from formulaic.parser import DefaultFormulaParser

    removed: list[Any] = []
    try:
        parser = DefaultFormulaParser(operator_resolver=_resolver()(removed))
        parsed = getattr(parser, step)(formula, **options)
        return (list(parsed) if step == "get_tokens" else parsed), removed
    except ModelError:
        raise
    except Exception as failure:  # its own errors, those of Python's parser, and a few that are neither
        words = failure.msg if isinstance(failure, SyntaxError) else str(failure)
        why = next(iter(words.splitlines()), "").rstrip(".") or type(failure).__name__
        raise ModelError(f"the formula {formula!r} cannot be parsed: {why}.") from failure


@cache
def _resolver() -> type:
    """formulaic's operators, of which some are ours."""
    from formulaic.parser import DefaultOperatorResolver
    from formulaic.parser.types import Operator, OrderedSet

    class Resolver(DefaultOperatorResolver):
        def __init__(self, removed: list[Any]):
            super().__init__()
            self._removed = removed

        @property
        def operators(self) -> list[Any]:
            return [self._ours(operator) for operator in super().operators]

        def _ours(self, operator: Any) -> Any:
            new: Any
            if operator.symbol in PRODUCTS:
                new = partial(self._multiplied, operator)
            elif operator.symbol in ("**", "^"):
                new = self._power
            elif operator.symbol == "-" and operator.arity == 2:
                new = self._without
            else:
                return operator
            return Operator(
                operator.symbol,
                arity=operator.arity,
                precedence=operator.precedence,
                associativity=operator.associativity,
                fixity=operator.fixity,
                to_terms=new,
            )

        def _multiplied(self, operator: Any, left: Any, right: Any) -> Any:
            if len(left) == 1 and list(left) == list(right):
                raise _squared(left, operator.symbol)
            _check_number(len(left) * len(right))
            return operator.to_terms(left, right)

        def _power(self, base: Any, exponent: Any) -> Any:
            return OrderedSet(_powers(base, exponent))

        def _without(self, left: Any, right: Any) -> Any:
            self._removed.extend(term for term in right if term not in left)
            return left - right

    return Resolver


def _powers(base: Any, exponent: Any) -> Sequence[Any]:
    """All products of up to so many of the terms. formulaic multiplies out every sequence of them, which can take for ever."""
    terms = list(base)
    text = str(next(iter(exponent), ""))
    value = ast.literal_eval(text) if text.isdigit() else None
    if len(exponent) != 1 or not isinstance(value, int) or value < 1:
        raise ModelError(f"the formula has the power {text}. Outside I() a power is a whole number of at least 1.")
    if len(terms) == 1 and value > 1:
        raise _squared(terms, "**")
    most = min(value, len(terms))
    _check_number(sum(math.comb(len(terms), size) for size in range(1, most + 1)))
    chosen = itertools.chain.from_iterable(itertools.combinations(terms, size) for size in range(1, most + 1))
    return [reduce(lambda one, other: one * other, some) for some in chosen]


def _squared(terms: Any, symbol: str) -> ModelError:
    """A term times itself is the term, in every language of formulas; few who write it mean that."""
    text = str(next(iter(terms)))
    written = f"{text}**2" if symbol == "**" else f"{text}{symbol}{text}"
    return ModelError(f"`{written}` outside I() means `{text}` itself. For the square write I({text}**2).")


def _check_number(terms: int) -> None:
    if terms > MOST_TERMS:
        raise ModelError(f"the formula multiplies out to more than {MOST_TERMS:,} terms. Write a shorter one.")
