"""Which derived columns a list of wished models needs, as lines of a schema, and what they cost in noise. No table is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from threadpoolctl import threadpool_limits

from dpgram.errors import PlanError, SchemaError, UnderivedError
from dpgram.mechanisms import registry
from dpgram.planning.assumed import Assumptions, assumed_rows, default_target
from dpgram.planning.curves import plain_data
from dpgram.planning.expected import Expected, expect
from dpgram.planning.forecast import check_rows, listed
from dpgram.planning.ground import ground_of
from dpgram.regression.formula import designs, has_instruments, instrumented
from dpgram.terms.budget import Budget
from dpgram.terms.derived import Derived
from dpgram.terms.schema import Schema
from dpgram.terms.schema_file import declaration_lines

FORECAST = ("gaussian-noise", "whitened-noise")


@dataclass(frozen=True)
class Widening:
    """By how much a mechanism's 95 % intervals widen, for a typical coefficient of the columns that the schema has already."""

    mechanism: str
    width_before: float  # infinite: not identified
    width_after: float


@dataclass(frozen=True, eq=False)
class SuggestedDerived:
    """Derived columns to declare, and what they cost. ``dpgram.suggest_derived`` returns it. It prints as lines for the schema file.

    Attributes
    ----------
    schema : Schema
        The schema as it was given.
    derived : tuple of Product, Power, Log, Log1p, Interval or DatePart
        The columns to add. Their names are suggestions: formulas find a derived column by what it computes.
    needed_by : dict
        The formulas that need each column, by its name.
    widening : tuple of Widening
        A forecast of interval widths before and after. Empty if no budget and number of rows were given.

    Examples
    --------
    >>> from dpgram import Boolean, Numeric, Schema, suggest_derived
    >>> schema = Schema(unit="person", columns=[Numeric("wage", 0, 100), Numeric("age", 0, 120), Boolean("female")])
    >>> suggested = suggest_derived(schema, ["wage ~ age*female"])
    >>> suggested.extended.all_names
    ('wage', 'age', 'female', 'age_by_female')
    """

    schema: Schema
    derived: tuple[Derived, ...]
    needed_by: dict[str, tuple[str, ...]]
    widening: tuple[Widening, ...] = ()

    @property
    def extended(self) -> Schema:
        """The schema with the suggested columns."""
        return replace(self.schema, derived=(*self.schema.derived, *self.derived))

    @property
    def noise_growth(self) -> float:
        """By what the standard deviation of gaussian-noise is multiplied: it grows with the square of the row bound."""
        return (self.extended.effective_row_bound / self.schema.effective_row_bound) ** 2

    @property
    def toml(self) -> str:
        """The lines to add to the schema file."""
        entries = []
        for one in self.derived:
            because = "".join(f"# {formula}\n" for formula in self.needed_by[one.name])
            entries.append(f"{because}[[derived]]\n" + "".join(f"{line}\n" for line in declaration_lines(one)))
        return "\n".join(entries)

    @property
    def costs(self) -> tuple[str, ...]:
        """What the columns cost, in sentences."""
        if not self.derived:
            return ("The schema has all columns that these formulas need. Nothing has to be declared.",)
        before, after = self.schema, self.extended
        said = [
            f"{len(self.derived)} derived {'column' if len(self.derived) == 1 else 'columns'} to declare. The release has "
            f"{len(after.encoded)} encoded columns instead of {len(before.encoded)}."
        ]
        if self.noise_growth > 1:
            said.append(
                f"The row bound grows from {before.effective_row_bound:.4g} to {after.effective_row_bound:.4g}, so the noise sd of "
                f"gaussian-noise is multiplied by {self.noise_growth:.3g}."
            )
        else:
            said.append(
                f"The row bound stays {before.effective_row_bound:.4g}, so the noise of gaussian-noise stays the same. But more rows may "
                f"be clipped to it."
            )
        said += [_widening_in_words(one) for one in self.widening]
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Return the suggestion as plain data for JSON.

        Returns
        -------
        dict
            The columns with what each computes and which formulas need it, the lines for the schema file, and the costs. A width is None
            if the coefficient is not identified.
        """
        return plain_data(
            {
                "derived": [
                    {
                        "name": one.name,
                        "computes": one.expression,
                        "lines": declaration_lines(one),
                        "needed_by": self.needed_by[one.name],
                    }
                    for one in self.derived
                ],
                "toml": self.toml,
                "encoded_columns": [len(self.schema.encoded), len(self.extended.encoded)],
                "row_bound": [self.schema.effective_row_bound, self.extended.effective_row_bound],
                "noise_growth": self.noise_growth,
                "widening": [asdict(one) for one in self.widening],
                "costs": self.costs,
            }
        )

    def __str__(self) -> str:
        return "\n".join([self.toml, *(f"# {cost}" for cost in self.costs)]).lstrip("\n")


def _widening_in_words(one: Widening) -> str:
    if one.width_before == float("inf"):
        return f"With {one.mechanism}, a typical coefficient is not identified at this budget, with or without the new columns."
    if one.width_after == float("inf"):
        return f"With {one.mechanism}, a typical coefficient is identified now and is not with the new columns."
    return (
        f"With {one.mechanism}, the 95 % interval of a typical coefficient that the schema offers already becomes "
        f"{one.width_after / one.width_before:.3g} times as wide (forecast under default assumptions)."
    )


def suggest_derived(
    schema: Schema,
    formulas: str | Sequence[str],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    table_rows: int | None = None,
) -> SuggestedDerived:
    """Find the derived columns that a list of wished models needs, and what they cost in noise.

    Use it before a release, because derived columns cannot be added afterwards. It reads no table and spends no budget.

    Parameters
    ----------
    schema : Schema
        The schema as it is so far.
    formulas : str or sequence of str
        The models that somebody will want to fit, such as ``"wage ~ age*female + I(age**2)"``. With instruments they are written as for
        ``iv``, such as ``"wage ~ age + [schooling ~ distance]"``.
    epsilon, delta : float, optional
        The privacy budget, for a forecast of how much wider intervals become. Give all three of these, or none.
    table_rows : int, optional
        The number of rows, for the same forecast. It must be public, or a public guess.

    Returns
    -------
    SuggestedDerived
        The columns to declare, as objects and as lines of TOML, and their costs.

    Raises
    ------
    ModelError
        If a formula cannot be read, or needs a column that no derived column can be.
    PlanError
        If only some of epsilon, delta and table_rows are given.
    MissingExtraError
        If formulaic is not installed.

    Examples
    --------
    >>> from dpgram import Numeric, Schema, suggest_derived
    >>> schema = Schema(unit="person", columns=[Numeric("wage", 0, 100), Numeric("age", 0, 120)])
    >>> print(suggest_derived(schema, ["wage ~ age + I(age**2)", "wage ~ I(age / 10)"]).toml)
    # wage ~ age + I(age**2)
    [[derived]]
    name = "age_squared"
    kind = "power"
    of = "age"
    <BLANKLINE>
    """
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema. Use dpgram.Schema.load(path).")
    if not isinstance(formulas, Iterable):
        raise PlanError(f"formulas is {formulas!r} and must be a formula such as 'wage ~ age*female', or a list of such.")
    wished = [formulas] if isinstance(formulas, str) else list(formulas)
    if not wished:
        raise PlanError("no formula is given. Give the models that somebody will want to fit, such as 'wage ~ age*female'.")
    given = [value is not None for value in (epsilon, delta, table_rows)]
    if any(given) and not all(given):
        raise PlanError("a forecast needs epsilon, delta and table_rows together. Give all three, or none.")
    extended = schema
    added: list[Derived] = []
    for formula in wished:
        while needed := _needed(extended, formula):
            added += needed
            extended = replace(extended, derived=(*extended.derived, *needed))
    needed_by = {
        one.name: tuple(
            formula
            for formula in wished
            if _needed(replace(extended, derived=tuple(d for d in extended.derived if d != one)), formula)
        )
        for one in added
    }
    found = SuggestedDerived(schema, tuple(added), needed_by)
    if not added or epsilon is None or delta is None or table_rows is None:
        return found
    check_rows(table_rows)
    return replace(found, widening=_widening(schema, extended, Budget(epsilon, delta), table_rows))


def _needed(schema: Schema, formula: str) -> tuple[Derived, ...]:
    """The derived columns that the first term of ``formula`` that cannot be computed needs; none where all can."""
    try:
        if has_instruments(formula):
            instrumented(schema, formula)
        else:
            designs(schema, formula)
    except UnderivedError as lacking:
        if not lacking.needed:
            raise
        return lacking.needed
    return ()


@threadpool_limits.wrap(limits=1, user_api="blas")  # as for a plan
def _widening(before: Schema, after: Schema, budget: Budget, rows: int) -> tuple[Widening, ...]:
    """Forecasts of one regression on the columns of ``before``, from releases of both schemas."""
    names = [name for name in listed(FORECAST, schema=before) if before.unit_id is None or registry.find(name).takes_units]
    target = default_target(before)
    ground = ground_of(before, assumed_rows(before, Assumptions(), target), target)
    features = [name for name, _ in ground.design.groups]  # with their levels, and the marks of their missing cells
    other = ground_of(after, assumed_rows(after, Assumptions(), target), target, features)
    made = []
    for name in names:
        one, two = (expect(each, registry.find(name), budget, rows) for each in (ground, other))
        if one.typical is not None and two.typical is not None:
            made.append(Widening(name, _width(one), _width(two)))
    return tuple(made)


def _width(expected: Expected) -> float:
    assert expected.typical is not None
    return expected.typical.width
