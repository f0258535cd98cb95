"""Code in a formula, such as ``I((age - 40)**2)`` or ``np.log1p(income)``, as a polynomial of a row's values.

The code is a syntax tree and is never run. What is read: sums, products, whole powers, logarithms, comparisons with numbers, dates and
categories, ``&``, ``|`` and ``~`` between them, and parts of dates."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from dpgram.errors import ModelError, SchemaError, UnderivedError, UnknownColumnError, suggestion
from dpgram.regression.algebra import LOG, LOG1P, NUMBER, ONE, TRUTH, Atom, Polynomial, exact
from dpgram.regression.design import level_names, no_such_feature, with_reference
from dpgram.regression.meaning import Released, level, number, part_number, step
from dpgram.regression.needed import listed_derived, no_such_column
from dpgram.terms.columns import Boolean, Categorical, Date, Numeric, bounds
from dpgram.terms.dates import days_of, iso_text
from dpgram.terms.derived import LARGEST_EXPONENT, formula_name

LOGS = {"log": 1.0, "log2": math.log(2), "log10": math.log(10)}  # by what the natural logarithm is divided
PARTS = {  # pandas' names, ours, and what is added to ours
    **{part: (part, 0) for part in ("year", "quarter", "month", "day_of_year", "day", "hour")},
    "dayofyear": ("day_of_year", 0),
    **{part: ("weekday", -1) for part in ("weekday", "dayofweek", "day_of_week")},
}
LARGEST_CONSTANT_POWER = 64  # computed exactly; a larger one as a float
ZERO = Polynomial({})
BY_THE_DATA = (
    "The numbers that it subtracts or divides by come from the data. Use numbers that you know, as in I((age - 40) / 10)."
)
HINTS = {
    **dict.fromkeys(("center", "scale", "standardize"), BY_THE_DATA),
}


class Value(NamedTuple):
    """What a piece of code stands for, and whether it is a truth value, which ``&``, ``|`` and ``~`` take."""

    polynomial: Polynomial
    is_truth: bool = False


class Expression:
    """One piece of code. ``original`` has the backquoted names that identifiers of the tree stand for."""

    def __init__(self, released: Released, code: str, original: Mapping[str, str]):
        self._released, self._schema, self._code, self._original = released, released.schema, code, original

    def read(self, tree: ast.expr) -> Polynomial:
        try:
            return self._value(tree).polynomial
        except RecursionError:
            raise ModelError("the formula has code that is nested too deeply. Write a shorter formula.") from None
        except ModelError:
            raise
        except (OverflowError, ZeroDivisionError, ValueError) as problem:
            raise ModelError(
                f"the formula contains `{self._code}`, where a number is too large or cannot be computed: {problem}."
            ) from None

    def _refused(self, why: str) -> ModelError:
        return no_such_column(self._released, self._code, why)

    def _misused(self, why: str) -> ModelError:
        return ModelError(f"the formula contains `{self._code}`. {why}")

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(bool() | int() | float() as constant):
                return Value(Polynomial.constant(exact(constant)), isinstance(constant, bool))
            case ast.Name(identifier):
                return self._named(self._name(identifier))
            case ast.UnaryOp(operator, operand):
                return self._signed(operator, self._value(operand))
            case ast.BinOp(left, operator, right):
                return self._combined(self._value(left), operator, self._value(right))
            case ast.Compare(left, operators, rights):
                made = ONE
                for one, comparison, other in zip([left, *rights], operators, rights, strict=False):
                    made = made * self._compared(one, comparison, other)
                return Value(made, is_truth=True)
            case ast.Attribute(ast.Attribute(ast.Name(identifier), "dt"), part):
                return Value(self.date_part(identifier, part)[2])
            case ast.Call(ast.Attribute(ast.Name(identifier), "isin"), [ast.List(listed) | ast.Tuple(listed)], []):
                category = self._category(identifier)
                if category is None:
                    raise self._misused("isin is for a categorical column.")
                places = {_place(category, one) for one in listed}
                return Value(Polynomial.total(level(category, place) for place in places), is_truth=True)
            case ast.Call(ast.Name("poly"), [of, *rest], keywords):
                given = [*(one.value for one in keywords if one.arg == "degree"), *rest, ast.Constant(1)]
                raise self._powers_instead(of, given[0])
            case ast.Call(function, arguments, []):
                return self._called(_dotted(function), arguments)
        raise self._refused("No derived column computes such code.")

    def _powers_instead(self, of: ast.expr, degree: ast.expr) -> ModelError:
        """The error for ``poly``, whose numbers come from the data: which powers to write instead, and which the release lacks."""
        base, name = self._value(of).polynomial, ast.unparse(of)
        text = formula_name(self._original[name]) if name in self._original else name
        highest = degree.value if isinstance(degree, ast.Constant) else None
        if not isinstance(highest, int) or not 1 <= highest <= LARGEST_EXPONENT:
            return self._refused(f"Write the powers one by one, up to {LARGEST_EXPONENT}, as in {text} + I({text}**2).")
        powers = {f"I({text}**{k})": base.power(k) for k in range(2, highest + 1)}
        lacking = [one for one, power in powers.items() if self._released.combination(power)[1].weights]
        them, each = ("it", "a derived column") if len(lacking) == 1 else ("them", "derived columns")
        absent = (
            f" The release lacks {', '.join(lacking)}. Ask the custodian to declare {them} before the release, as {each} of kind "
            f"power."
        )
        return UnderivedError(
            f"the formula contains `{self._code}`, whose numbers come from the data. Write {' + '.join([text, *powers])} instead, which "
            f"gives the same fit.{absent if lacking else ''}{listed_derived(self._schema)}"
        )

    def _name(self, identifier: str) -> str:
        return self._original.get(identifier, identifier)

    def _named(self, name: str) -> Value:
        """A declared column, a level or a derived column of one number."""
        schema = self._schema
        column = schema.by_name.get(name)
        match column:
            case Numeric() | Date():
                return Value(number(name))
            case Boolean():
                return Value(Polynomial.of(Atom(TRUTH, name)), is_truth=True)
            case Categorical():
                second = level_names(column)[1]
                raise self._misused(
                    f"{name!r} is a category, so it cannot be computed with. Name one of its levels in backquotes, such as `{second}`, or "
                    f"compare it with one, as in {formula_name(name)} == {column.levels[0]!r}."
                )
        if name in schema.encoded_names:
            return Value(self._released.meanings[schema.encoded_names.index(name)])
        if (category := with_reference(schema, name)) is not None:
            return Value(level(category, 0), is_truth=True)
        if name in schema.places:
            raise self._misused(
                f"{name!r} has several columns. Name one of them in backquotes, such as `{schema.made[name].names[0]}`."
            )
        raise no_such_feature(schema, name)

    def _signed(self, operator: ast.unaryop, operand: Value) -> Value:
        match operator:
            case ast.UAdd():
                return Value(operand.polynomial)
            case ast.USub():
                return Value(operand.polynomial.times(-1))
            case ast.Invert() if operand.is_truth:
                return Value(ONE - operand.polynomial, is_truth=True)
        raise self._misused("Write ~ only before a comparison or a truth value, and not the word `not`.")

    def _combined(self, left: Value, operator: ast.operator, right: Value) -> Value:
        a, b = left.polynomial, right.polynomial
        match operator:
            case ast.Add():
                return Value(a + b)
            case ast.Sub():
                return Value(a - b)
            case ast.Mult():
                return Value(a * b)
            case ast.Div() if b == ZERO:
                raise self._misused("It divides by zero.")
            case ast.Div() if b.is_constant:
                return Value(a.times(1 / b.number))
            case ast.Div():
                raise self._refused("No derived column divides by a column.")
            case ast.Pow() if b.is_constant:
                return Value(self._power(a, b.number))
            case ast.BitAnd() if left.is_truth and right.is_truth:
                return Value(a * b, is_truth=True)
            case ast.BitOr() if left.is_truth and right.is_truth:
                return Value(a + b - a * b, is_truth=True)
            case ast.BitAnd() | ast.BitOr():
                raise self._misused("Write & and | only between comparisons in brackets, as in I((age >= 18) & (age < 65)).")
            case ast.BitXor():
                raise self._misused("In code a power is written **, and ^ means something else.")
        raise self._refused("No derived column computes such code.")

    def _power(self, base: Polynomial, exponent: Fraction) -> Polynomial:
        if base.is_constant:
            if exponent.denominator == 1 and abs(exponent) <= LARGEST_CONSTANT_POWER:
                return Polynomial.constant(base.number ** int(exponent))
            return Polynomial.constant(exact(math.pow(base.number, exponent)))
        if exponent.denominator != 1 or exponent < 0:
            raise self._refused(f"A derived column can have only the powers 2 to {LARGEST_EXPONENT}.")
        return base.power(int(exponent))

    def _called(self, function: str, arguments: list[ast.expr]) -> Value:
        short = function.removeprefix("numpy.").removeprefix("np.")
        given = [] if function in ("C", "Q") else [self._value(one) for one in arguments]
        values = [one.polynomial for one in given]
        match short, values:
            case "I", [_]:
                return given[0]
            case "square", [x]:
                return Value(x * x)
            case (("power" | "pow"), [x, exponent]) if exponent.is_constant:
                return Value(self._power(x, exponent.number))
            case "log1p", [x]:
                return Value(self._log(short, x + ONE, 1.0))
            case name, [x] if name in LOGS:
                return Value(self._log(name, x, LOGS[name]))
            case ("exp" | "sqrt" | "expm1") as name, [x] if self._two_valued(x):
                return Value(self._of_indicator(x, lambda v: float(getattr(math, name)(v))))
        raise self._refused(HINTS.get(short, f"No derived column computes {function or 'such code'}."))

    def _log(self, name: str, x: Polynomial, base: float) -> Polynomial:
        """The logarithm of ``x``: of a number, of two values, of ``a column``, or of ``a (1 + column)``: log(a) + log1p(column)."""
        if self._two_valued(x):
            try:
                return self._of_indicator(x, lambda v: math.log(v) / base)
            except ValueError:
                raise self._misused("It would be the logarithm of a number that is not positive.") from None
        along = x.along()
        if along is not None:
            monomial, slope, constant = along
            (atom, power), *more = monomial
            if not more and power == 1 and atom.kind == NUMBER:
                column = formula_name(atom.column)
                if slope > 0 and constant == 0 and (lower := self._lower(atom.column)) <= 0:
                    instead = f" Write log1p({column}), which is log(1 + {column}), if it will do." if lower > -1 else ""
                    raise self._refused(
                        f"The lower bound of {atom.column!r} is {lower:g}, but log({column}) needs one above 0.{instead}"
                    )
                if slope > 0 and constant in (0, slope):
                    log = Polynomial.of(Atom(LOG1P if constant else LOG, atom.column))
                    return (Polynomial.constant(exact(math.log(slope))) + log).times(1 / exact(base))
                raise self._refused(
                    f"The logarithms that derived columns compute are log({column}) and log1p({column}), which is log(1 + {column}). "
                    f"Write one of them if it will do."
                )
        raise self._refused("The only logarithms that a derived column computes are log and log1p of a declared column.")

    def _lower(self, name: str) -> float:
        column = self._schema.by_name[name]
        assert isinstance(column, Numeric | Date)
        return bounds(column)[0]

    @staticmethod
    def _two_valued(x: Polynomial) -> bool:
        """Whether it is a number, or has two values by one product of indicators."""
        along = x.along()
        return x.is_constant or (along is not None and all(atom.is_indicator for atom, _ in along[0]))

    @staticmethod
    def _of_indicator(x: Polynomial, function: Callable[[float], float]) -> Polynomial:
        along = x.along()
        if along is None:
            return Polynomial.constant(exact(function(float(x.number))))
        monomial, slope, constant = along
        low, high = exact(function(float(constant))), exact(function(float(constant + slope)))
        return Polynomial({(): low, monomial: high - low})

    def _category(self, identifier: str) -> Categorical | None:
        column = self._schema.by_name.get(self._name(identifier))
        return column if isinstance(column, Categorical) else None

    def _compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Polynomial:
        """The indicator of one comparison."""
        for one, other in ((left, right), (right, left)):
            if isinstance(one, ast.Name) and (category := self._category(one.id)) is not None:
                place = _place(category, other)
                match operator:
                    case ast.Eq():
                        return level(category, place)
                    case ast.NotEq():
                        return ONE - level(category, place)
                raise self._misused(f"Compare the category {category.name!r} by == or != only.")
        difference = self._side(left, right) - self._side(right, left)
        if self._two_valued(difference):
            holds = _HOLDS.get(type(operator))
            if holds is not None:
                return self._of_indicator(difference, lambda v: float(holds(v)))
        along = difference.along()
        if along is not None and len(along[0]) == 1 and along[0][0][0].kind == NUMBER and along[0][0][1] == 1:
            ((atom, _),), slope, constant = along
            return self._threshold(atom.column, operator, float(-constant / slope), rising=slope > 0)
        raise self._refused("An interval compares one column with a number.")

    def _side(self, node: ast.expr, other: ast.expr) -> Polynomial:
        """One side of a comparison. A text beside a date column is a date."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if isinstance(other, ast.Name) and isinstance(self._schema.by_name.get(self._name(other.id)), Date):
                try:
                    return Polynomial.constant(exact(days_of(iso_text(node.value, "the date"))))
                except SchemaError as problem:
                    raise self._misused(f"{str(problem)[:1].upper()}{str(problem)[1:]}") from None
            raise self._misused(f"{node.value!r} is text. Compare text with a categorical or a date column only.")
        return self._value(node).polynomial

    def _threshold(self, name: str, operator: ast.cmpop, at: float, *, rising: bool) -> Polynomial:
        """The indicator of ``column >= at`` and the like; where not ``rising``, the sides are exchanged."""
        column = self._schema.by_name[name]
        assert isinstance(column, Numeric | Date)
        lower, upper = bounds(column)
        symbol = {ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<="}.get(type(operator), "")
        if not rising:
            symbol = {">=": "<=", "<=": ">=", "<": ">", ">": "<"}.get(symbol, "")
        match symbol:
            case ">=":
                return step(column, at)
            case "<":
                return ONE - step(column, at)
            case ">" | "<=" if not lower <= at < upper:  # the same for every value within the bounds
                return ONE if (at < lower) == (symbol == ">") else ZERO
            case ">" | "<=":
                x, instead = formula_name(name), {">": ">=", "<=": "<"}[symbol]
                raise self._misused(
                    f"An interval contains its lower end and not its upper end, so {x} {symbol} {at:.15g} cannot be computed. Write "
                    f"{x} {instead} with the next value that {name!r} can have."
                )
        raise self._refused(
            "No derived column is the indicator of one single number. Write an interval, such as (x >= 1) & (x < 2)."
        )

    def date_part(self, identifier: str, part: str) -> tuple[str, int, Polynomial]:
        """Our name of a part of a date, what pandas adds to it, and the number that pandas has."""
        name = self._name(identifier)
        column = self._schema.by_name.get(name)
        if column is None:
            raise UnknownColumnError(name=name, known=self._schema.all_names)
        if not isinstance(column, Date):
            raise self._misused(f"{name!r} is {column.kind}, and .dt is for dates.")
        if part not in PARTS:
            raise self._refused(f"A part of a date is one of {', '.join(PARTS)}.")
        ours, shift = PARTS[part]
        return ours, shift, part_number(column, ours) + Polynomial.constant(shift)


_HOLDS: dict[type, Callable[[float], bool]] = {
    ast.Eq: lambda v: v == 0,
    ast.NotEq: lambda v: v != 0,
    ast.GtE: lambda v: v >= 0,
    ast.LtE: lambda v: v <= 0,
    ast.Gt: lambda v: v > 0,
    ast.Lt: lambda v: v < 0,
}


def _place(category: Categorical, node: ast.expr) -> int:
    """The place of the level that a constant names."""
    try:
        chosen = ast.literal_eval(node)
    except (ValueError, TypeError):
        raise ModelError(
            f"the formula compares {category.name!r} with something that is no level. Write a level in quotes."
        ) from None
    return level_place(category, chosen)


def level_place(category: Categorical, chosen: object) -> int:
    """The place of the level ``chosen`` in a formula. A number is a level of integer categories, never a place."""
    whole = isinstance(chosen, int) and not isinstance(chosen, bool)
    if (isinstance(chosen, str) or (whole and category.matches_numbers)) and str(chosen) in category.levels:
        return category.levels.index(str(chosen))
    written = [name if category.matches_numbers and name.lstrip("-").isdigit() else repr(name) for name in category.levels]
    close = suggestion(chosen, category.levels) if isinstance(chosen, str) else ""
    raise ModelError(f"{chosen!r} is not a level of {category.name!r}.{close} Its levels are {', '.join(written)}.")


def _dotted(function: ast.expr) -> str:
    match function:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name(module), name):
            return f"{module}.{name}"
    return ""
