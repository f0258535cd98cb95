"""Which levels of its categories each term of a formula has, so that no column follows from others: all of them, or all but the reference.

The rule is that of formulaic, patsy and R. A term spans all products of its factors in which each category is there without its reference,
or not at all. What earlier terms span is left out, and what remains is joined again: ``x:c`` without its reference and ``x`` together are
``x:c`` with all levels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

Coded = tuple[tuple[str, bool], ...]
"""Factors by their text, each with whether its reference is left out. It is never left out of what is no category."""


def coded(terms: Sequence[Sequence[tuple[str, bool]]], constant: bool) -> Iterator[list[Coded]]:
    """For each term, given as (text, whether it is a category) of its factors, the products of columns that it adds."""
    spanned: set[frozenset[tuple[str, bool]]] = {frozenset()} if constant else set()
    for term in terms:
        choices = [((text, True), None) if category else ((text, False),) for text, category in term]
        span = [tuple(factor for factor in chosen if factor is not None) for chosen in itertools.product(*choices)]
        added = [product for product in span if frozenset(product) not in spanned]
        spanned.update(map(frozenset, added))
        yield _joined(added)


def _joined(products: Sequence[Coded]) -> list[Coded]:
    """The fewest products that span the same: any + any:(c without its reference) is any:(all of c)."""
    made: list[Coded] = []
    for product in sorted(products, key=len):
        for present in made:
            new = set(product) - set(present)
            if len(present) == len(product) - 1 and len(new) == 1 and (factor := new.pop())[1]:
                whole = tuple((text, reduced and (text, reduced) != factor) for text, reduced in product)
                made = _joined([*(other for other in made if other != present), whole])
                break
        else:
            made.append(product)
    return made
