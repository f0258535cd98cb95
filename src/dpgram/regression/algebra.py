"""Weighted sums of products of a row's values, as formulas write them: ``(age - 40)**2`` is ``age**2 - 80*age + 1600``.

An atom is a value that a row has: a number, an indicator, a logarithm. A monomial is a product of atoms, and a polynomial a weighted sum of
monomials. Indicators are 0 or 1, so their powers are themselves; two levels of one category exclude each other; of two steps of one column,
``x >= 1`` and ``x >= 5``, the product is the higher one. Weights are fractions, so that equal formulas are found equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from dpgram.errors import ModelError
from dpgram.terms.derived import LARGEST_EXPONENT

NUMBER, LOG, LOG1P, COLUMN = "number", "log", "log1p", "column"
TRUTH, LEVEL, STEP, PART, ABSENT = "truth", "level", "step", "part", "absent"  # indicators
MOST_PRODUCTS = 100_000  # that one multiplication makes


class Atom(NamedTuple):
    """A value of a row. ``which`` is the place of a level, the threshold of a step, or a part of a date with its value.

    A COLUMN is an encoded column about which no more is known than its name, which stands in ``column``."""

    kind: str
    column: str
    which: object = None

    @property
    def is_indicator(self) -> bool:
        return self.kind not in (NUMBER, LOG, LOG1P, COLUMN)

    def excludes(self, other: Atom) -> bool:
        """Whether no row has both of these two different indicators."""
        if (self.kind, self.column) != (other.kind, other.column):
            return False
        return self.kind == LEVEL or (self.kind == PART and self.which[0] == other.which[0])  # type: ignore[index]


Monomial = tuple[tuple[Atom, int], ...]
"""Atoms with their powers, sorted. The empty product is one."""


def product(one: Monomial, other: Monomial) -> Monomial | None:
    """The product of two monomials; None where it is zero in every row."""
    powers = dict(one)
    for atom, power in other:
        if not atom.is_indicator:
            powers[atom] = powers.get(atom, 0) + power
        elif atom not in powers:
            if any(atom.excludes(present) for present in powers):
                return None
            lower = next((a for a in powers if a.kind == atom.kind == STEP and a.column == atom.column), None)
            if lower is None or lower.which < atom.which:  # type: ignore[operator]
                powers.pop(lower, None)  # type: ignore[arg-type]
                powers[atom] = 1
    return tuple(sorted(powers.items()))


class Polynomial:
    """A weighted sum of monomials: none of the weights is zero."""

    def __init__(self, weights: Mapping[Monomial, Fraction]):
        self.weights = {monomial: weight for monomial, weight in weights.items() if weight}

    @classmethod
    def constant(cls, number: Fraction | int) -> Polynomial:
        return cls({(): Fraction(number)})

    @classmethod
    def of(cls, atom: Atom) -> Polynomial:
        return cls({((atom, 1),): Fraction(1)})

    @classmethod
    def total(cls, polynomials: Iterable[Polynomial]) -> Polynomial:
        weights: dict[Monomial, Fraction] = {}
        for each in polynomials:
            for monomial, weight in each.weights.items():
                weights[monomial] = weights.get(monomial, Fraction(0)) + weight
        return cls(weights)

    @property
    def is_constant(self) -> bool:
        return not self.weights or set(self.weights) == {()}

    @property
    def number(self) -> Fraction:
        """The constant among its summands."""
        return self.weights.get((), Fraction(0))

    def along(self) -> tuple[Monomial, Fraction, Fraction] | None:
        """(m, a, b) where it is ``a m + b`` with one monomial m; None where it is anything else."""
        rest = [(monomial, weight) for monomial, weight in self.weights.items() if monomial]
        return (*rest[0], self.number) if len(rest) == 1 else None

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial.total([self, other])

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.times(-1)

    def times(self, number: Fraction | int) -> Polynomial:
        return Polynomial({monomial: weight * number for monomial, weight in self.weights.items()})

    def __mul__(self, other: Polynomial) -> Polynomial:
        if len(self.weights) * len(other.weights) > MOST_PRODUCTS:
            raise ModelError(f"the formula multiplies out to more than {MOST_PRODUCTS:,} products. Write a shorter one.")
        weights: dict[Monomial, Fraction] = {}
        for a, first in self.weights.items():
            for b, second in other.weights.items():
                both = product(a, b)
                if both is not None:
                    weights[both] = weights.get(both, Fraction(0)) + first * second
        return Polynomial(weights)

    def power(self, exponent: int) -> Polynomial:
        """A whole power, at least 0. Powers that no release can have are refused before they are multiplied out."""
        degree = max((sum(power for atom, power in m if not atom.is_indicator) for m in self.weights), default=0)
        if degree * exponent > LARGEST_EXPONENT or (exponent > LARGEST_EXPONENT and self * self != self):
            raise ModelError(
                f"the formula has the power {max(degree, 1) * exponent}, but no column can have one above {LARGEST_EXPONENT}."
            )
        made = Polynomial.constant(1)
        for _ in range(min(exponent, LARGEST_EXPONENT)):
            made = made * self
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.weights == other.weights

    def __hash__(self) -> int:
        return hash(frozenset(self.weights.items()))


ONE = Polynomial.constant(1)


def exact(number: float) -> Fraction:
    """A number as its digits say it: 0.1 is a tenth."""
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)
